"""Guards on torch's tensors and its state beside the plain Python answers: gradients, subclasses, anomaly mode, and programs merged under switched states."""

from __future__ import annotations

import random
import warnings

import pytest

torch = pytest.importorskip("torch")

from framegate._core import GuardDesc, GuardProgram, tensor_layers  # noqa: E402

pytestmark = pytest.mark.torch


def gradient(tensor) -> GuardDesc:
    desc = GuardDesc(slot_names=("x",))
    desc.guard("gradient", desc.source("arg"), tensor)
    return desc


def leaf(shape=(2, 3), grad=None, dtype=torch.float32, make=torch.zeros):
    tensor = make(*shape, dtype=dtype, requires_grad=True)
    if grad is not None:
        tensor.grad = grad
    return tensor


# What a condition on the gradient must tell apart, by what Python says of it.
LEAVES = {
    "none": lambda: leaf(),
    "no leaf at all": lambda: torch.zeros(2, 3),
    "plain": lambda: leaf(grad=torch.ones(2, 3)),
    "transposed": lambda: leaf(grad=torch.ones(3, 2).t()),
    "of another size": lambda: leaf((4, 3), torch.ones(4, 3)),
    "of many dimensions": lambda: leaf((1, 2, 1, 2, 1, 2, 1), torch.ones(1, 2, 1, 2, 1, 2, 1)),
    "double": lambda: leaf(grad=torch.ones(2, 3, dtype=torch.float64), dtype=torch.float64),
    "that requires grad": lambda: leaf(grad=torch.ones(2, 3, requires_grad=True)),
    "conjugated": lambda: leaf(grad=torch.ones(2, 3, dtype=torch.complex64).conj(), dtype=torch.complex64),
}


def python_says(tensor) -> tuple:
    grad = tensor.grad
    return (type(tensor), None) if grad is None else (type(tensor), grad.shape, grad.stride(), grad.dtype, grad.device, grad.requires_grad, grad.is_conj())


@pytest.mark.parametrize("name", LEAVES)
def test_a_gradient_is_told_from_every_other(name):
    descs = [gradient(make()) for make in LEAVES.values()]
    program = GuardProgram(descs)
    tensor = LEAVES[name]()
    for desc, make in zip(descs, LEAVES.values()):
        same = python_says(make()) == python_says(tensor)
        assert desc.check((tensor,)) is same and (desc.explain((tensor,)) == []) is same, (name, desc.explain((tensor,)))
    want = sum(1 << i for i, make in enumerate(LEAVES.values()) if python_says(make()) == python_says(tensor))
    assert program.alive((tensor,)) == want != 0
    assert program.alive((5,)) == 0 and program.alive((torch.nn.Parameter(torch.zeros(2, 3)),)) == 0
    for desc in descs:
        again = GuardDesc.from_text(desc.to_text())
        assert again.to_text() == desc.to_text() and again.check((tensor,)) is desc.check((tensor,))


def test_a_gradient_comes_and_goes_and_is_changed():
    weight = torch.nn.Parameter(torch.ones(3))
    without, with_one = gradient(weight), None
    (weight * 2).sum().backward()
    with_one = gradient(weight)
    program = GuardProgram([without, with_one])
    for _ in range(5):
        assert program.alive((weight,)) == 2
        weight.grad = None
        assert program.alive((weight,)) == 1
        (weight * 2).sum().backward()
    assert program.alive((weight,)) == 2
    weight.grad.requires_grad_(True)
    assert program.alive((weight,)) == 0
    weight.grad.requires_grad_(False)
    weight.grad.resize_(0)
    assert program.alive((weight,)) == 0
    assert "x.grad is None" in str(without) and "saw None" not in without.explain((weight,))[0]
    weight.grad = None
    assert "saw None" in with_one.explain((weight,))[0]


@pytest.fixture
def read_from_memory():
    gradient(torch.ones(1))
    if tensor_layers()["torch"] != "raw":
        pytest.skip("torch's memory is not read here")


@pytest.mark.usefixtures("read_from_memory")
def test_reading_a_gradient_makes_no_object_and_no_warning():
    weight = torch.ones(3, requires_grad=True)
    result = weight * 2
    desc = gradient(weight)
    of_result = gradient(result)
    again = GuardDesc.from_text(of_result.to_text())
    other = GuardDesc()
    other.guard("gradient", other.source("arg"), weight)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # asking Python for the gradient of what is no leaf would warn: the two are told apart by that
        assert GuardProgram([desc, of_result, again]).alive((result,)) == 6
        assert GuardProgram([desc, of_result, again]).alive((weight,)) == 1
        assert GuardProgram([desc, of_result, again]).alive((weight.detach(),)) == 1
    assert desc.check((weight,)) and not of_result.check((weight,)) and "without a warning" in of_result.explain((weight,))[0]
    result.retain_grad()
    result.sum().backward()
    assert not of_result.check((result,)) and gradient(weight * 2).check((weight * 3,))


def test_what_has_no_gradients_is_refused():
    import numpy as np

    for value in (np.ones(3), 5, None, [torch.ones(2)]):
        with pytest.raises(TypeError):
            gradient(value)
    assert not gradient(torch.ones(2)).check((np.ones(2),))


class Named(torch.Tensor):
    pass


class Pair(torch.Tensor):
    """A tensor made of two: it answers for itself."""

    @staticmethod
    def __new__(cls, a, b, scale):
        return torch.Tensor._make_wrapper_subclass(cls, a.size(), dtype=a.dtype, device=a.device)

    def __init__(self, a, b, scale):
        self.a, self.b, self.scale = a, b, scale

    def __tensor_flatten__(self):
        return ["a", "b"], self.scale

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise AssertionError("a guard ran the code of a tensor")


def pair_guards(pair) -> GuardDesc:
    """Type, and what its own flattening gives: the tensors by their metadata, the rest by value."""
    desc = GuardDesc(slot_names=("x",))
    number = desc.source("arg")
    desc.guard("type_is", number, Pair)
    names, context = pair.__tensor_flatten__()
    for name in names:
        desc.guard("tensor", desc.source("instance_attr", number, name), getattr(pair, name))
    desc.guard("equals", desc.source("instance_attr", number, "scale"), context)
    return desc


@pytest.mark.usefixtures("read_from_memory")
def test_a_subclass_that_wraps_tensors_is_told_by_its_type_and_its_attributes():
    ones = torch.ones
    pair = Pair(ones(2, 3), ones(3), 0.5)
    desc = pair_guards(pair)
    program = GuardProgram([desc, pair_guards(Pair(ones(4, 3), ones(3), 0.5))])
    for _ in range(3):
        assert program.alive((pair,)) == 1
    others = {"size": Pair(ones(2, 4), ones(3), 0.5), "second": Pair(ones(2, 3), ones(4), 0.5), "dtype": Pair(ones(2, 3).double(), ones(3), 0.5), "context": Pair(ones(2, 3), ones(3), 0.25),
              "grad": Pair(ones(2, 3, requires_grad=True), ones(3), 0.5), "plain": ones(2, 3), "named": ones(2, 3).as_subclass(Named)}
    for name, other in others.items():
        assert not desc.check((other,)) and program.alive((other,)) == 0 and desc.explain((other,)), name
    assert program.alive((Pair(ones(4, 3), ones(3), 0.5),)) == 2
    pair.a = ones(4, 3)
    assert program.alive((pair,)) == 2
    pair.scale = 1.0
    assert program.alive((pair,)) == 0


class Wrapper(torch.Tensor):
    """A tensor that answers for itself, of any outer metadata, around one tensor."""

    @staticmethod
    def __new__(cls, size, inner=None, strides=None, dtype=torch.float32, requires_grad=False, device="cpu", **options):
        return torch.Tensor._make_wrapper_subclass(cls, size, strides=strides, dtype=dtype, requires_grad=requires_grad, device=device, **options)

    def __init__(self, size, inner=None, **options):
        self.inner = inner if inner is not None else torch.ones(2)

    shape = property(lambda self: (77,))

    def size(self, *args):
        raise AssertionError("a guard ran the code of a tensor")

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise AssertionError("a guard ran the code of a tensor")


OUTER = {
    "size": {"size": (2, 4)},
    "rank": {"size": (2, 3, 1)},
    "scalar": {"size": ()},
    "many": {"size": (2, 3, 1, 2, 2, 3)},
    "strides": {"size": (2, 3), "strides": (1, 2)},
    "dtype": {"size": (2, 3), "dtype": torch.float64},
    "grad": {"size": (2, 3), "requires_grad": True},
    "meta": {"size": (2, 3), "device": "meta"},
    "other": {"size": (7,), "dtype": torch.int8},
}
COMPUTED = {
    "sizes": {"dispatch_sizes_strides_policy": "sizes"},
    "strides": {"dispatch_sizes_strides_policy": "strides"},
    "device": {"dispatch_device": True},
    "layout": {"dispatch_layout": True},
}


def tensor_guard(value) -> GuardDesc:
    desc = GuardDesc(slot_names=("x",))
    desc.guard("tensor", desc.source("arg"), value)
    return desc


@pytest.mark.usefixtures("read_from_memory")
def test_the_outer_metadata_of_a_wrapper_is_a_condition_of_its_own():
    values = {"plain": Wrapper((2, 3)), **{name: Wrapper(**row) for name, row in OUTER.items() if name != "meta"}}
    descs = [tensor_guard(value) for value in values.values()]
    program = GuardProgram(descs)
    for i, (name, value) in enumerate(values.items()):
        for again in (value, Wrapper(**OUTER.get(name, {"size": (2, 3)}), inner=torch.zeros(9))):
            assert [desc.check((again,)) for desc in descs] == [k == i for k in range(len(descs))], name
            assert program.alive((again,)) == 1 << i, name
    for other in (torch.ones(2, 3), Wrapper(**OUTER["meta"]), Named(torch.ones(2, 3)), *(Wrapper((2, 3), **options) for options in COMPUTED.values())):
        assert not any(desc.check((other,)) for desc in descs) and program.alive((other,)) == 0
    shown = GuardDesc.from_text(descs[0].to_text(), lambda name: Wrapper)
    assert shown.check((values["plain"],)) and not shown.check((values["size"],))
    (line,) = descs[0].explain((values["size"],))
    assert "shape (2, 3)" in line and "saw size 4 inste" in line


@pytest.mark.usefixtures("read_from_memory")
@pytest.mark.parametrize("options", COMPUTED.values(), ids=COMPUTED)
def test_a_wrapper_that_computes_its_metadata_is_refused(options):
    with pytest.raises(TypeError, match="computes its sizes"):
        tensor_guard(Wrapper((2, 3), **options))


@pytest.mark.usefixtures("read_from_memory")
def test_a_wrapper_of_symbolic_size_is_refused():
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    size = FakeTensorMode(shape_env=ShapeEnv()).from_tensor(torch.ones(4, 3), static_shapes=False).shape[0]
    assert type(size) is torch.SymInt
    wrapper = Wrapper((size, 3))
    with pytest.raises(TypeError, match="computes its sizes"):
        tensor_guard(wrapper)
    assert not tensor_guard(Wrapper((4, 3))).check((wrapper,))


@pytest.mark.usefixtures("read_from_memory")
def test_outer_metadata_that_changes_in_place():
    value = Wrapper((2, 3))
    desc = tensor_guard(value)
    program = GuardProgram([desc])
    assert program.alive((value,)) == 1 and desc.check((value,))
    value.requires_grad_()
    assert program.alive((value,)) == 0 and not desc.check((value,))
    value.requires_grad_(False)
    assert program.alive((value,)) == 1 and desc.check((value,))


@pytest.mark.usefixtures("read_from_memory")
def test_a_subclass_that_is_an_ordinary_tensor_is_told_by_its_metadata():
    one = torch.ones(2, 3).as_subclass(Named)
    desc = GuardDesc(slot_names=("x",))
    desc.guard("tensor", desc.source("arg"), one)
    program = GuardProgram([desc])
    assert desc.check((one,)) and program.alive((torch.zeros(2, 3).as_subclass(Named),)) == 1
    for other in (torch.ones(2, 3), torch.ones(3, 2).as_subclass(Named), torch.ones(3, 2).t().as_subclass(Named), torch.ones(2, 3, dtype=torch.float64).as_subclass(Named),
                  torch.ones(2, 3).as_subclass(Named).requires_grad_(), torch.nn.Parameter(torch.ones(2, 3)), Pair(torch.ones(2, 3), torch.ones(1), 1), 5, None):
        assert program.alive((other,)) == 0 and not desc.check((other,)) and desc.explain((other,))
    again = GuardDesc.from_text(desc.to_text(), lambda name: Named)
    assert again.check((one,)) and not again.check((torch.ones(2, 3),))


SWITCHES = {
    "grad": (torch.is_grad_enabled, torch.set_grad_enabled, (True, False)),
    "dtype": (torch.get_default_dtype, torch.set_default_dtype, (torch.float32, torch.float64)),
    "deterministic": (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, (False, True)),
    "precision": (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, ("highest", "high")),
    "cache": (torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled, (True, False)),
    "flash": (torch.backends.cuda.flash_sdp_enabled, torch.backends.cuda.enable_flash_sdp, (True, False)),
    "anomaly": (lambda: (torch.is_anomaly_enabled(), torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()), lambda to: torch.set_anomaly_enabled(*to),
                ((False, True), (True, True), (True, False))),
    "threads": (torch.get_num_threads, torch.set_num_threads, (1, 2)),
}
READ_BY = {"torch_state": ("grad", "dtype"), "torch_globals": ("deterministic", "precision", "cache", "flash", "anomaly", "threads")}


@pytest.fixture
def as_it_was():
    old = {name: get() for name, (get, _, _) in SWITCHES.items()}
    yield
    for name, value in old.items():
        SWITCHES[name][1](value)


def python_state(kind: str) -> tuple:
    return tuple(SWITCHES[name][0]() for name in READ_BY[kind])


@pytest.mark.parametrize("seed", range(12))
def test_merged_programs_of_random_states_say_what_torch_says(seed, as_it_was):
    """The oracle of a condition on the state is Python's answer then, beside Python's answer now."""
    rng = random.Random(seed)
    descs, made_in = [], []
    for _ in range(rng.choice((3, 8, 66))):
        for name in rng.sample(list(SWITCHES), 3):
            SWITCHES[name][1](rng.choice(SWITCHES[name][2]))
        desc, kinds = GuardDesc(), rng.sample(list(READ_BY), rng.randrange(1, 3))
        for kind in kinds:
            desc.guard(kind)
        desc.guard("is_not_none", desc.source("arg"))
        descs.append(desc)
        made_in.append({kind: python_state(kind) for kind in kinds})
    program = GuardProgram(descs)
    for _ in range(25):
        name = rng.choice(list(SWITCHES))
        SWITCHES[name][1](rng.choice(SWITCHES[name][2]))
        now = {kind: python_state(kind) for kind in READ_BY}
        holds = [all(now[kind] == state for kind, state in made.items()) for made in made_in]
        assert [desc.check((1,)) for desc in descs] == holds
        assert [desc.explain((1,)) == [] for desc in descs] == holds
        assert program.alive((1,)) == sum(1 << i for i, ok in enumerate(holds) if ok)
        program = GuardProgram(descs, program)
