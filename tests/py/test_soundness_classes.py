"""Call, change one thing, call again: classes, metaclasses, descriptors and attributes."""
from __future__ import annotations

import abc
import functools
import types

from support_soundness import Scenarios, follow

scenarios = Scenarios()


@scenarios
def class_attributes():
    class A:
        k = 1

    class B(A):
        pass

    b = B()

    def fn():
        return b.k, B.k, getattr(b, "z", None), hasattr(b, "z")

    yield (fn,)
    A.k = 2
    yield (fn,)
    B.k = 3
    yield (fn,)
    b.k = 4
    yield (fn,)
    del B.k
    yield (fn,)
    del b.k
    yield (fn,)
    A.z = 5
    yield (fn,)
    B.__getattr__ = lambda self, name: name
    yield (fn,)
    del A.z
    yield (fn,)
    del A.k
    yield (fn,)
    B.__getattribute__ = lambda self, name: "all"
    yield (fn,)
    del B.__getattribute__
    A.k = 1.0
    yield (fn,)


@scenarios
def methods_rebound():
    class A:
        def f(self):
            return "A.f"

        def g(self):
            return self.f()

    class B(A):
        pass

    b = B()

    def fn():
        return b.g(), b.f()

    yield (fn,)
    A.f = lambda self: "new A.f"
    yield (fn,)
    B.f = lambda self: "B.f " + A.f(self)
    yield (fn,)
    b.f = lambda: "instance"
    yield (fn,)
    del b.f
    B.f = staticmethod(lambda: "static")
    yield (fn,)
    B.f = classmethod(lambda cls: cls.__name__)
    yield (fn,)
    B.f = property(lambda self: lambda: "property")
    yield (fn,)
    B.f = functools.partial(lambda: "partial")
    yield (fn,)
    B.f = functools.partialmethod(lambda self, v: v, 3)
    yield (fn,)
    del B.f
    yield (fn,)


@scenarios
def property_turned_attribute_and_back():
    class A:
        @property
        def p(self):
            return self.v * 2

        v = 3

    a = A()

    def fn():
        return a.p

    yield (fn,)
    a.v = 4
    yield (fn,)
    a.__dict__["p"] = "hidden"
    yield (fn,)
    A.p = 8
    yield (fn,)
    A.p = property(lambda self: -1)
    yield (fn,)
    A.p = functools.cached_property(lambda self: 6)
    yield (fn,)
    del a.__dict__["p"]
    del A.p
    yield (fn,)
    A.p = property()
    yield (fn,)


@scenarios
def data_and_other_descriptors():
    class D:
        def __get__(self, obj, kind=None):
            return "get"

    class A:
        d = D()

    a = A()

    def fn():
        return a.d, A.d

    yield (fn,)
    a.__dict__["d"] = 1
    yield (fn,)
    D.__set__ = lambda self, obj, v: None
    yield (fn,)
    D.__get__ = lambda self, obj, kind=None: "other"
    yield (fn,)
    del D.__set__
    yield (fn,)
    del D.__get__
    yield (fn,)
    del a.__dict__["d"]
    yield (fn,)


@scenarios
def class_of_an_instance_reassigned():
    class A:
        def f(self):
            return "A", self.v

    class B:
        k = 1

        def f(self):
            return "B", self.v

    a = A()
    a.v = 1

    def fn():
        return a.f(), isinstance(a, A), type(a).__name__, getattr(a, "k", None)

    for cls in (A, B, A, B):
        a.__class__ = cls
        yield (fn,)
    a.__dict__ = {"v": 9}
    yield (fn,)
    a.__dict__ = {"v": 9, "f": lambda: "shadow", "k": 4}
    yield (fn,)


@scenarios
def bases_reassigned():
    class P:
        def f(self):
            return "P"

    class Q:
        def f(self):
            return "Q"

    class C(P):
        pass

    class D(C):
        pass

    d = D()

    def fn():
        return d.f(), isinstance(d, P), issubclass(D, Q), D.__mro__[2].__name__

    yield (fn,)
    C.__bases__ = (Q,)
    yield (fn,)
    C.__bases__ = (P, Q)
    yield (fn,)
    C.__bases__ = (Q, P)
    yield (fn,)


@scenarios
def metaclass_attributes_and_hooks():
    class M(type):
        k = 1

        def f(cls):
            return "M.f"

    class A(metaclass=M):
        pass

    a = A()

    def fn():
        return A.k, A.f(), isinstance(a, A), bool(A), A == A

    yield (fn,)
    M.k = 2
    yield (fn,)
    A.k = 3
    yield (fn,)
    M.f = lambda cls: "other"
    yield (fn,)
    M.__instancecheck__ = lambda cls, o: False
    yield (fn,)
    M.__bool__ = lambda cls: False
    yield (fn,)
    M.__eq__ = lambda cls, o: "eq"
    M.__hash__ = type.__hash__
    yield (fn,)
    M.__getattribute__ = lambda cls, name: 5 if name == "k" else type.__getattribute__(cls, name)
    yield (fn,)
    del M.__instancecheck__
    yield (fn,)
    del M.__getattribute__
    M.k = property(lambda cls: "property of the metaclass")
    yield (fn,)
    M.__len__ = lambda cls: 0
    del M.__bool__
    yield (fn,)
    M.__call__ = lambda cls: "called"
    yield (lambda: A(),)


@scenarios
def metaclass_that_grows_what_it_had_not():
    class M(type):
        pass

    class N(M):
        k = property(lambda cls: "N.k")

    class A(metaclass=M):
        k = 1

        def f(self):
            return 3

    a = A()

    def truth():
        return "yes" if A else "no"

    def attribute():
        return A.k

    def check():
        return isinstance(a, A), isinstance(3, A), issubclass(int, A), issubclass(A, A)

    def equal():
        return A == A, A != int, A in [int, A], {A: 1}.get(A)

    def call():
        return type(A()).__name__

    def method():
        return A.f(a)

    fns = truth, attribute, check, equal, call, method
    for fn in fns:
        yield (fn,)
    A.__class__ = N
    for fn in fns:
        yield (fn,)
    A.__class__ = M
    M.__len__ = lambda cls: 0
    M.k = property(lambda cls: "M.k")
    M.__instancecheck__ = lambda cls, o: o == 3
    M.__subclasscheck__ = lambda cls, o: o is int
    M.__eq__ = lambda cls, o: False
    M.__hash__ = lambda cls: 5
    M.__call__ = lambda cls: 7
    for fn in fns:
        yield (fn,)
    M.__getattribute__ = lambda cls, name: len
    for fn in fns:
        yield (fn,)


@scenarios
def bases_of_both_operands():
    class P:
        def __add__(self, o):
            return "P.add"

        def __eq__(self, o):
            return "P.eq"

    class Q:
        pass

    class C(Q):
        def __radd__(self, o):
            return "C.radd"

        def __eq__(self, o):
            return "C.eq"

    p, c = P(), C()

    def fn():
        return p + c, p == c, isinstance(c, P), isinstance(c, (int, Q)), issubclass(C, P)

    yield (fn,)
    C.__bases__ = (P,)
    yield (fn,)
    C.__bases__ = (Q, P)
    yield (fn,)
    C.__bases__ = (Q,)
    yield (fn,)


@scenarios
def construction_hooks():
    class A:
        def __init__(self, v=1):
            self.v = v

    def fn():
        return A(3).v if isinstance(A(3), A) else "no A"

    yield (fn,)
    A.__init__ = lambda self, v: setattr(self, "v", v * 2)
    yield (fn,)
    A.__new__ = lambda cls, v: 5
    yield (fn,)
    A.__new__ = lambda cls, v: object.__new__(cls)
    yield (fn,)
    A.__setattr__ = lambda self, n, v: object.__setattr__(self, n, -v)
    yield (fn,)


@scenarios
def abc_registration():
    class Shape(abc.ABC):
        pass

    class Sub(Shape):
        pass

    class A:
        pass

    class B:
        pass

    def fn(o):
        return isinstance(o, Shape), issubclass(type(o), Shape), isinstance(o, (int, Shape))

    yield fn, A()
    yield fn, B()
    Shape.register(A)
    yield fn, A()
    yield fn, B()
    Sub.register(B)
    yield fn, B()
    yield fn, A()
    yield fn, 3
    Shape.register(int)
    yield fn, 3


@scenarios
def abc_of_the_library():
    import collections.abc

    class A:
        pass

    def fn(o):
        return isinstance(o, collections.abc.Sized), isinstance(o, collections.abc.Mapping), isinstance(o, collections.abc.Callable)

    yield fn, A()
    A.__len__ = lambda self: 0
    yield fn, A()  # CPython keeps the negative answer: so must we
    collections.abc.Mapping.register(A)
    yield fn, A()
    yield fn, {}
    yield fn, len


@scenarios
def slots():
    class S:
        __slots__ = ("a", "b")

    s = S()

    def fn():
        return getattr(s, "a", "none"), hasattr(s, "b")

    yield (fn,)
    s.a = 1
    yield (fn,)
    s.a = 1.0
    yield (fn,)
    s.b = 2
    yield (fn,)
    del s.a
    yield (fn,)
    member = S.a
    S.a = 7
    yield (fn,)
    S.a = S.b
    yield (fn,)
    S.a = member
    yield (fn,)


@scenarios
def bound_methods():
    class A:
        def __init__(self, v):
            self.v = v

        def m(self):
            return self.v

    a, b = A(1), A(2)
    holder = types.SimpleNamespace(m=a.m)

    def fn():
        return holder.m(), holder.m.__self__.v, holder.m.__func__ is A.m, holder.m == a.m

    yield (fn,)
    a.v = 5
    yield (fn,)
    holder.m = b.m
    yield (fn,)
    holder.m = types.MethodType(lambda s: s.v * 100, b)
    yield (fn,)
    holder.m = a.m
    A.m = lambda self: "new"
    yield (fn,)


@scenarios
def partials():
    p = functools.partial(lambda a, b=1, **k: (a, b, sorted(k)), 1)
    holder = types.SimpleNamespace(p=p)

    def fn():
        return holder.p()

    yield (fn,)
    p.__setstate__((p.func, (2,), {"b": 5}, None))
    yield (fn,)
    p.keywords["z"] = 1
    yield (fn,)
    holder.p = functools.partial(max, 3, 4)
    yield (fn,)


@scenarios
def special_methods_appear():
    class A:
        pass

    a = A()

    def fn():
        return bool(a), a == 1, a != 1, hash(a) == hash(a), len(a) if hasattr(a, "__len__") else None

    yield (fn,)
    A.__len__ = lambda self: 0
    yield (fn,)
    A.__bool__ = lambda self: True
    yield (fn,)
    A.__eq__ = lambda self, o: o == 1
    yield (fn,)
    A.__hash__ = lambda self: 4
    yield (fn,)
    A.__ne__ = lambda self, o: "ne"
    yield (fn,)
    A.__hash__ = None
    yield (fn,)
    a.__bool__ = lambda: False
    yield (fn,)


@scenarios
def arithmetic_methods_appear():
    class A:
        pass

    class B(A):
        pass

    a, b = A(), B()

    def fn():
        return a + b, a[0], a()

    yield (fn,)
    A.__add__ = lambda s, o: "A.add"
    A.__getitem__ = lambda s, i: i
    A.__call__ = lambda s: "call"
    yield (fn,)
    B.__radd__ = lambda s, o: "B.radd"
    yield (fn,)
    B.__add__ = lambda s, o: "B.add"
    yield (fn,)
    A.__add__ = lambda s, o: NotImplemented
    yield (fn,)
    del B.__radd__
    yield (fn,)
    a.__call__ = lambda: "instance"
    yield (fn,)


@scenarios
def super_through_a_changed_order():
    class A:
        def f(self):
            return "A"

    class B(A):
        def f(self):
            return "B" + super().f()

    class M:
        def f(self):
            return "M"

    class C(B, A):
        pass

    c = C()

    def fn():
        return c.f()

    yield (fn,)
    A.f = lambda self: "A2"
    yield (fn,)
    B.__bases__ = (M,) if False else (A,)
    C.__bases__ = (B,)
    yield (fn,)


@scenarios
def instance_check_by_class_property():
    class A:
        pass

    class Liar:
        @property
        def __class__(self):
            return A

    class Honest:
        pass

    def fn(o):
        return isinstance(o, A), type(o) is A, o.__class__ is A

    for o in (A(), Liar(), Honest(), A(), Liar()):
        yield fn, o


@scenarios
def enum_and_named_tuple_members():
    import collections
    import enum

    class Color(enum.Enum):
        RED = 1
        BLUE = 2

    class Level(enum.IntEnum):
        LOW = 1

    Pair = collections.namedtuple("Pair", "a b")

    def fn(v):
        return v == 1, v is Color.RED, type(v).__name__, getattr(v, "value", None), getattr(v, "a", None)

    for v in (Color.RED, Color.BLUE, Level.LOW, 1, True, Pair(1, 2), (1, 2), Color.RED):
        yield fn, v
    Pair.a = 5
    yield fn, Pair(1, 2)


@scenarios
def wrappers_with_attributes():
    def g(x):
        return x

    g.scale = 2

    def fn(x):
        return g(x) * g.scale, g.__name__, g.__dict__.get("z")

    yield fn, 3
    g.scale = 5
    yield fn, 3
    g.__name__ = "other"
    yield fn, 3
    g.z = 1
    yield fn, 3
    del g.scale
    yield fn, 3


@scenarios.parametrize()
def test_classes_and_attributes(make):
    follow(make)
