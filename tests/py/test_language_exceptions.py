"""try, except, finally, raise, with: plain and compiled agree on flow, type, text, chain and traceback lines."""

import warnings

from support_engine import Cases, check_case

case = Cases()


class Custom(Exception):
    def __init__(self, code, text="t"): super().__init__(code, text); self.code = code
class Manager:
    def __init__(self, log, eat=False, fail=None): self.log, self.eat, self.fail = log, eat, fail
    def __enter__(self):
        self.log.append("enter")
        if self.fail == "enter": raise RuntimeError("enter")
        return self
    def __exit__(self, kind, value, tb):
        self.log.append(("exit", kind and kind.__name__, str(value)))
        if self.fail == "exit": raise RuntimeError("exit")
        return self.eat


@case((1,), (0,), ("x",))
def catch_one(n):
    try: return 10 // n
    except ZeroDivisionError as e: return str(e), e.args
@case((1,), (0,), ("x",))
def catch_several(n):
    try: return 10 // n
    except (ZeroDivisionError, TypeError) as e: return type(e).__name__
    finally: n = 5
@case((1,), (0,), ("x",))
def try_else_finally(n):
    log = []
    try:
        log.append("try")
        10 // n
    except ZeroDivisionError: log.append("except")
    else: log.append("else")
    finally: log.append("finally")
    return log
@case((1,), (0,))
def finally_overrides(n):
    try: return 1 // n
    finally: return "final"
@case(([],), ([1],))
def finally_mutates(xs):
    try:
        xs.append(1)
        return xs[1]
    finally: xs.append(2)
@case((2,), (0,))
def nested_try(n):
    try:
        try: return 1 // n
        except TypeError: return "inner"
        finally: n = 7
    except ZeroDivisionError: return "outer", n
@case((1,), (-1,))
def raise_plain(n):
    if n < 0:
        raise ValueError("negative", n)
    return n
@case((1,),)
def raise_class(n): raise KeyError
@case((1,),)
def raise_custom(n): raise Custom(n)
@case((1,),)
def raise_not_exception(n): raise n
@case((1,),)
def raise_from(n):
    try:
        {}["k"]
    except KeyError as e:
        raise RuntimeError("cfg") from e
@case((1,),)
def raise_from_none(n):
    try: {}["k"]
    except KeyError: raise RuntimeError("cfg") from None
@case((1,),)
def raise_in_handler(n):
    try: {}["k"]
    except KeyError: return 1 // 0
@case((1,), (0,))
def reraise(n):
    try: 1 // n
    except ZeroDivisionError:
        n += 1
        raise
@case((1,),)
def bare_raise_without_error(n): raise
@case((1,),)
def error_name_is_deleted(n):
    e = 5
    try: 1 // 0
    except ZeroDivisionError as e: pass
    return e
@case((0,), (1,), (2,), (3,))
def dispatch_on_type(n):
    try:
        if n == 0: raise KeyError("a")
        if n == 1: raise IndexError("b")
        if n == 2: raise Custom(5)
        return "none"
    except LookupError as e: return "lookup", repr(e)
    except Custom as e: return e.code, e.args
@case((3,), (0,))
def error_in_loop(n):
    out = []
    for i in range(n, -2, -1):
        try: out.append(6 // i)
        except ZeroDivisionError: out.append(None); continue
        finally: out.append("f")
        if i < 0: break
    return out
@case((3,),)
def break_through_finally(n):
    log = []
    while True:
        try: break
        finally: log.append("f")
    for i in range(n):
        try: continue
        finally: log.append(i)
    return log
@case((1,), (0,))
def return_through_with(n):
    log = []
    def f():
        with Manager(log): return 1 // n
    try: return f(), log
    except ZeroDivisionError: return log
@case((1,), (0,))
def with_eats(n):
    log = []
    with Manager(log, eat=True): 1 // n; log.append("after")
    return log
@case(("enter",), ("exit",), (None,))
def manager_fails(how):
    log = []
    try:
        with Manager(log, fail=how) as m: log.append(m.fail)
    except RuntimeError as e: log.append((str(e), type(e.__context__).__name__))
    return log
@case((1,),)
def manager_fails_after_error(n):
    with Manager([], fail="exit"):
        raise ValueError(n)
@case((1,), (0,))
def two_managers(n):
    log = []
    try:
        with Manager(log) as a, Manager(log, eat=n == 0): raise ValueError(n)
    except ValueError: log.append("escaped")
    return log
@case((1,),)
def not_a_manager(n):
    with n: pass
def deep(n):
    if n == 0:
        raise IndexError("deep")
    return deep(n - 1) + 1
@case((2,), (0,))
def error_through_frames(n): return deep(n)
@case((2,),)
def caught_from_depth(n):
    try: return deep(n)
    except IndexError as e:
        names, tb = [], e.__traceback__
        while tb: names.append(tb.tb_frame.f_code.co_name); tb = tb.tb_next
        return names
@case(([1, 2],), ([],), (None,))
def index_error(xs):
    try: return xs[1]
    except IndexError: return "short"
@case(({"a": 1}, "a"), ({}, "a"), ({"b": 2}, "a"), ({"a": 1}, []))
def key_error(d, k):
    try: v = d[k]
    except KeyError as e: v = e.args[0] + "!"
    return v
@case(({"a": 1}, "a"), ({}, "a"))
def key_error_escapes(d, k): return d[k]
@case((1,), (None,), ("s",))
def attribute_error(v):
    try: return v.upper()
    except AttributeError as e: return str(e)
@case(("1",), ("x",), (None,))
def value_error(s):
    try: return int(s)
    except (ValueError, TypeError) as e: return str(e)
@case((1,),)
def stop_iteration_in_function(n):
    it = iter([n]); next(it)
    try: next(it)
    except StopIteration as e: return e.value
@case((1,),)
def generator_raises(n):
    def g(): yield 1; raise ValueError("g")
    out = []
    try:
        for v in g(): out.append(v)
    except ValueError as e: out.append(str(e))
    return out
@case((1,),)
def generator_return_value(n):
    def g(): yield 1; return 9
    it = g(); next(it)
    try: next(it)
    except StopIteration as e: return e.value
@case((1,),)
def throw_into_generator(n):
    def g():
        try: yield 1
        except ValueError: yield "caught"
    it = g(); next(it)
    return it.throw(ValueError()), next(it, "end")
@case((1,),)
def exception_groups(n):
    out = []
    try: raise ExceptionGroup("g", [ValueError(1), KeyError(2), ValueError(3)])
    except* ValueError as eg: out.append(len(eg.exceptions))
    except* KeyError as eg: out.append(eg.exceptions[0].args)
    return out
@case((1,),)
def exception_group_rest(n):
    try: raise ExceptionGroup("g", [ValueError(1), OSError(2)])
    except* ValueError: pass
@case((1,),)
def notes(n): e = ValueError(n); e.add_note("hint"); raise e
@case((1,), (0,))
def warn_each_time(n):
    for _ in range(2): warnings.warn(f"old {n}", DeprecationWarning)
    return n
@case((1,),)
def warn_then_raise(n):
    warnings.warn("w", UserWarning)
    raise ValueError(n)
@case((1,),)
def warning_as_error(n):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try: warnings.warn("boom")
        except UserWarning as e: return str(e)
@case((1,), (0,))
def print_order(n):
    print("a", n, end=";")
    try: print(1 // n)
    except ZeroDivisionError: print("zero")
    finally: print("f", sep="")
    return n
@case(([1, 2],), ([],))
def effect_then_raise(xs):
    xs.append(1)
    xs[0] = "set"
    raise ValueError(len(xs))
@case((5,), (-1,))
def assert_without_text(n): assert n > 0; return n
@case((1,),)
def exit_exception(n):
    try: raise SystemExit(3)
    except SystemExit as e: return e.code
@case((1,),)
def catch_base(n):
    try: raise KeyboardInterrupt
    except BaseException as e: return type(e).__name__
@case((1,),)
def context_is_restored(n):
    import sys
    try: 1 // 0
    except ZeroDivisionError:
        try: {}["k"]
        except KeyError: pass
        return sys.exc_info()[0].__name__, n
@case((1,),)
def no_error_outside_handler(n):
    import sys
    try: 1 // 0
    except ZeroDivisionError: pass
    return sys.exc_info()
@case(("a",), (1,))
def handler_type_is_an_expression(v):
    table = {"a": ValueError, 1: KeyError}
    try: raise table[v](v)
    except table["a"]: return "value"
    except table[1]: return "key"
@case((1,),)
def bad_handler_type(n):
    try: raise ValueError
    except 5: return n
@case((3,), (0,))
def retry_loop(n):
    tries = 0
    while True:
        tries += 1
        try:
            if tries <= n: raise OSError(tries)
            return tries
        except OSError:
            if tries > 5: raise


@case.parametrize()
def test_exceptions(case): check_case(case)
