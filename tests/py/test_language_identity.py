"""Instances in sets: those that are equal to nothing but themselves are told apart by identity, and a class that grows an __eq__ is seen."""

import numpy as np
from support_engine import Cases, check_case, check_same, check_twins, framegate, needs_engine, observe

A = np.arange(3.0)


class Node:
    def __init__(self, n, *parts): self.n, self.parts = n, parts
    def walk(self, seen=None):
        seen = set() if seen is None else seen
        if self not in seen:
            seen.add(self)
            yield self
            for part in self.parts: yield from part.walk(seen)


class Equal(Node):
    def __eq__(self, other): return self.n == other.n
    def __hash__(self): return self.n


LEAF = Node(1)
case, others = Cases(), Cases()


@case((A, LEAF, Node(2)), (A, LEAF, LEAF))
def distinct_or_not(a, x, y):
    seen = {x}
    first = y in seen
    seen.add(y)
    return a * len(seen), first, x in seen
@case((A, Node(3, LEAF, Node(4, LEAF)), LEAF), (A, Node(3), LEAF))
def each_once(a, tree, leaf): return a + sum(node.n for node in tree.walk()), leaf in set(tree.walk())
@case((A, LEAF, 3))
def made_here(a, x, n):
    new = Node(n)
    seen = {x, new}
    seen.discard(x)
    return a + n, x in seen, new in seen, Node(n) in seen
@others((A, Equal(1), Equal(1)), (A, Equal(1), Equal(2)))
def with_an_eq(a, x, y):
    seen = {x}
    return y in seen, len(seen | {y}), a + 1
@others((A, LEAF, 3))
def mixed(a, x, n): return 3 in {x}, x in {n, x}, a + n
@others((A, [1], 2), (A, {}, 2))
def not_hashable(a, x, n):
    try: return n in {x}
    except TypeError as e: return str(e)


@case.parametrize()
def test_sets(case): check_case(case)


@others.parametrize()
def test_other_members(case): check_case(case)


@needs_engine
@case.parametrize()
def test_one_graph(case):
    f = framegate.compile(case.fn, fullgraph=True)
    for args in case.inputs * 2: check_same(observe(case.fn, args), observe(f, args), "fullgraph")


def test_a_class_may_grow_an_eq():
    def make():
        class C: pass
        x, y = C(), C()
        def f(a): return (a, y in {x}, len({x, y}))
        return f, (C, x, y)
    def grow(state):
        state[0].__eq__ = lambda self, other: True
        state[0].__hash__ = lambda self: 1
    def unhashable(state): state[0].__hash__ = None
    check_twins(make, [(A,), (A,), grow, (A,), unhashable, (A,)])


def test_other_objects_in_the_same_places():
    def make():
        boxes = [Node(1), Node(2)]
        def f(a): return a + (boxes[0] in {boxes[1]})
        return f, boxes
    def alias(boxes): boxes[1] = boxes[0]
    def part(boxes): boxes[1] = Node(2)
    check_twins(make, [(A,), (A,), alias, (A,), part, (A,)])
