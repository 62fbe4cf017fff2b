"""What is compiled, disabled or given a rule ends as it would have ended without: no table of the engine keeps it or its class alive."""

import functools
import gc
import weakref

import framegate
import numpy as np
import pytest
from framegate import _rules
from support_engine import needs_engine


def is_gone(make, rounds=3):
    """make() returns what has to end with its frame."""
    for _ in range(rounds):
        left = [weakref.ref(each) for each in make()]
    gc.collect()
    return [ref() for ref in left if ref() is not None] == []


def a_function():
    def f(x):
        return x + 1

    assert framegate.compile(f)(np.ones(2)).sum() == 4
    return (f,)


def a_function_that_breaks():
    class Box:
        def __init__(self, v):
            self.v = v

    def f(x):
        box = Box(x)
        framegate.graph_break()
        return box.v * 2

    assert framegate.compile(f)(np.ones(2)).sum() == 4
    return f, Box


def a_partial():
    def f(a, x):
        return a + x

    part = functools.partial(f, 2)
    assert framegate.compile(part)(np.ones(2)).sum() == 6
    return f, part


def a_method():
    class Thing:
        def method(self, x):
            return x + 1

    thing = Thing()
    assert framegate.compile(thing.method)(np.ones(2)).sum() == 4
    return Thing, thing


def an_object():
    class Thing:
        def __call__(self, x):
            return x + 1

    thing = Thing()
    assert framegate.compile(thing)(np.ones(2)).sum() == 4
    return Thing, thing


def an_object_that_fills_its_dict():
    class Thing:
        def __setattr__(self, name, value):
            self.__dict__[name] = value

        def __call__(self, x):
            return x + self.k

    thing = Thing()
    thing.k = 1
    assert framegate.compile(thing)(np.ones(2)).sum() == 4
    return Thing, thing


def an_exception_class():
    class Stop(Exception):
        pass

    def f(x):
        try:
            raise Stop(1)
        except Stop as stop:
            return x + stop.args[0]

    assert framegate.compile(f)(np.ones(2)).sum() == 4
    return f, Stop


def a_disabled_function():
    def g(x):
        return x + 1

    disabled = framegate.disable(g)
    assert framegate.compile(lambda x: disabled(x) * 2)(np.ones(2)).sum() == 8
    return g, disabled


def a_disabled_object():
    class Thing:
        def __call__(self, x):
            return x + 1

    thing = Thing()
    disabled = framegate.disable(thing)
    assert framegate.compile(lambda x: disabled(x) * 2)(np.ones(2)).sum() == 8
    return Thing, thing, disabled


def a_disabled_class():
    class Thing:
        def method(self, x):
            return x + 1

    framegate.disable(Thing)
    thing = Thing()
    assert framegate.compile(lambda x: thing.method(x) * 2)(np.ones(2)).sum() == 8
    return Thing, thing


def ruled(mark):
    def make():
        def g(x):
            return x + 1

        mark(g)
        if mark is not framegate.allow_in_graph:  # a graph has it as an operation, and lives as long as the code that was compiled
            assert framegate.compile(lambda x: g(x) * 2)(np.ones(2)).sum() == 8
        return (g,)

    return make


def a_substitute():
    def g(x):
        return x + 1

    def other(x):
        return x + 3

    framegate.substitute_in_graph(g)(other)
    assert framegate.compile(lambda x: g(x))(np.ones(2)).sum() == 8
    return g, other


KINDS = [
    a_function,
    a_function_that_breaks,
    a_partial,
    a_method,
    an_object,
    an_object_that_fills_its_dict,
    an_exception_class,
    a_disabled_function,
    a_disabled_object,
    a_disabled_class,
    a_substitute,
]


@needs_engine
@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_what_was_compiled_ends(make):
    rules = len(_rules.RULES)
    assert is_gone(make)
    assert len(_rules.RULES) == rules


@needs_engine
@pytest.mark.parametrize("mark", [framegate.skip, framegate.disallow_in_graph, framegate.allow_in_graph, framegate.assume_constant_result])
def test_a_function_with_a_rule_ends(mark):
    rules = len(_rules.RULES)
    if mark is framegate.assume_constant_result:

        def make():
            g = framegate.assume_constant_result(lambda: 2)
            assert framegate.compile(lambda x: x * g())(np.ones(2)).sum() == 4
            return (g,)
    else:
        make = ruled(mark)
    assert is_gone(make)
    assert len(_rules.RULES) == rules


def test_a_rule_is_not_for_what_comes_after():
    """A new function often has the address of one that has ended."""
    for _ in range(50):
        g = framegate.disallow_in_graph(lambda x: x + 1)
        assert _rules.RULES[g] == "break"
        del g
        h = lambda x: x + 2  # noqa: E731
        assert h not in _rules.RULES and framegate.explain(lambda x, h=h: h(x))(np.ones(2)).break_reasons == []
        del h


@needs_engine
def test_a_rule_given_anew_and_taken_back():
    def g(x):
        return x + 1

    def reasons():
        return [reason.gb_type for reason in framegate.explain(lambda x: g(x))(np.ones(2)).break_reasons]

    assert reasons() == []
    framegate.disallow_in_graph(g)
    framegate.disallow_in_graph(g)
    assert len(reasons()) == 1 and list(_rules.RULES).count(g) == 1
    framegate.allow_in_graph(g)
    assert reasons() == [] and _rules.RULES[g] == "graph"
    del _rules.RULES[g]
    assert g not in _rules.RULES and _rules.RULES.get(g) is None
    with pytest.raises(KeyError):
        del _rules.RULES[g]


@needs_engine
def test_compiled_modules_and_their_classes_end():
    torch = pytest.importorskip("torch")

    def own_class():
        held = torch.nn.Parameter(torch.ones(3))

        class Scale(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = held

            def forward(self, x):
                return x * self.weight

        module = Scale()
        compiled = framegate.compile(module)
        assert compiled(torch.ones(3)).sum() == 3 and type(framegate.compile(module)) is type(compiled)
        return Scale, module, held

    def of_the_library():
        module = torch.nn.Linear(2, 2)
        framegate.compile(module)(torch.ones(2))
        return module, module.weight

    def disabled():
        module = torch.nn.Linear(2, 2)
        framegate.disable(module)(torch.ones(2))
        return module, module.weight

    def subclass_of_compiled():
        class Base(torch.nn.Module):
            def forward(self, x):
                return x + 1

        first = framegate.compile(Base())
        assert first(torch.ones(1)).item() == 2
        return Base, type(first)

    for make in (own_class, of_the_library, disabled, subclass_of_compiled):
        assert is_gone(make), make.__name__
