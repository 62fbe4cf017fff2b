"""Rows of torch keep their promises on the sample inputs that torch's own operator database has.

For each operation of the database that has a row: run it on a sample and again on the same sample with other data. Inputs stay as they are unless the
row says that they are written; the random state moves only under STATE; the result is no argument and shares no storage with one unless the row says
so; its metadata is the same for both data unless the row says that it depends on data.
"""

from __future__ import annotations

import copy
import functools
import itertools
import sys
import types
import warnings

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
core = pytest.importorskip("framegate._core")
from framegate import ops  # noqa: E402
from framegate.ops.row_spec import STATE, D, R, V, W  # noqa: E402

SAMPLES_PER_OP = 4


@functools.lru_cache(maxsize=1)
def database() -> list:
    """torch's operator database. Its module imports expecttest for a base class that is not used here."""
    if "expecttest" not in sys.modules:
        try:
            import expecttest  # noqa: F401
        except ImportError:
            import unittest

            sys.modules["expecttest"] = types.SimpleNamespace(TestCase=unittest.TestCase)
    try:
        from torch.testing._internal.common_methods_invocations import op_db
    except ImportError as error:
        pytest.skip(f"torch's operator database cannot be imported: {error}")
    return op_db


def targets() -> list[tuple[str, object, object]]:
    """(row name, callable, sample source), one for each function, method and in-place method of the database that has a row."""
    assert ops.ensure_torch()
    out = {}
    for info in database():
        for function in (info.op, info.method_variant, info.inplace_variant):
            row = None if function is None else core.op_info(function)
            if row is not None:
                out.setdefault(row["name"], (row["name"], function, info))
    return [out[name] for name in sorted(out)]


def tensors_in(value) -> list:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [t for item in value for t in tensors_in(item)]
    if isinstance(value, dict):
        return [t for item in value.values() for t in tensors_in(item)]
    return []


def metadata(value):
    if isinstance(value, torch.Tensor):
        return (tuple(value.shape), value.dtype, value.device, value.stride() if value.numel() else None)
    if isinstance(value, (tuple, list)):
        return tuple(metadata(v) for v in value)
    return type(value).__name__


def other_data(arguments):
    """The same structure with other values: floats anew, integers and bools rearranged, so that they stay in range."""
    fresh = copy.deepcopy(arguments)
    for tensor in tensors_in(fresh):
        with torch.no_grad():
            if tensor.is_floating_point() or tensor.is_complex():
                tensor.copy_(torch.randn_like(tensor) * 2)
            elif tensor.numel() > 1:
                tensor.copy_(tensor.flatten().roll(1).reshape(tensor.shape))
    return fresh


def roles_written(row: dict, args: tuple, kwargs: dict) -> set[int]:
    """ids of the argument tensors that the row lets the call write."""
    signature = row["signature"] or []
    written = set()
    positional = [p for p in signature if p[2] in ("positional", "both")]
    for argument, (_, role, _, _) in zip(args, positional, strict=False):
        if role in ("written", "out"):
            written |= {id(t) for t in tensors_in(argument)}
    for name, argument in kwargs.items():
        role = next((p[1] for p in signature if p[0] == name), None)
        if role in ("written", "out"):
            written |= {id(t) for t in tensors_in(argument)}
        if role == "inplace" and argument:
            written |= {id(t) for t in tensors_in(args[0])}
    if row["flags"] & W:
        written |= {id(t) for t in tensors_in(args[0])}
    return written


def is_refused_call(row: dict, args: tuple, kwargs: dict) -> bool:
    """The tracer does not capture this call: an unknown argument, or a fixed one with another value."""
    signature = row["signature"]
    if signature is None:
        return False
    positional = [p for p in signature if p[2] in ("positional", "both")]
    if len(args) > len(positional) and not any(p[2] == "rest" for p in signature):
        return True
    bound = list(zip(args, positional, strict=False)) + [(v, next((p for p in signature if p[0] == k), None)) for k, v in kwargs.items()]
    for value, param in bound:
        if param is None or (param[1] == "fixed" and value is not param[3]) or (param[1] == "constant" and tensors_in(value)):
            return True
    return False


def check(row: dict, function, args: tuple, kwargs: dict) -> list[str]:
    flags, problems = row["flags"], []
    if is_refused_call(row, args, kwargs):
        return []
    outcomes = []
    for values in ((args, kwargs), other_data((args, kwargs))):
        a, k = copy.deepcopy(values)
        inputs = tensors_in(a) + tensors_in(k)
        before = [t.detach().clone() for t in inputs]
        shapes = [metadata(t) for t in inputs]
        written = roles_written(row, a, k)
        state = torch.get_rng_state()
        try:
            result = function(*a, **k)
        except Exception as error:
            outcomes.append(("raises", error))
            continue
        outcomes.append(("returns", metadata(result)))
        if not flags & STATE and not torch.equal(state, torch.get_rng_state()):
            problems.append("uses the random generator")
        for tensor, old, shape in zip(inputs, before, shapes, strict=True):
            if metadata(tensor) != shape and not flags & core.OPF_CHANGES_META:
                problems.append("changes the metadata of an argument")
            elif id(tensor) not in written and not flags & core.OPF_CHANGES_META:
                if not torch.equal(torch.nan_to_num(tensor.detach()) if tensor.dtype != torch.bool else tensor,
                                   torch.nan_to_num(old) if old.dtype != torch.bool else old):
                    problems.append("writes an argument")
            is_result = any(t is tensor for t in tensors_in(result))
            if is_result and not flags & R and id(tensor) not in written and row["result"] != "self":
                problems.append("returns an argument")
            shares = any(t.numel() and tensor.numel() and t.untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr()
                         for t in tensors_in(result))
            if shares and not flags & V and id(tensor) not in written and row["result"] != "self":
                problems.append("shares storage with an argument")
        fits = {
            "tensor": isinstance(result, torch.Tensor), "tensors": isinstance(result, (tuple, list)), "none": result is None,
            "self": result is a[0], "scalar": not tensors_in(result), "meta": not tensors_in(result), "other": True,
        }[row["result"]]
        if not fits:
            problems.append(f"result {type(result).__name__} is not {row['result']}")
    if not flags & D and row["result"] != "scalar":
        returned = [o for kind, o in outcomes if kind == "returns"]
        if len(returned) == 2 and returned[0] != returned[1]:
            problems.append(f"metadata of the result depends on data: {returned}")
    if row["raises"] != "data" and len({kind for kind, _ in outcomes}) > 1:
        problems.append(f"raises by data: {[o for kind, o in outcomes if kind == 'raises'][0]!r}")
    return problems


def samples(info):
    dtype = torch.float32 if torch.float32 in info.supported_dtypes("cpu") else next(iter(sorted(info.supported_dtypes("cpu"), key=str)))
    return itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=False), SAMPLES_PER_OP)


def test_rows_keep_their_promises_on_torchs_samples():
    problems, n_calls = {}, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, function, info in targets():
            row = core.op_info(function)
            try:
                inputs = list(samples(info))
            except Exception:  # a generator of torch's own that needs another device or dtype
                continue
            for sample in inputs:
                arguments = (sample.input, *sample.args)
                if any(t.layout is not torch.strided for t in tensors_in(arguments)):
                    continue
                found = check(row, function, arguments, dict(sample.kwargs))
                n_calls += 1
                if found:
                    problems.setdefault(name, set()).update(found)
    assert n_calls > 800
    assert {name: sorted(found) for name, found in problems.items()} == {}


@pytest.mark.parametrize(
    ("function", "arguments", "changes"),
    [
        (torch.reshape, lambda: (torch.ones(2, 3), (3, 2)), {"flags": 0}),
        (torch.nonzero, lambda: (torch.tensor([0.0, 0.0, 1.0]),), {"flags": 0}),
        (torch.relu_, lambda: (-torch.ones(3),), {"flags": 0, "result": "tensor", "signature": None}),
        (torch.rand_like, lambda: (torch.ones(3),), {"flags": 0}),
        (torch.add, lambda: (torch.ones(3), torch.ones(3)), {"result": "tensors"}),
    ],
)
def test_a_row_that_lies_is_found(function, arguments, changes):
    assert ops.ensure_torch()
    row = core.op_info(function)
    assert check(row, function, arguments(), {}) == []
    assert check({**row, **changes}, function, arguments(), {}) != []


FUNCTIONAL_CALLS = [
    ("relu", lambda F, x: F.relu(x), False), ("relu in place", lambda F, x: F.relu(x, inplace=True), True),
    ("dropout in evaluation", lambda F, x: F.dropout(x, 0.5, False), False), ("silu in place", lambda F, x: F.silu(x, inplace=True), True),
]


@pytest.mark.parametrize(("label", "call", "writes"), FUNCTIONAL_CALLS, ids=[c[0] for c in FUNCTIONAL_CALLS])
def test_the_inplace_argument_of_functional_is_what_writes(label, call, writes):
    x = torch.linspace(-1, 1, 7)
    before = x.clone()
    result = call(torch.nn.functional, x)
    assert torch.equal(x, before) is not writes
    assert (result is x) is (writes or "evaluation" in label)


def test_batch_norm_writes_its_running_statistics():
    row = core.op_info(torch.nn.functional.batch_norm) if ops.ensure_torch() else None
    roles = {name: role for name, role, _, _ in row["signature"]}
    assert roles["running_mean"] == roles["running_var"] == "written"
    mean, var = torch.zeros(3), torch.ones(3)
    torch.nn.functional.batch_norm(torch.randn(4, 3), mean, var, training=True)
    assert not torch.equal(mean, torch.zeros(3))


def test_parameters_have_the_members_of_tensors_and_other_subclasses_have_not():
    assert ops.ensure_torch()

    class Tagged(torch.Tensor):
        pass

    assert core.member_info(torch.nn.Parameter, "view")["name"] == "Tensor.view"
    assert core.member_info(Tagged, "view") is None
