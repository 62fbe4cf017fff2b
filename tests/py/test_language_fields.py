"""Attributes that the interpreter keeps in fields (of functions, methods, classes, code objects), and classes with a __getattribute__ of their own: captured in one
graph, and each field read anew at the next call."""

import functools

import framegate
import numpy as np
import pytest

X = np.ones(3)


class Counted:
    """A compiled function beside its plain one; says how many compiles a call took."""

    def __init__(self, fn, **options):
        self.fn = fn
        self.compiled = framegate.compile(fn, fullgraph=True, **options)

    def call(self, *args):
        before = framegate.stats()["compiles"]
        want, got = self.fn(*args), self.compiled(*args)
        assert np.array_equal(want, got) and type(want) is type(got), (want, got)
        again = self.compiled(*args)
        assert np.array_equal(want, again)
        return framegate.stats()["compiles"] - before


def fresh_function():
    def target(x, scale=2, *, extra=3):
        """text"""
        return x * scale + extra

    return target


FIELDS = [
    ("__name__", lambda f: setattr(f, "__name__", "longer name")),
    ("__qualname__", lambda f: setattr(f, "__qualname__", "longer.qualified.name")),
    ("__doc__", lambda f: setattr(f, "__doc__", "a longer text")),
    ("__module__", lambda f: setattr(f, "__module__", "another.module.altogether")),
    ("__defaults__", lambda f: setattr(f, "__defaults__", (4, 5))),
    ("mark", lambda f: setattr(f, "mark", "five5")),
]


@pytest.mark.parametrize("name, change", FIELDS)
def test_a_functions_field_is_read_anew(name, change):
    target = fresh_function()
    target.mark = "four"

    def f(x, g):
        return x + len(getattr(g, name) if name != "mark" else g.mark)

    both = Counted(f)
    assert both.call(X, target) == 1 and both.call(X, target) == 0
    change(target)
    assert both.call(X, target) == 1


def test_decorators_that_look_at_their_function_are_one_graph():
    def decorate(fn):
        @functools.wraps(fn)
        def wrapper(x, *args, **kwargs):
            if "scale" in fn.__code__.co_varnames and fn.__name__ == "inner":
                return fn(x, *args, **kwargs) * fn.__code__.co_argcount
            return fn(x)

        return wrapper

    @decorate
    def inner(x, scale=2):
        return x * scale

    def f(x):
        return inner(x) + len(inner.__wrapped__.__qualname__)

    both = Counted(f)
    assert both.call(X) == 1 and both.call(X) == 0
    inner.__wrapped__.__name__ = "other"
    assert both.call(X) == 1
    inner.__wrapped__.__code__ = (lambda x, scale=2: x - scale).__code__
    assert both.call(X) == 1


def test_missing_and_later_function_attributes():
    target = fresh_function()

    def f(x, g):
        return x * 3 if hasattr(g, "maybe") else x + getattr(g, "other", 1)

    both = Counted(f)
    assert both.call(X, target) == 1
    target.other = 7
    assert both.call(X, target) == 1
    target.maybe = None
    assert both.call(X, target) == 1
    del target.maybe
    assert both.call(X, target) == 0


def test_parts_that_are_none():
    target = fresh_function()
    target.__doc__ = None
    target.__kwdefaults__ = None

    def f(x, g):
        return x + (g.__doc__ is None) + (g.__closure__ is None) * 2 + (g.__kwdefaults__ is None) * 4

    both = Counted(f)
    assert both.call(X, target) == 1
    target.__doc__ = "now"
    assert both.call(X, target) == 1
    target.__kwdefaults__ = {"extra": 1}
    assert both.call(X, target) == 1
    del target.__doc__
    assert both.call(X, target) == 1


def test_functions_made_inside():
    def f(x):
        def made(a, b):
            """made's text"""
            return a + b

        nothing = lambda: 0  # noqa: E731
        return x + len(made.__name__) + len(made.__qualname__) + len(made.__doc__) + made.__code__.co_argcount + hasattr(made, "tag") + (nothing.__doc__ is None)

    assert Counted(f).call(X) == 1


def test_a_bound_method_has_its_functions_fields():
    class C:
        def method(self, x):
            """text"""
            return x

    c = C()

    def f(x, m):
        return x + len(m.__name__) + len(m.__doc__) + len(m.__qualname__) + hasattr(m, "tag")

    both = Counted(f)
    assert both.call(X, c.method) == 1
    C.method.tag = 1
    assert both.call(X, c.method) == 1
    C.method.__doc__ = "another text"
    assert both.call(X, c.method) == 1


def test_fields_of_classes():
    class Base:
        """base"""

    class Other:
        pass

    class C(Base):
        """text"""

    def f(x, c):
        cls = type(c)
        return x + len(cls.__name__) + len(cls.__qualname__) * 2 + len(cls.__module__) * 4 + len(cls.__doc__) * 8 + len(cls.__mro__) * 16 + len(cls.__bases__) * 32

    both = Counted(f)
    assert both.call(X, C()) == 1 and both.call(X, C()) == 0
    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(C, name, "a text that is longer than the one before: " + name)
        assert both.call(X, C()) == 1, name
    C.__bases__ = (Base, Other)
    assert both.call(X, C()) == 1


def test_names_of_builtins():
    def f(x):
        return x + len(int.__name__) + len(len.__name__) + len(np.add.__name__) + len(list.append.__name__) + len(dict.__doc__)

    assert Counted(f).call(X) == 1


# --- __getattribute__ in Python


class Config:
    attribute_map = {"n": "num"}

    def __init__(self):
        self.num = 4
        self.plain = 2

    def __getattribute__(self, key):
        if key != "attribute_map" and key in super().__getattribute__("attribute_map"):
            key = super().__getattribute__("attribute_map")[key]
        return super().__getattribute__(key)

    @property
    def computed(self):
        return self.n * 10

    def method(self, k):
        return self.n + k


def test_a_getattribute_in_python_is_followed():
    def f(x, c):
        return x * c.n + c.plain + c.computed + c.method(3) + getattr(c, "n", 0)

    both, config = Counted(f), Config()
    assert both.call(X, config) == 1
    config.num = 6
    assert both.call(X, config) == 0
    config.plain = 2.5
    assert both.call(X, config) == 1


def test_its_effects_happen_once_for_each_read():
    class Log:
        def __init__(self):
            self.seen, self.v = [], 1

        def __getattribute__(self, name):
            object.__getattribute__(self, "seen").append(name)
            return object.__getattribute__(self, name)

    def f(x, log):
        log.w = 5
        return x + log.v + log.v + log.w

    plain, traced = Log(), Log()
    compiled = framegate.compile(f)
    for _ in range(3):
        assert np.array_equal(f(X, plain), compiled(X, traced))
        assert object.__getattribute__(plain, "seen") == object.__getattribute__(traced, "seen")


def test_a_getattribute_that_does_not_find_it():
    class Both(Config):
        def __getattr__(self, name):
            return name

    def f(x, c):
        return x + len(c.zzz) + c.n

    def g(x, c):
        return x + getattr(c, "zzz", 5) + hasattr(c, "yyy")

    assert np.array_equal(framegate.compile(f)(X, Both()), f(X, Both()))
    assert np.array_equal(framegate.compile(g)(X, Config()), g(X, Config()))


@pytest.mark.parametrize("new", [False, True])
def test_a_getattribute_that_comes_later(new):
    class P:
        pass

    existing = P()

    def f(x):
        p = P() if new else existing
        p.x = 1
        return x + p.x

    compiled = framegate.compile(f)
    assert compiled(X).tolist() == [2.0] * 3
    P.__getattribute__ = lambda self, name: 42
    assert compiled(X).tolist() == f(X).tolist() == [43.0] * 3
    del P.__getattribute__
    assert compiled(X).tolist() == f(X).tolist() == [2.0] * 3


# --- descriptors in Python


class Scaled:
    def __init__(self, k):
        self.k = k

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, obj, owner):
        if obj is None:
            return self
        return obj.base * self.k



class Stored(Scaled):
    def __get__(self, obj, owner):
        return self if obj is None else obj.hidden

    def __set__(self, obj, value):
        obj.hidden = value * self.k


def holder():
    class Holder:
        lazy = Scaled(3)
        kept = Stored(5)

        def __init__(self):
            self.base = 2
            self.hidden = 1

    return Holder


def test_descriptors_of_the_user_are_followed():
    Holder = holder()

    def f(x, h):
        h.kept = h.base
        return x * h.lazy + h.kept + type(h).lazy.k

    both, h = Counted(f), Holder()
    assert both.call(X, h) == 1 and both.call(X, h) == 0
    Holder.__dict__["lazy"].k = 4
    assert both.call(X, h) in (0, 1)
    Holder.lazy = 7
    with pytest.raises(AttributeError):
        both.compiled(X, h)


@pytest.mark.parametrize("method", ["__get__", "__set__", "__delete__"])
@pytest.mark.parametrize("shadowed", [False, True])
def test_a_class_attribute_that_becomes_a_descriptor(method, shadowed):
    class Value:
        n = 1

    class Other:
        n = 10

    class Owner:
        value = Value()

        def __init__(self):
            if shadowed:
                self.value = Other()

    def f(x, owner):
        return x + owner.value.n

    compiled, owner = framegate.compile(f), Owner()
    for change in (lambda: None, lambda: setattr(Value, method, lambda self, *args: Other()), lambda: delattr(Value, method)):
        change()
        for _ in range(2):
            assert np.array_equal(compiled(X, owner), f(X, owner))


def test_enums_are_read_and_compared():
    import enum

    class Color(enum.Enum):
        RED = 1
        BLUE = 2.5

        def double(self):
            return self.value * 2

    def f(x, c):
        y = x * c.value + len(c.name)
        if c is Color.RED:
            y = y + 1
        if c == Color.BLUE:
            y = y + 2
        if c != Color.BLUE:
            y = y + 4
        return y + c.double() + Color.RED.value

    both = Counted(f)
    assert both.call(X, Color.RED) == 1 and both.call(X, Color.BLUE) == 1
    assert both.call(X, Color.RED) == 0
