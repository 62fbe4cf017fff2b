"""Which callables, methods and attributes are tensor operations: NumPy's at import, torch's when the process has torch and the tracer meets it.

Importing this package registers the rows. ``ensure_torch()`` registers those of torch; the registry calls it by itself when it is asked for a
callable it does not know while torch is loaded.
"""

from __future__ import annotations

import sys

from framegate import _core

from . import numpy_ops, operator_ops

__all__ = ["ensure_torch"]

_torch_done = False


def ensure_torch() -> bool:
    """Register torch's rows if torch is fully imported and it has not been done. True if they are there now."""
    global _torch_done
    if _torch_done:
        return True
    torch = sys.modules.get("torch")
    if torch is None or getattr(getattr(torch, "__spec__", None), "_initializing", False):
        return False
    from . import torch_ops

    torch_ops.register_torch()
    _torch_done = True
    return True


numpy_ops.register_numpy()
operator_ops.register_operators()
_core.register_late_ops("torch", ensure_torch)
