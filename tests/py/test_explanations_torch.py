"""What a miss on a tensor or on torch's state says."""

import pytest

torch = pytest.importorskip("torch")

import framegate  # noqa: E402
from framegate._core import GuardDesc, tensor_layers  # noqa: E402

pytestmark = pytest.mark.torch


class Wrapper(torch.Tensor):
    __torch_dispatch__ = classmethod(len)


def said(kind, example, value):
    desc = GuardDesc(slot_names=("x",))
    desc.guard(kind, desc.source("arg"), example)
    (line,) = desc.explain((value,))
    assert "%l" not in line
    return line


def test_tensors():
    one = torch.ones(2, 3)
    assert "x is a Tensor of torch.float32, shape (2, 3), strides (3, 1), on cpu, requires_grad False; saw requires_grad True instead of False" in said("tensor", one, one.clone().requires_grad_())
    with torch.inference_mode():
        inference = torch.ones(2, 3)
    line = said("tensor", one, inference)
    assert "another kind of tensor (inference mode" in line and "key set 0x" in line and "instead of 0x" in line
    assert "saw a tensor that cannot be read: a kind of torch tensor that is not captured" in said("tensor", one, one.to_sparse())
    leaf = torch.ones(2, requires_grad=True)
    leaf.grad = torch.ones(2)
    assert "expected x.grad is None; saw a gradient; whether a tensor has a gradient" in said("gradient", torch.ones(2), leaf)


def test_tensors_that_wrap_others():
    said("tensor", torch.ones(1), torch.ones(2))
    if tensor_layers()["torch"] != "raw":
        pytest.skip("torch's memory is not read here")
    wrapped = torch.Tensor._make_wrapper_subclass
    line = said("tensor", wrapped(Wrapper, (2, 3)), wrapped(Wrapper, (2, 4)))
    assert "expected x is a Wrapper of torch.float32, shape (2, 3), strides (3, 1), on cpu, requires_grad False; saw size 4 instead of 3 in dimension 1" in line
    assert "a subclass that computes its sizes" in said("tensor", wrapped(Wrapper, (2, 3)), wrapped(Wrapper, (2, 3), dispatch_sizes_strides_policy="sizes"))


@pytest.mark.parametrize(
    "context, words",
    [
        (torch.no_grad, "grad mode off instead of on"),
        (torch.inference_mode, "off instead of on"),
        (lambda: torch.autocast("cpu", dtype=torch.bfloat16), "autocast on CPU torch.bfloat16 instead of off"),
        (lambda: torch.device("meta"), "torch function modes 1 instead of 0"),
        (torch._C.DisableTorchFunctionSubclass, "__torch_function__ off for subclasses instead of on"),
        (torch._C.DisableTorchFunction, "__torch_function__ off instead of on"),
        (lambda: torch.autograd.set_multithreading_enabled(False), "multithreaded backward off instead of on"),
    ],
)
def test_state_of_the_thread(context, words):
    desc = GuardDesc()
    desc.guard("torch_state")
    with context():
        (line,) = desc.explain(())
        inside = GuardDesc()
        inside.guard("torch_state")
    assert line.startswith("expected torch state: grad mode on, inference mode off, default dtype torch.float32; saw ") and words in line, line
    (line,) = inside.explain(())
    assert " instead of " in line and "=" not in line, line


def test_switches():
    desc = GuardDesc()
    desc.guard("torch_globals")
    torch.use_deterministic_algorithms(True)
    try:
        (line,) = desc.explain(())
    finally:
        torch.use_deterministic_algorithms(False)
    assert "saw deterministic algorithms on instead of off; code that a compiler made" in line
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        (line,) = desc.explain(())
    finally:
        torch.set_num_threads(threads)
    assert f"saw {threads + 1} threads instead of {threads}" in line


def test_the_log_of_recompiles_and_why_name_the_state():
    compiled = framegate.compile(lambda x: x + 1)
    compiled(torch.ones(2))
    with torch.no_grad():
        text = framegate.why(compiled)(torch.ones(2))
    assert "grad mode off instead of on" in text and "test_explanations_torch.py" in text
