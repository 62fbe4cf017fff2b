"""Decode and assemble every code object of the standard library: what comes back must be the same code.

Compared, instruction by instruction over what is reachable: opcode, argument by meaning (constants by exact type and bits, names, slots, jump
targets), line and columns, and the handler of every instruction that can raise. Constants and names may be numbered differently.

From 3.12 on END_FOR (from 3.13 on with the pop behind it) and END_SEND belong to the instruction that jumps to them and have its position. What CPython computes anew is not compared: the block
depth that YIELD_VALUE carries, and where NOT_TAKEN stands. Loads that borrow come back as loads that count.

The quick tier takes every n-th file; FRAMEGATE_ROUNDTRIP=full takes all, tests included (minutes).
"""

import dis
import os
import struct
import subprocess
import sys
import sysconfig
import types
import warnings

import pytest

core = pytest.importorskip("framegate._core")

OLD = sys.version_info < (3, 12)
# Those that test for truth take an exact bool.
CALM_SINCE_313 = {
    "LOAD_FAST_LOAD_FAST", "STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST", "SET_FUNCTION_ATTRIBUTE", "POP_JUMP_IF_TRUE",
    "POP_JUMP_IF_FALSE", "UNARY_NOT",
}  # fmt: skip
CALM_SINCE_314 = {"NOT_TAKEN", "POP_ITER", "LOAD_SMALL_INT", "LOAD_COMMON_CONSTANT"}
COUNTED = {"LOAD_FAST_BORROW": "LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW": "LOAD_FAST_LOAD_FAST"}


def cache_units(op):
    """By number in a list up to 3.12, by name in a mapping since."""
    entries = dis._inline_cache_entries
    return entries[op] if isinstance(entries, list) else entries.get(dis.opname[op], 0)


QUICK_FILES = 300


def source_files():
    root = sysconfig.get_paths()["stdlib"]
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(d for d in folders if d not in ("site-packages", "__pycache__"))
        found.extend(os.path.join(folder, f) for f in sorted(files) if f.endswith(".py"))
    return found


def compiled(path):
    with open(path, "rb") as f:
        source = f.read()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return compile(source, path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError):  # files that are wrong on purpose
            return None


def codes(code):
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from codes(const)


def key(value):
    """What tells constants apart: type and bits."""
    if type(value) is float:
        return float, struct.pack("<d", value)
    if type(value) is complex:
        return complex, struct.pack("<dd", value.real, value.imag)
    if type(value) is tuple:
        return tuple, tuple(map(key, value))
    if isinstance(value, (types.CodeType, frozenset)):
        return id(value)
    return type(value), value


def reachable(code, instructions, entries, index):
    """Indices that a path from the start leads to; handlers count from instructions that may raise."""
    ends = {"RETURN_VALUE", "RERAISE", "RAISE_VARARGS", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"}
    ends |= {"RETURN_CONST"}
    calm = {
        "POP_TOP", "PUSH_NULL", "NOP", "STORE_FAST", "STORE_DEREF", "MAKE_CELL", "COPY_FREE_VARS", "LOAD_CONST", "KW_NAMES",
        "LOAD_ASSERTION_ERROR", "COPY", "SWAP", "BUILD_TUPLE", "BUILD_LIST", "BUILD_STRING", "BUILD_SLICE", "LIST_APPEND", "LIST_TO_TUPLE",
        "IS_OP", "JUMP_FORWARD", "JUMP_BACKWARD_NO_INTERRUPT", "POP_JUMP_FORWARD_IF_NONE", "POP_JUMP_FORWARD_IF_NOT_NONE",
        "RETURN_VALUE", "PUSH_EXC_INFO", "POP_EXCEPT", "ASYNC_GEN_WRAP", "MAKE_FUNCTION", "MATCH_MAPPING", "MATCH_SEQUENCE",
        "LOAD_FAST_AND_CLEAR", "END_FOR", "END_SEND", "RETURN_CONST", "POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE", ("CALL_INTRINSIC_1", 3),
        ("CALL_INTRINSIC_1", 4), ("CALL_INTRINSIC_1", 6),
    } | (set() if OLD else {"LOAD_FAST"}) | (CALM_SINCE_313 if sys.version_info >= (3, 13) else set())  # fmt: skip
    calm |= CALM_SINCE_314 if sys.version_info >= (3, 14) else set()
    handler = {}
    for entry in entries:
        for at in range(entry.start, entry.end, 2):
            handler[at] = (index[entry.target], entry.depth, entry.lasti)
    seen, todo, raising = set(), [0], {}
    while todo:
        i = todo.pop()
        if i in seen:
            continue
        seen.add(i)
        name, arg, target, at, *_ = instructions[i]
        if at in handler and name not in calm and (name, arg) not in calm:
            raising[i] = handler[at]
            todo.append(handler[at][0])
        if target is not None:
            todo.append(target)
        if name not in ends:
            todo.append(i + 1)
    return sorted(seen), raising


def listing(code):
    """Reachable instructions with everything they mean, targets and handlers as positions in this list."""
    raw = code.co_code
    positions = list(code.co_positions())
    names = dis.opname
    instructions, index, loops = [], {}, {}
    at, prefix, start = 0, 0, None
    while at < len(raw):
        op, arg = raw[at], raw[at + 1] | prefix
        start = at if start is None else start
        if op == dis.EXTENDED_ARG:
            prefix = arg << 8
            at += 2
            continue
        index[start] = len(instructions)
        after = at + 2 + 2 * cache_units(op)
        name = COUNTED.get(names[op], names[op])
        target = None
        if name == "END_ASYNC_FOR":
            loops[len(instructions)] = after - 2 * arg
            arg = None
        elif op in dis.hasjrel:
            target = after - 2 * arg if "BACKWARD" in name else after + 2 * arg
        elif op in dis.hasconst:
            arg = key(code.co_consts[arg])
        elif name == "LOAD_GLOBAL" or (name == "LOAD_ATTR" and not OLD):
            arg = (code.co_names[arg >> 1], arg & 1)
        elif name == "LOAD_SUPER_ATTR" or (name == "IMPORT_NAME" and sys.version_info >= (3, 15)):
            arg = (code.co_names[arg >> 2], arg & 3)
        elif name == "YIELD_VALUE":
            arg = None
        elif op in dis.hasname:
            arg = code.co_names[arg]
        instructions.append([name, arg if target is None else None, target, at, positions[at // 2]])
        at, prefix, start = after, 0, None
    for instruction in instructions:
        if instruction[2] is not None:
            instruction[2] = index[instruction[2]]
    seen, raising = reachable(code, instructions, dis._parse_exception_table(code), index)
    seen = [i for i in seen if instructions[i][0] != "NOT_TAKEN"]
    rank = {i: n for n, i in enumerate(seen)}
    out = []
    for i in seen:
        name, arg, target, at, position = instructions[i]
        if name in ("END_FOR", "END_SEND") or (name in ("POP_TOP", "POP_ITER") and i and instructions[i - 1][0] == "END_FOR" and not OLD):
            position = None
        if name == "PUSH_NULL" and instructions[i + 1][0] == "FOR_ITER":  # the second slot of what a call gave to loop over
            position = None
        if i in loops and sys.version_info >= (3, 14):
            arg = rank[index[loops[i]]]
        handler = raising.get(i)
        if handler:
            handler = (rank[handler[0]], handler[1], handler[2])
        out.append((name, arg, rank.get(target), position, handler))
    return out


FIELDS = [
    "co_name", "co_qualname", "co_filename", "co_flags", "co_firstlineno", "co_argcount", "co_posonlyargcount", "co_kwonlyargcount",
    "co_varnames", "co_cellvars", "co_freevars",
]  # fmt: skip


def check(code):
    made = core.cpython_roundtrip(code)
    assert listing(made) == listing(code)
    for field in FIELDS:
        assert getattr(made, field) == getattr(code, field), field
    if code.co_consts and code.co_flags & 1:
        assert key(made.co_consts[0]) == key(code.co_consts[0])
    core.cpython_verify(made)
    return made


def test_standard_library():
    files = source_files()
    if os.environ.get("FRAMEGATE_ROUNDTRIP") != "full":
        files = files[:: max(1, len(files) // QUICK_FILES)]
    n_codes = n_smaller = 0
    for path in files:
        code = compiled(path)
        for inner in codes(code) if code else ():
            try:
                made = check(inner)
            except (AssertionError, ValueError) as e:
                raise AssertionError(f"{path}: {inner.co_qualname} line {inner.co_firstlineno}: {e}") from e
            n_codes += 1
            # The compiler counts some paths that are never taken; ours is exact and the verifier has just walked it.
            n_smaller += made.co_stacksize < inner.co_stacksize
            assert made.co_stacksize <= inner.co_stacksize, inner
    assert n_codes > 1000
    assert n_smaller < n_codes / 50
    print(f"{n_codes} code objects in {len(files)} files; {n_smaller} with a smaller exact stack size")


def test_opcode_table_is_fresh():
    tool = os.path.join(os.path.dirname(__file__), "..", "..", "tools", "gen_opcodes.py")
    done = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
