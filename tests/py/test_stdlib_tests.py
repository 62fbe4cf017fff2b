"""CPython's own tests through the engine: a few modules here, all of them by python -m framegate.testing.cpython."""

import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("framegate")
pytest.importorskip("test.test_scope", reason="the interpreter comes without its tests")

from framegate.testing._cpython_known import KNOWN, MODULES, QUICK  # noqa: E402
from framegate.testing.cpython import MODES, compare, known, parse  # noqa: E402


def run_tool(*args):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    return subprocess.run([sys.executable, "-m", "framegate.testing.cpython", *args], capture_output=True, text=True, timeout=300, env=env)


def test_the_quick_modules_come_out_as_in_plain_python():
    done = run_tool("--modes", "all", "-v", "quick")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("test_")]
    assert [line.split()[0] for line in lines] == QUICK
    assert all(int(re.search(r"hits=(\d+)", line)[1]) > 0 for line in lines), done.stdout


def test_a_difference_is_found_and_a_known_one_is_not_reported():
    plain = {"test_x.A.test_1 #0": ["ok"], "test_x.A.test_2 #0": ["skip"], "test_list.ListTest.test_repeat #0": ["ok"]}
    assert compare(plain, plain, "all") == []
    other = {"test_x.A.test_1 #0": ["error ValueError: no"], "test_x.A.test_2 #hang": ["hang"], "test_list.ListTest.test_repeat #0": ["failure"]}
    assert compare(plain, other, "all") == ["test_x.A.test_1 #0", "test_x.A.test_2 #0", "test_x.A.test_2 #hang"]


def test_known_exceptions_have_a_reason_and_belong_to_modules_that_run():
    assert set(QUICK) <= set(MODULES) and len(set(MODULES)) == len(MODULES)
    for pattern, modes, reason in KNOWN:
        assert any(re.match(pattern.partition(r"\.")[0] + "$", name) for name in MODULES), pattern
        assert set(modes.split()) <= set(MODES) and len(reason) > 10
    assert known("test_list.ListTest.test_repeat #1", "all") and not known("test_list.ListTest.test_append #1", "all")


def test_a_module_inside_an_interception_of_the_whole_process():
    done = run_tool("--intercept", "-v", "test_augassign")
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.search(r"\[intercept\].* intercepted=(\d+)", done.stdout)[1]) > 100, done.stdout


def test_arguments_are_checked():
    assert parse(["test.test_dict"]).modules == ["test_dict"] and parse(["quick"]).modules == QUICK and parse(["--intercept"]).modes == ["intercept"]
    assert parse(["test_dict"]).modes == ["tests"]
    for wrong in (["--modes", "half"], ["test_of_nothing"]):
        done = run_tool(*wrong)
        assert done.returncode == 2 and "there is no" in done.stderr
