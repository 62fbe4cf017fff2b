"""``python -m framegate doctor``: what is installed, what is supported, what is switched on, and whether a compiled call works here."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import sys
from typing import Any, TextIO

_ENVIRONMENT = ("FRAMEGATE_DISABLE", "FRAMEGATE_VERIFY", "FRAMEGATE_STRICT", "FRAMEGATE_LOGS")


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _checks() -> list[tuple[str, bool, str]]:
    """(what, worked, detail) of each self-test."""
    return [_guarded("a compiled function gives the plain result", _check_scalar), _guarded("a NumPy operation is captured and hit", _check_numpy)]


def _guarded(what: str, check: Any) -> tuple[str, bool, str]:
    try:
        detail = check()
    except Exception as error:  # the report must come whatever is broken
        return what, False, f"{type(error).__name__}: {error}"
    return what, detail == "", detail


def _check_scalar() -> str:
    import framegate

    def twice(x: Any) -> Any:
        return x + x

    made = framegate.compile(twice)
    got = [made(3), made(4), made("ab")]
    return "" if got == [6, 8, "abab"] else f"wrong result {got}"


def _check_numpy() -> str:
    import numpy as np

    import framegate

    def add(x: Any) -> Any:
        return x + 1

    made = framegate.compile(add)
    for _ in range(3):
        if made(np.ones(3)).tolist() != [2.0, 2.0, 2.0]:
            return "wrong result"
    entries = framegate.cache_entries(made)
    if not entries:
        return "the result is right, but nothing was compiled (FRAMEGATE_LOGS=graph_breaks says why)"
    return "" if entries[0].hits >= 2 else f"the entry has {entries[0].hits} hits after three calls"


def report(out: TextIO | None = None) -> bool:
    """Write the report; True if all self-tests passed."""
    import framegate
    from framegate import _core, config

    out = out or sys.stdout

    def line(name: str, value: object) -> None:
        print(f"  {name:<24} {value}", file=out)

    print("framegate", framegate.__version__, file=out)
    line("interpreter", f"{platform.python_implementation()} {platform.python_version()} ({sys.executable})")
    line("platform", platform.platform())
    line("extension", _core.__file__)
    line("numpy", _version("numpy"))
    line("torch", _version("torch") if importlib.util.find_spec("torch") else "not installed (not needed)")
    line("tracing on this thread", "on: compiled functions run plain" if sys.gettrace() or sys.getprofile() else "off")
    layers = getattr(_core, "tensor_layers", None)
    if layers is not None:
        line("tensor readers", ", ".join(f"{name}: {layer}" for name, layer in layers().items()) or "none yet")
    line("backends", ", ".join(framegate.backends.list()) + " (torch's by name, once it is installed)")
    print("switches", file=out)
    defaults = {name: flag.default for name, flag in config.flags().items()}
    for name, value in config.to_dict().items():
        line(name, f"{value!r}{'' if value == defaults[name] else f'  (default {defaults[name]!r})'}")
    for name in _ENVIRONMENT:
        if name in os.environ:
            line(name, repr(os.environ[name]))
    print("self-tests", file=out)
    checks = _checks() if not config.disable else []
    for what, worked, detail in checks:
        line("ok" if worked else "FAILED", what + (f": {detail}" if detail else ""))
    if config.disable:
        line("skipped", "config.disable is set")
    return all(worked for _, worked, _ in checks)
