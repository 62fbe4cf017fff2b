"""Backends by name.

A backend is ``callable(graph, example_inputs) -> callable``. It gets a `framegate.Graph`, or a ``torch.fx.GraphModule`` if any input or
constant of the graph is a torch tensor (a backend with a true attribute ``framegate_graph`` always gets the former), and the list of the inputs of
the call that is being compiled. What it returns is called with the same number of values and returns the graph's outputs as a tuple or list.
It must not keep or change the example inputs.

``"eager"`` (the default) is framegate's own: the graph itself, which replays its operations in C. Names of torch's backends (``"inductor"``,
``"aot_eager"``, …) are found in torch's registry when they are first used; torch's own ``eager`` is ``"torch:eager"``.
The shape of the interface is that of ``torch._dynamo``.
"""

from __future__ import annotations

import difflib
import importlib.util
import sys
import types
from collections.abc import Callable
from typing import Any, TypeVar, overload

Backend = Callable[..., Callable[..., Any]]
_Names = list[str]  # `list` is a function of this module further down

_F = TypeVar("_F", bound=Backend)
_registered: dict[str, Backend] = {}


def eager(graph: Any, example_inputs: Any) -> Callable[..., Any]:
    """The graph itself: calling it replays the operations in C, dropping each intermediate after its last use."""
    return graph


eager.framegate_graph = True  # type: ignore[attr-defined]
_registered["eager"] = eager


@overload
def register(name: str) -> Callable[[_F], _F]: ...
@overload
def register(name: str, backend: _F) -> _F: ...
def register(name: str, backend: Any = None) -> Any:
    """Give a backend a name: ``@register("mine")`` above a function, or ``register("mine", fn)``.

    A name may be registered anew (functions compiled before keep the backend they have), except ``"eager"``; a name with a colon is torch's.
    TypeError for a bad type, ValueError for a bad name.
    """
    if not isinstance(name, str):
        raise TypeError(f'backends.register takes a name first: @backends.register("name"), not {type(name).__name__}')
    if not name or name == "eager" or ":" in name:
        raise ValueError(f"the backend name {name!r} is reserved" if name else "a backend name cannot be empty")
    if backend is None:
        return lambda fn: register(name, fn)
    if not callable(backend):
        raise TypeError(f"a backend is a callable of (graph, example_inputs), not {type(backend).__name__}")
    _registered[name] = backend
    return backend


def list() -> _Names:  # noqa: A001  (the public name)
    """The names that `lookup` knows, sorted. torch's are among them once the process has imported torch, with the prefix ``torch:``."""
    names = [*_registered]
    if "torch" in sys.modules:
        registry = _torch_registry()
        names += [f"torch:{name}" for name in registry.list_backends(exclude_tags=())]
    return sorted(names)


def lookup(name: str | Backend) -> Backend:
    """The backend of a name; a callable is given back as it is. ``"torch:NAME"``, and any name that only torch knows, imports torch.

    ValueError for an unknown name, with the nearest known one; TypeError for what is neither a name nor callable.
    """
    if not isinstance(name, str):
        if not callable(name):
            raise TypeError(f"a backend is a name or a callable of (graph, example_inputs), not {type(name).__name__}")
        return name
    if name in _registered:
        return _registered[name]
    if importlib.util.find_spec("torch") is None:
        raise _unknown(name, "; PyTorch, which may know it, is not installed")
    plain = name.removeprefix("torch:")
    registry = _torch_registry()
    import torch._dynamo.exc

    try:
        return registry.lookup_backend(plain)
    except torch._dynamo.exc.InvalidBackend:
        raise _unknown(name) from None


def name_of(backend: Any) -> str:
    """A name for messages."""
    for name, known in _registered.items():
        if known is backend:
            return name
    return getattr(backend, "__qualname__", None) or getattr(backend, "__name__", None) or type(backend).__name__


def is_found_by_name(backend: Any) -> bool:
    """True for a registered backend and for a function of an imported module: it lives as long as the program, whoever holds it."""
    if any(known is backend for known in _registered.values()):
        return True
    module = sys.modules.get(backend.__module__) if type(backend) is types.FunctionType else None
    return module is not None and vars(module).get(backend.__qualname__) is backend


def _torch_registry() -> Any:
    import torch._dynamo.backends.registry as registry

    return registry


def _unknown(name: str, more: str = "") -> ValueError:
    known = list()
    near = difflib.get_close_matches(name, [*known, *(each.removeprefix("torch:") for each in known)], n=1, cutoff=0.6)
    hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(known)}"
    return ValueError(f"there is no backend named {name!r}{hint}{more}")
