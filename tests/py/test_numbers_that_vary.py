"""Numbers that are another one at each call: one entry for each outcome that they decide, not for each number; and always the plain answer."""

import itertools
import random

import framegate
import numpy as np
import pytest
from support_engine import entries


class State:
    __slots__ = ("slot", "__dict__")
    of_class = 0

    def __init__(self):
        self.n = self.slot = 0
        self.d, self.l, self.f, self.log = {"n": 0}, [0, 5], 0.0, []


COUNT = 0


def of_a_global(s, k):
    global COUNT
    COUNT += k
    return "late" if COUNT > 3 else "early"


def of_an_attribute(s, k):
    s.n += k
    if s.n > 3:
        return s.n
    return -1


def of_a_slot(s, k):
    s.slot += k
    return s.slot % 7 == 3


def of_an_item(s, k):
    s.d["n"] += k
    if s.d["n"] >= 5 and s.d["n"] < 9:
        return s.d["n"]
    return None


def of_a_list(s, k):
    s.l[0] -= k
    return [1, 2, 3][s.l[0] % 3]


def of_a_class(s, k):
    State.of_class += k
    return "odd" if State.of_class % 2 else "even"


def now_and_then(s, k):
    s.n += 1
    if s.n % 5 == 0:
        s.log.append(s.n)
    return s.n


def a_float(s, k):
    s.f += 0.5 * k
    if s.f > 2.5:
        return s.f
    return "low" if s.f < 1 else "mid"


def up_and_down(s, k):
    s.n = s.n + k if s.n < 4 else 0
    return s.n


def the_number_is_true(s, k):
    s.n += k
    if s.n - 3:
        return "other"
    return "three"


def two_that_vary(s, k):
    s.n += 1
    s.slot += 2
    return s.n + 4 < s.slot


def after_a_break(s, k):
    s.n += k
    framegate.graph_break()
    s.slot = s.n * 2
    return s.slot > 9


def under_a_handler(s, k):
    s.n += k
    try:
        if 12 // (s.n - 3) > 2:
            return "more"
        return "less"
    except ZeroDivisionError:
        return "none"


def key_of_a_dict(s, k):
    s.n += k
    return {0: "a", 1: "b"}[s.n // 2 % 2]


def in_a_helper(s, k):
    def late(n):
        return n > 6
    s.n += k
    return late(s.n) and not late(s.n - 4)


def with_arrays(s, k):
    s.n += k
    x = np.arange(4.0)
    return (x * 2 if s.n > 4 else x + 1).tolist()


def counted(s, k):
    global COUNT
    COUNT += 1
    s.n = COUNT
    return -COUNT < -4


USES = [of_a_global, of_an_attribute, of_a_slot, of_an_item, of_a_list, of_a_class, now_and_then, a_float, up_and_down, the_number_is_true,
        two_that_vary, after_a_break, under_a_handler, key_of_a_dict, in_a_helper, with_arrays, counted]


def run(fn, n=30):
    global COUNT
    COUNT = State.of_class = 0
    state, made = State(), []
    for _ in range(n):
        made.append((fn(state, 1), state.n, state.slot, state.d["n"], state.l[0], state.f, list(state.log), COUNT, State.of_class))
    return made


@pytest.mark.parametrize("backend", ["eager", "callable"])
@pytest.mark.parametrize("use", USES)
def test_an_entry_for_each_outcome(use, backend):
    compiled = framegate.compile(use, **({} if backend == "eager" else {"backend": lambda graph, examples: graph}))
    assert run(use) == run(compiled)
    assert entries(compiled) <= 8
    before = framegate.stats()["compiles"]
    assert run(use) == run(compiled)
    assert framegate.stats()["compiles"] - before <= 2


def test_without_dynamic_each_number_is_a_fact():
    compiled = framegate.compile(of_an_attribute, dynamic=False)
    assert run(of_an_attribute) == run(compiled) and entries(compiled) > 8


def add_less(a, b): return a + b < 10
def sub_equal(a, b): return a - b == 1
def times_more(a, b): return a * b > 6
def floor_equal(a, b): return a // b == 2
def rest_equal(a, b): return a % b == 1
def negative(a, b): return -a > b
def mixed(a, b): return a * 2 - b * 3 >= 4.5
def chained(a, b): return a < b + 1 < 7
def truth(a, b): return "yes" if a - b else "no"
def indexed(a, b): return "abcdefg"[(a + b) % 7]
def unequal(a, b): return a + 0 != b
def nested(a, b): return (a + b) * (a - b) == a * a - b * b
def compared_twice(a, b): return (a + b > 3) == (a - b > 3)


NUMBERS = [0, 1, 2, 3, -1, -7, 10, True, False, 0.0, -0.0, 1.5, -2.5, float("inf"), float("-inf"), float("nan"), 2**31, 2**53, 2**53 + 1.0, 2**53 + 1,
           2**62, 2**63 - 1, -(2**63), 2**63, 2**64, -(2**70), 1e300]


def outcome(fn, *args):
    try:
        answer = fn(*args)
    except Exception as e:
        return type(e), str(e)
    return type(answer), repr(answer)


@pytest.mark.parametrize("fn", [add_less, sub_equal, times_more, floor_equal, rest_equal, negative, mixed, chained, truth, indexed, unequal, nested,
                                compared_twice])
def test_whatever_the_numbers_are(fn):
    pairs = list(itertools.product(NUMBERS, NUMBERS))
    for seed in range(6):
        compiled = framegate.compile(fn, recompile_limit=60)
        order = pairs[:]
        random.Random(seed).shuffle(order)
        for a, b in order[:300]:
            assert outcome(compiled, a, b) == outcome(fn, a, b), (a, b)


def test_a_loop_over_what_varies_ends_where_it_ends():
    def down(n):
        k = 0
        while n > 0:
            n -= 3
            k += 1
        return k, n
    compiled = framegate.compile(down)
    for n in list(range(40)) * 2:
        assert compiled(n) == down(n)


def test_recursion_over_what_varies():
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)
    compiled = framegate.compile(fib)
    for n in (1, 2, 3, 4, 5, 1, 6, 3, 0):
        assert compiled(n) == fib(n)


def test_the_guard_is_said_in_words():
    compiled = framegate.compile(of_an_attribute)
    run(compiled)
    assert any("(s.n + k) > 3" in str(entry.guards) for entry in framegate.cache_entries(compiled))
