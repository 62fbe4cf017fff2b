"""The vocabulary of the row tables: flags, the words of a row, and how a table becomes rows of the C registry.

A table is a tuple of *groups*::

    (result, raises, flags, signature, names)

``result``, ``raises`` and ``flags`` are the constants below; ``names`` is a text of names separated by spaces, looked up on the table's owner (a
module or a type); names that this version of the library lacks are skipped. The marks of ``signature`` are explained in ``tracer/ops_registry.h``:
``a`` operand, ``a:`` constant, ``a>`` out, ``a!`` written, ``a?`` in-place switch, ``a=False`` fixed, ``a'`` text, ``a+`` required operand, ``a#`` count that says the
shape of the result.
"""

from __future__ import annotations

import sys
from typing import Any

from framegate import _core

# Short names, since tables are read by column.
D = _core.OPF_DATA_OUTPUT
W = _core.OPF_MUTATES_FIRST
O = _core.OPF_OUT_KEYWORD  # noqa: E741
V = _core.OPF_VIEW
R = _core.OPF_MAY_RETURN_ARG
S = _core.OPF_SCALARS
STATE = _core.OPF_STATE
CREATES = _core.OPF_CREATES
CHANGES_META = _core.OPF_CHANGES_META
E = _core.OPF_ERRSTATE
NEEDS_DATA = _core.OPF_NEEDS_DATA
ORDER = _core.OPF_ORDER

NEVER = _core.RAISES_NEVER
META_RAISES = _core.RAISES_METADATA
DATA_RAISES = _core.RAISES_DATA

TENSOR = _core.RESULT_TENSOR
TENSORS = _core.RESULT_TENSORS
SCALAR = _core.RESULT_SCALAR
META = _core.RESULT_META
NONE = _core.RESULT_NONE
SELF = _core.RESULT_SELF
OTHER = _core.RESULT_OTHER

Group = tuple[int, int, int, "str | None", str]


def names_of(text: str) -> tuple[str, ...]:
    """The interned names of a text."""
    return tuple(map(sys.intern, text.split()))


def register_table(owner: Any, prefix: str, table: tuple[Group, ...], is_attribute: bool = False, extra_flags: int = 0) -> int:
    """Make each name of the table that ``owner`` has an operation; returns how many it has."""
    register_ops = _core.register_ops
    count = 0
    for result, raises, flags, signature, names in table:
        count += register_ops(owner, prefix, names_of(names), flags | extra_flags, raises, result, signature, is_attribute)
    return count
