"""A cache entry never keeps an object of the user's alive through a dtype that refers to it, and plain structured dtypes are captured as they were."""

from __future__ import annotations

import gc
import weakref

import framegate
import numpy as np
import pytest

D = E = np.dtype("f8")  # each function under test gets globals of its own


class Thing:
    pass


KINDS = {
    "metadata": lambda thing: np.dtype("f4", metadata={"a": thing}),
    "metadata of a field": lambda thing: np.dtype([("a", np.dtype("f4", metadata={"a": thing}))]),
    "metadata deep inside": lambda thing: np.dtype([("a", [("b", np.dtype((np.dtype("i2", metadata={"a": thing}), (2, 3))))])]),
    "metadata of a part": lambda thing: np.dtype((np.dtype("f4", metadata={"a": thing}), (2,))),
}
if hasattr(np.dtypes, "StringDType"):
    KINDS["what stands for a missing text"] = lambda thing: np.dtypes.StringDType(na_object=thing)

USES = {
    "an argument of an operation": lambda x: (x + 1, np.empty(2, D).shape),
    "compared": lambda x: (x + 1, 1 if D == x.dtype else 2),
    "an identity": lambda x: (x + 1, (lambda y: y is D)(D)),
    "a result": lambda x: (x + 1, D),
}


def of(function, dtype):
    """The function with globals of its own."""
    return type(function)(function.__code__, {"np": np, "D": dtype, "__builtins__": __builtins__})


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_dtype_refers_to_dies_with_it(kind, use):
    thing = Thing()
    function = of(USES[use], KINDS[kind](thing))
    dead, x = weakref.ref(thing), np.ones(3)
    compiled = framegate.compile(function)
    for _ in range(3):
        assert [str(v) for v in compiled(x)] == [str(v) for v in function(x)]
    function.__globals__["D"] = np.dtype("f4")
    del thing
    gc.collect()
    assert dead() is None
    assert [str(v) for v in compiled(x)] == [str(v) for v in function(x)]


PLAIN = [np.dtype("f8"), np.dtype([("a", "f4"), ("b", [("c", "i4", (2,))])]), np.dtype({"names": ["a"], "formats": ["i4"], "titles": ["long"]}), np.dtype((np.int16, (3,)))]


@pytest.mark.parametrize("dtype", PLAIN, ids=str)
def test_a_dtype_of_numbers_and_text_is_a_fact(dtype):
    function = of(lambda x: (x + 1, D is E), dtype)
    function.__globals__["E"] = dtype
    compiled = framegate.compile(function, fullgraph=True)
    assert compiled(np.ones(2))[1] is True
    function.__globals__["E"] = np.dtype("c8")
    assert compiled(np.ones(2))[1] is False
