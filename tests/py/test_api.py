"""The public functions of framegate: what compile() takes and gives, markers, stances, reports."""

import asyncio
import copy
import functools
import gc
import inspect
import io
import operator
import pickle
import subprocess
import sys
import types

import framegate
import numpy as np
import pytest
from framegate import _compile, _core, _doctor, _rules, backends, config, exc, logs, testing


def _tracer_works():
    made = framegate.compile(lambda x: x + 1)
    made(np.ones(2))
    return bool(framegate.cache_entries(made))


needs_tracer = pytest.mark.skipif(not _tracer_works(), reason="this build has no tracer")


@pytest.fixture(autouse=True)
def clean_rules():
    yield
    _rules.reset_rules()
    framegate.set_stance("default")


def module_level(x, y=2, *args, k=3, **kwargs):
    "doc"
    return x, y, args, k, kwargs


compiled_by_name = framegate.compile(module_level)


class Thing:
    def __init__(self, n):
        self.n = n

    def method(self, x):
        return self.n + x

    def __call__(self, x):
        return self.n * x

    @framegate.compile
    def decorated(self, x):
        return self.n - x

    @staticmethod
    @framegate.compile
    def static(x):
        return x


# --- what compile takes ---


def test_functions_keep_their_face():
    c = framegate.compile(module_level)
    assert c(1, k=4, z=5) == module_level(1, k=4, z=5)
    assert (c.__name__, c.__doc__, c.__wrapped__) == ("module_level", "doc", module_level)
    assert inspect.signature(c) == inspect.signature(module_level)
    with pytest.raises(TypeError, match="missing"):
        c()


def test_decorator_with_and_without_arguments():
    @framegate.compile
    def f(x):
        return x + 1

    @framegate.compile(fullgraph=True, recompile_limit=3)
    def g(x):
        return x + 2

    assert (f(1), g(1)) == (2, 3)
    assert _core.gate_options(g)["recompile_limit"] == 3


def test_methods_partials_lambdas_objects_and_builtins():
    t = Thing(5)
    assert framegate.compile(t.method)(1) == 6 and framegate.compile(t.method).__self__ is t
    assert t.decorated(1) == 4 and Thing.decorated(t, 1) == 4 and Thing.static(3) == 3
    part = framegate.compile(functools.partial(module_level, 1, k=9))
    assert part(7) == (1, 7, (), 9, {}) and type(part) is functools.partial
    assert framegate.compile(lambda x: x * 2)(4) == 8
    assert framegate.compile(t)(3) == 15
    assert framegate.compile(len)([1, 2]) == 2 and framegate.compile(np.add)(1, 2) == 3
    assert framegate.compile(staticmethod(abs)).__func__(-3) == 3


def test_compiling_a_gate_compiles_its_function():
    c = framegate.compile(framegate.compile(module_level), fullgraph=True)
    assert c.__wrapped__ is module_level


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda: framegate.compile(Thing), TypeError, "class Thing"),
        (lambda: framegate.compile(3), TypeError, "callable, not int"),
        (lambda: framegate.compile(abs, dynamic=True), NotImplementedError, "dynamic=True"),
        (lambda: framegate.compile(abs, dynamic=1), TypeError, "dynamic"),
        (lambda: framegate.compile(abs, fullgraph=1), TypeError, "fullgraph"),
        (lambda: framegate.compile(abs, recompile_limit=0), ValueError, "at least 1"),
        (lambda: framegate.compile(abs, recompile_limit=1.5), TypeError, "recompile_limit"),
        (lambda: framegate.compile(abs, options=3), TypeError, "options"),
        (lambda: framegate.compile(abs, backend="eagre"), ValueError, "did you mean 'eager'"),
        (lambda: framegate.compile(abs, backend=3), TypeError, "backend"),
        (lambda: framegate.compile(backend="eagre"), ValueError, "eager"),
        (lambda: framegate.cache_entries(module_level), TypeError, "cache_entries takes something that framegate.compile made"),
        (lambda: framegate.why(module_level), TypeError, "framegate.why"),
        (lambda: framegate.set_stance("eager"), ValueError, "the stances are"),
        (lambda: framegate.disable(3), TypeError, "callable"),
        (lambda: framegate.allow_in_graph(3), TypeError, "callable"),
        (lambda: framegate.substitute_in_graph(abs)(len), TypeError, "Python function"),
        (lambda: framegate.substitute_in_graph(module_level)(lambda x: x), TypeError, "same names"),
    ],
)
def test_clear_errors(use, error, message):
    with pytest.raises(error, match=message):
        use()


def test_generators_and_coroutines_keep_their_predicates():
    @framegate.compile
    def gen(n):
        yield from range(n)

    @framegate.compile
    async def coro(n):
        await asyncio.sleep(0)
        return n

    @framegate.compile
    async def agen(n):
        yield n

    assert list(gen(3)) == [0, 1, 2] and asyncio.run(coro(4)) == 4
    assert inspect.isgeneratorfunction(gen) and inspect.iscoroutinefunction(coro) and inspect.isasyncgenfunction(agen)
    assert framegate.cache_entries(gen) == []


def test_pickle_and_copy():
    assert pickle.loads(pickle.dumps(compiled_by_name.__wrapped__)) is module_level
    again = pickle.loads(pickle.dumps(compiled_by_name))
    assert isinstance(again, _core.Gate) and again(1) == module_level(1)
    assert copy.deepcopy(compiled_by_name) is compiled_by_name and copy.copy(compiled_by_name) is compiled_by_name
    limited = framegate.compile(module_level, recompile_limit=5)
    back = pickle.loads(pickle.dumps(limited))
    assert _core.gate_options(back)["recompile_limit"] == 5 and _core.gate_options(back)["backend"] is backends.eager


def test_disabled_by_configuration():
    with config.patch(disable=True):
        assert framegate.compile(module_level) is module_level


def test_import_is_light_and_without_torch():
    code = "import numpy, sys; before = set(sys.modules); import framegate; print(*sorted(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"torch", "hypothesis", "rich", "pytest", "asyncio", "multiprocessing", "unittest", "sympy", "scipy", "numba"}
    assert not heavy & {name.split(".")[0] for name in loaded}
    assert len([name for name in loaded if not name.startswith("framegate")]) < 40, loaded


def test_every_public_name_is_there_and_documented():
    for name in framegate.__all__:
        thing = getattr(framegate, name)
        assert inspect.getdoc(thing), name
    with pytest.raises(AttributeError):
        framegate.no_such_name  # noqa: B018


# --- markers ---


def test_markers_write_rules_and_return_their_argument():
    def f(x):
        return x

    for mark, rule in [
        (framegate.allow_in_graph, "graph"),
        (framegate.disallow_in_graph, "break"),
        (framegate.forbid_in_graph, "forbid"),
        (framegate.assume_constant_result, "constant"),
        (framegate.skip, "skip"),
    ]:
        assert mark(f) is f and _rules.RULES[f] == rule
    assert framegate.allow_in_graph([f, abs]) == [f, abs] and _rules.RULES[abs] == "graph"
    t = Thing(1)
    framegate.disallow_in_graph(t.method)
    assert _rules.RULES[Thing.method] == "break"

    @framegate.substitute_in_graph(f)
    def g(x):
        return x

    assert _rules.RULES[f] == ("substitute", g)
    _rules.reset_rules()
    assert f not in _rules.RULES and framegate.graph_break in _rules.RULES


def test_graph_break_and_is_compiling_outside():
    assert framegate.graph_break("why") is None and framegate.is_compiling() is False


def test_disable_gives_the_same_meaning():
    @framegate.disable
    def f(x):
        "doc"
        return x + 1

    @framegate.disable(recursive=False)
    def g(x):
        return x

    @framegate.disable()
    def gen():
        yield 1

    assert f(1) == 2 and f.__doc__ == "doc" and _rules.RULES[f] == "disable" and framegate.compile(f) is f
    assert _rules.RULES[g] == "skip" and framegate.compile(g) is g
    assert inspect.isgeneratorfunction(gen) and list(gen()) == [1]
    assert framegate.disable(framegate.compile(module_level)).__wrapped__ is module_level
    t = Thing(2)
    assert framegate.disable(t.method)(3) == 5 and framegate.disable(t)(3) == 6

    @framegate.disable
    class C:
        def m(self):
            return 7

    assert C().m() == 7 and _rules.RULES[C.m] == "disable"


# --- stances ---


def test_set_stance_as_function_context_and_decorator():
    assert _core.get_stance() == "default"
    framegate.set_stance("force_eager")
    assert _core.get_stance() == "force_eager"
    with framegate.set_stance("fail_on_recompile"):
        assert _core.get_stance() == "fail_on_recompile"
    assert _core.get_stance() == "force_eager"
    framegate.set_stance("default")

    @framegate.set_stance("eager_on_recompile")
    def f():
        return _core.get_stance()

    assert _core.get_stance() == "default" and f() == "eager_on_recompile" and _core.get_stance() == "default"
    with pytest.raises(ZeroDivisionError), framegate.set_stance("force_eager"):
        1 / 0  # noqa: B018
    assert _core.get_stance() == "default"


def test_run_shares_entries_and_makes_none():
    c = framegate.compile(lambda x: x + 1)
    r = framegate.run(c)
    assert r(1) == 2 and framegate.cache_entries(r) == [] and framegate.run(module_level) is module_level
    assert _core.get_run_state(r) == "run_only" and _core.get_run_state(c) == "default"
    t = Thing(1)
    assert framegate.run(framegate.compile(t.method))(2) == 3


# --- backends ---


def test_backend_registry():
    @backends.register("test_mine")
    def mine(graph, inputs):
        return graph

    try:
        assert backends.lookup("test_mine") is mine and "test_mine" in backends.list() and backends.name_of(mine) == "test_mine"
        assert backends.lookup("eager") is backends.eager and backends.lookup(mine) is mine
        with pytest.raises(ValueError, match="reserved"):
            backends.register("eager", mine)
        with pytest.raises(ValueError, match="reserved"):
            backends.register("torch:x", mine)
        with pytest.raises(TypeError):
            backends.register("x", 3)
        with pytest.raises(TypeError):
            backends.register(mine)
    finally:
        del backends._registered["test_mine"]


def small_graph():
    g = framegate.Graph("g")
    x = g.placeholder("x")
    g.output((g.call_function(operator.add, (x, 1)),))
    return g


def test_call_backend_hands_over_and_checks():
    g = small_graph()
    seen = []

    def backend(graph, inputs, **kwargs):
        seen.append((graph, inputs, kwargs))
        return lambda x: [x + 1]

    f = _compile._call_backend(g, [5], _compile.make_options(backend, options={"a": 1}))
    assert f(5) == (6,) and seen == [(g, [5], {"options": {"a": 1}})]
    assert _compile._call_backend(g, [5], _compile.make_options()) is g


def test_call_backend_errors():
    g = small_graph()

    def raising(graph, inputs):
        raise KeyError("inner")

    with pytest.raises(exc.BackendCompilerFailed, match="raising.*KeyError.*'g'") as info:
        _compile._call_backend(g, [5], _compile.make_options(raising))
    assert isinstance(info.value.__cause__, KeyError) and info.value.inner_exception is info.value.__cause__
    with pytest.raises(exc.BackendCompilerFailed, match="returned int"):
        _compile._call_backend(g, [5], _compile.make_options(lambda graph, inputs: 3))
    few = _compile._call_backend(g, [5], _compile.make_options(lambda graph, inputs: lambda x: ()))
    with pytest.raises(exc.BackendCompilerFailed, match="too few outputs"):
        few(5)

    def interrupted(graph, inputs):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _compile._call_backend(g, [5], _compile.make_options(interrupted))


def test_a_backend_does_not_disturb_random_numbers():
    import random

    def backend(graph, inputs):
        random.random(), np.random.rand(3)
        return graph

    state = random.getstate(), np.random.get_state()[2]
    _compile._call_backend(small_graph(), [5], _compile.make_options(backend))
    assert (random.getstate(), np.random.get_state()[2]) == state


# --- reports ---


def test_exceptions_pickle_and_read_well():
    stack = [(__file__, 1, "f")]
    error = exc.Unsupported("call that cannot be traced", "print", "it has effects", ["move it"], stack)
    for each in (error, pickle.loads(pickle.dumps(error))):
        assert each.gb_type == "call that cannot be traced" and each.hints == ("move it",) and each.user_stack == tuple(stack)
        assert all(part in str(each) for part in ("it has effects", "move it", __file__, "fullgraph=True"))
    failed = pickle.loads(pickle.dumps(exc.BackendCompilerFailed("b", None, "returned int")))
    assert str(failed) == "backend 'b': returned int"
    assert all(issubclass(getattr(exc, n), exc.FramegateError) for n in exc.__all__ if n not in ("BreakReason", "FramegateError"))


def test_logs_print_chosen_artifacts(capsys):
    try:
        logs.set_logs("graph_breaks", "recompiles")
        logs.graph_break("f", "cause", "ctx", "because", ["do this"], [(__file__, 2, "f")])
        logs.recompile("f", "file.py", 3, [("0/0", ["x is 1, seen 2"])])
        logs.compiled("f", "0/0", 0.1, [small_graph()])
        err = capsys.readouterr().err
        assert all(part in err for part in ("cause", "because", "do this", 'f ("file.py", line 3) is compiled again', "x is 1, seen 2"))
        assert "operator.add" not in err
        logs.set_logs("graph_code")
        logs.compiled("f", "0/0", 0.1, [small_graph()])
        assert "operator.add" in capsys.readouterr().err
        with pytest.raises(ValueError, match="did you mean 'guards'"):
            logs.set_logs("guard")
    finally:
        logs.set_logs()


def test_internal_faults_warn_once_or_raise():
    with config.patch(strict_errors=False):
        logs._warned.clear()
        with pytest.warns(RuntimeWarning, match="fault of framegate.*doctor"):
            logs.warn_internal("f", "x")
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            logs.warn_internal("f", "x")
    with config.patch(strict_errors=True), pytest.raises(exc.InternalError):
        logs.warn_internal("f", "x")


def test_stats_count_breaks_and_seconds():
    before = framegate.stats()
    logs.graph_break("f", "test category")
    logs.compiled("f", "0/0", 0.5)
    after = framegate.stats()
    assert after["graph_breaks"]["test category"] == before["graph_breaks"].get("test category", 0) + 1
    assert after["seconds"]["compile"] >= before["seconds"].get("compile", 0) + 0.5
    assert {"frames", "hits", "misses", "compiles", "evictions"} <= set(after)


def test_explanation_reads_well():
    text = str(framegate.Explanation("f", [small_graph()], [exc.BreakReason("cat", hints=("hint",))], ["guard x"], {"f, 0/0": 0.25}))
    assert all(part in text for part in ("f: 1 graph, 1 operation, 1 graph break", "cat", "hint", "operator.add", "guard x", "0.250000"))


def test_doctor_reports():
    out = io.StringIO()
    _doctor.report(out)
    assert all(part in out.getvalue() for part in ("framegate", "interpreter", "numpy", "cache_size", "self-tests"))
    run = subprocess.run([sys.executable, "-m", "framegate", "config"], capture_output=True, text=True)
    assert run.returncode == 0 and "recompile_limit" in run.stdout
    assert subprocess.run([sys.executable, "-m", "framegate", "nothing"], capture_output=True).returncode == 2


# --- testing helpers ---


def test_counters_and_recorders():
    g = small_graph()
    for backend in (testing.CompileCounter(), testing.CompileCounterWithBackend("eager")):
        assert backend(g, [1])(1) == (2,) and (backend.frame_count, backend.op_count) == (1, 1)
        backend.clear()
        assert (backend.frame_count, backend.op_count) == (0, 0)
    recorder = testing.EagerAndRecordGraphs()
    assert recorder(g, [1])(1) == (2,) and recorder.graphs == [g]
    assert testing.normalize_graph(g) == testing.normalize_graph("# c\n\n" + g.code) == g.code


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (1, 1, True), (1, True, False), (1, 1.0, False), (0.0, -0.0, False), (float("nan"), float("nan"), True), ([1, (2,)], [1, (2,)], True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, False), (np.ones(2), np.ones(2), True), (np.ones(2), np.ones(2, "f4"), False), (np.zeros(1), -np.zeros(1), False),
        (np.array([np.nan]), np.array([np.nan]), True), (np.float32(1), np.float64(1), False), (complex(0.0, -0.0), 0j, False), ({1}, {1}, True), ("a", b"a", False),
        (np.array([1, 2]), np.array([1, 3]), False), ([1], [1, 2], False), (Thing(1), Thing(1), True), (Thing(1), Thing(2), False),
    ],
)  # fmt: skip
def test_same(a, b, expected):
    assert testing.same(a, b) is expected and testing.same(b, a) is expected


def test_same_follows_cycles_and_tolerance():
    a, b = [1], [1]
    a.append(a), b.append(b)
    assert testing.same(a, b)
    assert testing.same(1.0, 1.0 + 1e-9, tol=1e-6) and not testing.same(1.0, 1.0 + 1e-9)


def test_inline_snapshots_are_compared_and_rewritten(tmp_path):
    testing.assert_expected_inline("a\n", "a\n")
    with pytest.raises(AssertionError, match="FRAMEGATE_ACCEPT"):
        testing.assert_expected_inline("a", "b")
    script = tmp_path / "snap.py"
    script.write_text('from framegate.testing import assert_expected_inline as check\ncheck("one\\ntwo\\n", "")\ncheck(\'q"\', "x")\n')
    run = [sys.executable, str(script)]
    assert subprocess.run(run, capture_output=True).returncode == 1
    import os

    assert subprocess.run(run, env={**os.environ, "FRAMEGATE_ACCEPT": "1"}, capture_output=True, text=True).stderr == ""
    assert subprocess.run(run, capture_output=True).returncode == 0, script.read_text()
    assert "one\ntwo\n" in script.read_text()


def test_test_case_is_strict_and_clean():
    class Case(testing.TestCase):
        def test(self):
            assert config.strict_errors
            self.assertSame([1.0], [1.0])
            with self.assertRaises(AssertionError):
                self.assertSame(0.0, -0.0)
            self.assertExpectedInline("a", "a")

    with config.patch(strict_errors=False):
        result = Case("test").run()
        assert result.wasSuccessful() and config.strict_errors is False


# --- with the tracer ---


@needs_tracer
def test_entries_guards_and_why():
    def f(x, k):
        return x + k

    c = framegate.compile(f)
    x = np.ones(3)
    assert "no entries yet" in framegate.why(c)(x, 2)
    c(x, 2), c(x, 2)
    (entry,) = framegate.cache_entries(c)
    assert isinstance(entry.code, types.CodeType) and entry.nbytes > 0 and entry.hits >= 1 and "/" in entry.compile_id
    assert len(entry.guards) > 0 and str(entry.guards)
    assert entry.guards.check(x, 2) and entry.guards.explain(x, 2) == []
    assert not entry.guards.check("a", 2) and entry.guards.explain("a", 2)
    assert not entry.guards.check() and not entry.guards.check(1, 2, 3)
    back = framegate.GuardTree.from_text(entry.guards.to_text())
    assert back.to_text() == entry.guards.to_text() and len(back) == len(entry.guards)
    with pytest.raises(ValueError, match="bind"):
        back.check(x, 2)
    assert back.bind(c).check(x, 2)
    assert entry.compile_id in framegate.why(c)(x, 2) and "would hit" in framegate.why(c)(x, 2)
    assert "would not hit" in framegate.why(c)("a", 2)


@needs_tracer
def test_a_guard_tree_binds_calls_as_its_function_does():
    def f(x, k=2, *rest, n=1, **more):
        return x + k + n

    c = framegate.compile(f)
    x = np.ones(3)
    c(x, 2)
    tree = framegate.cache_entries(c)[0].guards
    for args, kwargs in [((x,), {}), ((x, 2), {}), ((), {"x": x}), ((x,), {"k": 2, "n": 1})]:
        assert tree.check(*args, **kwargs) and tree.explain(*args, **kwargs) == []
    for args, kwargs in [((x, 2.5), {}), ((x,), {"n": "1"}), ((), {"k": 2}), ((x,), {"x": x})]:
        assert not tree.check(*args, **kwargs) and tree.explain(*args, **kwargs)
    f.__defaults__ = ("two",)
    assert not tree.check(x) and tree.check(x, 2)


@needs_tracer
def test_a_guard_tree_follows_its_functions_code():
    def f(x):
        return x + 1

    def g(x, y):
        return y

    c = framegate.compile(f)
    c(np.ones(3))
    tree = framegate.cache_entries(c)[0].guards
    assert tree.check(np.ones(3)) and not tree.check(np.ones(3), 1)
    f.__code__ = g.__code__
    assert not tree.check(np.ones(3)) and tree.check(np.ones(3), 1)


@needs_tracer
def test_a_guard_tree_outlives_what_it_came_from():
    def f(x):
        return x + 1

    c = framegate.compile(f)
    c(np.ones(3))
    tree = framegate.cache_entries(c)[0].guards
    text = framegate.GuardTree.from_text(tree.to_text())
    bound = text.bind(f).bind(c)
    framegate.reset()
    del c, f, text
    gc.collect()
    assert tree.check(np.ones(3)) and bound.check(np.ones(3)) and not bound.check("a")
    with pytest.raises(TypeError, match="Python function"):
        bound.bind(len)
    with pytest.raises(TypeError):
        framegate.GuardTree(1, test_a_guard_tree_outlives_what_it_came_from)


@needs_tracer
def test_explain_counts_graphs_and_breaks():
    def f(x):
        y = x + 1
        framegate.graph_break("on purpose")
        return y * 2

    made = framegate.explain(f)(np.ones(2))
    assert made.graph_count == 2 and made.op_count == 2 and made.graph_break_count == 1
    assert made.break_reasons[0].user_stack and "framegate.graph_break" in made.break_reasons[0].gb_type
    assert made.result.tolist() == [4.0, 4.0] and "2 graphs" in str(made)


@needs_tracer
def test_verify_accepts_right_code():
    with config.patch(verify=True, strict_errors=True):
        total = [0.0]

        def f(x, out):
            out.append(1)
            total[0] += 1
            return x + 1

        c = framegate.compile(f)
        for _ in range(4):
            out = []
            assert c(np.ones(2), out).tolist() == [2.0, 2.0] and out == [1]
        assert total == [4.0] and framegate.cache_entries(c)
