"""Every public function, method and attribute of NumPy and torch has a row or a reason why it has none, never both for the same callable."""

from __future__ import annotations

import inspect
import types

import numpy as np
import pytest

core = pytest.importorskip("framegate._core")
from framegate import ops  # noqa: E402
from framegate.ops.refused import REFUSED, refusal  # noqa: E402


def public_names(owner) -> list[str]:
    return [name for name in sorted(dir(owner)) if not name.startswith("_")]


def is_plain_class(value) -> bool:
    """Classes are no functions; the scalar types of NumPy are callables of interest and are looked at by name."""
    return inspect.isclass(value) and not issubclass(value, np.generic)


@pytest.mark.parametrize(("owner", "prefix"), [(np, "numpy"), (np.linalg, "numpy.linalg"), (np.fft, "numpy.fft"), (np.random, "numpy.random")])
def test_every_numpy_function_has_a_row_or_a_reason(owner, prefix):
    missing = []
    for name in public_names(owner):
        value = getattr(owner, name)
        if not callable(value) or isinstance(value, types.ModuleType):
            continue
        if core.op_info(value) is None and refusal(f"{prefix}.{name}") is None:
            missing.append(name)
    assert missing == []


def test_every_ndarray_member_has_a_row_or_a_reason():
    missing = [n for n in public_names(np.ndarray) if core.member_info(np.ndarray, n) is None and refusal(f"ndarray.{n}") is None]
    assert missing == []


@pytest.mark.torch
def test_every_torch_function_has_a_row_or_a_reason():
    torch = pytest.importorskip("torch")
    assert ops.ensure_torch()
    owners = {
        "torch": torch, "torch.nn.functional": torch.nn.functional, "torch.linalg": torch.linalg, "torch.fft": torch.fft,
        "torch.special": torch.special,
    }
    missing = []
    for prefix, owner in owners.items():
        for name in public_names(owner):
            value = getattr(owner, name)
            if not callable(value) or isinstance(value, types.ModuleType) or is_plain_class(value) or isinstance(value, torch.dtype):
                continue
            is_typing = getattr(value, "__module__", "") in ("typing", "collections.abc")
            if not is_typing and core.op_info(value) is None and refusal(f"{prefix}.{name}") is None:
                missing.append(f"{prefix}.{name}")
    assert missing == []


@pytest.mark.torch
def test_every_tensor_member_has_a_row_or_a_reason():
    torch = pytest.importorskip("torch")
    assert ops.ensure_torch()
    names = public_names(torch.Tensor)
    missing = [n for n in names if core.member_info(torch.Tensor, n) is None and refusal(f"Tensor.{n}") is None]
    assert missing == []


def test_no_refused_numpy_function_has_a_row():
    both = []
    for owner, prefix in ((np, "numpy"), (np.linalg, "numpy.linalg"), (np.fft, "numpy.fft"), (np.random, "numpy.random")):
        for name in public_names(owner):
            row = core.op_info(getattr(owner, name))
            if row is not None and row["name"] == f"{prefix}.{name}" and refusal(f"{prefix}.{name}"):
                both.append(row["name"])
    assert both == []


def test_refusals_name_a_reason_once():
    reasons = [reason for reason, _ in REFUSED]
    assert len(reasons) == len(set(reasons))
