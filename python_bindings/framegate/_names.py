"""Names of callables: how a graph prints them, and how a text form finds them again."""

from __future__ import annotations

import importlib
import sys
from typing import Any

# Where functions whose own __module__ says nothing useful are looked for. A module that is not loaded is not imported for this.
_HOMES = ("operator", "builtins", "math", "torch", "torch.nn.functional", "torch._C._nn", "torch.special", "torch.linalg", "numpy", "numpy.linalg")
# Private modules behind public ones: the public name is what people know.
_PUBLIC = {"_operator": "operator"}


def _lookup(module: str, qualname: str) -> Any:
    at: Any = sys.modules.get(module)
    for part in qualname.split("."):
        if at is None:
            return None
        at = getattr(at, part, None)
    return at


def find(obj: Any) -> tuple[str, str] | None:
    """(module, qualname) under which exactly this object can be found among the loaded modules, or None."""
    qualname = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None)
    module = getattr(obj, "__module__", None)
    if not isinstance(qualname, str):
        return None
    if isinstance(module, str):
        public = _PUBLIC.get(module, module)
        for home in (public, module):
            if _lookup(home, qualname) is obj:
                return home, qualname
    short = qualname.rpartition(".")[2]
    for home in _HOMES:
        if _lookup(home, short) is obj:
            return home, short
    return None


def display(obj: Any) -> str:
    """The name of a callable as a program would write it, or a description where it has none."""
    found = find(obj)
    if found is not None:
        module, qualname = found
        return qualname if module == "builtins" else f"{module}.{qualname}"
    name = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None)
    if isinstance(name, str):
        return name.replace("<locals>.", "").replace("<lambda>", "lambda_")
    return f"<{type(obj).__qualname__}>"


def resolve(text: str) -> Any:
    """The object that ``module:qualname`` names; the module is imported. ValueError if there is none."""
    module, colon, qualname = text.partition(":")
    if not colon or not module or not qualname:
        raise ValueError(f"{text!r} is not of the form module:qualname")
    try:
        at = importlib.import_module(module)
        for part in qualname.split("."):
            at = getattr(at, part)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{text!r} names nothing here: {error}") from error
    return at
