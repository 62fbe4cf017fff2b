"""Straight-line code that runs without the interpreter's loop: everything that can be seen of it is as in plain Python."""

from __future__ import annotations

import gc
import inspect
import re
import sys
import threading
import traceback
import warnings
import weakref

import framegate
import numpy as np
import pytest
from framegate import _core

pytestmark = pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="other versions run such code by the interpreter")


class Log:
    """Operands that say what was asked of them, and by which frame."""

    def __init__(self, value=0, raises=None):
        self.value, self.raises, self.log = value, raises, []

    def note(self, what, *others):
        frame = sys._getframe(2)
        back = frame.f_back.f_code.co_name
        self.log.append((what, frame.f_code.co_name, frame.f_lineno - frame.f_code.co_firstlineno, back in ("plain", "straight"), sorted(map(str, frame.f_locals))))
        if self.raises is not None:
            raise self.raises
        return Log(self.value + 1)

    def __eq__(self, other):
        return self.note("eq") if self.raises else isinstance(other, Log) and self.value == other.value

    def __repr__(self):
        return f"Log({self.value})"

    __hash__ = None


for name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift iadd imul isub getitem neg pos invert lt call".split():
    setattr(Log, f"__{name}__", lambda self, *others, name=name: self.note(name, *others))
Log.__setitem__ = lambda self, key, value: self.note("setitem", key, value) and None
Log.__getattr__ = lambda self, name: self.note("getattr", name) if not name.startswith("__") else object.__getattribute__(self, name)
Log.method = lambda self, *args, **kwargs: self.note("method", *args)


def plain(function, args):
    return function(*args)


def straight(function, args):
    done = _core.cpython_straight_run(function, *args)
    assert done is not None, "no straight-line code"
    return done[0]


FUNCTIONS = [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b, lambda a, b: a // b, lambda a, b: a % b,
    lambda a, b: a**b, lambda a, b: a @ b, lambda a, b: a & b, lambda a, b: a | b, lambda a, b: a ^ b, lambda a, b: a << b,
    lambda a, b: a >> b, lambda a, b: a[b], lambda a, b: -a, lambda a, b: +a, lambda a, b: ~a, lambda a, b: a < b, lambda a, b: a is b,
    lambda a, b: a is not b, lambda a, b: a(b), lambda a, b: a.other, lambda a, b: a.method(b), lambda a, b: a.method(b, key=a),
    lambda a, b: (a, b, a + b), lambda a, b: [b, a], lambda a, b: (a + b) * (a - b), lambda a, b: a.method((a, b), [a], k=b)[b], lambda a, b: 1,
    lambda a, b: a.missing.more,
]


def in_place(a, b):
    a += b
    a *= b
    a -= b
    return a


def stores(a, b):
    a[b] = b
    a.name = b
    return a


def locals_and_swaps(a, b):
    c = a + b
    a, b = b, a
    c = c * a
    return c, a, b


def three(a, b):
    x, y, z = a
    return z, y, x


def one(a, b):
    (x,) = a
    return x


def unbound(a, b):
    return later  # noqa: F821


FUNCTIONS += [in_place, stores, locals_and_swaps, three, one]


def seen(run, function, args):
    """Result or exception, what the operands noted, and the lines of the traceback inside the function."""
    try:
        outcome = ("gives", run(function, args))
    except BaseException as error:  # noqa: BLE001
        lines = [(f.name, f.lineno, f.colno) for f in traceback.extract_tb(error.__traceback__) if f.name not in ("plain", "straight", "seen")]
        outcome = ("raises", type(error), str(error), lines, type(error.__context__))
    return outcome, [(arg.log, vars(arg).get("name")) for arg in args if isinstance(arg, Log)]


def operands():
    class Iterates:
        def __iter__(self):
            yield 1
            raise KeyError("in the middle")

    yield from [
        lambda: (Log(), Log(3)), lambda: (Log(raises=ValueError("no")), Log()), lambda: (3, 0), lambda: (7, 2), lambda: (2.5, -1), lambda: ("ab", 3),
        lambda: ("%s!", "x"), lambda: ([1, 2, 3], 1), lambda: ([1, 2, 3], [4]), lambda: ((1, 2, 3), 5), lambda: ((1, 2), 5), lambda: ("abc", 1), lambda: ([1], 0),
        lambda: (iter([1, 2, 3, 4]), 0), lambda: (Iterates(), 1), lambda: (None, None), lambda: ({1: 2}, 1), lambda: ({}, 1), lambda: (len, "abc"), lambda: (np.arange(3.0), 2),
        lambda: (np.arange(3), np.arange(4)), lambda: (10, -1), lambda: (True, 70), lambda: (str, 5), lambda: ([1].append, 2),
    ]


@pytest.mark.parametrize("index", range(len(FUNCTIONS)))
def test_instructions_are_as_in_the_loop(index):
    function, ran = FUNCTIONS[index], 0
    for make in operands():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected, got = seen(plain, function, make()), seen(straight, function, make())
        assert expected[1] == got[1] and (text(expected) == text(got) or compare(expected, got)), (expected, got)
        ran += 1
    assert ran > 20


def text(outcome):
    return re.sub(r"0x[0-9a-f]+", "0x", repr(outcome))


def compare(expected, got):
    """Results that have no faithful repr: bound methods, arrays, iterators at new addresses."""
    (kind, *rest), (other_kind, *other) = expected[0], got[0]
    if kind != other_kind:
        return False
    if kind == "raises":
        return rest == other
    return type(rest[0]) is type(other[0]) and not isinstance(rest[0], (int, float, str, tuple, list, Log))


def test_what_has_no_straight_line_is_left_to_the_loop():
    def loop(a):
        for _ in range(3):
            a += 1
        return a

    def handler(a):
        try:
            return a + 1
        except TypeError:
            return 0

    def closure(a):
        return lambda: a

    def generator(a):
        yield a

    for function in (loop, handler, closure, generator, lambda a: a if a else 0, lambda *a: a, lambda a: [x for x in a]):
        if function.__code__.co_argcount == 1:
            assert _core.cpython_straight_run(function, 1) is None


def test_a_frame_that_somebody_keeps_owns_its_values():
    kept = []

    class Keeps:
        def __add__(self, other):
            kept.append(sys._getframe(1))
            return 5

    class Value:
        pass

    value = Value()
    gone = weakref.ref(value)
    result = straight(lambda a, b: (a + b, b), (Keeps(), value))
    assert result == (5, value)
    frame = kept.pop()
    assert frame.f_locals["b"] is value and frame.f_back.f_code.co_name == "straight" and frame.f_code.co_name == "<lambda>"
    del value, result
    gc.collect()
    assert gone() is not None
    frame.clear()
    del frame
    gc.collect()
    assert gone() is None


def test_a_frame_in_a_traceback_and_its_cycle_are_collected():
    class Value:
        pass

    def once():
        value = Value()
        try:
            straight(lambda a, b: a / b, (value, 0))
        except TypeError as error:
            value.error = error
        return weakref.ref(value)

    refs = [once() for _ in range(20)]
    gc.collect()
    assert not any(ref() for ref in refs)


def test_references_are_balanced():
    a, b = [object()], object()
    before = sys.getrefcount(a), sys.getrefcount(b)
    function = lambda a, b: (a, [b, a], a)[0][0]  # noqa: E731
    fails = lambda a, b: (b, a.missing)  # noqa: E731
    for _ in range(100):
        straight(function, (a, b))
        with pytest.raises(AttributeError):
            straight(fails, (a, b))
    assert (sys.getrefcount(a), sys.getrefcount(b)) == before


def test_warnings_name_the_line_of_the_function():
    def divide(x, y):
        z = x + y
        return z / y

    run = framegate.compile(divide)
    zero = np.zeros(3)
    for function in (divide, run):
        for _ in range(3):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                function(zero, zero)
            assert [(w.filename, w.lineno) for w in caught] == [(__file__, divide.__code__.co_firstlineno + 2)]


def test_recursion_through_gates_ends_as_in_plain_python():
    calls = []

    class Again:
        def __add__(self, other):
            calls.append(1)
            return straight(adds, (self, other))

    adds = lambda a, b: a + b  # noqa: E731
    with pytest.raises(RecursionError):
        straight(adds, (Again(), 1))
    assert 100 < len(calls) < 5000
    assert straight(adds, (1, 2)) == 3


def test_threads_have_their_own_frames():
    names = set()

    class Where:
        def __add__(self, other):
            frame = sys._getframe(1)
            names.add((frame.f_code.co_name, inspect.getouterframes(frame)[1].function))
            return other

    adds = lambda a, b: a + b  # noqa: E731
    sys_interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        workers = [threading.Thread(target=lambda: [straight(adds, (Where(), i)) for i in range(200)]) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(sys_interval)
    assert names == {("<lambda>", "straight")}


def test_a_reset_inside_a_call_leaves_the_call_its_code():
    torch = pytest.importorskip("torch")

    def backend(graph, example_inputs):
        def run(*args):
            framegate.reset()
            gc.collect()
            return (torch.zeros(2),)

        return run

    run = framegate.compile(lambda x: x + 1, backend=backend)
    for _ in range(20):
        assert run(torch.ones(2)).tolist() == [0, 0]
