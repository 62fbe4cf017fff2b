"""Operations written in Python count the frames above them (`stacklevel`, who shows a warning): they find those of all inlined callers, and of the function
itself one, wherever it goes on behind a graph break."""
import inspect
import sys
import warnings
from functools import partial, reduce
from typing import Any, Callable, Iterator

import numpy as np
import pytest
from framegate import _core
from support_engine import cap, needs_engine

STACKS: list = []


def told(a: Any, level: int) -> Any:
    """An operation that warns its callers, and notes who they are."""
    frame, rows = sys._getframe(1), []
    while frame is not None and frame.f_code is not outermost.__code__:
        rows.append((frame.f_code.co_name, frame.f_code.co_filename, frame.f_lineno, frame.f_globals is globals()))
        frame = frame.f_back
    STACKS.append(rows)
    warnings.warn(f"at {level}", stacklevel=level)
    return a + 1


OTHER: dict = {"told": told, "__name__": "another_module"}
exec(compile("""
def far(a, n): return told(a, n)

def by(f, a, n):
    x = 1
    return f(a,
             n)

def each(f, a, n):
    yield f(a, n)

class Held:
    def __init__(self, n): self.n = n
    def __call__(self, a): return told(a, self.n)
    def __add__(self, a): return far(a, self.n)
    @property
    def read(self): return told(1, self.n)
""", "another_file.py", "exec"), OTHER)
far, by, each, Held = (OTHER[name] for name in ("far", "by", "each", "Held"))


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    _core.register_op(told, None, "told", 0, _core.RAISES_DATA, _core.RESULT_TENSOR, signature="a level:")
    yield
    _core.forget_op(told)


def near(a, n): return told(a, n)
def itself(a, n): return told(a, n)
def of_this_file(a, n): return near(a, n)
def of_another(a, n): return far(a, n)
def there_and_back(a, n): return by(near, a, n) + by(far, a, n)


def deep(a, n):
    return by(there_and_back,
              a, n)


def in_a_generator(a, n): return sum(near(x, n) for x in [a, a])
def in_a_generator_there(a, n): return next(each(near, a, n)), list(each(partial(by, near), a, n))
def in_a_map(a, n): return list(map(lambda x: near(x, n), [a])), sorted([2, 1], key=lambda k: (far(a, n), k)[1])
def by_helpers(a, n): return reduce(lambda x, y: told(x, n), [a, a]), partial(near, a)(n)
def by_methods(a, n): return Held(n)(a), Held(n) + a
def behind_a_break(a, n): print(end=""); b = told(a, n); print(end=""); return deep(b, n)


def in_a_loop(a, n):
    for i in range(3):
        print(end="")
        a = near(a, n)
        print(end="")
        a = told(a, n)
    return a


def under_a_handler(a, n):
    try:
        b = by(near, a, n)
    finally:
        b = told(a, n)
    try:
        raise KeyError(b)
    except KeyError:
        return by(near, a, n), told(a, n)


def in_a_with(a, n):
    with np.errstate(divide="ignore"):
        return by(near, a, n)


def branches(a, n):
    if a.sum() > 0:
        a = near(a, n)
    if a.sum() > 100:
        return a
    return by(near, a, n)


FUNCTIONS = [itself, of_this_file, of_another, there_and_back, deep, in_a_generator, in_a_generator_there, in_a_map, by_helpers, by_methods, behind_a_break,
             in_a_loop, under_a_handler, in_a_with, branches]


def around(f: Callable, n: int) -> Any: return f(np.ones(3), n)


def outermost(f: Callable, n: int) -> Any:
    STACKS.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = repr(around(f, n))
    return result, list(STACKS), [(str(w.message), w.filename, w.lineno) for w in caught]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_an_operation_sees_its_callers(f: Callable) -> None:
    ours = cap(f)
    for n in range(1, 9):
        found = []
        for g in (f, ours, ours, f, ours):
            found.append(outermost(g, n))
        assert found[0][1] and found[0][2] and all(other == found[0] for other in found), n


@needs_engine
@pytest.mark.parametrize("f", [of_this_file, of_another, deep, in_a_generator, in_a_map], ids=lambda f: f.__name__)
def test_it_is_captured_all_the_same(f: Callable) -> None:
    import framegate
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert framegate.explain(f)(np.ones(3), 1).graph_break_count == 0


def test_warnings_that_numpy_means_for_callers() -> None:
    def median(a: Any) -> Any: return np.nanmedian(a, axis=0)
    def both(a: Any) -> Any: return median(a), np.nanpercentile(a, 50), by(lambda a, n: np.nanstd(a), a, 0)
    ours = cap(both)

    def seen(f: Callable) -> list:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            f(np.full((2, 2), np.nan))
        return [(str(w.message), w.filename, w.lineno) for w in caught]
    found = [seen(f) for f in (both, ours, ours)]
    assert found[0] and found[0] == found[1] == found[2]


def test_frames_of_callers_may_be_kept() -> None:
    kept: list = []

    def show(*args: Any, **kwargs: Any) -> None:
        kept.append(sys._getframe())

    def seen(f: Callable) -> list:
        kept.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = show
            around(f, 1)
        rows: list = []
        frame: Any = kept[0]
        while frame.f_code is not around.__code__:
            assert isinstance(dict(frame.f_locals), dict) and frame.f_builtins["len"] is len
            rows.append((frame.f_code.co_name, frame.f_code.co_filename, frame.f_lineno, frame.f_globals is globals()))
            frame, back = frame.f_back, frame
        assert back.f_back.f_back.f_code is seen.__code__
        return rows
    ours = cap(deep)
    assert seen(deep) == seen(ours) == seen(ours)


# --- a function that broke is one frame to who walks the stack

def names() -> list: return [f.function for f in inspect.stack()[1:] if f.filename == __file__]


def chained(a: Any, xs: list) -> Any:
    found = []
    for x in xs:
        if x % 2:
            found.append(names())
            a = a + x
        else:
            a = np.abs(a)
            try:
                found.append(names())
            except KeyError:
                a = a - 1
        with warnings.catch_warnings():
            found.append(names())
            a = a * 2
    return found, a


def around_error(f: Callable) -> Any: return f(np.ones(3))


def raises_behind(a: Any) -> Any:
    print(end="")
    b = a + 1
    print(end="")
    return np.dot(b, np.ones(17))


def test_a_function_that_broke_is_one_frame() -> None:
    ours = cap(chained)
    for xs in ([1, 2, 3, 4], [2, 2], [1], [4, 3, 2, 1]):
        expected = chained(np.ones(2), xs)[0]
        for _ in range(3):
            assert ours(np.ones(2), xs)[0] == expected


def test_tracebacks_lead_to_the_caller() -> None:
    ours = cap(raises_behind)
    for f in (raises_behind, ours, ours):
        with pytest.raises(ValueError) as caught:
            around_error(f)
        tb: Any = caught.value.__traceback__
        while tb.tb_frame.f_code is not raises_behind.__code__ and tb.tb_frame.f_code.co_name != "raises_behind":
            tb = tb.tb_next
        assert tb.tb_frame.f_back.f_code is around_error.__code__
