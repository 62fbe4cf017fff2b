"""Run CPython's own tests through the engine and compare the outcome of each with a plain run.

Every module runs in processes of its own: once plain, once per mode. In mode ``tests`` each test method is compiled; in mode ``all`` every plain Python
function of the module and of its classes is, set-up and helpers included. Each test runs several times in a row in the same process, so that entries are
hit and not only made. A crash or a hang is charged to the test that was running; the run goes on behind it.

    python3 fuzz/stdlib_tests.py [--modes tests,all] [--rounds 2] [MODULE ...]        without modules: all of MODULES; "quick": those of QUICK

What looks at something that is documented as different is listed in stdlib_tests_known.py with the reason.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import types
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from stdlib_tests_known import KNOWN, MODULES, QUICK  # noqa: E402

ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
Outcome = list[str]  # "ok", or a line for each failure, error, skip: kind, exception type, message


# --- the child: one module, one mode


def compile_functions(module: types.ModuleType, every: bool) -> None:
    """Put compiled functions in the place of the plain ones."""
    import unittest

    import framegate

    seen: set[tuple[type, bool]] = set()

    def of_class(cls: type, is_test: bool) -> None:
        if (cls, is_test) in seen:
            return
        seen.add((cls, is_test))
        for name, value in list(vars(cls).items()):
            wanted = every or (is_test and name.startswith("test"))
            if wanted and isinstance(value, (types.FunctionType, staticmethod, classmethod)):
                if isinstance(getattr(value, "__func__", value), types.FunctionType):
                    try:
                        setattr(cls, name, framegate.compile(value))
                    except (AttributeError, TypeError):  # a class that refuses the change
                        pass
            elif every and isinstance(value, type) and value.__module__ == module.__name__:
                of_class(value, False)

    for name, value in list(vars(module).items()):
        if isinstance(value, type):
            is_test = issubclass(value, unittest.TestCase)
            if value.__module__ == module.__name__ or is_test:
                of_class(value, is_test)
                for base in value.__mro__ if is_test else ():  # mixins of other test modules
                    if base.__module__.startswith("test.") and base.__module__ != "test.support":
                        of_class(base, True)
        elif every and isinstance(value, types.FunctionType) and value.__module__ == module.__name__ and name != "load_tests":
            setattr(module, name, framegate.compile(value))


def describe(kind: str, error: tuple[Any, Any, Any]) -> str:
    text = ADDRESS.sub("0x?", str(error[1]))
    return f"{kind} {error[0].__name__}: {text}"


def make_result() -> Any:
    import traceback
    import unittest

    class Result(unittest.TestResult):
        def __init__(self) -> None:
            super().__init__()
            self.lines: list[str] = []
            self.details: list[str] = []

        def note(self, kind: str, error: tuple[Any, Any, Any]) -> None:
            self.lines.append(describe(kind, error))
            self.details.append("".join(traceback.format_exception(*error)))

        def addError(self, test: Any, err: Any) -> None:
            self.note("error", err)

        def addFailure(self, test: Any, err: Any) -> None:
            self.note("failure", err)

        def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
            if err is not None:
                self.note("subtest", err)

        def addSkip(self, test: Any, reason: str) -> None:
            self.lines.append("skip")

        def addExpectedFailure(self, test: Any, err: Any) -> None:
            self.lines.append(f"expected {err[0].__name__}")

        def addUnexpectedSuccess(self, test: Any) -> None:
            self.lines.append("unexpected success")

    return Result()


def flatten(suite: Any) -> Any:
    import unittest

    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flatten(test)
        else:
            yield test


def run_child(name: str, mode: str, rounds: int, log_path: str, without: list[str], only: str) -> None:
    import faulthandler
    import importlib
    import unittest

    faulthandler.enable()
    module = importlib.import_module(f"test.{name}")
    if mode != "plain":
        compile_functions(module, mode == "all")
    cases = [t for t in flatten(unittest.TestLoader().loadTestsFromModule(module)) if isinstance(t, unittest.TestCase)]
    with open(log_path, "a", encoding="utf-8", errors="backslashreplace") as log:

        def write(*record: Any) -> None:
            log.write(json.dumps(record) + "\n")
            log.flush()

        for case in cases:
            if type(case).__module__ in ("unittest.loader", "doctest"):
                continue
            key = case.id().removeprefix("test.")
            if key in without or only not in key:
                continue
            write("start", key)
            for k in range(rounds):
                result = make_result()
                try:
                    unittest.TestSuite([type(case)(case._testMethodName)]).run(result)
                except BaseException as e:
                    result.note("escaped", (type(e), e, e.__traceback__))
                write("end", f"{key} #{k}", result.lines or ["ok"], result.details)
        if mode != "plain":
            import framegate

            write("stats", framegate.stats())
    os._exit(0)  # what the interpreter does at its end is the same for both


# --- the parent


def run_once(command: list[str], folder: str, timeout: float) -> tuple[str, str]:
    """("", "crash" or "hang"; what was written to stderr)."""
    env = {**os.environ, "PYTHONHASHSEED": "0", "FRAMEGATE_STRICT": "1"}
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
            command = [sys.executable, os.path.abspath(__file__), "--child", name, mode, str(args.rounds), log, json.dumps(without), args.only]
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*")
    parser.add_argument("--modes", default="tests,all")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--only", default="", help="tests whose name contains this")
    parser.add_argument("-v", "--verbose", action="store_true", help="tracebacks and counters")
    args = parser.parse_args()
    n_differences = 0
    for name in QUICK if args.modules == ["quick"] else args.modules or MODULES:
        plain, _, _ = run_module(name, "plain", args)
        for mode in args.modes.split(","):
            other, details, stats = run_module(name, mode, args)
            found = compare(plain, other, mode)
            n_differences += len(found)
            counts = " ".join(f"{k}={stats[k]}" for k in ("compiles", "entries_published", "hits", "self_check_failed") if k in stats)
            print(f"{name} [{mode}]: {len(other)} runs, {len(found)} differences; {counts}", flush=True)
            for key in found:
                print(f"  {key}\n    plain    {shown(plain.get(key))}\n    compiled {shown(other.get(key))}")
                if args.verbose:
                    print("      " + details.get(key, "").replace("\n", "\n      "))
    return 1 if n_differences else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        sys.argv, (name, mode, rounds, log, without, only) = sys.argv[:1], sys.argv[2:]
        run_child(name, mode, int(rounds), log, json.loads(without), only)
    sys.exit(main())
