"""How the tracer treats particular callables: one table that it reads, and the public functions that write it.

`RULES` maps a callable to one of
``"inline"`` (trace into it), ``"graph"`` (one opaque operation), ``"break"`` (a graph break), ``"forbid"`` (an error under any setting),
``"constant"`` (call it while tracing and keep the result), ``"disable"`` (runs plain, callees too), ``"skip"`` (this frame runs plain)
``"graph_break"`` (asked for by the program) or ``("substitute", replacement)`` (trace the replacement instead). The names and meanings are those of torch.compiler.
"""

from __future__ import annotations

import functools
import inspect
import types
import weakref
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, TypeVar

from framegate import _core

Rule = str | tuple[str, Callable[..., Any]]

#: What the C part reads. A Python function has its row under its ``id``, as (weak reference, rule); any other callable is its own key.
TABLE: dict[Any, Any] = {}


class _Rules(MutableMapping[Any, Any]):
    """`TABLE` by callable. It keeps no Python function alive: who disables a function that it has just made does not have to say when it is done with it."""

    def __getitem__(self, fn: Any) -> Rule:
        if not isinstance(fn, types.FunctionType):
            return TABLE[fn]
        row = TABLE.get(id(fn))
        if row is None or row[0]() is not fn:
            raise KeyError(fn)
        return row[1]

    def __setitem__(self, fn: Any, rule: Rule) -> None:
        if not isinstance(fn, types.FunctionType):
            TABLE[fn] = rule
            return
        key = id(fn)

        def forget(dead: Any) -> None:
            row = TABLE.get(key)
            if row is not None and row[0] is dead:
                del TABLE[key]

        TABLE[key] = (weakref.ref(fn, forget), rule)

    def __delitem__(self, fn: Any) -> None:
        self[fn]
        del TABLE[id(fn) if isinstance(fn, types.FunctionType) else fn]

    def __iter__(self) -> Iterator[Any]:
        for key, row in list(TABLE.items()):
            fn = row[0]() if type(key) is int else key
            if fn is not None:
                yield fn

    def __len__(self) -> int:
        return len(TABLE)


RULES = _Rules()

_F = TypeVar("_F", bound=Callable[..., Any])


def _set(fn: Any, rule: str | tuple[str, Callable[..., Any]], user: str) -> Any:
    if not callable(fn):
        raise TypeError(f"framegate.{user} takes a callable, not {type(fn).__name__}")
    if inspect.ismethod(fn):
        # A bound method is made anew at each attribute read; what stays is its function.
        RULES[fn.__func__] = rule
        _decide_anew(fn.__func__)
        return fn
    try:
        RULES[fn] = rule
    except TypeError:
        raise TypeError(f"framegate.{user} needs a hashable callable; {type(fn).__name__} objects are not") from None
    _decide_anew(fn)
    return fn


def _decide_anew(fn: Any) -> None:
    """Frames of the function that intercept knows are looked at again."""
    if isinstance(fn, types.FunctionType):
        _core.intercept_forget(fn.__code__)


def _set_all(fn: Any, rule: str, user: str) -> Any:
    if isinstance(fn, (list, tuple)):
        for each in fn:
            _set(each, rule, user)
        return fn
    return _set(fn, rule, user)


def allow_in_graph(fn: _F) -> _F:
    """Put calls of ``fn`` into the graph as one operation, without looking inside. It must not change anything but its result.

    Takes a callable, or a list or tuple of them; returns its argument, so it is a decorator as well. TypeError for anything else.
    """
    return _set_all(fn, "graph", "allow_in_graph")


def disallow_in_graph(fn: _F) -> _F:
    """Never put calls of ``fn`` into the graph: a call is a graph break and runs as plain Python. Takes and returns what `allow_in_graph` does."""
    return _set_all(fn, "break", "disallow_in_graph")


def forbid_in_graph(fn: _F) -> _F:
    """Reaching a call of ``fn`` while tracing is an error (`Unsupported`), with or without ``fullgraph``. Takes and returns what `allow_in_graph` does."""
    return _set_all(fn, "forbid", "forbid_in_graph")


def assume_constant_result(fn: _F) -> _F:
    """Call ``fn`` once while tracing and use its result ever after: no guard is set on what it reads. Returns ``fn``."""
    return _set(fn, "constant", "assume_constant_result")


def substitute_in_graph(original: Callable[..., Any], *, skip_signature_check: bool = False) -> Callable[[_F], _F]:
    """``@substitute_in_graph(original)``: trace the decorated function wherever ``original`` is called; outside compiled code nothing changes.

    The two must take the same parameters (TypeError otherwise), unless ``original`` has no signature to compare or ``skip_signature_check`` is true.
    """
    if not callable(original):
        raise TypeError(f"framegate.substitute_in_graph takes a callable, not {type(original).__name__}")

    def decorate(replacement: _F) -> _F:
        if not inspect.isfunction(replacement):
            raise TypeError("framegate.substitute_in_graph(original) decorates a Python function: the tracer has to read its body")
        if not skip_signature_check:
            _check_signatures(original, replacement)
        _set(original, ("substitute", replacement), "substitute_in_graph")
        return replacement

    return decorate


def _check_signatures(original: Callable[..., Any], replacement: Callable[..., Any]) -> None:
    try:
        wanted = inspect.signature(original)
    except (ValueError, TypeError):
        return
    given = inspect.signature(replacement)
    left = [(p.name, p.kind, p.default is not p.empty) for p in wanted.parameters.values()]
    right = [(p.name, p.kind, p.default is not p.empty) for p in given.parameters.values()]
    if left != right:
        raise TypeError(
            f"the replacement takes {given} but {getattr(original, '__qualname__', original)!s} takes {wanted}: "
            "use the same names, kinds and defaults, or pass skip_signature_check=True"
        )


def graph_break(msg: str = "") -> None:
    """End the graph here when traced; does nothing otherwise. ``msg`` appears in the reason. Under ``fullgraph=True`` it is an `Unsupported`."""


def is_compiling() -> bool:
    """True while the call is being traced, False when it runs as plain Python.

    The branch that is traced is the branch that compiled calls take, so use it for what must not be traced, not for what a program means.
    """
    return False


def _always_true() -> bool:
    return True


RULES[graph_break] = "graph_break"
RULES[is_compiling] = ("substitute", _always_true)


@functools.cache
def _builtin_rules() -> frozenset[Callable[..., Any]]:
    return frozenset(RULES)


_builtin_rules()


def reset_rules() -> None:
    """Forget the rules that users added (tests use it; compiled entries stay)."""
    keep = _builtin_rules()
    for fn in [fn for fn in RULES if fn not in keep]:
        del RULES[fn]
