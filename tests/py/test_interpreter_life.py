"""Interrupts, ends of the interpreter, deep recursion and small stacks: an answer or the exception that plain Python raises, never a crash.

Each case is a process of its own.
"""

from __future__ import annotations

import threading

import pytest
from test_hostile import run_child

framegate = pytest.importorskip("framegate")


# --- interrupts ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["eager", "own"])
def test_keyboard_interrupts_at_random_moments_of_compiling(backend):
    out = run_child(f"""
        import random, signal, time
        import framegate
        options = {{"backend": lambda graph, inputs: graph}} if {backend == "own"} else {{}}
        def helper(x, k): return x * k + 1
        lines = ["def f(x):", "    total = 0"]
        for i in range(120):
            lines += [f"    x = helper(x, {{i % 3 + 1}})", f"    total += {{i}}"]
            if i % 40 == 13: lines += ["    print(end='')"]
            if i % 25 == 7: lines += ["    try:", "        x = [x][0]", "    except KeyError:", "        pass"]
        space = {{"helper": helper}}
        exec("\\n".join([*lines, "    return x, total"]), space)
        f, rng, met = space["f"], random.Random(1), 0
        want = f(1.0)
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        start = time.perf_counter()
        framegate.compile(f, **options)(1.0)
        took = time.perf_counter() - start
        for i in range(120):
            if i % 3 == 0: framegate.reset()
            gate = framegate.compile(f, **options)
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, took * 1.2))
                assert gate(1.0) == want
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                met += 1
            finally:
                try: signal.setitimer(signal.ITIMER_REAL, 0)
                except KeyboardInterrupt: pass
            for k in range(3):
                assert gate(1.0) == want and gate(2.5) == f(2.5)
        print(met)
    """)
    assert int(out) > 5


# --- the end ---------------------------------------------------------------------------------------------------------------------------

EXITS = {
    "os._exit": "os._exit(0)",
    "a gate in a cycle": "c = Holder(); c.g = fresh(); c.me = c; c.g(1); c.g.__dict__['owner'] = c; del c",
    "atexit compiles": "atexit.register(lambda: [fresh()(i) for i in (1, 2.5)])",
    "__del__ compiles at shutdown": """
class D:
    def __del__(self, fresh=fresh, use=use):
        use()
        fresh()(3)
keep = D()""",
    "__del__ in a cycle at shutdown": """
class D:
    def __init__(self): self.me = self; self.g = fresh(); self.g(1)
    def __del__(self): assert self.g(2) == 6
D(); gc.disable()""",
    "sys.exit in a traced function": """
def leaves(x):
    y = x + 1
    sys.exit(0)
framegate.compile(leaves)(1)""",
    "sys.exit behind a break with finally": """
def leaves(x):
    print(end='')
    try: sys.exit(0)
    finally: x = x + 1
framegate.compile(leaves)(1)""",
    "a thread that is waited for": "threading.Thread(target=lambda: [use() for i in range(100)]).start()",
    "daemon threads": """
def loop():
    while True: use(); fresh()(1)
for i in range(3): threading.Thread(target=loop, daemon=True).start()
time.sleep(.1)""",
    "a daemon thread that compiles": """
slow = framegate.compile(body, backend=lambda graph, inputs: time.sleep(5) or graph)
threading.Thread(target=lambda: slow(np.ones(3)), daemon=True).start(); time.sleep(.05)""",
    "a module that is torn down": """
m = types.ModuleType("mm")
exec("import framegate\\ndef f(x): return x + K\\nK = 3\\ng = framegate.compile(f)\\ng(1)\\nclass D:\\n  def __del__(s):\\n    try: g(2)\\n"
     "    except (TypeError, NameError): pass\\nd = D()", m.__dict__)
sys.modules["mm"] = m; del m""",
    "a weak reference's callback": "o = Holder(); refs = [weakref.ref(o, lambda r, use=use: use())]",
    "forked while a thread compiles": """
def loop():
    while True: use(); fresh()(1)
threading.Thread(target=loop, daemon=True).start()
time.sleep(.05)
for i in range(10):
    pid = os.fork()
    if pid == 0: use(); fresh()(1); os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0""",
    "imported again": """
for name in [m for m in sys.modules if m.startswith("framegate")]: del sys.modules[name]
import framegate as second
second.compile(body)(1); use()""",
    "a handler of signals": """
signal.signal(signal.SIGTERM, lambda *a: sys.exit(0))
os.kill(os.getpid(), signal.SIGTERM)
while True: use()""",
}


@pytest.mark.parametrize("body", EXITS.values(), ids=EXITS)
def test_the_interpreter_ends_with_entries_alive(body):
    run_child("""
import atexit, gc, os, signal, sys, threading, time, types, weakref
import numpy as np
import framegate
class Holder: pass
def body(x): return x + 1
def breaks(x):
    print(end='')
    return x * 2
gates = [framegate.compile(body), framegate.compile(breaks), framegate.compile(body, backend=lambda graph, inputs: graph)]
def use():
    for gate in gates:
        for x in (1, 2.5, np.ones(2)): gate(x)
def fresh():
    space = {}
    exec("def f(x):\\n  y = x + 1\\n  print(end='')\\n  return y * 2\\n", space)
    return framegate.compile(space["f"])
use()
""" + body)


# --- recursion -------------------------------------------------------------------------------------------------------------------------

RECURSION = {
    "itself": "gate = compile(lambda n: 0 if n == 0 else 1 + gate(n - 1))",
    "through a plain function": "def plain(n): return 0 if n == 0 else 1 + gate(n - 1)\ngate = compile(lambda n: 0 if n == 0 else 1 + plain(n - 1))",
    "through sorted": "gate = compile(lambda n: 0 if n == 0 else sorted([n - 1], key=gate)[0])",
    "through map": "gate = compile(lambda n: 0 if n == 0 else list(map(gate, [n - 1]))[0])",
    "through a generator": "gate = compile(lambda n: 0 if n == 0 else sum(gate(m) for m in [n - 1]) + 1)",
    "through __eq__": "class A:\n  def __init__(s, n): s.n = n\n  @compile\n  def __eq__(s, o): return True if s.n == 0 else [A(s.n - 1)].index(5) == 0\ngate = lambda n: A(n) == 5",
    "through __getattr__": "class A:\n  @compile\n  def __getattr__(s, k): return getattr(s, k + 'x') if len(k) < 10**6 else 1\ngate = lambda n: A().q if n > 9 else 1",
    "through __init__": "class A:\n  @compile\n  def __init__(s, n): s.c = A(n - 1) if n else None\ngate = A",
    "through keywords": "gate = compile(lambda n=0, **k: 0 if n == 0 else 1 + gate(n=n - 1, **k))",
    "through breaks": "@compile\ndef gate(n):\n  if n == 0: return 0\n  print(end='')\n  r = gate(n - 1)\n  print(end='')\n  return r + 1",
    "in finally": "@compile\ndef gate(n):\n  try: return 0 if n == 0 else 1 + gate(n - 1)\n  finally: print(end='')",
    "through disabled functions": "p = framegate.disable(lambda n: gate(n - 1))\ngate = compile(lambda n: 0 if n == 0 else p(n))",
    "with another backend": "gate = framegate.compile(lambda n: 0 if n == 0 else 1 + gate(n - 1), backend=lambda graph, inputs: graph)",
    "new closures": "def make(k):\n  @compile\n  def inner(n): return k if n == 0 else make(k)(n - 1)\n  return inner\ngate = make(3)",
}


@pytest.mark.parametrize("body", RECURSION.values(), ids=RECURSION)
def test_recursion_with_a_limit_of_a_million(body):
    run_child(f"""
import sys, framegate
compile = framegate.compile
sys.setrecursionlimit(10**6)
{body}
for i in range(2):
    try: gate(10**5)
    except (RecursionError, MemoryError): pass
    gate(5)
""")


@pytest.mark.parametrize("kilobytes", [32, 64, 96, 128, 160, 192, 256, 512])
def test_threads_with_small_stacks_get_their_answers(kilobytes):
    try:
        threading.stack_size(kilobytes * 1024)
    except ValueError:
        pytest.skip("no thread can have so small a stack here")
    finally:
        threading.stack_size(0)
    run_child(f"""
        import threading
        import numpy as np
        import framegate
        def f(x): return x * 2 + 1
        def breaks(x):
            print(end='')
            return f(x)
        gates = [framegate.compile(f), framegate.compile(breaks), framegate.compile(f, backend=lambda graph, inputs: graph), framegate.disable(f)]
        made = []
        def go():
            for gate in gates:
                made.append([gate(1), gate(2.5), gate(np.ones(1))[0]])
        threading.stack_size({kilobytes} * 1024)
        thread = threading.Thread(target=go)
        thread.start()
        thread.join()
        assert made == [[3, 6.0, 3.0]] * 4, made
        go()
        assert len(made) == 8 and made[7] == made[0]
    """)
