"""Sets that existed before the call: membership, length, adding and taking out; what changes in them, and sets that are no plain ones."""

import numpy as np
from support_engine import Cases, cap, check_case, check_same, check_twins, framegate, needs_engine, observe

one_graph, others = Cases(), Cases()
X = np.arange(3.0)


@one_graph((X, {1, 2}), (X, {"a"}), (X, set()), (X, frozenset({1, "a"})), (X, {(1, "a"), None, 1.0}), (X, {True, b"b"}))
def membership(x, s): return x + 1, 1 in s, "a" not in s, (1, "a") in s, None in s, 1.0 in s, True in s, b"b" in s
@one_graph((X, {1, 2}), (X, set()), (X, frozenset("ab")))
def length(x, s): return x * len(s), (3 if s else 4), not s, bool(s)
@one_graph((X, {1, 2}), (X, set()), (X, {5}), (X, {5.0, "b"}), (X, {True}))
def changed(x, s):
    s.add(5); n = len(s); s.add("b"); s.discard(1); s.discard("nothing"); s.add((1, 2))
    return x * n, len(s), 5 in s, 1 in s, "b" in s, s, s.__contains__((1, 2))
@one_graph((X, {1, 2}), (X, {2}), (X, {1}))
def taken_out(x, s):
    try: s.remove(1); s.remove(2)
    except KeyError as e: return x + 1, str(e), len(s), 2 in s
    return x, s, len(s)
@others((X, {1}), (X, set()))
def missing(x, s): s.remove(7); return x
@one_graph((X, {1}, {1}), (X, set(), {2}))
def two_of_them(x, a, b): a.add(2); b.discard(2); return x + len(a), len(b), 2 in a, 2 in b, a is b
@one_graph((X, {1}), (X, set()))
def by_another_name(x, s): t = s; t.add(4); return x, 4 in s, t is s, len(s)
@one_graph((X, {1}), (X, set()))
def by_the_class(x, s): set.add(s, 4); return x, set.__contains__(s, 4), s
@others((X, {1, 2, 3}), (X, set()))
def gone_over(x, s): return x, sorted(s), [v for v in s if v in s]
@others((X, {1}), (X, {7}))
def behind_a_break(x, s): s.add(7); print(end=""); s.add(8); n = len(s); print(end=""); s.discard(7); return x + n, s, 7 in s
@others((X, {1, 3}, 3), (X, {1}, 3), (X, {1}, 1.0), (X, {1}, "a"))
def with_a_value_of_the_call(x, s, v): return x, v in s, s.add(v), len(s)
@others((X, {1}), (X, set()))
def in_a_loop(x, s):
    for i in range(4):
        if i not in s: s.add(i)
        else: s.remove(i)
    return x, s
@others((X, {1}), (X, frozenset({1})))
def unhashable(x, s): return [] in s
@others((X, {1}),)
def wrong_calls(x, s): s.add(); return x
@others((X, {1}),)
def with_keywords(x, s): s.add(x=1); return x
@others((X, frozenset({1})))
def frozen(x, s): s.add(2); return x
@others((X, {1, 2}), (X, {3}))
def whole_sets(x, s): return x, s | {1}, s & {1, 2}, s - {1}, s == {3}, s <= {1, 2, 3}, s.isdisjoint({4})
@others((X, {1, 2}),)
def emptied(x, s): s.add(3); s.clear(); s.update([4]); v = s.pop(); s.add(1); return x, v, s


@Cases(one_graph + others).parametrize()
def test_set(case): check_case(case)


@needs_engine
@one_graph.parametrize()
def test_one_graph(case):
    import copy
    f = framegate.compile(case.fn, fullgraph=True)
    for args in case.inputs * 2:
        check_same(observe(case.fn, copy.deepcopy(args)), observe(f, copy.deepcopy(args)), "fullgraph")


class Awkward:
    """Hash and equality of an int, and it says so."""
    def __init__(self, value, log): self.value, self.log = value, log
    def __hash__(self): return hash(self.value)
    def __eq__(self, other): self.log.append(other); return self.value == other
    def __deepcopy__(self, memo): return self
    def __repr__(self): return f"Awkward({self.value})"


class Mine(set):
    def __contains__(self, item): return item == 42
    def __len__(self): return 7
    def add(self, item): super().add(("mine", item))


def test_members_with_an_equality_of_their_own_are_asked():
    def f(x, s): return x, 1 in s, 2 in s, len(s)
    g = cap(f)
    for kind in (set, frozenset):
        logs = []
        for h in (f, g, g):
            log = []
            result = h(X, kind([Awkward(1, log), 3]))
            logs.append((repr(result), log))
        assert logs[0] == logs[1] == logs[2]
    check_same(observe(f, (X, {1})), observe(g, (X, {1})), "plain members")


def test_a_class_of_its_own_is_asked():
    def f(x, s): s.add(1); return x, 1 in s, 42 in s, len(s), sorted(map(repr, set.__iter__(s)))
    g = cap(f)
    for s in ({1}, Mine([1]), {2}, Mine()):
        check_same(observe(f, (X, type(s)(s))), observe(g, (X, type(s)(s))), repr(s))


def test_what_changes_between_calls_is_seen():
    def make():
        class State: pass
        state = State()
        state.s, state.f = {1, 2}, frozenset({1})
        def f(x):
            before = 3 in state.s, len(state.s), 1 in state.f
            state.s.add(3)
            return x + len(state.s), before, 1 in state.s, 3 in state.s
        return f, state
    check_twins(make, [(X,), (X,), lambda s: s.s.discard(3), (X,), lambda s: s.s.clear(), (X,), lambda s: setattr(s, "s", {3}), (X,),
                       lambda s: setattr(s, "f", frozenset()), (X,), lambda s: setattr(s, "s", [3]), (X,), lambda s: setattr(s, "s", {1, 2}), (X,)])


def test_one_set_under_two_names():
    def f(x, a, b): a.add(9); r = 9 in b, len(b); b.discard(9); return x, r, 9 in a, len(a)
    g = cap(f)
    for same in (False, True, False):
        for h in (f, g):
            a = {1}
            b = a if same else {1}
            want = ((False, 1) if not same else (True, 2), not same, 1 if same else 2)
            assert h(X, a, b)[1:] == want
