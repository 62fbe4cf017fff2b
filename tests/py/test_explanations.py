"""What a miss says: the value by its name in the user's code, what was expected and seen in words, the user's own line, and what to do."""

import array
import inspect
import json
import textwrap
import types

import framegate
import numpy as np
import pytest
from framegate._core import GuardDesc, guard_kinds


class Thing:
    def __init__(self):
        self.scale = 2.0
        self.name = "a"
        self.parts = [1, 2]


def use(x, k, fn, thing):
    y = x + k
    if fn is not None:
        y = fn(y)
    if thing.name == "a":
        y = y * thing.scale
    for part in thing.parts:
        y = y + part
    return y


def line_of(text):
    lines, first = inspect.getsourcelines(use)
    (at,) = [i for i, line in enumerate(lines) if text in line]
    return f"test_explanations.py:{first + at}"


def failing(args, change=None):
    thing = Thing()
    compiled = framegate.compile(use)
    compiled(np.ones(3), 2, None, thing)
    tree = framegate.cache_entries(compiled)[0].guards
    if change is not None:
        change(thing)
    lines = tree.explain(*args(thing))
    assert lines and not tree.check(*args(thing))
    return lines[0]


@pytest.mark.parametrize(
    "args, change, words",
    [
        (lambda t: (np.ones(4), 2, None, t), None, ["x is a numpy.ndarray of float64, shape (3,)", "saw size 4 instead of 3 in dimension 0", line_of("x + k")]),
        (lambda t: (np.ones(3, "f4"), 2, None, t), None, ["saw dtype float32 instead of float64", line_of("x + k")]),
        (lambda t: (np.ones((3, 1)), 2, None, t), None, ["saw ndim 2 instead of 1"]),
        (lambda t: ([1.0], 2, None, t), None, ["x is a numpy.ndarray", "saw list"]),
        (lambda t: (np.ones(3), 2.5, None, t), None, ["type(k) is int; saw float", "pass one type", line_of("x + k")]),
        (lambda t: (np.ones(3), 2, abs, t), None, ["fn is None", line_of("fn is not None")]),
        (lambda t: (np.ones(3), 2, lambda y: y, t), None, ["fn is None; saw function", "once, outside"]),
        (lambda t: (np.ones(3), 2, None, t), lambda t: setattr(t, "name", "b"), ["thing.name == 'a'; saw 'b'", line_of("thing.name")]),
        (lambda t: (np.ones(3), 2, None, t), lambda t: setattr(t, "scale", 2), ["type(thing.scale) is float; saw int", line_of("thing.scale")]),
        (lambda t: (np.ones(3), 2, None, t), lambda t: t.parts.append(3), ["len(thing.parts) == 2; saw length 3", line_of("thing.parts")]),
        (lambda t: (np.ones(3), 2, None, t), lambda t: delattr(t, "name"), ["thing.name"]),
        (lambda t: (np.ones(3), 2, None, object()), None, ["type(thing) is", "saw object"]),
    ],
)
def test_a_miss_names_source_values_and_line(args, change, words):
    text = failing(args, change)
    for word in words:
        assert word in text, text


def test_the_line_is_the_users_where_a_library_asked():
    class Odd:
        def __init__(self):
            self.indent = "    "

    def f(x, odd):
        return x + len(textwrap.dedent(odd.indent + "a"))

    def g(x, encoder):
        return x + len(json.JSONEncoder.default.__name__) + encoder.n  # a library's class, reached from here

    odd = Odd()
    compiled = framegate.compile(f)
    compiled(np.ones(2), odd)
    for tree in [entry.guards for entry in framegate.cache_entries(compiled)]:
        assert "textwrap.py" not in str(tree), str(tree)
    odd.n = 1
    compiled = framegate.compile(g)
    compiled(np.ones(2), odd)
    assert "/json/" not in "".join(line.rpartition("(")[2] for line in str(framegate.cache_entries(compiled)[0].guards).splitlines())


def test_why_is_one_paragraph_for_each_outcome():
    compiled = framegate.compile(use)
    thing = Thing()
    assert "no entries yet" in framegate.why(compiled)(np.ones(3), 2, None, thing)
    compiled(np.ones(3), 2, None, thing)
    assert "would hit entry" in framegate.why(compiled)(np.ones(3), 2, None, thing)
    text = framegate.why(compiled)(np.ones(4), 2, None, thing)
    assert "would not hit" in text and "saw size 4 instead of 3" in text and "\n" not in text
    assert "cannot be bound" in framegate.why(compiled)() or "do not fit" in framegate.why(compiled)()


class Loud:
    def __del__(self):
        pass


def refused(kind, *argument, seen, **numbers):
    """What the condition says of a value that it refuses."""
    desc = GuardDesc(slot_names=("x", "y"))
    desc.guard(kind, desc.source("arg"), *argument, **numbers)
    (line,) = desc.explain(seen)
    return line


def refused_relation(kind, seen, array=False, **more):
    desc = GuardDesc(slot_names=("x", "y", "z"))
    sources = tuple(desc.source("arg", -1, None, i) for i in range(len(seen)))
    for source in sources if array else ():
        desc.guard("type_is", source, np.ndarray)
    desc.relation(kind, sources, **more)
    (line,) = desc.explain(seen)
    return line


def namesake(name):
    return type(name, (), {})


BASE = np.arange(8.0)
FIRST = namesake("Same")
LINES = {
    "present": (lambda: refused("present", seen=()), "expected x is there; saw nothing there; whether it is there"),
    "absent": (lambda: refused("absent", seen=(5,)), "expected x is not there; saw 5; whether it is there"),
    "type_is": (lambda: refused("type_is", int, seen=("a",)), "expected type(x) is int; saw str; each type"),
    "type_is, None": (lambda: refused("type_is", int, seen=(None,)), "saw NoneType; None and a value need versions"),
    "type_is, local class": (lambda: refused("type_is", FIRST, seen=(namesake("Same")(),)), "expected type(x) is Same; saw another class of that name, Same"),
    "is": (lambda: refused("is", len, seen=(abs,)), "expected x is len; saw builtin function abs; another object"),
    "is, a method": (lambda: refused("is", len, seen=([].append,)), "saw builtin method append of list"),
    "is, a module": (lambda: refused("is", len, seen=(np,)), "saw module numpy"),
    "is, a lambda": (lambda: refused("is", use, seen=(lambda: 1,)), "test_explanations.use; saw function <lambda>.<locals>.<lambda>; another function stands here"),
    "is_not_none": (lambda: refused("is_not_none", seen=(None,)), "expected x is not None; saw None; None and a value"),
    "is_subtype": (lambda: refused("is_subtype", dict, seen=(int,)), "expected issubclass(x, dict); saw class int; the class has other bases"),
    "is_no_subtype": (lambda: refused("is_no_subtype", int, seen=(bool,)), "expected not issubclass(x, int); saw class bool; the class has other bases"),
    "equals": (lambda: refused("equals", 5, seen=(6,)), "expected x == 5; saw 6; the value decided"),
    "equals, NaN": (lambda: refused("equals", 0.5, seen=(float("nan"),)), "expected x == 0.5; saw nan;"),
    "equals, long": (lambda: refused("equals", 2**70, seen=(-2**70,)), f"expected x == {2**70}; saw {-2**70};"),
    "equals, very long": (lambda: refused("equals", 5, seen=(10**5000,)), "expected x == 5; saw 0x"),
    "truth": (lambda: refused("truth", lo=1, seen=([],)), "expected bool(x) is True; saw a list of length 0; a branch"),
    "length": (lambda: refused("length", lo=2, seen=([1],)), "expected len(x) == 2; saw length 1; a container"),
    "length, of what has none": (lambda: refused("length", lo=2, seen=(7,)), "expected len(x) == 2; saw 7;"),
    "dict_has": (lambda: refused("dict_has", "a", seen=({},)), "expected 'a' in x; saw a dict without it; other members"),
    "dict_lacks": (lambda: refused("dict_lacks", "a", seen=({"a": 1},)), "expected 'a' not in x; saw a dict that has it; other members"),
    "dict_keys": (lambda: refused("dict_keys", ("a", "b"), seen=({"b": 1, "a": 1},)), "expected tuple(x) == ('a', 'b'); saw a dict of 2: 'b', 'a'; a container"),
    "dict_keys, one": (lambda: refused("dict_keys", ("a",), seen=({},)), "expected tuple(x) == ('a',); saw a dict of 0; a container"),
    "set_has": (lambda: refused("set_has", 1, seen=({2},)), "expected 1 in x; saw a set without it; other members"),
    "set_lacks": (lambda: refused("set_lacks", 1, seen=(frozenset([1]),)), "expected 1 not in x; saw a frozenset that has it; other members"),
    "set_items": (lambda: refused("set_items", (1,), seen=({"b"},)), "expected x == set((1,)); saw a set of 1: 'b'; a container"),
    "attr_has": (lambda: refused("attr_has", "a", seen=(5,)), "expected x has its own attribute 'a'; saw an int without it; set every attribute"),
    "attr_lacks": (lambda: refused("attr_lacks", "scale", seen=(Thing(),)), "expected x has no attribute 'scale' of its own; saw a Thing that has it; set every"),
    "drops_quietly": (lambda: refused("drops_quietly", lo=0, seen=(Loud(),)), "expected x may be dropped without running code; saw a Loud whose end may run code; what it"),
    "attr_drops_quietly": (lambda: refused("attr_drops_quietly", "a", seen=(types.SimpleNamespace(a=Loud()),)), "expected attribute 'a' of x may be dropped"),
    "item_drops_quietly": (lambda: refused("item_drops_quietly", "a", seen=({"a": Loud()},)), "expected item 'a' of x may be dropped without running code; saw a dict with one"),
    "is_nan": (lambda: refused("is_nan", seen=(5.0,)), "expected isnan(x); saw 5.0; a branch"),
    "in_range": (lambda: refused("in_range", lo=1, hi=9, seen=(10,)), "expected 1 <= x <= 9; saw 10; a branch"),
    "iterator_at": (lambda: refused("iterator_at", (0, 2), seen=(iter([1]),)), "expected x is at (0, 2); saw a list_iterator at (0, 1); a branch"),
    "accepts": (lambda: refused("accepts", callable, seen=(5,)), "expected callable accepts x; saw 5; a guard of the program's own"),
    "accepts, a lambda": (lambda: refused("accepts", lambda v: v > 3, seen=(1,)), "expected function <lambda>.<locals>.<lambda> accepts x; saw 1; a guard"),
    "tensor": (lambda: refused("tensor", BASE, seen=(BASE.astype("f4"),)), "expected x is a numpy.ndarray of float64, shape (8,), strides (8,); saw dtype float32 instead of float64; a tensor"),
    "tensor, strides": (lambda: refused("tensor", BASE[:4], seen=(BASE[::2],)), "saw stride 16 instead of 8 in dimension 0"),
    "abc_token": (lambda: token_line(), "expected abc.get_cache_token() == -1; saw "),
    "same": (lambda: refused_relation("same", (1, 2, 1)), "expected x is y is z; saw two objects: x and y; which arguments"),
    "distinct": (lambda: refused_relation("distinct", (1, BASE, BASE)), "expected x, y, z are all different objects; saw one object: y and z; which arguments"),
    "no_dict_of": (
        lambda: dict_line(),
        "expected the first of x, y has no __dict__ in common with the others; saw the second is the __dict__ of the first: x and y; which",
    ),
    "storage_distinct": (lambda: refused_relation("storage_distinct", (BASE[:2], BASE[2:]), True), "expected x, y do not share a storage; saw one storage: x and y; which"),
    "memory_apart": (lambda: refused_relation("memory_apart", (BASE[:3], BASE[2:]), True), "expected x, y have no memory in common; saw memory in common: x and y; which"),
    "memory_apart, unknown": (lambda: refused_relation("memory_apart", (BASE, np.frombuffer(memoryview(array.array("d", [1])))), True), "saw memory that cannot be told from the others': y"),
    "holds": (lambda: refused_relation("holds", (3, 4), expression="v0 v1 % 0 =="), "expected ((x % y) == 0); saw values 3, 4; a branch"),
    "holds, of no number": (lambda: refused_relation("holds", ("a", 4), expression="v0 v1 % 0 =="), "saw values 'a', 4;"),
}


def token_line():
    desc = GuardDesc()
    desc.guard("abc_token", lo=-1)
    (line,) = desc.explain(())
    assert "registrations; a class was registered with an abstract base class" in line
    return line


def dict_line():
    thing = Thing()
    return refused_relation("no_dict_of", (thing, thing.__dict__))


@pytest.mark.parametrize("name", LINES)
def test_every_kind_says_what_was_expected_and_seen_and_what_to_do(name):
    make, words = LINES[name]
    line = make()
    assert words in line, line
    assert "?'" not in line and "@'" not in line and "%l" not in line and "something else" not in line, line


def test_every_kind_has_a_line_here():
    said = {name.split(",")[0] for name in LINES}
    assert said | {"gradient", "torch_state", "torch_globals"} == set(guard_kinds)


def test_values_on_the_stack_and_marks_are_words():
    def f(x, it):
        for v in it:
            print(end="")
            x = x + v
        return x

    made = framegate.explain(f)(np.ones(2), range(2))
    text = "".join(map(str, made.guards))
    assert "on the stack>" in text and "?'" not in text and "@'" not in text and "arg[" not in text, text
