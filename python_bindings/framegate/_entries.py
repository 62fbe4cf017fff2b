"""cache_entries(): the entries of a compiled function as Python objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from framegate import _compile, _core


class GuardTree(_core.Guards):
    """The guards of one entry, or a tree read from text. ``str()`` prints it, each leaf with the user's line that asked for it; ``len()`` is the number of guards.

    Checking needs the function whose calls the guards are about: it comes with the entry; a tree from text gets it by `bind`.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<GuardTree with {len(self)} guards>"

    def bind(self, fn: Callable[..., Any]) -> GuardTree:
        """The same guards for calls of this function (plain or compiled). TypeError for what is not a Python function."""
        return GuardTree(self, _compile.find_gate(fn) or fn)


class CacheEntry:
    """One specialised version of a function. ``graph`` is the first captured graph or None, ``graphs`` all of them; ``nbytes`` counts code, guards and programs."""

    __slots__ = ("_entry", "guards")

    def __init__(self, entry: Any, gate: Any) -> None:
        self._entry = entry
        self.guards = GuardTree(entry, gate)

    @property
    def compile_id(self) -> str:
        """``frame/entry``, both counted from 0."""
        return str(self._entry.compile_id)

    @property
    def code(self) -> Any:
        """The generated code object."""
        return self._entry.code

    @property
    def graphs(self) -> list[Any]:
        """The captured graphs."""
        return list(self._entry.graphs or ())

    @property
    def graph(self) -> Any:
        """The first captured graph, or None where the entry has none."""
        graphs = self._entry.graphs
        return graphs[0] if graphs else None

    @property
    def backend(self) -> Any:
        """The backend that compiled the graphs."""
        return self._entry.backend

    @property
    def hits(self) -> int:
        """Calls that this entry served."""
        return int(self._entry.hits)

    @property
    def nbytes(self) -> int:
        """Bytes held by the entry."""
        return int(self._entry.nbytes)

    @property
    def valid(self) -> bool:
        """False once something that the entry depends on has died, or it was dropped."""
        return bool(self._entry.valid)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CacheEntry) and self._entry == other._entry

    def __hash__(self) -> int:
        return hash(self._entry)

    def __repr__(self) -> str:
        return f"<CacheEntry {self.compile_id}: {len(self.guards)} guards, {self.hits} hits, {self.nbytes} bytes>"


def cache_entries(fn: Callable[..., Any]) -> list[CacheEntry]:
    """The living entries that calls of a compiled function look at, most recently used first. TypeError if ``fn`` was not made by `compile`."""
    gate = _compile.gate_of(fn, "cache_entries")
    return [CacheEntry(entry, gate) for entry in _core.entries(gate)]
