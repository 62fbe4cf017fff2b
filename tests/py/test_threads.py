"""Many threads against one gate, switching as often as the interpreter can: each test ends when its work is done, and every result is looked at.

What could crash the process runs in a child.
"""
from __future__ import annotations

import pytest
from test_hostile import run_child

framegate = pytest.importorskip("framegate")

COMMON = """
import gc, os, random, sys, threading, time
import numpy as np
import framegate
from framegate import _core
sys.setswitchinterval(1e-6)
N_THREADS = 16
failures = []

def run(bodies):
    '''Each in a thread of its own, all begun at once.'''
    begin = threading.Barrier(len(bodies))
    def guarded(body, seed):
        begin.wait()
        try:
            body(random.Random(seed))
        except BaseException as error:
            failures.append(error)
            raise
    threads = [threading.Thread(target=guarded, args=(body, i)) for i, body in enumerate(bodies)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not failures, failures

def same(got, want):
    assert type(got) is type(want) and np.array_equal(got, want), (got, want)

ARGUMENTS = [1, 2.5, True, 1j, "ab", np.ones(3), np.ones((2, 2), np.float32), np.float64(3), np.arange(4), [1, 2], (3,), {"k": 1}]
scale = 2

def f(x, k=1):
    y = [x * scale if not isinstance(x, dict) else len(x)]
    print(end="")
    for i in range(2):
        y.append(y[-1])
    return y[i]

WANT = [f(a) for a in ARGUMENTS]
"""


def test_a_miss_is_compiled_once() -> None:
    run_child(COMMON + """
def plain(x): return x * 2 + 1
for repeat in range(20):
    made = []
    def backend(graph, examples):
        made.append(examples[0].shape)
        time.sleep(0.0005)  # others miss meanwhile
        return graph
    gate = framegate.compile(plain, backend=backend, recompile_limit=64)
    arrays = [np.ones(n) for n in range(1, 9)]
    def body(rng):
        for _ in range(10):
            for a in rng.sample(arrays, len(arrays)):
                same(gate(a), plain(a))
    run([body] * N_THREADS)
    for a in arrays * 2:
        same(gate(a), plain(a))
    entries = framegate.cache_entries(gate)
    assert len(made) == len(set(made)) == len(entries) <= len(arrays), (made, len(entries))
""", FRAMEGATE_STRICT="1")


def test_hits_misses_resets_and_evictions() -> None:
    run_child(COMMON + """
framegate.config.recompile_limit = 10**6
gate = framegate.compile(f)
limited = framegate.compile(f, recompile_limit=3)
def call(rng):
    for _ in range(400):
        i = rng.randrange(len(ARGUMENTS))
        g = gate if rng.random() < .8 else limited
        same(g(ARGUMENTS[i]) if rng.random() < .8 else g(x=ARGUMENTS[i], k=1), WANT[i])
def fresh(rng):
    for _ in range(60):
        space = {"scale": rng.randrange(9)}
        exec("def g(x):\\n y = x + scale\\n print(end='')\\n return y * 2", space)
        g = framegate.compile(space["g"])
        assert [g(n) for n in (1, 2.5, 1, 2.5)] == [(n + space["scale"]) * 2 for n in (1, 2.5, 1, 2.5)]
def evict(rng):
    for _ in range(150):
        framegate.config.cache_size = rng.randrange(1, 9)
        call_once(rng)
def call_once(rng):
    i = rng.randrange(len(ARGUMENTS))
    same(gate(ARGUMENTS[i]), WANT[i])
def reset(rng):
    for _ in range(60):
        rng.choice([framegate.reset, gc.collect, framegate.stats, lambda: framegate.cache_entries(gate), lambda: framegate.why(gate), lambda: framegate.reset()])()
        call_once(rng)
def stance(rng):
    for _ in range(80):
        with framegate.set_stance(rng.choice(["force_eager", "eager_on_recompile", "default"])):
            call_once(rng)
run([call] * 10 + [fresh, fresh, evict, reset, reset, stance])
framegate.reset()
for i in range(2 * len(ARGUMENTS)):
    same(gate(ARGUMENTS[i % len(ARGUMENTS)]), WANT[i % len(ARGUMENTS)])
""", PYTHONWARNINGS="ignore")


def test_globals_and_code_change_meanwhile() -> None:
    """A result belongs to one state of what the function reads, before or after the change."""
    run_child(COMMON + """
framegate.config.recompile_limit = 10**6
state = {"v": 0}
class Box: pass
box = Box(); box.w = 0
def reads(x):
    return x + box.w
def other(x):
    return x - 1000
gate = framegate.compile(reads)
def call(rng):
    last = 0
    for _ in range(1500):
        got = gate(1)
        assert got == -999 or got - 1 >= last, (got, last)
        last = last if got == -999 else got - 1
def change(rng):
    for n in range(1, 1500):
        box.w = n if n % 7 else float(n)
def replace(rng):
    own = reads.__code__
    for _ in range(150):
        reads.__code__ = other.__code__
        reads.__code__ = own
run([call] * 14 + [change, replace])
assert gate(1) == 1500
""", PYTHONWARNINGS="ignore")


def test_stacks_are_walked_while_functions_that_broke_run() -> None:
    """Frames of hosts are hidden while segments run: another thread finds each function once, or its plain self."""
    run_child(COMMON + """
def broken(a, n):
    print(end="")
    a = np.add(a, 1)
    depth = count("broken")
    a = np.sqrt(a * a)
    print(end="")
    return a * n, depth
def count(name):
    frame, n = sys._getframe(1), 0
    while frame is not None:
        n += frame.f_code.co_name == name
        frame = frame.f_back
    return n
gate = framegate.compile(broken)
done = []
def call(rng):
    for i in range(300):
        got, depth = gate(np.ones(4), i)
        assert depth == 1
        same(got, np.full(4, 2.0) * i)
    done.append(1)
def look(rng):
    while len(done) < 12 and not failures:
        for frame in sys._current_frames().values():
            n = 0
            while frame is not None:
                n += frame.f_code.co_name == "broken"
                frame.f_lineno, frame.f_lasti
                frame = frame.f_back
            assert n <= 1, n
        time.sleep(0.0005)
run([call] * 12 + [look] * 2)
""")


def test_forks_in_the_middle() -> None:
    run_child(COMMON + """
framegate.config.recompile_limit = 10**6
gate = framegate.compile(f)
children = []
def call(rng):
    for _ in range(250):
        i = rng.randrange(len(ARGUMENTS))
        same(gate(ARGUMENTS[i]), WANT[i])
        if rng.random() < .05:
            framegate.reset()
def fork(rng):
    for _ in range(6):
        pid = os.fork()
        if pid == 0:
            try:
                for i in range(2 * len(ARGUMENTS)):
                    same(gate(ARGUMENTS[i % len(ARGUMENTS)]), WANT[i % len(ARGUMENTS)])
                framegate.reset()
                same(gate(ARGUMENTS[5]), WANT[5])
                assert framegate.cache_entries(gate)
                os._exit(0)
            finally:
                os._exit(1)
        children.append(pid)
        time.sleep(0.002)
run([call] * 14 + [fork, fork])
assert len(children) == 12 and all(os.waitpid(pid, 0)[1] == 0 for pid in children)
""", PYTHONWARNINGS="ignore")


def test_the_interpreter_ends_while_threads_compile_and_hit() -> None:
    for seconds in (0.0, 0.05):
        assert "end" in run_child(COMMON + f"""
framegate.config.recompile_limit = 10**6
gate = framegate.compile(f)
def loop(rng):
    while True:
        i = rng.randrange(len(ARGUMENTS))
        same(gate(ARGUMENTS[i]), WANT[i])
        if rng.random() < .05:
            framegate.reset()
for i in range(N_THREADS):
    threading.Thread(target=loop, args=(random.Random(i),), daemon=True).start()
sys.setswitchinterval(0.005)  # or the end waits for its turn for long, as with plain functions
time.sleep({seconds})
print("end", flush=True)
""")
