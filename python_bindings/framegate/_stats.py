"""stats() and reset()."""

from __future__ import annotations

from typing import Any

from framegate import _core

# What the C part does not count itself because it happens on the slow path in Python. No lock: the collector may run a destructor that compiles while a
# thread is in here, and a forked child would inherit it held. `table[key] += n` of a str and a number is one step of the interpreter to other threads: it
# only switches where a function is entered or returns, or a loop goes round.
_breaks: dict[str, int] = {}
_seconds: dict[str, float] = {}


def count_break(gb_type: str) -> None:
    """One graph break of a category."""
    _breaks.setdefault(gb_type, 0)
    _breaks[gb_type] += 1


def count_seconds(phase: str, seconds: float) -> None:
    """Time spent in a phase."""
    _seconds.setdefault(phase, 0.0)
    _seconds[phase] += seconds


def stats() -> dict[str, Any]:
    """Counters since the process started; `reset` does not set them back.

    ``frames`` and ``entries`` are what is there now: code objects (and rests of functions behind graph breaks) that were compiled, and their versions. Among the rest:
    ``hits``, ``misses``, ``compiles``, ``evictions``. ``graph_breaks`` is a dict by gb_type; ``guard_failures`` one by kind of guard (the first of each entry that refused a
    call; ``"not evaluated"`` where no compile followed), whose sum is ``refusals``; ``seconds`` one by phase, of which ``"compile"`` is the whole of a compile that gave an entry.
    """
    made: dict[str, Any] = dict(_core.stats())
    made["graph_breaks"] = {**made.get("graph_breaks", {}), **_breaks}
    made["seconds"] = {**made.get("seconds", {}), **_seconds}
    return made


def reset() -> None:
    """Drop all entries, limits and "never compile this" marks of the process. Functions stay compiled: their next calls start anew. Counters go on."""
    _core.reset()
