"""CPython's own tests, run on code objects that were decoded and assembled again.

A process of its own installs an import hook that replaces every code object of every module it imports (the test modules and whatever of the
standard library is not loaded yet), then runs the tests with unittest. The quick tier takes the language tests; FRAMEGATE_ROUNDTRIP=full
takes more.
"""

import os
import subprocess
import sys
import textwrap

import pytest

core = pytest.importorskip("framegate._core")

QUICK = [
    "test_grammar", "test_generators", "test_exceptions", "test_with", "test_scope", "test_dict", "test_patma", "test_fstring", "test_super",
    "test_coroutines", "test_asyncgen", "test_except_star", "test_raise", "test_traceback", "test_decorators", "test_listcomps",
    "test_unpack_ex", "test_extcall", "test_keywordonlyarg", "test_positional_only_arg", "test_named_expressions", "test_class",
    "test_contextlib",
]  # fmt: skip
FULL = [
    "test_collections", "test_dataclasses", "test_enum", "test_functools", "test_inspect", "test_typing", "test_descr", "test_itertools",
    "test_builtin", "test_call", "test_generator_stop", "test_genexps", "test_dictcomps", "test_setcomps", "test_global", "test_string", "test_contextlib_async", "test_sys_settrace",
]  # fmt: skip

SCRIPT = textwrap.dedent(
    """
    import importlib.machinery, sys, types, unittest
    import framegate._core as core

    count = 0

    def again(code):
        global count
        count += 1
        consts = tuple(again(c) if isinstance(c, types.CodeType) else c for c in code.co_consts)
        return core.cpython_roundtrip(code.replace(co_consts=consts))

    plain = importlib.machinery.SourceFileLoader.get_code
    if sys.argv[2] == "again":
        importlib.machinery.SourceFileLoader.get_code = lambda self, name: again(plain(self, name))
    suite = unittest.defaultTestLoader.loadTestsFromName("test." + sys.argv[1])
    result = unittest.TextTestRunner(verbosity=0).run(suite)
    for test, _ in result.failures + result.errors:
        print("BAD", test)
    print("RAN", result.testsRun, "CODES", count, "OK" if result.wasSuccessful() else "FAILED")
    """
)


def run_tests(name, how, folder):
    package = os.path.dirname(os.path.dirname(core.__file__))
    env = dict(os.environ, PYTHONPATH=package, PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run([sys.executable, "-c", SCRIPT, name, how], capture_output=True, text=True, env=env, cwd=folder, timeout=300)
    last = [line for line in done.stdout.splitlines() if line.startswith("RAN ")]
    assert done.returncode == 0 and last, done.stderr[-3000:]
    return done, last[-1]


def bad_tests(done):
    return sorted(line for line in done.stdout.splitlines() if line.startswith("BAD "))


@pytest.mark.parametrize("name", QUICK + [n for n in FULL if os.environ.get("FRAMEGATE_ROUNDTRIP") == "full"])
def test_own_tests_pass_on_assembled_code(name, tmp_path):
    done, last = run_tests(name, "again", tmp_path)
    words = last.split()
    assert int(words[1]) > 0 and int(words[3]) > 5, last
    if words[4] != "OK":
        # Some fail because it is not the library's own program that runs them.
        plain, _ = run_tests(name, "plain", tmp_path)
        assert bad_tests(done) == bad_tests(plain) != [], done.stderr[-4000:]
