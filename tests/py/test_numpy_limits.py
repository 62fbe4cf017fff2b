"""np.finfo and np.iinfo in compiled functions: what they say of a dtype, as the same numbers and types."""

from __future__ import annotations

import numpy as np
import pytest
from support_engine import Cases, cap, check_case, entries, needs_engine

cases = Cases()
FLOATS = [(np.arange(4, dtype=dtype),) for dtype in (np.float64, np.float32, np.float16)]
INTEGERS = [(np.arange(4, dtype=dtype),) for dtype in (np.int64, np.int8, np.uint16)]


@cases(*FLOATS)
def safe(x):
    return x / (x.sum() + np.finfo(x.dtype).eps), np.maximum(x, np.finfo(x.dtype).tiny)


@cases(*FLOATS)
def all_that_it_says(x):
    f = np.finfo(x.dtype)
    return (f.eps, f.epsneg, f.max, f.min, f.resolution, f.smallest_normal, f.bits, f.dtype, f.precision, f.nmant, f.maxexp, type(f.eps), f is np.finfo(x.dtype))


@cases(*FLOATS)
def masked(x):
    return np.where(x > 1, np.finfo(x.dtype).min, x), np.full(3, np.finfo(x.dtype).max), -np.finfo(x.dtype).max


@cases(*FLOATS)
def overflows(x):
    with np.errstate(all="ignore"):
        return x * np.finfo(x.dtype).max * 2, np.finfo(float).max * 2, np.finfo("f4").eps * np.float32(2)


@cases(*INTEGERS)
def integers(x):
    i = np.iinfo(x.dtype)
    return i.max, i.min, i.bits, i.dtype, np.clip(x, i.min + 1, i.max - 1), x.astype(np.int64) + np.iinfo(np.int32).max


@cases(*FLOATS)
def decides(x):
    return x * 2 if np.finfo(x.dtype).bits > 32 else x + np.finfo(x.dtype).eps


@cases(*FLOATS)
def given_away(x):
    return np.finfo(x.dtype), [np.finfo(x.dtype)], str(np.finfo(x.dtype).dtype)


@cases(*FLOATS)
def missing(x):
    return hasattr(np.finfo(x.dtype), "nothing"), getattr(np.finfo(x.dtype), "nothing", 3)


@cases(*INTEGERS)
def of_the_wrong_kind(x):
    return np.finfo(x.dtype).eps


@cases.parametrize()
def test_as_plain_numpy(case):
    if case.fn is given_away:
        compiled = cap(given_away)
        for args in case.inputs:
            want, got = given_away(*args), compiled(*args)
            assert want[0] is got[0] and want[1][0] is got[1][0] and want[2] == got[2]
    else:
        check_case(case)


@needs_engine
@pytest.mark.parametrize("fn", [safe, all_that_it_says, masked, overflows, decides, integers])
def test_captured_whole_once_per_dtype(fn):
    import framegate

    inputs = INTEGERS if fn is integers else FLOATS
    assert framegate.explain(fn)(*inputs[0]).break_reasons == []
    compiled = cap(fn)
    for _ in range(2):
        for args in inputs:
            compiled(*args)
    assert entries(compiled) == 3
