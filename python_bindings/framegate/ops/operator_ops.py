"""Functions of ``operator`` and builtins as operations on tensors of any library.

A row here says what the function does when an argument is a tensor; on anything else the tracer does what Python does. The in-place functions
return their first argument where it is an array and a new object where it is a NumPy scalar, so they say "may return an argument", not SELF.
``getitem`` and ``setitem`` rows are for constant indices; an index that is a tensor changes the promises (a mask: data-dependent shape; integers:
out of bounds), so it is not an operand of these rows.
"""

from __future__ import annotations

import builtins
import operator

from .row_spec import DATA_RAISES, META, META_RAISES, NONE, SCALAR, TENSOR, TENSORS, E, R, S, V, W, register_table

OPERATOR = (
    (TENSOR, META_RAISES, S | E, "a b /",
     "add sub mul truediv floordiv mod and_ or_ xor lshift rshift eq ne lt le gt ge"),
    (TENSOR, META_RAISES, E, "a b /", "matmul"),
    (TENSOR, DATA_RAISES, S | E, "a b /", "pow"),
    (TENSOR, META_RAISES, E, "a /", "neg abs inv invert"),
    # torch returns its argument, NumPy a copy.
    (TENSOR, META_RAISES, V | R, "a /", "pos"),
    (TENSOR, META_RAISES, S | E | W | V | R, "a! b /", "iadd isub imul itruediv ifloordiv imod iand ior ixor ilshift irshift"),
    (TENSOR, META_RAISES, E | W | V | R, "a! b /", "imatmul"),
    (TENSOR, DATA_RAISES, S | E | W | V | R, "a! b /", "ipow"),
    (TENSOR, META_RAISES, V, "a index: /", "getitem"),
    (NONE, META_RAISES, W | S | E, "a! index: value /", "setitem"),
    (SCALAR, DATA_RAISES, 0, "a /", "truth not_ index"),
)

BUILTINS = (
    (TENSOR, META_RAISES, E, "x /", "abs"),
    (TENSORS, META_RAISES, S | E, "x y /", "divmod"),
    (TENSOR, DATA_RAISES, S | E, "base exp mod=None", "pow"),
    (META, META_RAISES, 0, "obj /", "len"),
    (SCALAR, DATA_RAISES, 0, "x /", "bool int float complex"),
)


def register_operators() -> int:
    """Register the rows; returns how many."""
    return register_table(operator, "operator", OPERATOR) + register_table(builtins, "builtins", BUILTINS)
