"""Scenarios of the soundness tests: a function, a call, one change, the call again, and so on.

A scenario is a generator. Each `yield fn, *arguments` is one state of the world: the compiled function must answer as the function
itself does, several times over, so that what the engine has noted about the state is in force when the next change comes. Each function
is compiled twice: alone, and inlined behind reads that are enough for the guards of a call to be noted as a whole.
"""
from __future__ import annotations

import struct
import sys
from typing import Any, Callable

import numpy as np
import pytest
from support_engine import cap

CALLS = 4


class Pad:
    def __init__(self, depth: int) -> None:
        self.k = {"x": 1.5}
        self.next = Pad(depth - 1) if depth else None


PAD = Pad(5)


def padded(fn: Callable) -> Callable:
    def behind_reads(*args: Any) -> Any:
        return PAD.next.next.k["x"], PAD.next.k["x"], PAD.k["x"], fn(*args)

    return behind_reads


def plain_text(value: Any, depth: int = 4) -> Any:
    """What two answers are compared by: exact types, bits of floats, order of containers; objects by what they hold."""
    kind = type(value)
    if kind is float:
        return struct.pack("d", value).hex()
    if kind is complex:
        return struct.pack("dd", value.real, value.imag).hex()
    if isinstance(value, np.ndarray):
        return kind.__name__, str(value.dtype), value.shape, value.strides, value.tobytes()
    if kind in (tuple, list):
        return kind.__name__, [plain_text(item, depth) for item in value]
    if isinstance(value, dict):
        return kind.__name__, [(plain_text(key), plain_text(item)) for key, item in value.items()]
    if kind in (set, frozenset):
        return kind.__name__, sorted(map(repr, value))
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        data = value.detach().cpu().contiguous().double().numpy().tobytes() if value.device.type != "meta" else b""
        return kind.__name__, str(value.dtype), tuple(value.shape), value.stride(), value.requires_grad, value.is_inference(), str(value.device), data
    if isinstance(value, type) or callable(value):
        return "object", id(value)
    if kind.__repr__ is object.__repr__:
        return kind.__name__, [plain_text(item, depth - 1) for item in vars(value).items()] if depth and hasattr(value, "__dict__") else None
    return kind.__name__, repr(value)


def outcome(fn: Callable, args: tuple) -> Any:
    try:
        return plain_text(fn(*args))
    except Exception as error:
        return type(error).__name__, str(error)


class Scenarios(list):
    def __call__(self, make: Callable) -> Callable:
        self.append(make)
        return make

    def parametrize(self) -> Any:
        names = [make.__name__ for make in self]
        assert len(set(names)) == len(names)
        return pytest.mark.parametrize("make", self, ids=names)


def follow(make: Callable) -> None:
    made: dict[int, tuple] = {}
    states = make()
    try:
        for step, (fn, *args) in enumerate(states):
            if id(fn) not in made:
                made[id(fn)] = fn, cap(fn), cap(padded(fn))
            _, alone, inlined = made[id(fn)]
            first = outcome(fn, tuple(args)) if step % 2 else None
            for call in range(CALLS):
                got, behind = outcome(alone, tuple(args)), outcome(lambda *a: inlined(*a)[3], tuple(args))
                want = outcome(fn, tuple(args)) if first is None or call else first
                assert got == want, f"state {step}, call {call}: {got!r} instead of {want!r}"
                assert behind == want, f"state {step}, call {call}, inlined: {behind!r} instead of {want!r}"
    finally:
        states.close()
