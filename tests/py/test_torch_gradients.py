"""`.grad` of a tensor in compiled functions: read, tested, used as an input, changed, replaced, taken away; the facts that must fail when it changes."""

from __future__ import annotations

import copy
import warnings
import weakref

import pytest
from support_engine import ENGINE, cap, counted, entries, needs_engine

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
BACKENDS = ["eager", "torch:aot_eager"] if ENGINE == "framegate" else ["eager"]


def leaf(grad=None, values=(1.0, 2.0, 3.0)):
    tensor = torch.tensor(values, requires_grad=True)
    tensor.grad = None if grad is None else torch.full((len(values),), float(grad))
    return tensor


def is_none(p):
    return p.grad is None


def branches(p):
    if p.grad is not None:
        return p.detach() - p.grad * 0.1
    return p.detach() * 2


def zeroes(p):
    if p.grad is not None:
        p.grad.zero_()
    return p.detach() + 1


def takes_away(p):
    grad = p.grad
    p.grad = None
    return grad, p.grad


def makes(p):
    made = p.detach() * 3
    p.grad = made
    return p.grad is made, p.grad + 1


def begins_and_adds(p):
    if p.grad is None:
        p.grad = torch.zeros_like(p)
    p.grad.add_(1.0)
    return p.grad


def steps(p):
    with torch.no_grad():
        if p.grad is not None:
            p.sub_(p.grad * 0.5)
            p.grad.zero_()
    return p.detach() * 1


def asks(p):
    g = getattr(p, "grad", 5)
    return isinstance(g, torch.Tensor), g is p.grad, hasattr(p, "grad"), None if g is None else (g.dtype, g.shape, g.requires_grad)


def keeps(p):
    p.grad = p.grad
    return p.detach() + 1


FUNCTIONS = [is_none, branches, zeroes, takes_away, makes, begins_and_adds, steps, asks, keeps]


def flat(value):
    if isinstance(value, torch.Tensor):
        return (type(value), value.tolist(), value.requires_grad)
    return tuple(map(flat, value)) if isinstance(value, tuple) else value


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("make", [leaf, lambda grad=None: torch.nn.Parameter(leaf(grad).detach())])
@pytest.mark.parametrize("fn", FUNCTIONS)
def test_results_and_what_becomes_of_the_gradient(fn, make, backend):
    compiled = cap(fn, backend=backend)
    for grad in (None, 2, None, 3, 4, None):
        a, b = make(), make()
        for p in (a, b):
            p.grad = None if grad is None else torch.full((3,), float(grad))
        assert flat(fn(a)) == flat(compiled(b)), grad
        assert flat(a) == flat(b) and flat(a.grad) == flat(b.grad), grad


@needs_engine
@pytest.mark.parametrize("fn", FUNCTIONS)
def test_one_entry_without_and_one_with_a_gradient_whatever_is_in_it(fn):
    import framegate

    assert framegate.explain(fn)(leaf(1)).graph_break_count == framegate.explain(fn)(leaf()).graph_break_count == 0
    compiled = cap(fn)
    for grad in (None, 1, 2, None, 3):
        compiled(leaf(grad))
    assert entries(compiled) == 2


@needs_engine
def test_the_gradient_is_an_input_of_the_graph():
    compiled, counter = counted(branches)
    assert compiled(leaf(1)).tolist() == pytest.approx([0.9, 1.9, 2.9]) and compiled(leaf(2)).tolist() == pytest.approx([0.8, 1.8, 2.8])
    assert counter.frame_count == 1
    assert compiled(leaf()).tolist() == [2, 4, 6] and counter.frame_count == 2


@pytest.mark.parametrize("other", ["double", "of another layout", "that requires grad", "a parameter"])
def test_a_gradient_of_another_kind_is_another_case(other):
    made = {"double": lambda: torch.ones(2, 2, dtype=torch.float64), "of another layout": lambda: torch.ones(2, 2).t(),
            "that requires grad": lambda: torch.ones(2, 2, requires_grad=True), "a parameter": lambda: torch.nn.Parameter(torch.ones(2, 2))}[other]

    def fn(p):
        return type(p.grad).__name__, p.grad.dtype, p.grad.stride(), p.grad.requires_grad, p.grad * 2

    compiled = cap(fn)
    for make in (lambda: torch.ones(2, 2), made, lambda: torch.ones(2, 2)):
        p = torch.zeros(2, 2, dtype=make().dtype, requires_grad=True)
        p.grad = make()
        want, got = fn(p), compiled(p)
        assert want[:4] == got[:4] and torch.equal(want[4], got[4]) and want[4].requires_grad == got[4].requires_grad


def test_one_tensor_by_two_ways():
    def fn(p, g):
        p.grad.mul_(2)
        return g + 1, p.grad is g

    compiled = cap(fn)
    for shared in (False, True, False):
        p, g = leaf(1), torch.ones(3)
        if shared:
            p.grad = g
        result, same = compiled(p, g)
        assert same is shared and result.tolist() == ([3.0] * 3 if shared else [2.0] * 3)
    p = leaf(1)

    def two(p, q):
        p.grad = None
        return q.grad

    compiled = cap(two)
    q = leaf(2)
    assert compiled(p, q) is q.grad and p.grad is None and compiled(q, q) is None


def test_what_is_stored_is_what_is_read_and_wrong_ones_are_refused_where_they_are_stored():
    def fn(p, g, log):
        log.append(1)
        p.grad = g
        log.append(2)
        return p.grad

    compiled = cap(fn)
    for size in (3, 4, 3):
        p, g, log = leaf(1), torch.ones(size), []
        if size == 3:
            assert compiled(p, g, log) is g and p.grad is g and log == [1, 2]
        else:
            with pytest.raises(RuntimeError, match="size"):
                compiled(p, g, log)
            assert log == [1] and p.grad.tolist() == [1, 1, 1]

    def handled(p, g):
        try:
            p.grad = g
        except RuntimeError:
            return "refused"
        return "stored"

    compiled = cap(handled)
    assert [compiled(leaf(1), torch.ones(n)) for n in (3, 4, 3, 5)] == ["stored", "refused", "stored", "refused"]


def test_torch_still_warns_of_what_is_no_leaf():
    def fn(p):
        return p.grad is None

    compiled = cap(fn)
    assert compiled(leaf())
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning, match="not a leaf"):
                compiled(leaf() * 2)
    kept = leaf() * 2
    kept.retain_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled(kept)
        kept.sum().backward()
        assert not compiled(kept) and compiled(leaf()) and compiled(torch.ones(3))


def test_a_tensor_that_became_a_result_is_asked_as_plain_python_asks():
    def fn(x, w):
        x.mul_(w)
        return x.grad

    compiled = cap(fn)
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning, match="not a leaf"):
                compiled(torch.ones(3), leaf())


def test_a_gradient_with_a_finalizer_ends_where_it_is_let_go():
    seen = []

    def fn(p, log):
        log.append("before")
        p.grad = None
        log.append("after")

    compiled = cap(fn)
    for watch in (False, True, True):
        p, log = leaf(1), seen
        seen.clear()
        if watch:
            end = weakref.finalize(p.grad, seen.append, "end")
            end.atexit = False
        compiled(p, log)
        assert seen == (["before", "end", "after"] if watch else ["before", "after"])


def test_a_mode_is_asked():
    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if getattr(func, "__self__", None) is torch.Tensor.grad:
                return "the mode"
            return func(*args, **(kwargs or {}))

    compiled = cap(is_none)
    assert compiled(leaf())
    with Mode():
        assert compiled(leaf()) is is_none(leaf())
    assert compiled(leaf())


def train(model, opt, x, y):
    opt.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    opt.step()
    return loss.detach()


def by_hand(model, rate, x, y):
    for p in model.parameters():
        p.grad = None
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    norm = torch.sqrt(sum((p.grad**2).sum() for p in model.parameters() if p.grad is not None))
    with torch.no_grad():
        for p in model.parameters():
            p -= rate * p.grad / (norm + 1)
    return loss.detach(), norm


def model():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", None])
def test_training_is_that_of_plain_torch(optimizer):
    plain, twin = model(), model()
    make = (lambda m: 0.1) if optimizer is None else (lambda m: getattr(torch.optim, optimizer)(m.parameters(), lr=0.05))
    fn = by_hand if optimizer is None else train
    compiled, one, other = cap(fn), make(plain), make(twin)
    for i in range(6):
        torch.manual_seed(i)
        x, y = torch.randn(4, 3), torch.randn(4, 1)
        want, got = fn(plain, one, x, y), compiled(twin, other, copy.copy(x), y)
        assert flat(want) == flat(got)
        for p, q in zip(plain.parameters(), twin.parameters()):
            assert torch.equal(p, q) and (p.grad is None) == (q.grad is None) and (p.grad is None or torch.equal(p.grad, q.grad))
    if optimizer is not None and ENGINE == "framegate":
        assert entries(compiled) <= 3
