"""Rows that need NumPy only."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import time
from pathlib import Path

import framegate
import numpy as np
from measure import Row, interleave, interleave_once, plain

ROOT = Path(__file__).resolve().parents[1]


def must_hit(compiled, args: list[tuple], what: str) -> None:
    """A row is only worth printing if its calls are hits."""
    for a in args:
        compiled(*a)
    before = framegate.stats()
    for a in args:
        compiled(*a)
    after = framegate.stats()
    if after["hits"] - before["hits"] < len(args) or after["compiles"] != before["compiles"]:
        raise RuntimeError(f"{what}: the calls are no hits ({before['hits']} -> {after['hits']} hits)")


def numpy_call() -> Row:
    x = np.ones(8)

    def f(x):
        return x + 1

    compiled = framegate.compile(f)
    must_hit(compiled, [(x,)], "numpy_call")
    return interleave("x + 1 on an ndarray: compiled beside plain", {"framegate": (compiled, (x,)), "plain function": (f, (x,))})


def numba_call() -> Row | None:
    """numba's dispatcher for one array argument, measured in its own environment beside a plain call there."""
    python = ROOT / ".venv-numba/bin/python"
    if not python.exists() or (ROOT / ".venv-numba/.failed").exists():
        return None
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run([python, ROOT / "bench/numba_dispatch.py"], capture_output=True, text=True, env=env)
    if done.returncode != 0:
        return None
    rounds = json.loads(done.stdout)
    return Row("numba's dispatcher, one ndarray (own process)", "ns", rounds, "compare through the plain call of the same process")


def entries(n: int):
    def h(x):
        return x + 1

    compiled = framegate.compile(h, recompile_limit=1000)
    arrays = [np.ones(i + 1) for i in range(n)]
    must_hit(compiled, [(a,) for a in arrays], f"{n} entries")

    def round_robin():
        for a in arrays:
            compiled(a)

    def round_robin_plain():
        for a in arrays:
            h(a)

    return round_robin, round_robin_plain


def entries_numpy() -> Row:
    many, base_many = entries(64)
    # The same number of calls in each loop, so that its own cost cancels.
    arrays = [np.ones(1)] * 64
    compiled = framegate.compile(lambda x: x + 1)
    must_hit(compiled, [(arrays[0],)], "one entry")

    def one_64():
        for a in arrays:
            compiled(a)

    return interleave(
        "one call, round robin over entries that differ in a size",
        {"framegate": (many, ()), "framegate, 1 entry": (one_64, ()), "plain function": (base_many, ())},
        per_call=64,
    )


def python_loop() -> Row:
    def f(x):
        total = 0
        seen = []
        for i in range(1000):
            total += i * 2
            seen.append(total)
            if total % 3 == 0:
                total -= 1
        return x + len(seen) + total

    x = np.ones(8)

    def first_call() -> float:
        framegate.reset()
        start = time.perf_counter()
        framegate.compile(f)(x)
        return (time.perf_counter() - start) * 1e3

    return interleave_once("first call: a Python loop of 1000 iterations", {"framegate": first_call})


def tax() -> Row:
    """Code that is not compiled, before the first compilation of the process and while compiled functions are in use."""

    def outer(x):
        return plain(plain(plain(plain(x))))

    name = "code that is not compiled (four nested calls)"
    before = interleave(name, {"before": (outer, (1,))})
    x = np.ones(4)
    compiled = framegate.compile(lambda x: x + 1)
    must_hit(compiled, [(x,)], "tax")
    after = interleave(name, {"with entries": (outer, (1,))})
    rounds = {"with entries": after.rounds["with entries"], "before": before.rounds["before"]}
    return Row(name, "ns", rounds, "the plain call of the other rows pays the same tax, so it is no measure here")


def resident() -> int:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def entry_memory() -> Row:
    def h(x):
        return x + 1

    with framegate.config.patch(cache_size=1024):
        compiled = framegate.compile(h, recompile_limit=1000)
        for i in range(50):
            compiled(np.ones(i + 1))
        gc.collect()
        start = resident()
        for i in range(50, 450):
            compiled(np.ones(i + 1))
        gc.collect()
        grown = resident() - start
        live = len(framegate.cache_entries(compiled))
    return Row("resident memory of one entry, over 400", "bytes", {"framegate": [grown / 400]}, f"{live} entries alive")


ROWS = {
    "numpy_call": numpy_call,
    "numba_call": numba_call,
    "entries_numpy": entries_numpy,
    "python_loop": python_loop,
    "tax": tax,
    "entry_memory": entry_memory,
}
