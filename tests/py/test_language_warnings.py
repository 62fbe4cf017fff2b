"""Warnings of operations: file, line, module and registry are those of the function that has the operation, inlined or not, and the frames are its own."""
import sys
import types
import warnings
from typing import Any, Callable

import numpy as np
import pytest
import support_elsewhere as elsewhere
from support_engine import cap, needs_engine

scale = elsewhere.Scale(0.0)


def log_of_nothing(a): return np.log(a * 0)
def once(a): return elsewhere.divide(a, a - a)
def two_deep(a): return elsewhere.deep(a, a * 0)
def both_files(a): return log_of_nothing(a) + elsewhere.divide(a, 0) + a / 0
def there_and_back(a): return elsewhere.applied(log_of_nothing, a) + elsewhere.applied(lambda x: x / 0, a)
def written(a): return elsewhere.in_place(a)
def comparing(a): return elsewhere.compared(a)
def negating(a): return elsewhere.negated(a)
def with_keywords(a): return elsewhere.keyword(a)
def a_generator(a): return elsewhere.several(a)
def python_operation(a): return elsewhere.mean_of_nothing(a)
def conversion(a): return elsewhere.to_float(a)
def methods(a): return scale(a), scale / a, scale.root
def by_names(a): return elsewhere.many_names(a)
def handled_there(a): return elsewhere.with_handler(a)
def behind_a_break(a): print(end=""); b = elsewhere.divide(a, 0.0); print(end=""); return elsewhere.deep(b, 0.0)
def said_there(a): return elsewhere.said(a)
def said_here(a): return elsewhere.said_of_caller(a)


def in_a_loop(a):
    r = a
    for i in range(2):
        r = elsewhere.deep(a, a * i)
    return r


def handled_here(a):
    try:
        b = elsewhere.deep(a, a * 0)
    except RuntimeWarning as e:
        b = str(e)
    finally:
        c = elsewhere.divide(a, 1.0)
    return b, c


def with_errstate(a):
    with np.errstate(divide="ignore"):
        b = elsewhere.divide(a, 0.0)
    with np.errstate(divide="warn", invalid="ignore"):
        return elsewhere.deep(a, 0.0), b


FUNCTIONS = [once, two_deep, both_files, there_and_back, written, comparing, negating, with_keywords, a_generator, python_operation, conversion, methods,
             by_names, handled_there, behind_a_break, said_there, said_here, in_a_loop, handled_here, with_errstate]


def registries() -> list[dict]:
    found = [m.__dict__.setdefault("__warningregistry__", {}) for m in (elsewhere, sys.modules[__name__])]
    return [{k: v for k, v in r.items() if k != "version"} for r in found]


def forget() -> None:
    for m in (elsewhere, sys.modules[__name__]):
        m.__dict__.pop("__warningregistry__", None)


def entries(e: BaseException) -> list:
    tb, rows = e.__traceback__, []
    while tb is not None:
        rows.append((tb.tb_frame.f_code.co_filename, tb.tb_lineno, tb.tb_frame.f_code.co_name))
        tb = tb.tb_next
    return rows[1:]


def seen(f: Callable, policy: str, calls: int = 1) -> Any:
    forget()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(policy)
        try:
            result = [repr(f(np.array([1.0, -2.0]))) for _ in range(calls)]
        except Warning as e:
            result = [repr(e), entries(e)]
    return result, [(w.category, str(w.message), w.filename, w.lineno) for w in caught], registries()


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_warning_names_the_file_and_line_of_its_operation(f: Callable) -> None:
    ours = cap(f)
    for policy, calls in (("always", 1), ("default", 3), ("module", 2), ("error", 1), ("ignore", 1), ("always", 2)):
        assert seen(ours, policy, calls) == seen(f, policy, calls), policy


def test_a_filter_of_one_module_meets_only_its_operations() -> None:
    ours = cap(both_files)
    for module in (elsewhere.__name__, __name__):
        found = []
        for f in (both_files, ours, ours):
            forget()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("ignore")
                warnings.filterwarnings("always", module=module)
                f(np.array([1.0, 2.0]))
            found.append([(w.filename, w.lineno) for w in caught])
        assert found[0] and found[0] == found[1] == found[2]


def test_globals_of_another_dict_are_those_of_the_function() -> None:
    """The same file, another module: the registry is in the globals that the function has."""
    module = types.ModuleType("made_up")
    exec(compile("def divide(a): return a / 0.0", __file__, "exec"), module.__dict__)

    def f(a: Any) -> Any: return module.divide(a)
    ours = cap(f)
    for g in (f, ours, ours):
        module.__dict__.pop("__warningregistry__", None)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            g(np.ones(2))
        assert [w.filename for w in caught] == [__file__] and module.__dict__["__warningregistry__"]


def test_the_frame_that_a_warning_was_shown_in_may_be_kept() -> None:
    """Who shows the warning looks at the frames below, and keeps them."""
    kept: list = []

    def show(*args: Any, **kwargs: Any) -> None:
        frame: Any = sys._getframe()
        while frame is not None and frame.f_code.co_filename != elsewhere.__file__:
            frame = frame.f_back
        kept.append(frame)
    ours = cap(once)
    for g in (once, ours, ours):
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = show
            g(np.array([1.0, 2.0]))
    for frame in kept:
        assert (frame.f_code, frame.f_lineno, frame.f_globals) == (elsewhere.divide.__code__, kept[0].f_lineno, elsewhere.__dict__)
        assert frame.f_builtins["len"] is len and isinstance(dict(frame.f_locals), dict)
        frame.clear()


@needs_engine
def test_operations_of_other_files_are_one_piece_with_the_others() -> None:
    import framegate
    assert framegate.explain(two_deep)(np.ones(2)).graph_break_count == 0
