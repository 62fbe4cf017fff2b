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


class Rank(int, enum.Enum):
    A, B, AGAIN = 1, 2, 1


class Flags(enum.IntFlag):
    R, W = 1, 2


class Told(enum.IntEnum):
    A, B = 1, 2
    def __add__(self, other): return ("added", int(self), other)
    def __eq__(self, other): return True
    __hash__ = int.__hash__


class Hidden(int, enum.Enum):
    """The value is another one than the integer."""
    A, B = 1, 2
    def __new__(cls, value):
        self = int.__new__(cls, 10 - value)
        self._value_ = value
        return self


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
@one_graph((X, Level.LOW), (X, Level.HIGH), (X, 3), (X, 5.0), (X, True))
def order(x, a): return x, a < Level.HIGH, a >= Level.LOW, a == 5, a != Level.LOW, 2 > a
@one_graph((X, Level.LOW, 2), (X, Level.HIGH, 0.5), (X, Level.LOW, True), (X, 7, Level.HIGH), (X, Level.HIGH, Level.LOW), (X, Rank.B, Level.HIGH))
def arithmetic(x, a, b):
    r = a + b, b - a, a * b, a / b, a // b, a % b, b ** a, b < a, a == b, a != b, a >= b
    c = a
    c += b
    return x + c, r, [type(v) for v in r]
@one_graph((X, Level.LOW, 6), (X, Level.HIGH, Level.LOW), (X, 5, Level.HIGH))
def bits(x, a, b): return x, a & b, a | b, a ^ b, a << b, b >> a, type(a & b)
@one_graph((X, Level.LOW), (X, Level.HIGH), (X, 1))
def choice(x, a):
    if a == Level.LOW: return x + 1
    return x * (a + 1) if a > Level.LOW else x
@one_graph((X, 0), (X, 1), (X, 7))
def with_a_number_of_the_call(x, n): return x + (n == Level.LOW), n < Level.HIGH, n + Level.HIGH, Level.LOW - n
@others((X, Level.LOW, 0), (X, Level.HIGH, -1), (X, Level.LOW, "a"), (X, Level.LOW, None), (X, Level.LOW, [1]), (X, "ab", Level.HIGH))
def failing(x, a, b):
    try: return x, a * b, a << b, a // b
    except (TypeError, ValueError, ZeroDivisionError) as e: return str(e)
@others((X, Level.LOW, "a"), (X, Level.LOW, None), (X, Level.LOW, Plain.A))
def no_order_of_numbers(x, a, b):
    try: return x, a == b, a != b, a < b
    except TypeError as e: return str(e)
@others((X, Flags.R), (X, Flags.R | Flags.W), (X, 3))
def flags(x, a): return x, a & Flags.R, a | Flags.W, a == 3, a > Flags.R, a + 1, Flags.W in (a,)
@others((X, Told.A), (X, Told.B), (X, 2))
def own_operators(x, a): return x, a + 1, 1 + a, a == Told.B, a < 3, a * 2
@others((X, Level.LOW), (X, Level.HIGH))
def with_arrays(x, a): return x * a, a + x, x.astype("f4") * a, x == a, -a, ~a, abs(a), int(a), [10, 20][a == 5]
@others((X, Hidden.A, Hidden.B), (X, Hidden.B, Hidden.B))
def other_content(x, a, b): return x, a == b, a + b, a < 5, a.value
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


def test_a_class_of_numbers_grows_operators():
    def make():
        class E(enum.IntEnum): A, B = 1, 2
        def g(x, k): m = E.A if k else E.B; return x, m == E.B, m + 1, 3 - m, m < 2
        return g, [E]
    def grow(name, value): return lambda e: setattr(e[0], name, value)
    check_twins(make, [(X, 0), (X, 1), grow("__add__", lambda a, b: "plus"), (X, 0), (X, 1), grow("__rsub__", lambda a, b: "minus"), (X, 0),
                       grow("__eq__", lambda a, b: True), (X, 1), grow("__lt__", lambda a, b: 7), (X, 0), (X, 1)])


def test_which_member_it_is_may_change():
    def make():
        class E(enum.IntEnum): A, B = 1, 2
        class State: pass
        state = State()
        state.m, state.e = E.A, E
        def g(x): return x * (state.m + 1), state.m == E.B, state.m > 1, state.e.B - state.m
        return g, state
    def swap(state):
        members = state.e._member_map_
        members["A"], members["B"] = members["B"], members["A"]
    check_twins(make, [(X,), (X,), lambda s: setattr(s, "m", s.e.B), (X,), (X,), lambda s: setattr(s, "m", 2), (X,), lambda s: setattr(s, "m", Level.HIGH), (X,),
                       lambda s: setattr(s, "m", s.e.A), (X,), lambda s: setattr(s.m, "_value_", 2), (X,), lambda s: setattr(s.m, "_value_", 1), (X,), swap, (X,),
                       lambda s: setattr(s, "m", s.e.B), (X,), lambda s: setattr(s, "e", Level) or setattr(Level, "B", 3), (X,)])
    del Level.B
