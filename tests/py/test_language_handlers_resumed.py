"""Handlers of the function itself around operations behind a graph break: they get what plain Python would give them, with the frame as it is then."""
import _thread
import sys
import traceback
import warnings
from typing import Any, Callable

import numpy as np
import pytest
from support_engine import cap, needs_engine

log: list = []


def brk() -> None: globals()["nothing"] = None
def entries(e: BaseException) -> list: return [(f.lineno, f.name) for f in traceback.extract_tb(e.__traceback__)]


def operations_in_a_row(x, n):
    brk()
    k = 1
    try:
        y = x + np.ones(n)
        k = 2
        z = y @ np.ones(n + 1 if n == 3 else n)
        k = 3
    except ValueError as e:
        return k, str(e), entries(e)[1:], sys.exc_info()[1] is e
    return k, z


def in_a_loop(x, n):
    out = []
    for i in range(3):
        brk()
        try:
            q = [i]
            y = x + np.ones(n + i)
            out.append(y.sum())
            brk()
            y = y / 0
        except ValueError as e: out.append((str(e), q, i))
        finally:
            out.append("f"); y = None
    return out


class CM:
    def __enter__(self): return self
    def __exit__(self, t, v, tb): log.append((t, str(v))); return True


def in_a_with(x, n):
    log.clear()
    with CM() as c:
        brk()
        a = [1, 2]
        b = x + np.ones(n)
        log.append(b)
        brk()
        c = b + np.ones(n + 1)
    brk()
    return list(log), a, x + 1


def helper(x, n): return x + np.ones(n)


def of_an_inlined_call(x, n):
    brk()
    try:
        try:
            y = helper(x, 2); z = helper(y, n)
        except KeyError: return "k"
        finally: x = x * 2
    except ValueError as e:
        tb = entries(e)
        try: w = helper(x, n)
        except ValueError as e2: return str(e2), tb, entries(e2), e2.__context__ is e
        return w, tb
    return y, z


def with_cells(x, n):
    def g(): return x, y
    brk()
    y = 5
    try:
        x = x + np.ones(n)
        y = x
    except ValueError: y = (y, "e")
    return g()


def in_errstate(x, n):
    with np.errstate(divide="raise"):
        brk()
        try: y = x / (n - 2)
        except FloatingPointError as e: y = str(e)
        return y, x


def with_effects(x, n):
    d = {}
    brk()
    try:
        d["a"] = 1
        x[0] = 7
        d["b"] = x + np.ones(n)
    except ValueError:
        d["c"] = 2
    brk()
    return d, x


def until_it_fails(x, n):
    brk()
    t = 0
    for i in range(n):
        try: t = t + x + np.ones(i + 1)
        except ValueError: t = t + 10
        brk()
    return t


def with_objects(x, n):
    made = {"k": [x]}
    brk()
    try:
        made["k"].append(1)
        t = (x, made)
        made["k"].append(x + np.ones(n))
    except ValueError:
        t[1]["k"].append("failed")
        del t
    brk()
    return made, "t" in dir()


def handler_that_returns(x, n):
    for i in range(5):
        brk()
        try: x = x + np.ones(n + i % 2)
        except ValueError: return i, x
        finally: log.append(i)
    return x


def unbound_in_the_handler(x, n):
    brk()
    try:
        a = x + 1
        b = x + np.ones(n)
        del a
        c = x + np.ones(5)
    except ValueError:
        return sorted(k for k in dir() if len(k) == 1)


def raised_further(x, n):
    try:
        brk()
        try: y = x + np.ones(n)
        except ValueError as e: raise KeyError("k") from e
        brk()
        return y + np.ones(4)
    except KeyError as e: return entries(e)[-1], str(e.__cause__), entries(e.__cause__)[-1]
    except ValueError as e: return str(e), e.__context__


def warned(x, n):
    brk()
    with warnings.catch_warnings():
        warnings.simplefilter("error" if n == 3 else "ignore")
        try: return x / 0
        except RuntimeWarning as e: return str(e), entries(e)[-1]


FUNCTIONS: list[Callable] = [operations_in_a_row, in_a_loop, in_a_with, of_an_inlined_call, with_cells, in_errstate, with_effects, until_it_fails, with_objects,
                             handler_that_returns, unbound_in_the_handler, raised_further, warned]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_handlers_get_what_is_raised_behind_a_break(f: Callable) -> None:
    def seen(g: Callable, n: int) -> Any:
        log.clear()
        try: result = repr(g(np.arange(2.0), n))
        except Exception as e: result = repr(e), entries(e)[1:]
        return result, repr(log)
    ours = cap(f)
    for n in (2, 3, 2, 1, 3, 4):
        assert seen(ours, n) == seen(f, n), n


class Awkward:
    """Interrupts from inside Python code that an operation runs, at its n-th use."""
    left = 0

    @staticmethod
    def reached(kind: str, flag: int) -> None:
        Awkward.left -= 1
        if Awkward.left == 0:
            _thread.interrupt_main()
            for _ in range(10):
                pass
            log.append("not reached")


def divided(x, rounds):
    n = 0
    try:
        for i in range(rounds):
            brk()
            n = n + 1
            y = x / 0
            log.append(n)
            brk()
            y = np.log(y * 0)
    except KeyboardInterrupt:
        log.append(("caught", n))
    finally:
        log.append(("finally", n))
    return n


@pytest.mark.parametrize("left", range(1, 9))
def test_an_interrupt_inside_an_operation_reaches_the_handlers(left: int) -> None:
    def seen(f: Callable) -> Any:
        log.clear()
        Awkward.left = left
        with np.errstate(divide="call", invalid="call"):
            np.seterrcall(Awkward.reached)
            return f(np.ones(2), 3), list(log)
    ours = cap(divided)
    for _ in range(3):
        assert seen(ours) == seen(divided)


@needs_engine
def test_an_operation_under_a_handler_is_no_break_behind_one() -> None:
    import framegate
    import framegate.logs

    def f(x):
        brk()
        try: return x / 2 + np.sqrt(x)
        except ValueError: return 0
    reasons: list[str] = []
    with framegate.logs.listen(lambda kind, record: reasons.append(record["reason"].gb_type) if kind == "graph_break" else None):
        ours = cap(f)
        assert len(ours(np.ones(2))) == len(ours(np.zeros(2))) == 2
    assert len(reasons) == 2 and not any("raise" in reason for reason in reasons), reasons
