"""torch through the public functions: compiled modules, FX conversion, torch's backends by name."""

import copy
import operator
import pickle

import pytest

torch = pytest.importorskip("torch")

import framegate  # noqa: E402
from framegate import _compile, _modules, testing  # noqa: E402

pytestmark = pytest.mark.torch


class Net(torch.nn.Module):
    made = []

    def __init_subclass__(cls, **kwargs):
        Net.made.append(cls)

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)

    def forward(self, x, *, scale=1.0):
        return self.linear(x) * scale


def test_a_compiled_module_shares_everything():
    m = Net()
    c = framegate.compile(m)
    x = torch.ones(1, 2)
    assert c is not m and isinstance(c, Net) and type(c).__name__ == "Net" and Net.made == []
    assert c.__dict__ is m.__dict__ and list(c.state_dict()) == list(m.state_dict())
    assert torch.equal(c(x), m(x)) and torch.equal(c(x, scale=2.0), m(x, scale=2.0)) and torch.equal(c.forward(x), m(x))
    c.eval()
    assert not m.training and not m.linear.training
    m.train()
    assert c.training
    c.extra = torch.nn.Parameter(torch.ones(1))
    assert "extra" in dict(m.named_parameters()) and repr(c) == repr(m)
    again = framegate.compile(c)
    assert _modules.original_of(again) is m and type(again) is type(c)
    with pytest.raises(TypeError):
        c()


def test_hooks_run():
    m = Net()
    c = framegate.compile(m)
    x = torch.ones(1, 2)
    seen = []
    handles = [m.register_forward_pre_hook(lambda mod, i: seen.append("pre")), c.register_forward_hook(lambda mod, i, o: o + 1)]
    assert torch.equal(c(x), c.forward(x) + 1) and seen == ["pre"]
    for handle in handles:
        handle.remove()
    handle = torch.nn.modules.module.register_module_forward_hook(lambda mod, i, o: seen.append("global"))
    try:
        c(x)
    finally:
        handle.remove()
    assert "global" in seen
    m.forward = lambda x: "patched"
    assert c(x) == "patched"


def test_pickle_and_deepcopy_give_compiled_copies(monkeypatch):
    c = framegate.compile(Net(), recompile_limit=3)
    x = torch.ones(1, 2)
    for d in (pickle.loads(pickle.dumps(c)), copy.deepcopy(c)):
        assert _modules.is_compiled(d) and d.linear.weight is not c.linear.weight and torch.equal(d(x), c(x))
        assert d._framegate_options["recompile_limit"] == 3


def test_other_classes_that_fill_their_dict():
    class Own:
        def __init__(self):
            object.__setattr__(self, "values", {})

        def __setattr__(self, name, value):
            self.values[name] = value

        def __getattr__(self, name):
            try:
                return self.__dict__["values"][name]
            except KeyError:
                raise AttributeError(name) from None

        def __call__(self, x):
            return x + self.n

    o = Own()
    o.n = 3
    c = framegate.compile(o)
    assert isinstance(c, Own) and c.__dict__ is o.__dict__ and c(1) == 4
    c.n = 5
    assert o.n == 5 and c(1) == 6


def graph_of_linear():
    g = framegate.Graph("lin")
    x, w = g.placeholder("x"), g.placeholder("w")
    h = g.call_function(torch.relu, (g.call_function(torch.nn.functional.linear, (x, w)),))
    t = g.get_attr(h, "T")
    k = g.call_function(torch.add, (t, torch.tensor([[1.0], [2.0], [3.0]])))
    s = g.call_method("sum", (k,), {"dim": [0, 1], "dtype": torch.float64})
    g.output((k, s, x))
    return g


@pytest.mark.parametrize("backend", ["torch:eager", "aot_eager"])
def test_torch_backends_by_name_give_the_replays_values(backend):
    g = graph_of_linear()
    x, w = torch.randn(5, 4), torch.randn(3, 4, requires_grad=True)
    f = _compile._call_backend(g, [x, w], _compile.make_options(backend))
    got, expected = f(x, w), g(x, w)
    assert type(got) is tuple and got[2] is x and all(torch.allclose(a, b) for a, b in zip(got, expected, strict=True))
    got[0].sum().backward()
    assert w.grad is not None


def test_fx_is_valid_and_code_is_made_late():
    g = graph_of_linear()
    m = g.to_fx()
    m.graph.lint()
    assert type(m)._needs_recompile()
    assert [n.op for n in m.graph.nodes].count("get_attr") == 1
    x, w = torch.randn(5, 4), torch.randn(3, 4)
    assert all(torch.equal(a, b) for a, b in zip(m(x, w), g(x, w), strict=True))
    later = m.graph.call_function(operator.neg, (next(iter(m.graph.nodes)),))
    assert later.name not in [n.name for n in m.graph.nodes if n is not later]
    with pytest.raises(RuntimeError, match="no output"):
        framegate.Graph().to_fx()


def test_who_gets_fx():
    seen = []

    def backend(graph, inputs):
        seen.append(type(graph))
        return graph

    def call(build, inputs):
        g = framegate.Graph()
        nodes = [g.placeholder("x") for _ in inputs]
        g.output((build(g, *nodes),))
        _compile._call_backend(g, inputs, _compile.make_options(backend))
        return issubclass(seen.pop(), torch.fx.GraphModule)

    assert call(lambda g, x: g.call_function(operator.add, (x, 1)), [torch.ones(1)])
    assert call(lambda g, x: g.call_function(operator.add, (x, [torch.ones(1)])), [3])
    assert call(lambda g: g.call_function(torch.zeros, (3,)), [])
    assert not call(lambda g, x: g.call_function(operator.add, (x, 1)), [3])
    g = framegate.Graph()
    g.output((g.placeholder("x"),))
    assert _compile._call_backend(g, [torch.ones(1)], _compile.make_options("eager")) is g


def test_a_returned_module_is_called_through_forward():
    g = graph_of_linear()
    x, w = torch.randn(5, 4), torch.randn(3, 4)
    for backend in (lambda m, i: m, lambda m, i: m.forward, testing.EagerAndRecordGraphs(), testing.CompileCounterWithBackend("torch:eager")):
        f = _compile._call_backend(g, [x, w], _compile.make_options(backend))
        assert all(torch.equal(a, b) for a, b in zip(f(x, w), g(x, w), strict=True))
        assert "lazy" not in f.__wrapped__.__name__


def test_same_on_tensors():
    one = torch.ones(2)
    assert testing.same(one, one.clone()) and not testing.same(one, one.double()) and not testing.same(torch.zeros(1), -torch.zeros(1))
    assert testing.same(torch.tensor([float("nan")]), torch.tensor([float("nan")])) and not testing.same(one, one + 1e-6) and testing.same(one, one + 1e-6, tol=1e-4)
