"""Run CPython's own tests with compiled functions and compare the outcome of each test with a plain run.

    python -m framegate.testing.cpython [--modes tests,all,intercept] [--intercept] [--rounds N] [--timeout SECONDS] [--only TEXT] [-v] [MODULE ...]

Every module (``test_dict``, or ``quick`` for a few, or none for all that are known to serve) runs in processes of its own: once plain, once per mode. In mode
``tests`` each test method is compiled with the backend ``eager``, graph breaks allowed; in mode ``all`` every plain Python function of the module and of its
classes is, set-up and helpers included; in mode ``intercept`` (``--intercept`` for short) nothing is wrapped, and the whole process, unittest included, runs inside
`framegate.intercept`. Each test runs ``--rounds`` times in a row in the same process (default 2), so that entries are hit and not only made. A crash, or a run beyond the time
limit, is charged to the test that was running; the run goes on behind it.

It prints a line per module and mode, and each test whose outcome (passed, failed, skipped, and with which message) is not that of the plain run. The exit status is 1 if there is
any. Tests that look at something which is documented as different are left out of the comparison; `_cpython_known.py` says why for each. The interpreter must have
been installed with its tests (the package ``test``).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from typing import Any

from framegate.testing._cpython_known import KNOWN, MODULES, QUICK

CHILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_cpython_child.py")
MODES = ("tests", "all", "intercept")
Outcome = list[str]  # "ok", or a line for each failure, error, skip: kind, exception type, message


def run_once(command: list[str], folder: str, timeout: float) -> tuple[str, str]:
    """("", "crash" or "hang"; what was written to stderr)."""
    path = os.pathsep.join([os.path.dirname(os.path.dirname(os.path.dirname(CHILD))), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, "PYTHONHASHSEED": "0", "FRAMEGATE_STRICT": "1", "PYTHONPATH": path}
    try:
        done = subprocess.run(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout)
        return "crash" if done.returncode else "", done.stderr.decode(errors="replace")
    except subprocess.TimeoutExpired as e:
        return "hang", (e.stderr or b"").decode(errors="replace")


def run_module(name: str, mode: str, args: argparse.Namespace) -> tuple[dict[str, Outcome], dict[str, str], dict[str, Any]]:
    """(outcome by test and round, details by the same, counters)."""
    outcomes: dict[str, Outcome] = {}
    details: dict[str, str] = {}
    stats: dict[str, Any] = {}
    without: list[str] = []
    while True:
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "log")
            command = [sys.executable, CHILD, name, mode, str(args.rounds), log, json.dumps(without), args.only]
            how, text = run_once(command, folder, args.timeout)
            running = ""
            if os.path.exists(log):
                with open(log, encoding="utf-8") as f:
                    for line in f:
                        record = json.loads(line)
                        if record[0] == "start":
                            running = record[1]
                            without.append(running)
                        elif record[0] == "end":
                            outcomes[record[1]] = record[2]
                            details[record[1]] = "".join(record[3])
                        else:
                            stats = record[1]
        if not how:
            break
        key = f"{running or 'import'} #{how}"
        outcomes[key] = [f"{how} {text.strip().splitlines()[-1] if how == 'crash' and text.strip() else ''}"]
        details[key] = text[-6000:]
        if not running or len([k for k in outcomes if k.endswith("#hang")]) > 3:
            break
    return outcomes, details, stats


def known(key: str, mode: str) -> bool:
    key = key.partition(" #")[0]
    return any(re.fullmatch(pattern, key) for pattern, modes, _ in KNOWN if mode in modes)


def compare(plain: dict[str, Outcome], other: dict[str, Outcome], mode: str) -> list[str]:
    return [k for k in sorted({*plain, *other}) if plain.get(k) != other.get(k) and not known(k, mode)]


def shown(outcome: Outcome | None) -> str:
    lines = list(dict.fromkeys(outcome or ["not run"]))
    return "; ".join(line[:300] for line in lines[:4]) + (f" (and {len(lines) - 4} more)" if len(lines) > 4 else "")


def parse(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m framegate.testing.cpython", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", metavar="MODULE")
    parser.add_argument("--modes", default="", help=f"of {', '.join(MODES)}; default tests")
    parser.add_argument("--intercept", action="store_true", help="mode intercept")
    parser.add_argument("--rounds", type=int, default=2, help="how often each test runs in its process")
    parser.add_argument("--timeout", type=float, default=300, metavar="SECONDS", help="of one process")
    parser.add_argument("--only", default="", metavar="TEXT", help="tests whose name contains this")
    parser.add_argument("-v", "--verbose", action="store_true", help="tracebacks and counters")
    args = parser.parse_args(given)
    args.modes = [*filter(None, args.modes.split(",")), *(["intercept"] if args.intercept else [])] or ["tests"]
    unknown = [mode for mode in args.modes if mode not in MODES]
    if unknown:
        parser.error(f"there is no mode {', '.join(unknown)}; the modes are {', '.join(MODES)}")
    args.modules = [name.removeprefix("test.") for name in (QUICK if args.modules == ["quick"] else args.modules or MODULES)]
    if importlib.util.find_spec("test") is None:
        parser.error("this interpreter was installed without its tests")
    missing = [name for name in args.modules if importlib.util.find_spec(f"test.{name}") is None]
    if missing and missing != [name for name in missing if name in MODULES]:
        parser.error(f"there is no test.{', test.'.join(missing)}")
    args.modules = [name for name in args.modules if name not in missing]  # not every version has all of MODULES
    return args


def main(given: list[str] | None = None) -> int:
    args = parse(given)
    n_differences = 0
    for name in args.modules:
        plain, _, _ = run_module(name, "plain", args)
        for mode in args.modes:
            other, details, stats = run_module(name, mode, args)
            found = compare(plain, other, mode)
            n_differences += len(found)
            counts = " ".join(f"{k}={stats[k]}" for k in ("compiles", "entries_published", "hits", "intercepted", "self_check_failed") if k in stats)
            print(f"{name} [{mode}]: {len(other)} runs, {len(found)} differences; {counts}", flush=True)
            for key in found:
                print(f"  {key}\n    plain    {shown(plain.get(key))}\n    compiled {shown(other.get(key))}")
                if args.verbose:
                    print("      " + details.get(key, "").replace("\n", "\n      "))
    return 1 if n_differences else 0


if __name__ == "__main__":
    sys.exit(main())
