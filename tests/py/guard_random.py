"""Random calls, random descriptions of them, changes to their objects, and the comparison of a merged program with the plain reference."""

from __future__ import annotations

import abc
import array
import collections
import itertools
import random
import sys
import types
import weakref

import guard_reference as reference
import numpy as np
from framegate._core import GuardDesc, GuardProgram, guard_accessors, guard_unbound

NAN = float("nan")
NAN_OTHER = reference.struct.unpack("<d", (0x7FF8000000000123).to_bytes(8, "little"))[0]
SCALARS = [
    None, True, False, 0, 1, 7, -3, 300, 2**62, 2**63, -(2**63), 2**64 + 1, 2**200, 0.0, -0.0, 1.0, 0.5, NAN, NAN_OTHER, float("inf"),
    1j, complex(0.0, -0.0), complex(-0.0, 0.0), complex(NAN, 1), "", "a", "b", "lr", "a string", "\u00e9", "\u4e2d", "\U0001f600", "\udc80",
    b"", b"a", b"\x00'\"", (), (1,), (1.0,), (True,), ("a", (2, b"x")), Ellipsis,
]
KEYS = ["a", "b", "lr", "x y", 0, 1, 1.0, True, None, 2.5, b"a", (1, "a"), (1.0, "a"), int, dict, 2**70, Ellipsis, 1j]
NAMES = ["a", "b", "lr", "missing"]


class Plain:
    shared = 1

    def method(self):
        return self

    @property
    def computed(self):
        return getattr(self, "a", 5)

    static = staticmethod(len)


class Child(Plain):
    lr = "class"


class Slots:
    __slots__ = ("a", "b")


class SlotsAndDict(Slots):
    pass


class MyDict(dict):
    def __getitem__(self, key):
        raise AssertionError("user code was called")

    __len__ = __iter__ = __contains__ = __getitem__


class MyList(list):
    def __getitem__(self, key):
        raise AssertionError("user code was called")

    __len__ = __iter__ = __getitem__


class EvilKey:
    """Hash of "a"; its comparison must never run."""

    def __hash__(self):
        return hash("a")

    def __eq__(self, other):
        raise AssertionError("user code was called")


class QuietKey:
    """Same hash, compared by identity only."""

    def __hash__(self):
        return hash("a")


class Finalized:
    def __del__(self):
        pass


def told(reference):
    """Somebody who is called when a thing is gone."""


def make_loud(rng, again):
    """Something whose end may run code, in something, or something that only looks so."""
    value = Plain()
    value.a = rng.choice((Finalized(), weakref.ref(value), memoryview(b"a"), iter(Counted()), again()))
    if rng.random() < 0.3:
        KEPT.append(weakref.ref(value, rng.choice((told, told, None))))
        del KEPT[:-50]
    return rng.choice((value, value, value.a, [value], {"lr": value}, (value,), {"a": value.a}, value.method, staticmethod(value), slice(value), collections.defaultdict(list, {"lr": value})))


KEPT: list = []


class Raises:
    @property
    def a(self):
        raise ValueError("no")


SHARED = np.arange(12.0)
TARGETS: list = [None] * 4


def outer(rng):
    a, b = rng.choice(SCALARS), rng.choice(SCALARS)

    def inner(x, y=3, *, z=4):
        return a, b, x

    return inner


class Counted:
    def __getitem__(self, i):
        return i


def make_iterator(rng, again):
    """An iterator, perhaps under way, a deque or a view."""
    made = [again() for _ in range(rng.randrange(4))]
    table = {i: again() for i in range(rng.randrange(4))}
    iterator = rng.choice((
        lambda: iter(made), lambda: iter(tuple(made)), lambda: reversed(made), lambda: reversed(tuple(made)), lambda: iter("abc"), lambda: iter("\u00e9\u4e2d"),
        lambda: iter(b"abc"), lambda: iter(bytearray(b"abc")), lambda: iter(table), lambda: iter(table.values()), lambda: reversed(table.items()),
        lambda: iter(collections.OrderedDict(table)), lambda: iter({1, 2, 3}), lambda: iter(range(2, 9, 3)), lambda: iter(range(2**65)),
        lambda: iter(range(2**62, 2**65)), lambda: iter(range(2**70, 2**70 + 3)), lambda: enumerate(made), lambda: enumerate(made, 2**70), lambda: zip(made, "ab"),
        lambda: zip(strict=True), lambda: map(type, made), lambda: filter(callable, made), lambda: iter(Counted()), lambda: iter(int, 1), lambda: itertools.count(3),
        lambda: itertools.count(2.5), lambda: itertools.count(1, 2), lambda: itertools.count(2**70), lambda: itertools.repeat(1), lambda: itertools.repeat("a", 3),
        lambda: itertools.chain(made, "ab"), lambda: itertools.islice(made, 1, 3), lambda: itertools.cycle("ab"), lambda: iter(collections.deque(made)),
        lambda: collections.deque(made), lambda: collections.deque(range(rng.randrange(300))), lambda: table.keys(), lambda: table.values(),
        lambda: collections.OrderedDict(table).items(), lambda: array.array("i", [1, 2]), lambda: len, lambda: "".join, lambda: make_iterator.__code__,
    ))()
    if hasattr(iterator, "__next__"):
        for _ in range(rng.choice((0, 0, 1, 2, 5))):
            next(iterator, None)
    if rng.random() < 0.2:
        made.append(1)
        table[9] = 1
    return iterator


def make_value(rng: random.Random, depth: int = 0):
    pick = rng.randrange(30 if depth < 3 else 6)
    again = lambda: make_value(rng, depth + 1)  # noqa: E731
    if pick < 6:
        return rng.choice(SCALARS)
    if pick < 8:
        return {rng.choice(KEYS): again() for _ in range(rng.randrange(5))}
    if pick == 8:
        return MyDict({rng.choice(KEYS): again() for _ in range(rng.randrange(4))})
    if pick == 9:
        made = collections.OrderedDict((rng.choice(KEYS), again()) for _ in range(rng.randrange(4)))
        if made and rng.random() < 0.5:
            made.move_to_end(next(iter(made)))
        return made
    if pick == 10:
        return [again() for _ in range(rng.randrange(4))]
    if pick == 11:
        return MyList(again() for _ in range(rng.randrange(3)))
    if pick == 12:
        return tuple(again() for _ in range(rng.randrange(4)))
    if pick in (13, 14):
        made = rng.choice((Plain, Child))()
        for name in rng.sample(NAMES[:3], rng.randrange(4)):
            setattr(made, name, again())
        if rng.random() < 0.3:
            made.__dict__  # the dict exists from now on
        if rng.random() < 0.1:
            made.__dict__ = {"a": again(), **({3: 1} if rng.random() < 0.5 else {})}
        return made
    if pick == 15:
        made = rng.choice((Slots, SlotsAndDict))()
        for name in rng.sample(["a", "b"], rng.randrange(3)):
            setattr(made, name, again())
        return made
    if pick == 16:
        made = outer(rng)
        if rng.random() < 0.3:
            made.__defaults__ = None
        if rng.random() < 0.3:
            made.__kwdefaults__ = None
        return made
    if pick == 17:
        return Plain().method
    if pick == 18:
        return rng.choice((range(0, 5, 2), range(3), slice(1, None), slice(0, 4, 2), range(2**70), range(2**62)))
    if pick == 19:
        return rng.choice((np, types, int, Plain, Child, len, Plain.__dict__["static"], Plain.__dict__["computed"], property()))
    if pick == 20:
        if rng.random() < 0.3:
            base = rng.choice((SHARED, np.arange(12.0)))
            return rng.choice((base[:6], base[6:], base[::2], base[::-1], base[3:3], base.reshape(3, 4).T, base))
        return rng.choice((np.zeros((2, 3)), np.zeros((3, 2)).T, np.ones(4, "f4"), np.ones((2, 3), order="F"), np.array(1), np.zeros((2, 3), ">f8")))
    if pick == 21:
        return rng.choice(({EvilKey(): 1}, {QuietKey(): 1}, {("a", EvilKey()): 1}, {EvilKey(): 1, 5: 2}))
    if pick >= 28:
        return make_loud(rng, again)
    if pick >= 24:
        return make_iterator(rng, again)
    if pick == 22 and rng.random() < 0.6:
        if rng.random() < 0.5:
            return types.MappingProxyType({rng.choice(KEYS): again() for _ in range(rng.randrange(3))})
        target = Plain()
        TARGETS[rng.randrange(len(TARGETS))] = target  # lives on for a while
        return weakref.ref(target)
    if pick == 22:
        return rng.choice((set(rng.sample(KEYS, rng.randrange(6))), frozenset(rng.sample(KEYS, rng.randrange(6))), set(range(40)), set(map(str, range(9))), bytearray(b"x")))
    return rng.choice((Raises(), object(), types.CellType(), types.CellType(again()) if depth < 3 else None))


def make_call(rng: random.Random) -> dict:
    func = outer(rng)
    args = [make_value(rng) for _ in range(3)]
    if rng.random() < 0.5:
        args[1] = args[0]
    if isinstance(args[0], Plain) and rng.random() < 0.5:
        args[2] = args[0].__dict__
    if rng.random() < 0.2:
        args[2] = reference.ABSENT
    return {"args": args, "closure": func.__closure__, "globals": {"G": make_value(rng), "a": 1}, "builtins": {"len": len}, "func": func}


def native(call: dict) -> dict:
    return {**call, "args": tuple(guard_unbound if x is reference.ABSENT else x for x in call["args"])}


def tensor_text(value):
    desc = GuardDesc()
    desc.guard("tensor", desc.source("arg"), value)
    return desc.to_text().split(" tensor ", 1)[1].split("\n")[0]


INDEXED = {"arg": 4, "freevar": 3, "list_item": 4, "tuple_item": 4, "range_part": 3, "slice_part": 3, "property_part": 3, "dict_key": 4, "iterator_part": 2, "iterator_item": 4, "deque_item": 300,
           "function_part": 6, "code_part": 6, "type_part": 2}
FITTING = {
    types.MappingProxyType: ["proxy_mapping"], weakref.ref: ["weakref"], types.CodeType: ["code_consts", "code_part"], types.BuiltinFunctionType: ["builtin_self"], collections.deque: ["deque_item"],
    type({}.keys()): ["view_dict"], type({}.values()): ["view_dict"], type({}.items()): ["view_dict"], collections.abc.Iterator: ["iterator_part", "iterator_part", "iterator_item"],
    dict: ["dict_item", "dict_item", "dict_key"], list: ["list_item"], tuple: ["tuple_item"], types.CellType: ["cell_contents"], types.ModuleType: ["module_dict"],
    types.FunctionType: ["code", "defaults", "kwdefaults", "closure", "func_globals", "func_builtins", "function_part"], types.MethodType: ["method_func", "method_self"],
    range: ["range_part"], slice: ["slice_part"], property: ["property_part"], staticmethod: ["descr_func"], classmethod: ["descr_func"], type: ["type_lookup", "type_lookup", "mro", "bases", "type_part"],
}
ROOTS = ["arg", "arg", "arg", "freevar", "globals", "builtins", "function", "const"]


def random_desc(rng: random.Random, call: dict, impure: bool = True) -> GuardDesc:
    """A description of the call, mostly true of it."""
    desc = GuardDesc(slot_names=("x", "y", "z"))
    seen: list = []  # (number, value)
    tensors = []
    for _ in range(rng.randrange(1, 10)):
        deeper = [item for item in seen if item[1] is not reference.ABSENT and item[1] is not reference.WRONG]
        if not deeper or rng.random() < 0.3:
            accessor, parent, parent_value = rng.choice(ROOTS), None, None
        else:
            parent, parent_value = rng.choice(deeper)
            options = ["type", "instance_attr"] + (["getattr"] if impure and rng.random() < 0.3 else [])
            for kind, names in FITTING.items():
                if isinstance(parent_value, kind):
                    options += names * 3
            if type(parent_value) in (Slots, SlotsAndDict):
                desc.guard("type_is", parent, type(parent_value))
                options += ["slot_attr"] * 6
            accessor = rng.choice(options) if rng.random() < 0.93 else rng.choice(guard_accessors)
            if accessor in ROOTS or (accessor == "getattr" and not impure) or (accessor == "slot_attr" and "slot_attr" not in options):
                continue
        key, index = None, 0
        if accessor in INDEXED:
            index = rng.randrange(INDEXED[accessor])
            if accessor in ("list_item", "tuple_item") and rng.random() < 0.3:
                index = -1 - index
        elif accessor == "dict_item":
            if isinstance(parent_value, dict) and dict.__len__(parent_value) and rng.random() < 0.7:
                key = rng.choice(list(dict.keys(parent_value)))
            else:
                key = rng.choice([*KEYS, "G", "len"])
        elif accessor in ("type_lookup", "instance_attr", "getattr"):
            key = rng.choice([*NAMES, "method", "computed", "shared", "static"])
        elif accessor == "const":
            key = rng.choice((int, Plain, np, len, 5, "a"))
        elif accessor == "slot_attr":
            index = rng.choice((16, 24))
        try:
            number = desc.source(accessor, -1 if parent is None else parent, key, index)
        except NotImplementedError:
            continue
        operand = key if key is not None or accessor in ("dict_item", "const") else index
        value = reference.read(accessor, parent_value, operand, call)
        seen.append((number, value))
        for _ in range(rng.randrange(3)):
            random_condition(rng, desc, number, value, tensors)
        if rng.random() < 0.4 and value is not reference.ABSENT and value is not reference.WRONG:
            try:
                desc.output(number)
            except NotImplementedError:
                assert "weakref" in desc.to_text()
    present = [item for item in seen if item[1] is not reference.ABSENT and item[1] is not reference.WRONG]
    if len(present) >= 2 and rng.random() < 0.3:
        chosen = rng.sample(present, 2) if rng.random() < 0.7 else present
        same = len({id(value) for _, value in chosen}) == 1
        desc.relation("same" if same or rng.random() < 0.1 else "distinct", tuple(number for number, _ in chosen))
    if present and rng.random() < 0.4:
        random_expression(rng, desc, rng.sample(present, rng.randrange(1, min(3, len(present)) + 1)))
    arrays = [(number, value) for number, value in present if type(value) is np.ndarray]
    if len(arrays) >= 2 and rng.random() < 0.8:
        for number, value in arrays:
            desc.guard("type_is", number, np.ndarray)
        desc.relation(rng.choice(("memory_apart", "storage_distinct")), tuple(number for number, _ in arrays))
    if len(present) >= 2 and rng.random() < 0.3:
        desc.relation("no_dict_of", tuple(number for number, _ in (rng.sample(present, 2) if rng.random() < 0.5 else present)))
    if rng.random() < 0.1:
        desc.guard("abc_token", lo=abc.get_cache_token() + (rng.random() < 0.2))
    if impure and present and rng.random() < 0.2:
        number, value = rng.choice(present)
        desc.guard("accepts", number, rng.choice((is_plain, is_plain, refuses_strings, bool)))
    return desc


def is_plain(value):
    return not isinstance(value, type)


def refuses_strings(value):
    if isinstance(value, str):
        raise TypeError("a string")
    return [value]


def random_expression(rng, desc, chosen):
    """Arithmetic over what the sources are, compared with its value now, or with another one."""
    words = []
    for i, (number, value) in enumerate(chosen):
        if type(value) is np.ndarray:
            desc.guard("type_is", number, np.ndarray)
            words += [f"ndim{i}", f"size{i}.{rng.randrange(3)}", f"stride{i}.0", f"offset{i}"]
        if isinstance(value, (list, tuple, dict, str, bytes)):
            words.append(f"len{i}")
        words.append(f"v{i}")
    words += ["0", "1", "-7", "3", "9223372036854775807", "-9223372036854775808", "0.5", "float:0x7ff8000000000000"]
    text, tensors = random_postfix(rng, words, 3), [type(value) is np.ndarray for _, value in chosen]
    try:
        now = reference.expression_value(text, [value for _, value in chosen], tensors)
    except reference.Wrong:
        now = 0
    if rng.random() < 0.8 and now == now and abs(now) < 2**63:
        text += f" {now + 0!r} {'==' if rng.random() < 0.9 else '!='}"
    desc.relation("holds", tuple(number for number, _ in chosen), expression=text)


def random_postfix(rng, words, depth):
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(words)
    if rng.random() < 0.2:
        return f"{random_postfix(rng, words, depth - 1)} {rng.choice(('neg', 'abs', 'not'))}"
    operation = rng.choice(("+", "-", "*", "//", "%", "min", "max", "==", "!=", "<", "<=", ">", ">=", "and", "or"))
    return f"{random_postfix(rng, words, depth - 1)} {random_postfix(rng, words, depth - 1)} {operation}"


def random_condition(rng, desc, number, value, tensors):
    if value is reference.ABSENT:
        desc.guard("absent" if rng.random() < 0.8 else "present", number)
        return
    other = value if rng.random() < 0.85 else make_value(rng, 2)
    kinds = ["present", "type_is", "type_is", "type_is", "is_not_none", "truth", "length", "dict_has", "dict_lacks", "attr_has", "attr_lacks", "in_range",
             "drops_quietly", "drops_quietly", "attr_drops_quietly", "item_drops_quietly"]
    if type(other) in (int, bool, float, complex, str, bytes):
        kinds += ["equals"] * 6
    if type(other) is float:
        kinds += ["is_nan"]
    if isinstance(other, dict):
        kinds += ["dict_keys"] * 3
    if isinstance(other, (set, frozenset)):
        kinds += ["set_has", "set_lacks", "set_items", "set_items"] * 3
    if isinstance(other, Plain) and other.__class__ is type(other):
        kinds += ["attr_has", "attr_lacks", "attr_drops_quietly"] * 3
    if isinstance(other, dict):
        kinds += ["dict_has", "dict_lacks", "item_drops_quietly"] * 3
    state = reference.iterator_state(other)
    if state is not None:
        kinds += ["iterator_at"] * 8
    if isinstance(other, type):
        kinds += ["is_subtype", "is_no_subtype"] * 3
    if type(other) is np.ndarray:
        kinds += ["tensor"] * 6
    if other is None or isinstance(other, (type, types.FunctionType, types.ModuleType, types.BuiltinFunctionType, Plain)):
        kinds += ["is"] * 5
    kind = rng.choice(kinds)
    try:
        if kind == "type_is":
            desc.guard(kind, number, type(other))
        elif kind in ("is", "equals", "tensor"):
            desc.guard(kind, number, other)
        elif kind in ("set_has", "set_lacks"):
            desc.guard(kind, number, rng.choice([*KEYS, *other]))
        elif kind == "iterator_at":
            desc.guard(kind, number, state)
        elif kind == "set_items":
            items = list(other)
            rng.shuffle(items)
            desc.guard(kind, number, tuple(items))
        elif kind in ("is_subtype", "is_no_subtype"):
            bases = (int, dict, Plain, Child, *type.__getattribute__(other, "__mro__"))
            desc.guard(kind, number, rng.choice([base for base in bases if (base in other.__mro__) is (kind == "is_subtype")] or bases))
        elif kind == "truth":
            desc.guard(kind, number, lo=int(bool(other)) if type(other) in reference.TRUTHS else 1)
        elif kind == "length":
            desc.guard(kind, number, lo=next((reference.length(base, other) or 0 for base in reference.SIZED if isinstance(other, base)), 2))
        elif kind in ("dict_has", "dict_lacks", "item_drops_quietly"):
            desc.guard(kind, number, rng.choice([*KEYS, *dict.keys(other), *dict.keys(other)] if isinstance(other, dict) else KEYS))
        elif kind == "dict_keys":
            desc.guard(kind, number, tuple(key for key, _ in reference.stored_pairs(other)))
        elif kind in ("attr_has", "attr_lacks", "attr_drops_quietly"):
            desc.guard(kind, number, rng.choice(NAMES if kind == "attr_lacks" else NAMES[:2]))
        elif kind == "drops_quietly":
            desc.guard(kind, number, lo=rng.choice((0, 0, 0, 25, 10**9) if not 10 < sys.getrefcount(value) < 60 else (0, 10**9)))
        elif kind == "in_range":
            desc.guard(kind, number, lo=-5, hi=rng.choice((5, 400, 2**63 - 1)))
        else:
            desc.guard(kind, number)
    except NotImplementedError:
        pass  # an object that guards may not hold


def mutate(rng: random.Random, call: dict) -> None:
    """Change something in the graph in place."""
    todo, found, ids = [*call["args"], call["globals"]], [], set()
    while todo:
        value = todo.pop()
        if id(value) in ids:
            continue
        ids.add(id(value))
        if isinstance(value, (list, dict, Plain, Slots)) and not isinstance(value, EvilKey):
            found.append(value)
        if isinstance(value, (list, tuple)):
            todo += list(type(value).__mro__[-2].__iter__(value)) if isinstance(value, list) else list(value)
        elif isinstance(value, dict):
            todo += list(dict.values(value))
        elif isinstance(value, Plain):
            todo += list(value.__dict__.values())
    if not found or rng.random() < 0.3:
        call["args"][rng.randrange(3)] = make_value(rng)
        return
    value = rng.choice(found)
    if isinstance(value, list):
        list.append(value, rng.choice(SCALARS)) if rng.random() < 0.5 or not list.__len__(value) else list.pop(value)
    elif isinstance(value, dict):
        if any(type(key) in (EvilKey, QuietKey) or type(key) is tuple for key in dict.keys(value)):
            return
        if dict.__len__(value) and rng.random() < 0.5:
            key = rng.choice(list(dict.keys(value)))
            dict.__setitem__(value, key, rng.choice(SCALARS)) if rng.random() < 0.5 else type(value).__delitem__(value, key)
        else:
            type(value).__setitem__(value, rng.choice(KEYS), rng.choice(SCALARS))
    else:
        name = rng.choice(("a", "b"))
        if hasattr(type(value), name) and not isinstance(value, Slots):
            return
        setattr(value, name, rng.choice(SCALARS)) if rng.random() < 0.6 or not hasattr(value, name) else delattr(value, name)


def names_of_test_classes() -> dict:
    module = __name__
    return {f"{module}:{cls.__name__}": cls for cls in (Plain, Child, Slots, SlotsAndDict, MyDict, MyList, Raises, Counted, Finalized)} | {f"{module}:{user.__name__}": user for user in (is_plain, refuses_strings)}


def compare(descs: list[GuardDesc], call: dict, rng: random.Random) -> int:
    arguments = native(call)
    expected = 0
    for i, desc in enumerate(descs):
        guards = reference.parse(desc.to_text(), names_of_test_classes())
        want = reference.evaluate(guards, call, tensor_text)
        if "?'" in desc.to_text():
            # An identity without a name cannot be told from its text: the check itself is the measure for the program.
            want = desc.check(**arguments)
        assert desc.check(**arguments) is want, (desc.to_text(), call, desc.explain(**arguments))
        assert (desc.explain(**arguments) == []) is want, (desc.to_text(), desc.explain(**arguments))
        expected |= want << i
    program = GuardProgram(descs)
    for _ in range(3):
        assert program.alive(**arguments) == expected, (bin(program.alive(**arguments)), bin(expected), program.dump())
        program = GuardProgram(descs, program)  # what failed comes first
    order = list(range(len(descs)))
    rng.shuffle(order)
    result, winner, inputs = program.eval(**arguments, order=order)
    assert (result == "hit") is (expected != 0)
    if expected:
        assert winner == next(i for i in order if expected >> i & 1)
        guards = reference.parse(descs[winner].to_text(), names_of_test_classes())
        if not any(node.accessor in ("getattr", "const") for node in guards.nodes) and "?'" not in descs[winner].to_text():
            values = []
            for node in guards.nodes:
                parent = None if node.parent is None else values[node.parent]
                bad = parent is reference.ABSENT or parent is reference.WRONG
                values.append(reference.WRONG if bad else reference.read(node.accessor, parent, node.operand, call))
            assert [id(values[i]) for i in guards.outputs] == [id(value) for value in inputs], (descs[winner].to_text(), values, inputs)
    return expected
