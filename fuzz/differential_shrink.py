"""Make a failing program small: delete statements, unwrap blocks, replace expressions by a part of themselves or by a plain value.

A candidate counts when it still fails with the same kind. Every step keeps the module's shape (functions `target` and `call<k>`), so the
result is again a program that `differential_run.run_program` takes.
"""
import ast
import copy
import time
from typing import Any, Callable, Iterator

_BODIES = ("body", "orelse", "finalbody")


def _statement_lists(tree: ast.AST) -> Iterator[tuple[list[ast.stmt], bool]]:
    """Every list of statements, and whether it may become empty."""
    for node in ast.walk(tree):
        for field in _BODIES:
            block = getattr(node, field, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block, field != "body" or isinstance(node, ast.Module)
        if isinstance(node, ast.Try) and node.handlers:
            yield node.handlers, bool(node.finalbody)  # type: ignore[misc]
        if isinstance(node, ast.Match):
            yield node.cases, False  # type: ignore[misc]


def _deletions(tree: ast.Module) -> Iterator[ast.Module]:
    n_lists = len(list(_statement_lists(tree)))
    for i in range(n_lists - 1, -1, -1):
        size = len(list(_statement_lists(tree))[i][0])
        chunk = size
        while chunk:
            for start in range(0, size, chunk):
                new = copy.deepcopy(tree)
                block, may_be_empty = list(_statement_lists(new))[i]
                gone = block[start:start + chunk]
                if len(gone) == 1 and isinstance(gone[0], ast.Pass):
                    continue
                block[start:start + chunk] = [] if may_be_empty or len(gone) < size else [ast.Pass()]
                yield new
            chunk //= 2


def _unwrappings(tree: ast.Module) -> Iterator[ast.Module]:
    """if/for/while/with/try become their body."""
    where = [(i, j) for i, (block, _) in enumerate(_statement_lists(tree)) for j, s in enumerate(block)
             if isinstance(s, (ast.If, ast.For, ast.While, ast.With, ast.Try))]
    for i, j in where:
        new = copy.deepcopy(tree)
        block = list(_statement_lists(new))[i][0]
        block[j:j + 1] = block[j].body  # type: ignore[attr-defined]
        yield new


class _Replace(ast.NodeTransformer):
    def __init__(self, index: int, choice: int) -> None:
        self.index, self.choice, self.n, self.more = index, choice, -1, False

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            self.n += 1
            if self.n == self.index:
                options = _simpler(node)
                if self.choice < len(options):
                    self.more = True
                    return options[self.choice]
                return node
        return self.generic_visit(node)


def _simpler(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.Constant):
        plain = {int: 0, float: 0.5, str: "a"}.get(type(node.value))
        return [ast.Constant(plain)] if plain is not None and node.value != plain and node.value not in (0, 1, "") else []
    parts = [c for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)]
    if isinstance(node, ast.Lambda):
        parts = []
    options = parts[:3]
    if not isinstance(node, ast.Name):
        options = options + [ast.Constant(1)]
    if isinstance(node, (ast.List, ast.Tuple)) and node.elts:
        options = [type(node)(elts=node.elts[:i] + node.elts[i + 1:], ctx=ast.Load()) for i in range(len(node.elts))] + options
    if isinstance(node, ast.Dict) and node.keys:
        options = [ast.Dict(node.keys[1:], node.values[1:])] + options
    return options


def _simplifications(tree: ast.Module) -> Iterator[ast.Module]:
    count = sum(isinstance(n, ast.expr) for n in ast.walk(tree))
    for index in range(count):
        for choice in range(8):
            change = _Replace(index, choice)
            new = change.visit(copy.deepcopy(tree))
            if not change.more:
                break
            yield ast.fix_missing_locations(new)


def shrink(text: str, still_fails: Callable[[str], bool], seconds: float = 30.0) -> str:
    """The smallest text found in that time for which still_fails is true; text itself must fail."""
    end = time.monotonic() + seconds
    tree = ast.parse(text)
    progress = True
    while progress and time.monotonic() < end:
        progress = False
        for candidates in (_deletions, _unwrappings, _simplifications):
            again = True
            while again and time.monotonic() < end:
                again = False
                size = _size(tree)
                for new in candidates(tree):
                    if time.monotonic() >= end:
                        break
                    try:
                        shown = ast.unparse(ast.fix_missing_locations(new))
                        compile(shown, "<shrink>", "exec")
                        if not still_fails(shown):
                            continue
                        parsed = ast.parse(shown)
                    except (SyntaxError, ValueError, RecursionError):
                        continue
                    if _size(parsed) < size:
                        tree, again, progress = parsed, True, True
                        break
    return ast.unparse(tree) + "\n"


def _size(tree: ast.AST) -> tuple[int, int]:
    nodes = list(ast.walk(tree))
    return (sum(not isinstance(n, (ast.expr_context, ast.Pass)) for n in nodes),
            sum(len(repr(n.value)) for n in nodes if isinstance(n, ast.Constant)))
