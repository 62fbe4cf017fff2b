"""Signals and other asynchronous exceptions come up where the handlers of the function see them, and `finally` runs once."""

import _thread
import ctypes
import random
import signal
import threading
import time

import numpy as np
import pytest
from support_engine import ENGINE, cap

if ENGINE == "framegate":
    import framegate

    framegate.allow_in_graph(_thread.interrupt_main)  # a C function: the signal waits until the interpreter looks for it

LOG = []
GONE = object()


def brk():
    """Something that is not traced."""
    globals()["nothing"] = None


interrupt = _thread.interrupt_main


@pytest.fixture(autouse=True)
def state_of_numpy_stays():
    """Tracing sets it and puts it back, whatever comes up meanwhile."""
    before = np.geterr()
    yield
    assert np.geterr() == before


pytestmark = pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals go to the main thread")


def handled_at_once(x):
    try:
        LOG.append("a")
        interrupt()
        LOG.append("b")
        brk()
        LOG.append("c")
    except KeyboardInterrupt:
        LOG.append("caught")
    return x + 1


def in_a_segment(x):
    n = 0
    try:
        brk()
        n = 1
        LOG.append(n)
        interrupt()
        n = 2
        LOG.append(n)
        brk()
        n = 3
    except KeyboardInterrupt:
        LOG.append(("caught", n))
    finally:
        LOG.append("finally")
    return n


def last_in_a_segment(x):
    try:
        brk()
        interrupt()
        return x + 1
    except KeyboardInterrupt:
        LOG.append("caught")
    finally:
        LOG.append("finally")


class Guarded:
    def __enter__(self):
        LOG.append("enter")

    def __exit__(self, kind, value, traceback):
        LOG.append(("exit", kind))
        return kind is KeyboardInterrupt


def in_a_with(x):
    with Guarded():
        brk()
        y = x * 2
        interrupt()
        y = y + 1
        brk()
        LOG.append("not reached")
    return "out"


def in_a_loop(x):
    for i in range(5):
        try:
            brk()
            if i == 2:
                interrupt()
            x = x + 1
            brk()
        except KeyboardInterrupt:
            LOG.append(("caught", i))
    return float(x.sum())


def not_covered(x):
    try:
        brk()
    except KeyboardInterrupt:
        LOG.append("wrong handler")
    x = x + 1
    interrupt()
    brk()
    LOG.append("not reached")


def nested(x):
    try:
        try:
            brk()
            x = x + 1
        except KeyboardInterrupt:
            LOG.append("wrong handler")
        interrupt()
        brk()
        LOG.append("not reached")
    except KeyboardInterrupt:
        LOG.append("outer")
    return float(x.sum())


def helper(x):
    interrupt()
    return x + 1


def from_an_inlined_call(x):
    try:
        brk()
        x = helper(x)
        brk()
        LOG.append("not reached")
    except KeyboardInterrupt:
        LOG.append("caught")
    return 1


def whole(x):
    try:
        y = x + 1
        interrupt()
        LOG.append("here")
        y = y * 2
    finally:
        LOG.append("finally")
    return y


BODIES = [handled_at_once, in_a_segment, last_in_a_segment, in_a_with, in_a_loop, not_covered, nested, from_an_inlined_call, whole]
AFTERWARDS = {"in_a_segment": 2}  # the interpreter may look later than plain Python does, but before the next call


def outcome(f):
    LOG.clear()
    try:
        result = f(np.ones(3))
        time.sleep(0)  # what waits comes up here at the latest
    except KeyboardInterrupt:
        result = GONE
    return result, list(LOG)


@pytest.mark.parametrize("body", BODIES, ids=lambda f: f.__name__)
def test_an_interrupt_in_the_function(body):
    c = cap(body)
    for _ in range(4):
        result, log = outcome(c)
        plain_result, plain_log = outcome(body)
        once = [entry for entry in log if entry in ("finally", "caught", "outer", "enter") or isinstance(entry, tuple)]
        if body is whole:  # one straight piece: the effect and what follows may come first, and then it is the caller's
            assert result is GONE and log.count("finally") == 1
            continue
        if body is last_in_a_segment:
            assert log in (["caught", "finally"], ["finally"])
            continue
        assert "not reached" not in log and "wrong handler" not in log
        assert (result is GONE) == (plain_result is GONE)
        assert [type(e) if isinstance(e, tuple) else e for e in once] == \
               [type(e) if isinstance(e, tuple) else e for e in plain_log if e in ("finally", "caught", "outer", "enter") or isinstance(e, tuple)]


def counts_up(x, rounds):
    """State and log must agree where the handler looks, whenever that is."""
    n = done = 0
    try:
        for i in range(rounds):
            n = n + 1
            LOG.append(n)
            x = x + 1.0
            brk()
            n = n + 1
            LOG.append(n)
            x = np.add(x, 1.0)
            brk()
    except KeyboardInterrupt:
        done = 1
    finally:
        done += 10
    return n, len(LOG), done


def test_interrupts_at_any_time():
    c = cap(counts_up)
    rng = random.Random(3)
    for _ in range(3):
        LOG.clear()
        assert c(np.ones(3), 20) == (40, 40, 10)
    caught = 0
    old = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for _ in range(300):
            LOG.clear()
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 1e-3))
                n, logged, done = c(np.ones(3), 2000)
            except KeyboardInterrupt:
                continue  # before the block or behind it
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            assert done in (10, 11) and n - logged in (0, 1), (n, logged, done)
            caught += done == 11
    finally:
        signal.signal(signal.SIGALRM, old)
    assert caught > 200


class Stop(Exception):
    pass


def spins(rounds):
    n = 0
    try:
        for i in range(rounds):
            brk()
            n = n + 1
            LOG.append(n)
    except Stop:
        return "stopped", n - len(LOG) in (0, 1)
    return "done", n == len(LOG)


def test_an_exception_set_by_another_thread():
    c = cap(spins)
    c(3)
    results = []
    for _ in range(10):
        LOG.clear()
        thread = threading.Thread(target=lambda: results.append(c(100_000_000)))
        thread.start()
        time.sleep(0.01)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(Stop))
        thread.join(20)
        assert not thread.is_alive()
    assert results == [("stopped", True)] * 10


def raises_in_a_traced_call(x):
    try:
        brk()
        y = np.add(x, 1)
        z = np.add(y, x, dtype=None)
        LOG.append(len(z))
    except KeyboardInterrupt:
        return None
    return float((y + z).sum()), list(LOG)


def test_covered_calls_take_keywords_and_methods():
    c = cap(raises_in_a_traced_call)
    for _ in range(3):
        LOG.clear()
        ours = c(np.ones(3))
        LOG.clear()
        assert ours == raises_in_a_traced_call(np.ones(3))


def compiled_while_interrupted(x):
    try:
        brk()
        x = x + 1
        brk()
        LOG.append("b")
        brk()
    except KeyboardInterrupt:
        LOG.append("caught")
    return 1


@pytest.mark.skipif(ENGINE != "framegate", reason="interrupts the compiler")
@pytest.mark.parametrize("at", range(6))
def test_an_interrupt_while_a_segment_is_compiled(at, monkeypatch):
    from framegate import logs
    seen = []
    real = logs.compiled

    def interrupted(*args, **kwargs):
        seen.append(1)
        if len(seen) == at:
            _thread.interrupt_main()
            time.sleep(0)
        return real(*args, **kwargs)

    monkeypatch.setattr(logs, "compiled", interrupted)
    LOG.clear()
    try:
        assert cap(compiled_while_interrupted)(np.ones(3)) == 1
        time.sleep(0)
    except KeyboardInterrupt:
        assert at == 1  # the function itself, before its block
    else:
        assert ("caught" in LOG) == (1 < at <= len(seen)), (LOG, seen)


def test_an_interrupt_while_metadata_is_inferred_leaves_the_state_of_numpy():
    """At ever later moments of a compilation that infers a lot."""

    def divides(x):
        for _ in range(30):
            x = x / (x * 0 + 2)
            assert x.shape == (3,) and x.dtype == np.float64
        return x

    def raise_it(*_):
        raise KeyboardInterrupt

    before, old, came = np.geterr(), signal.signal(signal.SIGALRM, raise_it), 0
    try:
        for turn in range(300):
            g = cap(lambda x: divides(x), dynamic=False) if ENGINE == "framegate" else divides
            try:
                signal.setitimer(signal.ITIMER_REAL, 2e-5 * (turn + 1))
                g(np.ones(3))
            except KeyboardInterrupt:
                came += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            assert np.geterr() == before
    except KeyboardInterrupt:
        came += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert came > 10 and np.geterr() == before
