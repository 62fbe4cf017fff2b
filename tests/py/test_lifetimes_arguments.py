"""An argument that only the call keeps alive belongs to the variable of the function: it ends when the function lets go of it, or with the frame, in order."""
import gc
import itertools
import sys
import weakref
from typing import Any, Callable

import numpy as np
import pytest
from support_engine import cap

log: list = []


class S: pass


class D:
    def __init__(self, name: str = "d") -> None: self.name = name
    def __del__(self) -> None: log.append("end of " + self.name)


class Memory(bytearray):
    def __del__(self) -> None: log.append("end of memory")


def generator() -> Any:
    try:
        yield D("of generator")
    finally:
        log.append("closed")


def started() -> Any: g = generator(); next(g); return g
def gone(ref: Any) -> None: log.append("gone")


def watched(s): r = weakref.ref(s, gone); s = None; log.append("x"); return r() is None
def replaced(s): log.append("a"); s = None; log.append("b"); return 1
def replaced_by_itself(s): s = s; log.append("a"); s = [s]; log.append("b"); s = s[0].name; log.append("c"); return s
def beside_a_local(s): b = D("b"); log.append("a"); return 2
def by_the_other(s, t): print(end=""); s = t; log.append("m"); return len(log)
def by_keyword(s, *rest, k=None): r = weakref.ref(k) if k is not None else None; k = None; log.append(r is None or r() is None); return len(rest)
def deleted(s): log.append("p"); print(end=""); del s; log.append("q"); return 1
def in_a_list(s): t = [s]; s = 1; print(end=""); log.append("q"); t = None; log.append("z"); return 1
def with_default(s, d=3): r = weakref.ref(s, gone); del s; log.append(d); return r() is None
def given_back(s): return s
def unused(s, x): x = x + 1; log.append(x); return x
def raising(s): raise ValueError("v")
def raising_late(s): s = 1; log.append("r"); raise ValueError("v")
def a_list(xs): xs = len(xs); log.append(xs); return xs
def an_array(a, s): a = a + 1; s = None; log.append(float(a.sum())); return a


def in_a_cell(s):
    def inner(): return s
    print(end=""); s = None; log.append("in"); return inner()


def in_a_loop(s):
    for i in range(3):
        print(end="")
        s = i if i == 1 else s
        log.append(i)
    return s


def recursive(s, n):
    if n == 0: s = None; log.append("bottom"); return 0
    print(end="")
    return recursive(D(str(n)), n - 1) + 1


CALLS: list[tuple[Callable, Callable]] = [
    (watched, lambda f: f(S())), (watched, lambda f: f(s=S())), (watched, lambda f: list(map(f, [S(), S()]))),
    (replaced, lambda f: f(D())), (replaced, lambda f: f(*[D()])), (replaced, lambda f: f(**{"s": D()})), (replaced, lambda f: f(D(), 1, 2)), (replaced, lambda f: f()),
    (replaced_by_itself, lambda f: f(D())), (beside_a_local, lambda f: f(D())), (by_the_other, lambda f: f(D("1"), D("2"))),
    (by_keyword, lambda f: f(D("1"), D("2"), k=S())), (by_keyword, lambda f: f(D("1"), D("2"))), (deleted, lambda f: f(D())),
    (deleted, lambda f: [f(D(str(i))) for i in range(3)]), (in_a_list, lambda f: f(D())), (with_default, lambda f: f(S())), (with_default, lambda f: f(S(), d=4)),
    (given_back, lambda f: f(D()).name), (unused, lambda f: f(D(), 3)), (raising, lambda f: f(D())), (raising_late, lambda f: f(D())),
    (a_list, lambda f: f([D("1"), D("2")])), (a_list, lambda f: f((D("1"), [D("2")]))), (an_array, lambda f: f(np.ones(2), D())), (in_a_cell, lambda f: f(D())),
    (replaced, lambda f: f(generator())), (replaced, lambda f: f(started())), (deleted, lambda f: f(map(print, [D()]))), (replaced, lambda f: f({"k": D()})), (deleted, lambda f: f({1: [D()]})),
    (replaced, lambda f: f((lambda d: lambda: d)(D()))), (deleted, lambda f: f(np.frombuffer(Memory(b"12"), "u1"))), (replaced, lambda f: f(memoryview(Memory(b"12")))),
    (deleted, lambda f: f(itertools.chain([D()]))), (replaced, lambda f: f([[[[[[[[[[D()]]]]]]]]]])), (replaced, lambda f: f([[1]] * 3000 + [D()])),
    (in_a_loop, lambda f: f(D())), (recursive, lambda f: f(D("top"), 3))]


def seen(f: Callable, call: Callable) -> Any:
    log.clear()
    try:
        result = repr(call(f))
    except Exception as e:
        result = repr(e)
    log.append("returned")
    return result, list(log)


@pytest.mark.parametrize("f, call", CALLS, ids=[f"{f.__name__}-{i}" for i, (f, _) in enumerate(CALLS)])
def test_an_argument_of_this_call_alone_ends_with_its_variable(f: Callable, call: Callable, monkeypatch: Any) -> None:
    want, ours = seen(f, call), cap(f)
    if sys.version_info >= (3, 12) and f is replaced and call in (CALLS[4][1], CALLS[5][1]):
        pytest.skip("the interpreter takes a tuple or dict of arguments apart for plain functions only")
    monkeypatch.setitem(globals(), f.__name__, ours)  # one calls itself
    for _ in range(4):
        assert seen(ours, call) == want


class Own:
    def __del__(self) -> None: log.append("end of own")
    def method(self, x=1): print(end=""); self = None; log.append("m"); return x
    def whole(self, x=1): self = x; log.append("w"); return self


@pytest.mark.parametrize("name", ["method", "whole"])
def test_so_does_the_object_of_a_method(name: str, monkeypatch: Any) -> None:
    def call(_: Any) -> Any: return getattr(Own, name) and (Own().method(2) if name == "method" else Own().whole(2))
    want = seen(None, call)
    monkeypatch.setattr(Own, name, cap(getattr(Own, name)))
    for _ in range(3):
        assert seen(None, call) == want


def test_no_reference_is_lost_or_left() -> None:
    """Many calls: what was handed over is counted right, and None is as often there as before."""
    kept, functions = D("kept"), [cap(f) for f in (deleted, in_a_list, given_back, in_a_cell)]

    def calls() -> None:
        for f in functions:
            f(S())
            f(kept)
            f(s=S())
            f([S()])
    for _ in range(3):
        calls()
    gc.collect()
    before, nones, count = sys.getrefcount(kept), sys.getrefcount(None), len(gc.get_objects())
    for _ in range(2000):
        calls()
    log.clear()
    gc.collect()
    assert sys.getrefcount(kept) == before and abs(sys.getrefcount(None) - nones) < 200 and len(gc.get_objects()) - count < 200
