"""How instances and classes come to be: what __new__ gives and which __init__ follows, special methods that are generators, classes whose MRO is not there yet."""

import warnings

import pytest

framegate = pytest.importorskip("framegate")


def outcome(function, *args):
    try:
        return function(*args)
    except Exception as e:
        return type(e).__name__, str(e)


def same(function, *args):
    """What a plain call gives, three calls of a compiled function give, and three under an interception; all of them see fresh classes."""
    plain = outcome(function, *args)
    compiled = framegate.compile(function)
    assert [outcome(compiled, *args) for _ in range(3)] == [plain] * 3
    with framegate.intercept(filter=lambda code: code.co_filename == __file__):
        assert [outcome(function, *args) for _ in range(3)] == [plain] * 3
    return plain


# ---- __new__ that gives something else

LIST = [1, 2, 3]


class Base:
    def __new__(cls, what):
        if what == "list":
            return LIST
        if what == "stranger":
            return object.__new__(Stranger)
        if what == "type":
            return Derived
        return object.__new__({"derived": Derived, "quiet": Quiet, "same": Base, "odd": Odd}.get(what, cls))


class Derived(Base):
    def __init__(self, what):
        self.seen = what


class Quiet(Base):
    pass


class Odd(Base):
    def __init__(self, what, /):
        raise LookupError(what)


class Stranger:
    def __init__(self, *args):
        self.seen = "never"


def describe(value):
    return type(value).__name__ if isinstance(value, Base | Stranger) else value, getattr(value, "seen", None) if not isinstance(value, type) else None


def make_from_base(what):
    return describe(Base(what))


def make_from_derived(what):
    return describe(Derived(what))


def make_from_quiet(what):
    return describe(Quiet(what))


def make_in_a_callee(what):
    def inner():
        return Base(what)

    return describe(inner()), [describe(Base(w)) for w in (what, "plain")]


@pytest.mark.parametrize("make", [make_from_base, make_from_derived, make_from_quiet, make_in_a_callee])
@pytest.mark.parametrize("what", ["list", "stranger", "type", "derived", "quiet", "same", "odd", "plain"])
def test_the_init_that_follows_is_that_of_the_class_of_what_new_gave(make, what):
    same(make, what)


def test_new_of_a_class_made_in_the_function():
    def run(what):
        class C:
            def __new__(cls, arg):
                return object.__new__(D if isinstance(arg, int) else cls)

        class D(C):
            def __init__(self, arg):
                self.foo = arg

        return C(what).__dict__, D(what).__dict__

    assert same(run, 1) == ({"foo": 1}, {"foo": 1})
    assert same(run, "x") == ({}, {"foo": "x"})


def test_a_subclass_that_gets_an_init_later():
    class B:
        def __new__(cls, sub):
            return object.__new__(sub)

    class S(B):
        pass

    compiled = framegate.compile(lambda: vars(B(S)))
    assert [compiled(), compiled()] == [{}, {}]
    S.__init__ = lambda self, sub: setattr(self, "seen", sub is S)
    assert [compiled(), compiled()] == [{"seen": True}] * 2


# ---- special methods that are generators


class GeneratorInit:
    def __init__(self):
        yield 1


class GeneratorOperators:
    def __add__(self, other):
        yield other

    def __new__(cls):
        return object.__new__(cls)


class GeneratorNew:
    def __new__(cls):
        yield cls


def init_is_a_generator():
    GeneratorInit()
    return 5


def init_is_a_generator_in_a_callee():
    return [init_is_a_generator(), 1]


def add_is_a_generator():
    return [*(GeneratorOperators() + 3)], NotImplemented is not None


def add_is_a_generator_in_a_callee():
    def inner(a):
        a + 3
        return NotImplemented

    return inner(GeneratorOperators()) is NotImplemented


def new_is_a_generator():
    return [*GeneratorNew()] == [GeneratorNew]


@pytest.mark.parametrize(
    "function",
    [init_is_a_generator, init_is_a_generator_in_a_callee, add_is_a_generator, add_is_a_generator_in_a_callee, new_is_a_generator],
)
def test_special_methods_that_are_generators(function):
    same(function)


# ---- classes whose MRO is not there yet, or whose dict has keys with code

QUESTIONS = {
    "super_missing": lambda cls: super(cls, cls).missing,
    "super_there": lambda cls: super(cls, cls).__init__ is not None,
    "attribute": lambda cls: cls.x,
    "issubclass": lambda cls: issubclass(cls, int),
    "issubclass_of_it": lambda cls: issubclass(bool, cls),
    "isinstance": lambda cls: isinstance(1, cls),
    "its_own_instance": lambda cls: isinstance(cls, type),
    "mro": lambda cls: cls.__mro__,
    "getattr": lambda cls: getattr(cls, "x", 3),
    "call": lambda cls: cls(),
    "new": lambda cls: object.__new__(cls),
    "raise": lambda cls: outcome(raising, cls),
}


def raising(cls):
    raise cls


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_a_class_whose_mro_its_metaclass_is_working_out(question):
    def run():
        said = []

        class Meta(type):
            def mro(cls):
                if cls.__mro__ is None:
                    said.append(outcome(question, cls))
                return type.mro(cls)

        class X(metaclass=Meta):
            x = 1

        return said

    same(run)


def test_a_key_of_a_class_that_has_code_of_its_own():
    class Key:
        def __hash__(self):
            return hash("mykey")

        def __eq__(self, other):
            asked.append(other)
            return False

    class Parent:
        mykey = "from Parent"

    asked = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # since 3.13 the interpreter says what it thinks of it
        X = type("X", (Parent,), {Key(): 5})
    asked.clear()

    def read():
        return X.mykey, X().mykey, hasattr(X, "other")

    assert same(read) == ("from Parent", "from Parent", False)
