"""The exceptions of framegate.

All of them derive from `FramegateError`, a `RuntimeError`. An exception that the user's own code raises inside a compiled
function is never wrapped: it arrives with its own type, text and traceback.

The split follows ``torch._dynamo.exc``: what the user asked to be strict about, what a backend did, what is our own fault.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

__all__ = [
    "BackendCompilerFailed",
    "BreakReason",
    "FailOnRecompile",
    "FramegateError",
    "InternalError",
    "RecompileLimitExceeded",
    "Unsupported",
]

Frame = tuple[str, int, str]


def format_stack(stack: Iterable[Frame]) -> str:
    """The frames of a user stack (file, line, function; outermost first) with their source lines, as a traceback prints them."""
    import linecache

    lines = []
    for filename, line, name in stack:
        lines.append(f'  File "{filename}", line {line}, in {name}')
        text = linecache.getline(filename, line).strip()
        if text:
            lines.append(f"    {text}")
    return "\n".join(lines)


@dataclass(frozen=True)
class BreakReason:
    """Why tracing stopped at one instruction.

    ``gb_type`` is one of a fixed set of categories, ``context`` names the values at hand, ``explanation`` says in plain words
    what cannot be done, ``hints`` say what the user can do, ``user_stack`` is a list of (file, line, function), outermost first.
    """

    gb_type: str
    context: str = ""
    explanation: str = ""
    hints: tuple[str, ...] = ()
    user_stack: tuple[Frame, ...] = field(default=())

    def __str__(self) -> str:
        parts = [f"Graph break: {self.gb_type}"]
        if self.explanation:
            parts.append(f"  Explanation: {self.explanation}")
        if self.context:
            parts.append(f"  Context: {self.context}")
        parts.extend(f"  Hint: {hint}" for hint in self.hints)
        if self.user_stack:
            parts.append("  In the user's code:")
            parts.append("\n".join("  " + line for line in format_stack(self.user_stack).splitlines()))
        return "\n".join(parts)


class FramegateError(RuntimeError):
    """Base of every exception that framegate itself raises."""


class Unsupported(FramegateError):
    """A graph break in a function that was compiled with ``fullgraph=True``.

    The attributes are those of `BreakReason`: ``gb_type``, ``context``, ``explanation``, ``hints``, ``user_stack``; and
    ``reason``, the `BreakReason` itself.
    """

    def __init__(
        self,
        gb_type: str | BreakReason,
        context: str = "",
        explanation: str = "",
        hints: Iterable[str] = (),
        user_stack: Iterable[Frame] = (),
    ) -> None:
        if isinstance(gb_type, BreakReason):
            reason = gb_type
        else:
            reason = BreakReason(gb_type, context, explanation, tuple(hints), tuple(user_stack))
        self.reason = reason
        self.gb_type = reason.gb_type
        self.context = reason.context
        self.explanation = reason.explanation
        self.hints = reason.hints
        self.user_stack = reason.user_stack
        super().__init__(f"{reason}\n  The function was compiled with fullgraph=True, which allows no graph break.")

    def __reduce__(self) -> tuple[type[Unsupported], tuple[BreakReason]]:
        return type(self), (self.reason,)


class RecompileLimitExceeded(FramegateError):
    """A gate with ``fullgraph=True`` has started as many compiles as its ``recompile_limit`` allows, and no entry fits the call."""


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as second:
        return f"<its text cannot be made: {type(second).__name__}>"


class BackendCompilerFailed(FramegateError):
    """A backend raised, or gave back something that cannot be used.

    ``backend_name`` is the name of the backend, ``inner_exception`` what it raised (also ``__cause__``), or None.

    Every `Exception` of a backend arrives like this, `MemoryError` and `RecursionError` too, as from ``torch.compile``: a program that catches those around a call means its
    own work, and would take a failed compilation for it. What is no `Exception` (`KeyboardInterrupt`, `SystemExit`, a cancelled task) leaves the call as it is. Either way nothing is
    kept: the next call asks the backend again. What the *compiled* graph raises when it runs is never wrapped.
    """

    def __init__(self, backend_name: str, inner_exception: BaseException | None = None, message: str = "") -> None:
        self.backend_name = backend_name
        self.inner_exception = inner_exception
        self.detail = message
        if inner_exception is not None:
            what = f"backend {backend_name!r} raised {type(inner_exception).__name__}: {_text_of(inner_exception)}"
        else:
            what = f"backend {backend_name!r}"
        super().__init__(f"{what}{': ' if message and inner_exception is None else ' ' if message else ''}{message}".rstrip())

    def __reduce__(self) -> tuple[type[BackendCompilerFailed], tuple[str, BaseException | None, str]]:
        return type(self), (self.backend_name, self.inner_exception, self.detail)


class InternalError(FramegateError):
    """A fault of framegate. Normally the frame runs uncompiled after one warning; with ``config.strict_errors`` this is raised."""


class FailOnRecompile(FramegateError):
    """A compile was needed while the stance is ``"fail_on_recompile"``."""
