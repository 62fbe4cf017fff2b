"""What consumes an iterable takes one element, uses it, and takes the next: code of the user's in between sees and changes what it would in plain Python."""

from __future__ import annotations

import collections

import framegate
import pytest


class Steps:
    """Iterates in Python; each step is noted in the log, which may be the very list that consumes it."""

    def __init__(self, log, n, last=None):
        self.log, self.n, self.last = log, n, last

    def __iter__(self):
        for i in range(self.n):
            self.log.append(("step", i))
            yield i
        if self.last is not None:
            self.log.append("last")
            yield self.last
            self.log.append("after the last")


class Clears:
    def __init__(self, xs):
        self.xs = xs

    def __iter__(self):
        yield from list(self.xs)
        self.xs.clear()


class Lengths:
    def __init__(self, xs, n):
        self.xs, self.n = xs, n

    def __iter__(self):
        for _ in range(self.n):
            yield len(self.xs)


def tried(function):
    def f(log):
        try:
            return function(log)
        except (TypeError, ValueError, ZeroDivisionError) as error:
            log.append(str(error))
        return "raised"

    f.__name__ = function.__name__
    return f


def extend_itself(log):
    log.extend(Steps(log, 3))


def extend_clears(log):
    log.extend(Clears(log))
    return len(log)


def add_in_place_clears(log):
    log += Clears(log)
    return len(log)


def extend_lengths(log):
    log.extend(Lengths(log, 3))
    ys = [0]
    ys.extend(len(ys) for _ in range(3))
    return ys


def extend_stops(log):
    log.extend(6 // (2 - i) for i in Steps(log, 4))


def star_lengths(log):
    return [*log, *Lengths(log, 2), *(log.append(i) or len(log) for i in range(2))]


def sum_stops(log):
    return sum(Steps(log, 2, "no number"))


def sum_stops_in_a_generator(log):
    return sum(x if x < 2 else "s" for x in Steps(log, 5))


def sum_of_steps(log):
    return sum(Steps(log, 3), 10)


def unpack_too_many(log):
    a, b = Steps(log, 5)
    return a, b


def unpack_too_few(log):
    a, b, c = Steps(log, 2)
    return a, b, c


def unpack_exactly(log):
    a, b = Steps(log, 1, 5)
    return a, b


def unpack_star(log):
    a, *b = Steps(log, 4)
    return a, b


def unpack_in_a_loop(log):
    return [(a, b) for a, b in [Steps(log, 2), Steps(log, 3), Steps(log, 2)]]


def dict_of_pairs(log):
    return dict([Steps(log, 2), (7, 8)])


def dict_stops(log):
    return dict(Steps(log, 2, (1, 2)))


def set_stops(log):
    return set(Steps(log, 2, []))


def set_of_steps(log):
    return sorted(set(Steps(log, 3)))


def set_update(log):
    s = set()
    s.update(Lengths(s, 3))
    return s


def dict_update_lengths(log):
    d = dict.fromkeys(range(2))
    d.update((len(d) + 10, i) for i in range(3))
    return d


def deque_extend(log):
    d = collections.deque([1])
    d.extend(len(d) for _ in range(3))
    return list(d)


def slice_of_steps(log):
    log[0:0] = Steps(log, 2)


def smallest(log):
    return min(Steps(log, 3)), max(Steps(log, 3), key=lambda v: log.append(v) or -v)


def first_that_holds(log):
    return any(x == 1 for x in Steps(log, 4)), all(x < 1 for x in Steps(log, 4)), 1 in Steps(log, 4)


def joined(log):
    return ",".join(str(x) for x in Steps(log, 3)), tuple(Steps(log, 2)), list(zip(Steps(log, 3), Steps(log, 2)))


CASES = [
    extend_itself,
    extend_clears,
    add_in_place_clears,
    extend_lengths,
    extend_stops,
    star_lengths,
    sum_stops,
    sum_stops_in_a_generator,
    sum_of_steps,
    unpack_too_many,
    unpack_too_few,
    unpack_exactly,
    unpack_star,
    unpack_in_a_loop,
    dict_of_pairs,
    dict_stops,
    set_stops,
    set_of_steps,
    set_update,
    dict_update_lengths,
    deque_extend,
    slice_of_steps,
    smallest,
    first_that_holds,
    joined,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
@pytest.mark.parametrize("handled", [False, True], ids=["", "handled"])
def test_consumers(case, handled):
    def outcome(function, start):
        log = list(start)
        try:
            return function(log), log
        except Exception as error:
            return type(error), str(error), log

    plain = tried(case) if handled else case
    compiled = framegate.compile(plain)
    for start in ([], [1, 2, 3], [4], [1, 2, 3]):
        assert outcome(compiled, start) == outcome(plain, start)
