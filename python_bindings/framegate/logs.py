"""Artifacts to print, chosen by ``FRAMEGATE_LOGS`` or `set_logs`.

``FRAMEGATE_LOGS="graph_breaks,recompiles,guards,graph_code"`` prints to stderr through the standard `logging` module, logger ``framegate`` with one child
for each artifact. ``+framegate`` switches debug messages on. The idea is that of ``TORCH_LOGS``.

The C part calls `graph_break`, `recompile`, `compiled` and `warn_internal` on its slow path. They also feed whoever listens (`listen`): explain() does.
Nothing is formatted unless somebody wants it.
"""

from __future__ import annotations

import contextlib
import difflib
import logging
import os
import threading
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from framegate import _core, _stats, exc

#: What can be printed, and when.
ARTIFACTS: dict[str, str] = {
    "graph_breaks": "each graph break: category, explanation, hints, the user's stack",
    "recompiles": "each compile after the first of a function: which guard of which entry failed, and the values seen",
    "guards": "the guard tree of each new entry",
    "graph_code": "the graphs of each new entry as Python code",
    "intercept": "each code object that `intercept` leaves alone, and why",
    "bytecode": "the generated code of each new entry, disassembled",
}

_log = logging.getLogger("framegate")
_enabled: set[str] = set()
_local = threading.local()
_warned: set[str] = set()


class _StderrHandler(logging.StreamHandler):
    """Writes to what sys.stderr is at the time, so that redirection and pytest's capture work."""

    @property
    def stream(self) -> Any:
        import sys

        return sys.stderr

    @stream.setter
    def stream(self, value: Any) -> None:
        pass


def set_logs(*artifacts: str, debug: bool = False) -> None:
    """Print exactly these artifacts from now on (none: nothing). ``debug`` adds framegate's own debug messages. ValueError for an unknown name."""
    for name in artifacts:
        if name not in ARTIFACTS:
            near = difflib.get_close_matches(name, ARTIFACTS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(ARTIFACTS)}"
            raise ValueError(f"there is no log artifact {name!r}; {hint}")
    _enabled.clear()
    _enabled.update(artifacts)
    _core.intercept_log(left_alone if "intercept" in _enabled else None)
    if (artifacts or debug) and not any(isinstance(h, _StderrHandler) for h in _log.handlers):
        handler = _StderrHandler()
        handler.setFormatter(logging.Formatter("[%(name)s] %(message)s"))
        _log.addHandler(handler)
        _log.propagate = False
    _log.setLevel(logging.DEBUG if debug else logging.INFO if artifacts else logging.WARNING)


def enabled(artifact: str) -> bool:
    """True if the artifact is printed, or somebody on this thread listens. The C part asks before it makes texts."""
    return artifact in _enabled or bool(getattr(_local, "listeners", None))


def _from_environment() -> None:
    names = [name.strip() for name in os.environ.get("FRAMEGATE_LOGS", "").split(",")]
    names = [name for name in names if name]
    debug = "+framegate" in names
    names = [name for name in names if name not in ("+framegate", "framegate")]
    unknown = [name for name in names if name not in ARTIFACTS]
    if unknown:
        warnings.warn(f"FRAMEGATE_LOGS names unknown artifacts: {', '.join(unknown)}; known are {', '.join(ARTIFACTS)}", stacklevel=2)
    if names or debug:
        set_logs(*(name for name in names if name in ARTIFACTS), debug=debug)


Listener = Callable[[str, dict[str, Any]], None]


@contextlib.contextmanager
def listen(listener: Listener) -> Iterator[None]:
    """Call ``listener(kind, record)`` for every event on this thread inside the ``with``."""
    listeners = _local.__dict__.setdefault("listeners", [])
    listeners.append(listener)
    try:
        yield
    finally:
        listeners.remove(listener)


def _emit(kind: str, record: dict[str, Any]) -> None:
    for listener in list(getattr(_local, "listeners", ())):
        listener(kind, record)


def _print(artifact: str, text: str) -> None:
    _log.getChild(artifact).info("%s", text)


# --- called by the C part -----------------------------------------------------------------------------------------------------------------


def graph_break(
    function: str,
    gb_type: str,
    context: str = "",
    explanation: str = "",
    hints: Iterable[str] = (),
    user_stack: Iterable[exc.Frame] = (),
    pause: int = 0,
) -> None:
    """One graph break while ``function`` (a qualified name) is traced. ``user_stack``: (file, line, function), outermost first. ``pause``: so many calls
    that no entry fits run plain before the next compile, since none of the last ones gave an entry."""
    reason = exc.BreakReason(gb_type, context, explanation, tuple(hints), tuple(user_stack))
    _stats.count_break(gb_type)
    _emit("graph_break", {"function": function, "reason": reason})
    if "graph_breaks" in _enabled:
        vain = f"\n  No entry came of this compile nor of those before: {pause} calls run plain before the next one." if pause else ""
        _print("graph_breaks", f"in {function}\n{reason}{vain}")


def recompile(function: str, filename: str, line: int, reasons: Iterable[tuple[str, Iterable[str]]]) -> None:
    """A call that no entry fitted is compiled anew. ``reasons``: for each entry tried its compile id and the conditions that fail."""
    listed = [(compile_id, list(conditions)) for compile_id, conditions in reasons]
    _emit("recompile", {"function": function, "filename": filename, "line": line, "reasons": listed})
    if "recompiles" in _enabled:
        lines = [f'{function} ("{filename}", line {line}) is compiled again:']
        for compile_id, conditions in listed:
            lines.append(f"  entry {compile_id} does not fit:")
            lines += [f"    {each}" for each in conditions] or ["    it was invalidated: an object that it depends on is gone"]
        _print("recompiles", "\n".join(lines))


def compiled(function: str, compile_id: str, seconds: float = 0.0, graphs: Iterable[Any] = (), guards: Any = None, code: Any = None) -> None:
    """A new entry. ``guards``: anything whose str() is the guard tree; ``code``: the generated code object."""
    made = list(graphs or ())
    _stats.count_seconds("compile", seconds)
    _emit("compiled", {"function": function, "compile_id": compile_id, "seconds": seconds, "graphs": made, "guards": guards, "code": code})
    if "graph_code" in _enabled:
        for graph in made:
            _print("graph_code", f"{function}, entry {compile_id}\n{graph.print_readable(print_output=False)}")
    if "guards" in _enabled and guards is not None:
        _print("guards", f"{function}, entry {compile_id}\n{guards}")
    if "bytecode" in _enabled and code is not None:
        import dis

        _print("bytecode", f"{function}, entry {compile_id}\n{dis.Bytecode(code).dis()}")


def left_alone(code: types.CodeType, reason: str) -> None:
    """Frames of this code object are not intercepted. Said once for each."""
    _print("intercept", f'{code.co_qualname} ("{code.co_filename}", line {code.co_firstlineno}) runs plain: {reason}')


def replayed(graph: str, backend: str, error: BaseException | None) -> None:
    """A graph that a backend of torch cannot compile, or not rightly, because of its own operations; they are replayed."""
    _emit("replayed", {"graph": graph, "backend": backend, "error": error})
    why = f"{type(error).__name__}: {error}" if error is not None else "it raises, changes the size of an input, or makes tensors whose gradient is wanted"
    _log.debug("graph %r is replayed, not compiled by backend %r: %s", graph, backend, why)


def warn_internal(function: str, what: str) -> None:
    """A fault of framegate: InternalError if ``config.strict_errors``, else one warning for each distinct fault; the frame runs uncompiled."""
    from framegate import config

    text = (
        f"framegate could not compile {function}: {what}. This is a fault of framegate, not of your program; the function runs uncompiled. "
        "Please report it with the output of `python -m framegate doctor` and, if you can, the function."
    )
    if config.strict_errors:
        raise exc.InternalError(text)
    key = f"{function}: {what}"
    if key not in _warned:
        _warned.add(key)
        warnings.warn(text, RuntimeWarning, stacklevel=2)


_from_environment()
