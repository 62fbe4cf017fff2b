"""FRAMEGATE_VERIFY=1: run what can be run twice a second time as plain Python, on copies, and compare.

A call is compared if it would hit an entry, every entry that accepts it is repeatable (``tracer/trace_repeat.c``: the trace saw all of the function, so no I/O and
nothing random, and writes only what is copied here), and everything the call can reach and change (arguments, closure, globals the code names) is of a kind that can be
copied exactly and without running code of the user: numbers, strings, tuples, lists, dicts, sets, arrays, tensors, and instances with a plain ``__dict__`` and no destructor. All of
it is copied with one memo, so that two names of one object stay two names of one object. Warnings are shown once. Anything else runs compiled only. A difference is a fault of framegate: `InternalError` in strict mode, else a warning.
"""

from __future__ import annotations

import functools
import types
import warnings
from collections.abc import Callable
from typing import Any

from framegate import logs, testing

_ATOMS = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis), range, type, types.ModuleType, types.BuiltinFunctionType, types.CodeType)


class _CannotCopy(Exception):
    pass


class _Copier:
    """Copies of everything the call can reach, functions included: a copied function reads copied globals."""

    def __init__(self) -> None:
        self.memo: dict[int, Any] = {}
        self.keep: list[Any] = []  # originals, so that no id is used again
        self.globals: dict[int, dict[str, Any]] = {}

    def copy(self, value: Any) -> Any:
        kind = type(value)
        if kind in _ATOMS or isinstance(value, type):
            return value
        made: Any = self.memo.get(id(value))
        if made is None:
            made = self._copy_new(value, kind)
            self.memo[id(value)] = made
            self.keep.append(value)
        return made

    def _copy_new(self, value: Any, kind: type) -> Any:
        if kind is tuple:
            return tuple([self.copy(v) for v in value])
        made: Any
        if kind is list:
            made = []
            self.memo[id(value)] = made
            made.extend(self.copy(v) for v in value)
            return made
        if kind is dict:
            made = {}
            self.memo[id(value)] = made
            for key, item in value.items():
                made[self._atom(key)] = self.copy(item)
            return made
        if kind in (set, frozenset):
            return kind(self._atom(v) for v in value)
        if kind is types.FunctionType:
            return self._function(value)
        if kind is types.MethodType:
            return types.MethodType(self.copy(value.__func__), self.copy(value.__self__))
        if kind is types.CellType:
            return self._cell(value)
        return self._copy_object(value, kind)

    def _copy_object(self, value: Any, kind: type) -> Any:
        module = kind.__module__.partition(".")[0]
        if module == "numpy":
            if kind.__name__ == "ndarray" and value.base is None and value.dtype != object:
                return value.copy("K")
            if kind.__name__ == "ufunc" or (hasattr(value, "dtype") and kind.__name__ != "ndarray" and value.ndim == 0):
                return value
            if kind.__name__.endswith("DType"):
                return value
        elif module == "torch":
            return self._torch(value, kind)
        elif _is_plain(kind):
            made: Any = object.__new__(kind)
            self.memo[id(value)] = made
            made.__dict__.update({k: self.copy(v) for k, v in value.__dict__.items()})
            return made
        raise _CannotCopy(kind.__qualname__)

    def _torch(self, value: Any, kind: type) -> Any:
        if kind.__name__ in ("dtype", "device", "layout", "memory_format", "Size"):
            return value
        if kind.__name__ == "Tensor" and value.is_leaf and value._base is None and value.grad is None:
            return value.detach().clone().requires_grad_(value.requires_grad)
        raise _CannotCopy(kind.__qualname__)

    def _atom(self, value: Any) -> Any:
        if type(value) in _ATOMS or (type(value) is tuple and all(type(v) in _ATOMS for v in value)):
            return value
        raise _CannotCopy(f"{type(value).__qualname__} as a key")

    def _cell(self, cell: Any) -> Any:
        made = types.CellType()
        self.memo[id(cell)] = made
        try:
            contents = cell.cell_contents
        except ValueError:
            return made
        made.cell_contents = self.copy(contents)
        return made

    def _function(self, function: Any) -> Any:
        names = _names_of(function.__code__)
        scope = self.globals.get(id(function.__globals__))
        if scope is None:
            scope = {"__builtins__": function.__globals__.get("__builtins__", __builtins__), "__name__": function.__globals__.get("__name__")}
            self.globals[id(function.__globals__)] = scope
        made = types.FunctionType(function.__code__, scope, function.__name__, None, self._closure(function))
        self.memo[id(function)] = made
        for name in names:
            if name in function.__globals__ and name not in scope:
                scope[name] = self.copy(function.__globals__[name])
        made.__defaults__ = self.copy(function.__defaults__)
        made.__kwdefaults__ = self.copy(function.__kwdefaults__)
        made.__dict__.update(self.copy(dict(function.__dict__)))
        return made

    def _closure(self, function: Any) -> Any:
        return None if function.__closure__ is None else tuple([self.copy(cell) for cell in function.__closure__])


def _is_plain(kind: type) -> bool:
    """Instances are their ``__dict__`` and nothing else, and no code of the user sees how they are made, filled and dropped."""
    if type(kind).__getattribute__ is not type.__getattribute__:
        return False
    spaces = [vars(base) for base in kind.__mro__ if base is not object]
    special = {"__new__", "__del__", "__getattribute__", "__setattr__", "__dict__", "__reduce__", "__reduce_ex__"}
    if any(space.get("__slots__") for space in spaces) or kind.__flags__ & (1 << 9) == 0:
        return False
    own_dict = [space["__dict__"] for space in spaces if "__dict__" in space]
    return all(isinstance(d, types.GetSetDescriptorType) for d in own_dict) and not any(name in space for space in spaces for name in special - {"__dict__"})


def _names_of(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            names |= _names_of(const)
    return names


def verified(gate: Any) -> Callable[..., Any]:
    """A function with the gate's meaning that compares as described above."""
    from framegate import _entries

    function = gate.__wrapped__

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        accepting = [entry for entry in _entries.cache_entries(gate) if entry.guards.check(*args, **kwargs)]
        repeatable = bool(accepting) and all(entry._entry.repeatable for entry in accepting)
        copies = _copies(function, args, kwargs) if repeatable else None
        if copies is None:
            return gate(*args, **kwargs)
        return _compare(gate, function, args, kwargs, copies)

    call.__dict__["_framegate_gate"] = gate
    return call


def _copies(function: Any, args: Any, kwargs: Any) -> tuple[Any, ...] | None:
    copier = _Copier()
    try:
        return copier.copy(function), copier.copy(args), copier.copy(kwargs), copier
    except (_CannotCopy, RecursionError):
        return None


def _outcome(fn: Any, args: Any, kwargs: Any) -> tuple[Any, BaseException | None]:
    try:
        return fn(*args, **kwargs), None
    except Exception as error:
        return None, error


def _compare(gate: Any, function: Any, args: Any, kwargs: Any, copies: tuple[Any, ...]) -> Any:
    plain, plain_args, plain_kwargs, copier = copies
    result, error = _outcome(gate, args, kwargs)
    shown, warnings.showwarning = warnings.showwarning, lambda *_args, **_kwargs: None
    try:
        expected, expected_error = _outcome(plain, plain_args, plain_kwargs)
    finally:
        warnings.showwarning = shown
    difference = ""
    if type(error) is not type(expected_error) or str(error) != str(expected_error):
        difference = f"compiled raised {error!r}, plain Python raised {expected_error!r}"
    elif not testing.same(_comparable(result), _comparable(expected)):
        difference = f"compiled returned {result!r}, plain Python returns {expected!r}"
    else:
        for original in copier.keep:
            if not isinstance(original, (types.FunctionType, types.MethodType, types.CellType, tuple)):
                if not testing.same(_comparable(original), _comparable(copier.memo[id(original)])):
                    difference = f"compiled left {original!r}, plain Python leaves {copier.memo[id(original)]!r}"
                    break
    if difference:
        logs.warn_internal(function.__qualname__, f"FRAMEGATE_VERIFY found a difference: {difference}")
    if error is not None:
        raise error
    return result


def _comparable(value: Any) -> Any:
    """Functions and methods are the same if they are of the same code: the plain run made its own."""
    if isinstance(value, types.FunctionType):
        return ("function", id(value.__code__))
    if isinstance(value, types.MethodType):
        return ("method", id(value.__func__.__code__) if isinstance(value.__func__, types.FunctionType) else 0)
    if type(value) in (tuple, list):
        return type(value)(_comparable(v) for v in value)
    if type(value) is dict:
        return {k: _comparable(v) for k, v in value.items()}
    return value
