"""str, repr and format of classes: of their module and their name, whatever these are when the function is called."""

import abc
import enum
import types
from typing import Any

import numpy as np
from support_engine import Cases, cap, check_case, check_same, check_twins, framegate, needs_engine, observe

X = np.arange(3.0)
one_graph, others = Cases(), Cases()


class Plain: pass
class Outer:
    class Inner: pass
class Meta(type):
    def __repr__(cls): return "mine"
class Told(metaclass=Meta): pass
class Base(abc.ABC): pass
class Kind(enum.Enum): A = 1


@one_graph((X,))
def of_classes(x): return x + 1, str(Plain), repr(Outer.Inner), f"{Plain}", f"{Outer!r:>40}", "%s" % 1, f"{int} {Outer!s}"
@one_graph((X, int), (X, Plain), (X, list), (X, Outer.Inner), (X, type(None)), (X, types.FunctionType))
def of_an_argument(x, c): return x, str(c), repr(c), f"{c}"
@one_graph((X, Plain()), (X, Outer()), (X, 3))
def of_the_type_of(x, o): return x, str(type(o)), type(o).__name__
@others((X, Told), (X, Base), (X, Kind), (X, Kind.A), (X, Plain))
def of_other_metaclasses(x, c): return x, str(c), repr(c), f"{c}"
@others((X, Plain))
def with_a_format(x, c): return x, f"{c:>10}"
@others((X, list[int]), (X, int | str), (X, Any))
def of_what_is_no_class(x, c): return x, str(c), f"{c}"


@Cases(one_graph + others).parametrize()
def test_text(case): check_case(case)


@needs_engine
def test_one_graph():
    for f in (of_the_type_of, of_an_argument):
        g = framegate.compile(f, fullgraph=True)
        for c in (Plain, int, Outer): check_same(observe(f, (X, c)), observe(g, (X, c)), "fullgraph")


def test_names_may_be_assigned():
    def make():
        class C: pass
        def f(x): return x, str(C), f"{C}"
        return f, lambda: C
    def change(name, value):
        return lambda state: setattr(state(), name, value)
    check_twins(make, [(X,), (X,), change("__qualname__", "Other"), (X,), change("__module__", "elsewhere"), (X,), change("__module__", 3), (X,),
                       change("__module__", "builtins"), (X,), change("__name__", "Name"), (X,),
                       change("__module__", "back"), (X,)])


def test_a_class_of_another_metaclass_in_its_place():
    f = cap(of_an_argument)
    for c in (Plain, Told, Plain, Base, Meta): check_same(observe(of_an_argument, (X, c)), observe(f, (X, c)), str(c))
