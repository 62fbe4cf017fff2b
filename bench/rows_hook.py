"""Rows of framegate.intercept: what the evaluation hook costs code that is not compiled, and what a hit costs, beside an evaluator that only passes frames on."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
from pathlib import Path

from measure import PLAIN, Row, interleave_once

HERE = Path(__file__).resolve().parent
ROUNDS = 75
NONE = "no evaluator"

# A process for each way to be called: the interpreter specialises call sites by who evaluates frames.
WORKER = """
import gc, sys
sys.path.insert(0, sys.argv[2])
from measure import ns_per_call
mode = sys.argv[1]

def f(x):
    return x

if mode == "pass":
    from pass_through import PassThrough
    PassThrough().install()
elif mode != "without":
    import framegate
    kept = framegate.intercept(filter=lambda code: mode == "hit" and code is f.__code__)
    kept.__enter__()
    if mode == "idle":
        kept.__exit__(None, None, None)
gc.disable()
ns_per_call(f, (1,), 100000)
if mode == "hit":
    before = framegate.stats()["intercepted"]
    ns_per_call(f, (1,), 1000)
    assert framegate.stats()["intercepted"] - before == 1000, "the calls are no hits"
for line in sys.stdin:
    print(min(ns_per_call(f, (1,), 1000) for _ in range(50)), flush=True)
"""

MODES = {
    NONE: "without",
    "pass-through evaluator": "pass",
    "framegate, nobody asks": "idle",
    "framegate, code of no interest": "armed",
    "framegate": "hit",
}


def hook() -> Row:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with contextlib.ExitStack() as stack:
        workers = {}
        for label, mode in MODES.items():
            command = [sys.executable, "-c", WORKER, mode, str(HERE)]
            worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
            workers[label] = stack.enter_context(worker)

        def ask(label: str) -> float:
            print(file=workers[label].stdin, flush=True)
            return float(workers[label].stdout.readline())

        row = interleave_once("one call of an identity function under the evaluation hook", {w: functools.partial(ask, w) for w in workers}, rounds=ROUNDS)
        for worker in workers.values():
            worker.stdin.close()
    row.unit = "ns"
    row.rounds[PLAIN] = row.rounds.pop(NONE)
    base = "pass-through evaluator"
    row.above("framegate", base, "a hit above the pass-through evaluator")
    idle, armed = row.ratio("framegate, nobody asks", base), row.ratio("framegate, code of no interest", base)
    row.note = f"processes in turns, the fastest of 50 slices a round; not compiled, over the pass-through evaluator: {idle:.3f} where nobody asks, {armed:.3f} where the code is of no interest"
    return row


ROWS = {
    "hook": hook,
}
