"""What is asked about the results of operations that read a random generator is known while tracing, and the generator is as plain torch leaves it."""

import pytest
from support_engine import counted, framegate, needs_engine

torch = pytest.importorskip("torch")
F = torch.nn.functional

pytestmark = [pytest.mark.torch, needs_engine]


def shapes():
    x = torch.arange(24.0).reshape(2, 3, 4).requires_grad_()
    return x, x.detach().transpose(0, 2), torch.ones(2, 3, 4, dtype=torch.bfloat16), torch.ones(0, 3, 2), torch.ones(2, 40, 80)


OPERATIONS = {
    "dropout": lambda x: F.dropout(x, 0.5),
    "dropout that is off": lambda x: F.dropout(x, 0.5, training=False),
    "dropout of nothing": lambda x: F.dropout(x, 0.0),
    "dropout of all": lambda x: F.dropout(x, 1.0),
    "dropout1d": lambda x: F.dropout1d(x, 0.5),
    "feature alpha dropout": lambda x: F.feature_alpha_dropout(x, 0.5),
    "alpha dropout": lambda x: F.alpha_dropout(x, 0.5),
    "native dropout": lambda x: torch.native_dropout(x, 0.5, True)[1],
    "rrelu": lambda x: F.rrelu(x, training=True),
    "gumbel": lambda x: F.gumbel_softmax(x, hard=True, dim=1),
    "rand_like": lambda x: torch.rand_like(x),
    "randn_like, another dtype": lambda x: torch.randn_like(x, dtype=torch.float64),
    "randint_like": lambda x: torch.randint_like(x, 3),
    "randn": lambda x: torch.randn(2, x.size(1)),
    "rand": lambda x: torch.rand((x.size(0), 1), dtype=torch.float64),
    "randint": lambda x: torch.randint(0, 9, (3, x.size(2))),
    "randperm": lambda x: torch.randperm(x.size(1)),
    "normal": lambda x: torch.normal(x.float(), 1.0),
    "bernoulli": lambda x: torch.bernoulli(x.detach().float().sigmoid()),
    "bernoulli_": lambda x: torch.empty_like(x).bernoulli_(0.5),
    "multinomial": lambda x: torch.multinomial(x.detach().float().abs().sum(0) + 1, 2),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x),
    "attention with dropout": lambda x: F.scaled_dot_product_attention(x, x + 1, x, dropout_p=0.5),
    "causal attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None], is_causal=True),
    "masked attention": lambda x: F.scaled_dot_product_attention(x[None].mT, x[None].mT, x[None].mT, attn_mask=torch.zeros((), dtype=x.dtype)),
}


def told(of):
    return [(r.shape, r.stride(), r.dtype, r.is_contiguous(), r.requires_grad, r.is_leaf, r.tolist()) if isinstance(r, torch.Tensor) else r for r in of]


def outcome(f, x):
    torch.manual_seed(3)
    try:
        result = told(f(x))
    except Exception as error:
        result = type(error), str(error)
    return result, hash(torch.get_rng_state().numpy().tobytes())


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS.keys())
def test_what_is_asked_about_a_random_result_is_what_it_has(operation):
    def f(x):
        y = operation(x)
        shape, dtype, dim = y.shape, y.dtype, y.dim()
        if y.is_contiguous() and dtype is not torch.int64: y = y.view(-1)
        return y, shape, dtype, dim, y.size(0), y.stride(), y.requires_grad, y is x

    for backend in ("eager", lambda graph, inputs: graph):
        run = framegate.compile(f, backend=backend)
        for x in shapes():
            for _ in range(2):
                assert outcome(run, x) == outcome(f, x)


@pytest.mark.parametrize("operation", ["dropout", "randn", "randint", "randperm", "attention with dropout", "rrelu", "gumbel"])
def test_asking_for_the_shape_of_a_random_result_breaks_no_graph(operation):
    operation = OPERATIONS[operation]

    def f(x): y = operation(x); return y.reshape(y.shape[::-1]) * y.dim()
    x = torch.ones(2, 3, 4)
    run, counter = counted(f)
    assert outcome(run, x) == outcome(f, x)
    assert counter.frame_count == 1 and not framegate.explain(f)(x).break_reasons


@pytest.mark.parametrize("layer", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
def test_the_shapes_of_recurrent_layers_are_known(layer):
    torch.manual_seed(0)
    cell = layer(4, 5, num_layers=2, dropout=0.5, batch_first=True)

    def f(x):
        y, h = cell(x)
        return y.reshape(-1, y.shape[-1]), y.stride(), h[0].shape

    run = framegate.compile(f)
    for x in (torch.ones(2, 3, 4), torch.ones(3, 1, 4), torch.ones(2, 3, 4)):
        assert outcome(run, x) == outcome(f, x)


def test_a_generator_that_another_operation_allowed_in_graphs_reads_is_left_alone():
    calls = []

    @framegate.allow_in_graph
    def noisy(x): calls.append(x); return torch.rand_like(x)

    def f(x): y = noisy(x); return y * y.shape[0]

    run, x = framegate.compile(f), torch.ones(3)
    for _ in range(2):
        assert outcome(run, x) == outcome(f, x)
    assert len(calls) == 4


M = torch.arange(10000.0).reshape(100, 100).cos()


@pytest.mark.parametrize(
    "of",
    [
        lambda x: torch.floor_divide(x, x[0]),
        lambda x: F.batch_norm(x.view(4, 25, 100).transpose(0, 2), None, None, training=True),
        lambda x: torch.logical_and(x.t(), x[0]),
        lambda x: torch.einsum("ij,kj->ik", x, x)[None],
        lambda x: torch.copysign(x.T, x),
        lambda x: x.T.contiguous(),
        lambda x: (x + 1).T[1:],
    ],
)
def test_the_strides_of_large_results_are_those_that_the_kernels_give(of):
    def f(x):
        y = of(x)
        flat = y.view(-1) if y.is_contiguous() else y.reshape(-1)
        return flat.sum(), y.stride(), torch.Tensor.is_contiguous(y), torch.Tensor.stride(y, 0)

    for backend in ("eager", lambda graph, inputs: graph):
        run = framegate.compile(f, backend=backend)
        for x in (M, M.T, M.double(), M[::2, ::2].repeat(2, 2), M):
            assert outcome(run, x) == outcome(f, x)
