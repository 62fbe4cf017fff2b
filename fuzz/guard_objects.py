"""Objects for fuzz/fuzz_guard_program.c: made from bytes, and changed between two evaluations in every way that a memo must notice.

make(data) gives (slots, closure, globals, builtins, function), all new; change(call, what, where, a, b) changes one thing. Equal bytes give equal
objects and equal changes, so an input that fails can be run again.
"""

import collections
import gc
import itertools
import types
import weakref

import numpy as np
from guard_classes import Node, Other, Slotted


class Evil:
    """A key that must never be compared."""

    def __hash__(self):
        return hash("a")

    def __eq__(self, other):
        raise SystemExit("user code was called")


class Table(dict):
    pass


class Row(list):
    pass


names = ["a", "b", "steps", "shared", "extra", "method", "first", "x"]
keys = ["a", "b", 1, 1.0, True, None, (1, "a"), int, b"a", "zz"]
ATTRIBUTES = names[:3]
LEAVES = [None, True, False, 0, 1, 7, 300, 2**70, 0.5, -0.0, 0.0, float("nan"), 1e300, "a", "b", b"a", (), (1, "a"), int, len, Node, range(3), slice(1, 2),
          3 + 0j, frozenset(), ..., np]
gc.freeze()  # so that a collection looks at what the bytes made, not at all of numpy
originals = dict(vars(Node)), dict(vars(Other))


def refuses_containers(value):
    return len(value) < 0


def raises(value):
    raise ValueError


def collects(value):
    gc.collect(0)
    return True


users = [callable, refuses_containers, raises, collects, lambda value: True, lambda value: []]
SHARED = np.ones((5, 3))
LIVING = []  # targets of weak references


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        self.at += 1
        return self.data[self.at - 1] % n if self.at <= len(self.data) else 0


def leaf(n):
    value = LEAVES[n % len(LEAVES)]
    if type(value) is float and n >= len(LEAVES):
        return value * 1.0  # an object of its own
    if type(value) is int and n >= len(LEAVES):
        return value + 10**6
    return value


def function(outer):
    held = outer

    def inner(x, y=1, *, z=2):
        return held

    inner.a = outer
    return inner


class Counted:
    def __getitem__(self, i):
        return i


def iterator(r, child):
    """An iterator, perhaps under way, or something that iterators go over."""
    made, kind = [child() for _ in range(r.take(4))], r.take(30)
    table = dict.fromkeys("ab", made)
    makers = (
        lambda: iter(made), lambda: iter(tuple(made)), lambda: reversed(made), lambda: reversed(tuple(made)), lambda: iter("abc"), lambda: iter("\u00e9"),
        lambda: iter(b"abc"), lambda: iter(bytearray(b"abc")), lambda: iter(table), lambda: reversed(table.values()), lambda: iter(collections.OrderedDict(table)),
        lambda: iter({1, "a"}), lambda: iter(range(r.take(9))), lambda: iter(range(2**70)), lambda: enumerate(made), lambda: zip(made, "ab", strict=bool(r.take(2))),
        lambda: map(str, "abc"), lambda: filter(None, made), lambda: iter(Counted()), lambda: iter(int, 1), lambda: itertools.count(r.take(9)),
        lambda: itertools.count(0.5), lambda: itertools.repeat("a", 3), lambda: itertools.chain(made, "ab"), lambda: itertools.islice(made, 1, 3),
        lambda: itertools.cycle("ab"), lambda: iter(collections.deque(made)), lambda: collections.deque(range(r.take(200))), lambda: table.items(),
        lambda: bytearray(b"abc"),
    )
    result = makers[kind]()
    if hasattr(result, "__next__"):
        try:
            for _ in range(r.take(4)):
                next(result, None)
        except ValueError:
            pass  # a strict zip of unequal lengths
    return result


def tree(r, depth):
    kind = r.take(22)
    if depth == 0 or kind < 4:
        return leaf(r.take(256))
    child = lambda: tree(r, depth - 1)  # noqa: E731
    if kind < 8:
        made = (Node, Other)[kind % 2]()
        for i in range(r.take(4)):
            setattr(made, ATTRIBUTES[(i + kind) % 3], child())
        if kind < 6:
            made.__dict__  # noqa: B018  a dict from now on
        return made
    if kind < 12:
        made = (dict, collections.OrderedDict, Table, collections.defaultdict)[kind % 4]()
        for _ in range(r.take(5)):
            key, value = Evil() if r.take(40) == 39 else keys[r.take(len(keys))], child()
            try:
                made[key] = value
            except SystemExit:
                pass  # it was compared with another key of its hash
        return made
    if kind < 14:
        return (list, Row)[kind % 2](child() for _ in range(r.take(4)))
    if kind == 14:
        return tuple([child() for _ in range(r.take(4))])
    if kind == 15:
        made = Slotted()
        made.a = child()
        if r.take(2):
            made.b = child()
        return made
    if kind == 16:
        made = np.ones((r.take(4) + 1, 3), dtype=("f4", "f8", "i8")[r.take(3)])
        return (made, made, SHARED[:2], SHARED[2:], SHARED[::2], SHARED[3:3])[r.take(6)]
    if kind == 17:
        return function(child())
    if kind == 18:
        return (types.CellType(child()), types.CellType(), property(function(1)), staticmethod(function(2)), classmethod(function(3)))[r.take(5)]
    if kind > 19:
        return iterator(r, child)
    kind = r.take(8)
    if kind == 7:
        LIVING.append(Node())
        del LIVING[:-8]
        return weakref.ref(LIVING[-1])
    return (Node().method, types.ModuleType("made"), {1, "a"}, np.ones(3)[::2], function(child()).__code__, types.MappingProxyType({"a": child()}), frozenset({1, "b"}))[kind]


def make(data):
    for cls, original in zip((Node, Other), originals):
        for name in ("shared", "extra", "b"):
            if name in original:
                setattr(cls, name, original[name])
            elif name in vars(cls):
                delattr(cls, name)
    r = Reader(data)
    slots = [tree(r, 3), tree(r, 2), tree(r, 2)]
    cells = (types.CellType(tree(r, 1)), types.CellType(slots[0]))
    space = {"a": slots[1], "x": leaf(r.take(256)), "np": np}
    return slots, cells, space, {"len": len, "a": 1}, function(slots[2])


def parts(roots):
    """What can be changed, in an order that the bytes alone decide."""
    todo, found, seen = list(roots), [], set()
    while todo and len(found) < 60:
        value = todo.pop(0)
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, dict):
            todo += value.values()
        elif isinstance(value, (list, tuple)):
            todo += value
        elif isinstance(value, Node):
            todo += [getattr(value, name) for name in ATTRIBUTES if hasattr(value, name)]
        elif isinstance(value, Slotted):
            todo += [getattr(value, name) for name in "ab" if hasattr(value, name)]
        elif isinstance(value, types.CellType):
            try:
                todo.append(value.cell_contents)
            except ValueError:
                pass
        elif isinstance(value, types.FunctionType):
            todo += value.__closure__ or ()
        elif isinstance(value, types.MethodType):
            todo.append(value.__self__)
        elif isinstance(value, types.ModuleType):
            if value is np:
                continue
        elif not isinstance(value, (np.ndarray, collections.abc.Iterator, collections.deque, set, bytearray)):
            continue
        if not isinstance(value, tuple):
            found.append(value)
    return found


def change_dict(value, what, a, b):
    if what == 0:
        value.clear()
    elif what == 1 and value:
        value.popitem()
    elif what == 2 and value:
        key = next(iter(value))
        value[key] = value.pop(key)  # same contents, another order
    elif what == 3 and value:
        del value[list(value)[a % len(value)]]
    elif what == 4 and value:
        value[list(value)[a % len(value)]] = leaf(b)
    elif what == 5 and isinstance(value, collections.OrderedDict) and value:
        value.move_to_end(list(value)[a % len(value)], last=bool(b % 2))
    elif what == 6:
        value.update({i: i for i in range(a % 20)})  # another table
    elif what == 7:
        for i in range(20):
            value.pop(i, None)
    else:
        value[keys[a % len(keys)]] = leaf(b)


def change_list(value, what, a, b):
    if what == 0:
        value.append(leaf(b))
    elif what == 1 and value:
        value.pop(a % len(value))
    elif what == 2:
        value.reverse()
    elif what == 3:
        value[:] = [leaf(b)] * (a % 3)
    elif what == 4:
        value.insert(0, leaf(b))
    elif value:
        value[a % len(value)] = leaf(b)


def change_node(value, what, a, b):
    name = ATTRIBUTES[a % 3]
    if what == 0 and name in value.__dict__:
        delattr(value, name)
    elif what == 1:
        value.__class__ = (Node, Other)[a % 2]
    elif what == 2:
        value.__dict__ = dict(value.__dict__)
    elif what == 3:
        value.__dict__ = {"a": leaf(b)}
    elif what == 4:
        del value.__dict__
    elif what == 5:
        value.__dict__[name] = leaf(b)
    elif what == 6:
        value.__dict__.clear()
    else:
        setattr(value, name, leaf(b))


def change_function(value, what, a, b):
    if what == 0:
        value.__defaults__ = (None, (leaf(b),), (1,))[a % 3]
    elif what == 1:
        value.__kwdefaults__ = (None, {"z": leaf(b)}, {})[a % 3]
    elif what == 2:
        value.__code__ = function(1).__code__ if a % 2 else value.__code__.replace(co_firstlineno=b + 1)
    elif what == 3 and value.__kwdefaults__ is not None:
        value.__kwdefaults__["z"] = leaf(b)
    elif what == 4:
        value.a = leaf(b)
    else:
        value.__closure__[0].cell_contents = leaf(b)


def change_array(value, what, a, b):
    if what == 0:
        value.flags.writeable = not value.flags.writeable if value.base is None else False
    elif what == 1 and value.flags.c_contiguous:
        value.shape = ((value.size,), (1, value.size), value.shape[::-1])[a % 3]
    elif what == 2 and value.flags.c_contiguous and value.base is None:
        value.dtype = ("i4", "f4", "u4")[a % 3]
    elif what == 3 and value.base is None and value.flags.writeable and value.flags.c_contiguous:
        value.resize((a % 5 + 1, 3), refcheck=False)
    elif value.flags.writeable:
        value[...] = b


def change_deque(value, what, a, b):
    if what == 0:
        value.appendleft(leaf(b))
    elif what == 1:
        value.append(leaf(b))
    elif what == 2:
        value.rotate(a)
    elif what == 3:
        value.clear()
    elif value:
        value[a % len(value)] = leaf(b)


def change_class(what, a, b):
    cls = (Node, Other)[a % 2]
    name = ("shared", "extra", "b")[what % 3]
    if what >= 6 and name in vars(cls):
        delattr(cls, name)
    else:
        setattr(cls, name, leaf(b))


def change(call, what, where, a, b):
    slots, cells, space, builtins, func = call
    if where >= 236:  # a new argument at an old one's place
        slots[a % 3] = None
        if where % 2:
            gc.collect()
        slots[a % 3] = tree(Reader(bytes((b, a, what, where, b ^ a, b ^ what, a + b & 255, 3, 7, 15))), 2)
    elif where >= 226:
        change_class(what % 9, a, b)
    elif where >= 216:
        slots[a % 3], slots[b % 3] = slots[b % 3], slots[a % 3]
    else:
        found = parts([*slots, *cells, space, func])
        value = found[where % len(found)]
        try:
            if isinstance(value, dict):
                change_dict(value, what % 10, a, b)
            elif isinstance(value, list):
                change_list(value, what % 6, a, b)
            elif isinstance(value, Node):
                change_node(value, what % 10, a, b)
            elif isinstance(value, types.FunctionType):
                change_function(value, what % 6, a, b)
            elif isinstance(value, np.ndarray):
                change_array(value, what % 5, a, b)
            elif isinstance(value, types.CellType):
                if what % 3:
                    value.cell_contents = leaf(b)
                elif what % 2:
                    del value.cell_contents
            elif isinstance(value, collections.abc.Iterator):
                next(value, None)
            elif isinstance(value, collections.deque):
                change_deque(value, what % 5, a, b)
            elif isinstance(value, set):
                value.symmetric_difference_update({keys[a % len(keys)]})
            elif isinstance(value, bytearray):
                value.append(b) if what % 2 else value.clear()
            elif isinstance(value, types.ModuleType):
                setattr(value, names[a % 3], leaf(b))
            elif isinstance(value, Slotted):
                if what % 4:
                    setattr(value, "ab"[a % 2], leaf(b))
                elif hasattr(value, "b"):
                    del value.b
        except (SystemExit, KeyError, ValueError, TypeError, AttributeError, RuntimeError):
            pass  # the key that refuses to be compared, a view that cannot be reshaped
