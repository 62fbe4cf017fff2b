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
