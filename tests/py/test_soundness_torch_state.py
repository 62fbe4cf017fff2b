"""Each piece of torch's global state, switched between calls: plain Python's answer under the default backend, another graph under a compiler that built it in."""

from __future__ import annotations

import contextlib

import pytest

torch = pytest.importorskip("torch")

import framegate  # noqa: E402
import torch.autograd.forward_ad as forward  # noqa: E402
from framegate._core import GuardDesc, GuardProgram  # noqa: E402

pytestmark = pytest.mark.torch


def attribute(owner, name):
    return lambda: getattr(owner, name), lambda value: setattr(owner, name, value)


# name: get, set, two values
GLOBALS = {
    "deterministic": (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, (False, True)),
    "warn only": (torch.is_deterministic_algorithms_warn_only_enabled, lambda on: torch.use_deterministic_algorithms(True, warn_only=on), (False, True)),
    "fill": (*attribute(torch.utils.deterministic, "fill_uninitialized_memory"), (True, False)),
    "matmul precision": (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, ("highest", "high")),
    "threads": (torch.get_num_threads, torch.set_num_threads, (1, 2)),
    "oneDNN": (torch._C._get_mkldnn_enabled, torch._C._set_mkldnn_enabled, (True, False)),
    "deterministic oneDNN": (torch._C._get_mkldnn_deterministic, torch._C._set_mkldnn_deterministic, (False, True)),
    "flash attention": (torch.backends.cuda.flash_sdp_enabled, torch.backends.cuda.enable_flash_sdp, (True, False)),
    "plain attention": (torch.backends.cuda.math_sdp_enabled, torch.backends.cuda.enable_math_sdp, (True, False)),
    "anomaly": (torch.is_anomaly_enabled, lambda on: torch.autograd.set_detect_anomaly(on, check_nan=False), (False, True)),
    "anomaly of NaN": (torch.is_anomaly_check_nan_enabled, lambda on: torch.autograd.set_detect_anomaly(True, check_nan=on), (False, True)),
    "autocast cache": (torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled, (True, False)),
    "default dtype": (torch.get_default_dtype, torch.set_default_dtype, (torch.float32, torch.float64)),
}
CONTEXTS = {
    "no_grad": torch.no_grad, "inference": torch.inference_mode, "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "autocast half": lambda: torch.autocast("cpu", dtype=torch.float16), "device": lambda: torch.device("meta"), "no subclasses": torch._C.DisableTorchFunctionSubclass,
    "no functions": torch._C.DisableTorchFunction, "hooks": lambda: torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
    "no multithreading": lambda: torch.autograd.set_multithreading_enabled(False),
}


@pytest.fixture(autouse=True)
def as_it_was():
    old = {name: get() for name, (get, _, _) in GLOBALS.items() if name not in ("warn only", "anomaly of NaN")}
    yield
    for name, value in old.items():
        GLOBALS[name][1](value)


@pytest.mark.parametrize("name", GLOBALS)
def test_a_switch_is_seen_by_the_function_that_asks_for_it(name):
    get, switch, values = GLOBALS[name]
    compiled = framegate.compile(lambda x: (x + 1, get()))
    for value in values * 3:
        switch(value)
        tensor, seen = compiled(torch.ones(2))
        assert seen == value == get() and torch.equal(tensor, torch.full((2,), 2.0))


@pytest.mark.parametrize("name", GLOBALS)
def test_a_compiler_that_built_a_switch_in_is_asked_again(name):
    get, switch, values = GLOBALS[name]
    seen = []

    def backend(graph, examples):
        value = get()
        def run(*args):
            seen.append(value)
            return graph(*args)
        return run

    compiled = framegate.compile(lambda x: x + 1, backend=backend)
    for value in values * 3:
        switch(value)
        assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 2.0))
        assert seen[-1] == value, name
    assert len(seen) == 6


@pytest.mark.parametrize("name", GLOBALS)
def test_the_condition_on_switches_follows_them(name):
    _, switch, values = GLOBALS[name]
    switch(values[0])
    desc = GuardDesc()
    desc.guard("torch_globals")
    desc.guard("torch_state")
    program, again = GuardProgram([desc]), GuardDesc.from_text(desc.to_text())
    for ask in (lambda: program.alive(()), lambda: desc.check(()), lambda: again.check(())):
        switch(values[0])
        assert ask()
        switch(values[1])
        assert not ask()
    assert len(desc.explain(())) == 1


@pytest.mark.parametrize("name", CONTEXTS)
@pytest.mark.parametrize("backend", ["eager", "torch:eager", "aot_eager"])
def test_state_of_the_thread_switched_between_calls(name, backend):
    weight = torch.ones(2, 2, requires_grad=True)

    def f(x):
        made = torch.zeros(2, 2) if x.device.type == "cpu" else x
        result = x @ weight
        return result.dtype, result.requires_grad, result.is_inference(), made.device.type, torch.is_grad_enabled()

    with framegate.config.patch(strict_errors=True):
        compiled = framegate.compile(f, backend=backend)
        x = torch.ones(2, 2)
        for context in (contextlib.nullcontext, CONTEXTS[name], contextlib.nullcontext, CONTEXTS[name]):
            with context():
                assert compiled(x) == f(x), name


def test_threads_have_state_of_their_own():
    import threading

    desc = GuardDesc()
    desc.guard("torch_state")
    desc.guard("torch_globals")
    program, answers = GuardProgram([desc]), []
    with torch.no_grad():
        assert program.alive(()) == 0
        other = threading.Thread(target=lambda: answers.append(program.alive(())))
        other.start()
        other.join()
    assert answers == [1] and program.alive(()) == 1


def test_hooks_for_saved_tensors_are_never_matched():
    desc = GuardDesc()
    desc.guard("torch_globals")
    program = GuardProgram([desc])
    for depth in (1, 2, 100):
        with contextlib.ExitStack() as stack:
            for _ in range(depth):
                stack.enter_context(torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t))
            assert program.alive(()) == 0
            with pytest.raises(RuntimeError):
                GuardDesc().guard("torch_globals")
        assert program.alive(()) == 1


@pytest.mark.parametrize("backend", ["eager", "torch:eager", "aot_eager"])
def test_tangents_pass_through_what_was_compiled_without_them(backend):
    f = lambda x: (x * x).sum() * 2  # noqa: E731
    with framegate.config.patch(strict_errors=True):
        compiled = framegate.compile(f, backend=backend)
        for leaf in (torch.ones(2), torch.ones(2, requires_grad=True)):
            compiled(leaf)
            with forward.dual_level():
                dual = forward.make_dual(leaf, torch.full((2,), 3.0))
                assert torch.equal(forward.unpack_dual(compiled(dual)).tangent, torch.tensor(24.0))
            assert torch.equal(compiled(leaf), f(leaf))
