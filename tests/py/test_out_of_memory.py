"""Memory that is gone from some moment on, not for one allocation alone: a call gives its answer or MemoryError, and the next one its answer."""
from __future__ import annotations

import sys

import pytest
from test_hostile import run_child

pytest.importorskip("_testcapi", reason="makes allocations fail")
pytest.importorskip("framegate")
pytestmark = pytest.mark.skipif(sys.version_info >= (3, 12), reason="the interpreter's own calls and function objects crash without memory since then")

PROGRAMS = {
    "an inlined call": "def f(a): return by(lambda x: [x, (x, a)], a), str(len(table))",
    "a generator": "def f(a): return [(x, [x]) for x in (y + 0.5 for y in (a, a))]",
    "an error of an inlined call": """
def f(a):
    try: return by(lambda x: x[7], [a])
    except IndexError as e: return str(e)""",
    "an error that leaves": "def f(a): return by(by, lambda x: [x][7], a)",
    "a step that raises inside an inlined call": "def f(a): return by(lambda x: 1 / (x - x), a)",
    "a handler of its own": """
def f(a):
    try: return by(lambda x: 1 / (x - x), a)
    except ZeroDivisionError as e: return str(e)
    finally: table['last'] = [a]""",
    "breaks": """
def f(a):
    r = []
    for i in range(3):
        print(end='')
        r.append((i, a + i))
    return r""",
    "a break in a handler": """
def f(a):
    try:
        print(end='')
        return by(lambda x: 1 / (x - x), a)
    except ZeroDivisionError as e:
        print(end='')
        return [a, str(e)]""",
    "effects": "def f(a): o = Box(); o.v = [a]; o.v.append((a, a)); table['n'] = o.v; return o.v",
}


@pytest.mark.parametrize("phase", ["first call", "hit"])
@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_all_memory_is_gone(text: str, phase: str) -> None:
    run_child(f"""
import sys, _testcapi, framegate
class Box: pass
table = {{}}
other = dict()
exec(compile("def by(g, *args):\\n  return g(*args)", "elsewhere.py", "exec"), other)
by = other["by"]
exec({text!r})
def outcome(g):
    try: return g(2)
    except MemoryError: return MemoryError
    except SystemError as e: # what the interpreter itself makes of some
        assert "without exception set" in str(e) or "without setting an exception" in str(e)
        return MemoryError
    except (IndexError, ZeroDivisionError) as e: return e
def text(r): return r if r is MemoryError else repr(r)
want = text(outcome(f))
for n in list(range(1, 60)) + list(range(60, 400, 11)):
    for stop in (n + 1, 0):
        gate = framegate.compile(f)
        if {phase == "hit"}:
            outcome(gate), outcome(gate)
        _testcapi.set_nomemory(n, stop)
        try:
            try: got = outcome(gate)
            finally: _testcapi.remove_mem_hooks()
        except MemoryError: # there was no memory for a handler
            got = MemoryError
        got = text(got)
        assert got == want or got is MemoryError, (n, stop, got, want)
        for _ in range(2):
            got = text(outcome(gate))
            assert got == want, (n, stop, got, want)
        framegate.reset()
""", FRAMEGATE_STRICT="")
