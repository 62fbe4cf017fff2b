"""CPython's own tests through the engine: a few modules here, all of them by fuzz/stdlib_tests.py."""

import os
import re
import subprocess
import sys

import pytest
from stdlib_tests import compare, known
from stdlib_tests_known import KNOWN, MODULES, QUICK

FUZZ = os.path.join(os.path.dirname(__file__), "..", "..", "fuzz")
SCRIPT = os.path.join(FUZZ, "stdlib_tests.py")

pytest.importorskip("framegate")
pytest.importorskip("test.test_scope", reason="the interpreter comes without its tests")


def test_the_quick_modules_come_out_as_in_plain_python():
    done = subprocess.run([sys.executable, SCRIPT, "--modes", "all", "-v", "quick"], capture_output=True, text=True, timeout=300)
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
        assert set(modes.split()) <= {"tests", "all"} and len(reason) > 10
    assert known("test_list.ListTest.test_repeat #1", "all") and not known("test_list.ListTest.test_append #1", "all")
