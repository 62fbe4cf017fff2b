"""framegate.intercept: frames that nobody wrapped. Whatever sets the interpreter's hook runs in a process of its own."""

from __future__ import annotations

import pytest
from test_hostile import run_child

framegate = pytest.importorskip("framegate")

START = """
import sys
import framegate
from framegate import _core

@framegate.skip
def served(call, *args, **named):
    before = framegate.stats()["intercepted"]
    call(*args, **named)
    return framegate.stats()["intercepted"] - before

def down(n): return 0 if n == 0 else 1 + down(n - 1)
def add(a, b): return a + b
"""


def child(code: str, **kwargs: object) -> list[str]:
    import textwrap

    return run_child(START + textwrap.dedent(code), **kwargs).split("\n")


# --- the interception itself -----------------------------------------------------------------------------------------------------------------


def test_functions_are_compiled_inside_and_only_there():
    child("""
        assert served(add, 1, 2) == 0 and not _core.intercept_state()["linked"]
        with framegate.intercept() as kept:
            assert _core.intercept_state()["on_top"] and _core.intercept_state()["asks"]
            assert served(add, 1, 2) == 1 and served(add, 3, 4) == 1 and add(5, 6) == 11
            assert served(add, "a", "b") == 1 and add("a", "b") == "ab"
        assert served(add, 1, 2) == 0
        assert len(framegate.cache_entries(framegate.compile(add))) == 2, "entries are shared with gates of the same options"
        assert _core.intercept_state()["on_top"], "armed while the object lives"
        del kept
        assert _core.intercept_state() == {"on_top": False, "linked": False, "asks": False, "leases": 0}
        compiles = framegate.stats()["compiles"]
        for i in range(20):
            with framegate.intercept():
                add(i, i)
        assert framegate.stats()["compiles"] == compiles, "entries stay for the next interception"
    """)


def test_every_way_to_pass_arguments_arrives():
    child("""
        def f(a, /, b, c=3, *rest, d, e=5, **more): return a, b, c, rest, d, e, sorted(more.items())
        class C:
            def m(self, x, *, y=2): return self.k, x, y
            @property
            def p(self): return self.k + 1
            @classmethod
            def c(cls, x): return cls.__name__, x
            @staticmethod
            def s(x=1): return x
            def __call__(self, x): return x, self.k
            def __getitem__(self, i): return i * self.k
            k = 7
        def closure(n):
            def inner(x):
                nonlocal n
                n += x
                return n
            return inner
        def cell(a, b):
            return [(lambda: a + i)() for i in range(b)], a
        @framegate.skip
        def work():
            o, inner = C(), closure(1)
            return [f(1, 2, d=4), f(1, 2, 3, 4, 5, d=6, z=7, y=8), f(1, b=2, d=3, e=4), o.m(1), o.m(1, y=3), o.p, C.c(1), o.c(2), o.s(), C.s(5), o(1), o[3],
                    inner(1), inner(2), closure(5)(1), cell(1, 3), list(map(lambda v: v + 1, [1, 2])), sorted([3, 1, 2], key=lambda v: -v)]
        plain = work()
        with framegate.intercept():
            got = [work() for _ in range(4)]
        assert got == [plain] * 4, got
        assert framegate.stats()["intercepted"] > 40
    """)


def test_nesting_exceptions_and_leaving_out_of_order():
    child("""
        outer, inner = framegate.intercept(), framegate.intercept(filter=lambda code: False)
        try:
            with outer:
                with inner:
                    assert served(add, 1, 2) == 0
                    raise KeyError("out")
        except KeyError:
            pass
        assert not _core.intercept_state()["asks"]
        with outer, inner, outer:
            assert served(add, 1, 2) == 1
        outer.__enter__(); inner.__enter__()
        assert served(add, 1, 2) == 0
        outer.__exit__(None, None, None)
        assert served(add, 1, 2) == 0
        inner.__exit__(None, None, None)
        assert served(add, 1, 2) == 0 and not _core.intercept_state()["asks"]
        try:
            outer.__exit__(None, None, None)
        except RuntimeError as e:
            assert "not entered" in str(e)
        else:
            raise AssertionError
        def fails(a): return a.missing + 1
        with outer:
            for _ in range(3):
                try:
                    fails(3)
                except AttributeError as e:
                    assert e.__traceback__.tb_next.tb_frame.f_code.co_name == "fails" and e.__traceback__.tb_next.tb_next is None
                else:
                    raise AssertionError
    """)


def test_other_threads_are_not_concerned_and_may_leave():
    child("""
        import threading
        counts = []
        def here(call): counts.append(call())
        def on_thread(call):
            t = threading.Thread(target=here, args=(call,))
            t.start(); t.join()
            return counts.pop()
        kept = framegate.intercept()
        with kept:
            assert on_thread(lambda: _core.intercept_state()["asks"]) is False
        def own():
            with kept:
                return _core.intercept_state()["asks"], served(add, 1, 2)
        assert on_thread(own) == (True, 1) and not _core.intercept_state()["asks"]
        kept.__enter__()
        assert on_thread(lambda: kept.__exit__(None, None, None)) is None and not _core.intercept_state()["asks"]
        on_thread(kept.__enter__)  # never left there: the thread is gone
        kept.__exit__(None, None, None)
        ends = [threading.Thread(target=kept.__enter__) for _ in range(5)]
        for t in ends: t.start()
        for t in ends: t.join()
        for _ in ends: kept.__exit__(None, None, None)
        del kept
        assert _core.intercept_state()["leases"] == 0 and not _core.intercept_state()["linked"]
        many = framegate.intercept()
        def loop():
            with many:
                for i in range(300):
                    assert down(i % 7) == i % 7 and add(i, 1) == i + 1
        ts = [threading.Thread(target=loop) for _ in range(6)]
        for t in ts: t.start()
        loop()
        for t in ts: t.join()
    """)


def test_decorated_functions_generators_and_coroutines():
    child("""
        import asyncio, inspect
        on = framegate.intercept()
        asks = lambda: _core.intercept_state()["asks"]
        log = []
        @on
        def f(n): log.append(asks()); return down(n)
        assert f(3) == 3 and log == [True] and not asks()
        @on
        def gen(n):
            try:
                for i in range(n):
                    got = yield asks(), down(i)
                    log.append(got)
            except ValueError as e:
                yield str(e)
            finally:
                log.append(asks())
            return "end"
        g = gen(3)
        assert next(g) == (True, 0) and not asks() and g.send("x") == (True, 1) and log[-1] == "x"
        assert g.throw(ValueError("v")) == "v"
        try: next(g)
        except StopIteration as e: assert e.value == "end" and log[-1] is True
        g = gen(3); next(g); log.clear(); g.close(); assert log == [True] and not asks()
        @on
        async def co(n):
            a = asks(); await asyncio.sleep(0); return a, asks(), down(n)
        @on
        async def agen(n):
            try:
                for i in range(n):
                    got = yield asks(), i
                    log.append(got)
            except ValueError as e:
                yield "caught"
            finally:
                log.append(asks())
        async def main():
            r = await asyncio.gather(co(2), co(3), asyncio.sleep(0, "idle"))
            assert not asks()
            assert r == [(True, True, 2), (True, True, 3), "idle"], r
            assert [x async for x in agen(2)] == [(True, 0), (True, 1)]
            a = agen(3)
            assert await a.asend(None) == (True, 0) and await a.asend("s") == (True, 1) and log[-1] == "s"
            assert await a.athrow(ValueError()) == "caught"
            await a.aclose()
            assert log[-1] is True and not asks()
        asyncio.run(main())
        assert inspect.isgeneratorfunction(gen) and inspect.iscoroutinefunction(co) and inspect.isasyncgenfunction(agen)
        for bad in (3, int):
            try: on(bad)
            except TypeError: pass
            else: raise AssertionError(bad)
    """)


def test_generators_that_outlive_it_and_those_begun_before():
    child("""
        def gen():
            for i in range(4): yield down(i)
        before = gen(); next(before)
        with framegate.intercept():
            inside = gen()
            assert next(inside) == 0 and next(before) == 1
            assert served(next, inside) > 0, "what a generator calls is compiled"
        assert served(list, inside) == 0 and list(before) == [2, 3]
        with framegate.intercept():
            g = gen(); next(g)
            try: g.throw(ValueError("x"))
            except ValueError as e: assert str(e) == "x"
            else: raise AssertionError
            h = gen(); next(h); h.close()
            del h, g
    """)


def test_the_filter_is_asked_once_and_its_errors_are_reported():
    child("""
        asked = []
        def wanted(code):
            asked.append(code.co_name)
            if code.co_name == "bad": raise ValueError("no")
            return code.co_name == "add"
        def bad(): return 1
        reported = []
        sys.unraisablehook = lambda u: reported.append((type(u.exc_value).__name__, u.object))
        with framegate.intercept(filter=wanted):
            assert [served(add, 1, 2) for _ in range(3)] == [1, 1, 1]
            assert [down(2) for _ in range(3)] == [2, 2, 2] and [bad(), bad()] == [1, 1]
        assert asked.count("add") == 1 and asked.count("down") == 1 and asked.count("bad") == 1, asked
        assert reported == [("ValueError", wanted)]
        for wrong in (3, "x"):
            try: framegate.intercept(filter=wrong)
            except TypeError: pass
            else: raise AssertionError(wrong)
    """)


def test_run_only_uses_entries_and_makes_none():
    child("""
        with framegate.intercept(run_only=True):
            assert served(add, 1, 2) == 0 and framegate.stats()["compiles"] == 0
        framegate.compile(add)(1, 2)
        with framegate.intercept(run_only=True):
            assert served(add, 1, 2) == 1 and served(add, "a", "b") == 0
        assert framegate.stats()["compiles"] == 1
    """)


def test_options_are_those_of_compile():
    child("""
        import numpy as np
        graphs = []
        def backend(graph, inputs): graphs.append(graph); return graph
        def f(x): return np.sin(x) + 1
        with framegate.intercept(backend, filter=lambda code: code is f.__code__):
            for _ in range(3): f(np.ones(3))
        assert len(graphs) == 1
        def breaks(x): print(end=""); return x
        with framegate.intercept(fullgraph=True, filter=lambda code: code is breaks.__code__):
            try: breaks(1)
            except framegate.exc.Unsupported: pass
            else: raise AssertionError
        def fails(graph, inputs): raise ZeroDivisionError
        with framegate.intercept(fails, filter=lambda code: code is f.__code__):
            try: f(np.ones(4))
            except framegate.exc.BackendCompilerFailed: pass
            else: raise AssertionError
        with framegate.intercept(recompile_limit=2, filter=lambda code: code is add.__code__):
            assert [served(add, *p) for p in ((1, 2), (1.0, 2), ("a", "b"), ([], []), (1, 2))] == [1, 1, 0, 0, 1]
        with framegate.config.patch(disable=True), framegate.intercept():
            assert served(add, 1, 2) == 0 and not _core.intercept_state()["asks"]
        with framegate.intercept(), framegate.set_stance("force_eager"):
            assert served(add, 1, 2) == 0
    """)


def test_what_the_user_names_is_left_alone():
    child("""
        @framegate.disable
        def disabled(n): return down(n)
        def skipped(n): return down(n)
        with framegate.intercept():
            assert served(disabled, 3) == 0 and disabled(3) == 3
            assert served(skipped, 3) == 1, "with what it calls"
            framegate.skip(skipped)
            assert served(skipped, 3) == served(down, 3) == 1
            framegate.disallow_in_graph(add)
            assert served(add, 1, 2) == 0
            framegate.reset()
            assert served(down, 2) > 0
    """)


def test_gate_and_hook_do_not_handle_one_call_twice():
    child("""
        gate = framegate.compile(down)
        with framegate.intercept(filter=lambda code: code is down.__code__):
            assert gate(4) == 4
            misses = framegate.stats()["misses"]
            assert served(gate, 4) == 0, "the gate's entry inlines the rest"
            assert framegate.stats()["misses"] == misses
            with framegate.set_stance("eager_on_recompile"):
                hits = framegate.stats()["misses"]
                gate("no such entry") if False else gate(True)
                assert framegate.stats()["misses"] - hits <= 2
        limited = framegate.compile(add, recompile_limit=1)
        limited(1, 2)
        with framegate.intercept(recompile_limit=9):
            assert served(limited, "a", "b") == 0, "the gate said plain"
            assert served(add, "a", "b") == 1
    """)


def test_what_cannot_be_compiled_says_why_once():
    lines = child("""
        framegate.logs.set_logs("intercept")
        sys.stderr = sys.stdout
        def gen(): yield 1
        async def co(): return 1
        async def agen(): yield 1
        def run(c):
            try: c.send(None)
            except StopIteration: pass
        began = gen(); next(began)
        def klass():
            class A: x = 1
            return A
        with framegate.intercept(filter=lambda code: code.co_name != "unwanted"):
            for _ in range(3):
                list(gen()); run(co()); run(agen().asend(None)); klass(); exec("y = 1", {}); add(1, 2)
                (lambda: 0)()
            list(began)
    """)
    said = [line for line in lines if line.startswith("[framegate.intercept]")]
    wanted = {"gen": "generator", "co": "coroutine", "agen": "asynchronous generator", "klass.<locals>.A": "class"}
    for name, why in wanted.items():
        found = [line for line in said if line.startswith(f"[framegate.intercept] {name} ")]
        assert len(found) == 1 and why in found[0], (name, said)
    assert not [line for line in said if "] add " in line]


# --- what plain Python has -------------------------------------------------------------------------------------------------------------------


def test_frames_tracebacks_and_reference_counts_are_those_of_plain_python():
    child("""
        import gc, inspect, traceback, weakref
        def boom(a, b):
            c = a + b
            return c / 0
        def outer(a): return boom(a, a) + 1
        def trace():
            try: outer(3)
            except ZeroDivisionError as e: return [(x.name, x.lineno, x.line) for x in traceback.extract_tb(e.__traceback__)]
        def who(): return [(f.function, f.lineno) for f in inspect.stack()][:2], sys._getframe().f_code.co_name, sys._getframe(1).f_code.co_name
        def caller(x): return who(), x
        def names(a, b): c = 3; return sorted(sys._getframe().f_locals), sorted(locals())
        class T: pass
        def keep(x): y = x; return 1
        def drop(x): x = None; return 1
        def breaks(x): print(end=""); del x; return 1
        def hold(x): return lambda: x
        plain = trace(), caller(1), names(1, 2)
        o = T()
        counts = sys.getrefcount(o)
        with framegate.intercept():
            for _ in range(3):
                assert (trace(), caller(1), names(1, 2)) == plain
            for _ in range(50):
                keep(o); drop(o); breaks(o); hold(o)()
            r = weakref.ref(T())
            w = [weakref.ref(t) for t in [T() for _ in range(9)] for f in (keep, drop, breaks, hold) if f(t)]
        gc.collect()
        t = None
        assert sys.getrefcount(o) == counts
    """)


def test_arguments_have_the_references_that_they_have_under_any_evaluator():
    child("""
        source = '''
        def one(x): return sys.getrefcount(x)
        def twice(x, y): return sys.getrefcount(x), sys.getrefcount(y)
        def rest(*args): return sys.getrefcount(args), sys.getrefcount(args[0])
        def named(**more): return sys.getrefcount(more), sys.getrefcount(more["x"])
        def cell(x): return sys.getrefcount(x), (lambda: x)() is x
        def dropped(x):
            seen = sys.getrefcount(x), [v for v in x]
            for v in x: x = None
            return seen
        class C:
            def m(self, x): return sys.getrefcount(self), sys.getrefcount(x)
        '''
        import textwrap
        ours, plain = {"sys": sys}, {"sys": sys}
        exec(textwrap.dedent(source), ours)
        exec(textwrap.dedent(source), plain)
        for f in plain.values():
            if getattr(f, "__code__", None): framegate.skip(f)
        framegate.skip(plain["C"].m)
        @framegate.skip
        def call(one, twice, rest, named, cell, dropped, C, **unused):
            o, both = [1, 2], object()
            return (one([1]), one(o), twice(both, both), twice([1], o), rest([1], 2), rest(o), named(x=[1]), named(x=o), cell([1]), cell(o),
                    dropped([1, 2]), dropped(o), C().m([1]), sys.getrefcount(o))
        def flat(v): return [n for part in v for n in flat(part)] if isinstance(v, (tuple, list)) else [v]
        with framegate.intercept():
            assert served(call, **ours) >= 13
            for _ in range(4):
                told, counted = flat(call(**plain)), flat(call(**ours))
                more = [b - a for a, b in zip(told, counted)]
                assert set(more) <= ({0, 1} if sys.version_info >= (3, 14) else {0}), (told, counted)
    """)


def test_recursion_ends_in_an_answer_or_an_error():
    child("""
        def forever(n): return forever(n + 1)
        def keyed(n): return sorted([n], key=lambda v: keyed(v + 1))
        def gen(n): yield from gen(n + 1)
        class A:
            def __getattr__(self, name): return getattr(self, name + "x")
            def __repr__(self): return repr([self])
        def ends(f, *args):
            try: f(*args)
            except RecursionError: return True
            return False
        def depth(n=0):
            try: return depth(n + 1)
            except RecursionError: return n
        limit = sys.getrecursionlimit()
        def at_depth(): return depth()
        plain = depth()
        with framegate.intercept():
            assert [depth(), depth()] == [plain, plain]
            for _ in range(2):
                assert ends(forever, 0) and ends(keyed, 0) and ends(lambda: list(gen(0))) and ends(lambda: A().y) and ends(repr, A())
            assert down(400) == 400
        sys.setrecursionlimit(10**6)
        with framegate.intercept():
            assert down(2000) == 2000
            assert ends(forever, 0) and ends(forever, 0)
            try: assert down(200000) == 200000
            except RecursionError: pass
        try: assert down(200000) == 200000  # on another thread's account nothing is armed any more
        except RecursionError: raise AssertionError
    """)


def test_recursion_on_threads_with_little_stack():
    child("""
        import threading
        sys.setrecursionlimit(10**6)
        got = []
        def forever(n): return forever(n + 1)
        def run():
            with kept:
                try: forever(0)
                except RecursionError: got.append("error")
                got.append(down(20))
        def bystander():
            try: forever(0)
            except RecursionError: got.append("error")
            got.append(down(20))
        kept = framegate.intercept()
        for size in (128 * 1024, 512 * 1024, 4 << 20):
            threading.stack_size(size)
            with kept:
                for what in (run, bystander):
                    t = threading.Thread(target=what); t.start(); t.join()
        assert got == ["error", 20] * 6, got
    """)


def test_cycles_through_backends_filters_and_modules_are_collected():
    child("""
        import gc, types, weakref
        def module(n):
            m = types.ModuleType("m")
            exec("def f(x):\\n    print(end='')\\n    return x + 1\\ndef outer(k):\\n    def inner(x): print(end=''); return x + k\\n    return inner\\n", m.__dict__)
            return m
        gone = []
        @framegate.skip
        def use(i, backend):
            m = module(i)
            def own(graph, inputs, m=m): return graph
            with framegate.intercept(backend or own, filter=(lambda c, m=m: True) if i % 2 else None) as kept:
                for _ in range(3): m.f(i); m.outer(2)(3)
            m.kept = kept
            gone.extend([weakref.ref(m.f), weakref.ref(m.f.__code__), weakref.ref(m)])
        for backend in ("eager", None):
            for i in range(6):
                use(i, backend)
                gc.collect(); gc.collect()
        assert framegate.stats()["intercepted"] > 40
        alive = [r() for r in gone if r() is not None]
        assert not alive, alive
    """)
