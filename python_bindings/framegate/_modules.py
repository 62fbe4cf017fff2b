"""Compiled modules: an instance of a subclass made for ``type(m)`` that shares ``m``'s ``__dict__``.

One subclass for each class, one object for each `compile`. The object has two slots: the module it stands for and the gate. Parameters, buffers, children,
hooks and the training mode are literally the same dicts. A call goes straight to the gate over the class's ``forward`` with the *original* module as ``self``,
so that entries see the user's class and all instances of a class share them; where a hook or an instance attribute changes what a call means, it takes the
class's own ``__call__``, whose ``self.forward`` is the gate again.

The same is done for objects of other classes that manage their ``__dict__`` themselves (a ``__setattr__`` of their own), with a gate over their ``__call__``.
"""

from __future__ import annotations

import inspect
import sys
import types
import weakref
from typing import Any

from framegate import _core

# The made class is held by its instances only: it has the user's class as a base, which would otherwise live for ever.
_classes: weakref.WeakKeyDictionary[type, weakref.ref[type]] = weakref.WeakKeyDictionary()


class _Compiled:
    """First base of the made classes: keeps a user's ``__init_subclass__`` from seeing them."""

    __slots__ = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        pass


def _torch_module() -> Any:
    torch = sys.modules.get("torch")
    return getattr(getattr(torch, "nn", None), "Module", None)


def is_compiled(obj: Any) -> bool:
    """True for what `compile_module` returned."""
    return isinstance(obj, _Compiled)


def original_of(obj: Any) -> Any:
    """The module that a compiled module stands for."""
    return object.__getattribute__(obj, "_framegate_original")


def gate_of(obj: Any) -> Any:
    """The gate that a compiled module calls."""
    return object.__getattribute__(obj, "_framegate_gate")


def shares_dict(obj: Any) -> bool:
    """True if a compiled form of the object has to share its ``__dict__``: torch modules, and classes that fill it themselves."""
    cls = type(obj)
    module = _torch_module()
    if module is not None and isinstance(obj, module):
        return True
    return (
        cls.__setattr__ is not object.__setattr__
        and cls.__dictoffset__ != 0
        and bool(cls.__flags__ & (1 << 9))  # a heap type, so that its layout allows a subclass with two more slots
        and isinstance(inspect.getattr_static(cls, "__call__", None), types.FunctionType)
    )


def compile_module(module: Any, options: dict[str, Any]) -> Any:
    """The compiled form of one object."""
    from framegate._compile import _gate, compile_with

    cls = type(module)
    torch_module = _torch_module()
    uses_forward = torch_module is not None and isinstance(module, torch_module) and cls.__call__ is torch_module.__call__
    target = inspect.getattr_static(cls, "forward" if uses_forward else "__call__")
    if not isinstance(target, types.FunctionType):
        # forward is something else than a function of the class: a static method, an inherited gate, a descriptor.
        if isinstance(target, _core.Gate):
            target = target.__wrapped__
        else:
            return types.MethodType(compile_with(_plain_call(cls), options), module)
    made: Any = object.__new__(_class_for(cls, uses_forward))
    object.__setattr__(made, "__dict__", module.__dict__)
    _Slots.original.__set__(made, module)
    _Slots.gate.__set__(made, _gate(target, options))
    _Slots.options.__set__(made, options)
    return made


def _plain_call(cls: Any) -> Any:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return cls.__call__(self, *args, **kwargs)

    return call


class _SlotAccess:
    """Reads and writes one slot whatever the made class is, past a ``__setattr__`` of the user."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __set__(self, instance: Any, value: Any) -> None:
        object.__setattr__(instance, self.name, value)


class _Slots:
    original = _SlotAccess("_framegate_original")
    gate = _SlotAccess("_framegate_gate")
    options = _SlotAccess("_framegate_options")


def _class_for(cls: type, uses_forward: bool) -> type:
    known = _classes.get(cls)
    made = None if known is None else known()
    if made is None:
        body: dict[str, Any] = {
            "__slots__": ("_framegate_original", "_framegate_gate", "_framegate_options"),
            "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
            "__doc__": cls.__doc__,
            "__reduce_ex__": _reduce,
            "__call__": _call,
        }
        if uses_forward:
            body["forward"] = _forward
        made = type(cls).__new__(type(cls), cls.__name__, (_Compiled, cls), body)
        torch_module = _torch_module()
        if uses_forward:
            _core.module_call_arm(made, torch_module.__call__, sys.modules[torch_module.__module__].__dict__)
        else:
            _core.module_call_arm(made, None, None)
        _classes[cls] = weakref.ref(made)
    return made


def _forward(self: Any, *args: Any, **kwargs: Any) -> Any:
    return self._framegate_gate(self._framegate_original, *args, **kwargs)


def _call(self: Any, *args: Any, **kwargs: Any) -> Any:
    """What ``type(m).__call__`` reads as; ``m(...)`` itself goes through the C slot, which this asks."""
    return self(*args, **kwargs)


def _reduce(self: Any, protocol: Any) -> Any:
    from framegate._compile import _portable, _rebuild

    options = object.__getattribute__(self, "_framegate_options")
    return _rebuild, (original_of(self), _portable(options))
