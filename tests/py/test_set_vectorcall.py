"""Functions of Python that an extension has given another way to be called (CPython 3.12 and later)."""

import sys

import pytest

framegate = pytest.importorskip("framegate")
testcapi = pytest.importorskip("_testcapi", reason="the interpreter comes without its test extensions")
pytestmark = pytest.mark.skipif(sys.version_info < (3, 12), reason="a function's vectorcall is not to be changed")


def test_what_is_overridden_is_called():
    def f(x): return x + 1
    def outer(x): return [f(x), f(x + 1)]
    def inside(x):
        def g(y): return y
        testcapi.function_setvectorcall(g)
        return g(x), g(x)
    testcapi.function_setvectorcall(f)
    for fn in (outer, inside):
        compiled = framegate.compile(fn)
        assert compiled(1) == compiled(2) == fn(3) and "overridden" in fn(1)


def test_a_method_and_a_getitem():
    class A:
        def m(self): return "plain"
        def __getitem__(self, i): return i
        def __getattribute__(self, name): return name
    def use(a): return a.__class__ and A.m(a), a[3], a.name
    testcapi.function_setvectorcall(A.m)
    testcapi.function_setvectorcall(A.__getitem__)
    testcapi.function_setvectorcall(A.__getattribute__)
    compiled, a = framegate.compile(use), A()
    assert compiled(a) == compiled(a) == use(a) == ("overridden",) * 3


def each_call_is_plain(use, change, *args):
    """Two calls that compile and hit, the change, two more."""
    compiled, made = framegate.compile(use), []
    for step in range(4):
        if step == 2:
            change()
        made.append((compiled(*args), use(*args)))
    assert [one for one, _ in made] == [other for _, other in made]
    assert made[0][0] != made[3][0] and "overridden" in str(made[3][0])


@pytest.mark.parametrize("warm", [0, 40])
def test_what_is_replaced_after_it_was_inlined(warm):
    def f(x): return x + 1
    def use(x): return [f(x), 2]
    compiled = framegate.compile(use)
    for _ in range(warm + 2):
        assert compiled(1) == [2, 2]
    testcapi.function_setvectorcall(f)
    assert compiled(1) == compiled(1) == use(1) == ["overridden", 2]


def test_the_compiled_function_itself_is_replaced():
    def f(x): return [x, 1]
    compiled = framegate.compile(f)
    assert compiled(1) == compiled(1) == [1, 1]
    testcapi.function_setvectorcall(f)
    assert compiled(1) == f(1) == "overridden"
    assert compiled([2]) == "overridden" and compiled(x=object()) == f(x=1)


def test_with_arguments_that_only_the_call_keeps():
    class Heard:
        def __del__(self): gone.append(1)
    gone = []
    def f(x): return "plain"
    compiled = framegate.compile(f)
    def give(): return compiled(Heard())
    assert [give(), give()] == ["plain"] * 2 and gone == [1, 1]
    testcapi.function_setvectorcall(f)
    assert [give(), give(), give()] == ["overridden"] * 3 and gone == [1] * 5


def methods():
    class A:
        def __init__(self): self.v = 1
        def m(self): return "plain"
        def __getitem__(self, i): return "item"
        def __call__(self): return "called"
        def __add__(self, other): return "sum"
        def __eq__(self, other): return "same"
        def __enter__(self): return "in"
        def __exit__(self, *args): return None
        def __iter__(self): return iter(["a"])
        @property
        def p(self): return "read"
        @staticmethod
        def s(): return "static"
        @classmethod
        def c(cls): return "class"
        def __getattr__(self, name): return name
    return A


def entering(a):
    with a as what:
        return str(what)


USES = {
    "m": lambda a: [a.m()],
    "__getitem__": lambda a: [a[0]],
    "__call__": lambda a: [a()],
    "__add__": lambda a: [a + 1],
    "__eq__": lambda a: [a == 1],
    "__enter__": lambda a: [entering(a)],
    "p": lambda a: [a.p],
    "s": lambda a: [a.s()],
    "c": lambda a: [a.c()],
    "__getattr__": lambda a: [a.other],
}


@pytest.mark.parametrize("name", USES)
def test_a_method_is_replaced_after_it_was_inlined(name):
    cls = methods()
    found = cls.__dict__[name]
    func = getattr(found, "fget", None) or getattr(found, "__func__", found)
    each_call_is_plain(USES[name], lambda: testcapi.function_setvectorcall(func), cls())


def test_what_was_inlined_keeps_its_code_and_its_attributes():
    def f(x): return x
    def use(): return [f(1), f.__code__.co_name, f.__name__, f.__defaults__]
    each_call_is_plain(use, lambda: testcapi.function_setvectorcall(f))


def test_after_a_break_and_in_a_callback():
    def f(x): return x + 1
    def use(x):
        framegate.graph_break()
        return [f(x), list(map(f, [x])), sorted([x, x], key=lambda v: str(f(v)))]
    each_call_is_plain(use, lambda: testcapi.function_setvectorcall(f), 1)
