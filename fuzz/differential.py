#!/usr/bin/env python3
"""Differential fuzzer: random programs, run plain and through an engine, compared in everything a caller can observe.

    fuzz/differential.py --engine framegate --seed-range 0:100000 --progress fuzz.json    # resumes where the file says
    fuzz/differential.py --engine framegate --seconds 60
    fuzz/differential.py --engine framegate --one 1234                                     # shrinks it, prints a stand-alone program
    fuzz/differential.py --engine broken:swap_operands --seconds 5                         # must find something

Seeds run in batches, each batch in a child process: a crash or a hang ends the child and names the seed, and the next batch goes on after
it. The summary says how much was really compiled (hits, graph operations, breaks by reason), because an engine that runs everything plain
makes no mistakes either. Exit status: 0 no failure, 1 failures, 2 the engine compiled nothing.
"""
import argparse
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
BINDINGS = os.path.join(os.path.dirname(HERE), "python_bindings")


def _prepare_path() -> None:
    try:
        import framegate  # noqa: F401
    except ImportError:
        sys.path.insert(0, BINDINGS)


# -- child


def _flat(stats: Any, prefix: str = "") -> dict[str, float]:
    found: dict[str, float] = {}
    items = stats.items() if isinstance(stats, dict) else []
    for k, v in items:
        if isinstance(v, dict):
            found.update(_flat(v, f"{prefix}{k}."))
        elif isinstance(v, (int, float)) and not isinstance(v, bool):
            found[prefix + str(k)] = v
    return found


def child(a: argparse.Namespace) -> int:
    """Run seeds [a, b); one JSON line per event on stdout's descriptor."""
    import faulthandler
    faulthandler.enable()
    from differential_engines import engine_named
    from differential_generate import generate
    from differential_run import run_program
    engine = engine_named(a.engine)
    fg: Any = None
    if a.engine == "framegate":
        _prepare_path()
        import framegate as fg
    out = os.dup(1)
    os.dup2(2, 1)  # a program that writes past sys.stdout may not break the protocol
    first, last = map(int, a.child.split(":"))

    def send(**event: Any) -> None:
        os.write(out, (json.dumps(event) + "\n").encode())

    compiled: list[Any] = []
    graph_ops = entries = uncompiled = 0

    def kept(fn: Any) -> Any:
        compiled.append(engine(fn))
        return compiled[-1]

    def count_graphs() -> None:
        nonlocal graph_ops, entries, uncompiled
        for fn in compiled:
            found = fg.cache_entries(fn)
            uncompiled += not found
            entries += len(found)
            for entry in found:
                graph_ops += sum(node.op.startswith("call_") for node in getattr(entry.graph, "nodes", ()))
        compiled.clear()

    end = time.monotonic() + a.seconds if a.seconds else None
    for seed in range(first, last):
        if end is not None and time.monotonic() >= end:
            break
        send(start=seed)
        if a.text:
            with open(a.text, encoding="utf-8") as f:
                text = f.read()
            n_calls, rebind = a.calls, a.rebind
        else:
            _, text, n_calls, rebind = generate(seed)
        failure = run_program(seed, text, n_calls, rebind, engine if fg is None else kept)
        if failure:
            send(failure=failure._asdict())
        if fg is not None and seed % 50 == 49:
            count_graphs()
            fg.reset()
    stats = {}
    if fg is not None:
        count_graphs()
        stats = _flat(fg.stats()) | {"graph_ops": graph_ops, "live_entries": entries, "programs_without_an_entry": uncompiled}
    send(done=first, stats=stats)
    return 0


# -- parent


class Batch:
    """One child process over a range of seeds."""

    def __init__(self, engine: str, first: int, last: int, seconds: float | None, timeout: float, extra: list[str] | None = None) -> None:
        self.failures: list[dict[str, Any]] = []
        self.stats: dict[str, float] = {}
        self.done_to = first
        command = [sys.executable, os.path.abspath(__file__), "--engine", engine, "--child", f"{first}:{last}"] + (extra or [])
        if seconds is not None:
            command += ["--seconds", str(seconds)]
        errors = tempfile.TemporaryFile()
        proc = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env={**os.environ, "PYTHONHASHSEED": "0"})
        current, finished, rest = None, False, b""
        assert proc.stdout is not None
        fd = proc.stdout.fileno()
        while True:
            ready, _, _ = select.select([fd], [], [], timeout)
            if not ready:
                proc.kill()
                self._lost(current, "hang", f"no end in {timeout:g} s", first)
                break
            chunk = os.read(fd, 65536)
            if not chunk:
                break
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                event = json.loads(line)
                if "start" in event:
                    current = event["start"]
                    self.done_to = current
                elif "failure" in event:
                    self.failures.append(event["failure"])
                else:
                    finished, self.stats = True, event["stats"]
        code = proc.wait()
        proc.stdout.close()
        if finished:
            self.done_to = (current if current is not None else first - 1) + 1
            if code:
                self.failures.append(dict(seed=current, kind="exit", call=-1, plain="", other=f"exit status {code} after the last program"))
        elif not self.failures or self.failures[-1]["kind"] != "hang":
            errors.seek(0)
            self._lost(current, "crash", f"exit status {code}\n" + errors.read().decode(errors="replace")[-3000:], first)
        errors.close()

    def _lost(self, seed: int | None, kind: str, text: str, first: int) -> None:
        self.failures.append(dict(seed=first if seed is None else seed, kind=kind, call=-1, plain="", other=text))
        self.done_to = (first if seed is None else seed) + 1


def repro_text(text: str, n_calls: int, rebind: bool, engine: str, failure: dict[str, Any]) -> str:
    """A program of its own that shows the failure: prints what each call gives, plain and compiled."""
    broken = engine not in ("plain", "framegate")
    head = f"import sys; sys.path.insert(0, {HERE!r}); from differential_engines import BROKEN\ncap = BROKEN[{engine!r}]\n" if broken \
        else "cap = lambda f: f\n" if engine == "plain" else "import framegate\ncap = framegate.compile\n"
    body = f'''# seed {failure["seed"]}: {failure["kind"]} differs at call {failure["call"]}
# plain:    {failure["plain"][:600]!r}
# compiled: {failure["other"][:600]!r}
{head}PROGRAM = r\'\'\'
{text.strip()}
\'\'\'
import linecache, traceback
linecache.cache["<program>"] = (len(PROGRAM), None, PROGRAM.splitlines(True), "<program>")
def show(*values):
    try: return repr(values)
    except Exception as e: return f"<repr raised {{e!r}}>"
for name, engine in (("plain", lambda f: f), ("compiled", cap)):
    space = {{"__name__": "repro"}}
    exec(compile(PROGRAM, "<program>", "exec"), space)
    run = engine(space["target"])
    if {rebind}: space["target"] = run
    for k in range({n_calls}):
        args, kwargs = space[f"call{{k}}"]()
        try: print(name, k, show(run(*args, **kwargs)), "inputs after:", show(args, kwargs))
        except Exception: print(name, k, traceback.format_exc())
    print(name, "globals after:", show({{n: v for n, v in space.items() if n.startswith("G_")}}))
'''
    return body


def shrink_failure(engine: str, failure: dict[str, Any], seconds: float) -> tuple[str, int, bool]:
    """(smaller text, calls, rebind) of a failing seed. Crashes and hangs are tried in a process each."""
    from differential_engines import engine_named
    from differential_generate import generate
    from differential_run import run_program
    from differential_shrink import shrink
    _, text, n_calls, rebind = generate(failure["seed"])
    isolated = failure["kind"] in ("crash", "hang", "exit")
    n_calls = n_calls if isolated else failure["call"] + 1

    def fails(candidate: str) -> bool:
        if isolated:
            with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False, encoding="utf-8") as f:
                f.write(candidate)
            try:
                extra = ["--text", f.name, "--calls", str(n_calls)] + (["--rebind"] if rebind else [])
                return any(x["kind"] == failure["kind"] for x in Batch(engine, 0, 1, None, 5.0, extra).failures)
            finally:
                os.unlink(f.name)
        try:
            found = run_program(failure["seed"], candidate, n_calls, rebind, engine_named(engine))
        except Exception:
            return False
        return found is not None and found.kind == failure["kind"]

    return shrink(text, fails, seconds), n_calls, rebind


def report_stats(stats: dict[str, float], programs: int) -> bool:
    """Print how much was compiled; false if nothing was."""
    hits, misses = stats.get("hits", 0), stats.get("misses", 0)
    calls = hits + misses
    print(f"compiled: {stats.get('compiles', 0):.0f} versions for {programs} programs; {hits:.0f} of {calls:.0f} calls hit "
          f"({100 * hits / calls if calls else 0:.1f} %)")
    for key in ("graph_ops", "live_entries", "programs_without_an_entry"):
        print(f"  {key}: {stats.get(key, 0):.0f}")
    breaks = sorted(((v, k) for k, v in stats.items() if "break" in k.split(".")[0] and v), reverse=True)
    for v, k in breaks[:12]:
        print(f"  {k}: {v:.0f}")
    return calls > 0 and stats.get("compiles", 0) > 0


def _one(a: argparse.Namespace) -> int:
    from differential_generate import generate
    batch = Batch(a.engine, a.one, a.one + 1, None, a.timeout)
    if not batch.failures:
        print(generate(a.one).text)
        print(f"# seed {a.one}: no difference")
        return 0
    failure = batch.failures[0]
    text, n_calls, rebind = shrink_failure(a.engine, failure, a.shrink)
    print(repro_text(text, n_calls, rebind, a.engine, failure))
    return 1


def _load(path: str | None, engine: str, first: int) -> dict[str, Any]:
    if path and os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            state = json.load(f)
        if state.get("engine") == engine and state.get("first") == first:
            return state
    return {"engine": engine, "first": first, "next": first, "programs": 0, "failures": [], "stats": {}}


def _save(path: str | None, state: dict[str, Any]) -> None:
    if path:
        with open(path + ".new", "w", encoding="utf-8") as f:
            json.dump(state, f, indent=1)
        os.replace(path + ".new", path)


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--engine", default="framegate", help="plain, framegate, or broken:<name>")
    p.add_argument("--seed-range", default="0:1000000000", metavar="A:B")
    p.add_argument("--seconds", type=float, help="stop after this long")
    p.add_argument("--progress", metavar="FILE", help="write progress here; a second run goes on from it")
    p.add_argument("--batch", type=int, default=500, help="programs per child process")
    p.add_argument("--timeout", type=float, default=20.0, help="seconds without an event after which a child hangs")
    p.add_argument("--max-failures", type=int, default=20)
    p.add_argument("--shrink", type=float, default=20.0, help="seconds to spend on each of the first failures; 0: do not")
    p.add_argument("--repros", metavar="DIR", help="write a stand-alone program per failure kind there")
    p.add_argument("--one", type=int, metavar="SEED", help="run one seed and print its small repro, or its text")
    p.add_argument("--child", help=argparse.SUPPRESS)
    p.add_argument("--text", help=argparse.SUPPRESS)
    p.add_argument("--calls", type=int, default=3, help=argparse.SUPPRESS)
    p.add_argument("--rebind", action="store_true", help=argparse.SUPPRESS)
    a = p.parse_args()
    a.engine = a.engine.removeprefix("broken:")
    if a.child:
        return child(a)
    if a.one is not None:
        return _one(a)
    first, last = (int(x) for x in a.seed_range.split(":"))
    state = _load(a.progress, a.engine, first)
    began, done_before = time.monotonic(), state["programs"]
    while state["next"] < last and len(state["failures"]) < a.max_failures:
        left = None if a.seconds is None else a.seconds - (time.monotonic() - began)
        if left is not None and left <= 0:
            break
        batch = Batch(a.engine, state["next"], min(last, state["next"] + a.batch), left, a.timeout)
        state["programs"] += batch.done_to - state["next"]
        state["next"] = batch.done_to
        state["failures"] += batch.failures
        for k, v in batch.stats.items():
            state["stats"][k] = state["stats"].get(k, 0) + v
        _save(a.progress, state)
        for f in batch.failures:
            print(f"seed {f['seed']}: {f['kind']} differs at call {f['call']}", flush=True)
    took = time.monotonic() - began
    done = state["programs"] - done_before
    print(f"{done} programs in {took:.1f} s ({done / took if took else 0:.0f}/s), {len(state['failures'])} failures")
    compiled = report_stats(state["stats"], state["programs"]) if a.engine == "framegate" else True
    if a.shrink:
        kinds: set[str] = set()
        for f in state["failures"]:
            if f["kind"] in kinds or len(kinds) >= 6:
                continue
            kinds.add(f["kind"])
            text, n_calls, rebind = shrink_failure(a.engine, f, a.shrink)
            shown = repro_text(text, n_calls, rebind, a.engine, f)
            print(f"\n----- seed {f['seed']}\n{shown}")
            if a.repros:
                os.makedirs(a.repros, exist_ok=True)
                with open(os.path.join(a.repros, f"seed_{f['seed']}.py"), "w", encoding="utf-8") as out:
                    out.write(shown)
    return 1 if state["failures"] else 0 if compiled or not done else 2


if __name__ == "__main__":
    if "framegate" in " ".join(sys.argv):
        _prepare_path()
    sys.exit(main())
