"""Real PyTorch code: outputs, gradients, buffers and effects equal eager's, over shapes, modes and dtypes; compiled as often as needed, no more."""

import copy

import pytest
from support_engine import cap, check_same, counted, entries, needs_engine, observe

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
nn = torch.nn

import torch_models as models  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)
    torch.set_num_threads(1)


def same(a, b):
    if isinstance(a, torch.Tensor):
        assert type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride() and a.requires_grad == b.requires_grad
        assert torch.equal(a, b), (a - b).abs().max()
    elif isinstance(a, (tuple, list)):
        assert type(a) is type(b) and len(a) == len(b)
        for x, y in zip(a, b): same(x, y)
    else: assert a == b and type(a) is type(b)


def state(model):
    return {k: v.clone() for k, v in model.state_dict().items()}


def gradients(model, out):
    first = out[0] if isinstance(out, tuple) else out
    if first.requires_grad: first.square().sum().backward()
    found = [None if p.grad is None else p.grad.clone() for p in model.parameters()]
    model.zero_grad(set_to_none=True)
    return found


def check_module(build, batches, modes=("train", "eval")):
    plain = build()
    twin = copy.deepcopy(plain)
    compiled = cap(twin)
    for mode in modes:
        for m in (plain, twin): m.train(mode == "train")
        for batch in batches:
            for _ in range(2):
                args, kwargs = batch() if callable(batch) else (batch, {})
                a, b = plain(*args, **kwargs), compiled(*args, **kwargs)
                same(a, b)
                for g, h in zip(gradients(plain, a), gradients(twin, b)):
                    assert (g is None) == (h is None) and (g is None or torch.equal(g, h))
                for (k, v), (_, w) in zip(state(plain).items(), state(twin).items()):
                    assert torch.equal(v, w), k
                with torch.no_grad(): same(plain(*args, **kwargs), compiled(*args, **kwargs))


def test_sequential_mlp():
    check_module(models.mlp, [(torch.randn(3, 8),), (torch.randn(5, 8),), (torch.randn(3, 8, requires_grad=True),), (torch.randn(2, 3, 8),)])


def test_resnet_block_with_running_statistics():
    check_module(lambda: models.BasicBlock(4), [(torch.randn(2, 4, 5, 5),), (torch.randn(3, 4, 6, 6),)])
    check_module(lambda: models.BasicBlock(4, 8, 2), [(torch.randn(2, 4, 6, 6),)])


def test_lstm_loop_over_time():
    h = (torch.randn(2, 6), torch.randn(2, 6))
    check_module(models.LSTM, [(torch.randn(3, 2, 4),), (torch.randn(5, 2, 4),), (torch.randn(3, 2, 4), h)])


def test_transformer_encoder_layer_in_eval_mode():
    mask = nn.Transformer.generate_square_subsequent_mask(4)
    check_module(lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), [
        (torch.randn(2, 4, 8),), (torch.randn(3, 4, 8),), lambda: ((torch.zeros(2, 4, 8) + 0.5,), {"src_mask": mask})], modes=("eval",))


def test_module_list_with_keywords_and_a_branch_on_shape():
    batches = [(lambda n=n, kw=kw: ((torch.ones(n, 8),), kw)) for n in (2, 6) for kw in ({}, {"scale": 0.5}, {"skip": (1,)}, {"residual": False})]
    check_module(models.Routed, batches)


def test_print_in_the_middle():
    compiled = cap(models.with_print)
    for x in (torch.randn(3), torch.randn(2, 2), torch.randn(3).double(), torch.randn(3, requires_grad=True)):
        for _ in range(2): check_same(observe(models.with_print, (x,)), observe(compiled, (x,)), "print")


def test_appends_to_the_callers_list_and_counts_steps():
    plain = models.Recorder()
    twin = copy.deepcopy(plain)
    compiled = cap(twin)
    a, b = [], []
    for k in range(100):
        x = torch.full((1 + k % 3, 4), float(k))
        same(plain(x, a), compiled(x, b))
    assert a == b and len(b) == 100 and twin.steps == plain.steps == 100


def test_closure_with_nonlocal():
    def make():
        total, calls = torch.zeros(2), 0
        def add(x):
            nonlocal total, calls
            calls += 1
            total = total + x * calls
            return total.clone(), calls
        return add, lambda: (total, calls)
    plain, see_plain = make()
    other, see_other = make()
    compiled = cap(other)
    for k in range(6):
        same(plain(torch.full((2,), float(k))), compiled(torch.full((2,), float(k))))
        same(see_plain(), see_other())


@pytest.mark.parametrize("manual", [True, False])
def test_training_gives_the_parameters_of_eager_training(manual):
    plain, twin = models.mlp(), None
    twin = copy.deepcopy(plain)
    x, y = torch.randn(6, 8), torch.randn(6, 4)
    if manual:
        step = cap(models.sgd_step)
        for k in range(8): same(models.sgd_step(plain, x, y, 0.1 / (k + 1)), step(twin, x, y, 0.1 / (k + 1)))
    else:
        compiled = cap(twin)
        opts = [torch.optim.SGD(m.parameters(), 0.1, momentum=0.9) for m in (plain, twin)]
        for _ in range(8):
            for opt, m in zip(opts, (plain, compiled)):
                opt.zero_grad()
                nn.functional.mse_loss(m(x), y).backward()
                opt.step()
    for p, q in zip(plain.parameters(), twin.parameters()): assert torch.equal(p, q)


def test_modes_dtypes_and_devices_of_the_call_are_seen():
    f = lambda a: torch.relu(a @ a) * 2  # noqa: E731
    compiled = cap(f)
    a = torch.randn(3, 3)
    for source in (a, a.double(), a.t(), a[:2, :2], a.requires_grad_(True), a.detach(), a.to(torch.bfloat16), a):
        same(f(source), compiled(source))
    for enter in (torch.no_grad, torch.enable_grad, torch.inference_mode, lambda: torch.autocast("cpu", dtype=torch.bfloat16)):
        with enter(): same(f(a.detach().clone()), compiled(a.detach().clone()))
        same(f(a), compiled(a))


def test_hooks_dropout_and_parameter_swaps_are_seen():
    m = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    compiled = cap(m)
    x = torch.ones(2, 4)
    def both():
        torch.manual_seed(7); a = m(x)
        torch.manual_seed(7); same(a, compiled(x))
        return a
    both(); both()
    m.eval(); both()
    h = m[0].register_forward_hook(lambda mod, args, out: out * 10)
    both(); both()
    h.remove(); both()
    m[0].weight = nn.Parameter(torch.eye(4)); both()
    with torch.no_grad(): m[0].weight.mul_(3)
    both()
    m[0].requires_grad_(False); assert not both().requires_grad
    m[0] = nn.Linear(4, 2); assert both().shape == (2, 2)
    m.append(nn.ReLU()); both()


def test_a_shape_error_is_torchs_error():
    m = models.mlp()
    compiled = cap(m)
    compiled(torch.randn(2, 8))
    with pytest.raises(RuntimeError) as a: m(torch.randn(2, 7))
    with pytest.raises(RuntimeError) as b: compiled(torch.randn(2, 7))
    assert str(a.value) == str(b.value)


def test_compiled_module_shares_its_state_with_the_module():
    m = models.mlp()
    compiled = cap(m)
    assert list(compiled.state_dict()) == list(m.state_dict())
    assert all(p is q for p, q in zip(compiled.parameters(), m.parameters()))
    m.eval(); assert compiled.training is False
    compiled.train(); assert m.training is True
    assert isinstance(compiled, nn.Sequential)


# ---- backends that compile torch graphs


COMPILERS = ["torch:eager", "aot_eager"]


def check_backend(f, backend, *calls):
    import framegate

    with framegate.config.patch(strict_errors=True):
        compiled = framegate.compile(f, backend=backend)
        for call in calls * 2:
            a, b = call(), call()
            check_same(observe(f, a), observe(compiled, b), f"{backend}, {a}")


@needs_engine
@pytest.mark.parametrize("backend", COMPILERS)
def test_numbers_that_a_compiler_cannot_take_are_no_constants_of_its_code(backend):
    def store(x, s):
        x[0] = s
        return x * 2
    check_backend(store, backend, *[lambda v=v: (torch.ones(3), v) for v in (1.5, 2.5, 3)])
    def store_from(x, i, s):
        x[i:] = s
        return x.sum()
    check_backend(store_from, backend, *[lambda v=v: (torch.ones(5), v, v + 0.5) for v in (1, 2)])
    for dtype in (np.float64, np.float32): check_backend(lambda x, s: x * s, backend, *[lambda v=v, d=dtype: (torch.ones(2), d(v)) for v in (2, 3)])
    check_backend(lambda x, a: x[a], backend, *[lambda v=v: (torch.arange(3.0), np.array([v])) for v in (1, 2)])


@needs_engine
@pytest.mark.parametrize("backend", COMPILERS)
def test_numpy_beside_torch_is_not_given_to_torchs_compilers(backend):
    two = [lambda v=v: (torch.full((3,), v), np.full(3, v)) for v in (1.0, 2.0)]
    check_backend(lambda x, a: (x + 1, a + 1), backend, *two)
    check_backend(lambda x, a: (a + 1, x + 1), backend, *two)
    check_backend(lambda x, a: x.numpy() * a, backend, *two)
    check_backend(lambda x, a: torch.from_numpy(a) + x + float(a.sum()), backend, *two)


@needs_engine
@pytest.mark.parametrize("backend", COMPILERS)
def test_shapes_that_depend_on_data_break_the_graph_of_a_compiler(backend):
    for f in (lambda x, m: (x[m] * 2, m + 0), lambda x, m: torch.nonzero(m) + 1, lambda x, m: torch.masked_select(x, m) + 1):
        check_backend(f, backend, *[lambda v=v: (torch.arange(5.0), torch.arange(5) > v) for v in (0, 1, 4)])
    check_backend(lambda x, i: x[i] * 2, backend, *[lambda v=v: (torch.arange(5.0), torch.tensor([v, 0])) for v in (0, 1)])


@needs_engine
@pytest.mark.parametrize("backend", COMPILERS)
def test_inputs_that_share_memory_and_are_written_run_plain(backend):
    def f(x, y):
        x += 1
        return x * y
    def overlapping():
        whole = torch.ones(4)
        return whole[:3], whole[1:]
    check_backend(f, backend, overlapping, lambda: (torch.ones(3), torch.ones(3)))


@needs_engine
@pytest.mark.parametrize("backend", COMPILERS)
def test_views_of_one_storage_that_do_not_overlap_are_compiled(backend):
    import framegate

    def f(x, y):
        x += 1
        return x * y

    def as_strided(x, y):
        x += 1
        return torch.as_strided(y, (6,), (1,)) * 2

    def views(a, b):
        whole = torch.arange(12.0)
        return whole[a : a + 3], whole[b : b + 3]

    halves, turned, over, touching = (lambda a=a, b=b: views(a, b) for a, b in ((0, 3), (6, 0), (0, 2), (3, 6)))
    check_backend(f, backend, halves, turned, over, touching, lambda: (torch.ones(3), torch.ones(3)), halves)
    check_backend(as_strided, backend, halves, lambda: (torch.ones(3), torch.ones(6)), halves)

    graphs = []
    compiled = framegate.compile(f, backend=lambda graph, examples: graphs.append(graph) or graph)
    for call in (halves, turned, touching, lambda: (torch.ones(3), torch.ones(3))):
        compiled(*call())
        assert len(graphs) == 1
    assert torch.equal(compiled(*over()), f(*over())) and len(graphs) == 1


@needs_engine
@pytest.mark.parametrize("backend", ["eager", *COMPILERS])
def test_a_training_step_with_backward_inside(backend):
    import framegate

    plain = models.mlp()
    twin = copy.deepcopy(plain)
    def step(model, x, y, rate):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= rate * p.grad
                p.grad = None
        return loss.detach()
    compiled = framegate.compile(step, backend=backend)
    for k in range(4):
        x, y = torch.randn(6, 8), torch.randn(6, 4)
        assert torch.allclose(step(plain, x, y, 0.1 / (k + 1)), compiled(twin, x, y, 0.1 / (k + 1)))
    for p, q in zip(plain.parameters(), twin.parameters()): assert torch.allclose(p, q)


# ---- what is compiled, and how often


@needs_engine
def test_mlp_is_one_graph_and_a_second_shape_compiles_once():
    m = models.mlp()
    compiled, counter = counted(m)
    for _ in range(3): compiled(torch.randn(3, 8))
    assert counter.frame_count == 1 and counter.op_count >= 5
    for _ in range(3): compiled(torch.randn(5, 8))
    assert 1 <= counter.frame_count <= 2


@needs_engine
def test_print_in_the_middle_is_two_graphs():
    compiled, counter = counted(models.with_print)
    for _ in range(3): compiled(torch.randn(3))
    assert counter.frame_count == 2 and counter.op_count == 4


@needs_engine
def test_a_step_counter_and_a_callers_list_compile_once_in_100_calls():
    m = models.Recorder()
    compiled, counter = counted(m)
    log = []
    for _ in range(100): compiled(torch.randn(2, 4), log)
    assert counter.frame_count == 1 and m.steps == 100 and log == [2] * 100


@needs_engine
def test_instances_of_one_class_share_an_entry():
    linears = [nn.Linear(4, 4) for _ in range(8)]
    def go(m, x): return torch.relu(m(x))
    compiled, counter = counted(go)
    x = torch.randn(2, 4)
    for m in linears * 2: same(go(m, x), compiled(m, x))
    assert counter.frame_count == 1 and entries(compiled) == 1


@needs_engine
def test_requires_grad_that_comes_and_goes_hits_the_first_entry_again():
    def f(a): return (a * 2).sum()
    compiled, counter = counted(f)
    a = torch.ones(3)
    for flag in (False, True, False, True):
        a.requires_grad_(flag)
        assert compiled(a).requires_grad is flag
    assert 1 <= counter.frame_count <= 2
