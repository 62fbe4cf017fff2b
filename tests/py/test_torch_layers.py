"""Layers of torch whose forward looks at itself: the encoder layer of transformers in eval takes its fused way, in one graph."""

import pytest

torch = pytest.importorskip("torch")

import framegate  # noqa: E402

pytestmark = pytest.mark.torch
X = torch.arange(48.0).reshape(2, 3, 8).sin()


def layer(**options): return torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, **options)


@pytest.mark.parametrize("backend", ["eager", "torch:aot_eager"])
@pytest.mark.parametrize("options", [{}, {"norm_first": True}, {"activation": "gelu"}])
def test_encoder_layer_in_eval_is_one_graph(backend, options):
    m = layer(**options).eval()
    g = framegate.compile(m, backend=backend, fullgraph=True)
    with torch.no_grad():
        for x in (X, X * 2, X[:1], X.double().float()):
            assert torch.equal(g(x), m(x))


def test_what_the_fused_way_asks_about_is_guarded():
    m = layer().eval()
    g = framegate.compile(m)
    seen = []
    def check():
        want = m(X)
        calls = len(seen)
        seen.clear()
        got = g(X)
        assert torch.equal(want, got) and want.requires_grad == got.requires_grad and len(seen) == calls
        seen.clear()
    with torch.no_grad():
        check()
        check()
        handle = m.linear1.register_forward_hook(lambda *args: seen.append(1))
        check()
        handle.remove()
        check()
    check()
    m.train()
    check()
    m.eval()
    m.linear1.weight.requires_grad_(False)
    check()


def test_overrides_are_asked_about_plain_tensors_only():
    class Mine(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None): return "mine"
    def f(x, y): return torch.overrides.has_torch_function((x, y)), torch.overrides.has_torch_function_unary(y), x + 1
    g = framegate.compile(f)
    for y in (X, None, torch.nn.Parameter(X), X.as_subclass(Mine), X):
        assert f(X, y)[:2] == g(X, y)[:2]
    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None): return func(*args, **(kwargs or {}))
    with Mode(): assert f(X, X)[:2] == g(X, X)[:2]
