"""Iterators over lists and tuples that were there before the trace: after a break in a loop, or as arguments; they go on where plain Python would be."""

import itertools
import sys

import numpy as np
from support_engine import Cases, check_case, check_same, framegate, needs_engine, observe

X = np.arange(3.0)
case = Cases()


def brk(i=None):
    """Something that is not traced."""
    globals()["nothing"] = i


@case((X, [1, 2, 3]), (X, (4, 5)), (X, []), (X, [1.5, "a", None]))
def break_in_the_loop(x, items):
    log = []
    for i in items:
        brk(i)
        log.append(i)
        x = x + 1
    return x, log
@case((X, 4), (X, 0), (X, 1))
def break_in_some(x, n):
    for i in (0, 1, 2, 3):
        if i == n: brk()
        x = x * 2 + i
    return x, i
@case((X, [[1, 2], [], [3]]), (X, [(1,), (2,)]))
def nested(x, rows):
    out = []
    for row in rows:
        for v in row:
            if v == 1: brk()
            out.append((x * v).sum())
        brk()
    return out
@case((X, [1, 2, 3, 4]),)
def the_list_grows(x, items):
    for i in items:
        brk()
        if i < 3: items.append(i + 10)
        x = x + i
    return x, items
@case((X, [1, 2, 3, 4]), (X, [1]))
def the_list_shrinks(x, items):
    for i in items:
        brk()
        if len(items) > 1: items.pop()
        x = x + i
    return x, items
@case((X, [3, 4, 5]), (X, (1,)))
def continues_and_leaves(x, items):
    for i in items:
        if i == 4: brk(); continue
        if i == 5: break
        brk()
        x = x + i
    else: return "all", x
    return "left", x
@case((X, [1, 2, 3, 4, 5]),)
def shared_iterator(x, items):
    it = iter(items)
    brk()
    out = [next(it, None)]
    for i in it:
        out.append((i, next(it, "none")))
    brk()
    return x + 1, out, list(it), next(it, "end")


@case.parametrize()
def test_language(case): check_case(case)


def arguments(x, it, other=None):
    total = x * 1
    for v in it:
        total = total + v
        if v == 2: break
    return total, next(it, "end"), other and next(other, "other end")


def test_iterators_as_arguments():
    g = framegate.compile(arguments) if framegate else arguments
    for make in (lambda: iter([1, 2, 3]), lambda: iter((1, 2, 3)), lambda: iter([]), lambda: iter([1]), lambda: iter([2]), lambda: reversed([1, 2]), lambda: iter({1: 2})) * 2:
        a, b = make(), make()
        check_same(observe(arguments, (X, a)), observe(g, (X, b)), "one")
        assert list(a) == list(b)
        a, b = make(), make()
        check_same(observe(arguments, (X, a, a)), observe(g, (X, b, b)), "the same twice")
        c, d = make(), make()
        a, b = make(), make()
        check_same(observe(arguments, (X, a, c)), observe(g, (X, b, d)), "two")
        assert list(a) == list(b) and list(c) == list(d)


def test_the_list_behind_it_is_an_argument_too():
    def f(x, it, items):
        items.append(7)
        out = [next(it, None)]
        for v in it: out.append(v)
        return out, x + 1
    g = framegate.compile(f) if framegate else f
    for _ in range(3):
        for shared in (True, False):
            a, b = [1, 2], [1, 2]
            assert f(X, iter(a), a if shared else [])[0] == g(X, iter(b), b if shared else [])[0] and a == b
    e, items = iter([]), [1]
    list(e)
    for _ in range(2): assert g(X, e, items)[0] == [None]


@needs_engine
def test_one_version_serves_all_rounds():
    def f(x, items):
        for i in items:
            brk()
            x = x + i
        return x
    g = framegate.compile(f)
    before = framegate.counters()["compiles"] if callable(getattr(framegate, "counters", None)) else None
    for n in (3, 9, 30): assert np.array_equal(g(X, list(range(n))), f(X, list(range(n))))
    if before is not None: assert framegate.counters()["compiles"] - before < 9


def counting(x, it):
    first = next(it)
    out = [first + 1, next(it, None)]
    for a, b in zip(it, "ab"):
        out.append((a, b))
    for v in it:
        if len(out) > 4: break
        out.append(v * 2)
    return out, x + first, type(first)


def test_counts_that_were_there_before():
    g = framegate.compile(counting) if framegate else counting
    makes = [lambda n=n: itertools.count(n) for n in (0, 5, -3, 2**62, sys.maxsize - 9, sys.maxsize - 3, sys.maxsize, sys.maxsize + 5)]
    makes += [lambda: itertools.count(0.5), lambda: itertools.count(1, 2), lambda: itertools.count(True), lambda: itertools.count(step=-1), lambda: iter(range(100)), lambda: iter([1] * 50)]
    for make in makes * 2:
        a, b = make(), make()
        for _ in range(3):
            check_same(observe(counting, (X, a)), observe(g, (X, b)), "one")
            assert next(a) == next(b)
    one, other = itertools.count(), itertools.count()
    for f, it in ((counting, one), (g, other)):
        f(X, it)
    assert next(one) == next(other)


@needs_engine
def test_a_count_is_one_version_wherever_it_stands():
    def f(x, it):
        return x + next(it)
    g, it = framegate.compile(f), itertools.count()
    for i in range(50): assert np.array_equal(g(X, it), X + i)
    assert len(framegate.cache_entries(g)) == 1 and framegate.explain(f)(X, it).graph_break_count == 0


@needs_engine
def test_a_loop_over_an_iterator_is_part_of_the_trace():
    def f(x, it):
        for v in it: x = x + v
        return x
    for make in (lambda: iter([1, 2]), lambda: iter((1, 2)), lambda: iter(range(2)), lambda: reversed([1, 2])):
        assert framegate.explain(f)(X, make()).graph_break_count == 0
    made = framegate.explain(f)(X, map(abs, [1, 2]))
    assert {reason.gb_type for reason in made.break_reasons} == {"existing iterator"} and "map" in made.break_reasons[0].context
