"""The flags of framegate: ``framegate.config.cache_size = 128`` and the like, and `patch` to change some for a while.

Every flag has a type, a default, a range where one makes sense, and a sentence (see `describe`). Setting a flag that does not exist
is an AttributeError that names the nearest one; setting one to a value of the wrong type or range is a TypeError or ValueError. Values hold for the whole process and
are read when a function is compiled or a call misses; a call that hits reads none of them.

The idea of a patchable configuration module is that of ``torch._dynamo.config``.
"""

from __future__ import annotations

import difflib
import functools
import os
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Flag:
    """One flag: its default, type, least allowed value (numbers), the environment variable that sets its default, and its meaning."""

    default: Any
    doc: str
    least: float | None = None
    env: str | None = None

    @property
    def type(self) -> Any:
        return type(self.default)


_FLAGS: dict[str, Flag] = {
    "cache_size": Flag(64, "Entries kept for one code object and options; beyond it the least recently used is evicted.", 1),
    "recompile_limit": Flag(
        16, "Compiles that one gate may start; beyond it the gate uses the entries it has, or raises RecompileLimitExceeded under fullgraph.", 1
    ),
    "verify": Flag(False, "Run each hit that can be copied a second time as plain Python and compare results and mutations.", env="FRAMEGATE_VERIFY"),
    "disable": Flag(False, "compile() gives back what it was given.", env="FRAMEGATE_DISABLE"),
    "wait_for_compile": Flag(False, "A call that misses while another thread compiles the same key waits instead of running as plain Python."),
    "wait_for_compile_limit": Flag(60.0, "Seconds that such a call waits before it runs as plain Python.", 0),
    "compile_under_tracing": Flag(False, "Compile on threads where a debugger, profiler or coverage tool traces (otherwise the plain function runs there)."),
    "strict_errors": Flag(False, "Raise InternalError instead of warning once and running the frame as plain Python.", env="FRAMEGATE_STRICT"),
}


def _env_value(flag: Flag) -> Any:
    text = os.environ.get(flag.env) if flag.env else None
    if text is None:
        return flag.default
    return text.strip().lower() not in ("", "0", "false", "no", "off")


def _unknown(name: str) -> AttributeError:
    near = difflib.get_close_matches(name, _FLAGS, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else f"; the flags are {', '.join(sorted(_FLAGS))}"
    return AttributeError(f"framegate.config has no flag {name!r}{hint}")


def _checked(name: str, value: Any) -> Any:
    flag = _FLAGS.get(name)
    if flag is None:
        raise _unknown(name)
    if flag.type is float and type(value) is int:
        value = float(value)
    if type(value) is not flag.type:
        raise TypeError(f"framegate.config.{name} takes a {flag.type.__name__}, not {value!r}")
    if flag.least is not None and not value >= flag.least:
        raise ValueError(f"framegate.config.{name} must be at least {flag.least}, not {value!r}")
    return value


# Told of every change as a dict of new values: the C part keeps copies of what its fast paths read.
_followers: list[Callable[[dict[str, Any]], None]] = []


def _store(changes: Mapping[str, Any]) -> None:
    sys.modules[__name__].__dict__.update(changes)
    for follower in _followers:
        follower(dict(changes))


def follow(follower: Callable[[dict[str, Any]], None]) -> None:
    """Call ``follower`` with all values now and with the changed ones at each change."""
    _followers.append(follower)
    follower(to_dict())


class _ConfigModule(types.ModuleType):
    """The module's class: checks what is stored in it. Reading a flag is a plain attribute read."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):
            super().__setattr__(name, value)
        else:
            _store({name: _checked(name, value)})

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"flags of framegate.config cannot be deleted; framegate.config.reset({name!r}) gives the default back")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        raise _unknown(name)

    def __dir__(self) -> list[str]:
        return sorted([*_FLAGS, "describe", "flags", "follow", "patch", "reset", "to_dict"])


class patch:
    """Change flags for a while: a context manager and a decorator.

    ``with config.patch(verify=True): ...`` or ``@config.patch({"cache_size": 8})``. All values are checked before any is set; on leaving,
    the flags named here get back what they had on entering, so patches may be nested and one patch object may be used again.

    Errors: AttributeError for an unknown flag, TypeError or ValueError for a bad value.
    """

    def __init__(self, changes: Mapping[str, Any] | None = None, /, **kwargs: Any) -> None:
        merged = {**(changes or {}), **kwargs}
        self._changes = {name: _checked(name, value) for name, value in merged.items()}
        self._saved: list[dict[str, Any]] = []

    def __enter__(self) -> None:
        values = sys.modules[__name__].__dict__
        self._saved.append({name: values[name] for name in self._changes})
        _store(self._changes)

    def __exit__(self, *exc_info: object) -> None:
        _store(self._saved.pop())

    def __call__(self, fn: _F) -> _F:
        import inspect

        changes = self._changes
        if isinstance(fn, type):
            raise TypeError("config.patch decorates functions, not classes")
        if inspect.iscoroutinefunction(fn):

            @functools.wraps(fn)
            async def patched_coroutine(*args: Any, **kwargs: Any) -> Any:
                with patch(changes):
                    return await fn(*args, **kwargs)

            return patched_coroutine  # type: ignore[return-value]
        if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
            raise TypeError("config.patch cannot decorate a generator function: its body would run outside the patch; use `with` inside it")

        @functools.wraps(fn)
        def patched(*args: Any, **kwargs: Any) -> Any:
            with patch(changes):
                return fn(*args, **kwargs)

        return patched  # type: ignore[return-value]


def flags() -> dict[str, Flag]:
    """All flags by name."""
    return dict(_FLAGS)


def to_dict() -> dict[str, Any]:
    """The present value of every flag."""
    values = sys.modules[__name__].__dict__
    return {name: values[name] for name in _FLAGS}


def describe() -> str:
    """A table of the flags: name, value, default, meaning."""
    values = to_dict()
    lines = []
    for name, flag in _FLAGS.items():
        env = f" (environment: {flag.env})" if flag.env else ""
        lines.append(f"{name} = {values[name]!r}  [default {flag.default!r}{env}]\n    {flag.doc}")
    return "\n".join(lines)


def reset(name: str | None = None) -> None:
    """Give one flag, or all, the default (environment included)."""
    if name is not None and name not in _FLAGS:
        raise _unknown(name)
    _store({each: _env_value(_FLAGS[each]) for each in (_FLAGS if name is None else [name])})


# For type checkers; `reset` below gives them their values.
cache_size: int
recompile_limit: int
verify: bool
disable: bool
wait_for_compile: bool
wait_for_compile_limit: float
compile_under_tracing: bool
strict_errors: bool

reset()
sys.modules[__name__].__class__ = _ConfigModule
