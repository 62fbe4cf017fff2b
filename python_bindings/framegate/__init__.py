"""framegate: a guard-evaluation and frame-cache engine for CPython.

``framegate.compile(fn)`` gives a callable that keeps several specialised versions of ``fn``, decides at each call in tens of nanoseconds which one is still
valid, runs it, and makes a new one when none fits. It takes the place of ``torch.compile`` for PyTorch and does the same for other array libraries.

Start with `compile`; `explain` and `why` say what happened; `config` has the switches; ``python -m framegate doctor`` looks at the installation.
"""

from __future__ import annotations

from framegate import _interpreter  # noqa: F401  first: it says what is wrong where the extension is for another interpreter

# isort: split
from framegate import _compile as _compile_module
from framegate import _core, backends, config, exc, logs
from framegate import ops as _ops  # noqa: F401  registers NumPy's operations
from framegate._compile import compile  # noqa: A004
from framegate._core import Graph
from framegate._entries import CacheEntry, GuardTree, cache_entries
from framegate._explain import Explanation, explain, why
from framegate._intercept import intercept
from framegate._rules import (
    allow_in_graph,
    assume_constant_result,
    disallow_in_graph,
    forbid_in_graph,
    graph_break,
    is_compiling,
    substitute_in_graph,
)
from framegate._stance import disable, run, set_stance, skip
from framegate._stats import reset, stats

_core.set_gate_reducer(_compile_module._reduce_gate)

__version__: str = _core.__version__

__all__ = [
    "CacheEntry",
    "Explanation",
    "Graph",
    "GuardTree",
    "allow_in_graph",
    "assume_constant_result",
    "backends",
    "cache_entries",
    "compile",
    "config",
    "disable",
    "disallow_in_graph",
    "exc",
    "explain",
    "forbid_in_graph",
    "graph_break",
    "intercept",
    "is_compiling",
    "logs",
    "reset",
    "run",
    "set_stance",
    "skip",
    "stats",
    "substitute_in_graph",
    "testing",
    "why",
]


def __getattr__(name: str) -> object:
    # unittest, which testing needs, is a tenth of the time limit of the import.
    if name == "testing":
        import importlib

        return importlib.import_module("framegate.testing")
    raise AttributeError(f"module 'framegate' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
