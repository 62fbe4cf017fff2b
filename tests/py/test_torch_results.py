"""Operations of torch that give several tensors with names: captured in one graph, and the result is of the same kind as plain torch's."""

import re

import pytest

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.torch

import framegate  # noqa: E402

X = torch.arange(20.0).reshape(4, 5).sin()
LARGE = torch.arange(10000.0).reshape(100, 100).cos()


def squared(x): return x @ x.T + torch.eye(len(x))


RESULTS = {
    "topk": lambda x: torch.topk(x, 2), "method": lambda x: x.topk(2, dim=0), "sort": lambda x: x.sort(), "named": lambda x: torch.sort(x, dim=0, descending=True),
    "max": lambda x: x.max(1), "max of all": lambda x: x.max(), "max of two": lambda x: torch.max(x, x.flip(0)), "min": lambda x: torch.min(x, dim=0, keepdim=True),
    "median": lambda x: x.median(0), "median of all": lambda x: torch.median(x), "nanmedian": lambda x: x.nanmedian(1), "mode": lambda x: torch.mode(x),
    "kthvalue": lambda x: torch.kthvalue(x, 2), "cummax": lambda x: x.cummax(0), "cummin": lambda x: torch.cummin(x, 1), "aminmax": lambda x: x.aminmax(),
    "frexp": lambda x: torch.frexp(x), "qr": lambda x: torch.linalg.qr(x), "eigh": lambda x: torch.linalg.eigh(squared(x)),
    "slogdet": lambda x: torch.linalg.slogdet(squared(x)), "svd": lambda x: torch.linalg.svd(squared(x)),
}
USES = {
    "values": lambda x: x.topk(2).values + 1, "indices": lambda x: x.max(1).indices, "index": lambda x: x.min(0)[0] * 2, "last": lambda x: x.sort()[-1],
    "unpacked": lambda x: (lambda values, where: values + where)(*x.max(0)), "two names": lambda x: (lambda r: r.Q @ r.R)(torch.linalg.qr(x)),
    "a tuple": lambda x: (isinstance(x.min(0), tuple), type(x.min(0)) is tuple, type(tuple(x.min(0))) is tuple, len(x.max(0))),
    "slice": lambda x: x.max(0)[:1], "sum": lambda x: x.max(0) + (1,), "in a list": lambda x: [x.max(0), {"s": x.sort()}], "iterated": lambda x: [v + 1 for v in x.topk(2)],
    "class": lambda x: type(x.max(0)), "same": lambda x: (lambda r: (r, r))(x.max(0)), "stacked": lambda x: torch.stack(torch.aminmax(x, dim=0)),
}


def same(a, b):
    if isinstance(a, torch.Tensor):
        return type(a) is type(b) and torch.equal(a, b) and a.stride() == b.stride() and a.requires_grad == b.requires_grad
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return {k: same(a[k], b[k]) for k in a} == dict.fromkeys(b, True) if isinstance(a, dict) else a == b


@pytest.mark.parametrize("backend", ["eager", "torch:aot_eager"])
@pytest.mark.parametrize("name", [*RESULTS, *USES])
def test_one_graph_and_the_same_result(name, backend):
    f = {**RESULTS, **USES}[name]
    g = framegate.compile(f, backend=backend, fullgraph=True)
    for x in (X, X, X.double(), LARGE):
        assert same(f(x), g(x))


def test_one_object_is_one_object():
    g = framegate.compile(USES["same"], fullgraph=True)
    a, b = g(X)
    assert a is b and type(a) is torch.return_types.max


def test_gradients_flow_through():
    def f(x): return (x.topk(2).values * x.max(1, keepdim=True)[0]).sum()
    g = framegate.compile(f, fullgraph=True)
    a, b = X.clone().requires_grad_(), X.clone().requires_grad_()
    f(a).backward()
    g(b).backward()
    assert torch.equal(a.grad, b.grad)


def test_errors_are_those_of_torch():
    def f(x, k):
        try: return x.topk(k)
        except RuntimeError as e: return str(e)
    g = framegate.compile(f, fullgraph=True)
    for k in (2, 9, 2): assert same(f(X, k), g(X, k))
    def h(x): return x.max(7)
    for call in (h, framegate.compile(h)):
        with pytest.raises(IndexError, match="Dimension out of range"): call(X)


def test_data_decides_the_shape_of_unique():
    g = framegate.compile(lambda x: torch.unique(x, return_counts=True))
    assert same(tuple(g(X)), tuple(torch.unique(X, return_counts=True)))


@pytest.mark.parametrize("backend", ["eager", lambda graph, *_: graph, "torch:aot_eager"], ids=["eager", "graph", "aot"])
def test_rows_of_a_tensor_are_views_of_one_operation(backend):
    def written(x):
        for row in x * 2:
            row += 1
        return x

    def two(x):
        first, second = x * 2
        return first + second

    def added(x):
        return sum(row * k for k, row in enumerate(x))

    def observed(fn, x):
        leaf = x.detach().clone().requires_grad_()
        try:
            y = fn(leaf)
        except (RuntimeError, ValueError) as e:
            return type(e), str(e)
        return y.tolist(), torch.autograd.grad(y.sum(), leaf)[0].tolist()

    for fn in written, two, added:
        compiled = framegate.compile(fn, backend=backend)
        for x in (X[:2], X[:2], X[:3], X[:2]):
            assert observed(compiled, x) == observed(fn, x)


LIMITS = {
    "mask": lambda x: x.masked_fill(x > 0, torch.finfo(x.dtype).min), "names": lambda x: (lambda i: (i.max, i.eps, i.tiny, i.bits, i.dtype, i.resolution))(torch.finfo(x.dtype)),
    "default": lambda x: x + torch.finfo().eps, "of integers": lambda x: (torch.iinfo(torch.int8).min, x.clamp(max=torch.iinfo(torch.uint8).max)),
    "missing": lambda x: (hasattr(torch.finfo(x.dtype), "nothing"), getattr(torch.finfo(x.dtype), "nothing", 3)), "decides": lambda x: x * 2 if torch.finfo(x.dtype).bits > 32 else x,
}


@pytest.mark.parametrize("f", LIMITS.values(), ids=LIMITS.keys())
def test_limits_of_dtypes_are_known(f):
    g = framegate.compile(f, fullgraph=True)
    for x in (X, X.double(), X, X.bfloat16()):
        assert same(f(x), g(x))


def test_limits_are_an_object_of_their_own_each_time():
    def f(x): i = torch.finfo(x.dtype); return i, [i, torch.finfo(x.dtype)], x + i.eps, i is torch.finfo(x.dtype)
    g = framegate.compile(f, fullgraph=True)
    (a, (b, c), _, same_one), again = g(X), g(X)[0]
    assert a is b and a is not c and a is not again and a == again and same_one is False and type(a) is torch.finfo


def test_limits_that_there_are_not_raise_as_in_plain_torch():
    def f(x): return x + torch.finfo(x.dtype).eps
    g = framegate.compile(f)
    for x in (X, X.int(), X.bool(), X):
        try:
            want = f(x).tolist()
        except TypeError as error:
            with pytest.raises(TypeError, match=re.escape(str(error))):
                g(x)
        else:
            assert g(x).tolist() == want


@pytest.mark.parametrize("text", [
    "torch.where(x > 0)[0].numel()",
    "torch.where(condition=x > 0)[0].shape",
    "len(torch.where(x)[0])",
    "x * torch.where(x > 0)[0].numel()",
    "(x if torch.where(x > 1)[0].numel() == 0 else x + 1)",
    "torch.nonzero(x > 0).shape",
    "(x > 0).nonzero(as_tuple=True)[0].shape",
    "torch.where(x > 0, x, 0.0).shape",
    "torch.where(x > 0, input=x, other=x + 1)",
    "torch.where(x > 0, x, x + 1)",
    "x.where(x > 0, -x)",
])
@pytest.mark.parametrize("backend", ["eager", "torch:aot_eager"])
def test_how_much_of_a_condition_is_true_is_asked_of_the_data(text, backend):
    """One argument makes of torch.where another operation, whose result is as long as its data says."""
    namespace = {"torch": torch}
    exec(f"def fn(x):\n    return {text}\n", namespace)  # noqa: S102
    fn = namespace["fn"]
    compiled = framegate.compile(fn, backend=backend)
    for values in ([1.0, 2.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 2.0, 3.0]):
        want, got = fn(torch.tensor(values)), compiled(torch.tensor(values))
        assert torch.equal(want, got) if isinstance(want, torch.Tensor) else want == got


DROPOUTS = ["F.dropout(x, 0.3, False)", "F.dropout(x, training=False)", "F.dropout(x, 0.0)", "F.dropout(x, p=0, training=True)", "torch.dropout(x, 0.5, False)",
            "F.dropout(x, 0.5, False, True)", "F.dropout(input=x, training=False)", "torch.nn.Dropout(0.2).eval()(x)", "F.alpha_dropout(x, training=False)"]


@pytest.mark.parametrize("backend", ["eager", "torch:aot_eager"])
@pytest.mark.parametrize("text", DROPOUTS)
def test_dropout_that_drops_nothing_is_its_argument(text, backend):
    layer = torch.nn.Dropout(0.2).eval()
    namespace = {"torch": torch, "F": torch.nn.functional, "layer": layer}
    text = text.replace("torch.nn.Dropout(0.2).eval()", "layer")
    exec(f"def same(x):\n    return {text} is x\ndef writes(x):\n    y = {text}\n    y += 1\n    return x * 2, y\ndef inner(x):\n    x = x + 1\n    y = {text}\n"  # noqa: S102
         "    y[0] = 7\n    return x + y\n", namespace)
    for name in ("same", "writes", "inner"):
        fn = namespace[name]
        compiled = framegate.compile(fn, backend=backend)
        for k in range(3):
            a, b = torch.arange(3.0) + k, torch.arange(3.0) + k
            want, got = fn(a), compiled(b)
            assert torch.equal(a, b) and (want is got if isinstance(want, bool) else all(map(torch.equal, want, got)))


def test_dropout_that_drops_is_random_and_a_wrong_rate_is_an_error():
    compiled = framegate.compile(lambda x, p, training: torch.nn.functional.dropout(x, p, training), backend="torch:aot_eager")
    x = torch.ones(100)
    for p, training in ((0.5, True), (1.0, True), (0.5, False), (0.0, True)):
        kept = int((compiled(x, p, training) != 0).sum())
        assert kept == 100 if not training or p == 0 else kept == 0 if p == 1 else 0 < kept < 100
    with pytest.raises(ValueError, match="dropout probability"):
        compiled(x, 1.5, False)
