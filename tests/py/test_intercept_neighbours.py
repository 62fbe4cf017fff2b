"""framegate.intercept beside what else lives in a process: other evaluators, tracers, profilers, signals, finalizers, other processes and interpreters."""

from __future__ import annotations

import os
import sys

import pytest
from test_intercept import child

framegate = pytest.importorskip("framegate")

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench")


# --- other evaluators ------------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def evaluator() -> str:
    """Code that makes `other`, an evaluator of somebody else's."""
    sys.path.insert(0, BENCH)
    from pass_through import CannotBuild, PassThrough

    try:
        PassThrough()
    except CannotBuild as e:
        pytest.skip(f"no C compiler: {e}")
    finally:
        sys.path.remove(BENCH)
    return f"sys.path.insert(0, {BENCH!r})\nfrom pass_through import PassThrough\nother = PassThrough()\n"


def test_an_evaluator_that_was_there_before_gets_what_is_passed_on(evaluator):
    child(evaluator + """
def plain(n): return [i for i in range(n)]
other.install(counts=True)
before = other.n_frames
with framegate.intercept(filter=lambda code: code is add.__code__) as kept:
    assert _core.intercept_state()["on_top"] and not other.is_on_top
    down(10)
    assert other.n_frames - before >= 11
    assert served(add, 1, 2) == served(add, 1, 2) == 1
del kept
assert other.is_on_top and not _core.intercept_state()["linked"]
""")


def test_an_evaluator_that_comes_after_and_passes_on_is_left_in_place(evaluator):
    child(evaluator + """
kept = framegate.intercept()
with kept:
    other.install(chains=True)
    assert other.is_on_top and _core.intercept_state() == {"on_top": False, "linked": True, "asks": True, "leases": 1}
    assert served(add, 1, 2) == 1, "reached through the other"
for i in range(3):
    with kept, framegate.intercept():
        assert other.is_on_top, "ours is reached, so it stays below"
        assert served(add, 1, 2) == 1 and down(20) == 20
del kept
assert other.is_on_top and _core.intercept_state()["linked"], "only from on top may ours leave"
assert add(1, 2) == 3 and served(add, 1, 2) == 0
with framegate.intercept():
    assert served(add, 1, 2) == 1
other.uninstall()
assert _core.intercept_state()["on_top"] and served(add, 1, 2) == 0
with framegate.intercept() as last:
    assert served(add, 1, 2) == 1
del last
assert not _core.intercept_state()["linked"]
""")


def test_an_evaluator_that_does_not_pass_on_is_noticed(evaluator):
    child(evaluator + """
kept = framegate.intercept()
with kept:
    other.install(chains=False)
    assert served(add, 1, 2) == 0
with kept:
    assert _core.intercept_state()["on_top"] and served(add, 1, 2) == 1, "entering puts ours on top again"
    other.drop_all()
    assert served(add, 1, 2) == 0
with kept:
    assert _core.intercept_state()["on_top"] and served(add, 1, 2) == 1
""")


def test_evaluators_that_lead_to_each_other_go_to_the_interpreter(evaluator):
    child(evaluator + """
kept = framegate.intercept()
with kept:
    other.install(chains=True)         # other -> ours -> interpreter
    second = PassThrough()
    second.install(chains=False)       # hides both
    with framegate.intercept():        # ours -> second -> interpreter; other -> ours
        assert served(add, 1, 2) == 1 and down(50) == 50
        other.install(chains=True)     # other -> ours -> second
        with framegate.intercept():
            assert served(add, 1, 2) == 1 and down(50) == 50
""")


@pytest.mark.skipif(sys.version_info < (3, 12), reason="no perf trampoline")
def test_the_perf_trampoline_below_and_its_refusal_above():
    child("""
try:
    sys.activate_stack_trampoline("perf")
except ValueError:
    sys.exit()  # this build has none
with framegate.intercept() as kept:
    assert served(add, 1, 2) == 1 and down(20) == 20
del kept
assert sys.is_stack_trampoline_active()
sys.deactivate_stack_trampoline()
assert not sys.is_stack_trampoline_active()
with framegate.intercept():
    assert served(add, 1, 2) == 1
    try: sys.activate_stack_trampoline("perf")
    except RuntimeError: pass
    assert served(add, 1, 2) == 1
sys.activate_stack_trampoline("perf")
assert sys.is_stack_trampoline_active() and add(1, 2) == 3
sys.deactivate_stack_trampoline()
""")


# --- tracers and profilers -------------------------------------------------------------------------------------------------------------------


def test_a_traced_function_runs_plain_and_hits_again_after():
    child("""
        events = []
        def tracer(frame, event, arg):
            events.append((frame.f_code.co_name, event, frame.f_lineno)); return tracer
        @framegate.skip
        def traced(call, *args):
            events.clear()
            sys.settrace(tracer)
            try: call(*args)
            finally: sys.settrace(None)
            return list(events)
        def gen():
            yield add(1, 2)
        def all_of_gen(): return list(gen())
        @framegate.skip
        def profiled(call, *args):
            seen = []
            sys.setprofile(lambda frame, event, arg: seen.append((frame.f_code.co_name, event)))
            try: call(*args)
            finally: sys.setprofile(None)
            return seen
        plain = traced(down, 2), traced(add, 1, 2), traced(all_of_gen), profiled(down, 2)
        with framegate.intercept():
            for _ in range(3):
                assert (traced(down, 2), traced(add, 1, 2), traced(all_of_gen), profiled(down, 2)) == plain
                assert served(add, 1, 2) == 1 and served(down, 2) == 1
            with framegate.config.patch(compile_under_tracing=True):
                assert served(traced, add, 1, 2) == 1
        def only_calls(frame, event, arg): return None
        with framegate.intercept():
            sys.settrace(only_calls)
            assert served(add, 1, 2) == 0
            sys.settrace(None)
            assert served(add, 1, 2) == 1
    """)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="no sys.monitoring")
def test_events_of_sys_monitoring_for_all_code_or_for_one():
    child("""
        m, seen = sys.monitoring, []
        m.use_tool_id(3, "test")
        m.register_callback(3, m.events.PY_START, lambda code, at: seen.append(code.co_name))
        m.register_callback(3, m.events.LINE, lambda code, line: seen.append((code.co_name, line)))
        @framegate.skip
        def events(call, *args):
            seen.clear(); call(*args)
            return [s for s in seen if s in ("add", "down") or s[0] in ("add", "down")]
        wanted = m.events.PY_START | m.events.LINE
        for on in (lambda on: m.set_events(3, wanted if on else 0), lambda on: m.set_local_events(3, add.__code__, wanted if on else 0)):
            on(True); plain = events(add, 1, 2); on(False)
            assert plain
            with framegate.intercept():
                for _ in range(3):
                    assert served(add, 1, 2) == 1
                    on(True); got = events(add, 1, 2), served(add, 1, 2); on(False)
                    assert got == (plain, 0), (got, plain)
                assert served(add, 1, 2) == 1
    """)


def test_a_breakpoint_inside_a_function_stops_there():
    out = child("""
        import io, pdb
        def asked(a):
            b = a + 1
            pdb.Pdb(stdin=io.StringIO("p b\\np sorted(locals())\\nw\\nn\\nn\\np c\\nc\\n"), stdout=sys.stdout, nosigint=True).set_trace()
            c = b * 2
            return c
        with framegate.intercept():
            assert [asked(1), asked(2)] == [4, 6]
            assert served(add, 1, 2) == 1
    """)
    text = "\n".join(out)
    assert text.count("['a', 'b']") == 2 and "asked()" in text and ") 4" in text and ") 6" in text


def test_profilers_and_memory_tracers_see_a_program_that_works():
    child("""
        import cProfile, faulthandler, gc, io, pstats, tracemalloc
        profile = cProfile.Profile()
        with framegate.intercept():
            down(3)
            profile.enable(); down(3); add(1, 2); profile.disable()
            assert served(down, 3) == 1
        text = io.StringIO()
        pstats.Stats(profile, stream=text).print_stats()
        assert "(down)" in text.getvalue() and "(add)" in text.getvalue()
        tracemalloc.start()
        with framegate.intercept():
            def fresh(n): return [n, str(n)]
            made = [fresh(i) for i in range(100)]
        assert tracemalloc.take_snapshot().statistics("lineno")
        tracemalloc.stop()
        with framegate.intercept():
            gc.freeze()
            assert served(add, 1, 2) == 1
            gc.unfreeze(); gc.collect()
            faulthandler.dump_traceback(file=sys.__stderr__)
            assert served(add, 1, 2) == 1
    """)


# --- code that runs in the middle ------------------------------------------------------------------------------------------------------------


def test_signal_handlers_finalizers_callbacks_and_imports():
    child("""
        import gc, os, signal, tempfile, time, weakref
        log = []
        def handler(number, frame): log.append(("signal", add(1, 2)))
        signal.signal(signal.SIGUSR1, handler)
        class D:
            def __del__(self): log.append(("del", add(3, 4)))
        class W: pass
        def died(ref): log.append(("weakref", add(5, 6)))
        def kill(): os.kill(os.getpid(), signal.SIGUSR1); return 1
        def ends(): D(); return 2
        def refers():
            w = W(); r = weakref.ref(w, died); del w
            return 3
        def cycle():
            a, b = D(), D(); a.b, b.a = b, a
        folder = tempfile.mkdtemp()
        for i in range(4):
            with open(os.path.join(folder, f"fg_module_{i}.py"), "w") as f:
                f.write(f"from {'os' if i == 0 else 'fg_module_%d' % (i - 1)} import *\\nimport json\\ndef value(): return {i}\\nclass A:\\n    v = value()\\n")
        sys.path.insert(0, folder)
        def imports():
            import fg_module_3
            return fg_module_3.A.v
        with framegate.intercept():
            for _ in range(3):
                assert (kill(), ends(), refers(), imports()) == (1, 2, 3, 3)
                cycle(); gc.collect()
        assert log.count(("signal", 3)) == 3 and log.count(("del", 7)) == 9 and log.count(("weakref", 11)) == 3, log
    """)


def test_an_interrupt_at_any_moment():
    out = child("""
        import random, signal, time
        def helper(x, k): return x * k + 1
        def f(x):
            total = 0
            for i in range(30):
                x = helper(x, i % 3)
                print(end="")
                total += i
            return x, total
        want, rng, met, most = f(1.0), random.Random(1), 0, 4e-3
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        kept = framegate.intercept()
        for i in range(20000):
            if met == 12: break
            if i % 3 == 0: framegate.reset()
            most = max(most * 0.97, 2e-5)  # however fast the machine is: soon the signal comes while the function runs
            try:
                with kept:
                    signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, most))
                    assert f(1.0) == want
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                met, most = met + 1, 4e-3
            finally:
                try: signal.setitimer(signal.ITIMER_REAL, 0)
                except KeyboardInterrupt: pass
            while _core.intercept_state()["asks"]:
                kept.__exit__()  # the interrupt came between entering and the block
            assert f(1.0) == want
        print(met)
    """)
    assert int(out[0]) == 12


# --- processes, pools, loops, interpreters ---------------------------------------------------------------------------------------------------


def test_a_forked_child_goes_on():
    child("""
        import os, threading
        stop = threading.Event()
        kept = framegate.intercept()
        def busy():
            with kept:
                while not stop.is_set(): down(5)
        t = threading.Thread(target=busy); t.start()
        ends = []
        with kept:
            served(add, 1, 2)
            for _ in range(5):
                pid = os.fork()
                if pid == 0:
                    ok = served(add, 1, 2) == 1 and served(add, "a", "b") == 1 and down(9) == 9
                    kept.__exit__(None, None, None)
                    os._exit(0 if ok and not _core.intercept_state()["asks"] else 1)
                ends.append(os.waitpid(pid, 0)[1])
        stop.set(); t.join()
        assert ends == [0] * 5, ends
    """)


def test_pools_and_event_loops(tmp_path):
    script = tmp_path / "pools.py"
    script.write_text("""
import asyncio, concurrent.futures, multiprocessing, os, sys
import framegate

def work(n):
    with framegate.intercept():
        total = 0
        for i in range(n): total += step(i)
        return total, framegate.stats()["intercepted"] > 0

def step(i): return i * 2

async def task(n):
    with framegate.intercept():
        before = step(n)
        await asyncio.sleep(0.001 * (n % 3))
        return before + step(n)

if __name__ == "__main__":
    want = [(n * (n - 1), True) for n in range(3, 9)]
    with framegate.intercept():
        for start in ("fork", "spawn"):
            with multiprocessing.get_context(start).Pool(2) as pool:
                assert pool.map(work, range(3, 9)) == want
        with concurrent.futures.ProcessPoolExecutor(2) as pool:
            assert list(pool.map(work, range(3, 9))) == want
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            assert list(pool.map(work, list(range(3, 9)) * 20)) == want * 20
    async def main():
        got = await asyncio.gather(*(task(n) for n in range(30)))
        assert got == [4 * n for n in range(30)], got
    asyncio.run(main())
    assert not framegate._core.intercept_state()["asks"]
    print("good")
""")
    import subprocess

    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=env, timeout=240)
    assert done.returncode == 0 and "good" in done.stdout, done.stdout[-2000:] + done.stderr[-4000:]


def test_another_interpreter_is_not_concerned():
    child("""
        try: import _xxsubinterpreters as interpreters
        except ImportError: import _interpreters as interpreters
        lines = ["def down(n): return 0 if n == 0 else 1 + down(n - 1)", "assert down(50) == 50", "try: import framegate", "except ImportError: pass",
                 "else: raise AssertionError"]
        script = "\\n".join(lines)
        with framegate.intercept():
            for _ in range(2):
                other = interpreters.create()
                result = interpreters.run_string(other, script)
                assert result is None, result
                interpreters.destroy(other)
            assert served(add, 1, 2) == 1
    """)


def test_the_end_of_the_process_inside():
    for how in ("", "sys.exit(0)", "import os; os._exit(0)", "import atexit; atexit.register(lambda: down(3))"):
        child(f"""
            class D:
                def __del__(self): down(3)
            d = D(); d.me = d
            kept = framegate.intercept(lambda graph, inputs: graph)
            kept.__enter__()
            down(4); add(1, 2)
            {how}
        """)
