"""Special methods that do harm when they are called: each call of a compiled function gives what plain Python gives, and the methods are called as often.

A world is a namespace with the function, the class with one special method, and a log. At its first, third, or each call the method acts: it raises, changes the
function's globals, defaults or code, drops entries, resets, or calls the gate again. The world of the plain function and that of the gate must end alike.
"""

from __future__ import annotations

import gc
import re
import textwrap
import threading
import traceback

import pytest

framegate = pytest.importorskip("framegate")


class Boom(Exception):
    pass


def raises(world): raise Boom("harm")
def interrupts(world): raise KeyboardInterrupt
def stops(world): raise StopIteration
def changes_globals(world): world.f.__globals__["K"] += 1
def changes_defaults(world): world.f.__defaults__ = (world.f.__defaults__[0] + 1,)
def changes_code(world): world.f.__code__ = world.f.__code__.replace(co_name="f")
def changes_class(world): world.cls.extra = getattr(world.cls, "extra", 0) + 1
def resets(world): framegate.reset()


def drops_entries(world):
    if world.gate is not None:
        for entry in framegate.cache_entries(world.gate):
            entry._entry.invalidate()


def calls_again(world):
    if world.depth < 2:
        world.depth += 1
        try:
            world.log.append(world.observe((world.other, 3)))
        finally:
            world.depth -= 1


def another_thread_calls(world):
    thread = threading.Thread(target=calls_again, args=(world,))
    thread.start()
    thread.join()


ACTIONS = [raises, interrupts, stops, changes_globals, changes_defaults, changes_code, changes_class, resets, drops_entries, calls_again, another_thread_calls]

HELPERS = """
K = 10
class MetaChecks(type):
    def __instancecheck__(c, o): W.hit("instancecheck"); return True
    def __subclasscheck__(c, o): W.hit("subclasscheck"); return True
class Checked(metaclass=MetaChecks): pass
class MetaCalls(type):
    def __call__(c, *a): W.hit("metacall"); return type.__call__(c, *a)
class MetaMade(metaclass=MetaCalls):
    def __init__(self, n): self.n = n
class MetaReads(type):
    def __getattribute__(c, n): W.hit("metaread"); return type.__getattribute__(c, n)
    def __getattr__(c, n): W.hit("metamissing"); return 5
class MetaRead(metaclass=MetaReads): real = 3
class Missing(dict):
    def __missing__(self, k): W.hit("missing"); return 3
def stores(o): o[1] = 2; return 1
def enters(o):
    with o as q: raise ValueError(q)
    return 3
def writes(o, n): o.zz = n; o.zz += 1; o.yy = 1; del o.yy; return o.zz
def drops(kind): q = kind(3); q = None; return 1
def describes(o, n):
    class H: d = o
    h = H(); h.d = n
    return h.d, H.d
def subclasses(kind):
    class S(kind): pass
    return S.__name__
def sets(o, n): o.p = n; return o.p
"""

# name: (the methods, what the function does with an object `o` of the class and a number `n`)
METHODS = {
    "__eq__": ("def __eq__(self, o): W.hit('eq'); return True", "o == 3, o != 4, o in [1, o], [o].count(3)"),
    "__hash__": ("def __hash__(self): W.hit('hash'); return 7", "len({o: n}), len({o}), hash(o)"),
    "__getattr__": ("def __getattr__(self, k):\n  W.hit('getattr ' + k)\n  if k[0] == '_': raise AttributeError(k)\n  return 5", "o.foo + n, getattr(o, 'bar', 0), hasattr(o, 'baz')"),
    "__getattribute__": ("def __getattribute__(self, k): W.hit('read ' + k); return 6 if k == 'foo' else object.__getattribute__(self, k)", "o.foo + n, getattr(o, 'v', 0)"),
    "__bool__": ("def __bool__(self): W.hit('bool'); return False", "1 if o else 2, not o, o and 1 and n, (o or n), bool(o), any([o]), all([o])"),
    "__len__": ("def __len__(self): W.hit('len'); return 0", "len(o), 1 if o else 2, bool(o)"),
    "__len__ below 0": ("def __len__(self): W.hit('len'); return -1", "len(o)"),
    "__index__": ("def __index__(self): W.hit('index'); return 1", "[4, 5, 6][o], (1, 2, 3)[o:], list(range(o)), hex(o)"),
    "__iter__": ("def __iter__(self): W.hit('iter'); return iter((1, 2))", "list(o), [q for q in o], sum(o), (lambda a, b: a + b)(*o)"),
    "__next__": ("def __iter__(self): return self\n def __next__(self):\n  W.hit('next')\n  self.i = self.__dict__.get('i', 0) + 1\n  if self.i > 2: raise StopIteration\n  return self.i", "[q for q in o]"),
    "__getitem__": ("def __getitem__(self, k):\n  W.hit('item')\n  if k > 2: raise IndexError\n  return k\n def __setitem__(self, k, v): W.hit('setitem')", "o[1], list(o), 1 in o, stores(o)"),
    "__contains__": ("def __contains__(self, k): W.hit('contains'); return k", "n in o, 0 in o, n not in o"),
    "__call__": ("def __call__(self, *a, **k): W.hit('call'); return a", "o(n), o(1, k=2), list(map(o, [1, 2]))"),
    "__add__": ("def __add__(self, x): W.hit('add'); return x\n def __radd__(self, x): W.hit('radd'); return x\n def __mul__(self, x): W.hit('mul'); return NotImplemented\n def __rmul__(self, x): W.hit('rmul'); return x", "o + n, n + o, sum([o]), n * o, o * n"),
    "__lt__": ("def __lt__(self, x): W.hit('lt'); return True", "o < n, n > o, len(sorted([o, o])), max(o, n) == 1"),
    "__neg__": ("def __neg__(self): W.hit('neg'); return 1\n def __abs__(self): W.hit('abs'); return 2\n def __round__(self, *a): W.hit('round'); return 3\n def __pow__(self, x, m=None): W.hit('pow'); return 4", "-o, abs(o), round(o), o ** n"),
    "__enter__": ("def __enter__(self): W.hit('enter'); return 1\n def __exit__(self, *a): W.hit('exit'); return True", "enters(o), n"),
    "__str__": ("def __str__(self): W.hit('str'); return 's'\n def __repr__(self): W.hit('repr'); return 'r'\n def __format__(self, s): W.hit('format'); return 'f'", "f'{o}', f'{o!r}', str(o), '%s' % o, repr(o)"),
    "__setattr__": ("def __setattr__(self, k, v): W.hit('set ' + k); object.__setattr__(self, k, v)\n def __delattr__(self, k): W.hit('del'); object.__delattr__(self, k)", "writes(o, n), o.zz"),
    "__class__": ("@property\n def __class__(self): W.hit('class'); return int", "isinstance(o, int), o.__class__ is int, type(o) is int, isinstance(o, Obj)"),
    "__del__": ("def __del__(self): W.hit('dropped')", "n, drops(type(o))"),
    "__get__": ("def __get__(self, i, t=None): W.hit('get'); return 4\n def __set__(self, i, v): W.hit('set')\n def __set_name__(self, owner, name): W.hit('set_name')", "describes(o, n), n"),
    "__init_subclass__": ("def __init_subclass__(cls, **k): W.hit('subclass')", "subclasses(type(o)), n"),
    "__new__": ("def __new__(cls, *a): W.hit('new'); return object.__new__(cls)", "type(o)(3).v, n"),
    "property": ("@property\n def p(self): W.hit('p'); return 5\n @p.setter\n def p(self, v): W.hit('setp')", "o.p + n, sets(o, n), o.p"),
    "__reversed__": ("def __reversed__(self): W.hit('reversed'); return iter((3,))", "list(reversed(o)), n"),
    "__instancecheck__": ("pass", "isinstance(o, Checked), issubclass(Obj, Checked), isinstance(n, (Checked, int)), n"),
    "__call__ of a metaclass": ("pass", "MetaMade(n).n, n"),
    "__getattribute__ of a metaclass": ("pass", "MetaRead.anything + n, MetaRead.real"),
    "__missing__": ("pass", "Missing()[n], Missing().get(n, 3)"),
}


class World:
    def __init__(self, methods, expression, action, at):
        self.action, self.at, self.count, self.depth = action, at, 0, 0
        self.log, self.gate, self.armed = [], None, False
        text = "class Obj:\n def __init__(self, v=1): self.__dict__['v'] = v\n " + methods + textwrap.dedent(HELPERS) + f"def f(o, n, d=1):\n r = ({expression})\n return r, K, d, n * 2\n"
        self.space = {"W": self, "__name__": "world"}
        exec(compile(text, "<world>", "exec"), self.space)
        self.f, self.cls = self.space["f"], self.space["Obj"]
        self.call, self.other = self.f, self.cls(2)

    def hit(self, what):
        if not self.armed:
            return
        self.log.append(what)
        self.count += 1
        if self.at in (self.count, -1):
            self.action(self)

    def observe(self, args):
        try:
            return repr(self.call(*args))
        except BaseException as error:
            lines = [(entry.name, entry.lineno) for entry in traceback.extract_tb(error.__traceback__) if entry.filename == "<world>"]
            return type(error).__name__, str(error), lines


def life_of(name, action, at, options):
    world = World(*METHODS[name], action, at)
    if options is not None:
        world.gate = world.call = framegate.compile(world.f, **options)
    objects = [world.cls(i) for i in range(2)]
    world.armed = True
    seen = [world.observe((objects[i % 2], 3)) for i in range(4)] + [world.observe((objects[0], 2.5))]
    world.armed = False
    return re.sub("0x[0-9a-f]+", "", repr((seen, world.log)))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", METHODS)
def test_methods_that_do_harm(name):
    for action in ACTIONS:
        for at in (1, 3, -1):
            plain = life_of(name, action, at, None)
            for options in ({}, {"backend": lambda graph, inputs: graph}):
                assert life_of(name, action, at, options) == plain, (action.__name__, at, options)
    gc.collect()
