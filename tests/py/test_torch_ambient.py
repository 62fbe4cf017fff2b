"""no_grad, autocast and their like inside functions: the operations run in the state that plain torch has there, and it is restored on every way out."""

import _thread
import itertools

import pytest

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.torch

import framegate  # noqa: E402

X = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
M = torch.ones(4, 3)
BACKENDS = ["eager", "torch:aot_eager"]
WHOLE, CASES = {}, {}


def case(table, *inputs):
    def add(f): table[f.__name__] = (f, inputs); return f
    return add


@case(WHOLE, (X,))
def results_do_not_require_grad(x):
    with torch.no_grad(): y = x * 2
    return y, x * 3, y.requires_grad, (x * y).requires_grad
@case(WHOLE, (X,))
def nested(x):
    with torch.enable_grad():
        with torch.no_grad():
            y = x * 2; inner = torch.is_grad_enabled()
        z = x * 2
    return y, z, inner, torch.is_grad_enabled(), y.requires_grad, z.requires_grad
@case(WHOLE, (X,))
def two_in_one(x):
    with torch.no_grad(), torch.enable_grad(): y = x * 2; a = torch.is_grad_enabled()
    return y, a
@case(WHOLE, (X, True), (X, False))
def set_by_argument(x, mode):
    with torch.set_grad_enabled(mode): y = x * 2; a = y.requires_grad
    return y, a, (x * 2).requires_grad
@case(WHOLE, (X,))
def set_and_set_back(x):
    torch.set_grad_enabled(False); y = x * 2
    torch.set_grad_enabled(True); return y, x * 2
@case(WHOLE, (X,))
def set_inside(x):
    with torch.no_grad():
        y = x * 2
        torch.set_grad_enabled(True)
        z = x * 2
    return y, z, x * 2
@case(WHOLE, (X,))
def inference(x):
    with torch.inference_mode(): y = x * 2; a = torch.is_inference_mode_enabled()
    with torch.inference_mode(False): z = x * 2
    return y, z, a, torch.is_inference_mode_enabled()
@case(WHOLE, (M,))
def autocast(m):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        a = m @ m.T; low = a.dtype == torch.bfloat16
        with torch.autocast("cpu", torch.float16, enabled=False): b = m @ m.T
    return a, b, low, m @ m.T, (m @ m.T).dtype == m.dtype
@case(WHOLE, (M,))
def autocast_that_is_off(m):
    with torch.autocast(device_type="cpu", enabled=False): a = m @ m.T
    with torch.autocast(device_type="cpu", dtype=torch.bfloat16, cache_enabled=False):
        b = m @ m.T
        with torch.autocast("cpu", None, False): c = m @ m.T
    return a, b, c, torch.is_autocast_enabled("cpu")
@case(WHOLE, (X,))
def returns_from_inside(x):
    with torch.no_grad(): return x * 2
@torch.no_grad()
def decorated(x, shape): return (x * 2).reshape(shape)
@torch.no_grad
def decorated_without_call(x): return torch.exp(x), torch.is_grad_enabled()
@case(WHOLE, (X, (3,)), (X, (1, 3)))
def calls_decorated(x, shape): return decorated(x, shape), decorated_without_call(x), (x * 2).reshape(shape)
@case(WHOLE, (X, 0), (X, 2))
def in_a_loop(x, n):
    t = x
    for i in range(4):
        with torch.no_grad():
            y = x * i
            if i == n: break
        t = t + y
    return t, y, t.requires_grad, y.requires_grad
def helper(x, shape):
    with torch.no_grad():
        y = (x + 1).reshape(shape)
        with torch.enable_grad(): z = y + x
    return y, z, z.requires_grad
@case(WHOLE, (X, (3,)), (X, (3, 1)))
def inlined(x, shape): return helper(x, shape), (x * 2).reshape(shape)
@case(WHOLE, (X,))
def parameters_are_updated(x):
    y = x * 1
    with torch.no_grad(): y += 1; y.mul_(2)
    return y, y + x
@case(WHOLE, (X,))
def known_exceptions_go_on(x):
    try:
        with torch.no_grad():
            y = x * 2
            raise ValueError("out")
    except ValueError: return y, torch.is_grad_enabled(), x * 2

# the rest may break, and raises

@case(CASES, (X, (3,)), (X, (5,)))
def operation_fails(x, shape):
    with torch.no_grad(): y = (x * 2).reshape(shape)
    return y
@case(CASES, (X, (3,)), (X, (5,)))
def decorated_fails(x, shape): return decorated(x, shape) + x
@case(CASES, (X, torch.tensor([1])), (X, torch.tensor([9])))
def data_fails(x, i):
    with torch.no_grad(): y = x[i]
    return y, x[i]
def pick(x, i):
    with torch.no_grad(), torch.enable_grad():
        with torch.no_grad(): y = x[i] * 2
    return y
@case(CASES, (X, torch.tensor([1])), (X, torch.tensor([9])))
def data_fails_in_an_inlined_call(x, i): return pick(x, i), x * 2
@case(CASES, (X, torch.tensor([1])), (X, torch.tensor([9])))
def data_fails_under_a_handler(x, i):
    try: return pick(x, i), torch.is_grad_enabled()
    except IndexError: return torch.is_grad_enabled(), x * 2
@case(CASES, (X, torch.tensor([1])), (X, torch.tensor([9])))
def data_fails_between_managers(x, i):
    with torch.no_grad():
        y = pick(x, i)
        with torch.enable_grad(): z = x * y
    return y, z
@case(CASES, (X,))
def breaks_inside(x):
    with torch.no_grad():
        y = x * 2
        globals()["nothing"] = len(str(object()))
        z = y + x
    return y, z, x * 2
@case(CASES, (X,))
def raises(x):
    with torch.no_grad():
        y = x * 2
        raise ValueError(y.requires_grad)
@case(CASES, (X,))
def entered_twice(x):
    ctx = torch.no_grad()
    with ctx:
        with ctx: y = x * 2
        z = x * 2
    return y, z, x * 2
@case(CASES, (X,))
def entered_again(x):
    ctx = torch.set_grad_enabled(False)
    with ctx: y = x * 2
    a = x * 2
    with ctx: z = x * 2
    return y, a, z
@case(CASES, (X,))
def entered_late(x):
    ctx = torch.set_grad_enabled(False)
    torch.set_grad_enabled(True)
    y = x * 2
    with ctx: z = x * 2
    return y, z, x * 2
@case(CASES, (X,))
def state_is_left(x): torch.set_grad_enabled(False); return x * 2
EXISTING = torch.no_grad()
@case(CASES, (X,))
def existing_manager(x):
    with EXISTING: y = x * 2
    return y, x * 2
@case(CASES, (X, 1), (X, None))
def bad_mode(x, mode):
    with torch.set_grad_enabled(mode): return x * 2
class Mine(torch.no_grad):
    def __enter__(self): self.seen = torch.is_grad_enabled(); super().__enter__()
@case(CASES, (X,))
def subclass(x):
    with Mine() as m: y = x * 2
    return y, x * 2, m
@case(CASES, (M,))
def default_dtype(m):
    with torch.autocast("cpu"): y = m @ m.T
    return y, m @ m.T


def state():
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")


def told(r):
    if isinstance(r, torch.Tensor):
        return r.requires_grad, r.grad_fn is None, r.is_inference(), r.dtype, r.tolist()
    return tuple(map(told, r)) if isinstance(r, (tuple, list)) else r


def seen(f, args, caller):
    try:
        with caller():
            try: r = told(f(*args))
            except Exception as e: r = type(e), str(e)
            return r, state()
    finally:
        torch.set_grad_enabled(True)


def agree(f, g, inputs):
    for _, args, caller in itertools.product(range(3), inputs, (torch.enable_grad, torch.no_grad, torch.inference_mode)):
        assert seen(f, args, caller) == seen(g, args, caller)
        assert state()[:3] == (True, False, False)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", WHOLE)
def test_one_graph(name, backend):
    f, inputs = WHOLE[name]
    agree(f, framegate.compile(f, backend=backend, fullgraph=True), inputs)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", CASES)
def test_the_same_as_plain(name, backend):
    f, inputs = CASES[name]
    agree(f, framegate.compile(f, backend=backend), inputs)


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_are_those_of_plain_torch(backend):
    def f(w, x):
        y = w * x
        with torch.no_grad(): scale = y.sum().exp()
        z = y * scale
        with torch.enable_grad(): z = z + w
        return (z * torch.sigmoid(z)).sum()
    g = framegate.compile(f, backend=backend, fullgraph=True)
    a, b = X.detach().clone().requires_grad_(), X.detach().clone().requires_grad_()
    for _ in range(2):
        f(a, torch.ones(3)).backward(); g(b, torch.ones(3)).backward()
        assert torch.allclose(a.grad, b.grad)


def test_graphs_are_compiled_in_the_state_they_run_in():
    states = []
    def backend(graph, examples): states.append((torch.is_grad_enabled(), [e.requires_grad for e in examples])); return graph
    def f(x):
        a = x * 2
        with torch.no_grad(): b = a * 3
        return b * 5, a * 7
    framegate.compile(f, backend=backend)(X)
    assert states == [(True, [True]), (False, [True]), (True, [False, True])]


def test_a_replaced_method_is_called(monkeypatch):
    def f(x):
        with torch.no_grad(): return x * 2
    g, calls = framegate.compile(f), []
    assert not g(X).requires_grad
    plain = torch.no_grad.__enter__
    def enter(self): calls.append(1); plain(self)
    monkeypatch.setattr(torch.no_grad, "__enter__", enter)
    for _ in range(3): assert not g(X).requires_grad
    assert not framegate.compile(lambda x: f(x))(X).requires_grad
    assert len(calls) == 4
    monkeypatch.undo()
    assert not g(X).requires_grad and len(calls) == 4


@pytest.mark.parametrize("inline", [False, True])
def test_an_interrupt_restores_the_state(inline):
    framegate.allow_in_graph(_thread.interrupt_main)
    interrupt = _thread.interrupt_main
    def f(x):
        with torch.no_grad():
            y = x * 2
            interrupt()
            z = torch.add(y, 1)
        return z
    g = framegate.compile((lambda x: f(x)) if inline else f)
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt): g(X); sum(range(1000))
        assert torch.is_grad_enabled()


def test_verified_calls_agree(monkeypatch):
    monkeypatch.setattr(framegate.config, "verify", True, raising=False)
    def f(x):
        with torch.no_grad(): y = x * 2
        return y + x
    g = framegate.compile(f)
    for _ in range(3): assert told(g(X)) == told(f(X))
