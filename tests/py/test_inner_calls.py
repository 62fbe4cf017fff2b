"""A call in which something breaks the graph: the call is made as it stands, and what it calls is compiled by itself."""

import gc
import sys
import threading
import traceback
import types
import weakref

import framegate
import framegate.logs
import numpy as np
import pytest
from framegate.testing import CompileCounter
from support_engine import needs_engine

pytestmark = needs_engine
X = np.arange(3.0)
printed = []


def tell(text):
    printed.append(text)


framegate.disable(tell)


def helper(x, k=1):
    y = x * 2 + k
    framegate.graph_break()
    return y - 1


def two_deep(x):
    z = x + 10
    return helper(z, k=2) * z


class Thing:
    def __init__(self, scale):
        self.scale = scale

    def __call__(self, x, *rest, **more):
        y = x * self.scale
        framegate.graph_break()
        return y + len(rest) + more.get("extra", 0)

    def method(self, x):
        return self(x, 1) - helper(x)

    @classmethod
    def of_class(cls, x):
        return helper(x) + len(cls.__name__)

    @staticmethod
    def of_none(x):
        return helper(x, 3)


def plain_call(x, thing):
    return helper(x + 1) * 3


def keywords(x, thing):
    return helper(k=5, x=x) + helper(*(x,), **{"k": 2})


def methods(x, thing):
    return thing.method(x) + thing(x, 1, 2, extra=4) + thing.of_class(x) + Thing.of_none(x)


def deep(x, thing):
    return two_deep(two_deep(x))


def in_a_loop(x, thing):
    for k in range(4):
        x = helper(x, k)
    return x


def in_an_expression(x, thing):
    return [helper(x), (helper(x, 2), {"a": helper(x, 3)})][1][0] + (helper(x) if x.ndim else 0)


def under_try(x, thing):
    try:
        return helper(x) + thing(x)
    finally:
        printed.append("finally")


def by_a_closure(x, thing):
    n = 5

    def inner(y):
        nonlocal n
        n += 1
        framegate.graph_break()
        return y * n

    return inner(x) + inner(x) + n


def by_a_lambda(x, thing):
    return (lambda y: helper(y) + 1)(x)


def recursive(x, n=6):
    y = x + n
    framegate.graph_break()
    return y if n == 0 else recursive(y, n - 1) * 2


def calls_itself(x, thing):
    return recursive(x)


FUNCTIONS = [plain_call, keywords, methods, deep, in_a_loop, in_an_expression, under_try, by_a_closure, by_a_lambda, calls_itself]


def same(a, b):
    return type(a) is type(b) and np.array_equal(a, b)


@pytest.mark.parametrize("backend", ["eager", "counter"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_result_is_that_of_plain_python(function, backend):
    gate = framegate.compile(function, backend="eager" if backend == "eager" else CompileCounter())
    for x in (X, X + 1, np.ones((2, 2)), np.ones(3, np.float32), X):
        for thing in (Thing(3.0), Thing(2), Thing(3.0)):
            assert same(gate(x, thing), function(x, thing))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_is_called_is_compiled(function):
    counter = CompileCounter()
    gate = framegate.compile(function, backend=counter)
    for _ in range(3):
        gate(X, Thing(3.0))
    after = counter.frame_count
    assert after >= 2, "the operations before the break and those behind it"
    for _ in range(20):
        gate(X, Thing(3.0))
    assert counter.frame_count == after


def test_once_for_all_functions_that_call_it():
    def one(x):
        return helper(x) + 1

    def other(x):
        return helper(x) - 1

    framegate.reset()
    assert same(framegate.compile(one)(X), one(X))
    before = framegate.stats()["compiles"]
    gate = framegate.compile(helper)
    assert same(gate(X), helper(X)) and framegate.stats()["compiles"] == before, "the entries are those of the function itself"
    assert same(framegate.compile(other)(X), other(X))


def test_operations_are_done_once_and_in_order():
    done = []

    def inner(x, text):
        done.append(text)
        tell(text)
        done.append(text + "!")
        return x + len(done)

    def outer(x):
        done.append("first")
        y = inner(x, "a")
        done.append("between")
        return inner(y, "b")

    gate = framegate.compile(outer)
    for _ in range(3):
        done.clear(), printed.clear()
        want, wanted, told = outer(X), list(done), list(printed)
        done.clear(), printed.clear()
        assert same(gate(X), want) and done == wanted and printed == told


def fails(x, how):
    y = x + 1
    framegate.graph_break()
    if how == "raise":
        raise KeyError(how)
    return y + np.ones(7) if how == "operation" else y


def calls_what_fails(x, how):
    z = x * 2
    return fails(z, how) + 1


def catches_what_fails(x, how):
    try:
        return calls_what_fails(x, how)
    except (KeyError, ValueError) as error:
        return x, type(error), str(error)


def outcome(function, *args):
    try:
        return function(*args)
    except Exception as error:  # what any of them raises is compared
        frames = [(each.name, each.lineno) for each in traceback.extract_tb(error.__traceback__) if each.filename == __file__ and each.name != "outcome"]
        return type(error), str(error), frames


@pytest.mark.parametrize("how", ["raise", "operation", "none"])
@pytest.mark.parametrize("function", [calls_what_fails, catches_what_fails])
def test_exceptions(function, how):
    gate = framegate.compile(function)
    for _ in range(3):
        assert repr(outcome(gate, X, how)) == repr(outcome(function, X, how))


def test_frames_are_there_for_who_looks():
    def inner(x):
        y = x + 1
        names = [sys._getframe(0).f_code.co_name, sys._getframe(1).f_code.co_name, sys._getframe(1).f_locals["mark"]]
        return y, names

    def outer(x):
        mark = "here"
        return inner(x), mark

    gate = framegate.compile(outer)
    for _ in range(3):
        (value, names), mark = gate(X)
        assert same(value, X + 1) and names == ["inner", "outer", "here"] and mark == "here"


def test_another_function_of_the_same_code_and_another_code_of_the_same_function():
    def make(k):
        def inner(x):
            framegate.graph_break()
            return x * k

        return inner

    def outer(x, f):
        return f(x + 1) + 1

    gate = framegate.compile(outer)
    fs = [make(2), make(3), make(2.5)]
    for _ in range(3):
        for f in fs:
            assert same(gate(X, f), outer(X, f))
    fs[0].__code__ = (lambda k: lambda x: x - k)(0).__code__
    fs[1].__code__ = make(1).__code__.replace(co_consts=make(1).__code__.co_consts)
    for f in fs * 2:
        assert same(gate(X, f), outer(X, f))


def test_defaults_and_globals_are_those_of_the_call():
    world = {"framegate": framegate, "k": 2}
    exec("def inner(x, d=1):\n    framegate.graph_break()\n    return x * k + d", world)
    inner = world["inner"]

    def outer(x):
        return inner(x) + 1

    gate = framegate.compile(outer)
    for k, d in ((2, 1), (3, 1), (3, 5), (2, 1)):
        world["k"], inner.__defaults__ = k, (d,)
        assert same(gate(X), outer(X))


def test_rules_are_kept():
    counter = CompileCounter()

    def inner(x):
        return x * 2 + 1

    def middle(x):
        y = disabled(x)
        return y * 3

    def outer(x):
        return middle(x) + 1

    disabled = framegate.disable(inner)
    gate = framegate.compile(outer, backend=counter)
    for _ in range(3):
        assert same(gate(X), outer(X))
    assert counter.op_count == 2, "one operation of middle and one of outer"


@pytest.mark.parametrize("kind", ["generator", "c", "class", "no plain code"])
def test_what_no_gate_can_stand_for_is_called_as_it_is(kind):
    def steps(x):
        framegate.graph_break()
        yield x + 1

    class Made:
        def __init__(self, x):
            framegate.graph_break()
            self.x = x

    callee = {"generator": steps, "c": sorted, "class": Made, "no plain code": types.FunctionType(compile("def g(x):\n    exec('y = 1')\n    return x", "-", "exec").co_consts[0], {})}[kind]

    def outer(x, f):
        return f(x)

    gate = framegate.compile(outer)
    for _ in range(3):
        got = gate(X, callee)
        assert {"generator": lambda: same(next(got), X + 1), "c": lambda: got == [0.0, 1.0, 2.0], "class": lambda: same(got.x, X), "no plain code": lambda: got is X}[kind]()


def make_world(n):
    """A function that nobody else knows, which calls another one that breaks."""
    world = {"framegate": framegate, "log": []}
    exec(f"def inner(x):\n    framegate.graph_break()\n    log.append({n})\n    return x + {n}\ndef outer(x):\n    return inner(x) * 2\ndef ping(x, n):\n    framegate.graph_break()\n    return pong(x, n - 1) if n else x\ndef pong(x, n):\n    framegate.graph_break()\n    return ping(x, n - 1) + 1 if n else x", world)
    return world


@pytest.mark.parametrize("name", ["outer", "ping"])
def test_nothing_is_kept(name):
    refs = []
    for n in range(3):
        world = make_world(n)
        gate = framegate.compile(world[name])
        for _ in range(3):
            args = (X,) if name == "outer" else (X, 5)
            assert same(gate(*args), world[name](*args))
        refs += [weakref.ref(world[each]) for each in ("inner", "outer", "ping", "pong")]
        refs += [weakref.ref(world[each].__code__) for each in ("inner", "outer", "ping", "pong")]
        del world, gate
    gc.collect()
    assert [ref() for ref in refs if ref() is not None] == []


def test_a_function_that_only_the_call_knows_ends_with_it():
    ends = []

    def outer(x):
        def inner(y):
            framegate.graph_break()
            return y + 1

        weakref.finalize(inner, ends.append, "inner")
        return inner(x)

    gate = framegate.compile(outer)
    for _ in range(4):
        ends.clear()
        gate(X)
        assert ends == ["inner"]


def test_threads():
    gate, wrong = framegate.compile(methods), []

    def work():
        for n in range(60):
            thing = Thing(n % 4)
            if not same(gate(X, thing), methods(X, thing)):
                wrong.append(n)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_more_functions_than_gates_are_kept():
    functions = []
    for n in range(80):
        world = {"framegate": framegate}
        exec(f"def inner(x):\n    framegate.graph_break()\n    return x + {n}", world)
        functions.append(world["inner"])

    def outer(x, f):
        return f(x) + 1

    gate = framegate.compile(outer, recompile_limit=200, options={"cache_size": 200})
    for _ in range(2):
        for n, f in enumerate(functions):
            assert same(gate(X, f), X + n + 1)


def test_memory_stays_flat_over_resets():
    tracked = []
    gate = framegate.compile(methods)
    for n in range(30):
        gate(X, Thing(3.0))
        framegate.reset()
        gc.collect()
        tracked.append(len(gc.get_objects()))
    assert tracked[-1] <= tracked[5] + 20


def test_modules_of_the_standard_library_that_work_for_themselves_are_left_alone():
    import contextlib
    import inspect

    @contextlib.contextmanager
    def around():
        yield

    @around()
    def decorated(x):
        y = x * 3
        framegate.graph_break()
        return y + 1

    def outer(x):
        inspect.signature(helper)
        return decorated(x) - 1

    counter = CompileCounter()
    gate = framegate.compile(outer, backend=counter)
    seen = []
    with framegate.logs.listen(lambda kind, record: seen.append(record["reason"].user_stack[0][2]) if kind == "graph_break" else None):
        for _ in range(3):
            assert same(gate(X), outer(X))
    assert "signature" not in seen and counter.op_count >= 3, "what contextlib stands around is compiled"


def test_fullgraph_says_where_the_break_is():
    with pytest.raises(framegate.exc.Unsupported, match="graph_break"):
        framegate.compile(two_deep, fullgraph=True)(X)
