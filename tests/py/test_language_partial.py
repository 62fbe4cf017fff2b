"""Calling functools.partial objects that exist: their function, arguments and keywords are what they are now."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from support_engine import cap, counted, entries, needs_engine


def scaled(x, *more, factor=1, **rest):
    return (x * factor + sum(more), factor, more, tuple(rest.items()))


def call(f, x):
    return f(x), f(x, 1), f(x, factor=7), f(x, other=2)


def same(a, b):
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b)
    return len(a) == len(b) and all(map(same, a, b)) if isinstance(a, tuple) else type(a) is type(b) and a == b


PARTIALS = {
    "nothing": lambda: partial(scaled), "keyword": lambda: partial(scaled, factor=3), "argument": lambda: partial(scaled, 2.0), "both": lambda: partial(scaled, 1, factor=2),
    "of a partial": lambda: partial(partial(scaled, factor=3), other=4, factor=5), "other order": lambda: partial(scaled, z=1, factor=2, other=3),
    "method": lambda: partial(Adds(3).add, factor=2), "a ufunc": lambda: partial(lambda x, *a, **k: (np.add(x, len(a)), 1, a, ()), 1),
}


class Adds:
    def __init__(self, n):
        self.n = n

    def add(self, x, *more, **rest):
        return scaled(x + self.n, *more, **rest)


@pytest.mark.parametrize("name", PARTIALS)
def test_as_plain_python(name):
    f, compiled = PARTIALS[name](), cap(call)
    for k in range(3):
        x = np.arange(3.0) + k
        assert same(call(f, x), compiled(f, x))


def test_each_part_is_that_of_the_call():
    compiled, x = cap(call), np.arange(3.0)
    made = [make() for make in PARTIALS.values()]
    for f in made + made[::-1]:
        assert same(call(f, x), compiled(f, x))
    f = partial(scaled, factor=2)
    for change in (lambda: f.keywords.update(factor=4), lambda: f.keywords.update(more_of_it=1), lambda: f.keywords.clear(), lambda: f.__setstate__((scaled, (5,), {}, None)),
                   lambda: f.__setstate__((Adds(1).add, (), {"factor": 9}, {}))):
        assert same(call(f, x), compiled(f, x))
        change()
        assert same(call(f, x), compiled(f, x))


@needs_engine
def test_in_one_graph_and_one_entry():
    class Layer:
        def __init__(self, act):
            self.act = act

    def fn(layer, x):
        return layer.act(x)[0] + 1

    compiled, counter = counted(fn)
    for k in range(3):
        compiled(Layer(partial(scaled, factor=2)), np.arange(3.0) + k)
    assert counter.frame_count == 1 and entries(compiled) == 1


def test_one_that_cannot_be_called():
    f, compiled = partial(scaled, x=1), cap(call)
    for _ in range(2):
        with pytest.raises(TypeError, match="multiple values"):
            compiled(f, np.arange(3.0))


def test_a_subclass_decides():
    class Mine(partial):
        def __call__(self, *args, **kwargs):
            return "mine", super().__call__(*args, **kwargs)

    f, compiled = Mine(scaled, factor=2), cap(lambda f, x: f(x))
    for _ in range(2):
        assert compiled(f, np.arange(3.0))[0] == "mine"
