"""The engines a program can be run with: plain Python, framegate, and engines broken on purpose.

A broken engine stands for one kind of mistake that a compiler with guards can make. The test of the fuzzer asks that each is found; an
engine added here is found or the test fails. Each is `engine(fn) -> callable`; those that change code look the function's text up by its
file name, so they need `program_text`.
"""
import ast
import copy
import functools
import linecache
import os
import types
from typing import Any, Callable

import numpy as np

Engine = Callable[[Any], Any]


def plain(fn: Any) -> Any:
    return fn


def framegate(fn: Any) -> Any:
    import framegate as fg
    return fg.compile(fn)


def _rewritten(fn: Any, change: ast.NodeTransformer) -> Any:
    """fn with another body: the text of its module, changed inside fn only, compiled again under the same names and lines."""
    tree = ast.parse("".join(linecache.getlines(fn.__code__.co_filename)))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == fn.__name__ and node.lineno == fn.__code__.co_firstlineno:
            node.body = [change.visit(s) for s in node.body]
            break
    ast.fix_missing_locations(tree)
    stack = [compile(tree, fn.__code__.co_filename, "exec")]
    while stack:
        code = stack.pop()
        if code.co_name == fn.__name__ and code.co_firstlineno == fn.__code__.co_firstlineno and code.co_freevars == fn.__code__.co_freevars:
            new = types.FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
            new.__kwdefaults__ = fn.__kwdefaults__
            return new
        stack += [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return fn


class _Swap(ast.NodeTransformer):
    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        if isinstance(node.op, ast.Sub):
            node.left, node.right = node.right, node.left
        return node


class _Forget(ast.NodeTransformer):
    done = False

    def visit_Expr(self, node: ast.Expr) -> Any:
        if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute) and not self.done:
            self.done = True
            return ast.copy_location(ast.Pass(), node)
        return node


class _ForgetStore(ast.NodeTransformer):
    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        return ast.copy_location(ast.Pass(), node) if isinstance(node.target, ast.Attribute) else node


class _Strict(ast.NodeTransformer):
    """Less-or-equal guarded as less-than: an error at the edge only."""

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        node.ops = [ast.Lt() if isinstance(op, ast.LtE) else ast.Gt() if isinstance(op, ast.GtE) else op for op in node.ops]
        return node


def swap_operands(fn: Any) -> Any:
    return _rewritten(fn, _Swap())


def forget_effect(fn: Any) -> Any:
    return _rewritten(fn, _Forget())


def forget_attribute_store(fn: Any) -> Any:
    return _rewritten(fn, _ForgetStore())


def wrong_edge(fn: Any) -> Any:
    return _rewritten(fn, _Strict())


def stale_scalar_guard(fn: Any) -> Any:
    """A version made for one value of a scalar argument serves every value of its type."""
    first: list[Any] = []

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        if not first:
            first.append(args)
            return fn(*args, **kwargs)
        old = first[0]
        if list(map(type, args)) == list(map(type, old)):
            args = tuple(o if type(a) in (int, float, bool, str) else a for a, o in zip(args, old))
        return fn(*args, **kwargs)
    return run


def stale_type_guard(fn: Any) -> Any:
    """bool and int (and the float of an int) pass for one another."""
    first: list[Any] = []

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        if not first:
            first.append(args)
        elif len(args) == len(first[0]):
            args = tuple(type(o)(a) if {type(a), type(o)} <= {int, bool, float} and a == a and abs(a) < 1e300 else a
                         for a, o in zip(args, first[0]))
        return fn(*args, **kwargs)
    return run


def stale_global(fn: Any) -> Any:
    """Scalars read from globals are frozen at the first call."""
    frozen: list[Any] = []

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        g = fn.__globals__
        if not frozen:
            frozen.append({k: v for k, v in g.items() if k in ("G_i", "G_fn", "G_A")})
            return fn(*args, **kwargs)
        now = {k: g[k] for k in frozen[0]}
        g.update(frozen[0])
        try:
            return fn(*args, **kwargs)
        finally:
            for k, v in now.items():
                if g[k] is frozen[0][k]:
                    g[k] = v
    return run


def effect_twice(fn: Any) -> Any:
    """Tracing runs the effects on the caller's lists, and then the compiled code runs them again."""
    seen: list[Any] = []

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        if not seen:
            seen.append(1)
            kept = [copy.copy(a) for a in args if type(a) is list]
            result = fn(*args, **kwargs)
            for a, old in zip([a for a in args if type(a) is list], kept):
                if len(a) > len(old):
                    a.extend(a[len(old):])
            return result
        return fn(*args, **kwargs)
    return run


def copies_result(fn: Any) -> Any:
    """A returned argument comes back as an equal copy."""
    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        result = fn(*args, **kwargs)
        if type(result) is tuple:
            return tuple(copy.copy(r) if any(r is a for a in args) and type(r) in (list, dict, np.ndarray) else r for r in result)
        return copy.copy(result) if any(result is a for a in args) else result
    return run


def wrong_dtype(fn: Any) -> Any:
    """float32 results are widened."""
    def widen(v: Any) -> Any:
        return v.astype(np.float64) if isinstance(v, (np.ndarray, np.generic)) and v.dtype == np.float32 else v

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        result = fn(*args, **kwargs)
        return tuple(map(widen, result)) if type(result) is tuple else widen(result)
    return run


def wrong_lines(fn: Any) -> Any:
    """Generated code whose line table starts a line late."""
    new = types.FunctionType(fn.__code__.replace(co_firstlineno=fn.__code__.co_firstlineno + 1), fn.__globals__, fn.__name__,
                             fn.__defaults__, fn.__closure__)
    new.__kwdefaults__ = fn.__kwdefaults__
    return new


def wraps_error(fn: Any) -> Any:
    """A user's error comes out as another type."""
    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except LookupError as e:
            raise RuntimeError(*e.args) from e
    return run


def negative_zero(fn: Any) -> Any:
    """Constants compared with == instead of by their bits: -0.0 becomes 0.0."""
    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        return fn(*[0.0 if type(a) is float and a == 0 else a for a in args], **kwargs)
    return run


def silent_print(fn: Any) -> Any:
    """Output written while a first call is traced is lost."""
    import contextlib
    import io
    seen: list[Any] = []

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        if seen:
            return fn(*args, **kwargs)
        seen.append(1)
        with contextlib.redirect_stdout(io.StringIO()):
            return fn(*args, **kwargs)
    return run


def crashes(fn: Any) -> Any:
    """Ends the process, for programs that use a set."""
    if "set(" in "".join(linecache.getlines(fn.__code__.co_filename)[60:]):
        os.abort()
    return fn


def hangs(fn: Any) -> Any:
    """Never returns, for programs that warn."""
    if "warnings.warn(" in "".join(linecache.getlines(fn.__code__.co_filename)[60:]):
        while True:
            pass
    return fn


ENGINES: dict[str, Engine] = {"plain": plain, "framegate": framegate}
BROKEN: dict[str, Engine] = {f.__name__: f for f in (
    swap_operands, forget_effect, forget_attribute_store, wrong_edge, stale_scalar_guard, stale_type_guard, stale_global, effect_twice,
    copies_result, wrong_dtype, wrong_lines, wraps_error, negative_zero, silent_print, crashes, hangs)}


def engine_named(name: str) -> Engine:
    return ENGINES.get(name) or BROKEN[name]
