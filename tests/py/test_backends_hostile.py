"""Backends that raise, lie, mutate what they are given, keep it, or call back: each call gives plain Python's answer or a clear error."""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest
from test_hostile import run_child

framegate = pytest.importorskip("framegate")
from framegate.exc import BackendCompilerFailed  # noqa: E402

try:
    import torch
except ImportError:
    torch = None

KINDS = ["numpy"] + (["torch"] if torch is not None else [])


def ones(kind, n=2):
    return np.ones(n) if kind == "numpy" else torch.ones(n)


def body(x):
    a = x + 1
    b = x * 2
    return a, b, a - b


def plain(x):
    return [v.tolist() for v in body(x)]


def same_answer(gate, x):
    assert [v.tolist() for v in gate(x)] == plain(x)


class Unprintable(Exception):
    def __str__(self):
        raise ValueError("no text")


def fails_twice(error, kind):
    """A backend that raises at its first two calls, and the list that grows by one at each."""
    asked = []

    def backend(graph, inputs):
        asked.append(1)
        if len(asked) < 3:
            raise error("from the backend")
        return graph if kind == "numpy" else graph.forward

    return backend, asked


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("error", [ValueError, MemoryError, RecursionError, StopIteration, StopAsyncIteration, AssertionError, Warning, Unprintable])
def test_an_exception_of_a_backend_is_the_cause(error, kind):
    backend, asked = fails_twice(error, kind)
    gate = framegate.compile(body, backend=backend)
    for i in range(2):
        with pytest.raises(BackendCompilerFailed) as e:
            gate(ones(kind))
        assert type(e.value.__cause__) is error and e.value.inner_exception is e.value.__cause__ and error.__name__ in str(e.value)
        assert str(pickle.loads(pickle.dumps(e.value)) if error is not Unprintable else e.value)
    same_answer(gate, ones(kind))
    assert len(asked) == 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError, BaseException])
def test_what_is_no_exception_leaves_as_it_is(error, kind):
    backend, _ = fails_twice(error, kind)
    gate = framegate.compile(body, backend=backend)
    for i in range(2):
        with pytest.raises(error) as e:
            gate(ones(kind))
        assert type(e.value) is error and e.value.args == ("from the backend",) and e.value.__cause__ is None
    same_answer(gate, ones(kind))


def test_running_out_of_stack_in_a_backend():
    def deep(n):
        return deep(n + 1)

    gate = framegate.compile(body, backend=lambda graph, inputs: deep(0))
    for i in range(2):
        with pytest.raises(BackendCompilerFailed) as e:
            gate(np.ones(2))
        assert isinstance(e.value.__cause__, RecursionError)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("error", [MemoryError, RecursionError, KeyboardInterrupt, SystemExit])
def test_what_the_compiled_graph_raises_is_not_wrapped(error, kind):
    def backend(graph, inputs):
        def run(*args):
            raise error("at run time")
        return run

    gate = framegate.compile(body, backend=backend)
    for i in range(3):
        with pytest.raises(error, match="at run time") as e:
            gate(ones(kind))
        assert type(e.value) is error


def gives(value):
    return lambda graph, inputs: lambda *args: value


def coroutine(graph, inputs):
    async def run(*args):
        return graph(*args)
    return run


def generator(graph, inputs):
    def run(*args):
        yield from graph(*args)
    return run


class FalseTuple(tuple):
    def __len__(self):
        return 3

    def __getitem__(self, i):
        return 7

    def __iter__(self):
        raise ValueError("iterated")


WRONG = {
    "too few": gives((1, 2)), "too many": gives((1, 2, 3, 4)), "none": gives(None), "number": gives(5), "text": gives("abc"), "dict": gives({0: 1, 1: 2, 2: 3}),
    "set": gives({1, 2, 3}), "generator": generator, "coroutine": coroutine, "lying tuple": gives(FalseTuple((1,))), "array": gives(np.ones(3)),
    "iterator": gives(iter((1, 2, 3))), "type": lambda graph, inputs: int, "takes nothing": lambda graph, inputs: lambda: None,
}


@pytest.mark.filterwarnings("ignore:coroutine")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("backend", WRONG.values(), ids=WRONG)
def test_outputs_that_are_no_tuple_of_the_right_length(backend, kind):
    gate = framegate.compile(body, backend=backend)
    for i in range(3):
        with pytest.raises((BackendCompilerFailed, TypeError, ValueError)):
            gate(ones(kind))
    gc.collect()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("values", [(1, 2, 3), [1, 2, 3], (None, "b", [3])], ids=["tuple", "list", "objects"])
def test_outputs_of_other_types_are_passed_on(values, kind):
    gate = framegate.compile(body, backend=gives(values))
    for i in range(3):
        assert list(gate(ones(kind))) == list(values)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("result", [None, 0, "text", [], (x for x in ()), {}, NotImplemented, Ellipsis], ids=lambda result: type(result).__name__)
def test_what_cannot_be_called_is_refused(result, kind):
    gate = framegate.compile(body, backend=lambda graph, inputs: result)
    for i in range(2):
        with pytest.raises(BackendCompilerFailed, match="callable"):
            gate(ones(kind))


class LyingCallable:
    def __init__(self, call):
        self.call = call

    def __getattribute__(self, name):
        if name == "call":
            return object.__getattribute__(self, name)
        raise RuntimeError(f"asked for {name}")

    def __call__(self, *args):
        return self.call(*args)


@pytest.mark.parametrize("kind", KINDS)
def test_a_callable_whose_attributes_raise(kind):
    gate = framegate.compile(body, backend=lambda graph, inputs: LyingCallable(graph if kind == "numpy" else graph.forward))
    for i in range(3):
        try:
            same_answer(gate, ones(kind))
        except (RuntimeError, BackendCompilerFailed) as e:
            assert kind == "torch" and "asked for" in str(e)


def test_a_backend_object_whose_attributes_raise():
    class Backend:
        def __call__(self, graph, inputs):
            return graph

        def __getattr__(self, name):
            raise RuntimeError(f"asked for {name}")

    try:
        gate = framegate.compile(body, backend=Backend())
        for i in range(3):
            same_answer(gate, np.ones(2))
    except RuntimeError as e:
        assert "asked for" in str(e)


def test_a_backend_changes_the_arrays_it_is_given_as_examples():
    def backend(graph, inputs):
        inputs.clear()
        return graph

    gate = framegate.compile(body, backend=backend)
    for n in (2, 3, 2):
        same_answer(gate, np.ones(n))


@pytest.mark.skipif(torch is None, reason="torch is not installed")
def test_a_backend_empties_the_fx_graph():
    def backend(module, inputs):
        run = module.forward
        for node in list(module.graph.nodes)[::-1]:
            if node.op == "output":
                node.args = ((),)
            else:
                node.users.clear()
        module.graph._root = None
        inputs.clear()
        return lambda *args: body(*args)

    gate = framegate.compile(body, backend=backend)
    for n in (2, 3, 2):
        same_answer(gate, torch.ones(n))
    assert framegate.cache_entries(gate)[0].graph.op_count == 3


@pytest.mark.parametrize("kind", KINDS)
def test_example_inputs_that_a_backend_keeps_die_with_it(kind):
    kept = []

    def backend(graph, inputs):
        kept.append(list(inputs))
        return graph if kind == "numpy" else graph.forward

    gate = framegate.compile(body, backend=backend)
    x = ones(kind)
    watched = weakref.ref(x)
    same_answer(gate, x)
    assert any(v is x for v in kept[0])
    kept.clear()
    del x
    gc.collect()
    assert watched() is None
    same_answer(gate, ones(kind))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", ["call", "reset", "compile", "other thread", "collect", "swap code", "delete entries", "stance"])
def test_a_backend_that_comes_back_in(what, kind):
    def f(x):
        a = x + 1
        b = x * 2
        return a, b, a - b

    depth = [0]

    def backend(graph, inputs):
        depth[0] += 1
        if depth[0] < 5:
            if what == "call":
                same_answer(gate, ones(kind))
                same_answer(gate, ones(kind, 3))
            elif what == "reset":
                framegate.reset()
            elif what == "compile":
                same_answer(framegate.compile(f, backend=backend), ones(kind))
            elif what == "other thread":
                thread = threading.Thread(target=same_answer, args=(gate, ones(kind)))
                thread.start()
                thread.join(60)
                assert not thread.is_alive()
            elif what == "collect":
                gc.collect()
            elif what == "swap code":
                f.__code__ = body.__code__.replace(co_name=f"body{depth[0]}")
                same_answer(gate, ones(kind))
            elif what == "delete entries":
                for entry in framegate.cache_entries(gate):
                    entry._entry.invalidate()
            elif what == "stance":
                with framegate.set_stance("force_eager"):
                    same_answer(gate, ones(kind))
        return graph if kind == "numpy" else graph.forward

    gate = framegate.compile(f, backend=backend)
    for n in (2, 3, 2, 4):
        same_answer(gate, ones(kind, n))


@pytest.mark.parametrize("kind", KINDS)
def test_a_compiled_graph_that_comes_back_in(kind):
    left = [8]

    def backend(graph, inputs):
        call = graph if kind == "numpy" else graph.forward

        def run(*args):
            if left[0]:
                left[0] -= 1
                framegate.reset()
                gc.collect()
                same_answer(gate, ones(kind))
            return call(*args)

        return run

    gate = framegate.compile(body, backend=backend)
    for i in range(6):
        same_answer(gate, ones(kind, 2 + i % 2))


def test_a_backend_that_compiles_itself_without_end():
    run_child("""
        import framegate, numpy as np
        def f(x): return x + 1
        def backend(graph, inputs):
            g = lambda x: x * 2 + 1
            return framegate.compile(g, backend=backend)
        gate = framegate.compile(f, backend=backend)
        def forever(graph, inputs):
            framegate.compile(lambda x: x + 1, backend=forever)(np.ones(1))
            return graph
        gate = framegate.compile(f, backend=forever)
        for i in range(2):
            try:
                gate(np.ones(1))
            except (RecursionError, framegate.exc.BackendCompilerFailed):
                pass
    """)


def test_copies_of_what_a_backend_is_given_work_alone():
    made = []

    def backend(graph, inputs):
        made.append((graph, list(inputs)))
        return graph

    gate = framegate.compile(body, backend=backend)
    same_answer(gate, np.ones(2))
    graph, inputs = made[0]
    text = graph.to_json()
    del gate
    framegate.reset()
    gc.collect()
    assert [v.tolist() for v in graph(*inputs)] == plain(np.ones(2))
    again = framegate.Graph.from_json(text)
    assert [v.tolist() for v in again(*inputs)] == plain(np.ones(2))
    try:
        other = copy.deepcopy(graph)
    except TypeError:
        other = graph
    assert [v.tolist() for v in other(*inputs)] == plain(np.ones(2))
