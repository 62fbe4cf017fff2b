"""Rows that need NumPy only."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

import framegate
import numpy as np
from measure import PLAIN, Row, interleave, interleave_once

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
    contenders: dict = {"framegate": (compiled, (x,)), "plain function": (f, (x,))}
    note = "numba is not installed"
    if importlib.util.find_spec("numba"):
        import numba

        constant = numba.njit(lambda x: 1)
        constant(x)
        contenders["numba, a constant"] = (constant, (x,))
        note = "numba's function returns a constant: what is left is its dispatcher"
    row = interleave("x + 1 on an ndarray", contenders, note=note)
    row.above("framegate", "plain function", "framegate above plain")
    if "numba, a constant" in row.rounds:
        row.above("numba, a constant", PLAIN, "numba above a call")
    return row


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


TAX_WORKER = """
import sys, tax_code
from measure import ns_per_call, plain
around = tax_code.prepare(sys.argv[1])
for line in sys.stdin:
    took = []
    around(lambda n: took.append(ns_per_call(getattr(tax_code, sys.argv[2]), (n,), 1) / n), int(line))
    print(took[0], ns_per_call(plain, (1,), 5_000), flush=True)
"""


def tax() -> Row:
    """Code that is not compiled, in a process that never imports the package and in one where compiled functions are in use, in turns."""
    name = "code that is not compiled: a method, attributes and a property"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "bench"), *filter(None, sys.path)])}
    who = {"without framegate": "without", "compiled functions in use": "in_use"}
    with contextlib.ExitStack() as stack:
        workers = {}
        for label, mode in who.items():
            command = [sys.executable, "-c", TAX_WORKER, mode, "objects"]
            worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
            workers[label] = stack.enter_context(worker)

        plain_calls = []

        def ask(label: str) -> float:
            print(500, file=workers[label].stdin, flush=True)
            took, plain_call = map(float, workers[label].stdout.readline().split())
            if label == "without framegate":
                plain_calls.append(plain_call)
            return took

        row = interleave_once(name, {label: functools.partial(ask, label) for label in workers}, rounds=75)
        for worker in workers.values():
            worker.stdin.close()
    row.unit = "ns"
    row.rounds[PLAIN] = plain_calls[-75:]
    ratio = row.ratio("compiled functions in use", "without framegate")
    row.note = f"two processes in turns; with over without: {ratio:.3f}; ./dev counts shows it exactly"
    return row


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
    "entries_numpy": entries_numpy,
    "python_loop": python_loop,
    "tax": tax,
    "entry_memory": entry_memory,
}
