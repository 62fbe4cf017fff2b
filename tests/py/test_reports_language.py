"""Generators, handlers, tracebacks and corners of the language that frame capture has got wrong before: the values are plain Python's."""

import collections
import contextlib
import copy
import dataclasses
import itertools
import sys
import threading
import warnings

import numpy as np
import pytest
from support_engine import Cases, cap, check_case, check_twins

case = Cases()
ONE, ZERO = np.ones(1), np.zeros(1)


class Log:
    def __init__(self, log): self.log = log
    def __enter__(self): self.log.append("in"); return self
    def __exit__(self, *a): self.log.append("out")


@case((3,), (0,))
def generator_over_arrays(n):
    def squares(k):
        for i in range(k): x = np.full(2, float(i)); yield x @ x
    it = squares(n)
    return next(it, None), list(it), sum(squares(n))
@case((1,),)
def generator_closes_after_the_block(n):
    log = []
    def g():
        try: log.append("start"); yield n
        finally: log.append("fin")
    it = g()
    with Log(log): v = next(it)
    it.close()
    return v, log
@case((ONE,), (np.ones(2),))
def manager_made_before_a_break(x):
    log = []
    m = Log(log); x = x + 1
    print("break")
    with m: x = x * 3
    return x, log
@case((0,), (1,))
def contextmanager_that_counts(fail):
    depth = 0
    @contextlib.contextmanager
    def deeper():
        nonlocal depth
        depth += 1
        try: yield depth
        finally: depth -= 1
    try:
        with deeper() as a, deeper() as b:
            if fail: raise ValueError(a, b)
            return a * 10 + b, depth
    except ValueError as e: return e.args, depth
@case((1, np.arange(3)), (7, np.arange(3)), (2, np.arange(3)), (-4, np.arange(3)))
def captured_operation_raises_inside_try(i, xs):
    try: return xs[i] * 2
    except IndexError as e: return str(e)
@case((np.ones((2, 2)), np.ones(3)), (np.ones((2, 2)), np.ones(2)))
def captured_matmul_raises_inside_try(a, b):
    try: y = a @ b
    except ValueError: return "shape"
    else: return y
    finally: a[0] = 5
@case(({"id": 1}, "id"), ({"id": 1}, "no"), ({}, "id"), ({"no": 5}, "no"))
def key_error_takes_the_handler(d, k):
    try: v = d[k]
    except KeyError as e: v = (e.args, "none")
    return v
@case((1,),)
def consumed_iterators(n):
    rows, back = iter({"p": 1, "q": 2}.items()), reversed("ab")
    t = sum(v for _, v in rows)
    s = "".join(back)
    try: next(rows)
    except StopIteration: t += 100
    return t, s, next(back, None), list(rows)
@case(([1, 2], [3, 4]), ([1, 2], [3]), ([], []), ([1], [2, 3]))
def strict_zip_in_a_loop(a, b):
    t = 0
    try:
        for p, q in zip(a, b, strict=True): t += p * q
    except ValueError as e: return t, str(e)
    return t
@case((ONE,),)
def error_after_a_break_has_its_line(x):
    x = x + 1
    print("break")
    x = x * 2
    raise ValueError("here")
@case((1,),)
def cause_and_context(n):
    try: [][n]
    except IndexError as e: raise RuntimeError("cfg", n) from e
@case((1,), (2,))
def groups_split_over_handlers(n):
    out = []
    try: raise ExceptionGroup("g", [ValueError(n), ExceptionGroup("h", [KeyError(2), OSError(3)])][:n])
    except* ValueError as e: out.append(("v", len(e.exceptions)))
    except* (KeyError, OSError) as e: out.append(("k", str(e)))
    return out
@case((2,), (5,))
def super_forms(n):
    class A:
        k = 1
        @classmethod
        def name(cls): return cls.__name__
        def val(self, x): return x + self.k
        @staticmethod
        def st(v): return v * 2
        @property
        def p(self): return self.k + 1
    class B(A):
        k = n
        def name(self): return "b:" + super().name()
        def val(self, x): return super().val(x) * __class__.k + super(B, self).st(x)
        @property
        def p(self): return super().p * 10
    return B().name(), B().val(3), B().p
@case((1, 2), (5, 6))
def odd_parameter_names(self, frame, cache=3, *, fn=4): return self + frame + cache + fn
@case((2,), (3,))
def class_inside_with_closure(n):
    k = n + 1
    class Loc:
        y = k * 2
        z = [y for y in range(k)]
        def f(self): return self.y + k
    return Loc().f(), Loc.z, Loc.__qualname__, Loc.__name__
@case((1,), (4,))
def shared_nonlocal(n):
    level, seen = 0, []
    def probe(): seen.append(level)
    def put(v, then):
        nonlocal level
        level = v
        then()
    put(n, probe); put(n + 1, probe)
    return level, seen
@case((np.array([0.0, 2.0]),), (np.zeros(2),))
def walrus_with_an_array_condition(x):
    if (m := (x > 1).any()): x = x * 10
    ys = [v for i in range(4) if (v := i * i) > 3]
    return x, bool(m), ys, v
@case((np.ones(3),), (np.ones(11),), (np.ones((2, 2)),))
def formats_of_shape_numbers(x): n = x.shape[0]; return f"{n:03d}|{n / 2:.1f}|{n!r:>4}|{n=}|{x.shape}", "%d" % n, format(n, ">4"), "{:,}".format(n * 1000)
class V(collections.namedtuple("V", "a b")):
    __slots__ = ()
    def __add__(self, o): return V(self.a + o.a, self.b - o.b)
    @property
    def both(self): return self.a, self.b
@case((V(1, 2),), (V(ONE, ZERO),))
def namedtuple_subclass(v): w = v + V(v.a * 2, v.b * 3); return w, type(w).__name__, w.both, v._replace(a=0), [*w]
@case((0,), (1,), (2,))
def deques_with_limits(n):
    d = collections.deque(maxlen=n)
    for i in range(4): d.append(i)
    d.appendleft(9); d.extend([7, 8]); d.extendleft("ab")
    return list(d), d.maxlen, len(d)
@case((["BB", "c", "bb"],), ([],))
def set_update_with_iterators(extra):
    s = {"a"}; t = s
    s.update(map(str.lower, extra), (c for c in "xy")); s.discard("a"); s.intersection_update(iter(["bb", "x"]))
    return sorted(s), s is t, frozenset(s) >= {"x"}
class Node:
    def __init__(self): self.xs = [np.ones(1)]; self.me = self
@case((2.0,), (3.0,))
def deepcopy_of_cycles(k):
    n = Node()
    c = copy.deepcopy(n)
    c.xs[0] += k; c.xs.append(k)
    return c.xs[0] * 2, c.me is c, n.xs, len(n.xs)
@case((np.arange(7),), (np.arange(1),), (np.arange(16),))
def recursive_sum_on_slices(v):
    def go(w): return w[0] if len(w) == 1 else go(w[: len(w) // 2]) + go(w[len(w) // 2:])
    return go(v)
@case((2.0,), (3.0,))
def property_over_a_closure(k):
    def make():
        v = k
        class M:
            @property
            def y(self): return v * 10
            def bump(self):
                nonlocal v
                v += 1
        return M()
    m = make()
    a = m.y; m.bump()
    return a, m.y
@dataclasses.dataclass(frozen=True)
class Conf:
    k: float = 2.0
    xs: list = dataclasses.field(default_factory=list)
@case((Conf(),), (Conf(5.0, [1]),))
def replace_of_a_replaced_dataclass(c):
    d = dataclasses.replace(dataclasses.replace(c, k=0.5), k=c.k + 1)
    try: d.k = 0.0
    except dataclasses.FrozenInstanceError: d.xs.append(1)
    return d, d == c, dataclasses.astuple(d), [f.name for f in dataclasses.fields(c)], c
@case(([1, 2, 3],), ([],))
def itertools_family(xs):
    a, b = itertools.tee(itertools.chain.from_iterable([xs, [9]]))
    return (list(a), list(itertools.accumulate(b, initial=10)), list(itertools.compress("abc", xs)), list(itertools.starmap(pow, zip(xs, xs))),
            list(itertools.takewhile(lambda v: v < 3, xs)), list(itertools.dropwhile(lambda v: v < 2, xs)), list(itertools.islice(itertools.count(5, 2), 3)),
            list(itertools.islice(itertools.cycle(xs or [0]), 4)), list(itertools.repeat(1, 2)), list(itertools.filterfalse(None, [0, *xs])),
            list(itertools.permutations(xs, 2)), list(itertools.combinations_with_replacement("ab", 2)))
class Slot:
    __slots__ = ("v",)
@case((6,), ("k",), (3,))
def descriptor_get_checks_its_object(v):
    s = Slot(); s.v = v
    out = [Slot.v.__get__(s, Slot)]
    for d, o in ((Slot.v, v), (str.upper, v)):
        try:
            got = d.__get__(o, type(o))
            out.append(got())
        except TypeError as e: out.append(type(e).__name__)
    return out


@case.parametrize()
def test_kinds(case): check_case(case)


def test_repr_of_user_objects_runs_on_every_call():
    def make():
        class C:
            n = 0
            def __repr__(self): C.n += 1; return f"<{C.n}>"
        c = C()
        return (lambda x: (x * len(repr(c)), f"{c!r}", str([c]))), lambda: C.n
    check_twins(make, [(ONE,)] * 4)


def test_list_and_counter_of_a_class():
    def make():
        class T:
            log = []; total = 0
            def push(self, x): T.log.append(x * 2); type(self).total += 1; return len(self.log) + self.total
        t = T()
        return t.push, lambda: [T.log, T.total, vars(t)]
    check_twins(make, [(ONE,), (ONE,), (np.zeros(2),), (ONE,)])


def test_setters_and_getters_run_in_order():
    def make():
        class P:
            log = []
            @property
            def v(self): P.log.append("get"); return self._v * 2
            @v.setter
            def v(self, k): P.log.append("set"); self._v = k + 1
            @v.deleter
            def v(self): P.log.append("del"); del self._v
        p = P()
        def f(x):
            p.v = 4
            p.v += 1
            y = x + p.v
            del p.v
            return y, hasattr(p, "_v")
        return f, lambda: P.log
    check_twins(make, [(ONE,)] * 3)


def test_a_warning_is_shown_once_and_at_the_callers_line():
    def old(x): warnings.warn("old", DeprecationWarning, stacklevel=2); return x + 1
    def f(x):
        for _ in range(3): x = old(x)
        return x
    run = cap(f)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        run(ZERO); run(ZERO)
    assert [w.lineno - f.__code__.co_firstlineno for w in seen] == [1] and seen[0].filename == __file__


def test_frames_that_a_callee_sees():
    def who():
        f = sys._getframe(1)
        return f.f_code.co_name, f.f_lineno - f.f_code.co_firstlineno, sorted(f.f_locals), f.f_globals is globals()
    def f(x):
        y = x + 1
        found = who()
        return y, found
    run = cap(f)
    for _ in range(3): assert run(ZERO)[1] == ("f", 2, ["who", "x", "y"], True)


def test_a_generator_function_with_close_and_throw():
    def f(n):
        try:
            for i in range(n): yield np.full(1, i)
        except KeyError: yield "caught"
        finally: log.append("closed")
    log = []
    it = cap(f)(3)
    assert next(it)[0] == 0 and it.throw(KeyError()) == "caught" and list(it) == [] and log == ["closed"]
    it = cap(f)(3); next(it); it.close()
    assert log == ["closed"] * 2


def test_traceback_names_each_frame_once_and_in_order():
    def inner(x):
        return x @ np.ones((3, 3))
    def middle(x): return inner(x + 1)
    def outer(x):
        y = x * 2
        return middle(y)
    run = cap(outer)
    run(np.ones(3))
    shown = []
    for g in (outer, run):
        with pytest.raises(ValueError) as e: g(np.ones(2))
        tb, found = e.value.__traceback__.tb_next, []
        while tb:
            if tb.tb_frame.f_code.co_filename == __file__: found.append((tb.tb_frame.f_code.co_name, tb.tb_lineno))
            tb = tb.tb_next
        shown.append(found)
    assert shown[0] == shown[1] and [n for n, _ in shown[0]] == ["outer", "middle", "inner"]


@pytest.mark.torch
def test_ambient_state_of_torch():
    torch = pytest.importorskip("torch")
    make, mm = cap(lambda: torch.zeros(1).dtype), cap(lambda a: a @ a)
    try:
        torch.set_default_dtype(torch.float64); a = make()
    finally: torch.set_default_dtype(torch.float32)
    assert (a, make()) == (torch.float64, torch.float32)
    x = torch.ones(2, 2)
    for _ in range(2):
        assert mm(x).dtype is torch.float32
        with torch.autocast("cpu", dtype=torch.bfloat16): assert mm(x).dtype is torch.bfloat16
    lin = torch.nn.Linear(2, 2)
    run = cap(lambda v: lin(v).sum())
    for flag in (True, False, True):
        lin.requires_grad_(flag)
        assert run(torch.ones(1, 2)).requires_grad is flag
    p, grads = torch.ones(1, requires_grad=True), cap(lambda v: (v * 2).requires_grad)
    quiet = []
    def other():
        with torch.no_grad(): quiet.extend(grads(p) for _ in range(40))
    t = threading.Thread(target=other); t.start()
    loud = [grads(p) for _ in range(40)]
    t.join()
    assert all(loud) and not any(quiet) and len(quiet) == 40
