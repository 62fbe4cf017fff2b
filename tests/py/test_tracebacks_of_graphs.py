"""An operation that raises inside a compiled graph: the traceback has the user's frames, lines and columns that plain Python shows."""

import sys
import traceback

import framegate
import numpy as np
import pytest


def inner(x, y):
    z = x + 1
    return z @ y


def middle(x, y):
    a = x * 2
    return inner(a, y)


def two_deep(x, y):
    b = x - 1
    return middle(b, y) + 1


def in_the_root(x, y):
    b = x - 1
    c = b * 2
    d = c @ y
    return d + b.sum()


def over_several_lines(x, y):
    b = x - 1
    return (middle(b,
                   x.T) +
            middle(b,
                   y))


def in_a_loop(x, y):
    total = x - 1
    for k in (x.T, y):
        total = total + inner(total,
                              k).sum()
    return total


def in_a_comprehension(x, y):
    b = x * 2
    return [inner(b, k) for k in (x.T, y)]


def in_a_callback(x, y):
    b = x + x
    return list(map(lambda k: inner(b, k), [x.T, y]))


def after_a_break(x, y):
    b = x - 1
    framegate.graph_break()
    c = b + 1
    return middle(c, y)


def in_a_method(x, y):
    class A:
        def __init__(self, v):
            self.v = v * 1

        def __matmul__(self, other):
            return inner(self.v, other)
    return A(x + 1) @ y


def the_first_operation(x, y):
    return inner(x @ y, x) + 1


def as_given(graph, examples):
    return graph


def inside_a_function(graph, examples):
    def run_the_graph(*args):
        return graph(*args)
    return run_the_graph


USES = [two_deep, in_the_root, over_several_lines, in_a_loop, in_a_comprehension, in_a_callback, after_a_break, in_a_method, the_first_operation]


def shown(fn, *args):
    try:
        fn(*args)
    except Exception as e:
        frames = traceback.extract_tb(e.__traceback__)
        ours = [f for f in frames if f.filename == __file__ and f.name not in ("shown", "run_the_graph")]
        columns = [(f.end_lineno, f.colno, f.end_colno) for f in ours]
        return type(e), str(e), [(f.name, f.lineno) for f in ours], columns
    return None


@pytest.mark.parametrize("backend", [as_given, inside_a_function])
@pytest.mark.parametrize("use", USES)
def test_as_in_plain_python(use, backend):
    x, good, bad = np.ones((2, 3)), np.ones((3, 2)), np.ones((4, 4))
    plain = shown(use, x, bad)
    compiled = framegate.compile(use, backend=backend)
    compiled(x, good)
    for y in (bad, bad, good, bad):
        got = shown(compiled, x, y)
        assert got == (plain if y is bad else None)


def test_another_exception_of_the_backend_stands_at_the_first_operation():
    def backend(graph, examples):
        def run(*args):
            try:
                return graph(*args)
            except ValueError:
                raise KeyError("mine") from None
        return run
    compiled = framegate.compile(two_deep, backend=backend)
    got = shown(compiled, np.ones((2, 3)), np.ones((4, 4)))
    assert got[0] is KeyError and got[2] == [("two_deep", two_deep.__code__.co_firstlineno + 1), ("run", got[2][-1][1])]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="columns")
def test_the_interpreter_prints_it(capfd):
    compiled = framegate.compile(over_several_lines, backend=as_given)
    try:
        compiled(np.ones((2, 3)), np.ones((4, 4)))
    except ValueError:
        sys.__excepthook__(*sys.exc_info())
    text = capfd.readouterr().err
    assert "return z @ y\n           ~~^~~\n" in text and "in middle" in text and "in over_several_lines" in text


@pytest.mark.torch
@pytest.mark.parametrize("backend", ["torch:eager", as_given, inside_a_function, lambda graph, examples: graph.forward])
def test_in_modules_of_fx(backend):
    import torch

    def look_up(x, i):
        z = x + 1
        return torch.nn.functional.embedding(i, z)

    def use(x, i):
        b = x * 2
        return look_up(b, i).sum() + 1
    x, good, bad = torch.ones(2, 3), torch.tensor([1]), torch.tensor([7])
    plain = shown(use, x, bad)
    compiled = framegate.compile(use, backend=backend)
    compiled(x, good)
    for _ in range(3):
        assert shown(compiled, x, bad) == plain
        assert compiled(x, good) == use(x, good)
