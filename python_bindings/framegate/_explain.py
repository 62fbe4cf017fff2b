"""explain() and why(): what a call made of a function, and what the next call would do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from framegate import _compile, _core, _entries, exc, logs

BreakReason = exc.BreakReason


@dataclass
class Explanation:
    """What compiling one call gave. ``str()`` is a report.

    ``graphs``: the captured graphs (`framegate.Graph`) in the order of compilation; ``graph_count`` and ``op_count``: their number and that of their operations;
    ``break_reasons``: why tracing stopped where it did (`BreakReason`), ``graph_break_count`` their number; ``guards``: one guard tree for each entry made;
    ``compile_times``: seconds for each entry made, by ``function, entry``; ``result``: what the call returned.
    The idea is that of ``torch._dynamo.explain``.
    """

    function: str
    graphs: list[Any] = field(default_factory=list)
    break_reasons: list[BreakReason] = field(default_factory=list)
    guards: list[Any] = field(default_factory=list)
    compile_times: dict[str, float] = field(default_factory=dict)
    result: Any = field(default=None, repr=False)

    @property
    def graph_count(self) -> int:
        return len(self.graphs)

    @property
    def graph_break_count(self) -> int:
        return len(self.break_reasons)

    @property
    def op_count(self) -> int:
        return sum(graph.op_count for graph in self.graphs)

    def __str__(self) -> str:
        def count(n: int, word: str) -> str:
            return f"{n} {word}{'' if n == 1 else 's'}"

        lines = [f"{self.function}: {count(self.graph_count, 'graph')}, {count(self.op_count, 'operation')}, {count(self.graph_break_count, 'graph break')}"]
        for i, reason in enumerate(self.break_reasons, 1):
            lines.append(f"\n{i}. {reason}")
        for i, graph in enumerate(self.graphs, 1):
            lines.append(f"\nGraph {i}: {count(graph.placeholder_count, 'input')}, {count(graph.op_count, 'operation')}")
            lines += ["    " + line for line in graph.print_readable(print_output=False).splitlines()]
        for i, guards in enumerate(self.guards, 1):
            lines.append(f"\nGuards of entry {i}:")
            lines += ["    " + line for line in str(guards).splitlines()]
        if self.compile_times:
            lines.append("\nSeconds to compile:")
            lines += [f"    {name}: {seconds:.6f}" for name, seconds in self.compile_times.items()]
        if not self.compile_times:
            lines.append("Nothing was compiled: the function ran as plain Python.")
        return "\n".join(lines)


def explain(fn: Callable[..., Any]) -> Callable[..., Explanation]:
    """``explain(fn)(*args, **kwargs)`` compiles and runs one call of ``fn`` and says what came of it, as an `Explanation`.

    The call is really made, with all its effects, by a compiled version of its own: entries that ``fn`` may have are neither used nor changed. Exceptions of the call
    are raised. TypeError for what `compile` does not take.
    """
    name = getattr(fn, "__qualname__", type(fn).__qualname__)

    def explained(*args: Any, **kwargs: Any) -> Explanation:
        made = Explanation(name)

        graphs = made.graphs

        # A backend of this call's own: its options differ from everyone else's, so its entries are its own too. They hold it, and `made` has their guards,
        # which hold them: it must not hold `made`, since the collector cannot see a cycle that goes through an entry.
        def recorder(graph: Any, example_inputs: list[Any]) -> Any:
            graphs.append(graph)
            return graph

        recorder.framegate_graph = True  # type: ignore[attr-defined]

        def listener(kind: str, record: dict[str, Any]) -> None:
            if kind == "graph_break":
                made.break_reasons.append(record["reason"])
            elif kind == "compiled":
                if record["guards"] is not None:
                    made.guards.append(record["guards"])
                made.compile_times[f"{record['function']}, {record['compile_id']}"] = record["seconds"]

        target = _compile.compile_with(_plain(fn), _compile.make_options(recorder))
        with logs.listen(listener):
            made.result = target(*args, **kwargs)
        return made

    return explained


def _plain(fn: Any) -> Any:
    """What was compiled, if something was, so that the options of `explain` hold."""
    return fn.__wrapped__ if isinstance(fn, _core.Gate) else fn


def why(fn: Callable[..., Any]) -> Callable[..., str]:
    """``why(fn)(*args, **kwargs)``: would this call of a compiled function hit, and if not, why not. One paragraph; nothing is run or compiled.

    TypeError if ``fn`` was not made by `compile`.
    """
    gate = _compile.gate_of(fn, "why")
    lead_args, lead_kwargs = _compile.leading_args(fn)

    def reason(*args: Any, **kwargs: Any) -> str:
        return _why(gate, (*lead_args, *args), {**lead_kwargs, **kwargs})

    return reason


def _why(gate: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    function = gate.__wrapped__
    code = function.__code__
    where = f'{function.__qualname__} ("{code.co_filename}", line {code.co_firstlineno})'
    entries = _entries.cache_entries(gate)
    if not entries:
        return f"This call of {where} would compile: it has no entries yet. That is the normal first call; if it stays so, framegate.explain says why nothing is kept."
    for entry in entries:
        if entry.guards.check(*args, **kwargs):
            return f"This call of {where} would hit entry {entry.compile_id}: all its {len(entry.guards)} guards hold. It has served {entry.hits} calls so far."
    parts = [f"This call of {where} would not hit: {'its entry does not fit' if len(entries) == 1 else f'none of its {len(entries)} entries fits'}."]
    for entry in entries:
        failing = entry.guards.explain(*args, **kwargs)
        text = failing[0] if failing else "the arguments cannot be bound to the function's parameters"
        more = f" (and {len(failing) - 1} more)" if len(failing) > 1 else ""
        parts.append(f"Entry {entry.compile_id} fails on: {text}{more}.")
    parts.append("Such a call is compiled anew, within recompile_limit.")
    return " ".join(parts)
