"""Programs that try to hurt the engine: data nested without end, destructors and callbacks that come back in, threads against one gate, leaks.

What could crash the process runs in a child.
"""
from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import weakref

import numpy as np
import pytest

framegate = pytest.importorskip("framegate")


def run_child(body: str, **environment: str) -> str:
    """The child's output; a failed assertion if it does not end well."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "FRAMEGATE_STRICT": "1", **environment}
    done = subprocess.run([sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(body)], capture_output=True, text=True, env=env, timeout=120)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


# --- depth -----------------------------------------------------------------------------------------------------------------------------

BUILT = {
    "list": "[x]",
    "tuple": "(x,)",
    "dict": "{1: x}",
    "slice": "slice(x)",
    "instance": "Box(x)",
    "function": "(lambda inner: lambda: inner)(x)",
    "list in dict": "{'a': [x]}",
}


@pytest.mark.parametrize("limit", [10**6])
@pytest.mark.parametrize("step", BUILT.values(), ids=BUILT)
def test_values_built_to_any_depth(step, limit):
    run_child(f"""
        import sys, framegate
        sys.setrecursionlimit({limit})
        class Box:
            def __init__(self, inner):
                self.inner = inner
        def build(x):
            for i in range(60000):
                x = {step}
            return x
        def wrapped(x):
            y = build(x)
            return len(str(x)), y
        assert type(framegate.compile(build)(1)) is type(build(1))
        assert framegate.compile(wrapped)(1)[0] == 1
    """)


READ = {
    "subscript": "x[0]",
    "membership": "x in (1, (2,))",
    "equality": "x == (1,)",
    "length and identity": "(len(x), x is None)",
    "isinstance": "isinstance(1, (x, int))",
    "default": "(lambda a, b=x: b)(1)",
    "array index": "len(x) + numpy.sum(numpy.ones(3)[x[1:]])",
}


@pytest.mark.parametrize("expression", READ.values(), ids=READ)
def test_values_that_came_in_at_any_depth(expression):
    if expression == READ["isinstance"] and hasattr(sys, "gettotalrefcount"):
        pytest.skip("a debug build of the interpreter has no stack for it in plain Python")
    run_child(f"""
        import sys, framegate, numpy
        sys.setrecursionlimit(10**6)
        def read(x):
            return {expression}
        x = 1
        for i in range(200000):
            x = (x,)
        def observe(f):
            try:
                return f(x)
            except (TypeError, RecursionError) as error:
                return type(error)
        want, gate = observe(read), framegate.compile(read)
        for i in range(3):
            got = observe(gate)
            assert got is want or got == want
    """)


def test_gates_that_call_themselves_end_in_recursion_error():
    run_child("""
        import sys, framegate
        sys.setrecursionlimit(10**6)
        @framegate.compile
        def plain(n):
            return 0 if n == 0 else 1 + plain(n - 1)
        @framegate.compile
        def breaking(n):
            print(end="")
            return 0 if n == 0 else 1 + breaking(n - 1)
        for gate in (plain, breaking):
            for i in range(2):
                try:
                    gate(10**6)
                except RecursionError:
                    pass
                else:
                    raise AssertionError(gate)
                assert gate(5) == 5
    """)


# --- code that comes back in -----------------------------------------------------------------------------------------------------------


def test_a_destructor_gives_the_function_another_code_while_its_arguments_are_bound():
    run_child("""
        import framegate, gc
        def small(a, *rest, b=1, **more): return a, rest, b, more
        def large(z0, z1, z2, z3, z4, z5, z6, z7, z8, *rest, k=1, l=2, m=3, n=4, o=5, p=6, q=7, **more): return "large"
        def f(): pass
        gate = framegate.compile(f)
        f.__kwdefaults__ = {"b": 1, "k": 1, "l": 2, "m": 3, "n": 4, "o": 5, "p": 6, "q": 7}
        class Evil:
            def __init__(self): self.me = self
            def __del__(self):
                for turn in range(3):
                    f.__code__ = large.__code__.replace()
                    assert gate(1, 2, 3, 4, 5, 6, 7, 8, 9, zz=1) == "large"
        many = tuple(range(30))
        for round in range(50):
            f.__code__ = small.__code__.replace()
            assert gate(1, 2, b=3, c=4) == (1, (2,), 3, {"c": 4})
            gc.collect(), gc.disable(), gc.set_threshold(1, 1, 1)
            Evil()
            held = [[] for i in range(50)]
            gc.enable()
            got = gate(*many, b=3, c=round)
            gc.set_threshold(700)
            assert got in ((0, many[1:], 3, {"c": round}), "large"), got
    """)


def test_guarded_objects_call_the_gate_and_reset_from_their_methods():
    def reader(box, key):
        return box.table[key] + box.offset

    gate = framegate.compile(reader)
    depth = 0

    class Key:
        def __init__(self, n):
            self.n = n

        def __hash__(self):
            poke()
            return self.n % 3

        def __eq__(self, other):
            poke()
            return isinstance(other, Key) and self.n == other.n

    class Box:
        pass

    def poke():
        nonlocal depth
        if depth < 2:
            depth += 1
            try:
                framegate.reset()
                gate(plain_box, "a")
                gate(plain_box, 1)
                gc.collect()
            finally:
                depth -= 1

    plain_box, box = Box(), Box()
    plain_box.table, plain_box.offset = {"a": 1, 1: 2}, 3
    depth = 9
    box.table, box.offset = {Key(i): i for i in range(6)}, 10
    depth = 0
    for i in range(6):
        assert gate(box, Key(i)) == i + 10
        assert gate(plain_box, "a") == 4


def test_a_destructor_compiles_while_counters_are_read():
    run_child("""
        import framegate, gc
        def fresh():
            def inner(x):
                print(end="")
                return x + 1
            return inner
        ran = []
        class Evil:
            def __init__(self): self.me = self
            def __del__(self): ran.append(framegate.compile(fresh())(len(ran)))
        framegate.compile(fresh())(1)
        for i in range(20):
            gc.collect(), gc.disable(), gc.set_threshold(1, 1, 1)
            Evil()
            held = [[] for i in range(50)]
            gc.enable()
            framegate.stats()
            gc.set_threshold(700)
        assert len(ran) == 20, ran
    """)


# --- threads ---------------------------------------------------------------------------------------------------------------------------


def test_many_threads_against_one_gate():
    run_child("""
        import gc, random, sys, threading, time
        import numpy as np
        import framegate
        sys.setswitchinterval(1e-6)
        scale = 2
        class Box:
            def __init__(self): self.w = 3
            def __del__(self): gates[0](1)
        def f(x, k=1):
            y = x * scale + k
            print(end="")
            for i in range(2):
                y = y + i
            return y
        def fresh():
            def inner(x, box):
                return x + box.w
            return inner
        arguments = [1, 2.5, True, 1j, np.ones(3), np.ones((2, 2), np.float32), np.float64(3), np.arange(4)]
        want = [f(a) for a in arguments]
        gates = [framegate.compile(f), framegate.compile(f, backend=lambda graph, examples: graph)]
        stop, failures = time.monotonic() + 4, []
        def guarded(body):
            def loop():
                rng = random.Random(threading.get_ident())
                try:
                    while time.monotonic() < stop and not failures:
                        body(rng)
                except BaseException as error:
                    failures.append(error)
                    raise
            return loop
        def call(rng):
            i = rng.randrange(len(arguments))
            got = rng.choice(gates)(arguments[i]) if rng.random() < .8 else gates[0](x=arguments[i], k=1)
            assert type(got) is type(want[i]) and np.array_equal(got, want[i]), (got, want[i])
        def come_and_go(rng):
            gate, box = framegate.compile(fresh()), Box()
            assert gate(1, box) == 4 and gate(2.5, box) == 5.5
            del gate, box
        def replace(rng):
            gates[1] = framegate.compile(f, backend=lambda graph, examples: graph, recompile_limit=rng.randrange(1, 9))
            framegate.config.cache_size = rng.randrange(1, 9)
        def disturb(rng):
            rng.choice([framegate.reset, gc.collect, framegate.stats, lambda: framegate.cache_entries(gates[0]), lambda: framegate.why(gates[0])])
            time.sleep(0.001)
            framegate.reset()
        def stance(rng):
            with framegate.set_stance(rng.choice(["force_eager", "eager_on_recompile", "default"])):
                call(rng)
        bodies = [call] * 5 + [come_and_go, replace, disturb, stance]
        threads = [threading.Thread(target=guarded(b)) for b in bodies]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert not failures, failures
    """, PYTHONDEVMODE="1", PYTHONWARNINGS="ignore")


# --- leaks -----------------------------------------------------------------------------------------------------------------------------


def test_explanations_are_freed():
    def f(x):
        return x + 1

    made = framegate.explain(f)(1)
    watched = weakref.ref(made)
    del made
    gc.collect()
    assert watched() is None


NAMESPACES = {
    "no break": ("    return x + 1", False),
    "break": ("    y = x + 1\n    print(end='')\n    return y + len(word)", False),
    "breaks in a loop": ("    for i in range(3):\n        print(end='')\n        x = x + i\n    return x", False),
    "break in a handler": ("    try:\n        print(end='')\n        raise KeyError(x)\n    except KeyError as e:\n        x = x + len(e.args)\n    return x", False),
    "break and closure": ("    y = x + word_length\n    print(end='')\n    return y + word_length", True),
    "an error after a break": ("    y = x + 1\n    print(end='')\n    return y / (y - y)", False),
}


@pytest.mark.parametrize("body, closure", NAMESPACES.values(), ids=NAMESPACES)
def test_a_namespace_that_nobody_knows_is_freed(body, closure):
    class Mark:
        pass

    def use():
        space = {"framegate": framegate, "mark": Mark(), "word": "abc"}
        source = "def f(x):\n" + body
        if closure:
            source = "def make(word_length):\n" + textwrap.indent(source, "    ") + "\n    return f\nf = make(3)"
        exec(source + "\ngate = framegate.compile(f)\n", space)
        for i in range(4):
            for argument in (1, 2.5):
                try:
                    space["gate"](argument)
                except ZeroDivisionError:
                    pass
        return weakref.ref(space["mark"])

    watched = use()
    gc.collect()
    assert watched() is None


class Model:
    """An instance that holds a gate that leads back to it."""

    def __init__(self):
        self.call = framegate.compile(self.f, backend=self.backend)
        self.other = framegate.compile(self.f, backend=self.backend)

    def f(self, x):
        return x + 1

    def backend(self, graph, inputs):
        return graph


class ResultHoldsModel(Model):
    def backend(self, graph, inputs):
        return lambda *a: (graph(*a), self)[0]


class Breaks(Model):
    def f(self, x):
        y = x + 1
        print(end="")
        return y * 2


class BreaksAndResultHoldsModel(Breaks, ResultHoldsModel):
    pass


class Chains(ResultHoldsModel):
    def f(self, x):
        for i in range(3):
            x = x + i
            try:
                print(end="")
            finally:
                x = x * 2
        return x


class OptionHoldsModel(Model):
    def __init__(self):
        self.call = framegate.compile(self.f, options={"model": self})
        self.other = self.call


class Plain(Model):
    def __init__(self):
        self.call = framegate.compile(self.f)
        self.other = framegate.compile(lambda x: self.f(x))


class InstanceIsBackend(Model):
    def __init__(self):
        self.call = framegate.compile(self.f, backend=self)
        self.other = framegate.compile(lambda x: self.f(x), backend=self)

    def __call__(self, graph, inputs):
        return lambda *a: (graph(*a), self)[0]


@pytest.mark.parametrize("kind", [Model, ResultHoldsModel, Breaks, BreaksAndResultHoldsModel, Chains, OptionHoldsModel, Plain, InstanceIsBackend])
def test_what_holds_its_own_gate_is_freed(kind):
    watched = []
    for _ in range(3):
        model = kind()
        for x in (1, 2.5, 1):
            assert model.call(x) == model.f(x) == model.other(x)
        watched.append(weakref.ref(model))
        del model
    gc.collect()
    assert [w() for w in watched] == [None] * 3


def test_a_namespace_whose_backend_reaches_its_gate_is_freed():
    class Mark:
        pass

    space = {"framegate": framegate, "mark": Mark()}
    exec("def backend(graph, inputs): return graph\ndef f(x): return x + 1\ngate = framegate.compile(f, backend=backend)\n", space)
    assert space["gate"](1) == 2
    watched = weakref.ref(space["mark"])
    del space
    gc.collect()
    assert watched() is None


def test_a_gate_that_somebody_holds_works_after_its_twin_was_garbage():
    class Owner:
        pass

    def f(x):
        return x + 1

    def backend(graph, inputs):
        return lambda *a: graph(*a)

    kept = framegate.compile(f, backend=backend)
    for _ in range(5):
        owner = Owner()
        owner.gate, owner.me = framegate.compile(f, backend=backend), owner
        assert owner.gate(1) == 2 == kept(1) and kept(1.5) == 2.5
        del owner
        gc.collect()
        assert kept(1) == 2 and kept(1.5) == 2.5


@pytest.mark.parametrize("warm", [False, True])
def test_a_gate_dies_in_a_cycle_after_its_options_were_cleared(warm):
    """The collector may clear the dict that holds the backend first, and then a traceback's frame that holds the gate."""
    freed = []

    def once(i):
        class Mark:
            pass

        mark = Mark()

        def backend(graph, inputs, options=None):
            if warm and len(inputs[0]) != 1:
                return graph
            raise ZeroDivisionError(mark)

        def f(x):
            return x + i

        gate = framegate.compile(f, backend=backend, options={"mark": mark} if i % 3 == 0 else None)
        if warm:
            gate(np.ones(2))
        with pytest.raises(framegate.exc.BackendCompilerFailed) as held:  # frame, exception, frame
            gate(np.ones(1))
        with pytest.raises(framegate.exc.BackendCompilerFailed):
            gate(np.ones(1))
        freed.append(weakref.ref(mark))
        return held.type

    for i in range(40):
        once(i)
        if i % 4 == 0:
            gc.collect()
    gc.collect()
    assert not [ref for ref in freed if ref() is not None]


def test_a_backend_without_gates_is_freed_when_nobody_else_holds_it():
    class Backend:
        def __call__(self, graph, inputs):
            return graph

    def f(x):
        return x + 1

    backend = Backend()
    assert framegate.compile(f, backend=backend)(1) == 2
    watched = weakref.ref(backend)
    del backend
    framegate.compile(f)(1)
    assert watched() is None


@pytest.mark.parametrize("own_backend", [False, True])
@pytest.mark.parametrize("warm", [False, True])
def test_code_replaced_while_it_runs_behind_breaks(own_backend, warm):
    source = textwrap.dedent("""
        def f(x, note):
            for i in range(3):
                x = x + 1
                note()
                try:
                    x = x * 2
                    note()
                finally:
                    x = x + 3
                with context():
                    note()
                    x = x + 5
            note()
            return x
    """)
    run_child(f"""
        import contextlib, framegate, gc
        @contextlib.contextmanager
        def context(): yield
        def run(at):
            space = {{"context": context}}
            exec({source!r}, space)
            f, seen = space["f"], 0
            want = f(1, lambda: None)
            gate = framegate.compile(f, **({{"backend": lambda graph, inputs: graph}} if {own_backend} else {{}}))
            if {warm}:
                gate(1, lambda: None)
            def note():
                nonlocal seen
                seen += 1
                if seen == at:
                    f.__code__ = (lambda x, note: 7).__code__
                    assert gate(1, None) == 7
                    framegate.reset()
                    gc.collect()
            assert gate(1, note) == want
            assert gate(1, None) == 7
        for at in range(1, 11):
            run(at)
    """)


WRAPPERS = {
    "staticmethod": ("@staticmethod\n    def g(x): return x", "A.g", "A.g(1)"),
    "classmethod": ("@classmethod\n    def g(cls, x): return x", "A.g.__func__", "A.g(1)"),
    "property": ("@property\n    def g(self): return 1", "A.g.fget", "A().g"),
}


@pytest.mark.parametrize("text, inner, use", WRAPPERS.values(), ids=WRAPPERS)
def test_a_wrapped_function_dies_where_plain_python_lets_it_die(text, inner, use):
    source = f"def f(m):\n  class A:\n    {text}\n  ref = weakref.ref({inner})\n  assert {use} == 1 and ref() is not None\n  del A\n  gc.collect()\n  return ref() is None\n"
    space = {"weakref": weakref, "gc": gc}
    exec(source, space)
    gate = framegate.compile(space["f"])
    assert [space["f"](1), gate(1), gate(1), gate(2.5)] == [True] * 4


@pytest.mark.parametrize("text, inner, use", WRAPPERS.values(), ids=WRAPPERS)
def test_a_namespace_with_wrapped_functions_is_freed_and_each_wrapper_is_looked_at(text, inner, use):
    class Mark:
        pass

    space = {"framegate": framegate, "mark": Mark()}
    exec(f"class A:\n    {text}\ndef f(x): return x + {use}\ngate = framegate.compile(f)\n", space)
    gate = space["gate"]
    assert gate(1) == gate(1) == 2 and len(framegate.cache_entries(gate)) == 1
    if "fget" in inner:
        space["A"].g = property(lambda self: 5)
    else:
        space["A"].g = type(vars(space["A"])["g"])(lambda *a: 5)
    assert gate(1) == gate(1) == 6
    watched = weakref.ref(space["mark"])
    del space, gate
    gc.collect()
    assert watched() is None
