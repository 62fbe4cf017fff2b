"""Everything a caller can observe of one call, as a value that compares with ==.

Purpose:    `observe` runs a call and returns an `Observation`; two of them are equal exactly when no caller could tell the calls apart.
Model:      One walk over all roots (arguments, globals, result, exception) numbers each mutable object at its first visit, so equal
            fingerprints also mean equal aliasing: "the result is the second argument", "both list items are one array".
Invariants: Floats compare by their bits, arrays by dtype, shape, strides, flags, bytes and base, dicts and instances by items in order,
            classes by qualified name (two runs of one program have two classes of that name).
Not compared: the order of a set (a set built another way may iterate otherwise), identities of ints and strings (an implementation detail
            of CPython's caches), frames of other files in tracebacks.
"""
import collections
import contextlib
import io
import itertools
import struct
import types
import warnings
from typing import Any, NamedTuple

import numpy as np

_bytes = struct.Struct("<d").pack


def _pack(x: float) -> bytes:
    """All bits, but for the sign and payload of a NaN: which operand they come from depends on how far the interpreter has specialised the operator."""
    return _bytes(x) if x == x else b"nan"
_FLAGS = ("C_CONTIGUOUS", "F_CONTIGUOUS", "WRITEABLE", "ALIGNED", "OWNDATA")
_SKIPPED_GLOBALS = (types.ModuleType, types.FunctionType, type)


class Observation(NamedTuple):
    """What one call did; fields in the order in which a difference is worth reading."""
    result: Any
    error: Any
    output: str
    inputs: Any
    globals: Any
    warnings: Any
    later: Any  # what the functions and iterators in the result do when they are used


class _Walk:
    def __init__(self) -> None:
        self.seen: dict[int, int] = {}
        self.keep: list[Any] = []  # an id is only good while its object lives

    def number(self, obj: Any) -> tuple[int, bool]:
        n = self.seen.get(id(obj))
        if n is not None:
            return n, True
        n = len(self.keep)
        self.seen[id(obj)] = n
        self.keep.append(obj)
        return n, False

    def __call__(self, obj: Any) -> Any:
        kind = type(obj)
        simple = _SIMPLE.get(kind)
        if simple is not None:
            return simple(obj)
        if kind is float:
            return ("float", _pack(obj))
        if kind is tuple and all(type(item) in _SIMPLE or type(item) is float for item in obj):
            return ("tuple", [self(item) for item in obj])  # an immutable value, as the scalars: which object it is means nothing
        n, again = self.number(obj)
        if again:
            return ("again", n)
        walker = _WALKERS.get(kind)
        if walker is not None:
            return walker(self, n, obj)
        return self.other(n, obj, kind)

    def other(self, n: int, obj: Any, kind: type) -> Any:
        name = f"{kind.__module__}.{kind.__qualname__}"
        if isinstance(obj, np.ndarray):
            return (name, _array(self, n, obj), self(dict(obj.__dict__)) if hasattr(obj, "__dict__") else None)
        if isinstance(obj, np.generic):
            return (name, obj.dtype.str, obj.tobytes())
        if isinstance(obj, BaseException):
            return (name, n, self.error(obj, None))
        if isinstance(obj, type):
            return ("class", obj.__qualname__)
        if _is_tensor(obj):
            return _tensor(self, n, obj)
        parts = [name, n]
        if isinstance(obj, int):
            parts.append(int(obj))
        elif isinstance(obj, float):
            parts.append(_pack(float(obj)))
        elif isinstance(obj, str):
            parts.append(str.__str__(obj))
        elif isinstance(obj, tuple):
            parts.append([self(v) for v in tuple.__iter__(obj)])
        elif isinstance(obj, list):
            parts.append([self(v) for v in list.__iter__(obj)])
        elif isinstance(obj, dict):
            parts.append([(self(k), self(v)) for k, v in dict.items(obj)])
        elif isinstance(obj, (set, frozenset)):
            parts.append(sorted(map(repr, map(self, obj))))
        elif isinstance(obj, collections.deque):
            parts.append((obj.maxlen, [self(v) for v in obj]))
        own = getattr(obj, "__dict__", None)
        if type(own) is dict:
            parts.append([(k, self(v)) for k, v in own.items()])
        for base in kind.__mro__:
            slots = base.__dict__.get("__slots__", ())
            for slot in (slots,) if isinstance(slots, str) else slots:
                if slot not in ("__dict__", "__weakref__"):
                    parts.append((slot, self(getattr(obj, slot, "<unset>"))))
        return tuple(parts)

    def error(self, exc: BaseException | None, filename: str | None) -> Any:
        if exc is None:
            return None
        lines = []
        tb = exc.__traceback__
        while tb is not None and filename is not None:
            if tb.tb_frame.f_code.co_filename == filename:
                lines.append((tb.tb_frame.f_code.co_name, tb.tb_lineno))
            tb = tb.tb_next
        if isinstance(exc, UnboundLocalError):
            lines = [name for name, _ in lines]  # 3.11 gives another line once the code is warm
        cause, context = exc.__cause__, exc.__context__
        nested = [self.error(e, filename) for e in exc.exceptions] if isinstance(exc, BaseExceptionGroup) else None
        return (type(exc).__qualname__, [self(a) for a in exc.args], _text(exc), tuple(lines), self.error(cause, filename),
                "cause" if context is cause else self.error(context, filename), exc.__suppress_context__,
                getattr(exc, "__notes__", None), nested)


def _text(exc: BaseException) -> str:
    try:
        return str(exc)
    except Exception as e:
        return f"<str raised {type(e).__name__}>"


def _array(walk: _Walk, n: int, a: np.ndarray) -> Any:
    if a.dtype.hasobject:
        data: Any = [walk(v) for v in a.ravel().tolist()]
    else:
        data = a.tobytes()
    base = a.base
    where = None
    if isinstance(base, np.ndarray):
        where = (walk(base), a.__array_interface__["data"][0] - base.__array_interface__["data"][0])
    flags = a.flags
    return ("array", n, a.dtype.str, a.shape, a.strides, tuple(flags[f] for f in _FLAGS), data, where)


def _is_tensor(obj: Any) -> bool:
    return any(c.__module__ == "torch" and c.__name__ == "Tensor" for c in type(obj).__mro__)


def _tensor(walk: _Walk, n: int, t: Any) -> Any:
    import torch
    plain = t.detach()
    data = plain.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if plain.numel() and plain.dtype is not torch.bool \
        else plain.to(torch.uint8).contiguous().numpy().tobytes() if plain.dtype is torch.bool else b""
    grad = walk(t.grad) if t.is_leaf and t.grad is not None else None
    return ("tensor", n, type(t).__qualname__, str(t.dtype), str(t.device), tuple(t.shape), t.stride(), t.storage_offset(),
            t.requires_grad, t.is_leaf, type(t.grad_fn).__name__, data, grad)


def _function(walk: _Walk, n: int, f: Any) -> Any:
    cells = []
    for cell in f.__closure__ or ():
        try:
            cells.append(walk(cell.cell_contents))
        except ValueError:
            cells.append("<empty>")
    return ("function", n, f.__qualname__, f.__code__.co_firstlineno, walk(f.__defaults__), walk(f.__kwdefaults__), cells)


_SIMPLE = {
    int: lambda v: v if v.bit_length() < 3000 else hash(v),
    bool: lambda v: ("bool", v),
    str: lambda v: v,
    bytes: lambda v: v,
    type(None): lambda v: None,
    type(...): lambda v: "...",
    type(NotImplemented): lambda v: "NotImplemented",
    complex: lambda v: ("complex", _pack(v.real), _pack(v.imag)),
    range: lambda v: ("range", v.start, v.stop, v.step),
    slice: lambda v: ("slice", v.start, v.stop, v.step),
}

_WALKERS = {
    tuple: lambda w, n, v: ("tuple", n if v else -1, [w(x) for x in v]),
    list: lambda w, n, v: ("list", n, [w(x) for x in v]),
    dict: lambda w, n, v: ("dict", n, [(w(k), w(x)) for k, x in v.items()]),
    set: lambda w, n, v: ("set", n, sorted(map(repr, map(w, v)))),
    frozenset: lambda w, n, v: ("frozenset", sorted(map(repr, map(w, v)))),
    bytearray: lambda w, n, v: ("bytearray", n, bytes(v)),
    np.ndarray: _array,
    types.FunctionType: _function,
    types.BuiltinFunctionType: lambda w, n, v: ("builtin", v.__qualname__),
    types.MethodType: lambda w, n, v: ("method", v.__func__.__qualname__, w(v.__self__)),
    types.ModuleType: lambda w, n, v: ("module", v.__name__),
    np.dtype: lambda w, n, v: ("dtype", v.str),
}


def fingerprint(*roots: Any) -> Any:
    """The fingerprint of several objects walked together."""
    return _Walk()(list(roots))


def _use(walk: _Walk, result: Any, filename: str | None) -> Any:
    """Call the no-argument functions and advance the generators found at the top of a result."""
    found = []
    for item in result if type(result) in (tuple, list) else (result,):
        if isinstance(item, types.FunctionType) and not item.__code__.co_argcount and not item.__code__.co_kwonlyargcount \
                and not item.__code__.co_flags & 0x2A0:
            for _ in range(2):
                try:
                    found.append(("returned", walk(item())))
                except Exception as e:
                    found.append(("raised", walk.error(e, filename)))
        elif isinstance(item, types.GeneratorType):
            try:
                found.append(("yielded", [walk(v) for v in itertools.islice(item, 20)]))
            except Exception as e:
                found.append(("raised", walk.error(e, filename)))
    return found


def observe(fn: Any, args: tuple = (), kwargs: dict | None = None, *, namespace: dict | None = None, state: Any = None,
            filename: str | None = None) -> Observation:
    """Call fn and return what happened. namespace: globals whose values are compared. state: further objects to compare, or a function that
    gives them after the call. filename:
    traceback and warning lines count in this file only (None: neither is compared)."""
    kwargs = kwargs or {}
    out = io.StringIO()
    error = None
    result = None
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(out):
        warnings.simplefilter("always")
        try:
            result = fn(*args, **kwargs)
        except BaseException as e:
            if isinstance(e, (KeyboardInterrupt, SystemExit)) and filename is None:
                raise
            error = e
    walk = _Walk()
    inputs = walk([list(args), kwargs, state() if callable(state) else state])
    shown: Any = None
    if namespace is not None:
        shown = [(k, walk(v)) for k, v in namespace.items() if not k.startswith("__") and not isinstance(v, _SKIPPED_GLOBALS) and not hasattr(v, "__wrapped__")]
    said = [(w.category.__name__, str(w.message), w.lineno if w.filename == filename else 0) for w in caught]
    if error is not None:
        report = walk.error(error, filename)
        error.__traceback__ = None
        return Observation(None, report, out.getvalue(), inputs, shown, said, None)
    seen = walk(result)
    return Observation(seen, None, out.getvalue(), inputs, shown, said, _use(walk, result, filename))


def differences(plain: Observation, other: Observation) -> list[tuple[str, Any, Any]]:
    """Fields that differ, as (kind, plain, other). A result of another kind than an exception is a difference of "error" only."""
    if plain == other:
        return []
    found = []
    for name, a, b in zip(plain._fields, plain, other):
        if a != b and not (name == "result" and plain.error != other.error):
            kind = name
            if name == "error" and a and b and a[:3] == b[:3]:
                kind = "traceback" if a[3] != b[3] else "error chain"
            elif name == "warnings" and [w[:2] for w in a] == [w[:2] for w in b]:
                kind = "warning line"
            found.append((kind, a, b))
    return found
