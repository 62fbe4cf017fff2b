"""One module of CPython's tests in a process of its own; started by framegate.testing.cpython, by path, so that a plain run has nothing of framegate in it.

    python _cpython_child.py MODULE MODE ROUNDS LOG WITHOUT ONLY

Each record of the log is a line of JSON: ["start", test], ["end", test and round, outcome lines, tracebacks], ["stats", counters].
"""

from __future__ import annotations

import json
import os
import re
import sys
import types
from typing import Any

ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


def compile_functions(module: types.ModuleType, every: bool) -> None:
    """Put compiled functions in the place of the plain ones."""
    import unittest

    import framegate

    compiled: Any = framegate.compile
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
                        setattr(cls, name, compiled(value))
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
            setattr(module, name, compiled(value))


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


def run_module(name: str, mode: str, rounds: int, log_path: str, without: list[str], only: str) -> None:
    import faulthandler
    import importlib
    import unittest

    faulthandler.enable()
    if mode == "intercept":
        import framegate

        framegate.intercept().__enter__()  # for good: until the process ends
    module = importlib.import_module(f"test.{name}")
    if mode in ("tests", "all"):
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


if __name__ == "__main__":
    del sys.path[0]  # this folder
    sys.argv, (name_, mode_, rounds_, log_, without_, only_) = sys.argv[:1], sys.argv[1:]
    run_module(name_, mode_, int(rounds_), log_, json.loads(without_), only_)
