"""Objects end where they end in plain Python: finalizers see what had happened before, and what they change is what is read afterwards."""

import collections
import gc
import os
import re
import sys
import weakref

import numpy as np
import pytest
from framegate._core import GuardDesc
from support_engine import cap, entries, needs_engine

HEAD = """
import weakref
import numpy as np
k = 1
LOG = []
class D:
    def __init__(self, v=0): self.v = v
    def __del__(self):
        global k
        k += 1
        LOG.append(("end", self.v, k))
class Box: pass
class Slots:
    __slots__ = ("v",)
def full(o, v):
    o.v = v
    return o
def held(v, keep=[]):
    keep[:] = [v]
    return v
def started():
    def gen():
        global k
        try: yield 1
        finally: k += 1; LOG.append("closed")
    it = gen()
    next(it)
    return it
REFS = []
def watched(o):
    def gone(r):
        global k
        k += 1
        LOG.append("gone")
    REFS.append(weakref.ref(o, gone))
    return o
def finalized(o):
    def gone():
        global k
        k += 1
        LOG.append("finalized")
    weakref.finalize(o, gone)
    return o
NOTES = weakref.WeakValueDictionary()
def noted(o):
    global k
    k += 1
    NOTES[k] = o
    return o
def take(o):
    v = o.v
    o = None
    return v, k
def say(*what): LOG.append(what)
g = None
"""

# What goes: an object that runs code at its end, alone or in something.
GOING = {
    "finalizer": "D()",
    "in a list": "[D(), 3]",
    "deep": "[{'a': (1, full(Box(), D()))}]",
    "in a slot": "full(Slots(), D())",
    "in a set": "{D()}",
    "in a closure": "(lambda d: lambda: d)(D())",
    "in a default": "(lambda d: lambda a=d: a)(D())",
    "bound": "D().__init__",
    "generator": "started()",
    "weak reference": "watched(full(Box(), 1))",
    "weak reference to an array": "watched(np.ones(2))",
    "weakref.finalize": "finalized(Box())",
    "in a weak dict": "noted(full(Box(), 1))",
    "under a view": "finalized(np.ones((4, 3)))[0]",
    "key": "{D(): 1}",
    "subclass of list": "type('L', (list,), {})([D()])",
    "subclass with a finalizer": "type('L', (Box,), {'__del__': lambda s: D(5)})()",
}

# How it goes. V is replaced by what goes; the arguments, then the body.
WAYS = {
    "list.clear": ("[V]", "o.clear()"),
    "item replaced": ("[V]", "o[0] = None"),
    "item replaced by an array": ("[V]", "o[0] = np.ones(3) + 1"),
    "item deleted": ("[V]", "del o[0]"),
    "slice deleted": ("[1, V, 2]", "del o[1:]"),
    "whole slice": ("[V, 1, 2, 3, 4, 5, 6]", "del o[:]"),
    "slice replaced": ("[V, 1]", "o[:1] = [7, 8]"),
    "popped": ("[V]", "o.pop()"),
    "popped and kept": ("[V]", "v = o.pop(); out.append(k); v = None"),
    "shifted, then popped": ("[1, V]", "o.pop(0); out.append(k); del o[0]"),
    "removed": ("[1, V]", "o.remove(1); out.append(k); o[0] = 2"),
    "attribute": ("full(Box(), V)", "o.v = None"),
    "attribute deleted": ("full(Box(), V)", "del o.v"),
    "slot": ("full(Slots(), V)", "o.v = None"),
    "setattr": ("full(Box(), V)", "setattr(o, 'v', 3)"),
    "dict item": ("{'a': V}", "o['a'] = 3"),
    "dict item deleted": ("{'a': V}", "del o['a']"),
    "dict.pop": ("{'a': V}", "o.pop('a')"),
    "dict.update": ("{'a': V}", "o.update({'a': 1})"),
    "dict.update by name": ("{'a': V}", "o.update(a=1)"),
    "dict.clear": ("{'a': V}", "o.clear()"),
    "dict in a list": ("[{'a': V}]", "o[0]['a'] = 1"),
    "read first": ("[V]", "v = o[0]; o[0] = None; out.append(k); v = None"),
    "moved": ("[V, 1]", "o[0], o[1] = o[1], o[0]; out.append(k); o[1] = None"),
    "in a new list": ("[V]", "o[0] = [o[0]]; out.append(k); o[0][0] = None"),
    "kept elsewhere": ("[held(V)]", "o[0] = None; out.append(k); held(1)"),
    "variable": ("1", "d = V; out.append(k); d = None"),
    "variable, twice": ("1", "d = V; e = d; d = None; out.append(k); e = None"),
    "variable deleted": ("1", "d = V; out.append(k); del d"),
    "variable in a loop": ("1", "for i in range(3):\n  d = V; out.append(k)\n d = 1"),
    "statement": ("1", "V"),
    "tuple": ("1", "d = (V, 1); out.append(k); d = d[1]"),
}


def run(source, compiled):
    space = {}
    exec(compile(source, __file__, "exec"), space)
    f = cap(space["f"]) if compiled else space["f"]
    seen = []
    for _ in range(3):
        args = [space["make"]()]
        try:
            seen.append(f(*args))
        except Exception as error:
            seen.append((type(error), str(error)))
        seen.append((space["k"], list(space["LOG"])))
        space["REFS"].clear()
    return seen


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", GOING)
def test_what_a_finalizer_changes_is_seen(what, way):
    make, body = WAYS[way]
    source = f"{HEAD}\ndef make(): return {make}\ndef f(o):\n out = [k, len(NOTES)]\n {body}\n out.append((k, len(NOTES)))\n return out, k, list(LOG)\n"
    source = re.sub(r"\bV\b", lambda _: GOING[what], source)
    assert run(source, True) == run(source, False)


PROGRAMS = {
    "global": ("def make():\n global g\n g = D()\n return 1", "global g; g = None"),
    "global deleted": ("def make():\n global g\n g = D()\n return 1", "global g; del g"),
    "module attribute": ("import types\nM = types.ModuleType('M')\ndef make():\n M.v = D()\n return 1", "M.v = 2"),
    "class attribute": ("def make():\n Box.w = D()\n return 1", "Box.w = 2"),
    "argument of a call": ("def make(): return 1", "out.append(take(D(3)))"),
    "temporary of an attribute": ("def make(): return 1", "out.append(D(3).v)"),
    "temporary of a method": ("def make(): return 1", "say(D(3).v); out.append(len(LOG))"),
    "order of ends and effects": ("def make(): return [D(1), D(2)]", "LOG.append('a'); o[0] = None; LOG.append('b'); o[1] = None; LOG.append('c')"),
    "array work between": ("def make(): return [D(1), np.ones(3)]", "o[1] = o[1] + 1; o[0] = o[1] * 2; o[1] = o[0] + k"),
    "array written by a finalizer": ("A = np.zeros(2)\nclass W:\n def __del__(self): A[0] += 1\ndef make(): return [W()]",
                                     "out.append(A.sum()); o[0] = None; out.append(A.sum()); out.append(float(A[0]))"),
    "list read by a finalizer": ("class W:\n def __init__(self, l): self.l = l\n def __del__(self): LOG.append(list(self.l))\ndef make():\n l = [1]\n return [W(l), l]",
                                 "o[1].append(2); o[0] = None; o[1].append(3)"),
    "in a handler's body": ("def make(): return [D(1)]", "try:\n  o[0] = None; out.append(k); [].pop()\n except IndexError: out.append(k)\n finally: out.append(len(LOG))"),
    "with a loop over an iterator": ("def make(): return iter([D(1), D(2)])", "for d in o: out.append((d.v, k))\n d = None"),
    "loop left early": ("def make(): return 1", "for d in [D(1), D(2), D(3)]:\n  say(d.v)\n  if d.v == 2: break\n out.append(k)\n d = None"),
    "while a variable goes on": ("def make(): return 1", "d = D(1); say(d.v); d = D(2); say(d.v); d = [d]; say(len(d)); d = d[0].v"),
    "a chain of objects": ("def make():\n o = None\n for i in range(5):\n  n = full(Box(), D(i)); n.next = o; o = n\n return [o]", "o[0] = o[0].next; out.append(k); o[0] = o[0].next"),
    "a long chain": ("def make():\n o = D(9)\n for i in range(40): o = [o]\n return [o]", "o[0] = 1"),
    "a cycle that lives on": ("def make():\n a = Box(); a.me = a; a.d = D(4)\n return [a, a]", "o[0] = None; out.append(k)"),
    "what was made here": ("def make(): return 1", "b = Box(); b.v = o; b.v = [b.v]; b = None"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    setup, body = PROGRAMS[name]
    source = f"{HEAD}\n{setup}\ndef f(o):\n out = [k]\n {body}\n out.append(k)\n return out, k, list(LOG)\n"
    assert run(source, True) == run(source, False)


def test_nonlocal():
    def make(space):
        v = space["D"](1)

        def f(x):
            nonlocal v
            a = len(space["LOG"])
            v = None
            return a, len(space["LOG"]), x
        return f

    def results(compiled):
        space = {}
        exec(HEAD, space)
        out = []
        for _ in range(3):
            f = cap(make(space)) if compiled else make(space)
            out.append((f(1), list(space["LOG"])))
        return out

    assert results(True) == results(False)


class Plain:
    pass


class Child:
    def __init__(self, parent):
        self.parent, self.data = parent, [1, 2]


def step(o, x):
    o.steps += 1
    o.last = x + 1
    o.log.append(o.steps)
    o.state["x"] = o.last
    o.state["n"] = o.steps
    o.pair = (o.last, o.steps)
    o.items[0] = x
    del o.items[1:]
    o.items.append(2.0)
    return o.last * 2


def object_to_step():
    o = Plain()
    o.steps, o.log, o.state, o.items = 0, [], {}, [None, 1]
    return o


@needs_engine
def test_ordinary_stores_are_captured_and_compiled_once():
    o = object_to_step()
    c = cap(step, fullgraph=True)
    x = np.ones(3)
    for _ in range(6):
        c(o, x)
        o.log.clear()
    assert entries(c) == 1


def replace_child(o, x):
    o.child = o.spare
    return x + 1


@needs_engine
@pytest.mark.parametrize("child", [lambda o: Plain(), lambda o: Child(None), lambda o: [np.ones(2), {"a": Plain()}], lambda o: int, lambda o: len, lambda o: test_nonlocal,
                                   lambda o: np, lambda o: np.float64(2), lambda o: slice(1, 2), lambda o: range(3), lambda o: o, lambda o: o.spare,
                                   lambda o: bytearray(3), lambda o: frozenset([(1, 2)])])
def test_what_ends_quietly_or_lives_on_is_captured(child):
    c = cap(replace_child, fullgraph=True)
    for _ in range(4):
        o = Plain()
        o.spare = Plain()
        o.child = child(o)
        c(o, 1)
        assert o.child is o.spare
    assert entries(c) == 1


@needs_engine
def test_another_object_there_is_a_miss():
    ended = []

    class Loud:
        def __del__(self):
            ended.append(len(ended))

    def f(o):
        a = len(ended)
        o[0] = None
        return a, len(ended)

    c = cap(f)
    assert c([1]) == (0, 0) and c([Plain()]) == (0, 0)
    assert c([Loud()]) == (0, 1)
    assert c([[Loud()]]) == (1, 2)
    Plain.__del__ = lambda self: ended.append("plain")
    try:
        assert c([Plain()]) == (2, 3)
    finally:
        del Plain.__del__
    assert c([Plain()]) == (3, 3)
    gc.collect()


def guard(kind, *args, **kwargs):
    desc = GuardDesc(slot_names=("x",))
    desc.guard(kind, desc.source("arg", index=0), *args, **kwargs)
    return GuardDesc.from_text(desc.to_text())


class Loud:
    def __del__(self):
        pass


class Thin:
    __slots__ = ("a", "__weakref__")


def thin(a):
    t = Thin()
    t.a = a
    return t


def owner_of(v):
    o = Plain()
    o.v = v
    return o


LOUD = Loud()
QUIET_VALUES = [None, 1, "a", 2.5, [1, [2]], (1, "a"), {"a": [1]}, {1, 2}, Plain(), owner_of([1]), thin(3), Loud, np.ones(3), np.ones((3, 3))[1:], np.float32(1), Child(Child(None)),
                test_nonlocal, lambda a=1: a, np, len, [].append, type("T", (tuple,), {})((1, 2)), type("I", (int,), {})(3)]
QUIET_VALUES += [iter([1]), iter((1, [2])), enumerate("ab"), zip([1], "a"), map(len, ["a"]), {1: 2}.keys(), iter({1: 2}.items()), collections.deque([1, [2]]),
                 collections.defaultdict(list, a=[1]), sys.version_info, reversed([1, 2]), filter(None, [1]), iter({1})]
LOUD_VALUES = [LOUD, [LOUD], (1, LOUD), {"a": LOUD}, {LOUD: 1}, {LOUD}, owner_of(LOUD), thin(LOUD), Child(LOUD), lambda a=LOUD: a, [[[[LOUD]]]], iter([LOUD]), enumerate([LOUD]), zip([1], [LOUD]),
               map(lambda a, b=LOUD: a, [1]), {1: LOUD}.values(), collections.deque([LOUD]), collections.defaultdict(list, a=LOUD), collections.defaultdict(lambda a=LOUD: a),
               memoryview(b"ab"), open(os.devnull), (i for i in "a"),
               np.array([LOUD], dtype=object), memoryview(b"a"), type("T", (tuple,), {})((1, LOUD)), type("S", (list,), {})([LOUD]), [0] * 100000]


@pytest.mark.parametrize("i", range(len(QUIET_VALUES)))
def test_quiet_values(i):
    value = QUIET_VALUES[i]
    assert guard("drops_quietly", lo=0).check((value,))
    assert guard("attr_drops_quietly", "v").check((owner_of(value),))
    assert guard("item_drops_quietly", "v").check(({"v": value},))


@pytest.mark.parametrize("i", range(len(LOUD_VALUES)))
def test_loud_values(i):
    desc = guard("drops_quietly", lo=0)
    assert not desc.check((LOUD_VALUES[i],)) and desc.explain((LOUD_VALUES[i],))
    assert not guard("attr_drops_quietly", "v").check((owner_of(LOUD_VALUES[i]),))
    assert not guard("item_drops_quietly", "v").check(({"v": LOUD_VALUES[i]},))


def test_watched_values_are_loud_and_absent_ones_are_not():
    for value in (Plain(), np.ones(3), {1}, Thin()):
        assert guard("drops_quietly", lo=0).check((value,))
        ref = weakref.ref(value)
        assert guard("drops_quietly", lo=0).check((value,)), ref
        watched = weakref.ref(value, print)
        assert not guard("drops_quietly", lo=0).check((value,)), watched
    for value in (Plain(), {1}, Thin(), int.from_bytes):
        desc = GuardDesc(slot_names=("x",))
        desc.guard("is", desc.source("arg", index=0), value)
        assert any(r.__callback__ for r in weakref.getweakrefs(value)), "compared objects are not kept alive"
        assert guard("drops_quietly", lo=0).check((value,)), "our own interest in an object's end is nobody's"
    assert guard("attr_drops_quietly", "v").check((Plain(),)) and guard("item_drops_quietly", "v").check(({},))
    assert not guard("item_drops_quietly", "v").check((Plain(),))


def test_tensors():
    torch = pytest.importorskip("torch")
    tensor = torch.ones(3)
    grown = torch.nn.Parameter(torch.ones(3)) * 2
    for value in (tensor, torch.nn.Parameter(torch.ones(2)), grown, tensor.max(0), torch.stack([tensor, tensor]).max(0), tensor.shape, torch.float32, torch.device("cpu"), tensor[1:],
                  torch.from_numpy(np.ones(2)), torch.ones(2).numpy()):
        assert guard("drops_quietly", lo=0).check((value,)), value
    tensor.note = LOUD
    assert not guard("drops_quietly", lo=0).check((tensor,))
    ref = weakref.ref(grown, print)
    assert not guard("drops_quietly", lo=0).check((grown,)) and ref() is grown

    class Own(torch.Tensor):
        def __del__(self):
            pass

    assert not guard("drops_quietly", lo=0).check((torch.ones(2).as_subclass(Own),))


def test_what_a_tensor_is_hooked_to():
    """Hooks, and the operation written in Python that made it, end with a tensor."""
    torch = pytest.importorskip("torch")

    class Times3(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, kept):
            ctx.kept = kept
            ctx.save_for_backward(a)
            return a * 3

        @staticmethod
        def backward(ctx, g):
            return g * 3, None

    def hooked(kept, leaf, register):
        x = torch.ones(2, requires_grad=True)
        x = x if leaf else x * 2
        getattr(x, register)(lambda *_, kept=kept: None)
        return x

    for kept, quiet in ((Loud(), False), (1, True), ([2, "a"], True)):
        made = Times3.apply(torch.ones(2, requires_grad=True), kept)
        for value in (hooked(kept, True, "register_hook"), hooked(kept, True, "register_post_accumulate_grad_hook"), made, [made]):
            assert guard("drops_quietly", lo=0).check((value,)) == quiet
        assert not guard("drops_quietly", lo=0).check((hooked(Loud(), False, "register_hook"),))


@needs_engine
@pytest.mark.parametrize("register", ["register_hook", "register_post_accumulate_grad_hook"])
def test_the_end_of_a_hook_is_seen(register):
    torch = pytest.importorskip("torch")
    log = []

    class Noted:
        def __del__(self):
            log.append("end")

    def hooked():
        x = torch.ones(2, requires_grad=True)
        getattr(x, register)(lambda *_, kept=Noted(): None)
        return x

    def f(o, x):
        n = len(log)
        o.last = None
        return x + len(log) - n

    for g in (f, cap(f), cap(f)):
        for _ in range(3):
            o = Plain()
            o.last = hooked()
            assert g(o, torch.ones(1)).item() == 2.0


@needs_engine
def test_tensors_are_stored_and_replaced_in_one_version():
    torch = pytest.importorskip("torch")

    def f(o, x):
        o.last = x * 2
        o.cache["x"] = o.last
        o.log[0] = x + 1
        o.pair = (x, o.last)
        return o.last

    c = cap(f, fullgraph=True)
    o = Plain()
    o.cache, o.log = {}, [None]
    for _ in range(4):
        c(o, torch.ones(3))
    assert entries(c) == 1


def test_more_references_than_are_taken_away():
    value = Loud()
    desc = guard("drops_quietly", lo=3)
    args = (value,)
    assert not desc.check(args)  # `value` and the tuple
    more = [value, value]
    assert desc.check(args)
    more.pop()
    assert not desc.check(args)
