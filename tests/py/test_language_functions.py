"""Calls, arguments, closures, generators, classes, descriptors: plain and compiled agree."""

import contextlib
import copy
import dataclasses
import enum
import functools
import typing

from support_engine import Cases, cap, check_case, check_same, observe

case = Cases()


def helper(a, b=2, *rest, c=3, **more): return a, b, rest, c, more
def recursive(n): return 1 if n <= 0 else n * recursive(n - 1)
def is_even(n): return True if n == 0 else is_odd(n - 1)
def is_odd(n): return False if n == 0 else is_even(n - 1)


@case((1,), ("x",))
def call_forms(a):
    return (helper(a), helper(a, 5), helper(a, 5, 6, 7), helper(a, c=9), helper(b=1, a=a), helper(a, z=1, c=2), helper(*[a, 1, 2]),
            helper(a, **{"b": 4, "q": 5}), helper(*(a,), *[1], c=0, **{}, **{"k": a}))
@case((1,), ("x",))
def call_missing(a): return helper()
@case((1,),)
def call_twice_given(a): return helper(a, a=a)
@case((1,),)
def call_too_many(a): return recursive(a, a)
@case((1,),)
def call_bad_keyword(a): return recursive(m=a)
@case((1,), (None,), ([],))
def call_not_callable(a): return a()
@case((1, 2), (1,), (1, 2, 3), ())
def star_arguments(*args): return args, len(args), [a for a in args]
@case((1,), (2, 5), (0, 0))
def default_arguments(a, b=10): return a + b
@case((5,), (0,), (9,))
def recursion(n): return recursive(n), is_even(n)
@case((3,), (1,))
def lambdas(n): return (lambda: n)(), (lambda a, b=2: a + b + n)(1), (lambda *a, **k: (a, k))(1, x=2), list(map(lambda v: v + n, [1, 2]))
@case((3,), (1,))
def late_binding(n): return [f() for f in [lambda: i for i in range(n)]], [f() for f in [lambda i=i: i for i in range(n)]]
@case((3,), ("a",))
def nested_functions(n):
    def inner(m, k=n):
        def deeper(): return m, k, n
        return deeper()
    return inner(1), inner(1, 2)
@case((3,), (0,))
def nonlocal_counter(n):
    count = 0
    def bump(by=1):
        nonlocal count
        count += by
        return count
    for _ in range(n): bump()
    return bump(10), count
@case((2,), (7,))
def two_closures_share(n):
    level, seen = n, []
    def read(): seen.append(level)
    def write(v):
        nonlocal level
        level = v
        read()
    write(5); read(); write(level + 1)
    return level, seen
@case((3,),)
def returned_closure(n):
    total = n
    def add(k=1):
        nonlocal total
        total += k
        return total
    add()
    return add.__name__, add(), (lambda: add(5))
@case((3,), (4,))
def returned_lambda(n): xs = [n]; return lambda: xs + [n]
@case((5,), (0,))
def local_recursion(n):
    def go(k): return 0 if k <= 0 else k + go(k - 1)
    return go(n)
@case((1,),)
def mutable_default(a):
    def f(v, acc=[]): acc.append(v); return acc
    return f(a), f(a), f(a) is f(a)
@case((2, 3), (1, 0))
def decorators(a, b):
    def double(f):
        @functools.wraps(f)
        def g(*args): return f(*args) * 2
        return g
    @double
    @double
    def add(x, y): return x + y
    return add(a, b), add.__name__
@case((2,), (5,))
def partials(a): p = functools.partial(helper, a, c=1); return p(3), p(b=4, z=1), p.args, p.keywords
@case(([1, 2, 3],), ([],))
def reduce_with_start(xs): return functools.reduce(lambda a, b: a * 2 + b, xs, 1)
@case(([],), ([4],))
def reduce_raises(xs): return functools.reduce(lambda a, b: a + b, xs)
@case((6,), (1,))
def cached_function(n):
    calls = []
    @functools.lru_cache(None)
    def fib(k): calls.append(k); return k if k < 2 else fib(k - 1) + fib(k - 2)
    return fib(n), calls, fib.cache_info()
@case((4,), (0,))
def generator_function(n):
    def g():
        for i in range(n):
            got = yield i * i
            if got: yield got
        return "end"
    it = g()
    return list(g()), sum(g()), next(it, None), [v for v in it], max(g(), default=None)
@case((2,), (0,))
def generator_send(n):
    def g():
        v = 0
        while v < 10: v += (yield v) or 1
    it = g(); next(it)
    return it.send(n), it.send(3), next(it)
@case((3,),)
def yield_from(n):
    def inner(): r = yield from range(n); yield "after"; return 5
    def outer(): r = yield from inner(); yield r
    return list(outer())
@case((2,),)
def generator_close(n):
    log = []
    def g():
        try: yield 1; yield 2
        finally: log.append("closed")
    it = g(); next(it); log.append("before"); it.close()
    return log
@case((1,),)
def generator_is_lazy(n):
    log = []
    def g(): log.append("run"); yield 1
    it = g(); log.append("made"); list(it)
    return log
@case((3,), (0,))
def returned_generator(n): return (i * n for i in range(3))


class Point:
    count = 0
    def __init__(self, x, y=0): self.x, self.y = x, y
    def __eq__(self, o): return isinstance(o, Point) and (self.x, self.y) == (o.x, o.y)
    def __hash__(self): return hash((self.x, self.y))
    def __repr__(self): return f"P({self.x},{self.y})"
    def __add__(self, o): return type(self)(self.x + o.x, self.y + o.y) if isinstance(o, Point) else NotImplemented
    def __radd__(self, o): return Point(self.x + o, self.y)
    def __neg__(self): return Point(-self.x, -self.y)
    def __getitem__(self, i): return (self.x, self.y)[i]
    def __len__(self): return 2
    def __iter__(self): yield self.x; yield self.y
    def __contains__(self, v): return v in (self.x, self.y)
    def __call__(self, k): return self.x * k
    def __lt__(self, o): return self.x < o.x
    def __bool__(self): return self.x != 0
    def move(self, dx): self.x += dx; return self
    @property
    def norm1(self): return abs(self.x) + abs(self.y)
    @norm1.setter
    def norm1(self, v): self.x, self.y = v, 0
    @classmethod
    def origin(cls): return cls(0)
    @staticmethod
    def unit(): return Point(1, 1)
class Point3(Point):
    def __init__(self, x, y=0, z=0): super().__init__(x, y); self.z = z
    def move(self, dx): super().move(dx * 2); self.z += 1; return self
class Slots:
    __slots__ = ("a", "b")
    def __init__(self, a): self.a = a
class Dynamic:
    def __init__(self): self.log = []
    def __getattr__(self, name):
        if name.startswith("__"): raise AttributeError(name)
        return name.upper()
    def __setitem__(self, k, v): self.log.append((k, v))
    def __delitem__(self, k): self.log.append(("del", k))


@case((Point(1, 2),), (Point(0),), (Point3(1, 2, 3),))
def object_attributes(p): p.x += 1; p.extra = p.y; p.y = None; return p.x, p.extra, p, hasattr(p, "z"), getattr(p, "z", "none"), vars(p)
@case((Point(1, 2), Point(3, 4)), (Point(1), Point3(1)), (Point(1), 5), (5, Point(1)))
def object_operators(p, q): return p + q
@case((Point(1, 2),), (Point(0),))
def object_protocols(p): return p[0], p[-1], len(p), list(p), 2 in p, p(3), -p, bool(p), repr(p), str(p), f"{p}", hash(p) == hash(Point(p.x, p.y))
@case((Point(1, 2),),)
def object_index_raises(p): return p[5]
@case((Point(1), Point(2)), (Point(2), Point(1)), (Point(1), Point(1)))
def object_compare(p, q): return p == q, p != q, p < q, p > q, p is q, max(p, q), sorted([q, p])
@case((Point(3, -4),), (Point3(1, 2),))
def properties(p): before = p.norm1; p.norm1 = 9; return before, p.norm1, p
@case((Point(3),), (Point3(3),))
def methods(p): m = p.move; return m(1), p.move(2).x, type(p).origin(), p.unit(), Point.move(p, 1) is p
@case((1,), (2,))
def make_objects(n): p = Point(n); q = Point3(n, z=n); q.move(1); return p, q, p == q, isinstance(q, Point), type(q) is Point, q.__class__.__mro__[1].__name__
@case((1,),)
def make_object_raises(n): return Point()
@case((Point(1),), (Point3(1),), (None,), (1,))
def missing_attribute(p): return p.no_such
@case((Point(1),), (Slots(1),))
def delete_attribute(p):
    p.b = 1
    del p.b
    return hasattr(p, "b"), p
@case((Slots(1),), (Slots([1]),))
def slots(s): s.b = s.a; return s.a, s.b, s
@case((Slots(1),),)
def slot_unset(s): return s.b
@case((Slots(1),),)
def slot_unknown(s): s.c = 1
@case((Dynamic(),),)
def dynamic_attributes(d): d.real = 1; d["k"] = 2; del d["k"]; return d.anything, d.real, d.log
@case((Point(1, 2),), (5,))
def set_and_get(p): setattr(p, "name", 1); return getattr(p, "name"), getattr(p, "x")
@case((2,), (3,))
def local_class(n):
    class Local:
        k = n * 2
        def f(self): return self.k + n
    return Local().f(), Local.k, Local.__qualname__
@case((2,),)
def multiple_inheritance(n):
    class A:
        def who(self): return ["A"]
    class B(A):
        def who(self): return ["B"] + super().who()
    class C(A):
        def who(self): return ["C"] + super().who()
    class D(B, C):
        def who(self): return ["D"] + super().who()
    return D().who(), [c.__name__ for c in D.__mro__]
@case((2,),)
def class_level_state(n):
    class K:
        made = 0
        def __init__(self): K.made += 1; type(self).last = self.made
    K(); K()
    return K.made, K.last
@case((2,),)
def metaclass(n):
    class M(type):
        def __call__(cls, v): return super().__call__(v + 1)
    class K(metaclass=M):
        def __init__(self, v): self.v = v
    return K(n).v, type(K).__name__
@case((2,),)
def descriptors(n):
    log = []
    class D:
        def __set_name__(self, owner, name): self.name = "_" + name
        def __get__(self, obj, owner=None): log.append("get"); return self if obj is None else obj.__dict__.get(self.name, 0)
        def __set__(self, obj, v): log.append("set"); obj.__dict__[self.name] = v * 2
    class K: v = D()
    k = K(); k.v = n; k.v += 1
    return k.v, log, vars(k)
@case((2,),)
def init_subclass_and_new(n):
    seen = []
    class A:
        def __init_subclass__(cls, **kw): seen.append((cls.__name__, kw))
        def __new__(cls, *a): o = super().__new__(cls); o.made = True; return o
        def __init__(self, v): self.v = v
    class B(A, tag=n): pass
    return B(n).made, B(n).v, seen
@case((Point(1, 2),),)
def copies(p): q = copy.copy(p); r = copy.deepcopy([p, p]); q.x = 9; return p, q, r, r[0] is r[1], r[0] is p
@dataclasses.dataclass
class Config:
    k: float = 2.0
    xs: list = dataclasses.field(default_factory=list)
@dataclasses.dataclass(frozen=True, order=True)
class Frozen:
    a: int
    b: str = "x"
@case((Config(),), (Config(1.0, [1]),))
def dataclass_use(c): c.k *= 2; c.xs.append(c.k); d = dataclasses.replace(c, k=0.0); return c, d, c == d, dataclasses.asdict(c), d.xs is c.xs
@case((Frozen(1),), (Frozen(2, "y"),))
def frozen_dataclass(f): return f, f < Frozen(1, "z"), {f: 1}[Frozen(f.a, f.b)], dataclasses.astuple(f)
@case((Frozen(1),),)
def frozen_store_raises(f): f.a = 2
class Color(enum.Enum):
    RED = 1
    BLUE = 2
class Flag(enum.IntFlag):
    A = 1
    B = 2
@case((Color.RED,), (Color.BLUE,))
def enums(c): return c is Color.RED, c == Color.BLUE, c.name, c.value, Color(2) is c, [m.name for m in Color], {Color.RED: "r"}.get(c)
@case((Flag.A,), (Flag.A | Flag.B,))
def flags(f): return bool(f & Flag.B), f | Flag.B, int(f), repr(f), [10, 20, 30, 40][f]
@case((3,), (9,))
def enum_raises(n): return Color(n)
class Version(typing.NamedTuple):
    major: int
    minor: int = 0
@case((Version(1),), (Version(2, 5),))
def typed_named_tuple(v): return v.major, v[1], v._replace(minor=7), v > (1, 5), [*v], v + (1,)


@case(("a",), (1,), ([1, 2],), ([],), ({"k": 3, "z": 1},), ((1, (2, 3)),), (Point(1, 2),), (None,), (True,), (2.5,))
def match_statement(v):
    match v:
        case "a" | "b": return "letter"
        case True | None: return "single"
        case int(n) if n > 5: return "big"
        case int() | float(): return "number"
        case []: return "empty"
        case [a, b] if isinstance(a, list): return "never"
        case (a, (b, c)): return a, b, c
        case [first, *rest]: return first, rest
        case {"k": k, **rest}: return k, rest
        case Point(x=x, y=y): return x, y
        case _: return "other"
@case((3,), (0,), (10,))
def while_else(n):
    while n > 0:
        n -= 1
        if n == 5: break
    else: return "ran out", n
    return "broke", n
@case((4,), (0,))
def nested_loops(n):
    out = []
    for i in range(n):
        for j in range(n):
            if j > i: break
            if (i + j) % 2: continue
            out.append((i, j))
        else: out.append("full")
    return out
@case((2,), (0,), (-2,))
def unbound_local(n):
    if n > 0: v = n
    return v
@case((2,),)
def deleted_local(n): del n; return n  # noqa: F821
@case((2,),)
def unknown_global(n): return no_such_name + n  # noqa: F821
@case((3, 4), (0, 1))
def short_circuit_calls(a, b):
    log = []
    def f(v): log.append(v); return v
    return f(a) and f(b), f(a) or f(b), log
@case((1,), (2,))
def evaluation_order(a):
    log = []
    def f(v): log.append(v); return v
    d = {f(1): f(2), f(3): f(4)}
    (f(5) + f(6) * f(7), [f(8)][f(0)], helper(f(9), c=f(10), *[f(11)]))
    d[f(12)] = f(13)
    return log
@case((5,), (-5,))
def assertions(n): assert n > 0, f"bad {n}"; return n
@case((5,),)
def annotations_ignored(n): v: int = n; w: "undefined"; return v  # noqa: F821, F842
@case((1,), (2,))
def globals_and_builtins(n): return len(globals()["helper"].__name__), abs(-n), max.__name__, __name__
@case((3,), ("x",))
def isinstance_of_unions(v): return isinstance(v, int | str), issubclass(bool, int), isinstance(v, typing.Hashable), isinstance(v, typing.Sized)


def keyword_only(a, /, b, *, c=1, **kw): return a, b, c, kw


def test_signatures_with_every_kind_of_parameter():
    compiled = cap(keyword_only)
    for args, kwargs in (((1, 2), {}), ((1,), {"b": 2}), ((1, 2), {"c": 5, "d": 6}), ((1,), {"a": 3, "b": 4}), ((), {}), ((1, 2, 3), {}), ((1,), {"b": 2, "c": 3})):
        for _ in range(2):
            check_same(observe(keyword_only, args, dict(kwargs)), observe(compiled, args, dict(kwargs)), f"{args} {kwargs}")


def test_generator_and_async_functions_stay_what_they_are():
    import asyncio
    import inspect
    def gen(n):
        for i in range(n): yield i
    async def co(n):
        await asyncio.sleep(0)
        return n + 1
    assert inspect.isgeneratorfunction(cap(gen)) and list(cap(gen)(3)) == [0, 1, 2]
    assert inspect.iscoroutinefunction(cap(co)) and asyncio.run(cap(co)(1)) == 2


@contextlib.contextmanager
def managed(log, eat=False):
    log.append("in")
    try: yield len(log)
    except ValueError:
        log.append("caught")
        if not eat: raise
    finally: log.append("out")


@case((1,), (0,))
def contextmanager_function(n):
    log = []
    with managed(log) as a, managed(log) as b: log.append(a + b + n)
    with managed(log, eat=True): raise ValueError(n)
    with contextlib.suppress(KeyError): {}["k"]
    with contextlib.ExitStack() as stack: stack.callback(log.append, "cb"); stack.enter_context(managed(log))
    return log


@case.parametrize()
def test_functions(case): check_case(case)
