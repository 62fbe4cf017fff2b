"""A tensor type whose DLPack function runs Python: its conditions are evaluated with everything held, and what the rest was found to be is found again."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import textwrap
import weakref

import pytest

framegate = pytest.importorskip("framegate")
from framegate._core import GuardDesc, GuardProgram  # noqa: E402


class Dtype(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_index", ctypes.c_int32), ("ndim", ctypes.c_int32), ("dtype", Dtype),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]


DESCRIBE = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))


class Table(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p), ("allocate", ctypes.c_void_p),
        ("managed_from_object", ctypes.c_void_p), ("managed_to_object", ctypes.c_void_p), ("tensor_from_object", DESCRIBE), ("work_stream", ctypes.c_void_p),
    ]


KEPT = []  # what C holds addresses of


def tensor_type(function=None) -> type:
    """A new class of tensors; `shape` is the metadata, `asked` is called before it is told. Or another C function tells it."""

    class Loud:
        asked = staticmethod(lambda self: None)

        def __init__(self, *shape: int) -> None:
            self.shape = shape
            self.words = (ctypes.c_int64 * 8)(*shape)

    def describe(self: Loud, out) -> int:
        self.asked(self)
        out.contents.device_type, out.contents.ndim, out.contents.dtype = 1, len(self.shape), Dtype(2, 32, 1)
        out.contents.shape = ctypes.cast(self.words, ctypes.POINTER(ctypes.c_int64))
        out.contents.data, out.contents.byte_offset = getattr(self, "data", None), getattr(self, "byte_offset", 0)
        if hasattr(self, "steps"):
            out.contents.strides = ctypes.cast(self.steps, ctypes.POINTER(ctypes.c_int64))
        return 0

    table = Table(major=1, tensor_from_object=function or DESCRIBE(describe))
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    name = ctypes.create_string_buffer(b"dlpack_exchange_api")
    KEPT.extend([table, name])
    Loud.__dlpack_c_exchange_api__ = new(ctypes.addressof(table), ctypes.addressof(name), None)
    assert type(Loud.__dlpack_c_exchange_api__).__name__ == "PyCapsule"
    return Loud


def false_tensor():
    """The C function is PyObject_IsTrue: it runs `__bool__` and says -1 where that raises; a false object is a tensor without dimensions."""
    kind = tensor_type(ctypes.cast(ctypes.pythonapi.PyObject_IsTrue, DESCRIBE))
    kind.__bool__ = lambda self: False
    return kind


class Box:
    pass


def looks(box, kind):
    return isinstance(box.x, kind), box.y + 1, box.z


def box_of(kind, *shape):
    box = Box()
    box.x, box.y, box.z = kind(*shape), 5, ("z", 1)
    return box


def test_it_is_guarded_by_its_metadata():
    kind, gate = tensor_type(), framegate.compile(looks)
    for shape in ((2, 3), (2, 3), (4,), (2, 3)):
        assert gate(box_of(kind, *shape), kind) == (True, 6, ("z", 1))
    assert "dlpack" in str(framegate._core.tensor_layers().values())


def placed(kind, data, *shape, steps=None, byte_offset=0):
    tensor = kind(*shape)
    tensor.data, tensor.byte_offset = data, byte_offset
    if steps is not None:
        tensor.steps = (ctypes.c_int64 * 8)(*steps)
    return tensor


def relation(kind, types, node_types=None):
    made = GuardDesc()
    nodes = tuple(made.source("arg", index=i) for i in range(len(types)))
    for node, tensor_kind in zip(nodes, types):
        made.guard("type_is", node, tensor_kind)
    made.relation(kind, nodes)
    return made


def test_memory_is_compared_by_the_bytes_that_the_function_tells():
    kind, base = tensor_type(), 1 << 20
    apart = relation("memory_apart", (kind, kind))
    one = placed(kind, base, 4)  # 16 bytes
    for other, want in (
        (placed(kind, base + 16, 4), True), (placed(kind, base + 15, 4), False), (placed(kind, base - 16, 4), True), (placed(kind, base - 15, 4), False), (one, False),
        (placed(kind, base, 4, byte_offset=16), True), (placed(kind, base, 4, byte_offset=8), False), (placed(kind, base + 4, 0), True), (placed(kind, base + 28, 4, steps=(-1,)), True),
        (placed(kind, base + 24, 4, steps=(-1,)), False), (placed(kind, base - 36, 4, steps=(3,)), False), (placed(kind, base - 40, 4, steps=(3,)), True),
        (placed(kind, base + 16, 2**62), False), (placed(kind, None, 4), True),
    ):
        assert apart.check((one, other)) is want and (apart.explain((one, other)) == []) is want, vars(other)
        assert GuardProgram([apart]).eval((other, one))[0] == ("hit" if want else "miss")
    assert not relation("storage_distinct", (kind, kind)).check((one, placed(kind, base + 16, 4)))


def test_memory_of_two_libraries_is_not_compared():
    import numpy as np

    kind, array = tensor_type(), np.ones(4)
    for relation_kind in ("memory_apart", "storage_distinct"):
        made = relation(relation_kind, (np.ndarray, kind))
        assert not made.check((array, placed(kind, array.ctypes.data, 4))) and not made.check((array, placed(kind, 1 << 20, 4)))
        assert "cannot be told from the others" in made.explain((array, placed(kind, 1 << 20, 4)))[0] or "no storage that can be told" in made.explain((array, placed(kind, 1 << 20, 4)))[0]
        assert relation(relation_kind, (np.ndarray, np.ndarray)).check((array, np.ones(4)))


def test_an_exception_while_memory_is_asked_leaves_the_check():
    kind = false_tensor()
    made = relation("memory_apart", (kind, kind))
    one, other = kind(), kind()
    assert made.check((one, one))  # elements of no bits take no bytes
    for error, leaves in ((ValueError, False), (KeyboardInterrupt, True), (MemoryError, True)):
        def fail(self, error=error):
            raise error
        kind.__bool__ = fail
        for ask in (lambda: made.check((one, other)), lambda: GuardProgram([made]).eval((one, other))[0] == "hit"):
            if leaves:
                with pytest.raises(error):
                    ask()
            else:
                assert ask() is False


def test_what_the_function_changes_is_seen_by_the_guards_that_were_asked_before():
    kind, gate = tensor_type(), framegate.compile(looks)
    box = box_of(kind, 2)
    for i in range(3):
        assert gate(box, kind)[1] == box.y + 1

    def change(self):
        box.y, box.z = 2.5, ["new"]
        gc.collect()

    kind.asked = staticmethod(change)
    for i in range(4):
        box.y, box.z = 5, ("z", i)
        result = gate(box, kind)
        # Before the function ran or after: never a mixture, never something that is gone.
        assert result in ((True, 6, ("z", i)), (True, 3.5, ["new"])), result


def test_the_tensor_itself_goes_away_while_it_is_asked():
    kind, gate = tensor_type(), framegate.compile(looks)
    box = box_of(kind, 2)
    assert gate(box, kind)[0]

    def replace(self):
        box.x = 7
        gc.collect()

    for i in range(4):
        box.x = kind(2)
        gone = weakref.ref(box.x)
        kind.asked = staticmethod(replace)
        assert gate(box, kind)[0] in (True, False)
        kind.asked = staticmethod(lambda self: None)
        assert gate(box, kind)[0] is False and gone() is None


def test_the_function_calls_the_gate_and_resets():
    kind, gate = tensor_type(), framegate.compile(looks)
    box, calm = box_of(kind, 2), tensor_type()
    seen = []

    def again(self):
        if len(seen) < 40:
            seen.append(gate(box_of(calm, 1), calm))
            seen.append(gate(box, kind))
            framegate.reset()

    assert gate(box, kind)[0]
    kind.asked = staticmethod(again)
    for i in range(4):
        assert gate(box, kind) == (True, 6, ("z", 1))
    assert set(seen) == {(True, 6, ("z", 1))}


@pytest.mark.parametrize("error, leaves", [(ValueError, False), (KeyboardInterrupt, True), (SystemExit, True), (MemoryError, True)])
def test_what_it_raises(error, leaves):
    kind = false_tensor()
    desc = GuardDesc()
    desc.guard("tensor", desc.source("arg"), kind())
    program = GuardProgram([desc])
    call = {"args": (kind(),)}
    assert program.eval(**call)[0] == "hit"

    def fails(self):
        raise error("from the library")

    kind.__bool__ = fails
    for _ in range(3):
        if leaves:
            with pytest.raises(error):
                program.eval(**call)
        else:
            assert program.eval(**call)[0] == "miss"
    kind.__bool__ = lambda self: False
    assert program.eval(**call)[0] == "hit"


def computed(kind, text="ndim0 0 =="):
    desc = GuardDesc()
    node = desc.source("arg")
    desc.guard("type_is", node, kind)
    desc.relation("holds", (node,), expression=text)
    return desc


def test_computed_conditions_ask_it_too():
    kind = tensor_type()
    desc = computed(kind, "size0.0 2 % 0 ==")
    program, pair = GuardProgram([desc]), GuardProgram([desc, computed(kind, "size0.0 3 % 0 ==")])
    for n, want in ((2, 0), (3, 1), (6, 0), (7, None)):
        assert desc.check((kind(n),)) is (n % 2 == 0) is (desc.explain((kind(n),)) == [])
        assert program.eval(args=(kind(n),))[0] == ("hit" if n % 2 == 0 else "miss")
        got = pair.eval(args=(kind(n),))
        assert got[0] == "miss" if want is None else got[:2] == ("hit", want)
    assert program.eval(args=(kind(),))[0] == "miss"


@pytest.mark.parametrize("error, leaves", [(ValueError, False), (KeyboardInterrupt, True), (SystemExit, True), (MemoryError, True)])
def test_what_it_raises_in_a_computed_condition(error, leaves):
    kind = false_tensor()
    desc = computed(kind)
    program = GuardProgram([desc])
    assert program.eval(args=(kind(),))[0] == "hit"

    def fails(self):
        raise error("from the library")

    kind.__bool__ = fails
    for ask in (lambda: program.eval(args=(kind(),))[0] == "hit", lambda: desc.check((kind(),)), lambda: desc.explain((kind(),)) == []):
        if leaves:
            with pytest.raises(error, match="from the library"):
                ask()
        else:
            assert ask() is False
    kind.__bool__ = lambda self: False
    assert program.eval(args=(kind(),))[0] == "hit"


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, ValueError])
def test_what_it_raises_to_those_who_read_it(error):
    kind = false_tensor()

    def fails(self):
        raise error("from the library")

    kind.__bool__ = fails
    with pytest.raises(error if error is not ValueError else (ValueError, TypeError)):
        framegate._core.read(kind())
    desc = GuardDesc()
    with pytest.raises(error if error is not ValueError else TypeError):
        desc.guard("tensor", desc.source("arg"), kind())


def test_one_tensor_changes_another_while_it_is_asked():
    kind = tensor_type()
    desc = GuardDesc()
    first, second = (desc.source("arg", index=i) for i in range(2))
    for node in (first, second):
        desc.guard("tensor", node, kind(2))
    program = GuardProgram([desc])
    a, b = kind(2), kind(2)
    assert program.eval(args=(a, b))[0] == "hit"

    def change(self):
        if self is b:
            a.shape = (2, 2)
            a.words[1] = 2

    kind.asked = staticmethod(change)
    assert program.eval(args=(a, b))[0] == "miss" and not desc.check((kind(2), kind(3)))


def test_it_is_asked_once_where_nothing_else_runs_python():
    kind = tensor_type()
    desc = GuardDesc()
    desc.guard("tensor", desc.source("arg"), kind(2))
    program, asked = GuardProgram([desc]), []
    kind.asked = staticmethod(asked.append)
    tensor = kind(2)
    assert program.eval(args=(tensor,))[0] == "hit" and asked == [tensor]


TORCH = """
    import gc, torch
    from framegate._core import GuardDesc, GuardProgram, tensor_layers
    assert tensor_layers()["torch"] == {layer!r}, tensor_layers()
    base = torch.arange(12.0)

    def desc(kind, **more):
        made = GuardDesc()
        nodes = tuple(made.source("arg", index=i) for i in range(2))
        for node in nodes:
            made.guard("type_is", node, torch.Tensor)
        made.relation(kind, nodes, **more)
        return made

    def agrees(made, args, want):
        assert made.check(args) is want, (made, args)
        assert (made.explain(args) == []) is want
        assert (GuardProgram([made]).eval(args=args)[0] == "hit") is want
        assert GuardProgram([desc("same"), made]).eval(args=args)[0] == ("hit" if want else "miss")

    apart, overlap, others = (base[:6], base[6:]), (base[:7], base[6:]), (base, torch.ones(3))
    for kind, wants in (("storage_distinct", (False, False, True)), ("memory_apart", (True, False, True))):
        for args, want in zip((apart, overlap, others), wants):
            agrees(desc(kind), args, want)
    offsets = desc("holds", expression="offset1 offset0 - 24 == size0.0 6 == and")
    agrees(offsets, apart, True)
    agrees(offsets, overlap, False)
    made = GuardDesc()
    made.guard("tensor", made.source("arg"), base)
    assert made.check((torch.ones(12),)) and not made.check((torch.ones(13),)) and GuardProgram([made]).eval(args=(base,))[0] == "hit"
"""


@pytest.mark.parametrize("layer", ["raw", "cabi", "harvest", "python"])
def test_relations_over_torch_tensors_in_every_layer(layer):
    pytest.importorskip("torch")
    path = os.path.dirname(os.path.dirname(framegate.__file__))
    environ = {**os.environ, "PYTHONPATH": path + os.pathsep + os.environ.get("PYTHONPATH", ""), "FRAMEGATE_TORCH_LAYER": layer}
    code = textwrap.dedent(TORCH.format(layer=layer))
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
