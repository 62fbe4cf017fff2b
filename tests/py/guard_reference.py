"""A plain evaluator of guard texts: the oracle of the guard tests.

It reads the text form with its own small parser and answers by ordinary Python operations on the objects, one condition after
the other, with no merging, no tables and no direct memory reads (except for `slot_attr`, which is an offset by definition).

A source is one of three things: a value, ABSENT (its parent could have one and has none), or WRONG (its parent is missing or of a
kind that cannot have one, or only a user's ``__eq__`` could tell). An entry matches when every condition holds, every source that
something depends on has a value, and every source with an `absent` condition is ABSENT.
"""

from __future__ import annotations

import abc
import array
import ast
import copy
import ctypes
import gc
import itertools
import math
import operator
import re
import struct
import sys
import types
import weakref
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from guard_reference_drop import drops_quietly

ABSENT = type("ABSENT", (), {"__repr__": lambda self: "ABSENT"})()
WRONG = type("WRONG", (), {"__repr__": lambda self: "WRONG"})()
UNBOUND = type("UNBOUND", (), {"__repr__": lambda self: "UNBOUND"})()

SCALARS = (int, bool, float, complex, str, bytes)
SAFE = {int, bool, float, complex, str, bytes, type(None), type(Ellipsis)}
TOKEN = re.compile(
    r"""\s*(?:(?P<identity>[@?](?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"))
    |(?P<string>b?(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"))
    |(?P<bits>float:0x[0-9a-f]+)
    |(?P<number>-?(?:0x[0-9a-f]+|\d+(?:\.\d+)?(?:e[-+]?\d+)?))
    |(?P<word>[A-Za-z_]\w*)
    |(?P<mark>[=(),:-]))""",
    re.X,
)


@dataclass
class Node:
    accessor: str
    parent: int | None
    operand: Any


@dataclass
class Guards:
    nodes: list[Node] = field(default_factory=list)
    conditions: list[tuple[int | None, str, Any]] = field(default_factory=list)
    relations: list[tuple[str, list[int], str | None]] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)


class Line:
    def __init__(self, text: str):
        self.tokens = []
        at = 0
        text = text.rstrip()
        while at < len(text):
            match = TOKEN.match(text, at)
            assert match, text[at:]
            self.tokens.append((match.lastgroup, match.group(match.lastgroup)))
            at = match.end()

    def peek(self) -> str:
        return self.tokens[0][1] if self.tokens else ""

    def take(self) -> str:
        return self.tokens.pop(0)[1]

    def node(self) -> int:
        return int(self.take()[1:])

    def constant(self, resolve) -> Any:
        kind, text = self.tokens.pop(0)
        if kind == "identity":
            return resolve(ast.literal_eval(text[1:]))
        if kind == "string":
            return ast.literal_eval(text)
        if kind == "bits":
            return struct.unpack("<d", int(text[6:], 16).to_bytes(8, "little"))[0]
        if kind == "number":
            if not text.lstrip("-").startswith("0x") and any(c in text for c in ".e"):
                return float(text)
            return int(text, 0)
        if text == "complex":
            self.take()
            real = self.constant(resolve)
            self.take()
            imag = self.constant(resolve)
            self.take()
            return complex(real, imag)
        if text == "(":
            items = []
            while self.peek() != ")":
                items.append(self.constant(resolve))
                assert self.take() == ","
            self.take()
            return tuple(items)
        return {"None": None, "True": True, "False": False, "Ellipsis": Ellipsis, "NotImplemented": NotImplemented}[text]


def find_identity(name: str, objects: dict[str, Any]) -> Any:
    if name in objects:
        return objects[name]
    module, _, path = name.partition(":")
    at = sys.modules.get(module, UNBOUND)
    for part in path.split(".") if path else ():
        at = getattr(at, part, UNBOUND)
    return at


def parse(text: str, objects: dict[str, Any] | None = None) -> Guards:
    """objects: what unbound names stand for."""
    guards = Guards()
    lines = text.split("\n")
    assert lines[0] == "framegate-guards 1"

    def resolve(name):
        return find_identity(name, objects or {})

    for row in lines[1:]:
        line = Line(row)
        if not line.tokens:
            continue
        head = line.take()
        if head == "names":
            continue
        if head == "output":
            guards.outputs.append(line.node())
        elif head == "relation":
            kind = line.take()
            ids = []
            while re.fullmatch(r"n\d+", line.peek()):
                ids.append(line.node())
            guards.relations.append((kind, ids, line.constant(resolve) if kind == "holds" else None))
        elif head == "guard":
            on = None if line.peek() == "-" else line.peek()
            line.take()
            kind = line.take()
            operand: Any = None
            if kind in ("truth", "length", "abc_token", "drops_quietly"):
                operand = line.constant(resolve)
            elif kind in ("in_range", "torch_globals"):
                operand = (line.constant(resolve), line.constant(resolve))
            elif kind in ("type_is", "is", "is_subtype", "is_no_subtype", "equals", "dict_has", "dict_lacks", "dict_keys", "set_has", "set_lacks", "set_items", "attr_has", "attr_lacks", "attr_drops_quietly", "item_drops_quietly", "iterator_at", "accepts"):
                operand = line.constant(resolve)
            elif kind == "tensor":
                operand = (row.split(" tensor ", 1)[1], line.constant(resolve), line.constant(resolve))
            guards.conditions.append((None if on is None else int(on[1:]), kind, operand))
        else:
            assert int(head[1:]) == len(guards.nodes)
            assert line.take() == "="
            accessor = line.take()
            parent = line.node() if re.fullmatch(r"n\d+", line.peek()) else None
            operand = line.constant(resolve) if line.tokens else None
            guards.nodes.append(Node(accessor, parent, operand))
    return guards


def same_bits(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) is float:
        return struct.pack("d", a) == struct.pack("d", b)
    if type(a) is complex:
        return struct.pack("dd", a.real, a.imag) == struct.pack("dd", b.real, b.imag)
    if type(a) in (int, str, bytes):
        return a == b
    if type(a) is tuple:
        return len(a) == len(b) and all(map(same_bits, a, b))
    return False


def stored_pairs(container: dict) -> list[tuple[Any, Any]]:
    """The dict's own items, in its own order; an OrderedDict's in the order of its list."""
    if isinstance(container, OrderedDict):
        return [(key, dict.__getitem__(container, key)) for key in OrderedDict.__iter__(container)]
    return list(dict.items(container))


def key_equal(key: Any, stored: Any) -> bool | None:
    """None: a user's comparison would decide."""
    if key is stored:
        return True
    if type(stored) is tuple:
        if type(key) is not tuple:
            return False
        for one, other in zip(key, stored):
            equal = key_equal(one, other)
            if equal is not True:
                return equal
        return len(key) == len(stored)
    if type(stored) in SAFE:
        return type(key) in SAFE and key == stored
    if type(stored).__eq__ is object.__eq__:
        return False
    return None


def dict_find(container: dict, key: Any) -> Any:
    """The value, ABSENT, or WRONG. Keys of other hashes never meet; of those of the same hash any may be met first."""
    undecided = False
    wanted = hash(key)
    for stored, value in dict.items(container):
        if stored is key:
            return value
        if type(stored) in SAFE or isinstance(stored, type) or type(stored) is tuple or hash(stored) == wanted:
            if hash(stored) != wanted:
                continue
            equal = key_equal(key, stored)
            if equal:
                return value
            undecided = undecided or equal is None
    return WRONG if undecided else ABSENT


def found_in(container: dict, key: Any) -> bool:
    found = dict_find(container, key)
    return found is not ABSENT and found is not WRONG


def instance_dict(value: Any) -> dict:
    if type(value) is types.FunctionType:  # asking would make one
        found = pointer(value, FUNCTION_PARTS[4])
        return {} if found is ABSENT else found
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return found if isinstance(found, dict) else dict(found)


SEQUENCE_ITERATORS = {type(iter(made)): kind for made, kind in (((), tuple), ([], list), ("", str), ("\u00e9", str), (b"", bytes), (bytearray(), bytearray))}
TABLE_ITERATORS = {type(make({})) for make in (lambda d: iter(d), lambda d: iter(d.values()), lambda d: iter(d.items()), reversed, lambda d: reversed(d.values()), lambda d: reversed(d.items()))}
LIST_REVERSED = type(reversed([]))
ORDERED = type(iter(OrderedDict()))
CALLABLE = type(iter(int, 1))
DEQUE_ITERATOR = type(iter(deque()))
RANGES = (type(iter(range(0))), type(iter(range(2**70))))
SEQUENCE = type(iter(type("Counted", (), {"__getitem__": lambda self, i: i})()))
SET_ITERATOR = type(iter(set()))
FUNCTION_PARTS, CODE_NAMES = {4: 88, 5: 112}, 96


def word(value: Any, offset: int) -> int:
    return ctypes.c_ssize_t.from_address(id(value) + offset).value


def pointer(value: Any, offset: int) -> Any:
    address = ctypes.c_void_p.from_address(id(value) + offset).value
    return ABSENT if not address else ctypes.cast(address, ctypes.py_object).value


def code_part(code: types.CodeType, n: int) -> Any:
    return (code.co_names, pointer(code, CODE_NAMES), code.co_filename, code.co_name, code.co_qualname, code.co_exceptiontable)[n]


def iterator_parts(value: Any) -> list:
    """As runtime/cpython/iterators.h lists them; offsets where Python shows no more than a copy."""
    kind = type(value)
    if kind in SEQUENCE_ITERATORS or kind is LIST_REVERSED or kind is reversed or kind is SEQUENCE:
        return [pointer(value, 24)]
    if kind in TABLE_ITERATORS or kind is SET_ITERATOR:
        return [pointer(value, 16)]
    if kind is ORDERED:
        return [pointer(value, 24), pointer(value, 56)]
    if kind is enumerate and iterator_state(value) is None:  # beyond 64 bits nothing of it is read
        return []
    if kind is enumerate or kind is zip:
        return [pointer(value, 24)]
    if kind is map or kind is CALLABLE or kind is itertools.chain:
        return [pointer(value, 16), pointer(value, 24)]
    if kind is filter:
        return [pointer(value, 24), pointer(value, 16)]
    if kind is itertools.count:
        return [pointer(value, 24), pointer(value, 32)]
    if kind is itertools.cycle:
        return [pointer(value, 16), pointer(value, 24)]
    if kind is itertools.repeat or kind is itertools.islice:
        return [pointer(value, 16)]
    if kind is DEQUE_ITERATOR:
        return [value.__reduce__()[1][0]]
    return []


def iterator_item(value: Any, ahead: int) -> Any:
    """By walking a copy."""
    if type(value) not in (type(iter(())), type(iter([])), LIST_REVERSED):
        return WRONG
    return next(itertools.islice(copy.copy(value), ahead, None), ABSENT)


def iterator_state(value: Any) -> tuple | None:
    kind = type(value)
    if kind in SEQUENCE_ITERATORS or kind is LIST_REVERSED:
        if pointer(value, 24) is ABSENT:
            return (-1, 0)
        return (word(value, 16), operator.length_hint(value))
    if kind in RANGES:
        rest = value.__reduce__()
        whole, at = rest[1][0], rest[2] or 0
        n = (whole[-1] - whole[0]) // whole.step + 1 if whole else 0
        state = (whole.start + whole.step * at, whole.step, n - at)
        return state if all(-(2**63) <= number < 2**63 for number in (whole.start, n, at, *state)) else None
    if kind in TABLE_ITERATORS or kind is SET_ITERATOR:
        container = pointer(value, 16)
        if container is ABSENT:
            return (0, 1)
        base = dict if isinstance(container, dict) else type(container).__mro__[-2]
        return (word(value, 48 if isinstance(container, dict) else 40), int(word(value, 24) == base.__len__(container)))
    if kind is ORDERED:
        container = pointer(value, 24)
        return (int(container is ABSENT or word(value, 32) == dict.__len__(container)),)
    if kind is reversed or kind is SEQUENCE:
        return (-1 if pointer(value, 24) is ABSENT else word(value, 16),)
    if kind is enumerate:
        at = value.__reduce__()[1][1]
        return (at,) if -(2**63) <= at < 2**63 else None
    if kind is zip:
        return (int(len(value.__reduce__()) == 3),)
    if kind in (map, filter, CALLABLE, itertools.chain):
        return ()
    if kind is itertools.count:
        return () if pointer(value, 24) is not ABSENT else (word(value, 16),)
    if kind is itertools.repeat:
        return (word(value, 24),)
    if kind is itertools.islice:
        return tuple(word(value, at) for at in (24, 32, 40, 48))
    if kind is itertools.cycle:
        return (word(value, 32), int(ctypes.c_int.from_address(id(value) + 40).value != 0))
    if kind is DEQUE_ITERATOR:
        return (operator.length_hint(value), int(word(value, 40) == word(value.__reduce__()[1][0], 56)))
    return None


def read(accessor: str, parent: Any, operand: Any, call: dict) -> Any:
    if operand is UNBOUND:
        return WRONG
    if accessor == "arg":
        args = call["args"]
        return args[operand] if operand < len(args) else ABSENT
    if accessor == "freevar":
        closure = call.get("closure") or ()
        return closure[operand] if operand < len(closure) else ABSENT
    if accessor in ("globals", "builtins", "function"):
        value = call.get({"function": "func"}.get(accessor, accessor))
        return ABSENT if value is None else value
    if accessor == "const":
        return operand
    if accessor == "cell_contents":
        if type(parent) is not types.CellType:
            return WRONG
        try:
            return parent.cell_contents
        except ValueError:
            return ABSENT
    if accessor == "dict_item":
        return dict_find(parent, operand) if isinstance(parent, dict) else WRONG
    if accessor in ("list_item", "tuple_item"):
        kind = list if accessor == "list_item" else tuple
        if not isinstance(parent, kind):
            return WRONG
        n = kind.__len__(parent)
        return kind.__getitem__(parent, operand) if -n <= operand < n else ABSENT
    if accessor == "type":
        return type(parent)
    if accessor == "type_lookup":
        if not isinstance(parent, type):
            return WRONG
        for base in type.__getattribute__(parent, "__mro__"):
            if operand in base.__dict__:
                return base.__dict__[operand]
        return ABSENT
    if accessor == "instance_attr":
        if isinstance(parent, type):
            return parent.__dict__.get(operand, ABSENT)
        return dict_find(instance_dict(parent), operand)
    if accessor == "slot_attr":
        address = ctypes.c_void_p.from_address(id(parent) + operand).value
        return ctypes.cast(address, ctypes.py_object).value if address else ABSENT
    if accessor == "module_dict":
        return types.ModuleType.__getattribute__(parent, "__dict__") if isinstance(parent, types.ModuleType) else WRONG
    if accessor in ("code", "defaults", "kwdefaults", "closure", "func_globals", "func_builtins"):
        if type(parent) is not types.FunctionType:
            return WRONG
        value = getattr(parent, f"__{accessor.removeprefix('func_')}__")
        return ABSENT if value is None else value
    if accessor in ("method_func", "method_self"):
        return getattr(parent, f"__{accessor[7:]}__") if type(parent) is types.MethodType else WRONG
    if accessor == "descr_func":
        return parent.__func__ if type(parent) in (staticmethod, classmethod) else WRONG
    if accessor == "property_part":
        if type(parent) is not property:
            return WRONG
        value = (parent.fget, parent.fset, parent.fdel)[operand]
        return ABSENT if value is None else value
    if accessor == "type_part":
        if not isinstance(parent, type) or not type.__dict__["__flags__"].__get__(parent) & 1 << 9:  # made at run time
            return WRONG
        return type.__dict__[("__name__", "__qualname__")[operand]].__get__(parent)
    if accessor == "dict_key":
        if not isinstance(parent, dict):
            return WRONG
        keys = [key for key, _ in stored_pairs(parent)]
        return keys[operand] if operand < len(keys) else ABSENT
    if accessor == "proxy_mapping":
        # The proxy gives nobody its mapping: what it refers to is asked of the collector.
        return gc.get_referents(parent)[0] if type(parent) is types.MappingProxyType else WRONG
    if accessor == "mro":
        return type.__getattribute__(parent, "__mro__") if isinstance(parent, type) else WRONG
    if accessor == "code_consts":
        return parent.co_consts if type(parent) is types.CodeType else WRONG
    if accessor == "weakref":
        if not isinstance(parent, weakref.ref):
            return WRONG
        target = weakref.ref.__call__(parent)
        return ABSENT if target is None else target
    if accessor == "iterator_part":
        parts = iterator_parts(parent)
        return WRONG if operand >= len(parts) else parts[operand]
    if accessor == "iterator_item":
        return iterator_item(parent, operand)
    if accessor == "deque_item":
        if not isinstance(parent, deque):
            return WRONG
        return deque.__getitem__(parent, operand) if operand < deque.__len__(parent) else ABSENT
    if accessor == "view_dict":
        if not isinstance(parent, (type({}.keys()), type({}.values()), type({}.items()))):
            return WRONG
        return next(found for found in gc.get_referents(parent) if isinstance(found, dict))
    if accessor == "function_part":
        if type(parent) is not types.FunctionType:
            return WRONG
        if operand >= 4:  # the two that asking would make
            return pointer(parent, FUNCTION_PARTS[operand])
        return getattr(parent, ("__name__", "__qualname__", "__module__", "__doc__")[operand])
    if accessor == "code_part":
        if type(parent) is not types.CodeType:
            return WRONG
        return code_part(parent, operand)
    if accessor == "builtin_self":
        if not isinstance(parent, types.BuiltinFunctionType):
            return WRONG
        return ABSENT if parent.__self__ is None else parent.__self__
    if accessor == "bases":
        return type.__getattribute__(parent, "__bases__") if isinstance(parent, type) else WRONG
    if accessor in ("range_part", "slice_part"):
        if type(parent) is not (range if accessor == "range_part" else slice):
            return WRONG
        return (parent.start, parent.stop, parent.step)[operand]
    assert accessor == "getattr", accessor
    try:
        return getattr(parent, operand)
    except MemoryError:
        raise
    except AttributeError:
        return ABSENT
    except Exception:
        return WRONG


REFERENCES_HERE = 8  # about so many are the oracle's own: operands of random conditions are far from the counts of their values
TRUTHS = (type(None), bool, int, float, complex, str, bytes, tuple, list, dict, set, frozenset)
SIZED = (tuple, list, dict, set, frozenset, str, bytes, bytearray, deque, array.array, range)


def length(base: type, value: Any) -> int | None:
    if base is not range:
        return base.__len__(value)
    n = (value[-1] - value[0]) // value.step + 1 if value else 0
    return n if n < 2**63 else None


def holds(kind: str, value: Any, operand: Any, tensor_text) -> bool:
    if operand is UNBOUND:
        return False
    if kind == "present":
        return True
    if kind == "type_is":
        return type(value) is operand
    if kind == "is":
        return value is operand
    if kind in ("is_subtype", "is_no_subtype"):
        return isinstance(value, type) and (operand in type.__getattribute__(value, "__mro__")) is (kind == "is_subtype")
    if kind == "is_not_none":
        return value is not None
    if kind == "equals":
        return same_bits(value, operand)
    if kind == "truth":
        return type(value) in TRUTHS and bool(value) == bool(operand)
    if kind == "length":
        for base in SIZED:
            if isinstance(value, base):
                return length(base, value) == operand
        return False
    if kind == "dict_has":
        return isinstance(value, dict) and found_in(value, operand)
    if kind == "dict_lacks":
        return isinstance(value, dict) and dict_find(value, operand) is ABSENT
    if kind in ("set_has", "set_lacks", "set_items"):
        if not isinstance(value, (set, frozenset)):
            return False
        members = dict.fromkeys(type(value).__mro__[-2].__iter__(value))
        members = {member: member for member in members}
        if kind == "set_items":
            found = [dict_find(members, item) for item in operand]
            return len(members) == len(operand) and all(map(same_bits, found, operand))
        return found_in(members, operand) if kind == "set_has" else dict_find(members, operand) is ABSENT
    if kind == "dict_keys":
        return isinstance(value, dict) and same_bits(tuple(key for key, _ in stored_pairs(value)), operand)
    if kind in ("attr_has", "attr_lacks"):
        found = value.__dict__.get(operand, ABSENT) if isinstance(value, type) else dict_find(instance_dict(value), operand)
        return found is ABSENT if kind == "attr_lacks" else found is not ABSENT and found is not WRONG
    if kind == "iterator_at":
        return iterator_state(value) == operand
    if kind == "drops_quietly":
        return drops_quietly(value) or (operand > 0 and sys.getrefcount(value) > operand + REFERENCES_HERE)
    if kind in ("attr_drops_quietly", "item_drops_quietly"):
        found = read("instance_attr", value, operand, {}) if kind == "attr_drops_quietly" else dict_find(value, operand) if isinstance(value, dict) else WRONG
        return found is ABSENT or (found is not WRONG and drops_quietly(found))
    if kind == "is_nan":
        return type(value) is float and math.isnan(value)
    if kind == "in_range":
        return type(value) is int and operand[0] <= value <= operand[1]
    assert kind == "tensor", kind
    return type(value) is operand[2] and tensor_text(value) == operand[0]


def accepts(user: Any, value: Any) -> bool:
    try:
        return bool(user(value))
    except MemoryError:
        raise
    except Exception:
        return False


class Wrong(Exception):
    """A step of an expression that has no value."""


OPERATIONS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod, "neg": operator.neg, "abs": abs, "min": min, "max": max,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "and": lambda a, b: a and b, "or": lambda a, b: a or b, "not": operator.not_,
}


def fits(value: Any) -> Any:
    if type(value) is int and not -(2**63) <= value < 2**63:
        raise Wrong
    return value


def expression_operand(word: str, values: list, tensors: list) -> Any:
    name, node, dim = re.fullmatch(r"([a-z]+)(\d+)(?:\.(\d+))?", word).groups()
    value = values[int(node)]
    if name == "v":
        if type(value) not in (int, bool, float):
            raise Wrong
        return fits(value)
    if name == "len":
        for base in SIZED:
            if isinstance(value, base):
                n = length(base, value)
                if n is None:
                    raise Wrong
                return n
        raise Wrong
    if not tensors[int(node)] or type(value) is not np.ndarray:
        raise Wrong
    if name == "ndim":
        return value.ndim
    if name == "offset":
        return value.ctypes.data
    if int(dim) >= value.ndim:
        raise Wrong
    return (value.shape if name == "size" else value.strides)[int(dim)]


def expression_value(text: str, values: list, tensors: list) -> Any:
    stack: list[Any] = []
    for word in text.split():
        if word in OPERATIONS:
            takes = 1 if word in ("neg", "abs", "not") else 2
            operands = stack[-takes:]
            del stack[-takes:]
            if word in ("//", "%") and (float in map(type, operands) or not operands[1]):
                raise Wrong
            stack.append(fits(OPERATIONS[word](*operands)))
        elif word[0].isalpha() and not word.startswith("float:"):
            stack.append(expression_operand(word, values, tensors))
        else:
            stack.append(Line(word).constant(None))
    return stack.pop()


def expression_holds(text: str, values: list, tensors: list) -> bool:
    try:
        return bool(expression_value(text, values, tensors))
    except Wrong:
        return False


def tensor_of(guards: Guards, node: int) -> bool:
    """Whether another condition says that the source is an array."""
    return any(on == node and (kind == "tensor" or (kind == "type_is" and operand is np.ndarray)) for on, kind, operand in guards.conditions)


def owner(array: np.ndarray) -> Any:
    while isinstance(array, np.ndarray):
        if array.base is None:
            return array if array.flags.owndata else None
        array = array.base.obj if isinstance(array.base, memoryview) else array.base
    return array if isinstance(array, (bytes, bytearray)) else None


def arrays_apart(values: list, tensors: list, kind: str) -> bool:
    if not all(tensors) or not all(isinstance(value, np.ndarray) and owner(value) is not None for value in values):
        return False
    for i, one in enumerate(values):
        for other in values[:i]:
            if owner(one) is owner(other) and (kind == "storage_distinct" or (one.size and other.size and np.may_share_memory(one, other))):
                return False
    return True


def attributes_of(value: Any) -> Any:
    if type(value) is dict:
        return None
    return gc.get_referents(type.__dict__["__dict__"].__get__(value))[0] if isinstance(value, type) else instance_dict(value)


def no_dict_of(values: list) -> bool:
    first, *others = values
    mine = attributes_of(first)
    if mine is first:
        return False
    for other in others:
        its = None if other is first else attributes_of(other)
        if other is mine or (its is not None and (its is first or its is mine)):
            return False
    return True


def evaluate(guards: Guards, call: dict, tensor_text=lambda value: None) -> bool:
    """call: args (a list), and optionally closure, globals, builtins, func. tensor_text gives a tensor's metadata as the text form has it."""
    n = len(guards.nodes)
    wants: list[set[str]] = [set() for _ in range(n)]
    types_of: dict[int, set] = {}
    for on, kind, operand in guards.conditions:
        if operand is UNBOUND:
            return False
        if kind == "abc_token" and operand != abc.get_cache_token():
            return False
        if on is not None:
            wants[on].add("absent" if kind == "absent" else "present")
            if kind == "type_is":
                types_of.setdefault(on, set()).add(operand)
    for _, ids, _ in guards.relations:
        for i in ids:
            wants[i].add("present")
    for i in guards.outputs:
        wants[i].add("present")
    for i in reversed(range(n)):
        parent = guards.nodes[i].parent
        if wants[i] and parent is not None:
            wants[parent].add("present")
    if any(len(want) == 2 for want in wants):
        return False

    values: list[Any] = [WRONG] * n
    for i, node in enumerate(guards.nodes):
        if not wants[i]:
            continue
        parent = None if node.parent is None else values[node.parent]
        if node.operand is UNBOUND:
            return False
        if node.accessor == "slot_attr" and types_of.get(node.parent) != {type(parent)}:
            return False
        values[i] = read(node.accessor, parent, node.operand, call)
        if values[i] is WRONG or (values[i] is ABSENT) != ("absent" in wants[i]):
            return False
        for on, kind, operand in guards.conditions:
            if on == i and kind not in ("absent", "accepts") and not holds(kind, values[i], operand, tensor_text):
                return False
    for kind, ids, text in guards.relations:
        objects = [id(values[i]) for i in ids]
        if kind == "holds" and not expression_holds(text, [values[i] for i in ids], [tensor_of(guards, i) for i in ids]):
            return False
        if kind in ("memory_apart", "storage_distinct") and not arrays_apart([values[i] for i in ids], [tensor_of(guards, i) for i in ids], kind):
            return False
        if kind == "no_dict_of" and not no_dict_of([values[i] for i in ids]):
            return False
        if kind == "same" and len(set(objects)) != 1:
            return False
        if kind == "distinct" and len(set(objects)) != len(objects):
            return False
    return all(accepts(operand, values[on]) for on, kind, operand in guards.conditions if kind == "accepts")
