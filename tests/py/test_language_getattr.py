"""getattr() with a default, hasattr() and what a property, a __getattribute__ or a __getattr__ raises while they ask; exceptions out of the middle of operations."""

import framegate
import numpy as np
import pytest
from support_engine import cap, check_same, needs_engine, observe

X = np.arange(3.0)


class Mapped:
    """Attribute names that stand for others, as in configuration objects."""

    names = {"a": "b"}

    def __init__(self):
        self.b = 3

    def __getattribute__(self, key):
        if key != "names" and key in super().__getattribute__("names"):
            key = super().__getattribute__("names")[key]
        return super().__getattribute__(key)


class Refusing:
    def __getattribute__(self, name):
        if name == "q":
            raise AttributeError(name)
        return object.__getattribute__(self, name)

    def __getattr__(self, name):
        return 5


class Property:
    def __init__(self, n):
        self.n = n

    @property
    def p(self):
        if self.n > 1:
            raise AttributeError("no")
        return self.n

    @property
    def v(self):
        raise ValueError("x")

    @property
    def deep(self):
        return self.p

    @property
    def absent(self):
        return self.nothing

    @property
    def kept(self):
        try:
            return self.p
        except AttributeError as error:
            return str(error)

    @property
    def derived(self):
        raise Derived("one", 2)


class Derived(AttributeError):
    pass


class Asked(Property):
    def __getattr__(self, name):
        if name == "zz":
            raise AttributeError(name)
        return name + "!"


class Above(Property):
    def above(self):
        return getattr(super(), "nope", 1), hasattr(super(), "above"), hasattr(super(), "__init__")


class Getter:
    def __init__(self, error):
        self.error = error

    def __get__(self, instance, owner):
        if instance is not None and instance.n > 1:
            raise self.error
        return self


class Described(Property):
    p = Getter(AttributeError("of a descriptor"))
    q = Getter(KeyError("of a descriptor"))


class DescribedAndAsked(Asked):
    p = Getter(AttributeError("of a descriptor"))
    q = Getter(KeyError("of a descriptor"))
    zz = Getter(AttributeError("zz"))


class Items:
    """Mappings and sequences of the user's, whose special methods raise."""

    def __init__(self, n):
        self.n = n

    def __getitem__(self, key):
        if key == "missing":
            raise KeyError(key)
        if key == "wrong":
            raise ValueError("wrong", self.n)
        return self.n

    def __contains__(self, key):
        if key == "wrong":
            raise TypeError("not here")
        return key == "there"

    def __add__(self, other):
        raise OverflowError(self.n)

    def __len__(self):
        raise RuntimeError("no length")

    def get(self, key, default=None):
        try:
            return self[key]
        except KeyError:
            return default


def plain_load(x, o):
    y = x * 2
    try:
        return y, o.p
    except AttributeError as error:
        return y, str(error), error.args


def nested_load(x, o):
    try:
        return x + 1, o.deep, o.kept
    except AttributeError as error:
        return x, str(error)


def default(x, o):
    names = ["p", "n", "zz", "b", "a", "q", "deep", "kept", "absent", "derived", "__class__"]
    return x + 1, [getattr(o, name, "d") if name != "__class__" else getattr(o, name, None) is type(o) for name in names]


def has(x, o):
    return x + 1, [hasattr(o, name) for name in ("p", "n", "zz", "b", "a", "q", "deep", "absent", "derived", "above")]


def other_exception(x, o):
    try:
        return x, getattr(o, "v", 1)
    except ValueError as error:
        return x + 1, str(error)


def through_a_descriptor(x, o):
    said = []
    for read in (lambda: o.p, lambda: o.q, lambda: getattr(o, "q", 1), lambda: hasattr(o, "q"), lambda: o.zz, lambda: getattr(o, "zz", 2)):
        try:
            value = read()
            said.append(value if isinstance(value, (int, str, bool)) else type(value).__name__)
        except (AttributeError, KeyError) as error:
            said.append((type(error).__name__, str(error)))
    return x + 1, said


def in_a_handler(x, o):
    try:
        raise KeyError("k")
    except KeyError as error:
        r = getattr(o, "p", "d"), hasattr(o, "absent")
        return x + 1, r, str(error)


def variable_after(x, o):
    found = getattr(o, "absent", None)
    try:
        found = o.nothing
    except AttributeError:
        found = found, "handled"
    return x * 2, found


def of_a_class(x, o):
    try:
        return x, type(o).nothing
    except AttributeError as error:
        return x + 1, str(error)


def of_values(x, o):
    said = []
    for value in (1, "s", [1], (), {}, None, 2.5):
        try:
            said.append(value.nothing)
        except AttributeError as error:
            said.append(str(error))
        said.append((hasattr(value, "nothing"), getattr(value, "__len__", None) is not None))
    return x + 1, said


def of_super(x, o):
    return x + 1, o.above() if hasattr(o, "above") and isinstance(o, Above) else None


OBJECTS = [Mapped, Refusing, lambda: Property(1), lambda: Property(2), lambda: Asked(1), lambda: Asked(2), lambda: Above(1), lambda: Above(2)]
OBJECTS += [lambda c=c, n=n: c(n) for c in (Described, DescribedAndAsked) for n in (1, 2)]
READERS = [plain_load, nested_load, default, has, other_exception, through_a_descriptor, in_a_handler, variable_after, of_a_class, of_values, of_super]


@pytest.mark.parametrize("function", READERS)
def test_attributes(function):
    gate = cap(function)
    for _ in range(2):
        for make in OBJECTS:
            check_same(observe(function, (X, make())), observe(gate, (X, make())), function.__name__)


def item_of(x, o):
    try:
        return x + 1, o["missing"]
    except KeyError as error:
        return x, str(error)


def item_not_handled(x, o):
    try:
        return x + 1, o["wrong"]
    except KeyError:
        return x


def item_by_get(x, o):
    return x + 1, o.get("missing"), o.get("missing", 4), o.get("else")


def contained(x, o):
    try:
        return x + 1, "there" in o, "wrong" in o
    except TypeError as error:
        return x, str(error)


def added(x, o):
    try:
        return o + 1
    except OverflowError as error:
        return x + 1, error.args


def length(x, o):
    try:
        return len(o)
    except RuntimeError as error:
        return x + 1, str(error)


def mapped(x, o):
    done = []
    try:
        done += list(map(lambda k: (done.append(k), o[k])[1], ["a", "wrong", "b"]))
    except ValueError as error:
        return x + 1, done, str(error)
    return x, done


def extended(x, o):
    done = [0]
    try:
        done.extend(o[k] for k in ["a", "wrong", "b"])
    except ValueError as error:
        return x + 1, done, str(error)
    return x, done


def by_key(x, o):
    try:
        return x, sorted(["b", "wrong", "a"], key=lambda k: o[k])
    except ValueError as error:
        return x + 1, str(error)


def end_of_iteration(x, o):
    def stops(k):
        if k == 2:
            raise StopIteration(k)
        return k

    try:
        return x + 1, list(map(stops, [1, 2, 3]))
    except (StopIteration, RuntimeError) as error:
        return x, str(error)


@pytest.mark.parametrize("function", [item_of, item_not_handled, item_by_get, contained, added, length, mapped, extended, by_key, end_of_iteration])
def test_operations(function):
    gate = cap(function)
    for n in (1, 2, 1):
        check_same(observe(function, (X, Items(n))), observe(gate, (X, Items(n))), function.__name__)


def reads_mapping_config(x, o):
    return x * getattr(o, "a", 1) + getattr(o, "nothing", 2)


@needs_engine
@pytest.mark.parametrize(
    "function, make",
    [(reads_mapping_config, Mapped), (default, lambda: Property(2)), (has, lambda: Property(2)), (plain_load, lambda: Property(2)), (item_by_get, lambda: Items(1)), (of_values, Mapped)],
)
def test_no_break_is_needed(function, make):
    assert framegate.explain(function)(X, make()).break_reasons == []


@needs_engine
def test_an_exception_that_may_be_an_answer_is_reported_as_a_break():
    class Ends:
        def __iter__(self):
            return self

        def __next__(self):
            raise StopIteration

    def function(x, o):
        return x + 1, next(o, 4)

    made = framegate.explain(function)(X, Ends())
    assert made.graph_break_count > 0 and made.result[1] == 4


@needs_engine
def test_a_class_that_gets_a_getattr_later():
    class Late:
        @property
        def p(self):
            raise AttributeError("p")

    def function(x, o):
        try:
            return x + 1, getattr(o, "p", "d"), o.p
        except AttributeError as error:
            return x, str(error)

    gate, o = framegate.compile(function), Late()
    for _ in range(2):
        check_same(observe(function, (X, o)), observe(gate, (X, o)), "without")
    Late.__getattr__ = lambda self, name: name.upper()
    for _ in range(2):
        check_same(observe(function, (X, o)), observe(gate, (X, o)), "with")
    del Late.__getattr__
    check_same(observe(function, (X, o)), observe(gate, (X, o)), "without it again")
