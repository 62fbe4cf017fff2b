"""Inputs that share memory, of which a graph for a compiler changes one: views of one storage, and storages that somebody else gave one memory."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import framegate  # noqa: E402
from framegate._core import GuardDesc, GuardProgram, read  # noqa: E402

pytestmark = pytest.mark.torch


def of_array(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(array)


# Two tensors of four floats: name -> make, and whether they have a byte in common.
PAIRS = {
    "separate": (lambda base, array: (base[:4].clone(), base[8:12].clone()), False),
    "one tensor": (lambda base, array: (base[:4],) * 2, True),
    "one view twice": (lambda base, array: (base[:4], base[:4]), True),
    "views that overlap": (lambda base, array: (base[:4], base[2:6]), True),
    "views apart": (lambda base, array: (base[:4], base[8:12]), False),
    "views interleaved": (lambda base, array: (base[0:8:2], base[1:8:2]), None),
    "detached": (lambda base, array: (base[:4], base[:4].detach()), True),
    "storages of one array": (lambda base, array: (of_array(array), of_array(array)), True),
    "storages of parts that overlap": (lambda base, array: (of_array(array[:4]), of_array(array[2:6])), True),
    "storages of parts apart": (lambda base, array: (of_array(array[:4]), of_array(array[4:8])), False),
    "storages of one buffer": (lambda base, array: (torch.frombuffer(array, dtype=torch.float32, count=4), of_array(array[:4])), True),
    "storage of another's, by DLPack": (lambda base, array: (base[:4], torch.from_dlpack(base.numpy())[2:6]), True),
    "lazy copy": (lambda base, array: (base[:4], torch._lazy_clone(base)[:4]), None),
}


def adds(a, b):
    a.add_(1)
    return b * 2


def augments(a, b):
    a += 1
    b *= 3
    return a + b


def through_a_view(a, b):
    a[1:].add_(3)
    return b + 1


def copies(a, b):
    a.copy_(b + 1)
    return b + a


def stores(a, b):
    b[0] = 5.0
    return a.sum()


def pair(name):
    base, array = torch.arange(16.0), np.arange(8, dtype=np.float32)
    a, b = PAIRS[name][0](base, array)
    return a[:4], b[:4]


def outcome(fn, name):
    a, b = pair(name)
    try:
        result = fn(a, b).tolist()
    except RuntimeError as error:
        result = str(error)
    return result, a.tolist(), b.tolist()


@pytest.mark.parametrize("fn", [adds, augments, through_a_view, copies, stores])
@pytest.mark.parametrize("backend", ["torch:eager", "aot_eager"])
def test_a_call_is_as_plain_python_whatever_came_before(fn, backend):
    with framegate.config.patch(strict_errors=True):
        for first, second in itertools.permutations(PAIRS, 2):
            compiled = framegate.compile(fn, backend=backend)
            for name in (first, second, first):
                assert outcome(compiled, name) == outcome(fn, name), (first, second, name)


def relation(kind, values) -> GuardDesc:
    desc = GuardDesc()
    sources = tuple(desc.source("arg", -1, None, i) for i in range(len(values)))
    for source, value in zip(sources, values):
        desc.guard("tensor", source, value)
    desc.relation(kind, sources)
    return desc


@pytest.mark.parametrize("name", [name for name in PAIRS if name != "one tensor"])
def test_conditions_on_memory_see_what_is_shared(name):
    values, shares = pair(name), PAIRS[name][1]
    one_storage = read(values[0])["storage"] == read(values[1])["storage"]
    apart, distinct = relation("memory_apart", values), relation("storage_distinct", values)
    if shares is not None:
        assert apart.check(values) is not shares
    if one_storage or shares:
        assert not distinct.check(values)
    for desc in (apart, distinct):
        assert (GuardProgram([desc]).alive(values) == 1) is desc.check(values) is (desc.explain(values) == [])
        assert GuardDesc.from_text(desc.to_text()).check(values) is desc.check(values)


def test_storages_without_memory_are_told_by_what_they_are():
    empty, meta = torch.empty(0), torch.empty(3, device="meta")
    values = (empty, torch.empty(0), meta, torch.empty(3, device="meta"))
    assert relation("storage_distinct", values).check(values) and relation("memory_apart", values).check(values)
    assert not relation("storage_distinct", (meta, meta.view(3))).check((meta, meta.view(3)))
    assert not relation("memory_apart", (meta, meta.view(3))).check((meta, meta.view(3)))
    assert relation("memory_apart", (empty, empty.view(0))).check((empty, empty.view(0)))


@pytest.mark.parametrize("n", [2, 6, 7, 300])
def test_many_storages_of_which_two_share_memory(n):
    array = np.zeros((n, 4), np.float32)
    apart = tuple(of_array(row) for row in array)
    desc = {kind: relation(kind, apart) for kind in ("storage_distinct", "memory_apart")}
    for one, other in ((0, n - 1), (n - 1, 0), (0, n // 2)):
        shared = list(apart)
        shared[other] = of_array(array[one])
        for kind, made in desc.items():
            assert made.check(apart)
            assert not made.check(tuple(shared)) and GuardProgram([made]).alive(tuple(shared)) == 0
            low, high = sorted((one, other))
            assert f": arg[{low}] and arg[{high}]" in made.explain(tuple(shared))[0], kind


def test_the_break_says_what_to_do():
    a = torch.zeros(8)
    reasons = framegate.explain(adds)(a[:4], a[2:6]).break_reasons
    assert [reason.gb_type for reason in reasons] == ["inputs that may share memory"] and "copy" in reasons[0].hints[0]
