"""Iterators of C that were there before a call: what a compiled function takes from them is what plain Python takes, and they stand afterwards where they would."""
from __future__ import annotations

import gc
import itertools
import weakref

import framegate
import numpy as np
import pytest

X = np.arange(3.0)


class Thing:
    pass


def drain(it): return [v for v in it]
def first(it): return next(it)
def two(it): return next(it, "end"), next(it, "end")
def first_default(it): return next(it, 17)
def looped(it):
    n = 0
    for v in it:
        n += 1
        if n == 2:
            return n, v
    return n, "end"
def pairs(it): return [(a, b) for a, b in it]
def rest_of_it(it): return next(it, None), list(it), tuple(it)
def summed(it): return sum(it)
def unpacked(it): a, *b = it; return a, b
def zipped_again(it): return list(zip(it, it))
def enumerated(it): return list(enumerate(it, 5))
def passed_on(it): return it, next(it, None), it
def broken(it): a = next(it, None); print(end=""); return a, next(it, None), list(it)
def in_an_array(it): return [X * n for n, *_ in it] if isinstance(it, (enumerate, zip)) else [X * v for v in it]
def in_a_dict(it): return dict.fromkeys(str(v) for v in it)


def advanced(it, by):
    for _ in range(by):
        next(it, None)
    return it


MAKERS = {
    "range": lambda: iter(range(4)), "range with steps": lambda: iter(range(9, -9, -5)), "empty range": lambda: iter(range(0)), "range of one": lambda: iter(range(7, 8)),
    "range under way": lambda: advanced(iter(range(5)), 2), "exhausted range": lambda: advanced(iter(range(2)), 9), "range at the end": lambda: iter(range(2**62, 2**62 + 2)),
    "long range": lambda: iter(range(2**70, 2**70 + 3)), "list": lambda: iter([1, 2, 3]), "tuple": lambda: iter((1, "b", None)), "exhausted list": lambda: advanced(iter([1]), 2),
    "list that is done": lambda: advanced(iter([1]), 1), "reversed": lambda: reversed([1, 2, 3]), "reversed under way": lambda: advanced(reversed([1, 2, 3]), 2), "exhausted reversed": lambda: advanced(reversed([1]), 3),
    "reversed range": lambda: reversed(range(4)), "enumerate": lambda: enumerate([7, 8, 9]), "enumerate from": lambda: enumerate(("a", "b"), 40), "enumerate under way": lambda: advanced(enumerate("ab" and ["a", "b", "c"]), 1),
    "enumerate of a range": lambda: enumerate(range(3, 6)), "enumerate of enumerate": lambda: enumerate(enumerate([4, 5])), "enumerate beyond": lambda: enumerate([1, 2], 2**70),
    "enumerate at the end": lambda: enumerate([1, 2, 3], 2**63 - 2), "enumerate of a generator": lambda: enumerate(v for v in (1, 2)), "zip": lambda: zip([1, 2, 3], ("a", "b", "c")), "uneven zip": lambda: zip([1], [2, 3]),
    "other uneven zip": lambda: zip([1, 2, 3], [4]), "zip of nothing": lambda: zip(), "zip of one": lambda: zip([3, 4]), "zip under way": lambda: advanced(zip([1, 2, 3], range(3)), 1), "strict zip": lambda: zip([1, 2], [3, 4], strict=True),
    "strict uneven zip": lambda: zip([1, 2], [3], strict=True), "strict the other way": lambda: zip([1], [3, 4], strict=True), "zip of enumerate": lambda: zip(enumerate([5, 6]), range(9)), "zip of a generator": lambda: zip((v for v in (1, 2)), [3, 4]),
    "map": lambda: map(abs, [-1, -2]), "filter": lambda: filter(None, [0, 1, 2]), "str": lambda: iter("abc"), "dict": lambda: iter({"a": 1, "b": 2}), "count": lambda: itertools.islice(itertools.count(3), 3), "chain": lambda: itertools.chain([1], (2,)),
}
FUNCTIONS = (drain, first, two, first_default, looped, pairs, rest_of_it, summed, unpacked, zipped_again, enumerated, passed_on, broken, in_an_array, in_a_dict)


def shown(value):
    if isinstance(value, np.ndarray):
        return "array", value.dtype.str, value.tolist()
    if type(value) in (list, tuple):
        return type(value).__name__, [shown(v) for v in value]
    return type(value).__name__, value if isinstance(value, (int, str, float, type(None), dict)) else "object"


def answer(fn, *args):
    try:
        return shown(fn(*args))
    except Exception as error:
        return type(error).__name__, str(error)


def outcome(fn, it):
    return answer(fn, it), answer(lambda: list(itertools.islice(it, 3))), answer(next, it, "end")


@pytest.mark.parametrize("name", MAKERS)
def test_taken_as_in_plain_python(name):
    for fn in FUNCTIONS:
        compiled = framegate.compile(fn)
        for _ in range(4):
            assert outcome(compiled, MAKERS[name]()) == outcome(fn, MAKERS[name]()), (name, fn.__name__)


def test_one_compiled_function_for_all_of_them():
    for fn in FUNCTIONS:
        compiled = framegate.compile(fn)
        for _ in range(2):
            for name, make in MAKERS.items():
                assert outcome(compiled, make()) == outcome(fn, make()), (name, fn.__name__)


@pytest.mark.parametrize("make", [lambda xs: iter(range(3)), lambda xs: enumerate(xs), lambda xs: zip(xs, xs), lambda xs: zip(xs, range(3)), lambda xs: enumerate(reversed(xs)), lambda xs: zip(xs, enumerate(xs, 3)), reversed])
def test_fresh_ones_make_one_version_and_no_break(make):
    def fn(it, x):
        out = []
        for v in it:
            out.append(x * (v[0] if isinstance(v, tuple) else v))
        return out

    compiled = framegate.compile(fn, fullgraph=True)
    for _ in range(5):
        for a, b in zip(compiled(make([1, 2, 3]), X), fn(make([1, 2, 3]), X), strict=True):
            assert (a == b).all()
    assert len(framegate.cache_entries(compiled)) == 1


def test_one_that_moves_on_from_call_to_call_makes_few_versions():
    for make in (lambda: iter(range(200)), lambda: enumerate([1, 2] * 100), lambda: enumerate(range(200), 3)):
        it, plain = make(), make()

        def fn(x):
            return x + 1, next(it)

        compiled = framegate.compile(fn)
        for _ in range(100):
            assert compiled(5) == (6, next(plain))
        assert len(framegate.cache_entries(compiled)) <= 3


def test_a_loop_that_breaks_over_one():
    def fn(it):
        out = []
        for v in it:
            print(end="")
            out.append(v)
        return out

    compiled = framegate.compile(fn)
    for make in (lambda: iter(range(30)), lambda: enumerate([1] * 30), lambda: zip([1] * 30, range(30)), lambda: zip(range(30), [2] * 31)):
        for _ in range(3):
            assert compiled(make()) == fn(make())


def test_the_same_one_twice():
    def fn(a, b):
        return next(a, None), next(b, None), next(a, None), list(b)

    compiled = framegate.compile(fn)
    for make in (lambda: iter(range(5)), lambda: enumerate([1, 2, 3, 4]), lambda: zip([1, 2, 3, 4], range(4)), lambda: reversed([1, 2, 3, 4])):
        for _ in range(3):
            one, other = make(), make()
            assert compiled(one, one) == fn(other, other)
            assert compiled(make(), make()) == fn(make(), make())


def test_one_inside_of_another_that_is_asked_too():
    def fn(inner, outer):
        return next(outer, None), next(inner, None), next(outer, None), list(inner), list(outer)

    compiled = framegate.compile(fn)
    for wrap in (enumerate, lambda it: zip(it, [7, 8, 9]), lambda it: zip(it, it), lambda it: zip([7, 8, 9], it), lambda it: enumerate(zip(it, it))):
        for make in (lambda: iter(range(7)), lambda: iter([1, 2, 3, 4, 5, 6, 7])):
            for _ in range(3):
                a, b = make(), make()
                assert compiled(a, wrap(a)) == fn(b, wrap(b))
                assert compiled(make(), wrap(make())) == fn(make(), wrap(make()))


def test_a_list_that_is_changed_under_it():
    def fn(xs, it):
        a = next(it, None)
        xs.append(9)
        return a, next(it, None), list(it)

    compiled = framegate.compile(fn)
    for wrap in (iter, enumerate, reversed, lambda xs: zip(xs, xs), lambda xs: zip(range(9), xs)):
        for n in (0, 1, 2, 1):
            one, other = list(range(n)), list(range(n))
            assert compiled(one, wrap(one)) == fn(other, wrap(other))
            assert one == other


def test_what_it_goes_over_ends_when_it_would():
    def fn(it):
        for _ in it:
            pass
        return None

    for wrap in (iter, enumerate, reversed, lambda xs: zip(xs, range(9))):
        for run in (fn, framegate.compile(fn)):
            for _ in range(3):
                thing = Thing()
                gone, it = weakref.ref(thing), wrap([thing])
                del thing
                run(it)
                gc.collect()
                left = gone() is not None
                if run is fn:
                    plain = left
                assert left == plain
                it = None
                gc.collect()
                assert gone() is None
