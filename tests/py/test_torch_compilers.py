"""Graphs for torch's own compilers: what such a compiler would misread, or cannot run, still does what plain Python does."""

import logging

import pytest
from support_engine import check_same, needs_engine, observe

torch = pytest.importorskip("torch")
nn = torch.nn

pytestmark = [pytest.mark.torch, needs_engine]

BACKENDS = ["torch:eager", "aot_eager"]


@pytest.fixture(autouse=True)
def quiet():
    torch.set_num_threads(1)
    torch._logging.set_logs(all=logging.CRITICAL)


def check(f, backend, *calls):
    import framegate

    with framegate.config.patch(strict_errors=True):
        compiled = framegate.compile(f, backend=backend)
        for call in calls * 2:
            torch.manual_seed(0)
            a = call()
            torch.manual_seed(0)
            b = call()
            check_same(observe(f, a), observe(compiled, b), f"{backend}, {a}")


def grown(x, parts):
    parts.append(x)
    return torch.cat(parts), len(parts)


def nested(x, parts, pair):
    a, b = torch.broadcast_tensors(*parts)
    return torch.einsum("i,i->", [a, b]), torch.stack(pair), x[tuple(pair[1:])] if len(pair) > 2 else x[pair[0].long() * 0]


def grown_twice(x):
    parts = [x]
    first = torch.cat(parts)
    parts.append(x + 1)
    second = torch.cat(parts)
    parts[0] = second
    return torch.stack([first, x]), torch.cat(parts), parts


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_elements_of_containers_are_inputs_of_their_own(backend):
    check(lambda x, parts: torch.cat(parts) + x.sum(), backend, *[lambda n=n: (torch.randn(2), [torch.randn(2) for _ in range(n)]) for n in (1, 2, 3)])
    check(grown, backend, *[lambda n=n: (torch.randn(2), [torch.randn(2) for _ in range(n)]) for n in (0, 1, 2)])
    check(nested, backend, lambda: (torch.randn(2), [torch.randn(2), torch.randn(1)], (torch.randn(2), torch.randn(2))))
    check(grown_twice, backend, lambda: (torch.randn(2),))
    def store(x, parts):
        x[0] = torch.stack(parts)
        return x * 2
    check(store, backend, lambda: (torch.randn(2, 2), list(torch.randn(2))))


def test_the_elements_of_arrays_lists_are_those_of_now():
    import framegate

    np = pytest.importorskip("numpy")
    def f(x):
        parts = [x]
        first = np.concatenate(parts)
        parts.append(x + 1)
        return first, np.concatenate(parts), parts
    def backend(graph, examples):
        return graph
    check_same(observe(f, (np.arange(3.0),)), observe(framegate.compile(f, backend=backend), (np.arange(3.0),)), "numpy")


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_torch_cannot_do_with_these_inputs_raises_as_in_plain_python(backend):
    check(lambda x, y: x + y, backend, lambda: (torch.ones(3), torch.ones(3)), lambda: (torch.ones(3), torch.ones(4)))
    check(lambda x, i: x[i] + 1, backend, lambda: (torch.arange(3.0), 1), lambda: (torch.arange(3.0), 5))
    check(lambda n: torch.zeros(n, 2) + 1, backend, lambda: (2,), lambda: (True,))
    check(lambda x: (x + torch.ones(3, device="meta")).shape, backend, lambda: (torch.ones(3),), lambda: (torch.ones(2),))


@pytest.mark.parametrize("backend", BACKENDS)
def test_operations_that_need_data_are_replayed(backend):
    check(lambda x: torch.combinations(x, 2) + 1, backend, lambda: (torch.arange(4.0),))
    check(lambda x: torch.tensor([x.sum(), x.mean()]) * 2, backend, lambda: (torch.randn(3),))
    check(lambda x: x.cov() + 1, backend, lambda: (torch.randn(3, 4),))
    def assign(x, m):
        x[m] = x[m] * 2
        x[~m] = 0
        return x.sum()
    check(assign, backend, *[lambda v=v: (torch.arange(5.0), torch.arange(5) > v) for v in (0, 2, 4)])


@pytest.mark.parametrize("backend", BACKENDS)
def test_writing_follows_the_rules_of_autograd_and_of_out(backend):
    def whole(x):
        x.add_(1)
        return x * 2
    def part(x):
        view = x[1:]
        view.mul_(2)
        return view
    def one_of_many(x):
        y = x * 2
        a, _ = y.unbind(0)
        a.add_(1)
        return y
    for f in (whole, part, one_of_many):
        check(f, backend, lambda: (torch.ones(2, 3),), lambda: (torch.ones(2, 3, requires_grad=True),), lambda: (nn.Parameter(torch.ones(2, 3)),))
    shapes = (((4,), (3, 4)), ((3, 4), (3, 4)), ((3, 4), (0,)))
    check(lambda x, o: (torch.sin(x, out=o), o.sum()), backend, *[lambda s=s, t=t: (torch.randn(s), torch.zeros(t)) for s, t in shapes])


@pytest.mark.parametrize("backend", BACKENDS)
def test_tensors_made_with_a_gradient_have_one(backend):
    """A compiler takes what its graph makes for constants: no history begins there."""
    import framegate

    def by_function(x): leaf = torch.ones(2, requires_grad=True); return leaf, leaf * x
    def like_another(x): leaf = torch.zeros_like(x, requires_grad=True); return leaf, (leaf + 1) * x
    def by_method(x): leaf = x.new_ones(2, requires_grad=True); return leaf, leaf.exp() * x
    def from_numbers(x): leaf = torch.tensor([1.0, 2.0], requires_grad=True); return leaf, leaf * x
    def afterwards(x): leaf = (x.detach() * 2).requires_grad_(); return leaf, leaf * x
    def told_by_argument(x, wanted=True): leaf = torch.ones(2, requires_grad=wanted); return leaf, leaf * x
    def behind_others(x): y = x.sin().cos(); leaf = torch.full((2,), 3.0, requires_grad=True); return leaf, (leaf * y).relu()
    for f in (by_function, like_another, by_method, from_numbers, afterwards, told_by_argument, behind_others):
        compiled = framegate.compile(f, backend=backend)
        for _ in range(3):
            (leaf, out), (want, wanted) = compiled(torch.tensor([2.0, 3.0])), f(torch.tensor([2.0, 3.0]))
            assert leaf.requires_grad and leaf.is_leaf and out.requires_grad and torch.equal(out, wanted), f.__name__
            out.sum().backward()
            wanted.sum().backward()
            assert torch.equal(leaf.grad, want.grad), f.__name__
    def only_inside(x): leaf = torch.ones(2, requires_grad=True); return torch.autograd.grad((leaf * x).sum(), leaf)[0]
    def not_wanted(x): made = torch.ones(2, requires_grad=False); return made, made * x
    for f in (only_inside, not_wanted):
        check(f, backend, lambda: (torch.tensor([2.0, 3.0]),))


def test_a_backend_that_fails_by_itself_is_reported():
    import framegate

    def broken(graph, examples):
        raise RuntimeError("no")
    broken.__module__ = "torch.somewhere"
    with pytest.raises(framegate.exc.BackendCompilerFailed, match="no"):
        framegate.compile(lambda x: x + 1, backend=broken)(torch.ones(2))


def modes_seen(make_mode, body):
    seen = []
    mode = make_mode(seen)
    def f(x):
        y = x.sin()
        with mode:
            z = body(y)
        return z, x.cos()
    return f, seen


@pytest.mark.parametrize("backend", ["eager", *BACKENDS])
def test_modes_that_see_operations_see_those_of_the_program_only(backend):
    import framegate
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    def body(y):
        w = torch.cat([y, y])
        return w.reshape(2, w.shape[0] // 2) * 2 + 1
    for base, hook in ((TorchFunctionMode, "__torch_function__"), (TorchDispatchMode, "__torch_dispatch__")):
        def make(seen, base=base, hook=hook):
            def note(self, func, types, args=(), kwargs=None):
                seen.append(getattr(func, "__name__", str(func)))
                return func(*args, **(kwargs or {}))
            return type("Mode", (base,), {hook: note})()
        plain, seen_plain = modes_seen(make, body)
        f, seen = modes_seen(make, body)
        compiled = framegate.compile(f, backend=backend)
        for _ in range(3):
            check_same(observe(plain, (torch.ones(4),)), observe(compiled, (torch.ones(4),)), backend)
            assert seen == seen_plain
