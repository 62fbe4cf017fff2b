"""Memos of guard programs: a program that has seen a call answers a changed one as a description that is read in full."""

from __future__ import annotations

import collections
import gc
import random
import sys
import types

import numpy as np
import pytest
from framegate._core import GuardDesc, GuardProgram
from guard_classes import Node, Other, Slotted
from hypothesis import given, settings
from hypothesis import strategies as st


class Strange:
    pass


LEAVES = [None, True, 0, 1, 7, 300, 2**70, 0.5, -0.0, 1e300, "a", "name", b"x", (), (1, "a"), int, len]
ATTRIBUTES = ["a", "b", "c", "steps"]


def leaf(rng):
    value = rng.choice(LEAVES)
    if type(value) is float:
        return value * rng.choice((1.0, 1.0, 3.0)) + 0.0  # often an object of its own
    if type(value) is int and rng.random() < 0.3:
        return value + 10**6
    return value


def tree(rng, depth):
    if depth == 0 or rng.random() < 0.15:
        return leaf(rng)
    kind = rng.randrange(9)
    child = lambda: tree(rng, depth - 1)  # noqa: E731
    if kind < 3:
        made = rng.choice((Node, Other))()
        for name in rng.sample(ATTRIBUTES, rng.randrange(1, 5)):
            setattr(made, name, child())
        if rng.random() < 0.5:
            made.__dict__  # noqa: B018  a dict from now on
        return made
    if kind < 5:
        return {rng.choice(("a", "b", "c", "k", 1, (1, "a"))): child() for _ in range(rng.randrange(1, 5))}
    if kind == 5:
        return [child() for _ in range(rng.randrange(1, 4))]
    if kind == 6:
        return collections.OrderedDict((rng.choice("abk"), child()) for _ in range(rng.randrange(3)))
    if kind == 7:
        return tuple(child() for _ in range(rng.randrange(3)))
    made = Slotted()
    made.a = child()
    made.b = child()
    return made if rng.random() < 0.5 else np.ones((rng.randrange(1, 3), 2))


def describe(rng, desc, number, value, todo):
    """Conditions that are true of the value, and its parts, as sources still to be described."""
    pick = lambda p: rng.random() < p  # noqa: E731
    if pick(0.8) and type(value) is not np.ndarray:
        desc.guard("type_is", number, type(value))
    if type(value) in (int, bool, float, str, bytes):
        desc.guard("equals", number, value)
    elif value is None or isinstance(value, (type, types.BuiltinFunctionType)):
        desc.guard("is", number, value)
    elif isinstance(value, dict):
        if type(value) is dict and pick(0.4):
            desc.guard("dict_keys", number, tuple(value))
        if pick(0.3):
            desc.guard("length", number, lo=len(value))
        if pick(0.3):
            desc.guard("truth", number, lo=int(bool(value))) if type(value) is dict else None
        for key in ("a", "b", "zz"):
            if pick(0.3):
                desc.guard("dict_has" if key in value else "dict_lacks", number, key)
        for key, item in value.items():
            todo.append((desc.source("dict_item", number, key), item))
        if value and pick(0.3):
            at = rng.randrange(len(value))
            todo.append((desc.source("dict_key", number, None, at), list(value)[at]))
        if pick(0.2):
            desc.guard("absent", desc.source("dict_key", number, None, len(value)))
        if pick(0.3) and "missing" not in value:
            desc.guard("absent", desc.source("dict_item", number, "missing"))
    elif isinstance(value, (list, tuple)):
        desc.guard("length", number, lo=len(value))
        for i, item in enumerate(value):
            todo.append((desc.source("list_item" if isinstance(value, list) else "tuple_item", number, None, i - (len(value) if pick(0.2) else 0)), item))
    elif isinstance(value, Node):
        kind = desc.source("type", number)
        if pick(0.3):
            todo.append((desc.source("mro", kind), type(value).__mro__))
        if pick(0.5):
            todo.append((desc.source("type_lookup", kind, "shared"), type(value).shared))
        if pick(0.5):
            method = desc.source("type_lookup", kind, "method")
            desc.guard("is", desc.source("code", method), type(value).method.__code__)
            if pick(0.5):
                todo.append((desc.source("code_consts", desc.source("code", method)), type(value).method.__code__.co_consts))
        for base in (Node, Other, Strange):
            if pick(0.3):
                desc.guard("is_subtype" if issubclass(type(value), base) else "is_no_subtype", kind, base)
        for name in ("extra", "nothing"):
            if pick(0.3) and not hasattr(type(value), name):
                desc.guard("absent", desc.source("type_lookup", kind, name))
        for name in ATTRIBUTES:
            if name in value.__dict__ if pick(0.1) else hasattr(value, name):
                todo.append((desc.source("instance_attr", number, name), getattr(value, name)))
            elif pick(0.6):
                desc.guard("attr_lacks", number, name) if pick(0.5) else desc.guard("absent", desc.source("instance_attr", number, name))
    elif isinstance(value, Slotted):
        desc.guard("type_is", number, Slotted)
        if pick(0.5):
            desc.guard("attr_lacks", number, "a")
    elif isinstance(value, np.ndarray):
        desc.guard("tensor", number, value)


def description(rng, arguments):
    desc = GuardDesc(slot_names=("x", "y"))
    todo = [(desc.source("arg", -1, None, i), value) for i, value in enumerate(arguments)]
    while todo and len(desc) < 60:
        number, value = todo.pop(rng.randrange(len(todo)))
        describe(rng, desc, number, value, todo)
        if rng.random() < 0.4:
            desc.output(number)
    return desc


def parts(roots):
    """Everything in the trees that can be changed."""
    todo, found, seen = list(roots), [], set()
    while todo:
        value = todo.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, dict):
            found.append(value)
            todo += value.values()
        elif isinstance(value, (list, tuple)):
            found += [value] if isinstance(value, list) else []
            todo += value
        elif isinstance(value, Node):
            found.append(value)
            todo += [getattr(value, name) for name in ATTRIBUTES if hasattr(value, name)]
        elif isinstance(value, Slotted):
            found.append(value)
            todo += [value.a, value.b]
        elif isinstance(value, np.ndarray):
            found.append(value)
    return found


def again(rng, get, put, key):
    """Another object of the same kind, mostly where the one before it was."""
    kind = type(get(key))
    if kind is float:
        put(key, None)
        put(key, rng.choice((0.5, 1.5, 3.0)) * 1.0)
    elif kind in (list, tuple, dict):
        parts = list(get(key).items() if kind is dict else get(key))
        put(key, None)
        put(key, kind(parts[: rng.randrange(1, len(parts) + 1)] if parts else ()))
    else:
        put(key, None)
        put(key, tree(rng, 1))


def change(rng, arguments):
    found = parts(arguments)
    if not found or rng.random() < 0.1:
        arguments[rng.randrange(len(arguments))] = tree(rng, 3)
        return
    value = rng.choice(found)
    if isinstance(value, np.ndarray):
        value.shape = rng.choice((value.shape, (value.size,), (1, value.size)))
        value.flags.writeable = rng.random() < 0.8
    elif isinstance(value, collections.OrderedDict) and value and rng.random() < 0.3:
        value.move_to_end(next(iter(value)))
    elif isinstance(value, dict):
        act = rng.randrange(9)
        if act == 0:
            value.clear()
        elif act == 7 and value:
            again(rng, value.get, value.__setitem__, rng.choice(list(value)))
        elif act == 8 and value:
            key = next(iter(value))
            value["".join(list(key)) if type(key) is str else key] = value.pop(key)  # an equal key that is another object
        elif act == 1 and value:
            value.popitem()
        elif act == 2 and value:
            key = next(iter(value))
            value[key] = value.pop(key)  # same contents, another order
        elif act == 3 and value:
            del value[rng.choice(list(value))]
        elif act == 4 and value:
            value[rng.choice(list(value))] = tree(rng, 2)
        else:
            value[rng.choice(("a", "b", "zz", "missing", 1))] = leaf(rng)
    elif isinstance(value, list):
        act = rng.randrange(4)
        if act == 0:
            value.append(leaf(rng))
        elif act == 1 and value:
            value.pop()
        elif act == 2:
            value.reverse()
        elif value:
            value[rng.randrange(len(value))] = tree(rng, 2)
    elif isinstance(value, Slotted):
        setattr(value, rng.choice("ab"), tree(rng, 1))
    else:
        act = rng.randrange(13)
        name = rng.choice(ATTRIBUTES)
        if act < 3:
            setattr(value, name, tree(rng, 2))
        elif act == 3 and name in value.__dict__:
            delattr(value, name)
        elif act == 4:
            value.__class__ = rng.choice((Node, Other))
        elif act == 5:
            value.__dict__ = dict(value.__dict__)
        elif act == 6:
            value.__dict__["steps"] = leaf(rng)
        elif act == 10:
            value.__dict__ = rng.choice([other for other in found if isinstance(other, Node)]).__dict__  # two objects with one
        elif act == 11:
            del value.__dict__
        elif act == 12 and name in value.__dict__:
            again(rng, value.__dict__.get, value.__setattr__, name)
        elif act == 7:
            Node.shared = leaf(rng)
        elif act == 8:
            Other.__bases__ = rng.choice(((Node,), (Node, Strange), (Strange, Node)))
        elif "extra" in vars(Node):
            del Node.extra
        else:
            Node.extra = 1


def agree(program, descs, arguments, **how):
    call = {"args": tuple(arguments), "closure": None, "globals": {}, "builtins": {}, "func": agree}
    want = [desc.check(**call) for desc in descs]
    # Two evaluations with all entries alive: the second one may use what the first has noted; then each entry alone.
    for _ in range(2):
        result, winner, inputs = program.eval(**call)
        assert (result == "hit") is any(want), (result, want, program.dump())
        if any(want):
            assert winner == want.index(True)
            values = descs[winner].values(**call)
            assert [id(a) for a in inputs] == [id(b) for b in values], (inputs, values)
    assert program.alive(**call) == sum(bit << i for i, bit in enumerate(want)), program.dump()


def settle(program, arguments):
    """Evaluate until memos that hold have lasted, and rows of them have a record of their own."""
    for _ in range(70):
        program.eval(args=tuple(arguments), closure=None, globals={}, builtins={}, func=agree)


@given(st.integers(0, 2**63))
@settings(max_examples=300)
def test_programs_with_memos_follow_every_change(seed):
    rng = random.Random(seed)
    try:
        arguments = [tree(rng, 4), tree(rng, 3)]
        descs = [description(rng, arguments)]
        for _ in range(rng.choice((0, 0, 0, 1, 3, 8))):
            if rng.random() < 0.6:
                change(rng, arguments)
            descs.append(description(rng, arguments))
        program = GuardProgram(descs)
        for _ in range(20):
            if rng.random() < 0.3:
                settle(program, arguments)
            agree(program, descs, arguments)
            for _ in range(rng.choice((0, 0, 1, 1, 2))):
                change(rng, arguments)
            if rng.random() < 0.1:
                gc.collect(0)
    finally:
        Node.shared = 1
        Other.__bases__ = (Node,)
        if "extra" in vars(Node):
            del Node.extra


def chain(depth):
    top = node = Node()
    for _ in range(depth):
        node.a = Node()
        node.b = {"k": 1.5, "n": 2}
        node = node.a
    return top


def true_description(value):
    rng = random.Random(1)
    rng.random = lambda: 0.2  # every condition that can be asked for
    return description(rng, [value])


def run(program, value, times=1):
    for _ in range(times):
        result, _, _ = program.eval(args=(value,), closure=None, globals={}, builtins={}, func=run)
    return result


def hits(program):
    """Of the memos of objects that have a record."""
    return [row[2] for row in program.memos() if row[3] and not row[5]]


def wide_hits(program):
    return [row[2] for row in program.memos() if row[3] and row[5]]


def test_an_unchanged_tree_is_not_walked_again():
    value = chain(6)
    program = GuardProgram([true_description(value)])
    assert run(program, value, 2) == "hit"
    recorded = [row for row in program.memos() if not row[5]]
    assert len(recorded) >= 6
    # Where dicts have no versions, what proves nothing is read again.
    assert all(row[3] for row in recorded) or sys.version_info >= (3, 14)
    assert run(program, value, 50) == "hit"
    assert hits(program) and all(count == 50 for count in hits(program))
    assert run(program, value, 200) == "hit"
    if sys.version_info < (3, 14):
        assert wide_hits(program) and all(count >= 100 for count in wide_hits(program))
        assert all(count < 150 for count in hits(program))


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="dicts have no versions there")
def test_a_row_of_memos_that_changes_serves_one_by_one_until_it_is_calm_again():
    value = chain(8)
    desc = true_description(value)
    program = GuardProgram([desc])
    assert run(program, value, 200) == "hit" and wide_hits(program)
    rows, dropped, node = len(wide_hits(program)), 0, value
    while hasattr(node, "a"):
        held, node.b["k"] = node.b["k"], 2.5
        holds = desc.check(args=(value,), closure=None, globals={}, builtins={}, func=run)
        assert (run(program, value) == "hit") is holds
        lost = rows - len(wide_hits(program))
        node.b["k"] = held
        before = sum(hits(program))
        assert run(program, value, 10) == "hit" and lost in (0, 1)
        assert not lost or sum(hits(program)) > before  # its neighbours' memos are used
        assert run(program, value, 5000) == "hit" and len(wide_hits(program)) == rows
        dropped += lost
        node = node.a
    assert dropped


def test_a_counter_that_is_bumped_every_call_leaves_the_rest_its_memos():
    value = chain(6)
    value.a.a.steps = 0
    value.a.a.__dict__  # noqa: B018
    desc = GuardDesc()
    node, at = desc.source("arg", -1, None, 0), value
    while at is not None:
        desc.guard("type_is", node, Node)
        for name in ("b", "steps", "a"):
            child = desc.source("instance_attr", node, name)
            if name == "a" and not hasattr(at, "a"):
                desc.guard("absent", child)
            elif hasattr(at, name):
                desc.guard("type_is", child, type(getattr(at, name)))
                if name == "b":
                    desc.guard("equals", desc.source("dict_item", child, "k"), 1.5)
        node, at = child, getattr(at, "a", None)
    program = GuardProgram([desc])
    for i in range(200):
        value.a.a.steps = i + 10**6
        assert run(program, value) == "hit"
    counts = hits(program)
    assert len(counts) >= 3 and max(counts) >= 190
    value.a.a.steps = 0.5
    assert run(program, value) == "miss"
    value.a.a.steps = 1
    assert run(program, value) == "hit"
    del value.a.a.a.b["k"]
    assert run(program, value) == "miss"


@pytest.mark.parametrize("materialised", [False, True])
def test_memos_make_no_instance_dict(materialised):
    import ctypes

    value = chain(3)
    if materialised:
        value.a.__dict__  # noqa: B018
    program = GuardProgram([true_description(value)])
    assert run(program, value, 50) == "hit"
    # An instance of a plain class has its values pointer four words in front of it as long as it has no dict.
    inline = [bool(ctypes.c_void_p.from_address(id(node) - 32).value) for node in (value, value.a, value.a.a)]
    if sys.version_info[:2] == (3, 11):
        assert inline == [True, not materialised, True]


def test_a_type_that_dies_and_another_at_its_place():
    """The words of a memo must not be believed for an object of another type at the old address."""
    for _ in range(20):
        first = type("First", (), {})
        value = first()
        value.a = {"x": [1.5, 2.5]}
        desc = GuardDesc()
        root = desc.source("arg", -1, None, 0)
        attribute = desc.source("instance_attr", root, "a")
        desc.guard("type_is", attribute, dict)
        item = desc.source("dict_item", attribute, "x")
        desc.guard("type_is", item, list)
        desc.guard("equals", desc.source("list_item", item, None, 0), 1.5)
        desc.output(item)
        program = GuardProgram([desc])
        assert run(program, value, 5) == "hit"
        del value, first
        gc.collect()
        second = type("Second", (), {"__slots__": ("p", "q", "r", "s")})
        others = [second() for _ in range(20)]
        for other in others:
            assert run(program, other, 3) == "miss"


def test_nbytes_counts_what_a_memo_keeps():
    value = chain(8)
    program = GuardProgram([true_description(value)])
    before = program.nbytes
    run(program, value, 3)
    assert program.nbytes >= before + 16 * sum(row[1] for row in program.memos())


def tensor_changes(torch):
    return [
        lambda t: t.requires_grad_(not t.requires_grad) if t.is_leaf else None,
        lambda t: t.requires_grad_(False) if t.is_leaf else None,
        lambda t: setattr(t, "data", torch.zeros(3, 2)),
        lambda t: setattr(t, "data", torch.zeros(2, 3).t()),
        lambda t: t.detach().resize_(4, 2) is None,
        lambda t: t.requires_grad_(False).resize_(5, 2) if t.is_leaf else None,
        lambda t: t.requires_grad_(False).set_(torch.ones(2, 2)) if t.is_leaf else None,
        lambda t: t.requires_grad_(False).t_() if t.is_leaf and t.dim() == 2 else None,
        lambda t: t.requires_grad_(False).unsqueeze_(0).squeeze_(0) if t.is_leaf else None,
        lambda t: setattr(t, "grad", None),
        lambda t: setattr(t, "data", torch.zeros(2, 3, 1, 1, 1, 1)),
        lambda t: setattr(t, "data", torch.zeros(2, 3)),
        lambda t: t.detach_() if not t.is_leaf else None,
    ]


@pytest.mark.parametrize("seed", range(12))
def test_memos_see_metadata_of_tensors_that_changed_in_place(seed):
    torch = pytest.importorskip("torch")
    rng = random.Random(seed)
    make = [lambda: torch.zeros(2, 3), lambda: torch.nn.Parameter(torch.zeros(2, 3)), lambda: torch.zeros(2, 3, requires_grad=True) * 2]
    box = {"p%d" % i: rng.choice(make)() for i in range(10)}

    def describe_now():
        desc = GuardDesc()
        root = desc.source("arg", -1, None, 0)
        desc.guard("type_is", root, dict)
        nodes = [desc.source("dict_item", root, name) for name in box]
        for node, name in zip(nodes, box):
            desc.guard("tensor", node, box[name])
            desc.output(node)
        desc.relation("distinct", tuple(nodes))
        return desc

    changes = tensor_changes(torch)
    descs = [describe_now()]
    program = GuardProgram(descs)
    matched = 0
    for step in range(150):
        for _ in range(3):
            agree(program, descs, [box])
        matched += any(desc.check(args=(box,)) for desc in descs)
        name = rng.choice(list(box))
        act = rng.randrange(4)
        if act == 0:
            box[name] = rng.choice(make)()
        elif act == 1:
            box[name] = box[rng.choice(list(box))]  # now one object twice
        else:
            rng.choice(changes)(box[name])
        if step % 5 == 4:
            box.update({name: rng.choice(make)() for name in box})
            descs = [*descs[-2:], describe_now()] if seed % 2 else [describe_now()]
            program = GuardProgram(descs)
    assert matched > 20


def test_tensors_that_stay_are_not_read_again():
    torch = pytest.importorskip("torch")
    box = {"p%d" % i: torch.nn.Parameter(torch.zeros(2, 3)) for i in range(8)}
    desc = GuardDesc()
    root = desc.source("arg", -1, None, 0)
    for name, value in box.items():
        desc.guard("tensor", desc.source("dict_item", root, name), value)
    program = GuardProgram([desc])
    assert run(program, box, 30) == "hit"
    assert sum(hits(program)) >= 28
    box["p3"].requires_grad_(False)
    assert run(program, box) == "miss"
