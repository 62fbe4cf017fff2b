"""Timing of several contenders in one process, interleaved, so that a change of the machine's speed meets all of them alike.

A round measures each contender once, in an order that rotates from round to round, and a plain Python call beside them. Figures are medians
over rounds; a ratio is the median of the rounds' own ratios, never a quotient of figures of different rounds. So is a figure in plain calls, and
the same scaled to a machine whose plain call takes PLAIN_NS, which is what to compare between machines.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

ROUNDS, FEWEST, SECONDS = 751, 75, 10.0  # as many rounds as take about so long
# Seconds. So short that what disturbs a slice (another process, a slower clock) either takes it whole, and the median passes over it, or meets its
# neighbours alike.
SLICE = 0.0002
PLAIN_NS = 35.0
PLAIN = "plain call"


def plain(x):
    """What every figure is also expressed in: one call of the smallest Python function."""
    return x


def ns_per_call(function: Callable[..., Any], args: Sequence[Any], n: int) -> float:
    """Nanoseconds of one call, loop included, over n calls."""
    clock = time.perf_counter_ns
    if len(args) == 1:
        (a,) = args
        start = clock()
        for _ in range(n):
            function(a)
        return (clock() - start) / n
    start = clock()
    for _ in range(n):
        function(*args)
    return (clock() - start) / n


def loops_for(function: Callable[..., Any], args: Sequence[Any], seconds: float) -> int:
    """How many calls take about that long."""
    n = 1
    while True:
        took = ns_per_call(function, args, n) * n / 1e9
        if took > seconds / 4 or n >= 1 << 22:
            return max(1, int(n * seconds / max(took, 1e-9)))
        n *= 4


def quartiles(values: list[float]) -> list[float]:
    if len(values) < 2:
        return values * 2
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return [low, high]


@dataclass
class Row:
    """One line of the table. `rounds` has a list of figures per contender, the i-th of each from round i."""

    name: str
    unit: str
    rounds: dict[str, list[float]] = field(default_factory=dict)
    note: str = ""

    def median(self, contender: str) -> float:
        return statistics.median(self.rounds[contender])

    def ratio(self, above: str, below: str) -> float:
        """Median over rounds of above / below."""
        return statistics.median(a / b if b else 0.0 for a, b in zip(self.rounds[above], self.rounds[below], strict=True))

    def above(self, contender: str, base: str, name: str) -> None:
        """Add what the contender costs above the base, round by round."""
        self.rounds[name] = [a - b for a, b in zip(self.rounds[contender], self.rounds[base], strict=True)]

    def as_json(self) -> dict[str, Any]:
        medians = {name: self.median(name) for name in self.rounds}
        spread = {name: quartiles(values) for name, values in self.rounds.items()}
        out: dict[str, Any] = {
            "name": self.name,
            "unit": self.unit,
            "median": medians,
            "quartiles": spread,
            "rounds": len(self.first()),
        }
        if "framegate" in self.rounds:
            out["ratio_to_framegate"] = {n: self.ratio(n, "framegate") for n in self.rounds if n not in ("framegate", PLAIN)}
        if PLAIN in self.rounds:
            out["plain_calls"] = {n: self.ratio(n, PLAIN) for n in self.rounds if n != PLAIN}
        if self.note:
            out["note"] = self.note
        return out

    def first(self) -> list[float]:
        return next(iter(self.rounds.values()))


def interleave(
    name: str, contenders: dict[str, tuple[Callable[..., Any], Sequence[Any]]], *, per_call: int = 1, note: str = ""
) -> Row:
    """Nanoseconds per call of each contender (function, args); per_call: how many operations one call makes."""
    contenders = {**contenders, PLAIN: (plain, (1,))}
    counts = {}
    longest = 0.0
    for who, (function, args) in contenders.items():
        for _ in range(100):
            function(*args)
        counts[who] = loops_for(function, args, SLICE)
        longest += 1.3 * max(SLICE, ns_per_call(function, args, 1) / 1e9)
    row = Row(name, "ns", {who: [] for who in contenders}, note)
    order = list(contenders)
    gc.collect()
    gc.disable()
    try:
        for i in range(min(ROUNDS, max(FEWEST, int(SECONDS / longest)))):
            for who in order[i % len(order) :] + order[: i % len(order)]:
                function, args = contenders[who]
                ns_per_call(function, args, max(1, counts[who] // 4))  # the one before it has had the caches
                figure = ns_per_call(function, args, counts[who])
                row.rounds[who].append(figure if who == PLAIN else figure / per_call)
    finally:
        gc.enable()
    return row


def interleave_once(name: str, contenders: dict[str, Callable[[], float]], *, rounds: int = 5, note: str = "") -> Row:
    """For what happens once (a first call): each contender is a function that sets up anew and gives milliseconds."""
    contenders = {**contenders, PLAIN: lambda: ns_per_call(plain, (1,), 20_000) / 1e6}
    row = Row(name, "ms", {who: [] for who in contenders}, note)
    for who in contenders:
        contenders[who]()
    order = list(contenders)
    for i in range(rounds):
        for who in order[i % len(order) :] + order[: i % len(order)]:
            gc.collect()
            row.rounds[who].append(contenders[who]())
    return row
