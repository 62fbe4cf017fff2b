"""with: context managers written in Python are traced into, and __exit__ sees what plain Python would show it, whatever the body raises."""

import contextlib

import numpy as np
from differential_compare import observe
from support_engine import Cases, cap, check_case, check_same, check_twins, framegate, needs_engine

one_graph, case = Cases(), Cases()
A, B, C = np.ones((3, 3)), np.ones((2, 2)), np.arange(3.0)
PAIRS = ((A, A), (A, B), (A, C), (C, B))


class Manager:
    def __init__(self, log, eats=False): self.log, self.eats = log, eats
    def __enter__(self): self.log.append("enter"); return self
    def __exit__(self, kind, value, tb):
        self.log.append(("exit", kind and kind.__name__, str(value)))
        return self.eats


class Counting:
    depth = 0
    def __init__(self): self.seen = []
    def __enter__(self): self.depth += 1; return self.depth
    def __exit__(self, *info): self.depth -= 1; self.seen.append(info[0])


class Failing:
    def __init__(self, where): self.where = where
    def __enter__(self):
        if self.where == "enter": raise RuntimeError("enter")
        return self
    def __exit__(self, kind, value, tb):
        if self.where == "exit": raise RuntimeError("exit")


class OnlyErrors:
    """Its __exit__ raises the exception as another one."""
    def __enter__(self): return 1
    def __exit__(self, kind, value, tb):
        if kind is not None and issubclass(kind, (ValueError, TypeError)): raise KeyError("as a key")


@one_graph(*PAIRS)
def body_may_fail(a, b):
    log = []
    with Manager(log) as m:
        m.log.append("in")
        y = a @ b
        m.log.append("done")
    return y, log
@one_graph(*PAIRS)
def eats_the_error(a, b):
    log, y = [], None
    with Manager(log, eats=True): y = a @ b; log.append("done")
    return y, log
@one_graph(*PAIRS)
def two_managers(a, b):
    log = []
    try:
        with Manager(log) as m, Manager(m.log): log.append(a @ b)
    except ValueError as e: log.append(str(e))
    return log
@one_graph(*PAIRS)
def nested_in_a_loop(a, b):
    log = []
    for x in (a, b, a):
        with Manager(log, eats=True):
            if x is b: continue
            log.append(x @ b)
    return log
@one_graph(*PAIRS)
def return_in_the_body(a, b):
    log = []
    with Manager(log): return a.T, log
@one_graph(*PAIRS)
def null_context(a, b):
    with contextlib.nullcontext(a) as x: return x + 1
@one_graph(*PAIRS)
def suppressed(a, b):
    y = a
    with contextlib.suppress(ValueError, TypeError): y = a @ b
    return y * 2
@one_graph(*PAIRS)
def raised_as_another(a, b):
    try:
        with OnlyErrors() as n: return (a @ b) * n
    except KeyError as e: return e.args


def inner(m, a, b):
    with m: return a.T
@case(*[(how, a, b) for a, b in PAIRS for how in ("enter", "exit", None)])
def manager_fails(how, a, b):
    try:
        with Failing(how) as m: y = a @ b
    except RuntimeError as e: return str(e), type(e.__context__), m.where if how == "exit" else None
    except ValueError as e: return str(e)
    return y
@case(*PAIRS)
def error_leaves(a, b):
    with Manager([]): return a @ b
@case(*PAIRS)
def in_an_inlined_function(a, b):
    m = Counting()
    return inner(m, a, b), m.depth, m.seen
@case(*PAIRS)
def traceback_is_kept(a, b):
    class Keeps:
        def __enter__(self): return self
        def __exit__(self, kind, value, tb): self.lines = tb and [tb.tb_lineno, value.__traceback__ is tb]; return True
    k = Keeps()
    with k: a @ b
    return k.lines
@case(*PAIRS)
def generator_manager(a, b):
    @contextlib.contextmanager
    def m(log):
        log.append("enter")
        try: yield 5
        except ValueError as e: log.append(str(e))
        finally: log.append("leave")
    log = []
    with m(log) as n: log.append((a @ b) * n)
    return log
@case(*PAIRS)
def stack_of_managers(a, b):
    log = []
    with contextlib.ExitStack() as s:
        s.enter_context(Manager(log, eats=True))
        s.callback(log.append, "callback")
        log.append(a @ b)
    return log
@case(*PAIRS)
def lock(a, b):
    import threading
    with threading.Lock(): return a + a
@case((A, A * 0), (A, A))
def error_state(a, b):
    try:
        with np.errstate(all="raise"): return a / b
    except FloatingPointError as e: return str(e)
@case((1,), (None,))
def no_manager(n):
    with n: pass


# states of NumPy

ZEROS, NEGATIVE = np.array([1.0, 0.0]), np.array([-1.0, 4.0])


@one_graph((ZEROS,), (NEGATIVE,))
def errstate_is_restored(a):
    with np.errstate(divide="ignore", invalid="ignore"): x = 1 / a, np.sqrt(a)
    return x, a + 1
@one_graph((ZEROS, "ignore"), (NEGATIVE, "ignore"))
def errstate_by_argument(a, how):
    with np.errstate(all=how), np.errstate(over=how): return np.sqrt(1 / a)
def divides(a):
    with np.errstate(divide="raise"): x = 1 / a
    return x
@one_graph((NEGATIVE,), (ZEROS,))
def errstate_in_an_inlined_call(a): return divides(a) + 1
@one_graph((NEGATIVE,), (ZEROS,))
def errstate_raises_under_a_handler(a):
    try: return divides(a)
    except FloatingPointError as e: return str(e)
@one_graph((NEGATIVE,), (ZEROS,))
def errstate_raises(a):
    with np.errstate(divide="raise"): return 1 / a
@one_graph((NEGATIVE, 2), (ZEROS, 1))
def errstate_in_a_loop(a, n):
    for i in range(3):
        with np.errstate(all="ignore"):
            a = 1 / a
            if i == n: continue
            a = a * 2
    return a
@case((ZEROS, "wrong"), (ZEROS, None), (NEGATIVE, 3))
def errstate_fails(a, how):
    with np.errstate(divide=how): return 1 / a
@case((ZEROS,), (NEGATIVE,))
def errstate_entered_twice(a):
    e = np.errstate(divide="ignore")
    with e: x = 1 / a
    with e: y = 1 / a
    return x, y
@case((ZEROS,), (NEGATIVE,))
def errstate_with_a_function(a):
    log = []
    with np.errstate(divide="call", call=lambda kind, flag: log.append(kind)): x = 1 / a
    return x, log
@np.errstate(divide="ignore")
def decorated(a): return 1 / a
@case((ZEROS,), (NEGATIVE,))
def errstate_as_a_decorator(a): return decorated(a), a * 2


@one_graph.parametrize()
def test_traced(case): check_case(case)


@case.parametrize()
def test_with(case): check_case(case)


@needs_engine
@one_graph.parametrize()
def test_one_graph(case):
    f = framegate.compile(case.fn, fullgraph=True)
    for args in case.inputs * 2:
        want, got = observe(case.fn, args), observe(f, args)
        if want.error is None: check_same(want, got, "fullgraph")
        else: assert got.error is not None


def test_what_is_raised_at_run_time_reaches_exit():
    class Raising:
        def __init__(self, error): self.error = error
        def __call__(self, *_): raise self.error
    def f(a, b, log):
        with Manager(log) as m:
            m.log.append(1)
            y = a / b
            m.log.append(2)
        return y, log
    g = cap(f)
    for _ in range(2):
        with np.errstate(all="ignore"): check_same(observe(f, (C, C, [])), observe(g, (C, C, [])), "quiet")
        for kind in (KeyboardInterrupt, MemoryError, ValueError):
            with np.errstate(all="call", call=Raising(kind("now"))):
                check_same(observe(f, (C, C * 0, []), filename=__file__), observe(g, (C, C * 0, []), filename=__file__), kind.__name__)


def test_classes_of_managers_may_change():
    def make():
        class M:
            log = []
            def __enter__(self): return 1
            def __exit__(self, *info): self.log.append(info[0])
        def f(a, b):
            with M() as n: y = (a @ b) * n
            return y
        return f, M
    def other_exit(m): m.__exit__ = lambda self, *info: True
    def other_enter(m): m.__enter__ = lambda self: 7
    def no_exit(m): del m.__exit__
    check_twins(make, [(A, A), (A, B), other_enter, (A, A), other_exit, (A, B), (A, A), no_exit, (A, A)])


def test_state_of_an_existing_manager():
    def make():
        m = Counting()
        def f(a, b):
            with m as depth:
                with m: y = a @ b
            return y * depth
        return f, m
    check_twins(make, list(PAIRS) * 2)


def test_a_variable_with_a_finalizer_is_assigned_over_last_in_the_body():
    """What a segment goes back to may be an instruction that raises nothing, so the only reason for its handler is a signal on the way."""
    def make():
        log = []
        class Ends:
            def __del__(self): log.append("ended")
        def made(n):
            try: return Ends()
            except ValueError: pass
        def nothing(): pass
        def in_with(n):
            with Counting() as x:
                n = made(n)
                n = nothing()
            return n
        def in_try(n):
            try:
                n = made(n)
                n = nothing()
            finally: log.append("left")
            return n
        def in_loop(n):
            for n in range(n):
                with Manager(log):
                    n = made(n)
                    n = nothing()
            return n
        return in_with, in_try, in_loop, log
    for which in range(3):
        def one():
            made = make()
            return made[which], made[-1]
        check_twins(one, [(3,), (3,), (2,)])
