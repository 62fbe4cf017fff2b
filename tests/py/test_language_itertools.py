"""itertools and functools.reduce in compiled functions: elements come one at a time and in order, as many as are asked for and no more."""

from __future__ import annotations

import functools
import itertools
import operator

import numpy as np
import pytest
from support_engine import Cases, cap, check_case, check_twins, entries, needs_engine

cases = Cases()
A, B = np.arange(3.0), np.arange(3.0) + 5


@cases((A, 2), (B, 3))
def slices(x, n):
    it = iter([x, x + 1, x + 2, x + 3, x * 2])
    return (list(itertools.islice(it, 1)), list(itertools.islice(it, 1, n)), list(it), list(itertools.islice(range(20), 2, 15, 4)),
            list(itertools.islice(range(3), 5, 2)), list(itertools.islice(itertools.count(n), 3)), next(itertools.islice([x], 4, None), None))


@cases((A,), (B,))
def chains(x):
    it = itertools.chain([x, x + 1], (x * 2,), (x - i for i in range(2)), {"a": x}, "bc")
    return list(it), next(it, 7), list(itertools.chain.from_iterable([[x], (x + 1, 2), []])), list(itertools.chain()), [*itertools.chain([1], [2])]


@cases((A,), (B,))
def accumulates(x):
    return (list(itertools.accumulate([x, x + 1, x + 2])), list(itertools.accumulate([x, x], operator.mul)), list(itertools.accumulate([], initial=x)),
            list(itertools.accumulate([1, 2, 3], lambda a, b: a * 10 + b, initial=4)), list(itertools.accumulate([[1], [2]])), list(itertools.accumulate([])))


@cases((A, 2), (B, 3))
def numbers(x, n):
    out = []
    for i, step in zip(itertools.count(n), itertools.count(step=2)):
        out.append(x * i + step)
        if i > n + 2:
            break
    for i in itertools.count(0.5, 0.25):
        out.append(i)
        if len(out) > 8:
            return out, list(itertools.repeat(x, 2)), list(itertools.repeat(n, times=0)), list(zip([1, 2], itertools.repeat(x)))


@cases((A,), (B,))
def choices(x):
    ys = [x, x + 1, x + 2]
    return (list(itertools.product(ys, [1, 2])), list(itertools.product("ab", repeat=2)), list(itertools.product()), list(itertools.product([], ys)),
            list(itertools.combinations(ys, 2)), list(itertools.permutations([1, 2, 3])), list(itertools.permutations([1, 2, 3], 2)),
            list(itertools.combinations_with_replacement([1, 2], 2)), list(itertools.combinations([1], 2)))


@cases((A,), (B,))
def pairs(x):
    ys = [x, x * 2, x * 3]
    return ([b - a for a, b in itertools.pairwise(ys)], list(itertools.pairwise([1])), list(itertools.zip_longest(ys, [1])),
            list(itertools.zip_longest([1], ys, fillvalue=x)), list(itertools.zip_longest()), list(itertools.starmap(operator.sub, [(x, 1), [x, x]])),
            list(itertools.starmap(lambda *a: sum(a), [range(3), (1,)])))


@cases((A, 3), (B, 2))
def selects(x, n):
    ys = [1, 5, 2, 6]
    return (list(itertools.takewhile(lambda v: v < n + 1, ys)), list(itertools.dropwhile(lambda v: v < n, ys)), list(itertools.filterfalse(None, [0, 1, "", n])),
            list(itertools.filterfalse(lambda v: v > n, ys)), list(itertools.compress([x, x + 1, x + 2], [1, 0, n, 4])), list(itertools.filterfalse(bool, [0, 3])))


@cases((A,), (B,))
def cycles(x):
    turn = itertools.cycle([x, x + 1, 3])
    return [next(turn) for _ in range(7)], next(itertools.cycle([]), None), list(zip("abcde", itertools.cycle((1, 2))))


@cases((A,), (B,))
def reduces(x):
    return (functools.reduce(operator.add, [x, x + 1, x + 2]), functools.reduce(lambda a, b: a * b, (v for v in (1, 2, 3)), x), functools.reduce(max, [3, 9, 2]),
            functools.reduce(operator.add, [], x), functools.reduce(lambda d, k: d[k], ["a", "b"], {"a": {"b": x}}))


@cases((A,), (B,))
def reduce_of_nothing(x):
    try:
        return functools.reduce(operator.add, [])
    except TypeError as error:
        return str(error), x + 1


@cases(([1, 2, 3], []), ([], []), ([4], []))
def turn_by_turn(values, log):
    def source(name):
        for v in values:
            log.append((name, v))
            yield v

    def seen(v):
        log.append(("seen", v))
        return v % 2 == 1

    for v in itertools.chain(source("a"), itertools.takewhile(seen, source("b")), itertools.islice(source("c"), 2)):
        log.append(("loop", v))
    for pair in itertools.zip_longest(source("d"), itertools.filterfalse(seen, source("e"))):
        log.append(pair)
    for v in itertools.accumulate(source("f"), lambda a, b: log.append((a, b)) or a + b):
        log.append(("sum", v))
    for pair in itertools.pairwise(source("g")):
        log.append(pair)
    it = itertools.islice(source("h"), 1, None)
    log.append("made")
    next(it, None)
    list(itertools.compress(source("i"), source("j")))
    list(itertools.product(source("k"), source("l")))
    functools.reduce(lambda a, b: log.append((a, b)), source("m"), 0)
    return log


@cases(([1, 2, 0, 4], []), ([1, 2], []))
def an_exception_on_the_way(values, log):
    def source():
        return map(lambda v: log.append(v) or 12 // v, values)

    for make in (lambda: itertools.chain(source(), [8]), lambda: itertools.islice(source(), 9), lambda: itertools.pairwise(source()),
                 lambda: itertools.zip_longest([1, 2, 3, 4, 5], source()), lambda: itertools.accumulate(source()), lambda: itertools.cycle(source())):
        it = make()
        try:
            for v in itertools.islice(it, 6):
                log.append(("got", v))
        except ZeroDivisionError:
            log.append("error")
        log.append(next(it, "end"))
    return log


@cases((A, 1), (B, 2))
def over_a_break(x, n):
    out = []
    for i in itertools.islice(itertools.count(n), 1, 4):
        out.append(x * i)
        print(i)
    for v in itertools.repeat(x, 2):
        print(v.sum() > 3)
        out.append(v + 1)
    it = itertools.chain([1, 2], [3])
    print(next(it))
    return out, list(it)


@cases((A, 1), (B, 2))
def given_away(x, n):
    it = itertools.count(n)
    next(it)
    part = itertools.islice([x, x + 1, x + 2], 1, None)
    return str(it), next(it), list(part), type(part).__name__, isinstance(it, itertools.count)


@cases.parametrize()
def test_as_plain_python(case):
    check_case(case)


@needs_engine
@pytest.mark.parametrize("case", [c for c in cases if c.fn not in (over_a_break, given_away, reduce_of_nothing, an_exception_on_the_way)], ids=repr)
def test_captured_whole(case):
    import copy

    import framegate

    assert framegate.explain(case.fn)(*copy.deepcopy(case.inputs[0])).break_reasons == []
    gate = framegate.compile(case.fn)
    for _ in range(2):
        gate(*copy.deepcopy(case.inputs[0]))
    assert entries(gate) == 1 and framegate.cache_entries(gate)[0].hits > 0


@needs_engine
def test_one_that_is_still_there_in_a_handler_breaks_the_graph_and_hits():
    """A map that a handler of the function may go on with has no form at run time before it is made there."""
    import framegate

    gate = framegate.compile(an_exception_on_the_way)
    made = []
    for _ in range(4):
        gate([1, 2, 0, 4], [])
        made.append(framegate.stats()["compiles"])
    assert made[-1] == made[-2], "compiled at each call"


def test_iterators_that_leave_the_function():
    def make():
        kept = []

        def fn(x, n):
            kept.append(itertools.islice(iter([x, x + 1, x + 2, x + 3]), n))
            kept.append(itertools.repeat(x, n))
            kept.append(itertools.count(n, 2))
            next(kept[-1])
            return next(kept[-3]), itertools.chain([x], [n])

        def state():
            return [list(itertools.islice(it, 3)) for it in kept]

        return (lambda x, n: fn(x, n)[0]), state

    check_twins(make, [(A, 1), (A, 2), (B, 2), (B, 3)])


def test_never_ending_ones_end_the_trace_not_the_program():
    def fn(x):
        return x + 1, next(v for v in itertools.count() if v > 3), next(itertools.dropwhile(lambda v: v < 40, itertools.count()))

    compiled = cap(fn)
    assert compiled(1) == fn(1) and compiled(2) == fn(2)

    def far(x):
        for v in itertools.filterfalse(lambda v: v < 3_000_000, itertools.count()):
            return v + x

    compiled = cap(far)
    assert compiled(1) == far(1)


@needs_engine
def test_numbers_that_decide_how_many_are_guarded():
    def fn(x, n, ys):
        return [y + x for y in itertools.islice(ys, n)]

    compiled = cap(fn)
    ys = [1, 2, 3, 4]
    for n in (1, 3, 1, 4, 3):
        assert compiled(n * 10, n, ys) == fn(n * 10, n, ys)
    assert entries(compiled) == 3
    ys.insert(0, 9)
    assert compiled(1, 3, ys) == [10, 2, 3]
