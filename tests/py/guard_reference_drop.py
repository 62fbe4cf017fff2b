"""What may be dropped without running a user's code: the oracle of the guards of that kind, by ordinary Python operations.

It follows the rules of guards/guard_drop.c, limits included, since a no is always allowed there: both must say the same yes and the same no.
"""

from __future__ import annotations

import collections
import ctypes
import gc
import sys
import types
import weakref
from typing import Any

import numpy as np

MAX_OBJECTS, MAX_DEPTH = 2000, 12
HEAPTYPE, HAVE_GC = 1 << 9, 1 << 14
TRIVIAL = (int, float, bool, str, bytes, complex, type(None))


class Plain:
    pass


def dealloc(kind: type) -> int:
    return ctypes.c_void_p.from_address(id(kind) + 48).value or 0


CLASS_DEALLOC, TUPLE_DEALLOC, RECORD_DEALLOC = dealloc(Plain), dealloc(tuple), dealloc(type(sys.version_info))
HOLDERS = {type(made) for made in (
    iter([]), iter(()), iter(set()), iter({}), iter({}.items()), iter({}.values()), enumerate(()), zip(), map(len, ()), filter(None, ()), reversed(()), {}.keys(), {}.values(), {}.items(),
    types.MappingProxyType({}), iter("a"), iter("\u4e2d"), staticmethod(len), classmethod(len), property(), super(Plain, Plain()), reversed([]), collections.deque(), collections.defaultdict(), int | str)}


class Walk:
    def __init__(self):
        self.left = MAX_OBJECTS

    def one(self) -> bool:
        self.left -= 1
        return self.left >= 0

    def several(self, n: int) -> bool:
        if n > self.left:
            return False
        self.left -= n
        return True

    def maybe(self, value: Any, depth: int) -> bool:
        return type(value) in TRIVIAL or self.walk(value, depth)

    def items(self, values, depth: int) -> bool:
        values = list(values)
        return self.several(len(values)) and all(self.maybe(value, depth) for value in values)

    def table(self, table: dict, depth: int) -> bool:
        return self.several(dict.__len__(table)) and all(self.maybe(key, depth) and self.maybe(value, depth) for key, value in dict.items(table))

    def attributes(self, value: Any, depth: int) -> bool:
        if not type(value).__dictoffset__:
            return True
        found = object.__getattribute__(value, "__dict__")
        return all(self.one() and self.maybe(part, depth) for part in found.values())

    def function(self, value: types.FunctionType, depth: int) -> bool:
        from guard_reference import ABSENT, FUNCTION_PARTS, pointer

        parts = [value.__closure__, value.__defaults__, value.__kwdefaults__, *(pointer(value, offset) for offset in FUNCTION_PARTS.values()), value.__doc__, value.__module__]
        return lasting(value.__globals__) and all(part is ABSENT or part is None or self.maybe(part, depth) for part in parts)

    def method(self, value: types.MethodType, depth: int) -> bool:
        func, found = value.__func__, None
        if type(func) is types.FunctionType:
            found = next((base.__dict__[func.__name__] for base in type(value.__self__).__mro__ if func.__name__ in base.__dict__), None)
        return (found is func or self.maybe(func, depth)) and self.maybe(value.__self__, depth)

    def instance(self, value: Any, depth: int) -> bool:
        kind = type(value)
        if any("__del__" in base.__dict__ for base in kind.__mro__) or not self.attributes(value, depth):
            return False
        while dealloc(kind) == CLASS_DEALLOC:
            for slot in vars(kind).values():
                if type(slot) is types.MemberDescriptorType and hasattr(slot, "__get__"):
                    try:
                        part = slot.__get__(value)
                    except AttributeError:
                        continue
                    if not self.maybe(part, depth):
                        return False
            kind = kind.__base__
        if kind in (object, int, float, str, bytes):
            return True
        if kind is dict:
            return self.table(value, depth)
        if kind in (list, tuple, set, frozenset):
            return self.items(kind.__iter__(value), depth)
        return False

    def walk(self, value: Any, depth: int) -> bool:
        kind = type(value)
        if kind in TRIVIAL or isinstance(value, type):
            return True
        depth += 1
        if depth > MAX_DEPTH or not self.one():
            return False
        if kind is np.ndarray:
            plain = value.dtype.num <= np.dtype("clongdouble").num or value.dtype.num == np.dtype("half").num
            return plain and not watched(value) and (value.base is None or self.maybe(value.base, depth))
        if watched(value):
            return isinstance(value, types.ModuleType) and module_dict(value.__dict__)
        if kind in (list, tuple, set, frozenset):
            return self.items(value, depth)
        if kind is dict or kind is collections.OrderedDict:
            return self.table(value, depth) and self.attributes(value, depth)
        if kind is slice:
            return all(self.maybe(part, depth) for part in (value.start, value.stop, value.step))
        if kind is types.MethodType:
            return self.method(value, depth)
        if kind is types.BuiltinFunctionType:
            return value.__self__ is None or self.maybe(value.__self__, depth)
        if kind is types.CellType:
            try:
                return self.maybe(value.cell_contents, depth)
            except ValueError:
                return True
        if kind is types.FunctionType:
            return self.function(value, depth)
        if isinstance(value, types.ModuleType):
            return module_dict(value.__dict__)
        if dealloc(kind) == CLASS_DEALLOC:
            return self.instance(value, depth)
        if any("__del__" in base.__dict__ for base in kind.__mro__):
            return False
        if kind in HOLDERS or dealloc(kind) in (TUPLE_DEALLOC, RECORD_DEALLOC):
            return all(self.one() and self.maybe(part, depth) for part in gc.get_referents(value))
        return not type.__dict__["__flags__"].__get__(kind) & (HEAPTYPE | HAVE_GC) and type(kind) is type and not issubclass(kind, np.void)


def module_dict(namespace: dict) -> bool:
    name = namespace.get("__name__")
    module = sys.modules.get(name) if type(name) is str else None
    return isinstance(module, types.ModuleType) and module.__dict__ is namespace


def lasting(namespace: dict) -> bool:
    own = (value for value in list(namespace.values())[:64] if type(value) is types.FunctionType)
    return module_dict(namespace) or any(value.__globals__ is namespace for value in own)


def watched(value: Any) -> bool:
    callbacks = [ref.__callback__ for ref in weakref.getweakrefs(value)]
    return any(call is not None and type(call).__name__ != "_death_watch" and not torchs(call) for call in callbacks)


def torchs(callback: Any) -> bool:
    return type(callback) is types.FunctionType and module_dict(callback.__globals__) and callback.__globals__["__name__"].startswith("torch.")


def drops_quietly(value: Any) -> bool:
    return Walk().maybe(value, 0)
