"""What the adaptors read is what the library itself says, in every layer; kinds that are not captured are refused with a reason."""

import os
import subprocess
import sys
import textwrap
import threading
import warnings

import numpy as np
import pytest

core = pytest.importorskip("framegate._core")
hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

try:
    import torch
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")

LAYERS = ["raw", "cabi", "harvest", "python"]


def run(code, **env):
    """Run code in a fresh interpreter that finds the same framegate."""
    path = os.path.dirname(os.path.dirname(os.path.abspath(core.__file__)))
    environ = {**os.environ, "PYTHONPATH": path + os.pathsep + os.environ.get("PYTHONPATH", ""), **env}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=environ, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done


def test_numpy_metadata():
    a = np.zeros((3, 5), "f4").T
    got = core.read(a)
    assert (got["adaptor"], got["sizes"], got["strides"], got["dtype"]) == ("numpy", (5, 3), (4, 20), np.dtype("f4"))


@given(st.lists(st.integers(0, 4), max_size=6), st.sampled_from("?bBhHiIlLqQefdgFDG"), st.randoms())
@settings(max_examples=100, deadline=None)
def test_numpy_views_of_any_shape(shape, code, random):
    a = np.zeros(shape, code)
    order = list(range(a.ndim))
    random.shuffle(order)
    a = a.transpose(order)[(..., *(slice(None, None, random.choice([1, 2, -1])) for _ in order))]
    got = core.read(a)
    assert (got["sizes"], got["strides"], got["dtype"]) == (a.shape, a.strides, a.dtype)


def test_not_a_tensor():
    with pytest.raises(TypeError):
        core.read([1, 2])
    with pytest.raises(TypeError):
        core.read(np.ma.zeros(3))
    with pytest.raises(ValueError, match="objects"):
        core.read(np.zeros(3, object))


def test_torch_is_never_imported():
    run("""
        import sys, framegate._core as c
        assert c.torch_state()["present"] is False
        assert c.tensor_layers()["torch"] is None
        assert "torch" not in sys.modules
    """)


@needs_torch
def test_first_sight_prints_nothing_and_changes_nothing():
    done = run("""
        import torch, framegate._core as c
        torch.manual_seed(7)
        seed = torch.get_rng_state()
        with torch.no_grad(), torch.inference_mode(), torch.autocast("cpu"), torch.device("meta"):
            layers = c.tensor_layers()
        assert layers["torch"] == "raw" and layers["torch_state"] == "raw", layers
        assert torch.equal(seed, torch.get_rng_state()) and torch.is_grad_enabled()
        assert c.read(torch.ones(3))["layer"] == "raw"
    """)
    assert done.stdout == done.stderr == ""


if torch is not None:

    def expected(t):
        return dict(
            sizes=tuple(t.shape), strides=tuple(t.stride()), dtype=t.dtype, requires_grad=t.requires_grad, ndim=t.dim(),
            keys=torch._C._dispatch_keys(t).raw_repr(), type=type(t), device_index=-1 if t.device.index is None else t.device.index,
        )

    def accepted():
        x = torch.ones(3, 11)
        yield x
        yield from (torch.ones(()), torch.ones(0), torch.ones(2, 0, 3), torch.ones(*[1, 2] * 4), x.t(), x.expand(4, 3, 11), x[1:, ::2])
        yield from (x.clone().requires_grad_(), x.clone().requires_grad_().t(), (x.clone().requires_grad_() * 2).detach(), torch.nn.Parameter(x))
        yield from (torch.ones(3, dtype=torch.complex64).conj(), torch._neg_view(x), torch.empty(3, 4, device="meta"), x.to(torch.bfloat16))
        yield torch._lazy_clone(x)
        with torch.inference_mode():
            yield torch.ones(3).view(1, 3)
        big = torch.ones(1, 2, 1, 2, 1, 2, 1)
        yield from (big, big.transpose(1, 5), x.to(torch.float64), x.bool(), x.long())

    class PlainSubclass(torch.Tensor):
        pass

    def refused():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = torch.ones(4, 4)
            yield "coo", x.to_sparse()
            yield "csr", x.to_sparse_csr()
            yield "quantized", torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)
            yield "nested", torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
            yield "jagged", torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
            if torch.backends.mkldnn.is_available():
                yield "mkldnn", x.to_mkldnn()
            from torch._subclasses.fake_tensor import FakeTensorMode

            yield "fake", FakeTensorMode().from_tensor(x)
            from torch.fx.experimental.symbolic_shapes import ShapeEnv

            yield "symbolic", FakeTensorMode(shape_env=ShapeEnv()).from_tensor(x)
            caught = []
            torch.func.vmap(lambda t: caught.append(t) or t)(x)
            torch.func.grad(lambda t: caught.append(t) or t.sum())(x)
            torch.func.functionalize(lambda t: caught.append(t) or t)(x)
            yield from (("functorch", t) for t in caught)
            yield "subclass", x.as_subclass(PlainSubclass)

    @pytest.mark.parametrize("t", list(accepted()), ids=str)
    def test_torch_kinds_that_are_captured(t):
        for record in (True, False):
            got = core.read(t, record=record)
            assert {k: got[k] for k in expected(t)} == expected(t)
        if t.device.type == "cpu":
            assert got["storage"] == t.untyped_storage()._cdata

    @pytest.mark.parametrize("kind,t", list(refused()), ids=[k for k, _ in refused()])
    def test_torch_kinds_that_are_refused(kind, t):
        for record in (True, False):
            with pytest.raises((ValueError, TypeError)) as error:
                core.read(t, record=record)
            assert str(error.value)

    @given(st.lists(st.integers(0, 3), max_size=9), st.sampled_from([torch.float32, torch.int64, torch.bool, torch.complex128]), st.randoms())
    @settings(max_examples=200, deadline=None)
    def test_torch_random_views(shape, dtype, random):
        t = torch.zeros(shape, dtype=dtype)
        order = list(range(t.dim()))
        random.shuffle(order)
        t = t.permute(order)
        if t.dim() and random.random() < 0.5:
            t = t.unfold(0, min(1, t.shape[0]), 1)
        if dtype.is_floating_point and random.random() < 0.5:
            t = t.detach().requires_grad_()
        got = core.read(t, record=False)
        assert {k: got[k] for k in expected(t)} == expected(t)

    def test_copy_on_write_is_not_materialised():
        x = torch.ones(5)
        y = torch._lazy_clone(x)
        core.read(y)
        assert torch._C._is_cow_tensor(y)

    @pytest.mark.parametrize("layer", LAYERS)
    def test_layers_give_the_same(layer):
        run(f"""
            import sys, torch, framegate._core as c
            assert c.tensor_layers()["torch"] == {layer!r}
            ts = [torch.ones(3, 11).t(), torch.nn.Parameter(torch.ones(1, 2, 1, 2, 1, 2)), torch.empty(3, device="meta"),
                  torch.ones(3, dtype=torch.complex64).conj()]
            for t in ts:
                got = c.read(t)
                assert (got["sizes"], got["strides"]) == (tuple(t.shape), t.stride()), got
                assert got["keys"] == torch._C._dispatch_keys(t).raw_repr() and got["requires_grad"] == t.requires_grad
                assert got["dtype"] is t.dtype and got["device_index"] == -1
            for bad in (torch.ones(3).to_sparse(), 3):
                try:
                    c.read(bad)
                except (ValueError, TypeError):
                    continue
                raise AssertionError(bad)
        """, FRAMEGATE_TORCH_LAYER=layer)

    STATES = {
        "no_grad": torch.no_grad,
        "inference": torch.inference_mode,
        "autocast": lambda: torch.autocast("cpu"),
        "autocast_half": lambda: torch.autocast("cpu", dtype=torch.float16),
        "disabled": torch._C.DisableTorchFunction,
        "disabled_subclass": torch._C.DisableTorchFunctionSubclass,
        "device_cpu": lambda: torch.device("cpu"),
        "device_meta": lambda: torch.device("meta"),
        "forward_grad_off": lambda: torch.autograd.forward_ad._set_fwd_grad_enabled(False),
    }

    def test_each_state_differs_from_each_other_and_comes_back():
        plain = core.torch_state()
        seen = {"plain": plain}
        for name, make in STATES.items():
            with make():
                seen[name] = core.torch_state()
            assert core.torch_state() == plain, name
        assert all(seen.values())
        names = list(seen)
        for i, a in enumerate(names):
            for b in names[i + 1:]:
                assert seen[a] != seen[b], (a, b)

    def test_state_through_python_tells_the_same_apart():
        run("""
            import torch, framegate._core as c
            assert c.tensor_layers()["torch_state"] == "python"
            plain, seen = c.torch_state(), []
            for make in (torch.no_grad, torch.inference_mode, lambda: torch.autocast("cpu"), torch._C.DisableTorchFunction,
                         lambda: torch.device("cpu"), lambda: torch.device("meta")):
                with make():
                    seen.append(c.torch_state())
                assert c.torch_state() == plain
            seen.append(plain)
            assert all(seen) and all(a != b for i, a in enumerate(seen) for b in seen[i + 1:])
        """, FRAMEGATE_TORCH_LAYER="python")

    def test_default_dtype_is_part_of_the_state():
        plain = core.torch_state()
        torch.set_default_dtype(torch.float64)
        try:
            assert core.torch_state()["default_dtype"] == 7 != plain["default_dtype"]
        finally:
            torch.set_default_dtype(torch.float32)

    def test_states_that_cannot_be_described_are_not_read():
        from torch.overrides import TorchFunctionMode
        from torch.utils._python_dispatch import TorchDispatchMode

        for mode in (TorchFunctionMode(), TorchDispatchMode()):
            with mode:
                assert core.torch_state() is None
        inside = []
        torch.func.vmap(lambda t: inside.append(core.torch_state()) or t)(torch.ones(3))
        assert inside == [None]

    def test_state_belongs_to_the_thread():
        plain, other = core.torch_state(), []
        with torch.no_grad():
            thread = threading.Thread(target=lambda: other.append(core.torch_state()))
            thread.start()
            thread.join()
            assert core.torch_state() != plain
        assert other == [plain]
