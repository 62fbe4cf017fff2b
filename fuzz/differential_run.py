"""Run one program plain and through an engine, call by call, and say where they part.

The module's text is compiled once and executed twice, so the two runs share nothing but the code objects: each has its own globals,
classes and arguments, all built by the program itself and therefore with the same aliasing. (Copying arguments would keep aliasing only
under one memo, and would lose views.)
"""
import linecache
import types
from typing import Any, NamedTuple

from differential_compare import Observation, differences, observe
from differential_engines import Engine
from differential_generate import HEAD

FILENAME = "<program>"
_head: list[types.CodeType] = []


class Failure(NamedTuple):
    seed: int
    kind: str       # the observed field that differs, or "engine error", "crash", "hang"
    call: int
    plain: str
    other: str


def register_text(filename: str, text: str) -> None:
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)


def _compiled(text: str) -> list[types.CodeType]:
    """The fixed head is compiled once for all programs; line numbers are those of the whole text."""
    if not text.startswith(HEAD):
        return [compile(text, FILENAME, "exec")]
    if not _head:
        _head.append(compile(HEAD, FILENAME, "exec"))
    return [_head[0], compile("\n" * HEAD.count("\n") + text[len(HEAD):], FILENAME, "exec")]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 2000 else text[:1000] + " ... " + text[-900:]


def run_program(seed: int, text: str, n_calls: int, rebind: bool, engine: Engine) -> Failure | None:
    """The first difference, or None."""
    register_text(FILENAME, text)
    codes = _compiled(text)
    spaces: list[dict[str, Any]] = []
    for _ in range(2):
        space: dict[str, Any] = {"__name__": "program"}
        for code in codes:
            exec(code, space)
        spaces.append(space)
    a, b = spaces
    fn_plain, fn_other = a["target"], b["target"]
    try:
        compiled = engine(fn_other)
    except Exception as e:
        return Failure(seed, "engine error", -1, "", repr(e))
    if rebind:
        b["target"] = compiled
    try:
        for k in range(n_calls):
            args_a, kw_a = a[f"call{k}"]()
            args_b, kw_b = b[f"call{k}"]()
            want = observe(fn_plain, args_a, kw_a, namespace=a, state=lambda: _hidden(a, fn_plain), filename=FILENAME)
            got: Observation = observe(compiled, args_b, kw_b, namespace=b, state=lambda: _hidden(b, fn_other), filename=FILENAME)
            found = differences(want, got)
            if found:
                kind, x, y = found[0]
                return Failure(seed, kind, k, _short(x), _short(y))
        return None
    finally:
        linecache.cache.pop(FILENAME, None)


def _hidden(space: dict[str, Any], fn: Any) -> Any:
    """What the call may change and no global names: defaults, cells, class attributes."""
    box = space.get("Box")
    cells = [c.cell_contents for c in fn.__closure__ or () if not callable(c.cell_contents)]
    return [fn.__defaults__, cells, [box.count, box.kinds, space["Ctx"].log] if box is not None and "Ctx" in space else None]
