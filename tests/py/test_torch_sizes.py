"""torch.Size as a value: of a tensor, an argument, a constant, a part of a container; beside tuples and lists that are equal or not."""

import pytest

torch = pytest.importorskip("torch")

import framegate  # noqa: E402
from support_engine import cap, check_same, needs_engine, observe  # noqa: E402

X = torch.arange(6.0).reshape(2, 3)
OTHERS = [(2, 3), (3, 2), (2,), (), (2, 3, 1), torch.Size([2, 3]), torch.Size([3, 2]), [2, 3], {2: 3}, 5, None, "ab", (2.0, 3), ((2, 3),), range(2, 4), frozenset({2, 3})]


def equal(x, s):
    return x.shape == s, s == x.shape, x.shape != s, s != x.shape, x.size() == s, x.size() != s


def equal_inside(x, s):
    return x.shape in [s], x.shape in (s,), [x.shape] == [s], (x.shape, 1) == (s, 1), {"a": x.shape} == {"a": s}, [s].index(x.shape) if x.shape in [s] else None


def equal_to_constants(x, s):
    return s == (2, 3), s != (2, 3), (2, 3) == s, s in ((2, 3), (3, 2)), x.shape == (2, 3), x.shape in ((2, 3), (1, 2)), x.shape == (2, 3, 1)


def parts(x, s):
    if type(s) is torch.Size:
        return s[0], s[-1], len(s), s[1:], tuple(s), list(s), s.numel(), [d + 1 for d in s], s + (1,), (1,) + s, s * 2, isinstance(s, tuple), type(s) is torch.Size, hash(s) == hash(tuple(s)), 2 in s, s.count(2), s.index(3) if 3 in s else None
    return None


def unpacked(x, s):
    if type(s) is torch.Size and len(s) == 2:
        a, b = s
        first, *rest = s
        return a, b, first, rest, x.reshape(s), x.new_zeros(*s), x.expand(4, *s) if tuple(s) == (2, 3) else None
    return None


def order(x, s):
    if isinstance(s, tuple):
        try:
            return x.shape < s, x.shape >= s, s < x.shape, max(x.shape, s), sorted([s, x.shape])
        except TypeError as error:
            return str(error)
    return None


def keys(x, s):
    if isinstance(s, tuple):
        d = {x.shape: 1, (2, 3): 2}
        return len(d), d.get(s), s in d, {s: 3}.get((2, 3)), {s: 3}.get(x.shape)
    return None


@pytest.mark.parametrize("function", [equal, equal_inside, equal_to_constants, parts, unpacked, order, keys])
def test_sizes(function):
    gate = cap(function)
    for _ in range(2):
        for s in OTHERS:
            check_same(observe(function, (X, s)), observe(gate, (X, s)), f"{function.__name__} {s}")


@needs_engine
def test_the_size_that_was_given_decides():
    def f(x, s):
        return x.reshape(s) + s[0]

    gate = framegate.compile(f)
    for _ in range(3):
        for s in (torch.Size([2, 3]), torch.Size([3, 2]), torch.Size([6]), torch.Size([1, 6])):
            assert torch.equal(gate(X, s), f(X, s))
    assert framegate.explain(f)(X, torch.Size([2, 3])).break_reasons == []


@needs_engine
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_a_tracer_of_torch_is_seen():
    def f(x):
        return x + 1, torch.jit.is_tracing(), torch._C._get_tracing_state() is None

    gate, seen = framegate.compile(f), []
    assert framegate.explain(f)(X).break_reasons == []

    def g(x):
        result = gate(x)
        seen.append(result[1:])
        return result[0]

    for _ in range(2):
        g(X)
        torch.jit.trace(g, (X,), check_trace=False)
    assert seen == [(False, True), (True, False)] * 2
