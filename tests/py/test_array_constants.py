"""Numbers of the program that generated code keeps as arrays: bits, dtype, warnings and errors are as in plain Python, whatever the number and the dtype."""

from __future__ import annotations

import itertools
import operator
import re
import sys
import warnings

import framegate
import numpy as np
import pytest

DTYPES = ["?", "b", "B", "h", "H", "i", "I", "l", "L", "q", "Q", "e", "f", "d", "F", "D"]
NUMBERS = [
    0,
    1,
    -1,
    2,
    3,
    127,
    128,
    255,
    256,
    -128,
    -129,
    2**24 + 1,
    2**31,
    2**53 + 1,
    2**63 - 1,
    2**63,
    2**64,
    -(2**63),
    10**30,
    True,
    False,
]
NUMBERS += [0.0, -0.0, 0.5, 0.1, 1.0, -3.0, 1e300, 1e-300, 3.5e38, float("inf"), float("-inf"), float("nan"), 2j]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>", "<", "<=", "==", "!=", ">", ">="]


def outcome(fn, *args):
    """Result or error, with the warnings in between; an array by dtype, shape and bits."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            value = fn(*args)
        except Exception as error:
            value = (type(error), str(error))
    if isinstance(value, (np.ndarray, np.generic)):
        value = (
            type(value),
            value.dtype,
            value.shape,
            value.tobytes(),
            [(a.dtype, a.tobytes()) for a in args if isinstance(a, np.ndarray)],
        )
    return value, [(w.category, str(w.message)) for w in seen]


def made(source):
    """The function f of a source text."""
    names = {"np": np}
    exec(source, names)
    return names["f"]


def arrays(dtype):
    yield np.array([3, 1, 0, 7, 100], "B").astype(dtype)
    yield np.array(3).astype(dtype)
    yield np.zeros((0, 2), dtype)
    yield np.array([[1, 0, 2]]).astype(dtype).T


def same_for_all_dtypes(fn, *what):
    for dtype in DTYPES:
        compiled = framegate.compile(fn)
        for x in arrays(dtype):
            want = outcome(fn, x.copy())
            for _ in range(2):
                assert outcome(compiled, x.copy()) == want, (dtype, x.shape, *what)
        framegate.reset()


def n_array_constants(compiled):
    """How many arrays the one entry of a function owns."""
    (entry,) = framegate.cache_entries(compiled)
    return len(re.findall(r"<own numpy.ndarray>  \[const\]  -> input", str(entry.guards)))


@pytest.mark.parametrize("op", OPERATORS)
def test_operators(op):
    for number, left in itertools.product(NUMBERS, (False, True)):
        text = repr(number).replace("inf", "1e999").replace("nan", "(1e999 - 1e999)")
        fn = made(f"def f(x):\n    return {f'({text}) {op} x' if left else f'x {op} ({text})'}\n")
        same_for_all_dtypes(fn, number, left)


@pytest.mark.parametrize("op", [o + "=" for o in OPERATORS[:12]])
def test_in_place(op):
    for number, left in itertools.product(NUMBERS, (False, True)):
        text = repr(number).replace("inf", "1e999").replace("nan", "(1e999 - 1e999)")
        fn = made(f"def f(x):\n    y = {text if left else 'x'}\n    y {op} {'x' if left else f'({text})'}\n    return y\n")
        same_for_all_dtypes(fn, number, left)


@pytest.mark.parametrize(
    "name",
    [
        "add",
        "subtract",
        "multiply",
        "divide",
        "floor_divide",
        "remainder",
        "fmod",
        "power",
        "maximum",
        "fmin",
        "arctan2",
        "hypot",
        "copysign",
        "nextafter",
        "logical_and",
        "bitwise_or",
        "left_shift",
        "less",
        "heaviside",
        "ldexp",
        "logaddexp",
        "gcd",
    ],
)
def test_ufuncs(name):
    for number, left in itertools.product(
        [0, 1, -1, 3, 300, 2**40, 2**70, 0.0, -0.0, 0.1, 2.5, 1e300, float("inf")], (False, True)
    ):
        text = repr(number).replace("inf", "1e999")
        fn = made(f"def f(x):\n    return np.{name}({f'{text}, x' if left else f'x, {text}'})\n")
        same_for_all_dtypes(fn, number, left)


def chain(x, y):
    a = np.exp(-x / 2) * 3 + 1
    b = np.sqrt(np.abs(a - 0.1)) % 2
    c = (b > 1) * 2 + (y // 3)
    d = np.maximum(c - 7, 0)
    d += 1
    return a, b, c, d, d.sum() + 1, x[0] + 1, x[0] / 0.0


@pytest.mark.parametrize(("one", "two"), itertools.product("dfile", "dflBh"))
def test_what_operations_give_takes_numbers_too(one, two):
    compiled = framegate.compile(chain)
    x, y = np.arange(1, 7).astype(one), np.arange(6).astype(two)
    want = [outcome(lambda k=k: chain(x, y)[k]) for k in range(7)]
    for _ in range(3):
        assert [outcome(lambda k=k: compiled(x, y)[k]) for k in range(7)] == want


@pytest.mark.parametrize("name", ["matmul", "vecdot", "dot", "inner", "sum", "max"])
def test_what_may_give_a_scalar_of_numpy_is_no_array(name):
    """`scalar + 1` warns in other words than `array + 1`."""
    if not hasattr(np, name):
        pytest.skip(f"this NumPy has no {name}")
    fn = made(f"def f(x, y):\n    return np.{name}({'x' if name in ('sum', 'max') else 'x, y'}) * 1e308 / 0\n")
    compiled = framegate.compile(fn)
    for x in (np.ones(3), np.ones((2, 3)), np.array([1e300, 0, 0])):
        for _ in range(2):
            assert outcome(compiled, x, x.T) == outcome(fn, x, x.T)


def test_errors_of_the_state_are_the_same():
    def f(x):
        return x / 0

    compiled = framegate.compile(f)
    assert outcome(compiled, np.ones(3) + 1) == outcome(f, np.ones(3) + 1)
    for kind in ("raise", "ignore", "warn"):
        with np.errstate(all=kind):
            assert outcome(compiled, np.ones(3)) == outcome(f, np.ones(3))
    seen = []
    with np.errstate(all="call", call=lambda *what: seen.append(what)):
        compiled(np.ones(3))
        f(np.ones(3))
    assert len(seen) == 2 and seen[0] == seen[1]


def test_which_numbers_are_kept_as_arrays():
    def f(x):
        return x + 1, 1 - x, np.maximum(x, 0), x > 1, x * 0.1, x**2, x == 0

    for x, n in [
        (np.ones(3), 3),
        (np.ones(3, np.float32), 2),
        (np.ones(3, np.int8), 2),
        (np.float64(2), 0),
        (np.array(2.0), 0),
        (np.ones(3, ">f8"), 0),
        (np.ones(3, complex), 0),
    ]:
        compiled = framegate.compile(f)
        assert str(compiled(x)) == str(f(x))
        if framegate.cache_entries(compiled):
            assert n_array_constants(compiled) == n, x.dtype
        framegate.reset()


def test_generated_code_is_hashable_and_names_no_array():
    codes = []

    class Note(Exception):
        pass

    def f(x):
        y = x + 1
        raise Note(y[0] * 2)

    compiled = framegate.compile(f)
    for _ in range(3):
        with pytest.raises(Note) as error:
            compiled(np.ones(3))
        codes += [frame.frame.code.raw for frame in error.traceback]
    assert len({hash(code) for code in codes}) > 1


def test_arrays_end_with_their_entry():
    def f(x):
        return x + 12345

    compiled = framegate.compile(f)
    x = np.zeros(3)
    compiled(x)
    before = sys.getrefcount(x.dtype)
    for _ in range(200):
        framegate.reset()
        compiled(x)
    assert abs(sys.getrefcount(x.dtype) - before) < 20


def test_a_graph_of_a_backend_gets_the_number():
    seen = []

    def backend(graph, example_inputs):
        seen.append(str(graph))
        return graph

    compiled = framegate.compile(lambda x: x * 3 + 1, backend=backend)
    assert compiled(np.ones(2)).tolist() == [4.0, 4.0]
    assert "array(" not in seen[0] and operator.contains(seen[0], "3")
