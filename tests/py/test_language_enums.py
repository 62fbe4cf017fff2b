"""Members of enumerations that are strings, or integers: compared by the builtin's rules with each other and with plain values; their classes may change."""

import enum

import numpy as np
from differential_compare import observe
from support_engine import Cases, check_case, check_twins, framegate, needs_engine

one_graph, others = Cases(), Cases()
X = np.arange(3.0)


class Action(str, enum.Enum):
    NONE, NOTIFY, RAISE = "none", "notify", "raise"


class Level(enum.IntEnum):
    LOW, HIGH = 1, 5


class Other(str, enum.Enum):
    NOTIFY = "notify"


class Text(enum.StrEnum):
    A = "none"


class Plain(enum.Enum):
    A, B = 1, 2


class Odd(str, enum.Enum):
    A = "a"
    B = "b"
    def __eq__(self, other): return len(self) == len(other)
    __hash__ = str.__hash__


@one_graph((X, Action.NONE), (X, Action.RAISE), (X, "raise"), (X, 1), (X, None), (X, Other.NOTIFY), (X, Text.A))
def equality(x, a):
    if a == Action.RAISE: return x * 3
    return x, a != Action.NOTIFY, a == Other.NOTIFY, "none" == a, a == None, a == 1  # noqa: E711
@one_graph((X, Action.NONE), (X, Action.RAISE), (X, "notify"), (X, "other"))
def membership(x, a): return x + 1, a in (Action.NOTIFY, Action.RAISE), a not in [Action.NONE, "x"], a in ("none", "raise")
@others((X, Level.LOW), (X, Level.HIGH), (X, 3), (X, 5.0))
def order(x, a): return x, a < Level.HIGH, a >= Level.LOW, a == 5, a != Level.LOW, 2 > a
@others((X, Action.NONE, Level.LOW), (X, Action.RAISE, Level.HIGH))
def by_name(x, a, b): return x + b.value if a == "none" else x, a.name, b == a, [a, b] == [Action.NONE, 1]
@one_graph((X, Plain.A), (X, Plain.B))
def plain(x, a): return x, a == Plain.A, a != Plain.B, a == 1, a in (Plain.A, Plain.B)
@others((X, Odd.A), (X, Odd.B), (X, "a"))
def own_equality(x, a): return x, a == Odd.A, a == Odd.B, a in (Odd.B,)
@others((X, Action.NONE), (X, None))
def no_order(x, a):
    try: return x, a < None
    except TypeError as e: return str(e)


class Sub(str):
    pass


@others((X, Sub("a")), (X, Sub("none")))
def other_subclasses(x, a): return x, a == "a", a == Action.NONE


@Cases([*one_graph, *others]).parametrize()
def test_language(case): check_case(case)


@needs_engine
@one_graph.parametrize()
def test_one_graph(case):
    f = framegate.compile(case.fn, fullgraph=True)
    for args in case.inputs * 2: assert observe(f, args).error is None


def test_a_class_grows_an_equality():
    def make():
        class E(str, enum.Enum):
            A = "a"
            B = "b"
        def g(x, k): return x, (E.A if k else E.B) == E.B
        return g, [E]
    def grow(e): e[0].__eq__ = lambda self, other: True
    check_twins(make, [(X, 0), (X, 1), grow, (X, 0), (X, 1)])
