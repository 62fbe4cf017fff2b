"""Operations whose shape a count says (one_hot, repeat_interleave): captured where the count is a number, and data decides as in plain torch what raises."""

import pytest

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.torch

import framegate  # noqa: E402
from torch.nn import functional as F  # noqa: E402

BACKENDS = ["eager", "torch:eager", "torch:aot_eager"]
LABELS = [torch.tensor([0, 1]), torch.tensor([1, 5]), torch.tensor([], dtype=torch.long), torch.tensor([0, 0, 0]), torch.tensor([-1, 1])]


def shaped(y): return y, y.shape, y.T.contiguous() if y.ndim == 2 else y * 2


KNOWN = {
    "classes": lambda x: shaped(F.one_hot(x, num_classes=7)), "position": lambda x: shaped(F.one_hot(x, 6).float()), "one class": lambda x: shaped(F.one_hot(x, 1)),
    "of results": lambda x: shaped(F.one_hot(x * 3 + 2, 18) + 1), "repeat": lambda x: shaped(x.repeat_interleave(3, 0)), "flat": lambda x: shaped(torch.repeat_interleave(x, 2)),
    "dim": lambda x: shaped(torch.repeat_interleave(x[None], repeats=2, dim=0)), "keywords": lambda x: shaped(torch.repeat_interleave(input=x, repeats=2)),
    "size": lambda x: shaped(x.repeat_interleave(2, output_size=x.numel() * 2)), "two": lambda x: shaped(F.one_hot(x, 9).repeat_interleave(2, 1)),
}


def caught(x):
    try:
        return F.one_hot(x, 2).sum(0), 1
    except RuntimeError as error:
        return str(error)


def caught_inside(x): return caught(x), x + 1


OTHER = {
    "no classes": lambda x: shaped(F.one_hot(x, 0)), "by data": lambda x: shaped(F.one_hot(x)), "by data too": lambda x: shaped(F.one_hot(x, -1)),
    "a tensor says": lambda x: shaped(F.one_hot(x, torch.tensor(6))), "floats": lambda x: shaped(F.one_hot(x.float(), 3)), "repeats of data": lambda x: shaped(torch.repeat_interleave(x, x)),
    "repeats alone": lambda x: shaped(torch.repeat_interleave(x)), "bool": lambda x: shaped(x.repeat_interleave(True)), "none": lambda x: shaped(x.repeat_interleave(0)),
    "negative": lambda x: shaped(x.repeat_interleave(-2)), "no such dim": lambda x: shaped(x.repeat_interleave(2, 5)), "another size": lambda x: shaped(x.repeat_interleave(2, output_size=3)),
    "caught": caught, "caught inside": caught_inside,
}


def seen(f, *args):
    try:
        return repr(f(*args))
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", [*KNOWN, *OTHER])
def test_each_count_gives_and_raises_what_plain_torch_does(name, backend):
    f = {**KNOWN, **OTHER}[name]
    g = framegate.compile(f, backend=backend)
    for x in LABELS * 2:
        assert seen(f, x.clone()) == seen(g, x.clone())


@pytest.mark.parametrize("name", [name for name in KNOWN if name != "one class"])
def test_a_count_is_no_graph_break(name):
    for backend in BACKENDS:
        g = framegate.compile(KNOWN[name], backend=backend, fullgraph=True)
        assert repr(g(LABELS[0])) == repr(KNOWN[name](LABELS[0]))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", [lambda x, n: shaped(F.one_hot(x, n)), lambda x, n: shaped(x.repeat_interleave(n))])
def test_counts_of_the_run(f, backend):
    g = framegate.compile(f, backend=backend)
    for n in (1, 2, 3, 0, -1, True, 2.0, "a", None, 3, 2**70, torch.tensor(3)):
        for x in LABELS[:2]:
            assert seen(f, x, n) == seen(g, x, n)


def test_what_looks_at_data_stands_between_two_graphs():
    seen = []

    def backend(graph, examples):
        seen.append([(tuple(e.shape), e.dtype) for e in examples])
        return graph.forward

    def f(x): return F.one_hot(x * 3, 7).float() + 1
    x = torch.tensor([0, 1])
    assert torch.equal(framegate.compile(f, backend=backend)(x), f(x))
    assert seen == [[((2,), torch.int64)], [((2, 7), torch.int64)]]


def test_gradients_and_order_of_effects_around_it():
    def f(w, x, log):
        y = w * 2
        log.append(y.sum().item())
        h = F.one_hot(x, 3)
        log.append("after")
        w.data.add_(1)
        return (y[:, None] * h).sum() + (h * w[:, None]).mean()

    for backend in BACKENDS:
        g = framegate.compile(f, backend=backend)
        for x in (LABELS[0], LABELS[1], LABELS[0]):
            results = []
            for call in (f, g):
                w, log = torch.tensor([1.0, 2.0], requires_grad=True), []
                try:
                    call(w, x, log).backward()
                except RuntimeError as error:
                    log.append(str(error))
                results.append((w.tolist(), None if w.grad is None else w.grad.tolist(), log))
            assert results[0] == results[1]
