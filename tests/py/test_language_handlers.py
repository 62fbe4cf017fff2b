"""Operations under handlers of the compiled function: captured in one graph, and whatever they raise at run time goes to the handler as in plain Python."""

import warnings

import numpy as np
import pytest
from differential_compare import observe
from support_engine import Cases, cap, check_case, check_same, check_twins, framegate, needs_engine

case = Cases()
A, B, C = np.ones((3, 3)), np.ones((2, 2)), np.arange(3.0)
PAIRS = ((A, A), (A, B), (A, C), (C, B), (A * 0, A * 0))


class Raising:
    """Context managers that make NumPy call something on a division by zero."""

    def __init__(self, error): self.error = error
    def fail(self, *_): raise self.error
    def __enter__(self):
        self.state = np.errstate(all="call", call=self.fail)
        return self.state.__enter__()
    def __exit__(self, *info): return self.state.__exit__(*info)


@case(*PAIRS)
def one_operation(a, b):
    try: y = a @ b
    except ValueError: y = a * 2
    return y
@case(*PAIRS)
def everything_around(a, b):
    log, n = [1], 0
    try:
        n += 1
        log.append("try")
        y = a @ b
        n += 1
        y = y + b
    except (ValueError, TypeError) as e:
        log.append((type(e).__name__, str(e), e.args, e.__traceback__.tb_lineno, e.__traceback__.tb_next is None, e.__context__))
        y = n
    else: log.append("else"); y = y * n
    finally: log.append("finally"); n += 10
    return y, n, log
@case(*PAIRS)
def two_levels(a, b):
    x = a
    try:
        try: x = a + b
        except TypeError: x = "inner"
        finally: y = 5
        x = x @ b
    except ValueError as e: return str(e), y
    return x, y
@case(*[(a, b, n) for a, b in PAIRS for n in (0, 3)])
def in_a_loop(a, b, n):
    out = []
    for i in range(n):
        try:
            if i == 1: continue
            out.append((a @ b) / i)
        except ValueError as e: out.append(str(e)); continue
        finally: out.append(i)
        if i == 2: break
    return out
@case(*PAIRS)
def return_from_try(a, b):
    n = [0]
    try: return a @ b, n
    except ValueError: return "no", n
    finally: n[0] += 1
@case(*PAIRS)
def raised_again(a, b):
    try: return a @ b
    except ValueError:
        a[0] = 9.0
        raise
@case(*PAIRS)
def raised_as_another(a, b):
    try: return a @ b
    except ValueError as e: raise RuntimeError("shape") from e
@case(*PAIRS)
def raised_in_the_handler(a, b):
    try: return a @ b
    except ValueError: return b @ a
@case(*PAIRS)
def in_place(a, b):
    try: a += b; a[0] = b
    except ValueError as e: return a, str(e)
    return a
@case(*PAIRS)
def effects_before_the_error(a, b):
    d = {"n": 0}
    try:
        d["n"] = 1
        a[0] = 5.0
        d["y"] = a @ b
        d["n"] = 2
    except ValueError: d["bad"] = True
    return d
def helper(a, b):
    c = a + 1
    return inner_helper(c, b)
def inner_helper(c, b): return c @ b
@case(*PAIRS)
def raised_in_inlined_functions(a, b):
    try: return helper(a, b)
    except ValueError as e:
        tb, names = e.__traceback__, []
        while tb is not None: names.append((tb.tb_frame.f_code.co_name, tb.tb_lineno)); tb = tb.tb_next
        return names
@case(*PAIRS)
def closure_cells(a, b):
    n = 0
    def bump(): nonlocal n; n += 1
    try: bump(); y = a @ b; bump()
    except ValueError: y = "no"
    bump()
    return y, n
@case((4, 2), (4, 0), (4.5, 0), ("x", 2), (True, 3))
def scalars(n, k):
    try: q = n / k; r = n % k
    except ZeroDivisionError as e: return str(e)
    except TypeError as e: return e.args
    return q, r, n ** k
@case(("x", 2), (2, "x"), (2.5, []), (None, 1))
def texts_of_operators(n, k):
    out = []
    try: n + k
    except TypeError as e: out.append(str(e))
    try: n += k
    except TypeError as e: out.append(str(e))
    try: n **= k
    except TypeError as e: out.append(str(e))
    try: n @ k
    except TypeError as e: out.append(str(e))
    try: n < k
    except TypeError as e: out.append(str(e))
    try: -n
    except TypeError as e: out.append(str(e))
    return out
@case(([1.0, 2.0], 1), ([1.0, 2.0], 5), ({"a": 1}, "a"), ({"a": 1}, "b"))
def containers(c, k):
    try: v = c[k] * 2
    except LookupError as e: return type(e).__name__, e.args
    return v
@case(*[(a, b) for a, b in PAIRS])
def unbound_when_it_fails(a, b):
    try: y = a @ b
    except ValueError: pass
    return y
@case(*PAIRS)
def deleted_before_it_fails(a, b):
    c = a + 1
    try:
        del c
        y = a @ b
    except ValueError: y = "c" in locals()
    return y
@case(*PAIRS)
def extended_half_way(a, b):
    out = []
    try: out.extend(x @ b for x in (b, b, a))
    except ValueError: out.append("no")
    return out
@case(*PAIRS)
def list_of_results(a, b):
    out = []
    try:
        for x in (b, b, a): out.append(x @ b)
    except ValueError: out.append("no")
    return out
@case(*PAIRS)
def frame_locals_in_the_traceback(a, b):
    marker = a.shape
    try: y = a @ b
    except ValueError as e: return sorted(k for k in e.__traceback__.tb_frame.f_locals if not k.startswith(".")), marker
    return y
@case((C, 1), (C, 7))
def subscripts(a, i):
    try: return a[i] + a[int(a[1])]
    except IndexError as e: return str(e)


@case.parametrize()
def test_case(case): check_case(case)


@needs_engine
def test_one_graph_with_and_without_an_error():
    f = framegate.compile(one_operation, fullgraph=True)
    for a, b in PAIRS * 2:
        check_same(observe(one_operation, (a, b)), observe(f, (a, b)), "fullgraph")


def divide(a, b):
    log = ["start"]
    try:
        log.append("try")
        y = a / b
        log.append("done")
    except FloatingPointError as e: return log, "fpe", str(e)
    except RuntimeWarning as e: return log, "warning", str(e)
    except MemoryError as e: return log, "memory", e.args
    finally: log.append("finally")
    return log, y


def test_what_is_raised_is_decided_at_run_time():
    """The state of warnings and errors is that of the call, not that of the compilation."""
    f = cap(divide)
    zero = C * 0
    def plain(): return observe(divide, (C, zero), filename=__file__)
    def ours(): return observe(f, (C, zero), filename=__file__)
    with np.errstate(all="ignore"): check_same(plain(), ours(), "ignored")
    with np.errstate(all="raise"): check_same(plain(), ours(), "raised")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_same(plain(), ours(), "warning as error")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_same(plain(), ours(), "no warning")
    for error in (KeyboardInterrupt("stop"), MemoryError("full"), SystemExit(3), StopIteration(1)):
        with Raising(error): check_same(plain(), ours(), type(error).__name__)
    with np.errstate(all="ignore"): check_same(plain(), ours(), "ignored again")


def test_bare_handlers_see_what_is_no_exception():
    def f(a, b):
        try: return a / b
        except: return "caught"  # noqa: E722
    g = cap(f)
    with np.errstate(all="ignore"): assert not isinstance(g(C, C), str)
    for error in (KeyboardInterrupt(), MemoryError()):
        with Raising(error): assert f(C, C * 0) == g(C, C * 0) == "caught"


def test_objects_are_let_go_when_the_handler_runs():
    """Neither arguments nor intermediate results are held by the compiled frame when plain Python would not hold them."""
    import weakref
    def f(a, b, seen):
        big = a + 1
        ref = weakref.ref(big)
        del big
        try: a @ b
        except ValueError: seen.append(ref() is None)
    def make():
        return f, []
    want, got = [], []
    f(A, B, want)
    g = cap(f)
    for _ in range(2): g(A, B, got)
    assert want == [True] and got == [True, True]


def test_handlers_of_methods_and_attributes():
    def make():
        class Model:
            def __init__(self): self.scale, self.failures = 2.0, 0
            def step(self, a, b):
                try: out = (a @ b) * self.scale
                except ValueError: self.failures += 1; out = None
                self.scale += 1
                return out
        m = Model()
        return m.step, m
    check_twins(make, list(PAIRS) * 2)


# --- exceptions that are known while tracing: the handler is part of the graph

class Failure(Exception): pass
class Narrow(Failure): pass


one_graph = Cases()


def checked(a, b):
    if a.shape != b.shape: raise ValueError("shapes", a.shape)
    return a + b
def relays(a, b):
    try: return checked_shape(a, b)
    except ValueError as e: raise RuntimeError("no") from e
def tries(a, b):
    try: return a @ b
    except ValueError: return None


@one_graph(*PAIRS)
def handler_does_the_work(a, b):
    try: y = a @ b
    except ValueError: y = a * 2
    else: y = y + 1
    finally: a = 3
    return y, a
@one_graph(*PAIRS)
def handler_reads_the_exception(a, b):
    try: return a @ b
    except (TypeError, ValueError) as e: return a - 1, str(e), e.args, f"{e}", isinstance(e, ValueError), type(e).__name__, repr(e)
@one_graph((A, A), (A, B), (B, B))
def explicit_raise(a, b):
    try:
        if a.shape[0] == 2: raise Narrow("two", a.shape)
        if b.shape[0] == 2: raise KeyError
        y = a + b
    except Failure as e: y = a * 2, e.args
    except LookupError as e: y = b * 3, e.args, str(e)
    return y
@one_graph(*PAIRS)
def raised_in_an_inlined_function(a, b):
    try: y = checked(a, b)
    except ValueError as e: y = a, e.args
    return y
@one_graph(*PAIRS)
def raised_twice(a, b):
    try: y = relays(a, b)
    except RuntimeError as e: y = a, str(e)
    return y
@one_graph((A, A), (A, B), (A, C), (C, B))
def handled_in_an_inlined_function(a, b):
    x = checked(a, a)
    return x, tries_without_arithmetic(a, b)
def tries_without_arithmetic(a, b):
    try: return checked_shape(a, b)
    except ValueError as e: return a * 2, e.args
def checked_shape(a, b):
    if a.shape != b.shape: raise ValueError("differs")
    return a.T
@one_graph(*PAIRS)
def nested_handlers(a, b):
    log = []
    try:
        try: a @ b
        except TypeError: log.append("type")
        finally: log.append("finally")
    except ValueError:
        try: checked(b, a)
        except ValueError as e: log.append(e.args)
        else: log.append("else")
    return log
@one_graph(*[(a, b, n) for a, b in PAIRS for n in (0, 3)])
def in_a_loop_of_one_graph(a, b, n):
    out = []
    for i in range(n):
        try: y = a @ b
        except ValueError:
            if i == 1: continue
            y = a * i
        out.append(y)
    return out
@one_graph(({"a": 1}, "a", 0), ({"a": 1}, "b", 1), ({}, "b", 5))
def builtin_errors(d, k, i):
    out, x = [], [1, 2]
    try: out.append(d[k])
    except KeyError as e: out.append(e.args)
    try: out.append(x[i])
    except IndexError as e: out.append(str(e))
    try: p, q = x[i:]
    except ValueError as e: out.append(str(e))
    try: out.append(int(k))
    except ValueError as e: out.append(str(e))
    try: out.append(x[0] / i)
    except ZeroDivisionError as e: out.append(str(e))
    it = iter(x); next(it); next(it)
    try: next(it)
    except StopIteration: out.append("stop")
    return out
@one_graph(*PAIRS)
def error_variable_is_gone(a, b):
    e = 1
    try: a @ b
    except ValueError as e: pass
    try: return e
    except NameError: return "unbound"


handlers = Cases()


@handlers(*PAIRS)
def exception_is_kept(a, b):
    err = None
    try: y = a @ b
    except ValueError as e: err = e; y = a * 2
    return y, str(err), err and err.__traceback__.tb_lineno
@handlers(*PAIRS)
def exception_is_put_away(a, b):
    errors = []
    try: y = a @ b
    except ValueError as e: errors.append(e); y = None
    return y, [(type(e), str(e)) for e in errors]
@handlers(*PAIRS)
def error_in_the_handler(a, b):
    try: return a @ b
    except ValueError: return a[7]
@handlers(*PAIRS)
def error_in_the_handler_of_a_function(a, b):
    try: return checked(a, b)
    except ValueError: return checked_shape(a, b)
@handlers(*PAIRS)
def caught_outside_the_handler(a, b):
    try:
        try: return checked(a, b)
        except ValueError as e: a = 5; return np.sum(b[9])
        finally: b = 1
    except IndexError as e:
        return str(e), str(e.__context__), a, b, e.__context__.__traceback__.tb_lineno, e.__traceback__.tb_lineno
@handlers(*PAIRS)
def asks_what_is_handled(a, b):
    import sys
    try: a @ b
    except ValueError: return sys.exc_info()[0], sys.exc_info()[2].tb_lineno
@handlers(*PAIRS)
def bare_raise_of_a_callee(a, b):
    def again(): raise
    try: a @ b
    except ValueError: again()
@handlers(*PAIRS)
def handler_changes_what_exists(a, b):
    try: a @ b
    except ValueError: a[0] = 7.0; a += 1
    return a.sum()
@handlers(*PAIRS)
def raise_of_an_existing_exception(a, b):
    err = ValueError("kept")
    try:
        if a is not b: raise err
    except ValueError as e: return e is err, err.__traceback__.tb_lineno
    return a @ b


@one_graph.parametrize()
def test_known_exception(case): check_case(case)


@handlers.parametrize()
def test_handler(case): check_case(case)


@needs_engine
@one_graph.parametrize()
def test_known_exceptions_are_one_graph(case):
    f = framegate.compile(case.fn, fullgraph=True)
    for args in case.inputs * 2:
        check_same(observe(case.fn, args), observe(f, args), "fullgraph")


def handler_that_divides(a, b):
    try: return checked(a, b)
    except ValueError: return a / (a * 0)


def test_what_fails_in_a_traced_handler_has_its_context():
    """At run time no exception is being handled there, and yet the new one was raised on top of it."""
    f = cap(handler_that_divides)
    def both(what):
        want, got = (observe(g, (C, B), filename=__file__) for g in (handler_that_divides, f))
        check_same(want, got, what)
    with np.errstate(all="ignore"): both("quiet")
    with np.errstate(all="raise"): both("raised")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        both("warning")
    with np.errstate(all="raise"):
        try: f(C, B)
        except FloatingPointError as e:
            assert type(e.__context__) is ValueError and e.__context__.args == ("shapes", (3,))
            names, tb = [], e.__context__.__traceback__
            while tb is not None: names.append(tb.tb_frame.f_code.co_name); tb = tb.tb_next
            assert names == ["handler_that_divides", "checked"]
    for kind in (KeyboardInterrupt, MemoryError):
        for g in (handler_that_divides, f):
            with Raising(kind("now")):
                try: g(C, B)
                except kind as e: assert e.args == ("now",) and type(e.__context__) is ValueError and e.__context__.__context__ is None


def test_classes_of_exceptions_may_change():
    def make():
        class Base(Exception): pass
        class Mine(Base): pass
        def f(n):
            try: raise Mine(n)
            except Base as e: return "base", e.args
            except Exception: return "other"
        return f, (Base, Mine)
    def change(state): state[1].__bases__ = (type("Other", (Exception,), {}),)
    check_twins(make, [(1,), (1,), change, (1,)])


class Gone:
    """A descriptor that finds nothing."""
    def __get__(self, o, kind=None): raise AttributeError("gone")


class Guarded:
    gone = Gone()
    def __init__(self, n): self.n = n
    @property
    def p(self):
        if self.n == 3: raise AttributeError("p is gone")
        if self.n == 4: raise KeyError("p")
        return self.n + 1
    @property
    def through(self): return self.p


class Fallback(Guarded):
    def __getattr__(self, name): return "instead of " + name


class Refusing(Guarded):
    def __getattr__(self, name): raise AttributeError(name)


@pytest.mark.parametrize("kind", [Guarded, Fallback, Refusing], ids=lambda k: k.__name__)
def test_what_a_property_does_not_find_is_asked_of_getattr(kind):
    def read(n):
        try: return kind(n).p
        except (AttributeError, KeyError) as e: return e.args
    def of_an_argument(o):
        try: o.x = o.through
        except AttributeError: return "none"
        except KeyError: return "key"
        return o.x
    def of_a_descriptor(o):
        try: return o.gone
        except AttributeError as e: return e.args
    def inlined(o): return of_an_argument(o), of_a_descriptor(o)
    def with_default(o):
        try: return getattr(o, "p", 5), hasattr(o, "through"), getattr(o, "p")
        except (AttributeError, KeyError) as e: return type(e).__name__
    compiled = cap(read)
    for n in (1, 3, 3, 4, 4, 2, 3):
        check_same(observe(read, (n,), filename=__file__), observe(compiled, (n,), filename=__file__), f"{n}")
    for fn in (of_an_argument, of_a_descriptor, inlined, with_default):
        compiled = cap(fn)
        for n in (1, 3, 3, 4, 4, 2, 3):
            check_same(observe(fn, (kind(n),), filename=__file__), observe(compiled, (kind(n),), filename=__file__), f"{fn.__name__} {n}")
