"""What a compiled function reads about a tensor of a subclass: its own shape, dtype and device, beside the tensors inside of it."""
from __future__ import annotations

import contextlib

import pytest

torch = pytest.importorskip("torch")

import framegate  # noqa: E402
from framegate._core import tensor_layers  # noqa: E402
from support_soundness import Scenarios, follow  # noqa: E402

pytestmark = pytest.mark.torch
scenarios = Scenarios()


@pytest.fixture
def read_from_memory():
    framegate.compile(lambda x: x + 1)(torch.ones(1))
    if tensor_layers()["torch"] != "raw":
        pytest.skip("torch's memory is not read here")


def asked(cls, func, types, args=(), kwargs=None):
    raise AssertionError("the class was asked")


class Box(torch.Tensor):
    """Around one tensor, of the sizes that it is told."""

    __torch_dispatch__ = classmethod(asked)

    @staticmethod
    def __new__(cls, inner, sizes=None, **options):
        return torch.Tensor._make_wrapper_subclass(cls, tuple(inner.shape) if sizes is None else sizes, dtype=options.pop("dtype", inner.dtype), **options)

    def __init__(self, inner, sizes=None, **options):
        self.inner = inner

    def __repr__(self, **_):
        return "Box"

    def __tensor_flatten__(self):
        return ["inner"], None


class Switched(Box):
    __torch_function__ = torch._C._disabled_torch_function_impl


class Named(torch.Tensor):
    pass


X = torch.arange(6.0).reshape(2, 3)


def everything(t):
    last = t.size(-1) if t.ndim else None
    return (t.shape, tuple(t.shape), t.ndim, t.dtype, t.device, t.requires_grad, t.size(), last, t.stride(), t.dim(), t.ndimension(), t.numel(), t.nelement(),
            len(t) if t.dim() else "none", type(t.shape), t.stride(0) if t.ndim else None)


def kinds():
    for kind in (Box, Switched):
        for options in ({}, {"sizes": (2, 4)}, {"sizes": (6,)}, {"sizes": ()}, {"sizes": (0, 3)}, {"dtype": torch.float64}, {"strides": (1, 2)}, {"requires_grad": True}, {"device": "meta"}, {}):
            yield kind(X, **options)
    yield from (X.as_subclass(Named), X.t().as_subclass(Named), X.double().as_subclass(Named), X.clone().requires_grad_().as_subclass(Named), X, torch.nn.Parameter(X))


@scenarios
def every_member_of_every_kind():
    for t in kinds():
        yield everything, t


@scenarios
def outer_sizes_change_and_the_inner_ones_do_not():
    def fn(t):
        return t.inner * t.shape[0] + t.size(1), t.inner.shape

    for sizes in ((2, 3), (3, 2), (2, 3, 1), (2, 3), (5, 5)):
        yield fn, Box(X, sizes)


@scenarios
def inner_sizes_change_and_the_outer_ones_do_not():
    def fn(t):
        return t.inner * t.shape[0], len(t.inner)

    for n in (2, 3, 2):
        yield fn, Box(torch.ones(n), (4, 4))


@scenarios
def a_tensor_that_is_changed_in_place():
    box = Box(X, (2, 3))

    def fn():
        return box.shape, box.dtype, box.requires_grad, box.stride(), box.inner + len(box)

    yield (fn,)
    with torch._C.DisableTorchFunction():
        torch._C.TensorBase.data.__set__(box, Box(X, (2, 5)))
    yield (fn,)
    torch._C.TensorBase.requires_grad.__set__(box, True)
    yield (fn,)
    torch.utils.swap_tensors(box, Box(X + 1, (7, 3), dtype=torch.float64))
    yield (fn,)
    box.inner = torch.ones(1)
    yield (fn,)


@scenarios
def an_ordinary_one_that_is_resized():
    t = torch.arange(6.0).as_subclass(Named)

    def fn():
        return t.shape, t.numel(), len(t)

    yield (fn,)
    t.resize_(4)
    yield (fn,)
    t.resize_(2, 2)
    yield (fn,)
    t.t_()
    yield (fn,)


@scenarios
def one_that_was_made_to_be_asked_though_its_class_cannot_answer():
    def fn(t):
        return t.shape, t.size(0), t.stride()

    for options in ({}, {"dispatch_sizes_strides_policy": "strides"}, {"dispatch_sizes_strides_policy": "sizes"}, {}):
        yield fn, torch.Tensor._make_subclass(Named, X, False, **options)


@scenarios
def a_class_that_grows_a_shape_of_its_own():
    class Mine(Box):
        pass

    def fn(t):
        return t.shape, t.ndim, t.size(0), len(t), t.dtype

    box = Mine(X)
    yield fn, box
    Mine.shape = property(lambda self: (self.inner.shape[0], "mine"))
    yield fn, box
    Mine.size = lambda self, dim: dim + 40
    Mine.__len__ = lambda self: 5
    yield fn, box
    Mine.dtype = "a dtype"
    Mine.ndim = property(lambda self: 17)
    yield fn, box
    del Mine.shape, Mine.size, Mine.__len__, Mine.dtype, Mine.ndim
    yield fn, box
    Mine.__getattribute__ = lambda self, name: "all" if name == "shape" else torch.Tensor.__getattribute__(self, name)
    yield fn, box


@scenarios
def a_class_whose_function_says_something_else():
    class Mine(Box):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "said by the class"

    class Later(Box):
        pass

    def fn(t):
        return t.shape, t.ndim, t.dtype

    yield fn, Mine(X)
    yield fn, Later(X)
    Later.__torch_function__ = Mine.__dict__["__torch_function__"]
    yield fn, Later(X)
    del Later.__torch_function__
    yield fn, Later(X)
    Later.__torch_function__ = torch._C._disabled_torch_function_impl
    yield fn, Later(X)


@scenarios
def a_metaclass_that_is_asked_for_subclasses():
    class Meta(type(torch.Tensor)):
        def __subclasscheck__(cls, other):
            return False

    class Mine(Box, metaclass=Meta):
        pass

    yield (lambda t: t.inner + len(t.inner)), Mine(X)
    yield (lambda t: t.shape), Mine(X)


@scenarios
def torch_function_on_and_off():
    for context in (contextlib.nullcontext, torch._C.DisableTorchFunctionSubclass, torch._C.DisableTorchFunction, contextlib.nullcontext):
        for t in (Box(X), Switched(X), X.as_subclass(Named)):
            with context():
                yield everything, t


@scenarios
def function_modes():
    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return "said by the mode"

    def fn(t):
        return t.shape, t.ndim

    for t in (Box(X), X.as_subclass(Named)):
        yield fn, t
        with Mode():
            yield fn, t
        with torch.device("cpu"):
            yield fn, t
        yield fn, t


@scenarios
def members_of_torch_that_are_replaced():
    def fn(t):
        return t.shape, t.size(0), t.dim(), len(t)

    box, old = Box(X), {name: torch.Tensor.__dict__.get(name) for name in ("shape", "size", "__len__")}
    yield fn, box
    try:
        torch.Tensor.shape = property(lambda self: "another shape")
        torch.Tensor.size = lambda self, dim: "another size"
        torch.Tensor.__len__ = lambda self: 8
        yield fn, box
    finally:
        del torch.Tensor.shape, torch.Tensor.size
        torch.Tensor.__len__ = old["__len__"]
    yield fn, box


@scenarios
def a_wrapper_that_answers_for_itself():
    class Asked(Box):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            if func in (torch.ops.aten.sym_size.default, torch.ops.aten.size.default):
                return [8, 9]
            if func in (torch.ops.aten.sym_stride.default, torch.ops.aten.stride.default):
                return [9, 1]
            return {torch.ops.aten.dim.default: 2, torch.ops.aten.sym_numel.default: 72, torch.ops.prim.device.default: torch.device("meta")}[func]

    def fn(t):
        return t.shape, t.dim(), t.inner * 2, t.device, t.dtype

    yield fn, Asked(X)
    yield fn, Asked(X, dispatch_sizes_strides_policy="sizes")
    yield fn, Asked(X, dispatch_device=True)
    yield fn, Asked(X)


@scenarios
def arguments_that_are_wrong():
    yield (lambda t: t.size(2)), Box(X)
    yield (lambda t: t.size(-3)), Box(X)
    yield (lambda t: t.size("a")), Box(X)
    yield (lambda t: t.size(True)), Box(X)
    yield (lambda t: t.size(0, 1)), Box(X)
    yield (lambda t: t.size(dim=1)), Box(X)
    yield (lambda t: t.stride(dim=-1)), Box(X)
    yield (lambda t: len(t)), Box(X, ())
    yield (lambda t: t.sizes), Box(X)


@scenarios.parametrize()
def test_read_as_in_plain_python(make):
    follow(make)


@pytest.mark.usefixtures("read_from_memory")
@pytest.mark.parametrize("make", (Box, Switched, lambda x: x.as_subclass(Named)), ids=("box", "switched", "ordinary"))
def test_no_break_and_one_version_for_each_shape(make):
    compiled = framegate.compile(everything, fullgraph=True)
    for _ in range(3):
        assert compiled(make(X)) == everything(make(X))
        assert compiled(make(X.t().contiguous())) == everything(make(X.t().contiguous()))
    assert len(framegate.cache_entries(compiled)) == 2
    assert any("size 4 instead of 2" in line for line in framegate.cache_entries(compiled)[-1].guards.explain(make(torch.ones(4, 3))))


@pytest.mark.usefixtures("read_from_memory")
def test_a_shape_of_the_class_is_no_fact_about_the_tensor():
    class Mine(Box):
        shape = property(lambda self: self.inner.shape[::-1])

    def fn(t):
        return t.shape

    compiled = framegate.compile(fn, fullgraph=True)
    assert compiled(Mine(X, (9, 9))) == (3, 2) == compiled(Mine(X, (8, 8, 8)))
    assert len(framegate.cache_entries(compiled)) == 1
