"""Compiling, hits and reset leave no reference behind: no living object has more or fewer afterwards, and on an interpreter that counts them the total is the same.

Only a debug build of CPython has sys.gettotalrefcount: `PYTHON=python3.11-dbg ./dev test tests/py/test_refcounts.py`. It sees what code that was compiled for it
counts; NumPy's wheels are not, so nothing here computes with arrays.
"""

from __future__ import annotations

import gc
import sys

import pytest
from test_hostile import run_child

framegate = pytest.importorskip("framegate")

counts_references = pytest.mark.skipif(not hasattr(sys, "gettotalrefcount"), reason="this CPython counts no references")

HITS = 1000
SCALE = 3
TABLE = {"lr": 0.5, "name": "abc", "deep": {"k": [1, 2, (3, 4)]}}


class Base:
    shared = 2

    def __init__(self, v):
        self.v, self.items = v, []

    def grow(self, x):
        return x * self.v + self.shared

    @property
    def half(self):
        return self.v / 2

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return len(name)


class Manager:
    def __enter__(self): return self
    def __exit__(self, *exc): return False


class Child(Base):
    def grow(self, x):
        return super().grow(x) + 1


class Slots:
    __slots__ = ("a", "b")

    def __init__(self):
        self.a, self.b = 1, 2.5


def numbers(x): return (x + 1) * SCALE + len(TABLE) - abs(x)
def reads(x): return x * TABLE["lr"], TABLE["deep"]["k"][2][1], TABLE["name"].upper()
def method(x, o=Child(2.0)): return o.grow(x) + o.half
def hooks(x, o=Child(2.0)): return x + o.missing
def slots(x, o=Slots()): return x * o.a + o.b
def writes(x, o=Base(1)): o.v = 1; o.items.append(x); o.items.clear(); return x
def containers(x): return [x, (x, {"a": x}), {1, 2}], {k: v for k, v in TABLE.items()}
def comprehension(x): return [a * 2 for a in (1, 2, 3)], sum(i for i in range(4)), x
def loops(x):
    for i in range(5):
        x = x + i
    return x
def closures(x):
    def inner(y, k=SCALE): return x + y * k
    return inner(x), (lambda: x)()
def text(x): return f"{x} {TABLE['lr']:.2f} {SCALE!r}", "a" * SCALE
def breaks(x):
    y = x + 1
    print(end="")
    return y * 2
def breaks_in_loop(x):
    for i in range(3):
        x = x + i
        print(end="")
    return x
def handlers(x):
    try:
        return x + {}["k"]
    except KeyError as e:
        return x, e.args
def raises(x): raise ValueError("each time", x)
def raises_deep(x): return raises(x)
def generator(x): return list(map(lambda v: v + 1, (x, x)))
def star(x, *args, k=1, **more): return x, args, k, more
def context(x):
    with Manager():
        return x / 1.0
def class_made(x):
    class Local(Base):
        pass
    return Local(1).v, x
def global_written(x):
    global SCALE
    SCALE = 3
    return x


FUNCTIONS = [numbers, reads, method, hooks, slots, writes, containers, comprehension, loops, closures, text, breaks, breaks_in_loop, handlers, raises,
             raises_deep, generator, star, context, class_made, global_written]


def own_backend(graph, inputs):
    return lambda *args: graph(*args)


def cycle(make, args):
    gate = make()
    for x in args:
        for _ in range(HITS // len(args)):
            try:
                gate(x)
            except ValueError:
                pass
    del gate
    framegate.reset()


def left_behind(make, args):
    """References that one more cycle leaves; what the first ones fill (caches of the interpreter and of ours) is not counted."""
    counts = [0] * 9
    for i in range(len(counts)):
        cycle(make, args)
        gc.collect()
        counts[i] = sys.gettotalrefcount()
    return [b - a for a, b in zip(counts[3:], counts[4:])]


@counts_references
@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["eager", "own"])
def test_no_reference_is_left(fn, backend):
    options = {} if backend == "eager" else {"backend": own_backend}
    deltas = left_behind(lambda: framegate.compile(fn, **options), (3, 2.5, True))
    assert sorted(deltas)[len(deltas) // 2] == 0 and abs(sum(deltas)) < 20, deltas


@counts_references
def test_fresh_functions_leave_nothing():
    def make():
        space = {"pi": 3.14}
        exec("def f(x, k=2):\n    y = x + k\n    print(end='')\n    return y * pi\n", space)
        return framegate.compile(space["f"])

    deltas = left_behind(make, (True, 1.5, 7))
    assert sorted(deltas)[len(deltas) // 2] == 0 and abs(sum(deltas)) < 20, deltas


def test_no_living_object_has_other_counts():
    """A leak, or a reference that is given back twice, goes on with each cycle; caches of the interpreter (names in its method cache) do not."""
    run_child("""
        import array, gc, sys
        import test_refcounts as cases
        import framegate
        cases.HITS = 60
        def living():
            found = {id(o): o for o in gc.get_objects()}
            for o in list(found.values()):
                found.update((id(r), r) for r in gc.get_referents(o))
            found.update((id(o), o) for o in (None, True, False, (), "", b"", 3, 2.5, *range(-5, 257)))
            return list(found.values())
        def counts(found):
            gc.collect()
            return array.array("q", [sys.getrefcount(o) for o in found])  # not in objects: they would be counted
        def run():
            for fn in cases.FUNCTIONS:
                for options in ({}, {"backend": cases.own_backend}):
                    for _ in range(3):
                        cases.cycle(lambda: framegate.compile(fn, **options), (3, 2.5, True))
        run()
        found = living()
        counts(found)
        one = counts(found)
        run()
        two = counts(found)
        run()
        three = counts(found)
        grown = [(two[k] - one[k], repr(o)[:80]) for k, o in enumerate(found)
                 if type(o) is not str and abs(two[k] - one[k]) >= 3 and two[k] - one[k] == three[k] - two[k]]
        assert not grown, grown
    """)
