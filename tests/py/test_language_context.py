"""__context__ of what operations raise in handlers, and what they find being handled: new exceptions, and objects that are raised again and have a context."""
import sys
import traceback
from typing import Any, Callable

import numpy as np
import pytest
from support_engine import cap

ONE, TWO = ValueError("one"), KeyError("two")
seen: list = []


def chain(e: Any) -> list:
    rows: list = []
    ids: list[int] = []
    while e is not None:
        again = ids.index(id(e)) if id(e) in ids else None
        rows.append((type(e), e.args, e.__suppress_context__, repr(e.__cause__), again))
        if again is not None:
            break
        ids.append(id(e))
        e = e.__context__
    return rows


def raise_one(): raise ONE


def raise_one_in_a_handler():
    try: raise TWO
    except KeyError: raise ONE


def raise_one_again():
    try: raise ONE
    except ValueError as e: raise e


def raise_one_from_new():
    try: raise IndexError("inner")
    except IndexError as e: raise ONE from e


def raise_new(): raise IndexError("new")
def look(): seen.append((chain(sys.exc_info()[1]), [(f.filename, f.lineno, f.name) for f in traceback.extract_tb(sys.exc_info()[2])]))


def look_from_a_handler():
    try: raise IndexError("inner")
    except IndexError as e: seen.append(chain(e))


ACTIONS = [raise_one, raise_one_in_a_handler, raise_one_again, raise_one_from_new, raise_new, look, look_from_a_handler]


def divide(a):
    try: raise TypeError("t")
    except TypeError: return a / 0


def divide_in_two(a):
    try: raise TypeError("t")
    except TypeError:
        try: {}["k"]
        except KeyError: return a / 0


def inlined(a): return divide(a) + divide(a)


def behind(a):
    try: raise TypeError("t")
    except TypeError: pass
    return a / 0


def in_a_loop(a):
    for k in range(3):
        try: {}[k]
        except KeyError: b = np.log(a * 0); c = b[0] / a
    return c


def at_the_end(a):
    try: b = [1][a.size]
    except IndexError: b = np.sqrt(-a); b /= 0
    finally: c = a / 0
    return b, c


def raised_again(a):
    try:
        try: raise TypeError("t")
        except TypeError: a / 0
    except ValueError as e: return chain(e)
    except IndexError as e: return chain(e), a / 0


def observed(f: Callable, action: Callable, has_context: bool) -> Any:
    for e in (ONE, TWO):
        e.__context__ = e.__cause__ = None
        e.__suppress_context__, e.__traceback__ = False, None
    if has_context:
        ONE.__context__ = OSError("from before")
        TWO.__context__ = ONE
    seen.clear()
    with np.errstate(all="call"):
        np.seterrcall(lambda kind, flag: action())
        try:
            result: Any = repr(f(np.ones(2)))
        except Exception as e:
            result = chain(e), type(e)
    return result, list(seen)


@pytest.mark.parametrize("has_context", [False, True])
@pytest.mark.parametrize("f", [divide, divide_in_two, inlined, behind, in_a_loop, at_the_end, raised_again], ids=lambda f: f.__name__)
def test_what_an_operation_raises_in_a_handler_has_the_context_of_plain_python(f: Callable, has_context: bool) -> None:
    ours = cap(f)
    with np.errstate(all="ignore"):
        ours(np.ones(2))
    for action in ACTIONS:
        want = observed(f, action, has_context)
        for _ in range(2):
            assert observed(ours, action, has_context) == want, action.__name__


def the_same_in_a_handler(k):
    try: raise ONE
    except ValueError as e:
        try: raise e
        except ValueError as again: return chain(again)


def the_same_in_a_loop(k):
    rows = []
    for i in range(3):
        try:
            try: raise KeyError(i)
            except KeyError: raise ONE
        except ValueError as e: rows.append(chain(e))
    return rows


def the_outer_from_the_inner(k):
    try:
        try: {}[k]
        except KeyError as e:
            kept = e
            try: raise TypeError("x")
            except TypeError: raise kept
    except KeyError as e: return chain(e)


def two_objects(k):
    a, b = ValueError("a"), KeyError("b")
    try:
        try: raise a
        except ValueError:
            try: raise b
            except KeyError: raise a
    except ValueError as e: return chain(e)


def again_at_the_end(k):
    e = ValueError("v")
    for _ in range(3):
        try: raise e
        except ValueError as x: last = x
    raise last


def from_none(k):
    e = ValueError("v")
    try:
        try: raise e
        except ValueError:
            try: {}[k]
            except KeyError: raise e from None
    finally: print(end="")


@pytest.mark.parametrize("has_context", [False, True])
@pytest.mark.parametrize("f", [the_same_in_a_handler, the_same_in_a_loop, the_outer_from_the_inner, two_objects, again_at_the_end, from_none],
                         ids=lambda f: f.__name__)
def test_one_object_raised_twice_has_the_chain_of_plain_python(f: Callable, has_context: bool) -> None:
    ours = cap(f)
    for _ in range(3):
        assert observed(ours, raise_new, has_context) == observed(f, raise_new, has_context)


def within_a_handler(f, a):
    try: raise OSError("around")
    except OSError: return f(a)


def within_a_generator(f, a):
    def gen():
        yield f(a), sys.exc_info()[1]
        yield chain(sys.exc_info()[1])
    it = gen()
    try: raise OSError("around")
    except OSError as e: first = next(it); same = first[1] is e
    return repr(first), same, next(it), sys.exc_info()[1]


@pytest.mark.parametrize("around", [within_a_handler, within_a_generator], ids=lambda f: f.__name__)
@pytest.mark.parametrize("f", [divide, inlined, in_a_loop], ids=lambda f: f.__name__)
def test_what_the_caller_is_handling_is_the_end_of_the_chain(f: Callable, around: Callable) -> None:
    ours = cap(f)
    with np.errstate(all="ignore"):
        ours(np.ones(2))
    for action in ACTIONS:
        want = observed(lambda a: around(f, a), action, False)
        for _ in range(2):
            assert observed(lambda a: around(ours, a), action, False) == want, action.__name__


def formatted(x, spec):
    try: raise TypeError("t")
    except TypeError: return f"{x:{spec}}"


def test_what_the_caller_is_handling_is_not_changed() -> None:
    def around(f: Callable, spec: str) -> Any:
        try: raise OSError("around")
        except OSError as outer:
            try: return f(1.5, spec)
            except ValueError as e: return chain(e), chain(outer)
    ours = cap(formatted)
    for spec in (".2f", "zz", ".3f", "%%"):
        assert around(ours, spec) == around(formatted, spec)
