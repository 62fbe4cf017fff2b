"""Call, change one thing, call again: values, containers and what they hold."""
from __future__ import annotations

import abc
import collections
import gc
import types
import weakref

import numpy as np
from support_soundness import Scenarios, follow

scenarios = Scenarios()


class Box:
    def __init__(self, **values):
        self.__dict__.update(values)


class Word(str):
    def __len__(self):
        return 99


class Number(int):
    def __add__(self, other):
        return "number"


class Real(float):
    pass


NAN = float("nan")
ALIKE = [1, True, 1.0, 1 + 0j, Number(1), Real(1.0), 0, False, 0.0, -0.0, 0j, -0j, NAN, -NAN, "1", b"1", Word("1"), None, "", b"", (), 2**62, 2**63, 2**64, -(2**63)]


@scenarios
def argument_of_values_that_compare_equal():
    def fn(v):
        return type(v).__name__, v, bool(v), v == 1, v == 0, [v]

    for v in ALIKE + ALIKE[::-1]:
        yield fn, v


@scenarios
def attribute_of_values_that_compare_equal():
    box = Box(v=1)

    def fn():
        v = box.v
        return (v, type(v) is int, -v if isinstance(v, (int, float, complex)) else v)

    for v in ALIKE + ALIKE[::-1]:
        box.v = v
        yield (fn,)


@scenarios
def item_of_a_tuple_inside_a_dict_of_values_that_compare_equal():
    table = {}

    def fn(k):
        return table[k][0], table[k][1]

    for v in ALIKE:
        table["k"] = (v, 7)
        yield fn, "k"
    for v in ALIKE[::-1]:
        table["k"] = (7, v)
        yield fn, "k"


@scenarios
def keys_that_compare_equal():
    def fn(d):
        return [(k, type(k).__name__, v) for k, v in d.items()], d.get(1), d[1]

    for key in (1, True, 1.0, Number(1), 1 + 0j, 1):
        yield fn, {key: 5}


@scenarios
def members_of_sets_that_compare_equal():
    def fn(s):
        return 1 in s, len(s), [type(v).__name__ for v in s], s == {1}

    for member in (1, True, 1.0, Number(1), 2, 1 + 0j):
        yield fn, {member}
        yield fn, frozenset((member,))


@scenarios
def zeros_by_sign():
    import math

    def fn(v):
        return math.copysign(1.0, v), v + 0.0, -v, v * -1

    for v in (0.0, -0.0, 0, 0.0, -0.0, NAN, -NAN):
        yield fn, v


@scenarios
def constants_that_are_equal_and_not_identical():
    one, other = 10**20, 10**20 + 0 * 7
    strings = "".join(["a", "b c"]), "".join(["a", "b c"])

    def fn(a, b):
        return a == b, a is b, a

    for a, b in ((one, one), (one, int(str(one))), (strings[0], strings[1]), (strings[0], strings[0]), (1.5, float("1.5")), (other, one)):
        yield fn, a, b


@scenarios
def nan_in_containers():
    def fn(v, xs):
        return v in xs, v == v, xs.index(v) if v in xs else -1, xs.count(v)

    other = float("nan")
    for v, xs in ((NAN, [NAN]), (NAN, [other]), (other, [NAN, other]), (1.0, [1]), (NAN, [NAN, NAN])):
        yield fn, v, xs


@scenarios
def ids_used_again_after_a_free():
    holder = Box(v=None)

    def fn():
        return holder.v.x, type(holder.v).__name__

    for i in range(40):
        holder.v = type(f"T{i % 3}", (), {"x": i % 5})() if i % 2 else Box(x=i)
        gc.collect(0)
        yield (fn,)


@scenarios
def classes_freed_and_made_again():
    holder = Box(c=None)

    def fn():
        return holder.c().f(), holder.c.k

    for i in range(25):
        holder.c = type("C", (), {"f": eval(f"lambda self: {i}"), "k": i})
        gc.collect()
        yield (fn,)


@scenarios
def inner_dicts_freed_under_noted_reads():
    holder = Box(a={"b": {"c": {"d": 0}}})

    def fn():
        return holder.a["b"]["c"]["d"]

    for i in range(40):
        if i % 4 == 0:
            holder.a = {"b": {"c": {"d": i}}}
        elif i % 4 == 1:
            holder.a["b"] = {"c": {"d": i}}
        elif i % 4 == 2:
            holder.a["b"]["c"] = {"d": i}
        else:
            del holder.a["b"]["c"]
            holder.a["b"]["c"] = {"d": i}
        rubbish = [{"d": -1} for _ in range(8)]
        yield (fn,)
        del rubbish


@scenarios
def dict_reordered_with_equal_items():
    d = {"a": 1, "b": 2, "c": 3}

    def fn(d):
        return list(d), list(d.values()), next(iter(d.items())), [k + str(v) for k, v in d.items()]

    yield fn, d
    for k in ("a", "c", "b"):
        d[k] = d.pop(k)
        yield fn, d
    yield fn, dict(sorted(d.items()))
    yield fn, dict(sorted(d.items(), reverse=True))
    d["b"] = 2
    yield fn, d
    d.clear()
    d.update(c=3, b=2, a=1)
    yield fn, d


@scenarios
def ordered_dict_moves():
    d = collections.OrderedDict(a=1, b=2, c=3)

    def fn():
        return list(d), next(iter(d)), next(reversed(d)), [v for v in d.values()], d == {"a": 1, "b": 2, "c": 3}

    yield (fn,)
    for k, last in (("a", True), ("c", False), ("b", True), ("b", False), ("a", True)):
        d.move_to_end(k, last=last)
        yield (fn,)
    d["a"] = d.pop("a")
    yield (fn,)


@scenarios
def list_swaps_of_one_length():
    xs = [1, 2, 3]

    def fn():
        return xs[0], xs[-1], xs[1:], len(xs), sum(xs)

    yield (fn,)
    xs[0], xs[2] = xs[2], xs[0]
    yield (fn,)
    xs.reverse()
    yield (fn,)
    xs[:] = [9, 8, 7]
    yield (fn,)
    xs.insert(0, xs.pop())
    yield (fn,)
    xs[1] = True
    yield (fn,)
    xs[1] = 1.0
    yield (fn,)
    xs.sort()
    yield (fn,)


@scenarios
def nested_lists_replaced_by_equal_ones():
    outer = [[1, 2], [1, 2]]

    def fn():
        return outer[0] is outer[1], outer[0] == outer[1], outer[0][0] + outer[1][1]

    yield (fn,)
    outer[1] = outer[0]
    yield (fn,)
    outer[1] = [1, 2]
    yield (fn,)
    outer[1][1] = 5
    yield (fn,)


@scenarios
def sets_that_change():
    s = {1, 2}
    box = Box(s=s)

    def fn():
        return 1 in box.s, 3 in box.s, len(box.s), sorted(box.s), type(box.s).__name__

    yield (fn,)
    s.add(3)
    yield (fn,)
    s.discard(1)
    yield (fn,)
    s.clear()
    s.update((7, 3))
    yield (fn,)
    box.s = frozenset((7, 3))
    yield (fn,)
    box.s = {True}
    yield (fn,)


@scenarios
def deques_and_maps():
    q = collections.deque([1, 2, 3], maxlen=4)
    view = types.MappingProxyType({"a": 1})
    box = Box(q=q, view=view)

    def fn():
        return list(box.q), len(box.q), box.q[0], box.view["a"], list(box.view), box.q.maxlen

    yield (fn,)
    q.rotate(1)
    yield (fn,)
    q.append(9)
    q.append(10)
    yield (fn,)
    backing = {"a": 5, "b": 6}
    box.view = types.MappingProxyType(backing)
    yield (fn,)
    backing["a"] = 7
    yield (fn,)
    del backing["b"]
    yield (fn,)
    box.q = collections.deque([4], maxlen=2)
    yield (fn,)


@scenarios
def default_dicts_and_counters():
    d = collections.defaultdict(lambda: 5, a=1)
    c = collections.Counter("abca")

    def fn():
        return d.get("z", 0), d["a"], c["a"], c["zz"], c.most_common(1)

    yield (fn,)
    d["z"] = 8
    yield (fn,)
    c["zz"] += 3
    yield (fn,)
    d.default_factory = None
    yield (fn,)
    del d["a"]
    yield (fn,)


@scenarios
def ranges_and_slices():
    box = Box(r=range(3), s=slice(0, 2))

    def fn():
        return list(box.r), len(box.r), [5, 6, 7, 8][box.s], box.r.step

    for r in (range(3), range(0, 3, 1), range(3, 0, -1), range(0), range(1, 1), range(0, 5, 2), range(2**70, 2**70 + 2)):
        box.r = r
        yield (fn,)
    for s in (slice(1, 3), slice(None), slice(None, None, -1), slice(0, -1), slice(1.5, None), slice(True, 3), slice(1, 3)):
        box.s = s
        yield (fn,)


@scenarios
def weak_reference_dies():
    target = Box(v=3)
    ref = weakref.ref(target)

    def fn():
        t = ref()
        return -1 if t is None else t.v

    yield (fn,)
    target.v = 4
    yield (fn,)
    del target
    gc.collect()
    yield (fn,)
    target = Box(v=5)
    ref = weakref.ref(target)
    yield (fn,)


@scenarios
def weak_dictionaries():
    class Key:
        pass

    keys = [Key(), Key()]
    values = weakref.WeakValueDictionary()
    table = weakref.WeakKeyDictionary({keys[0]: 1})

    def fn():
        return len(values), "a" in values, len(table)

    yield (fn,)
    values["a"] = keys[1]
    yield (fn,)
    del keys[1]
    gc.collect()
    yield (fn,)
    del keys[0]
    gc.collect()
    yield (fn,)


@scenarios
def registrations_with_abstract_classes():
    class Base(abc.ABC):
        pass

    class One:
        pass

    one, x = One(), np.ones(2)

    def fn():
        return (x + 1 if isinstance(one, Base) else x - 1), issubclass(type(one), Base)

    yield (fn,)
    Base.register(One)
    yield (fn,)


@scenarios
def ways_of_numpy_to_report_errors():
    zero, one, x = np.float64(0), np.float64(1), np.zeros(2)

    def fn():
        return one / zero, x / x, np.log(x), np.sqrt(x - 1)

    calls = []
    yield (fn,)
    for how in ("ignore", "raise", "warn"):
        with np.errstate(all=how):
            yield (fn,)
    with np.errstate(all="call", call=lambda kind, flags: calls.append(kind)):
        yield (fn,)
    with np.errstate(divide="raise", invalid="ignore"):
        yield (fn,)
    yield (fn,)


@scenarios
def aliasing_that_comes_and_goes():
    def fn(a, b):
        saved = a[0]
        a[0] = 5
        answer = b[0], a is b, a == b
        a[0] = saved
        return answer

    one, other = [1], [1]
    for a, b in ((one, other), (one, one), (other, one), (other, other), (one, other)):
        yield fn, a, b


@scenarios
def arrays_that_alias():
    def fn(a, b):
        saved = a.copy()
        a += 1
        answer = b.sum(), np.shares_memory(a, b), a is b
        a[...] = saved
        return answer

    base = np.arange(8.0)
    for a, b in ((base[:4], base[4:]), (base[:4], base[2:6]), (base[:4], base[:4]), (base, base), (base[:4].copy(), base[:4]), (base[::2], base[1::2])):
        yield fn, a, b


@scenarios
def array_metadata_changed_in_place():
    a = np.arange(6.0)
    box = Box(a=a)

    def fn():
        return box.a + 1, box.a.shape, box.a.dtype.name, box.a.flags.writeable, box.a.strides

    yield (fn,)
    a.shape = (2, 3)
    yield (fn,)
    a.flags.writeable = False
    yield (fn,)
    box.a = a.T
    yield (fn,)
    box.a = a.view(np.int64)
    yield (fn,)
    box.a = a.astype(">f8")
    yield (fn,)
    box.a = np.ma.array(a, mask=[[0, 1, 0], [0, 0, 0]])
    yield (lambda: (box.a.sum(), type(box.a).__name__),)


@scenarios
def array_scalars_and_python_scalars():
    def fn(v):
        return v + 1, type(v).__name__, v * 2.5

    for v in (1, np.int64(1), np.float64(1), np.float32(1), np.array(1), 1.0, np.bool_(True), True, np.int8(127), np.uint8(255)):
        yield fn, v


@scenarios
def array_in_place_operations_on_a_global():
    space = {"np": np, "w": np.ones(3)}
    exec("def f(x):\n return x * w + w.sum()", space)
    x = np.arange(3.0)
    yield space["f"], x
    space["w"] += 1
    yield space["f"], x
    space["w"] = space["w"].astype(np.float32)
    yield space["f"], x
    space["w"] = 3
    yield space["f"], x
    space["w"] = np.ones((3, 1))
    yield space["f"], x


@scenarios
def numpy_error_state():
    def fn(x):
        return (x / 0.0).sum()

    x = np.ones(3)
    with np.errstate(all="ignore"):
        yield fn, x
    with np.errstate(divide="raise"):
        yield fn, x
    with np.errstate(divide="ignore"):
        yield fn, x


@scenarios
def iterators_at_other_positions():
    box = Box(make=lambda: iter([1, 2, 3]))

    def fn(it):
        return [v for v in it]

    class Again:
        def __init__(self, make):
            self.make = make

        def __iter__(self):
            return self.make()

    for make in (lambda: iter((1, 2)), lambda: iter([1, 2]), lambda: iter(range(3)), lambda: zip("ab", (1, 2)), lambda: enumerate("xy", 4),
                 lambda: iter({"a": 1}), lambda: reversed([1, 2]), lambda: map(str, (1, 2)), lambda: iter(())):
        yield fn, Again(make)
    assert box.make is not None


@scenarios
def strings_of_equal_text_and_another_kind():
    def fn(s):
        return len(s), s + "x", s.upper(), type(s).__name__, s == "q", f"{s}!"

    for s in ("q", Word("q"), "".join(["q"]), "\u00e9", "q\0", Word("z"), np.str_("q"), "q"):
        yield fn, s


@scenarios.parametrize()
def test_values_and_containers(make):
    follow(make)


def used_up(fn_of_iterator, makers):
    """Iterators are used up by a call: plain and compiled get one each, and both must leave it where the other does."""
    from support_engine import cap

    compiled = cap(fn_of_iterator)
    for make in makers:
        for _ in range(3):
            plain_it, it = make(), make()
            want, got = fn_of_iterator(plain_it), compiled(it)
            assert got == want and list(zip(range(5), it)) == list(zip(range(5), plain_it)), (make, want, got)


def test_iterators_are_read_from_where_they_are():
    import itertools

    def advanced(make, n):
        it = make()
        for _ in range(n):
            next(it, None)
        return it

    bases = [lambda: iter((1, 2, 3)), lambda: iter([1, 2, 3]), lambda: iter(range(3)), lambda: iter(range(1, 9, 3)), lambda: iter({1: 2, 3: 4, 5: 6}),
             lambda: zip((1, 2, 3), (4, 5, 6)), lambda: enumerate((7, 8, 9)), lambda: enumerate((7, 8, 9), 3), lambda: itertools.count(),
             lambda: itertools.count(5, 2), lambda: itertools.count(0.5), lambda: itertools.cycle((1, 2)), lambda: itertools.chain((1,), (2, 3)),
             lambda: itertools.repeat(4), lambda: itertools.repeat(4, 3), lambda: reversed([1, 2, 3]), lambda: iter("abc"), lambda: iter({1: 2}.items()),
             lambda: (v for v in (1, 2, 3)), lambda: map(int, "123"), lambda: itertools.islice(range(9), 3)]
    makers = [lambda b=b, n=n: advanced(b, n) for b in bases for n in (0, 1, 2, 3, 4)]
    used_up(lambda it: next(it, "end"), makers)
    used_up(lambda it: (next(it, None), next(it, None)), makers)
    used_up(lambda it: [a for a, _ in zip(it, (1, 2))], makers)
