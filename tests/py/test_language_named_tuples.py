"""Named tuples and other tuples with a class of their own, made and taken apart in compiled functions; classes with a __new__."""

from __future__ import annotations

from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np
import pytest
from support_engine import Cases, cap, check_case, check_twins, entries, needs_engine

cases = Cases()
A, B = np.arange(3.0), np.arange(3.0) + 5
Pair = namedtuple("Pair", "a b", defaults=(5,))
Other = namedtuple("Other", "a b")


class State(NamedTuple):
    h: Any
    c: Any = 3

    @property
    def total(self):
        return self.h + self.c

    def moved(self, by):
        return self._replace(h=self.h + by)

    @classmethod
    def of(cls, h):
        return cls(h, c=h * 2)

    @staticmethod
    def name():
        return "state"


class Longer(State):
    __slots__ = ()

    def last(self):
        return self[-1], super().moved(1)


class Bare(tuple):
    __slots__ = ()

    def __new__(cls, *parts):
        return super().__new__(cls, parts)


@cases((A,), (B,))
def made(x):
    return Pair(x + 1), Pair(x, b=2), Pair(b=x, a=1), State(x), State.of(x), Bare(x, 1), Longer(x, 4), [Pair(1, 2), {"k": Pair(x, (Pair(1), x))}]


@cases((A,), (B,))
def taken_apart(x):
    p = Pair(x, 2)
    a, b = p
    return p.a + p.b, p[0] - p[-1], a, b, [v for v in p], len(p), 2 in p[1:], Pair._fields, p._asdict(), p._replace(b=4)


@cases((A,), (B,))
def read_by_class(x):
    s = State(x, x + 1)
    return s.total, s.moved(2), s.moved(1).h, s.name(), State._field_defaults, type(s), type(s).__name__, s.__class__ is State, Longer(x).total


@cases((A,), (B,))
def above(x):
    return Longer(x).last(), Longer(x, x).c


@cases((Pair(A, 2),), (Pair(B, 3),), (Other(A, 2),), ((A, 2),), (Pair(A, b=4.5),), (Bare(A, 1),))
def given(p):
    kind = "pair" if isinstance(p, Pair) else "other" if isinstance(p, Other) else "tuple"
    return kind, p[0] + p[1], p, type(p), (p, p), len(p), tuple(p), list(p), p[:], p[1:], p + (1,), p * 2, (*p, 3), isinstance(p, tuple), type(p) is tuple


@cases((Pair(1, 2), Pair(1, 2)), (Pair(1, 2), Other(1, 2)), (Pair(1, 2), (1, 2)), ((1, 2), Pair(1, 3)), (Pair(2, 2), [1, 2]))
def compared(p, q):
    table = {p: "p"}
    return p == q, p != q, p in [q], q in (p, 3), table.get(p), {p, (1, 2)} == {p}, (p, q) == (q, p), p is p


@cases((A,), (B,))
def as_operand(x):
    p = Pair(x, x + 1)
    return np.stack(p), np.concatenate(p), sum(p), max(Pair(1, 3)), sorted(Pair(3, 1)), list(zip(p, Pair(1, 2))), [i for i in enumerate(p)], x[Pair(0, 2)[0]], bool(Pair(0, 0))


@cases((A,), (B,))
def missing(x):
    try:
        return Pair(x).c
    except AttributeError as error:
        return str(error), hasattr(Pair(x), "a"), getattr(Pair(x), "d", 7), x


@cases((A,), (B,))
def wrong_arguments(x):
    return x + 1, Pair(x, 1, 2)


@cases((A,), (B,))
def over_a_break(x):
    s = State(x, 1)
    print(s.c)
    t = s._replace(c=s.c + 1)
    print(t.c)
    return s, t, t.total


@cases.parametrize()
def test_as_plain_python(case):
    check_case(case)


@needs_engine
@pytest.mark.parametrize("case", [c for c in cases if c.fn not in (wrong_arguments, over_a_break, compared, above)], ids=repr)
def test_captured_whole(case):
    import copy

    import framegate

    assert framegate.explain(case.fn)(*copy.deepcopy(case.inputs[0])).break_reasons == []


@needs_engine
def test_one_entry_for_each_class():
    compiled = cap(lambda p: p[0] + p[1] * 2)
    for k in range(3):
        for p in (Pair(A, k), Other(B, k), (A, k)):
            assert np.array_equal(compiled(p), p[0] + k * 2)
    assert entries(compiled) == 3


class Odd:
    """Makes classes of tuples that say something of what tuples do."""

    @staticmethod
    def classes():
        def sub(**names):
            return type("P", (Pair,), {"__slots__": (), **names})

        yield sub(__len__=lambda self: 7)
        yield sub(__iter__=lambda self: iter([8, 9]))
        yield sub(__getitem__=lambda self, i: 4 if isinstance(i, int) else (4,))
        yield sub(__eq__=lambda self, other: True, __hash__=lambda self: 1)
        yield sub(__bool__=lambda self: False)
        yield sub(__add__=lambda self, other: "added")
        yield sub(__contains__=lambda self, v: True)
        yield sub(__getattribute__=lambda self, name: name)
        yield sub(__getattr__=lambda self, name: name + "!")
        yield sub(__call__=lambda self: "called")
        yield sub(a=property(lambda self: "property"))
        yield type("P", (Pair,), {})  # has a __dict__
        yield type("P", (Pair,), {"__slots__": (), "__new__": lambda cls, a, b=5: tuple.__new__(cls, (b, a))})
        yield type("P", (Pair,), {"__slots__": (), "__new__": lambda cls, a, b=5: (a, b)})
        yield type("P", (Pair,), {"__slots__": (), "__init__": lambda self, a, b=5: None})


def uses(p, make):
    a, b = p
    q = make(3, 4)
    return (len(p), list(p), p[0], p == (1, 2), bool(p), p + (1,), 9 in p, p.a, getattr(p, "zz", None), callable(p), a, b, tuple(q), type(q).__name__, q == (3, 4),
            tuple(p), p[:1], len(q), [v for v in q])


@pytest.mark.parametrize("cls", list(Odd.classes()), ids=lambda c: "+".join(k for k in c.__dict__ if k not in ("__slots__", "__module__", "__doc__")))
def test_classes_that_say_otherwise_are_asked(cls):
    compiled = cap(uses)
    p = tuple.__new__(cls, (1, 2))
    for _ in range(3):
        assert compiled(p, cls) == uses(p, cls)
        assert compiled(Pair(1, 2), Pair) == uses(Pair(1, 2), Pair)


@pytest.mark.parametrize("name, value", [("__len__", lambda self: 7), ("__iter__", lambda self: iter([8, 9])), ("__getitem__", lambda self, i: 4), ("__bool__", lambda self: False),
                                         ("a", property(lambda self: "now")), ("a", 5), ("__eq__", lambda self, other: True), ("__add__", lambda self, o: "sum"),
                                         ("__contains__", lambda self, v: True), ("__getattribute__", lambda self, name: name), ("__getattr__", lambda self, name: 1),
                                         ("__new__", staticmethod(lambda cls, a, b: tuple.__new__(cls, (b, a))))])
def test_a_class_that_changes(name, value):
    cls = type("P", (Pair,), {"__slots__": ()})
    compiled, p = cap(uses), tuple.__new__(cls, (1, 2))
    for _ in range(2):
        assert compiled(p, cls) == uses(p, cls)
    setattr(cls, name, value)
    for _ in range(2):
        assert compiled(p, cls) == uses(p, cls)
    delattr(cls, name)
    assert compiled(p, cls) == uses(p, cls)


def test_fields_that_change_places():
    cls = namedtuple("P", "a b")

    def fn(p):
        return p.a

    compiled = cap(fn)
    assert compiled(cls(1, 2)) == compiled(cls(1, 2)) == 1
    cls.a, cls.b = cls.__dict__["b"], cls.__dict__["a"]
    assert compiled(cls(1, 2)) == fn(cls(1, 2)) == 2


# --- classes with a __new__


class Made:
    def __new__(cls, *args):
        self = object.__new__(cls)
        self.args = args
        return self


class Both(Made):
    def __new__(cls, x, k=2):
        self = super().__new__(cls, x)
        self.k = k
        return self

    def __init__(self, x, k=2):
        self.x = x * k


class Else(Made):
    def __new__(cls, x):
        return x if isinstance(x, tuple) else super().__new__(cls, x)


def test_instances_by_their_own_new():
    def make():
        def fn(x, k):
            a, b, c = Made(x, k), Both(x, k), Both(x)
            return type(a), a.args, type(b), b.args, b.k, b.x, c.x, Else((x, k)), type(Else(x)), Else(x).args

        return fn, lambda: None

    check_twins(make, [(A, 1), (A, 2), (B, 2), (B, 3)])


@needs_engine
def test_instances_by_their_own_new_are_captured():
    import framegate

    def fn(x):
        return Made(x).args[0] + Both(x, 3).x

    assert framegate.explain(fn)(A).break_reasons == []

    def given_away(x):
        return Both(x, 3)

    got = framegate.compile(given_away)(A)
    assert type(got) is Both and got.args == (A,) and np.array_equal(got.x, A * 3) and list(vars(got)) == list(vars(Both(A, 3)))


def test_only_one_of_its_kind():
    class Single:
        one = None

        def __new__(cls):
            if cls.one is None:
                cls.one = object.__new__(cls)
            return cls.one

    compiled = cap(lambda: Single() is Single())
    assert compiled() and compiled() and Single() is Single.one
