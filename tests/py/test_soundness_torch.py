"""Call, change one thing, call again: tensors, modules and torch's global state."""
from __future__ import annotations

import contextlib
import operator
import types

import pytest

torch = pytest.importorskip("torch")

from support_soundness import Scenarios, follow  # noqa: E402

pytestmark = pytest.mark.torch
scenarios = Scenarios()


@scenarios
def tensor_metadata_changed_in_place():
    holder = types.SimpleNamespace(t=torch.arange(6.0))

    def fn():
        t = holder.t
        return t * 2, t.requires_grad, tuple(t.shape), t.stride(), t.storage_offset(), t.is_contiguous(), t.dtype, t.is_leaf, t.numel()

    def step(change):
        change(holder.t)
        return (fn,)

    yield (fn,)
    yield step(lambda t: t.requires_grad_())
    yield step(lambda t: t.requires_grad_(False))
    yield step(lambda t: t.resize_(4))
    yield step(lambda t: t.resize_(2, 2))
    yield step(lambda t: t.t_())
    yield step(lambda t: setattr(t, "data", torch.ones(3)))
    yield step(lambda t: setattr(t, "data", torch.ones(3, dtype=torch.float64)))
    yield step(lambda t: t.set_(torch.arange(8, dtype=torch.float64)[2:6]))
    yield step(lambda t: t.set_(torch.arange(8, dtype=torch.float64)[::2]))
    yield step(lambda t: t.unsqueeze_(0))
    yield step(lambda t: t.as_strided_((2, 2), (1, 1)))
    yield step(lambda t: t.as_strided_((2, 2), (1, 1), 1))
    yield step(lambda t: t.swapaxes_(0, 1))


@scenarios
def arguments_by_kind_of_tensor():
    def fn(t):
        return t + 1, type(t).__name__, t.requires_grad, t.is_inference()

    class Sub(torch.Tensor):
        pass

    base = torch.ones(2, 3)
    with torch.inference_mode():
        inference = torch.ones(2, 3)
    for t in (base, torch.nn.Parameter(base), base.clone().requires_grad_(), base.t(), base.double(), base[:, :2], base.expand(2, 2, 3), base.to("meta"),
              base.as_subclass(Sub), inference, base.to(torch.int64), base > 0, base.clone().requires_grad_() * 1, base, base.flip(0), torch.ones(0, 3)):
        yield fn, t


@scenarios
def every_field_of_the_global_state():
    x, w = torch.ones(2, 2), torch.ones(2, 2, requires_grad=True)

    def fn():
        made = torch.zeros(2) + 1.5
        return (x @ w, made, torch.tensor(1.0), torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_default_dtype(), torch.empty(1).device.type)

    yield (fn,)
    contexts = [torch.no_grad, torch.inference_mode, torch.enable_grad, lambda: torch.autocast("cpu", dtype=torch.bfloat16),
                lambda: torch.autocast("cpu", dtype=torch.float16), lambda: torch.autocast("cpu", enabled=False), lambda: torch.device("meta"),
                lambda: torch.device("cpu"), lambda: torch.set_grad_enabled(False)]
    for make in contexts:
        with make():
            yield (fn,)
        yield (fn,)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        yield (fn,)
        with torch.enable_grad():
            yield (fn,)
    for dtype in (torch.float64, torch.bfloat16, torch.float32):
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            yield (fn,)
        finally:
            torch.set_default_dtype(before)
    torch.set_default_device("meta")
    try:
        yield (fn,)
    finally:
        torch.set_default_device(None)
    yield (fn,)


@scenarios
def function_modes():
    from torch.overrides import TorchFunctionMode

    class Negates(TorchFunctionMode):
        def __torch_function__(self, func, kinds, args=(), kwargs=None):
            answer = func(*args, **(kwargs or {}))
            return -answer if func in (torch.add, torch.Tensor.add) else answer

    class Other(TorchFunctionMode):
        scale = 2

        def __torch_function__(self, func, kinds, args=(), kwargs=None):
            answer = func(*args, **(kwargs or {}))
            return answer * self.scale if func in (torch.add, torch.Tensor.add) else answer

    x = torch.ones(2)

    def fn():
        return torch.add(x, x), x * 3

    yield (fn,)
    with Negates():
        yield (fn,)
    with Other():
        yield (fn,)
        with Negates():
            yield (fn,)
        Other.scale = 5
        yield (fn,)
    with torch._C.DisableTorchFunction():
        yield (fn,)
    yield (fn,)


@scenarios
def dispatch_modes():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Triples(TorchDispatchMode):
        def __torch_dispatch__(self, func, kinds, args=(), kwargs=None):
            answer = func(*args, **(kwargs or {}))
            return answer * 3 if func is torch.ops.aten.add.Tensor else answer

    x = torch.ones(2)

    def fn():
        return x + x

    yield (fn,)
    with Triples():
        yield (fn,)
    yield (fn,)


@scenarios
def deterministic_and_precision_flags():
    x = torch.ones(3, 3)

    def fn():
        return (torch.are_deterministic_algorithms_enabled(), torch.get_float32_matmul_precision(), torch.is_anomaly_enabled(), torch.get_num_threads(),
                torch.is_deterministic_algorithms_warn_only_enabled(), torch.backends.cudnn.benchmark, (x @ x).sum())

    yield (fn,)
    before = torch.get_num_threads()
    try:
        torch.use_deterministic_algorithms(True)
        yield (fn,)
        torch.use_deterministic_algorithms(True, warn_only=True)
        yield (fn,)
        torch.set_float32_matmul_precision("high")
        yield (fn,)
        torch.set_num_threads(1)
        yield (fn,)
        with torch.backends.cudnn.flags(benchmark=True):
            yield (fn,)
        with torch.autograd.set_detect_anomaly(True):
            yield (fn,)
    finally:
        torch.use_deterministic_algorithms(False)
        torch.set_float32_matmul_precision("highest")
        torch.set_num_threads(before)
    yield (fn,)


@scenarios
def uninitialised_memory_under_deterministic_algorithms():
    def fn():
        return torch.empty(4).isnan().all() if torch.are_deterministic_algorithms_enabled() else torch.zeros(1)

    yield (fn,)
    torch.use_deterministic_algorithms(True)
    try:
        yield (fn,)
    finally:
        torch.use_deterministic_algorithms(False)


@scenarios
def modules_and_their_parts():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = torch.nn.Linear(2, 2)
            self.register_buffer("buf", torch.ones(2))
            self.scale = 2

        def forward(self, x):
            return self.lin(x) * self.scale + self.buf

    torch.manual_seed(0)
    net, x = Net(), torch.ones(1, 2)

    def fn():
        return net(x), net.training

    yield (fn,)
    net.eval()
    yield (fn,)
    net.scale = 3.0
    yield (fn,)
    with torch.no_grad():
        net.lin.weight.fill_(2)
    yield (fn,)
    net.lin.weight = torch.nn.Parameter(torch.full((2, 2), 0.5))
    yield (fn,)
    net.lin.weight.requires_grad_(False)
    yield (fn,)
    net.lin.bias = None
    yield (fn,)
    net.buf = torch.tensor([5.0, 6.0])
    yield (fn,)
    net._buffers["buf"] = torch.zeros(2)
    yield (fn,)
    net.lin = torch.nn.Identity()
    yield (fn,)
    hook = net.register_forward_hook(lambda m, i, o: o + 10)
    yield (fn,)
    hook.remove()
    yield (fn,)
    hook = net.lin.register_forward_pre_hook(lambda m, i: (i[0] * 3,))
    yield (fn,)
    hook.remove()
    hook = torch.nn.modules.module.register_module_forward_hook(lambda m, i, o: o * 7)
    try:
        yield (fn,)
    finally:
        hook.remove()
    yield (fn,)
    net.forward = lambda x: x - 1
    yield (fn,)
    del net.forward
    Net.forward = lambda self, x: x + 100
    yield (fn,)
    net.double()
    yield (fn,)


@scenarios
def tensors_that_alias():
    def fn(a, b):
        saved = a.clone()
        a.add_(1)
        answer = b.sum(), a is b
        a.copy_(saved)
        return answer

    base = torch.arange(8.0)
    for a, b in ((base[:4], base[4:]), (base[:4], base[2:6]), (base[:4], base[:4]), (base, base), (base[:4].clone(), base[:4]), (base[::2], base[1::2]), (base, base.view(8))):
        yield fn, a, b


@scenarios
def hooks_for_saved_tensors():
    x = torch.ones(2, requires_grad=True)

    def fn():
        return (x * x).sum() * 2

    yield (fn,)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t * 5):
        yield (fn,)
    with contextlib.suppress(AttributeError), torch.autograd.graph.save_on_cpu():
        yield (fn,)
    yield (fn,)


@scenarios
def grad_of_a_leaf():
    x = torch.ones(2, requires_grad=True)

    def fn():
        return x.grad is None, x.grad * 2 if x.grad is not None else 0

    yield (fn,)
    (x * 3).sum().backward()
    yield (fn,)
    x.grad.zero_()
    yield (fn,)
    x.grad = torch.full((2,), 8.0)
    yield (fn,)
    x.grad = None
    yield (fn,)


@scenarios
def patched_functions():
    x = torch.ones(2)

    def fn():
        return torch.relu(x - 2), torch.nn.functional.relu(x - 2), (x - 2).relu()

    saved = torch.relu, torch.nn.functional.relu
    yield (fn,)
    try:
        torch.relu = lambda v: v * 100
        yield (fn,)
        torch.nn.functional.relu = torch.abs
        yield (fn,)
        torch.Tensor.relu = lambda self: self * 7
        yield (fn,)
    finally:
        torch.relu, torch.nn.functional.relu = saved
        if "relu" in vars(torch.Tensor):
            del torch.Tensor.relu
    yield (fn,)


@scenarios.parametrize()
def test_tensors_modules_and_torch_state(make):
    follow(make)


@pytest.mark.parametrize("backend", ["eager", "torch:eager", "aot_eager"])
@pytest.mark.parametrize("patched_first", [False, True])
@pytest.mark.parametrize(
    "name, fn, other",
    [
        ("relu", lambda x: (x - 2).relu(), lambda self: self * 7),
        ("__add__", lambda x: x + 1, lambda self, o: torch.sub(self, o)),
        ("__radd__", lambda x: 1 + x, lambda self, o: torch.sub(self, o)),
        ("__iadd__", lambda x: x.clone().__iadd__(3), lambda self, o: torch.sub(self, o)),
        ("__lt__", lambda x: x < 5, lambda self, o: torch.gt(self, o)),
        ("__getitem__", lambda x: x[0], lambda self, k: torch.sub(self, 5)),
        ("split", lambda x: x.split(1)[1], lambda self, n: (self, torch.sub(self, 9))),
        ("relu", lambda x: x + x.relu().shape[0], lambda self: torch.zeros(7)),
        ("relu", lambda x: isinstance(x.relu(), torch.Tensor), lambda self: "no tensor"),
        ("__neg__", lambda x: -x, lambda self: torch.add(self, 3)),
        ("__invert__", lambda x: ~x.to(torch.int32), lambda self: torch.add(self, 3)),
        ("__pos__", lambda x: +x, lambda self: torch.add(self, 3)),
        ("__rpow__", lambda x: 2**x, lambda self, o: torch.add(self, 3)),
        ("__matmul__", lambda x: x @ x, lambda self, o: torch.add(self, 3)),
        ("__setitem__", lambda x: (x := x.clone(), x.__setitem__(0, 5.0), operator.setitem(x, 1, 2.0))[0], lambda self, k, v: torch.Tensor.zero_(self)),
        ("__len__", lambda x: x + len(x), lambda self: 7),
        ("__abs__", lambda x: abs(x), lambda self: torch.add(self, 3)),
        ("__iadd__", lambda x: operator.iadd(x.clone(), 3), lambda self, o: torch.sub(self, o)),
        ("__sub__", lambda x: operator.sub(x, 3), lambda self, o: torch.add(self, o)),
        ("__rsub__", lambda x: operator.sub(3, x), lambda self, o: torch.add(self, o)),
        ("__iter__", lambda x: [v + 1 for v in x], lambda self: iter([torch.sum(self)])),
        ("size", lambda x: x + x.size(0), lambda self, d=None: 7),
        ("dim", lambda x: x + x.dim(), lambda self: 7),
        ("shape", lambda x: x + x.shape[0], property(lambda self: (7,))),
        ("dtype", lambda x: x.dtype is torch.float32, property(lambda self: torch.int8)),
        ("mT", lambda x: x.reshape(1, 2).mT, property(lambda self: torch.add(self, 3))),
        ("requires_grad", lambda x: x.requires_grad, property(lambda self: True)),
    ],
)
def test_members_of_tensors_replaced(name, fn, other, backend, patched_first):
    import framegate

    had, old, x = name in vars(torch.Tensor), vars(torch.Tensor).get(name), torch.tensor([1.0, 4.0])

    with framegate.config.patch(strict_errors=True):
        compiled = framegate.compile(types.FunctionType(fn.__code__.replace(co_name=f"{name}_{backend}_{patched_first}"), fn.__globals__), backend=backend)
        for patched in (patched_first, not patched_first) * 2:
            if patched:
                setattr(torch.Tensor, name, other)
            try:
                pairs = [(compiled(x), fn(x)) for _ in range(2)]
            finally:
                if patched and had:
                    setattr(torch.Tensor, name, old)
                elif patched:
                    delattr(torch.Tensor, name)
            for got, expected in pairs:
                assert repr(got) == repr(expected)
