"""Lists, dicts, tuples, sets, deques, comprehensions, unpacking, iteration: plain and compiled agree, aliasing and mutation included."""

import collections
import itertools

from support_engine import Cases, check_case

case = Cases()
LISTS = (([3, 1, 2],), ([],), ([1, 1, 1],), ([True, 2.5, 0],))


@case(*LISTS)
def list_basics(xs): return len(xs), xs + [9], xs * 2, xs[::-1], xs[1:], sum(xs), sorted(xs)
@case(*LISTS)
def list_methods(xs):
    xs.append(5); xs.extend([6, 7]); xs.insert(1, 8); p = xs.pop(); xs.reverse(); xs.remove(5)
    return xs, p, xs.index(6), xs.count(1)
@case(([1],), ([],), ([2, 1],))
def list_pop_raises(xs): return xs.pop(), xs.pop(0)
@case(([1, 2, 3], 2), ([1], 9))
def list_remove_raises(xs, v): xs.remove(v); return xs
@case(([1, 2, 3], 0), ([1, 2, 3], -1), ([1, 2, 3], 3), ([], 0), ([1], None))
def list_item(xs, i): return xs[i]
@case(([1, 2, 3],), ([],), ([1],))
def list_slices(xs): return xs[:2], xs[-2:], xs[::2], xs[5:], xs[:-1], xs[1:1]
@case(([1, 2, 3, 4],), ([1],))
def list_slice_store(xs):
    xs[1:3] = [9, 9, 9]; xs[:0] = [0]; del xs[-1:]
    return xs
@case(([1, 2, 3, 4],), ([1],))
def list_extended_slice(xs): xs[::2] = [0, 0]; return xs
@case(([3, 1, 2],), (["b", "a"],), ([1, "a"],))
def list_sort(xs): xs.sort(); return xs, xs.sort(reverse=True), xs
@case(([3, -1, 2],), ([],))
def list_sort_key(xs): return sorted(xs, key=abs), sorted(xs, key=lambda v: -v), max(xs, key=abs, default=None)
@case(([1, 2],), ([],))
def same_list_returned(xs): return xs
@case(([1, 2],), ([],))
def list_twice(xs): ys = xs; ys.append(3); return ys, xs, ys is xs
@case(([[1], [2]],), ([[]],))
def nested_list(xss): xss[0].append(5); return xss[0], xss, [len(x) for x in xss]
@case(([1, 2, 3],), ([],))
def list_copy(xs): ys = xs.copy(); zs = xs[:]; ws = list(xs); ys.append(1); return xs, ys, zs, ws, zs is xs
@case(([1, 2], [1, 2]), ([1], [2]), ([], [0]))
def list_compare(a, b): return a == b, a < b, a is b, a != b
@case(([1, 2, 3], 2), ([], 1), ([1.0], 1), ([True], 1))
def list_contains(xs, v): return v in xs, v not in xs
@case(([1, 2],), ([5],))
def list_augmented(xs): ys = xs; xs += [3]; xs *= 2; return xs, ys is xs
@case(([1, 2, 3, 4, 5],), ([],), ([2],))
def list_loop(xs):
    t = 0
    for x in xs:
        if x == 2: continue
        if x == 5: break
        t += x
    else: t = -1
    return t
@case(([1, 2, 3],), ([],))
def grows_while_iterated(xs):
    for v in xs:
        if len(xs) < 6: xs.append(v * 10)
    return xs
@case(([1, 2, 3, 4],),)
def shrinks_while_iterated(xs):
    seen = []
    for v in xs: seen.append(v); xs.pop()
    return seen, xs
@case(([1, 2, 3],), ([],), ("ab",), ((4,),))
def comprehension(xs): return [x for x in xs], [x * 2 for x in xs if x != 2], {x: 1 for x in xs}, [*xs]
@case(([1, 2, 3],), ([],))
def nested_comprehension(xs): return [(a, b) for a in xs for b in xs if a < b], [[y for y in range(x)] for x in xs]
@case(([1, 2, 3], 2), ([], 1))
def comprehension_reads_local(xs, k): return [x * k for x in xs], {x % k for x in xs}, sum(x * k for x in xs)
@case(([1, 2, 3],),)
def comprehension_variable_stays_inside(xs): x = 7; ys = [x for x in xs]; return x, ys
@case(([1, -2, 3],), ([],))
def generator_expressions(xs): return any(x < 0 for x in xs), all(x for x in xs), max((x for x in xs), default=0), tuple(x for x in xs)
@case(([1, 2, 3],), ([5],))
def walrus_in_comprehension(xs): ys = [y for x in xs if (y := x * 2) > 2]; return ys, y
@case(([3, 1],), ([],))
def enumerate_zip(xs): return list(enumerate(xs)), list(enumerate(xs, 5)), list(zip(xs, "abc")), dict(zip("ab", xs))
@case(([1, 2], [3, 4]), ([1], [2, 3]), ([], []))
def zip_strict(a, b): return list(zip(a, b, strict=True))
@case(([1, 2, 3],), ([],))
def map_filter(xs): return list(map(str, xs)), list(filter(None, xs)), list(map(lambda a, b: a + b, xs, xs)), list(filter(lambda v: v > 1, xs))
@case(([3, 1, 2],), ([],))
def reversed_list(xs): return list(reversed(xs)), [v for v in reversed(xs)]
@case((5,), (0,), (-2,))
def ranges(n): return list(range(n)), list(range(1, n, 2)), list(range(n, 0, -1)), len(range(n)), n in range(10), range(n)[1:]
@case((0,), (3,))
def range_step_raises(n): return list(range(0, 10, n))
@case(({"a": 1, "b": 2},), ({},), ({"b": 2, "a": 1},), ({1: "x", 2.0: "y"},))
def dict_basics(d): return len(d), list(d), list(d.values()), list(d.items()), dict(d), sorted(map(str, d))
@case(({"a": 1}, "a"), ({"a": 1}, "b"), ({}, "a"), ({1: 2}, True), ({1: 2}, 1.0))
def dict_item(d, k): return d[k]
@case(({"a": 1}, "a"), ({"a": None}, "a"), ({}, "a"))
def dict_get(d, k): return d.get(k), d.get(k, 5), k in d, d.setdefault(k, 9), d
@case(({"a": 1}, "a"), ({}, "a"), ({"b": 2}, "a"))
def dict_pop(d, k): return d.pop(k, None), d, len(d)
@case(({"a": 1}, "a"), ({}, "a"))
def dict_delete(d, k): del d[k]; return d
@case(({"a": 1},), ({},))
def dict_update(d): d.update(b=2); d.update({"a": 5}); d |= {"z": 0}; d["y"] = d.pop("b"); return d, {**d, "q": 1}
@case(({"a": 1, "b": 2},), ({},))
def dict_order(d): d["a"] = 9; d["c"] = 1; d.pop("a", None); d["a"] = 3; return list(d), d.popitem(), d
@case(({"a": 1},), ({},))
def dict_popitem_raises(d): return d.popitem(), d.popitem()
@case(({"a": 1, "b": 2},), ({},))
def dict_comprehension(d): return {v: k for k, v in d.items()}, {k: v for k, v in d.items() if v > 1}
@case(({"a": 1, "b": 2},),)
def dict_changes_while_iterated(d):
    for k in d: d[k + "x"] = 1
    return d
@case(({"a": 1, "b": 2},), ({},))
def dict_values_change_while_iterated(d):
    for k in d: d[k] += 10
    return d
@case(({"a": 1}, {"a": 1}), ({"a": 1}, {"b": 1}), ({}, {}))
def dict_compare(a, b): return a == b, a | b, a.keys() & b.keys(), a.items() == b.items()
@case(({"a": {"b": [1]}},), ({"a": {"b": []}},))
def nested_dict(d): d["a"]["b"].append(2); d["a"]["n"] = len(d["a"]["b"]); return d
@case((["a", "b", "a"],), ([],))
def counting(xs):
    n = {}
    for x in xs: n[x] = n.get(x, 0) + 1
    return n, collections.Counter(xs).most_common(1)
@case((["a", "bb", "cc"],), ([],))
def grouping(xs):
    d = collections.defaultdict(list)
    for x in xs: d[len(x)].append(x)
    return dict(d), d[99]
@case(([],), (["k"],), ({"u": 1},))
def unhashable_key(k): return {k: 1}
@case(((1, 2, 3),), ((),), ((1,),))
def tuple_basics(t): return len(t), t + (9,), t * 2, t[::-1], t[:1], sum(t), t.count(1), t
@case(((1, 2), 0), ((1, 2), 5), ((), 0))
def tuple_item(t, i): return t[i]
@case(((1, 2),), ((1,),))
def tuple_store_raises(t): t[0] = 5; return t
@case(((1, 2), (1, 3)), ((1,), (1, 2)), ((), ()))
def tuple_compare(a, b): return a < b, a == b, max(a, b)
@case(((1, [2]),),)
def tuple_with_list(t): t[1].append(3); return t, t[1]
@case(((1, [2]),),)
def tuple_augmented_item(t): t[1] += [3]; return t
@case(({1, 2},), (set(),), ({1, "a"},))
def set_basics(s): s.add(5); s.discard(1); s.update([7, 8]); return s, len(s), 5 in s, s | {3}, s & {5}, s - {7}, s ^ {5, 6}
@case(({1},), (set(),))
def set_remove_raises(s): s.remove(1); return s
@case(({1, 2}, {2}), (set(), {1}), ({1}, {1}))
def set_compare(a, b): return a <= b, a >= b, a == b, a.isdisjoint(b), a.union(b), a.intersection(b)
@case(({1, 2},), (set(),))
def set_augmented(s): t = s; s |= {9}; s -= {1}; s &= {2, 9}; return s, s is t
@case(([1, 2, 1],), ([],))
def frozen_sets(xs): f = frozenset(xs); return f, len(f), f | {5}, hash(f) == hash(frozenset(xs)), {f: 1}
@case(([1, 2, 3],), ([1, 2],), ([1],), ([],))
def unpack_exact(xs): a, b = xs; return b, a
@case(([1, 2, 3],), ([1],), ([],), ("xyz",))
def unpack_star(xs): a, *b = xs; return a, b
@case(([1, 2, 3, 4],), ([1, 2],), ([1],))
def unpack_middle(xs): a, *b, c = xs; return a, b, c
@case(([1, (2, 3)],), ([1, 2],), ([1, [2, 3]],))
def unpack_nested(xs): a, (b, c) = xs; return a, b, c
@case(({"a": 1, "b": 2},), ({"a": 1},))
def unpack_dict(d): a, b = d; return a, b
@case((1, 2), ("x", None))
def swap(a, b): a, b = b, a; return a, b
@case(([1, 2, 3],),)
def store_order(xs): i = 0; i, xs[i] = 2, 9; return i, xs
@case(([1, 2],), ((3,),), ([],))
def star_display(xs): return [*xs, 0, *xs], (*xs, 1), {*xs, 2}, [*range(2), *"ab"]
@case(({"a": 1},), ({},))
def double_star_display(d): return {**d, "a": 2, **{"z": 3}}, dict(**d, q=1)
@case(([1, 2, 3],), ([],))
def iterators(xs):
    it = iter(xs)
    return next(it, None), list(it), next(it, "end")
@case(([1],), ([],))
def next_raises(xs): it = iter(xs); return next(it), next(it)
@case(([1, 2, 3, 4],), ([1],))
def shared_iterator(xs): it = iter(xs); return list(zip(it, it)), list(it)
@case(([1, 2, 3],), ([],))
def iterator_argument_consumed(xs): it = iter(xs); a = sum(it); return a, sum(it), list(it)
@case((3,), (0,))
def iter_with_sentinel(n):
    xs = list(range(5))
    return list(iter(xs.pop, n)), xs
@case(([1, 2, 3, 4],), ([],))
def itertools_some(xs):
    return (list(itertools.chain(xs, "a")), list(itertools.islice(xs, 1, 3)), list(itertools.accumulate(xs)), list(itertools.product(xs[:2], "ab")),
            list(itertools.pairwise(xs)), list(itertools.zip_longest(xs, "a", fillvalue=0)), list(itertools.combinations(xs, 2)))
@case(("aabc",), ("",))
def itertools_groupby(s): return {k: len(list(v)) for k, v in itertools.groupby(s)}
@case(([1, 2, 3],), ([],))
def deques(xs):
    d = collections.deque(xs, maxlen=2); d.append(9); d.appendleft(0); r = d.pop() if d else None; d.rotate(1)
    return list(d), r, d.maxlen, collections.deque(xs, maxlen=0)
@case(([1, 2],), ([3, 4],))
def named_tuples(xs):
    P = collections.namedtuple("P", "a b")
    p = P(*xs)
    return p.a, p.b, tuple(p), p._asdict(), p._replace(a=0)[0], len(p)
@case(([4, 2, 9],), ([],))
def bubble_sort(xs):
    for i in range(len(xs)):
        for j in range(len(xs) - 1 - i):
            if xs[j] > xs[j + 1]: xs[j], xs[j + 1] = xs[j + 1], xs[j]
    return xs
@case(([1, 3, 5, 7], 5), ([1, 3], 4), ([], 1))
def binary_search(xs, v):
    lo, hi = 0, len(xs)
    while lo < hi:
        mid = (lo + hi) // 2
        if xs[mid] == v: return mid
        if xs[mid] < v: lo = mid + 1
        else: hi = mid
    return ~lo
@case(([[1, 2], [3, 4]],), ([[5]],), ([],))
def transpose(m): return [list(r) for r in zip(*m)], [[row[i] for row in m] for i in range(len(m[0]))] if m else []
@case(({"a": ["b", "c"], "b": ["d"], "c": [], "d": []}, "a"), ({"a": []}, "a"), ({}, "a"))
def breadth_first(g, start):
    seen, queue = [start], [start]
    while queue:
        for n in g[queue.pop(0)]:
            if n not in seen: seen.append(n); queue.append(n)
    return seen
@case((5,), (1,), (0,))
def pascal(n):
    rows = [[1]]
    for _ in range(n): rows.append([a + b for a, b in zip([0] + rows[-1], rows[-1] + [0])])
    return rows
@case((20,), (2,), (0,))
def sieve(n):
    flags = [True] * (n + 1)
    for i in range(2, n + 1):
        if flags[i]:
            for j in range(i * i, n + 1, i): flags[j] = False
    return [i for i in range(2, n + 1) if flags[i]]
@case(([1, [2, [3, []]], 4],), ([],))
def flatten(xs):
    out, stack = [], [xs]
    while stack:
        v = stack.pop()
        if isinstance(v, list): stack.extend(reversed(v))
        else: out.append(v)
    return out
@case(([1, 2, 3, 4, 5, 6], 2), ([1, 2, 3], 2), ([], 1), ([1], 0))
def chunks(xs, n): return [xs[i:i + n] for i in range(0, len(xs), n)]
@case(([1, 2], [1, 2]), ([], []))
def aliased_or_not(a, b): a.append(3); return a == b, a is b, len(b)
@case((lambda xs: (xs, xs))([1]), ([1], [1]))
def truly_aliased(a, b): a.append(3); b.append(4); return a, b, a is b
@case((bytearray(b"ab"),), (bytearray(),))
def byte_arrays(b): b.append(99); b += b"z"; return b, len(b), bytes(b)
@case(([3, 1, 2],), ([],))
def del_items(xs):
    if xs: del xs[0]
    xs[:] = xs[::-1]
    return xs
@case((slice(0, 2),), (slice(None, None, -1),), (1,), (None,))
def slice_argument(s): return [1, 2, 3][s]
@case(([0, 1, 2],), ([],))
def any_all_short(xs):
    seen = []
    def f(v): seen.append(v); return v
    return any(f(v) for v in xs), all(f(v) for v in xs), seen


@case.parametrize()
def test_containers(case): check_case(case)
