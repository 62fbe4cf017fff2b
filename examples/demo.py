#!/usr/bin/env python3
"""What framegate does, shown on real functions: the graph, the guards, what a hit costs, and why a call compiles again.

    python examples/demo.py            # everything that is installed
    python examples/demo.py --no-torch
"""
import argparse
import contextlib
import io
import os
import sys
import time

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import framegate  # noqa: E402
import numpy_models as models  # noqa: E402

WIDE = 78
COLOUR = sys.stdout.isatty()


def head(text):
    line = f"── {text} " + "─" * max(0, WIDE - len(text) - 4)
    print(f"\n\033[1m{line}\033[0m" if COLOUR else f"\n{line}")


def shorten(text, limit=18):
    """The text indented, with its middle left out when long."""
    lines = str(text).rstrip().splitlines()
    if len(lines) > limit:
        kept = limit * 2 // 3
        lines = lines[:kept] + [f"... {len(lines) - limit + 1} more lines ..."] + lines[-(limit - kept - 1):]
    for line in lines:
        print("   ", line if len(line) <= 150 else line[:147] + "...")


def seconds(fn, args, budget=0.15):
    """Best time of one call, by repeated short batches."""
    n, best = 1, float("inf")
    while True:
        start = time.perf_counter()
        for _ in range(n): fn(*args)
        took = time.perf_counter() - start
        if took > budget / 20: break
        n *= 2
    end = time.perf_counter() + budget
    while time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(n): fn(*args)
        best = min(best, (time.perf_counter() - start) / n)
    return best


def shown(t):
    return f"{t * 1e9:.0f} ns" if t < 1e-5 else f"{t * 1e6:.1f} us" if t < 1e-2 else f"{t * 1e3:.1f} ms"


def table(rows):
    wide = max(len(name) for name, _ in rows)
    base = rows[0][1]
    for name, t in rows:
        print(f"    {name:<{wide}}  {shown(t):>10}   {t / base:5.2f}x")


def entry_of(compiled):
    entries = framegate.cache_entries(compiled)
    return entries[0] if entries else None


def show_function(name, fn, args, explain=True):
    head(name)
    compiled = framegate.compile(fn)
    start = time.perf_counter()
    result = compiled(*args)
    took = time.perf_counter() - start
    same = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(flat(result), flat(fn(*args))))
    print(f"first call: {shown(took)}, result {'equals' if same else 'DIFFERS FROM'} plain Python's")
    entry = entry_of(compiled)
    if entry is None:
        print("nothing was compiled; explain() says:")
        shorten(framegate.explain(fn)(*args))
        return compiled
    if explain:
        print(f"graph of entry {entry.compile_id}:")
        shorten(entry.graph.print_readable(print_output=False))
        print("guards:")
        shorten(entry.guards)
    return compiled


def flat(v):
    return [x for item in v for x in flat(item)] if isinstance(v, (tuple, list)) else [v]


def call_overhead():
    head("What a hit costs")
    def plain(x): return x
    def gated(x): return x
    one = np.ones(3)
    rows = [("plain call", seconds(plain, (one,)))]
    compiled = framegate.compile(gated)
    compiled(one)
    rows.append(("framegate, hit", seconds(compiled, (one,))))
    with contextlib.suppress(ImportError):
        import numba
        jitted = numba.njit(plain)
        jitted(one)
        rows.append(("numba, hit", seconds(jitted, (one,))))
    table(rows)
    print("a function that does array work:")
    fn, args = models.inputs(0, 64)["black_scholes"]
    compiled = framegate.compile(fn)
    compiled(*args)
    table([("plain call", seconds(fn, args)), ("framegate, hit", seconds(compiled, args))])


def recompiles(compiled, args):
    head("Why it compiles again")
    changed = tuple(np.concatenate([a, a]) if isinstance(a, np.ndarray) else a for a in args)
    print("the same function with arrays of twice the length. framegate.why says before the call:")
    shorten(framegate.why(compiled)(*changed), 10)
    before = len(framegate.cache_entries(compiled))
    compiled(*changed)
    print(f"entries before the call: {before}, after it: {len(framegate.cache_entries(compiled))}; and now:")
    shorten(framegate.why(compiled)(*changed), 4)
    single = tuple(a.astype(np.float32) if isinstance(a, np.ndarray) else a for a in args)
    print("with float32:")
    shorten(framegate.why(compiled)(*single), 10)


def effects():
    head("Effects on the caller's objects are kept, and cost no recompile")
    class Counter:
        def __init__(self): self.steps = 0
        def step(self, x, log):
            self.steps += 1
            log.append(self.steps)
            return x * self.steps
    c, log = Counter(), []
    step = framegate.compile(c.step)
    for _ in range(100): y = step(np.ones(2), log)
    print(f"100 calls of a method that bumps self.steps and appends: steps={c.steps}, last item {log[-1]}, result {y}, "
          f"entries {len(framegate.cache_entries(step))}")


def breaks():
    head("A graph break")
    def f(x):
        y = np.sin(x) + 1
        print("half way")
        return np.cos(y) * 2
    with contextlib.redirect_stdout(io.StringIO()):
        text = str(framegate.explain(f)(np.ones(3)))
    shorten(text, 16)


def with_torch():
    head("PyTorch: a Sequential model")
    import torch
    import torch_models
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, x = torch_models.mlp().eval(), torch.randn(4, 8)
    with torch.no_grad():
        compiled = framegate.compile(model)
        start = time.perf_counter()
        same = torch.equal(compiled(x), model(x))
        print(f"first call: {shown(time.perf_counter() - start)}, result {'equals' if same else 'DIFFERS FROM'} eager's")
        rows = [("eager", seconds(model, (x,))), ("framegate, hit", seconds(compiled, (x,)))]
        try:
            other = torch.compile(model, backend="eager")
            other(x)
            rows.append(("torch.compile, hit", seconds(other, (x,))))
        except Exception as e:
            print(f"torch.compile did not run here: {type(e).__name__}")
        table(rows)
        entry = entry_of(compiled)
        if entry is not None:
            print("graph:")
            shorten(entry.graph.print_readable(print_output=False))
        print("a batch of another size:")
        shorten(framegate.why(compiled)(torch.randn(7, 8)), 8)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--no-torch", action="store_true")
    a = p.parse_args()
    fn, args = models.inputs(0, 64)["black_scholes"]
    compiled = show_function("Black-Scholes", fn, args)
    recompiles(compiled, args)
    call_overhead()
    effects()
    breaks()
    for name, (fn, args) in models.inputs(0, 64).items():
        if name != "black_scholes": show_function(name, fn, args, explain=False)
    if not a.no_torch:
        try:
            with_torch()
        except ImportError:
            print("\nPyTorch is not installed: the rest of the demo is left out.")
    head("Counters")
    shorten("\n".join(f"{k}: {v}" for k, v in framegate.stats().items() if v), 14)
    return 0


if __name__ == "__main__":
    sys.exit(main())
