"""framegate.disable reaches everything that runs until the call returns; and what stats() counts."""

from __future__ import annotations

import threading

import numpy as np
import pytest

framegate = pytest.importorskip("framegate")
from framegate.testing import CompileCounter  # noqa: E402


def counted(fn):
    counter = CompileCounter()
    return framegate.compile(fn, backend=counter), counter


def test_gates_that_a_disabled_function_reaches_run_plain():
    gate, counter = counted(lambda x: x + 1)
    shallow = framegate.disable(lambda x: gate(x))
    through_native = framegate.disable(lambda x: list(map(gate, sorted([x, x], key=lambda v: gate(v)[0]))))
    assert shallow(np.ones(1))[0] == 2 and through_native(np.ones(1))[1][0] == 2
    assert counter.frame_count == 0 and not framegate.cache_entries(gate)
    assert gate(np.ones(1))[0] == 2 and counter.frame_count == 1
    hits = framegate.cache_entries(gate)[0].hits
    shallow(np.ones(1))
    assert framegate.cache_entries(gate)[0].hits == hits
    gate(np.ones(1))
    assert framegate.cache_entries(gate)[0].hits == hits + 1


def test_without_recursive_they_are_compiled():
    gate, counter = counted(lambda x: x + 1)
    framegate.disable(lambda x: gate(x), recursive=False)(np.ones(1))
    assert counter.frame_count == 1


def test_from_compiled_code_and_back():
    inner, counter = counted(lambda x: x * 3)

    @framegate.disable
    def plain(x):
        return inner(x)

    def outer(x):
        y = x + 1
        y = plain(y)
        return inner(y) + 1

    gate = framegate.compile(outer)
    for _ in range(3):
        assert gate(np.ones(1))[0] == outer(np.ones(1))[0] == 19
    assert counter.frame_count == 1  # the call that outer makes itself when it runs plain


def test_it_ends_with_an_exception_and_nests():
    gate, counter = counted(lambda x: x + 1)

    @framegate.disable
    def fails(x):
        gate(x)
        raise KeyboardInterrupt

    @framegate.disable
    def outer(x):
        with pytest.raises(KeyboardInterrupt):
            fails(x)
        return gate(x)

    assert outer(np.ones(1))[0] == 2 and counter.frame_count == 0
    with pytest.raises(KeyboardInterrupt):
        fails(np.ones(1))
    gate(np.ones(1))
    assert counter.frame_count == 1


def test_other_threads_go_on():
    gate, counter = counted(lambda x: x + 1)
    entered, leave, done = threading.Event(), threading.Event(), []

    @framegate.disable
    def waits(x):
        entered.set()
        leave.wait(10)
        done.append(gate(x)[0])

    thread = threading.Thread(target=waits, args=(np.ones(1),))
    thread.start()
    assert entered.wait(10)
    assert gate(np.ones(1))[0] == 2 and counter.frame_count == 1
    hits = framegate.cache_entries(gate)[0].hits
    leave.set()
    thread.join()
    assert done == [2.0] and framegate.cache_entries(gate)[0].hits == hits


def test_classes_methods_and_callable_objects():
    gate, counter = counted(lambda x: x + 1)

    @framegate.disable
    class C:
        def m(self, x):
            return gate(x)

    class D:
        def __call__(self, x):
            return gate(x)

    class E:
        def m(self, x):
            return gate(x)

    for f in (C().m, framegate.disable(D()), framegate.disable(E().m)):
        assert f(np.ones(1))[0] == 2
    assert counter.frame_count == 0


def test_deep_recursion_through_disabled_functions_is_an_answer_or_a_recursion_error():
    @framegate.disable
    def down(n):
        return 0 if n == 0 else 1 + down(n - 1)

    assert down(100) == 100
    with pytest.raises(RecursionError):
        down(10**6)
    assert down(100) == 100


def test_signature_and_name_are_the_functions():
    import inspect

    @framegate.disable
    def f(a, b=2, *, c):
        "doc"
        return a, b, c

    assert f(1, c=3) == (1, 2, 3) and str(inspect.signature(f)) == "(a, b=2, *, c)" and f.__name__ == "f" and f.__doc__ == "doc"
    with pytest.raises(TypeError):
        f()


# --- stats -----------------------------------------------------------------------------------------------------------------------------


def delta(run):
    before = framegate.stats()
    run()
    after = framegate.stats()

    def less(a, b):
        return {k: less(v, b.get(k, {} if isinstance(v, dict) else 0)) if isinstance(v, dict) else v - b.get(k, 0) for k, v in a.items()}

    return less(after, before)


def test_guard_failures_are_counted_by_kind():
    gate = framegate.compile(lambda x, flag: x + 1 if flag else x)
    gate(1, True)
    made = delta(lambda: gate(2.5, True))
    assert made["guard_failures"] == {**dict.fromkeys(made["guard_failures"], 0), "type_is": 1} and made["refusals"] == 1
    made = delta(lambda: gate(1, False))
    assert sum(made["guard_failures"].values()) == made["refusals"] == 2
    gate = framegate.compile(lambda x: x + 1)
    gate(np.ones(2))
    made = delta(lambda: gate(np.ones((2, 2))))
    assert made["guard_failures"]["tensor"] == 1 and made["refusals"] == 1


def test_refusals_that_no_compile_follows_are_not_asked_why():
    gate = framegate.compile(lambda x: x + 1, recompile_limit=1)
    gate(1)
    made = delta(lambda: [gate(2.5) for _ in range(3)])
    assert made["guard_failures"]["not evaluated"] == made["refusals"] == 3 and made["recompile_limit"] == 3


def test_seconds_are_counted_by_phase():
    def backend(graph, inputs):
        import time

        time.sleep(0.05)
        return graph

    made = delta(lambda: framegate.compile(lambda x: x + 1, backend=backend)(np.ones(2)))
    seconds = made["seconds"]
    assert {"trace", "backend", "codegen", "publish", "compile"} <= set(seconds)
    assert seconds["backend"] >= 0.05 and all(s > 0 for s in seconds.values())
    assert seconds["trace"] + seconds["backend"] + seconds["codegen"] <= seconds["compile"]


def test_asking_why_runs_no_code_of_the_user():
    class Hook:
        asked = 0

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            type(self).asked += 1
            return 5

    gate = framegate.compile(lambda o, x: o.v + x)
    for x in (1, 2.5, 1j, np.ones(1)):
        gate(Hook(), x)
    assert Hook.asked == 4
