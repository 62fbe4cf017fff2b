"""Functions that no programmer writes by hand, and gates in every place where a class or the library expects a function."""

from __future__ import annotations

import contextlib
import copy
import functools
import gc
import inspect
import math
import pickle
import sys
import types

import numpy as np
import pytest

framegate = pytest.importorskip("framegate")

BACKENDS = {"eager": {}, "own": {"backend": lambda graph, inputs: graph}}


def outcome(fn, args):
    try:
        value = fn(*args)
    except Exception as error:
        return type(error), str(error)
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.tolist()
    return type(value), repr(value)


def same(fn, *calls):
    for options in BACKENDS.values():
        gate = framegate.compile(fn, **options)
        for args in calls:
            for _ in range(3):
                assert outcome(gate, args) == outcome(fn, args)


def made(text, **space):
    exec(text, space)
    return space["f"]


def nested(depth, kind):
    lines, indent = ["def f(x):", " t = 0"], " "
    for i in range(depth):
        head = {"for": f"for i{i} in (1,):", "if": f"if x > -{i}:", "try": "try:", "while": f"while t < {i + 1}:", "with": "with context():"}[kind]
        lines.append(indent + head)
        indent += " "
    lines.append(indent + "t += 1")
    for _ in range(depth if kind == "try" else 0):
        indent = indent[:-1]
        lines += [indent + "finally:", indent + " t += 1"]
    return made("\n".join([*lines, " return t, x"]), context=contextlib.nullcontext)


@pytest.mark.parametrize("kind", ["for", "if", "try", "while", "with"])
def test_deep_nesting(kind):
    same(nested(50 if kind == "if" else 19, kind), (1,), (2.5,), (-50,))  # the compiler allows 20 blocks


LARGE = {
    "300 arguments": ("def f(" + ",".join(f"a{i}" for i in range(300)) + "): return a0 + a299, a5 * a7", [tuple(range(300)), (2.5,) * 300]),
    "300 keywords": ("def f(*, " + ",".join(f"a{i}={i}" for i in range(300)) + "): return a0 + a299, a5 * a7", [()]),
    "10,000 locals": ("def f(x):\n" + "".join(f" v{i} = x + {i % 7}\n" for i in range(10000)) + " return v0, v9999", [(1,), (2.5,)]),
    "10,000 locals and a break": ("def f(x):\n" + "".join(f" v{i} = x + {i % 7}\n" for i in range(10000)) + " print(end='')\n return v0, v9999", [(1,), (2.5,)]),
    "5,000 lines of branches": ("def f(x):\n" + "".join(f" x = x + {i}\n if x < 0: x = 0\n" for i in range(2500)) + " return x", [(1,), (2.5,)]),
    "5,000 operations": ("def f(x):\n" + "".join(f" x = x + {i}\n" for i in range(5000)) + " return x", [(np.ones(2),)]),
}


@pytest.mark.parametrize("text, calls", LARGE.values(), ids=LARGE)
def test_large_functions(text, calls):
    same(made(text), *calls)


WRITTEN = {
    "cells that are arguments": ("def f(a, b=2, *c, d=4, **e):\n def g():\n  nonlocal a, b\n  a += 1; b += 1\n  return a, b, c, d, e\n g()\n return g(), a, b", [(1,), (2.5, 3), (1, 2, 3)]),
    "equal constants": ("def f(x): return x + 1, x + 1.0, x + True, (1, 1.0, True), 0.0, -0.0, x * -0.0", [(1,), (0.0,), (-1,)]),
    "nan": ("nan = float('nan')\ndef f(x): return x == nan, nan is nan, [nan] == [nan], x + nan, nan in [nan], {nan: 1}.get(nan)", [(1,), (math.nan,)]),
    "a global that is deleted": ("def f(x):\n global Q\n Q = x\n del Q\n try: return Q\n except NameError: return 'gone'", [(1,)]),
    "a local that is deleted": ("def f(x):\n y = x\n del y\n try: return y\n except UnboundLocalError as e: return str(e)", [(1,)]),
    "a cell that is deleted": ("def f(x):\n def g(): return x\n del x\n try: return g()\n except NameError as e: return str(e)", [(1,)]),
    "stars": ("def f(*a, **k):\n b, *c, d = a\n return b, c, d, {**k, 'z': 1}, [*a, *c]", [(1, 2, 3), (1, 2), (1,)]),
    "walrus": ("def f(x): return [y for i in range(3) if (y := i * x)], y", [(1,), (0,)]),
    "match": ("def f(x):\n match x:\n  case [a, *b]: return a, b\n  case {'k': v, **r}: return v, r\n  case int(q) | float(q): return q\n  case _: return None", [([1, 2],), ({"k": 1, "j": 2},), (3,), ("s",)]),
    "assert": ("def f(x):\n assert x, f'm{x}'\n return x", [(1,), (0,)]),
    "exception groups": ("def f(x):\n try: raise ExceptionGroup('a', [ValueError(1), KeyError(2)])\n except* ValueError: x += 1\n except* KeyError: x += 2\n return x", [(1,)]),
    "positional only": ("def f(a, /, b, *, c=1): return a, b, c", [(1, 2), (1,), (1, 2, 3)]),
}


@pytest.mark.parametrize("text, calls", WRITTEN.values(), ids=WRITTEN)
def test_corners_of_the_language(text, calls):
    same(made(text), *calls)


def identity(x): return x
def length(x): return len(x)


ODD_CODE = {
    "no constants": identity.__code__.replace(co_consts=()),
    "not optimised": identity.__code__.replace(co_flags=identity.__code__.co_flags & ~inspect.CO_OPTIMIZED),
    "no name": identity.__code__.replace(co_name="", co_qualname="", co_filename=""),
    "line 0": identity.__code__.replace(co_firstlineno=0),
    "no lines": identity.__code__.replace(co_linetable=b""),
    "a large stack": identity.__code__.replace(co_stacksize=5000),
}


@pytest.mark.parametrize("code", ODD_CODE.values(), ids=ODD_CODE)
def test_code_objects_made_by_hand(code):
    same(types.FunctionType(code, {}), (1,), ("a",))


@pytest.mark.parametrize("text, mode", [("x = 1", "exec"), ("1 + 2", "eval"), ("a = 1\nb = a + 1", "exec")])
def test_code_of_modules_and_expressions(text, mode):
    same(types.FunctionType(compile(text, "<text>", mode), {}), ())


@pytest.mark.parametrize("builtins", [{}, {"len": lambda x: 77}], ids=["none", "own"])
def test_other_builtins(builtins):
    same(types.FunctionType(length.__code__, {"__builtins__": builtins}), ([1],))


CONSTANTS = [-0.0, 0.0, math.nan, 1e308, 2**200, True, -0j, [1, 2], {"a": 1}, object, frozenset([1]), slice(1), len, np.ones(2), (1, [2])]


@pytest.mark.parametrize("constant", CONSTANTS, ids=repr)
def test_any_object_as_a_constant(constant):
    def gives(x): return "placeholder"
    code = gives.__code__.replace(co_consts=tuple(constant if c == "placeholder" else c for c in gives.__code__.co_consts))
    gate = framegate.compile(types.FunctionType(code, {}))
    for _ in range(3):
        got = gate(1)
        assert got is constant or (type(got) is float and repr(got) == repr(constant))


def test_code_that_is_replaced_while_it_runs():
    f = made("def f(x):\n y = x + 1\n swap()\n return y * 2", swap=lambda: setattr(f, "__code__", (lambda x: -1).__code__))
    own, gate = f.__code__, framegate.compile(f)
    for _ in range(4):
        f.__code__ = own
        assert (gate(1), gate(1)) == (4, -1)


# --- gates in place of functions -------------------------------------------------------------------------------------------------------


def base(x, y=2, *, z=3):
    "doc"
    return x + y + z


@framegate.compile
def found_by_name(x):
    return x + 1


def test_gates_are_copied_pickled_wrapped_and_inspected_like_functions():
    gate = framegate.compile(base)
    assert copy.copy(gate) is gate and copy.deepcopy([gate])[0] is gate
    assert pickle.loads(pickle.dumps(found_by_name)) is found_by_name and pickle.loads(pickle.dumps(gate))(1) == 6
    assert inspect.signature(gate) == inspect.signature(base) and inspect.getdoc(gate) == "doc" and inspect.unwrap(gate) is base
    wrapped = functools.wraps(gate)(lambda *a: gate(*a))
    assert wrapped.__wrapped__ is gate and wrapped(1) == 6 and inspect.signature(wrapped) == inspect.signature(base)
    assert functools.partial(gate, 1)(y=5) == 9 and functools.reduce(framegate.compile(lambda a, b: a + b), [1, 2, 3]) == 6
    assert sorted([2, 1], key=functools.cmp_to_key(framegate.compile(lambda a, b: a - b))) == [1, 2]


dropped: list = []


class Made:
    @framegate.compile
    def __new__(cls, *a): return object.__new__(cls)
    @framegate.compile
    def __init__(self, v): self.v = v
    @framegate.compile
    def __init_subclass__(cls, **k): cls.options = k
    @framegate.compile
    def __class_getitem__(cls, k): return cls.__name__, k
    @framegate.compile
    def __set_name__(self, owner, name): self.name = name
    @framegate.compile
    def __get__(self, instance, owner=None): return self.v
    @framegate.compile
    def __call__(self, x): return x + self.v
    @framegate.compile
    def __getitem__(self, k): return k
    @framegate.compile
    def __enter__(self): return self
    @framegate.compile
    def __exit__(self, *a): return True
    @framegate.compile
    def __iter__(self): return iter([self.v])
    @framegate.compile
    def __eq__(self, o): return self.v == o.v
    @framegate.compile
    def __hash__(self): return hash(self.v)
    @framegate.compile
    def __len__(self): return self.v
    @framegate.compile
    def __bool__(self): return self.v > 0
    @framegate.compile
    def __lt__(self, o): return self.v < o.v
    @framegate.compile
    def __del__(self): dropped.append(self.v)
    @framegate.compile
    def __getattr__(self, n):
        if n.startswith("__"): raise AttributeError(n)
        return n
    @framegate.compile
    def method(self, x): return self.v + x
    partial = functools.partialmethod(framegate.compile(lambda self, x, y: (x, y)), 1)
    @classmethod
    @framegate.compile
    def of_class(cls, x): return cls.__name__, x
    @framegate.compile
    @classmethod
    def of_class_too(cls, x): return cls.__name__, x
    @staticmethod
    @framegate.compile
    def static(x): return x
    @property
    @framegate.compile
    def twice(self): return self.v * 2
    @functools.cached_property
    @framegate.compile
    def cached(self): return self.v * 3
    @functools.lru_cache  # noqa: B019
    @framegate.compile
    def remembered(self, x): return x * 2
    @functools.singledispatchmethod
    def kind(self, x): return "any"
    @kind.register
    @framegate.compile
    def _(self, x: int): return "int"


class Derived(Made, flag=1):
    pass


@pytest.mark.parametrize("turn", range(3))
def test_gates_in_every_place_of_a_class(turn):
    m = Made(3)
    assert Derived.options == {"flag": 1} and Derived[3] == ("Derived", 3) and type(Made.__new__(Derived)) is Derived
    assert m(1) == 4 and m[7] == 7 and list(m) == [3] and m == Made(3) and hash(m) == hash(3) and len(m) == 3 and bool(m) and m.missing == "missing"
    assert Made(1) < Made(2) and sorted([Made(2), Made(1)])[0].v == 1
    with m as entered:
        raise ValueError("left by __exit__")
    assert entered is m and m.method(1) == 4 and m.partial(2) == (1, 2)
    assert m.of_class(1) == Made.of_class(1) == Made.of_class_too(1) == ("Made", 1) and m.static(5) == 5
    assert m.twice == 6 and m.cached == 9 and m.remembered(4) == 8 and m.kind(1) == "int" and m.kind("a") == "any"

    class Holder:
        x = Made(9)

    assert Holder.x == Holder().x == 9 and Holder.__dict__["x"].name == "x"
    before = len(dropped)
    Made(50 + turn)
    gc.collect()
    assert 50 + turn in dropped[before:]
    Made.remembered.cache_clear()


# --- tracing and profiling -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("setter", [sys.settrace, sys.setprofile], ids=["settrace", "setprofile"])
def test_tools_see_the_events_of_plain_python(setter):
    events = []

    def tool(frame, event, arg):
        if frame.f_code.co_filename == "<seen>":
            events.append((event, frame.f_code.co_name, frame.f_lineno))
        return tool

    space = {"setter": setter, "tool": tool}
    exec(compile("def h(x): return x + 1\ndef f(x, inside):\n y = h(x)\n if inside: setter(tool)\n y = h(y)\n z = [h(i) for i in range(2)]\n"
                 " if inside: setter(None)\n return y, z\n", "<seen>", "exec"), space)
    seen = []
    before = sys.gettrace(), sys.getprofile()
    try:
        for fn in (space["f"], framegate.compile(space["f"])):
            made_here = []
            for inside, outside in [(False, 0), (True, 0), (True, 0), (False, 0), (True, 0), (False, 1), (False, 1), (False, 0)]:
                events.clear()
                if outside: setter(tool)
                result = fn(1, inside)
                setter(None)
                made_here.append((result, list(events)))
            seen.append(made_here)
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])
    assert seen[0] == seen[1] and any(events for _, events in seen[0])
