"""isinstance and issubclass where a metaclass, an abstract base class or a union decides: as in plain Python before and after every change, and without a graph break."""
from __future__ import annotations

import abc
import collections.abc
import contextlib
import numbers
import typing

import numpy as np
import pytest
from support_engine import framegate, needs_engine
from support_soundness import Scenarios, follow

pytestmark = needs_engine
X = np.ones(3)
scenarios = Scenarios()


class Decides(type):
    def __instancecheck__(cls, o):
        return getattr(o, "ok", False)

    def __subclasscheck__(cls, c):
        return c is int


class Decided(metaclass=Decides):
    pass


class Flagged:
    ok = True


class Base(abc.ABC):
    @abc.abstractmethod
    def run(self):
        pass


class Runs(Base):
    def run(self):
        return 1


class Registered:
    pass


class RegisteredChild(Registered):
    pass


Base.register(Registered)


class Structural(abc.ABC):
    @classmethod
    def __subclasshook__(cls, c):
        return hasattr(c, "go") or NotImplemented


class Goes:
    def go(self):
        return 2


class Union:
    pass


ALIAS = int | Union
VALUES = [1, True, 2.5, "a", [1], (1,), {}, {1}, None, len, X, np.float64(3), np.int32(3), range(3), Runs(), Registered(), RegisteredChild(), Goes(), Flagged(), Union(), int,
          contextlib.nullcontext(), iter([1]), b"a", slice(1)]
CHECKS = {
    "sized": lambda o: isinstance(o, collections.abc.Sized),
    "sequence": lambda o: isinstance(o, collections.abc.Sequence),
    "mapping or set": lambda o: isinstance(o, (collections.abc.Mapping, collections.abc.Set)),
    "iterable": lambda o: isinstance(o, collections.abc.Iterable),
    "callable": lambda o: isinstance(o, collections.abc.Callable),
    "number": lambda o: isinstance(o, numbers.Number),
    "real": lambda o: isinstance(o, numbers.Real),
    "context manager": lambda o: isinstance(o, contextlib.AbstractContextManager),
    "own abstract class": lambda o: isinstance(o, Base),
    "own metaclass": lambda o: isinstance(o, Decided),
    "own or list": lambda o: isinstance(o, (Base, list)),
    "typing alias": lambda o: isinstance(o, typing.Sequence),
    "union": lambda o: isinstance(o, int | str | None),
    "union of an alias": lambda o: isinstance(o, ALIAS),
    "union with own": lambda o: isinstance(o, Union | float),
    "subclass": lambda o: issubclass(type(o), collections.abc.Hashable),
    "subclass of several": lambda o: issubclass(type(o), (Base, collections.abc.Sized)),
    "subclass of own metaclass": lambda o: issubclass(type(o), Decided),
    "subclass of a union": lambda o: issubclass(type(o), int | str),
}


@pytest.mark.parametrize("name", CHECKS)
def test_every_kind_of_value(name):
    check = CHECKS[name]

    def fn(x, o):
        return check(o), x + 1

    def behind(x, o):
        y = x + 1
        return check(o), y

    for value in VALUES:
        one, other = framegate.compile(fn), framegate.compile(behind)
        for _ in range(3):
            want = check(value)
            assert one(X, value)[0] is want and other(X, value)[0] is want, value


@pytest.mark.parametrize("name", CHECKS)
def test_there_is_no_graph_break_once_it_was_asked(name):
    check = CHECKS[name]

    def fn(x, o):
        y = x * 2
        return check(o), y + 1

    for value in (3, [1], Runs(), Registered(), X):
        check(value)
        if name == "union with own":  # made by the interpreter
            continue
        if name == "own metaclass" and value is X:  # it asks for an attribute that arrays have not
            continue
        made = framegate.explain(fn)(X, value)
        assert made.graph_break_count == 0 and made.graph_count == 1, str(made)


def test_what_was_never_asked_is_asked_by_the_trace_or_by_the_call():
    class Asked(abc.ABC):  # noqa: B024
        pass

    class Hook(abc.ABC):
        asked: list = []

        @classmethod
        def __subclasshook__(cls, c):
            cls.asked.append(c)
            return c.__name__ == "One"

    def first(o, x):
        return isinstance(o, Asked), x + 1

    def later(o, x):
        y = x + 1
        return isinstance(o, Asked), y

    def user(o, x):
        return isinstance(o, Hook), x + 1

    class One:
        pass

    class Other:
        pass

    compiled = framegate.compile(first)
    assert compiled(One(), X)[0] is False and len(framegate.cache_entries(compiled)) == 1
    compiled = framegate.compile(later)
    assert compiled(Other(), X)[0] is False and len(framegate.cache_entries(compiled)) == 0
    assert compiled(Other(), X)[0] is False and len(framegate.cache_entries(compiled)) == 1
    compiled = framegate.compile(user)
    for kind, want in ((One, True), (Other, False), (One, True), (Other, False)):
        assert compiled(kind(), X)[0] is want
    assert Hook.asked == [One, Other]


def test_an_operation_that_fails_before_leaves_nothing_asked():
    class Asked(abc.ABC):  # noqa: B024
        @classmethod
        def __subclasshook__(cls, c):
            return any("run" in base.__dict__ for base in c.__mro__)

    class Late:
        pass

    def fn(o, x, y):
        z = x + y
        return isinstance(o, Asked), isinstance(o, collections.abc.Sized), z

    compiled = framegate.compile(fn)
    for _ in range(2):
        with pytest.raises(ValueError, match="broadcast"):
            compiled(Late(), X, np.ones(2))
    Late.run = Late.__len__ = lambda self: 1
    assert compiled(Late(), X, X)[:2] == (True, True)


@scenarios
def registration_after_the_answer_was_no():
    class Shape(abc.ABC):
        pass

    class Deep(Shape):
        pass

    class A:
        pass

    class B(A):
        pass

    def fn(o):
        return isinstance(o, Shape), issubclass(type(o), Shape), isinstance(o, Deep), isinstance(o, (int, Shape))

    for register in (None, lambda: Deep.register(B), lambda: Shape.register(A), lambda: Shape.register(int)):
        if register is not None:
            register()
        for o in (A(), B(), 3, True):
            yield fn, o


@scenarios
def methods_of_the_metaclass_replaced():
    class Meta(abc.ABCMeta):
        pass

    class Shape(metaclass=Meta):
        pass

    class A:
        pass

    def fn():
        return isinstance(a, Shape), issubclass(A, Shape)

    a = A()
    yield (fn,)
    Meta.__instancecheck__ = lambda cls, o: True
    yield (fn,)
    Meta.__subclasscheck__ = lambda cls, c: c is A
    yield (fn,)
    del Meta.__instancecheck__
    yield (fn,)
    Meta.__subclasscheck__ = lambda cls, c: []
    yield (fn,)
    del Meta.__subclasscheck__
    yield (fn,)
    Shape.register(A)
    yield (fn,)


@scenarios
def answers_of_a_metaclass_that_look_at_state():
    class Meta(type):
        wanted = int

        def __instancecheck__(cls, o):
            return type(o) is cls.wanted

    class Thing(metaclass=Meta):
        pass

    def fn(o):
        return isinstance(o, Thing), isinstance(o, (Thing, str))

    for o in (1, "a", 2.5):
        yield fn, o
    Meta.wanted = float
    for o in (1, "a", 2.5):
        yield fn, o
    Thing.wanted = str
    for o in (1, "a", 2.5):
        yield fn, o


@scenarios
def union_replaced():
    space = {"kinds": int | None, "Own": type("Own", (), {})}
    exec("def fn(o): return isinstance(o, kinds), issubclass(type(o), kinds)", space)
    for kinds in (int | None, str | float, int | None, int | space["Own"], (int, str), list):
        space["kinds"] = kinds
        for o in (1, None, "a", space["Own"]()):
            yield space["fn"], o


@scenarios
def objects_that_say_what_they_are():
    class Liar:
        @property
        def __class__(self):
            return list

    class Honest:
        pass

    class Turns(Liar):
        pass

    def fn(o):
        return isinstance(o, collections.abc.Sequence), isinstance(o, list), isinstance(o, list | str)

    for o in (Honest(), Liar(), [1], Liar(), Honest()):
        yield fn, o
    yield fn, Turns()
    Turns.__bases__ = (Honest,)
    yield fn, Turns()
    Turns.__bases__ = (Liar,)
    yield fn, Turns()


@scenarios
def hook_of_a_registered_class_replaced():
    class Shape(abc.ABC):
        pass

    class A:
        pass

    Shape.register(A)

    def fn():
        return isinstance(a, Shape)

    a = A()
    yield (fn,)
    Shape.__subclasshook__ = classmethod(lambda cls, c: False)
    yield (fn,)
    Shape.__subclasshook__ = classmethod(lambda cls, c: NotImplemented)
    yield (fn,)


@scenarios.parametrize()
def test_answers_follow_changes(make):
    follow(make)


def test_errors_are_as_in_plain_python():
    def wrong(o):
        return isinstance(o, 5)

    def generic(o):
        return isinstance(o, list[int] | int)

    def nested(o):
        return isinstance(o, (str, (int, list[int])))

    for fn in (wrong, generic, nested):
        compiled = framegate.compile(fn)
        for o in (1, "a"):
            for _ in range(2):
                outcomes = []
                for one in (fn, compiled):
                    try:
                        outcomes.append(one(o))
                    except TypeError as error:
                        outcomes.append(str(error))
                assert outcomes[0] == outcomes[1]


def test_abstract_classes_are_not_kept_alive():
    import gc
    import weakref

    class Gone(abc.ABC):  # noqa: B024
        pass

    class Part(Gone):
        pass

    def fn(o, kind, x):
        return isinstance(o, kind), isinstance(o, kind | int), x + 1

    compiled = framegate.compile(fn)
    for _ in range(3):
        assert compiled(Part(), Gone, X)[:2] == (True, True)
    refs = [weakref.ref(Gone), weakref.ref(Part)]
    del Gone, Part
    gc.collect()
    assert [ref() for ref in refs] == [None, None]
