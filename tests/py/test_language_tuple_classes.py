"""Named tuples and other classes that inherit from tuple: read, made, taken apart, with methods of their own."""

import collections
import sys
import time
import typing

import numpy as np
import pytest
from support_engine import Cases, cap, check_case, check_twins, needs_engine

Pair = collections.namedtuple("Pair", "a b")
Three = collections.namedtuple("Three", "x y z", defaults=(7,))
Empty = collections.namedtuple("Empty", "")
Hostile = collections.namedtuple("Hostile", "count index", rename=True)


class Typed(typing.NamedTuple):
    left: typing.Any
    right: int = 5

    @property
    def both(self):
        return self.left + self.right

    def moved(self, by):
        return self._replace(left=self.left + by)

    @classmethod
    def twice(cls, v):
        return cls(v, v)


class Sub(Pair):
    """It has a __dict__."""

    def total(self): return self.a + self.b


class Slotted(Pair):
    __slots__ = ()

    def __len__(self): return 9
    def __getitem__(self, i): return "item", i
    def __iter__(self): return iter((self.b, self.a))
    def __contains__(self, v): return v == "in"


class False_(Pair):
    def __bool__(self): return False


class Made(Pair):
    def __new__(cls, a): return super().__new__(cls, a, a + 1)


class Other(Pair):
    def __new__(cls, a, b): return [a, b]


class Initialised(Pair):
    def __init__(self, *args): self.seen = args


class Bare(tuple):
    pass


class Shadow(Pair):
    a = 3
    b = property(lambda self: tuple.__getitem__(self, 1) * 100)


class Logged(Pair):
    def __getattribute__(self, name): return ("asked", name) if name == "a" else super().__getattribute__(name)


HERE = Pair(2, 3)
NESTED = Three(Pair(1, 2), [3], {"k": Typed(4)})
cases = Cases()
P = ((Pair(1, 2),), (Pair(3.5, 4),), (Pair("a", "b"),))


@cases(*P)
def fields(p): return p.a, p.b, p.a * 2, getattr(p, "b"), hasattr(p, "c"), getattr(p, "c", None)
@cases(*P)
def subscripts(p): return p[0], p[-1], p[:], p[1:], type(p[:]), p[::-1]
@cases(*P)
def out_of_range(p): return p[2]
@cases(*P)
def apart(p):
    a, b = p
    c, *d = p
    return a, b, c, d, [*p], (*p, 1), {*p}
@cases(*P)
def too_many(p):
    a, b, c = p
    return a
@cases(*P)
def too_few(p):
    a, = p
    return a
@cases(*P)
def sizes(p): return len(p), bool(p), not p, 1 if p else 2, len(Empty()), bool(Empty()), [] if Empty() else 1
@cases(*P)
def walked(p): return [v for v in p], list(p), tuple(p), type(tuple(p)), list(zip(p, p)), list(enumerate(p)), list(reversed(p)), list(map(str, p)), sum(p, start=0) if p[0] != "a" else 0
@cases(*P)
def contains(p): return 2 in p, "a" in p, 17 not in p
@cases(*P)
def kinds(p): return isinstance(p, tuple), isinstance(p, Pair), isinstance(p, Three), type(p), type(p) is Pair, p.__class__.__name__, p._fields
@cases(*P)
def methods(p): return p._replace(b=9), p._asdict(), Pair._make([5, 6]), p.count(2), p.index(p[1]), p._replace()
@cases(*P)
def bad_replace(p): return p._replace(c=1)
@cases(*P)
def joined(p): return p + (1,), p * 2, (0,) + tuple(p)
@cases(*P)
def compared(p): return p == p, p == tuple(p), p != Pair(1, 2), Pair(1, 2) == (1, 2), p < Pair(9, 9) if p[0] != "a" else None
@cases(*P)
def hashed(p): return {p: 1}[tuple(p)], hash(p) == hash(tuple(p))
@cases(*P)
def written(p): p.a = 3
@cases(*P)
def a_new_attribute(p): p.c = 3
@cases(*P)
def deleted(p): del p.a
@cases(*P)
def item_written(p): p[0] = 3
@cases(*P)
def shown(p): return repr(p), f"{p}", str(p), "%s %s" % p
@cases(*P)
def identity(p):
    q = p
    return q is p, Pair(1, 2) is Pair(1, 2), p is HERE
@cases(*P)
def called_with(p): return (lambda a, b: [a, b])(*p), (lambda **k: k)(**p._asdict()), max(*p)
@cases((1, 2), ("a", "b"))
def made(a, b):
    p = Pair(a, b)
    return p, p.a, p[1], len(p), [*p], type(p), Pair(b=a, a=b), Three(a, b), Three(a, y=b, z=0)
@cases((1, 2))
def made_wrongly(a, b): return Pair(a)
@cases((1, 2))
def made_too_wide(a, b): return Pair(a, b, a)
@cases((1, 2))
def made_with_a_wrong_name(a, b): return Pair(a, c=b)
@cases((1,))
def make_wrongly(a): return Pair._make([a])
@cases((1, 2), (1.5, 2))
def typed(a, b):
    t = Typed(a, b)
    return t.both, t.moved(3), t.moved(1).both, Typed.twice(b), Typed(a), Typed(a).right, Typed.left, t._field_defaults
@cases((1, 2))
def with_a_dict(a, b):
    s = Sub(a, b)
    s.extra = [a]
    s.extra.append(b)
    return s, s.total(), s.extra, vars(s), s.__dict__ == {"extra": [a, b]}, s._replace(a=5)
@cases((Sub(1, 2),))
def existing_with_a_dict(s):
    s.extra = s.total()
    return s.extra, s.a, s
@cases((1, 2))
def own_methods(a, b):
    s = Slotted(a, b)
    return len(s), s[0], list(s), "in" in s, 1 in s, s.a, tuple(s), bool(s)
@cases((Slotted(1, 2),))
def existing_own_methods(s):
    x, y = s
    return len(s), s[0], list(s), "in" in s, 1 in s, s.a, x, y
@cases((1, 2))
def is_false(a, b): return 1 if False_(a, b) else 2
@cases((1,), (2.5,))
def own_new(a): return Made(a), Made(a).b, Made(a=a)[0]
@cases((1, 2))
def new_gives_another(a, b): return Other(a, b)
@cases((1, 2))
def own_init(a, b): return Initialised(a, b).seen, Initialised(a, b)
@cases((1, 2))
def bare(a, b): return Bare([a, b]), Bare(), len(Bare((a,))), Bare(x for x in [a, b])[1], [*Bare({a: b})]
@cases((1, 2))
def bare_wrongly(a, b): return Bare(a, b)
@cases((5,))
def bare_of_a_number(a): return Bare(a)
@cases((Shadow(1, 2),))
def shadowed(s): return s.a, s.b, s[0], Shadow(4, 5).b
@cases((Logged(1, 2),))
def asked(s): return s.a, s.b, Logged(3, 4).a
@cases(())
def global_ones(): return HERE.a, HERE._fields, NESTED.x.b, NESTED.y[0], NESTED.z["k"].left, [v for v in HERE]
@cases((3,))
def class_attributes(n): return Pair.a is Pair.a, Pair.__match_args__, Pair._field_defaults, Pair.__name__, Three._field_defaults
@cases((Hostile(1, 2),))
def names_of_tuples_own_methods(h): return h[0], h._fields, h.count, h.index
@cases((Pair(1, 2),), (Three(1, 2, 3),), ((1, 2),), (Bare((1, 2)),))
def matched(p):
    match p:
        case Pair(a, b): return "pair", a, b
        case Three(x=x): return "three", x
        case [a, b]: return "two", a, b
@cases((Pair(1, 2), 3), (Pair(4, 5), 6))
def accumulated(p, n):
    for i in range(n):
        p = Pair(p.b, p.a + i)
    return p
@cases((1,), (-1,))
def raised_in_between(a):
    try:
        p = Pair(a, [a])
        p.b.append(1)
        if a < 0:
            raise ValueError(p)
        return p
    except ValueError as error:
        return error.args[0].b, error.args[0]
@cases((time.gmtime(0),), (time.gmtime(10**8),))
def structure_sequence(s): return s.tm_year, s[0], len(s), [*s][1], s.tm_wday, s[-1]
@cases(())
def of_the_system(): return sys.version_info.major, sys.version_info[:2] >= (3, 8), len(sys.version_info), sys.float_info.dig
@cases((Pair(np.arange(3.0), 2),), (Pair(np.arange(4.0), 5),))
def with_arrays(p):
    q = p._replace(a=p.a * p.b)
    return q.a.sum(), q, Pair(*q)._asdict()
@cases((np.arange(3.0), 2), (np.arange(2.0), 3.5))
def a_result(x, k):
    def stats(v): return Three(v.min(), v.max(), z=Pair(v + k, k))
    s = stats(x)
    return s, s.z.a - s.x, s[1]


@cases.parametrize()
def test_programs(case):
    check_case(case)


READS = {
    "field": lambda p, x: x + p.a,
    "item": lambda p, x: x + p[0],
    "apart": lambda p, x: [x + v for v in p],
    "length": lambda p, x: x + len(p),
    "made": lambda p, x: Pair(x, p.a).b,
    "replaced": lambda p, x: p._replace(a=x),
    "typed": lambda p, x: Typed(x, 2).moved(1).both,
}


@needs_engine
@pytest.mark.parametrize("name", READS)
def test_no_graph_breaks(name):
    import framegate

    told = framegate.explain(READS[name])(Pair(np.ones(2), 4), np.ones(2))
    assert told.break_reasons == []


@needs_engine
def test_a_hit_reads_what_is_there_now():
    import framegate

    f = framegate.compile(lambda p: p.a + p.b)
    assert [f(Pair(i, 1)) for i in range(5)] == [1, 2, 3, 4, 5] and len(framegate.cache_entries(f)) == 1
    assert f(Sub(2, 2)) == 4 and f(Shadow(1, 2)) == 203


def of_a_class_that_changes():
    Own = collections.namedtuple("Own", "a b")

    class Box(Own):
        pass

    class State:
        box = Box

    return (lambda n: (Box(n, 2).a, len(Box(n, 2)), Box(n, 2)[0], [*Box(1, n)])), State


def set_attr(name, value):
    return lambda state: setattr(state.box, name, value)


CHANGES = {
    "a field": ("a", property(lambda self: "new")), "its length": ("__len__", lambda self: 7), "its elements": ("__getitem__", lambda self, i: "e"),
    "its iteration": ("__iter__", lambda self: iter("xy")), "how it is made": ("__new__", staticmethod(lambda cls, a, b: tuple.__new__(cls, (b, a)))),
    "its start": ("__init__", lambda self, *a: self.__dict__.update(k=1)), "how it is read": ("__getattribute__", lambda self, n: n),
    "a field of another place": ("a", Pair.b), "a field beyond": ("a", Three.z),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_what_a_class_is_given_later_counts(name):
    check_twins(of_a_class_that_changes, [(1,), (2,), set_attr(*CHANGES[name]), (1,), (3,)])


@needs_engine
def test_classes_end_and_docstrings_do_not_matter():
    import gc
    import weakref

    def once():
        Own = collections.namedtuple("Own", "a b")
        f = cap(lambda x: Own(x, 1).a + 1)
        assert f(1) == 2 and f(2) == 3
        Own.a.__doc__ = "what it is"
        assert f(3) == 4
        return weakref.ref(Own)

    left = [once() for _ in range(3)]
    gc.collect()
    assert [ref() for ref in left] == [None] * 3


@needs_engine
def test_torch_programs_with_named_tuples():
    torch = pytest.importorskip("torch")
    import framegate

    class Out(typing.NamedTuple):
        logits: torch.Tensor
        loss: typing.Optional[torch.Tensor] = None

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = torch.nn.Linear(3, 2)

        def forward(self, inp):
            y = self.lin(inp.a) * inp.b
            return Out(y, loss=y.sum()) if self.training else Out(y)

    torch.manual_seed(0)
    model, x = Model(), torch.ones(4, 3)
    for backend in ("eager", "torch:eager"):
        compiled = framegate.compile(model, backend=backend, fullgraph=True)
        for train in (True, False, True):
            model.train(train)
            want, got = model(Pair(x, 2)), compiled(Pair(x, 2))
            assert type(got) is Out and torch.equal(want.logits, got.logits)
            assert (want.loss is None) == (got.loss is None) and (want.loss is None or torch.equal(want.loss, got.loss))
