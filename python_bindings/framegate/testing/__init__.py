"""Helpers for tests of code that uses framegate. The counting backends have the names and attributes of those in ``torch._dynamo.testing``."""

from __future__ import annotations

import difflib
import inspect
import math
import os
import re
import unittest
from collections.abc import Callable, Sequence
from typing import Any

from framegate import backends, config

__all__ = [
    "CompileCounter",
    "CompileCounterWithBackend",
    "EagerAndRecordGraphs",
    "TestCase",
    "assert_expected_inline",
    "normalize_graph",
    "same",
]


def _op_count(graph: Any) -> int:
    nodes = graph.graph.nodes  # an FX module's graph; a framegate.Graph is its own
    return sum(node.op.startswith("call_") or node.op == "get_attr" and bool(node.args) for node in nodes)


def _eager(graph: Any) -> Callable[..., Any]:
    return getattr(graph, "forward", graph)


class CompileCounter:
    """A backend that runs graphs as they are and counts: ``frame_count`` graphs compiled, ``op_count`` operations in them."""

    def __init__(self) -> None:
        self.frame_count = 0
        self.op_count = 0

    def __call__(self, graph: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        self.frame_count += 1
        self.op_count += _op_count(graph)
        return _eager(graph)

    def clear(self) -> None:
        """Count from zero again."""
        self.frame_count = 0
        self.op_count = 0


class CompileCounterWithBackend(CompileCounter):
    """A `CompileCounter` that hands graphs on to another backend and keeps them in ``graphs``."""

    def __init__(self, backend: str | backends.Backend) -> None:
        super().__init__()
        self.backend = backend
        self.graphs: list[Any] = []

    def __call__(self, graph: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        self.frame_count += 1
        self.op_count += _op_count(graph)
        self.graphs.append(graph)
        inner = backends.lookup(self.backend)
        if inner is backends.eager:
            return _eager(graph)
        return inner(graph, example_inputs)

    def clear(self) -> None:
        """Count from zero again and forget the graphs."""
        super().clear()
        self.graphs.clear()


class EagerAndRecordGraphs:
    """A backend that runs graphs as they are and keeps them, in order, in ``graphs``."""

    def __init__(self) -> None:
        self.graphs: list[Any] = []

    def __call__(self, graph: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        self.graphs.append(graph)
        return _eager(graph)


def normalize_graph(graph: Any) -> str:
    """The graph's code without what changes from run to run: comments, blank lines, addresses, paths. For comparison with an inline snapshot.

    Takes a `framegate.Graph`, a ``torch.fx.GraphModule``, or the text that their ``print_readable`` gives.
    """
    text = graph if isinstance(graph, str) else graph.print_readable(print_output=False)
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    lines = []
    for line in text.splitlines():
        line = re.sub(r"(^|\s)#.*$", "", line).rstrip()
        line = re.sub(r"0x[0-9a-f]{6,}", "0x…", line)
        if line:
            lines.append(line)
    return "\n".join(lines) + "\n"


def same(a: Any, b: Any, *, tol: float = 0.0, equal_nan: bool = True) -> bool:
    """True if two results are of the same types and hold the same values, to the bit unless ``tol`` (absolute and relative) is positive.

    Looks into tuples, lists, dicts (order included), sets, dataclass-like objects with a plain ``__dict__``, arrays and tensors (dtype and shape too).
    ``equal_nan``: NaNs at the same place are the same.
    """
    return _same(a, b, tol, equal_nan, set())


def _same(a: Any, b: Any, tol: float, equal_nan: bool, seen: set[tuple[int, int]]) -> bool:
    if type(a) is not type(b):
        return False
    key = (id(a), id(b))
    if key in seen:
        return True
    if isinstance(a, float):
        return _same_float(a, b, tol, equal_nan)
    if isinstance(a, complex):
        return _same_float(a.real, b.real, tol, equal_nan) and _same_float(a.imag, b.imag, tol, equal_nan)
    if isinstance(a, (int, str, bytes, type(None))):
        return bool(a == b)
    seen.add(key)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(_same(x, y, tol, equal_nan, seen) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return (
            len(a) == len(b)
            and all(_same(x, y, tol, equal_nan, seen) for x, y in zip(a, b, strict=True))
            and all(_same(x, y, tol, equal_nan, seen) for x, y in zip(a.values(), b.values(), strict=True))
        )
    module = type(a).__module__.partition(".")[0]
    if module == "numpy" and hasattr(a, "dtype"):
        return _same_array(a, b, tol, equal_nan)
    if hasattr(a, "detach") and hasattr(a, "layout"):
        return _same_tensor(a, b, tol, equal_nan)
    if isinstance(a, (set, frozenset)):
        return bool(a == b)
    if type(a).__eq__ is object.__eq__ and hasattr(a, "__dict__"):
        return a is b or _same(a.__dict__, b.__dict__, tol, equal_nan, seen)
    return bool(a == b)


def _same_float(a: float, b: float, tol: float, equal_nan: bool) -> bool:
    if math.isnan(a) or math.isnan(b):
        return equal_nan and math.isnan(a) and math.isnan(b)
    if tol > 0:
        return math.isclose(a, b, rel_tol=tol, abs_tol=tol)
    return a == b and math.copysign(1.0, a) == math.copysign(1.0, b)


def _same_array(a: Any, b: Any, tol: float, equal_nan: bool) -> bool:
    import numpy as np

    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype == object or a.dtype.names is not None:
        return bool(np.array_equal(a, b))
    inexact = a.dtype.kind in "fc"
    if tol > 0 and inexact:
        return bool(np.allclose(a, b, rtol=tol, atol=tol, equal_nan=equal_nan))
    if not np.array_equal(a, b, equal_nan=equal_nan and inexact):
        return False
    if not inexact:
        return True
    sign = [(np.signbit(x.real), np.signbit(x.imag)) for x in (np.where(a == a, a, 0), np.where(b == b, b, 0))]
    return bool(np.array_equal(sign[0][0], sign[1][0]) and np.array_equal(sign[0][1], sign[1][1]))


def _same_tensor(a: Any, b: Any, tol: float, equal_nan: bool) -> bool:
    import torch

    if a.dtype != b.dtype or a.shape != b.shape or a.device != b.device or a.requires_grad != b.requires_grad:
        return False
    a, b = a.detach(), b.detach()
    if a.is_complex():
        return _same_tensor(torch.view_as_real(a), torch.view_as_real(b), tol, equal_nan)
    if tol > 0 and a.is_floating_point():
        return bool(torch.allclose(a, b, rtol=tol, atol=tol, equal_nan=equal_nan))
    if not a.is_floating_point():
        return bool(torch.equal(a, b))
    nan_a, nan_b = a != a, b != b
    if not torch.equal(nan_a, nan_b) or (not equal_nan and bool(nan_a.any())):
        return False
    zero = torch.zeros((), dtype=a.dtype, device=a.device)
    a, b = torch.where(nan_a, zero, a), torch.where(nan_b, zero, b)
    return bool(torch.equal(a, b) and torch.equal(torch.signbit(a), torch.signbit(b)))


class TestCase(unittest.TestCase):
    """A unittest case that starts and ends with no cache entries, and in which a fault of framegate is an error instead of a warning."""

    def setUp(self) -> None:
        import framegate

        super().setUp()
        framegate.reset()
        strict = config.patch(strict_errors=True)
        strict.__enter__()
        self.addCleanup(framegate.reset)
        self.addCleanup(strict.__exit__, None, None, None)

    def assertSame(self, first: Any, second: Any, *, tol: float = 0.0) -> None:  # noqa: N802  (unittest's style)
        """Fail unless `same` holds."""
        if not same(first, second, tol=tol):
            self.fail(f"{first!r} is not the same as {second!r}")

    def assertExpectedInline(self, actual: str, expected: str) -> None:  # noqa: N802
        """As `assert_expected_inline`."""
        assert_expected_inline(actual, expected, _depth=2)


# --- inline snapshots ---------------------------------------------------------------------------------------------------------------------

#: Texts that were replaced in this process: (file, line of the original) -> lines added, so that later ones in the file are still found.
_moved: dict[str, list[tuple[int, int]]] = {}


def assert_expected_inline(actual: str, expected: str, *, _depth: int = 1) -> None:
    '''Compare a text with a literal in the test: ``assert_expected_inline(graph.code, """\\\\\n…""")``.

    With ``FRAMEGATE_ACCEPT=1`` in the environment (or ``EXPECTTEST_ACCEPT``) a literal that differs is rewritten in the test's file. The idea is that of the
    package expecttest. The literal must be the last argument of the call. AssertionError, with a diff, if they differ.
    '''
    if actual == expected:
        return
    if os.environ.get("FRAMEGATE_ACCEPT", os.environ.get("EXPECTTEST_ACCEPT", "")) not in ("", "0"):
        frame = inspect.currentframe()
        for _ in range(_depth):
            frame = frame.f_back if frame is not None else None
        if frame is not None:
            _accept(frame.f_code.co_filename, frame.f_lineno, expected, actual)
            return
    diff = "".join(difflib.unified_diff(expected.splitlines(True), actual.splitlines(True), "expected", "actual"))
    raise AssertionError(f"the text differs from the snapshot; FRAMEGATE_ACCEPT=1 rewrites it\n{diff}")


def _accept(filename: str, line: int, expected: str, actual: str) -> None:
    """Replace the literal that is the last argument of the call at ``line`` (as numbered when the module was loaded)."""
    import ast

    with open(filename, encoding="utf-8") as file:
        source = file.read()
    at = line + sum(added for original, added in _moved.get(filename, []) if original < line)
    for call in ast.walk(ast.parse(source)):
        if not (isinstance(call, ast.Call) and call.args and call.lineno <= at <= (call.end_lineno or call.lineno)):
            continue
        literal = call.args[-1]
        if not (isinstance(literal, ast.Constant) and literal.value == expected):
            continue
        lines = source.splitlines(True)
        start = _offset(lines, literal.lineno, literal.col_offset)
        end = _offset(lines, literal.end_lineno or literal.lineno, literal.end_col_offset or 0)
        text = _literal(actual)
        with open(filename, "w", encoding="utf-8") as file:
            file.write(source[:start] + text + source[end:])
        _moved.setdefault(filename, []).append((line, text.count("\n") - source[start:end].count("\n")))
        return
    raise AssertionError(f"{filename}:{line}: found no literal to rewrite; the snapshot must be a plain string, the last argument of the call")


def _offset(lines: list[str], line: int, column: int) -> int:
    """ast counts columns in bytes of UTF-8."""
    before = sum(len(text) for text in lines[: line - 1])
    return before + len(lines[line - 1].encode()[:column].decode())


def _literal(text: str) -> str:
    body = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if body.endswith('"'):
        body = body[:-1] + '\\"'
    return f'"""\\\n{body}"""' if "\n" in body else f'"""{body}"""'
