"""Guards on iterators, deques, views and the parts of functions: what is read, and that reading changes nothing."""

from __future__ import annotations

import collections
import itertools

import guard_reference as reference
import pytest
from framegate._core import GuardDesc, GuardProgram
from guard_random import Counted
from test_guards import argument

ADVANCING = {
    "tuple": lambda: iter((1, 2, 3)), "list": lambda: iter([1, 2, 3]), "reversed list": lambda: reversed([1, 2, 3]), "str": lambda: iter("abc"),
    "bytes": lambda: iter(b"abc"), "bytearray": lambda: iter(bytearray(b"abc")), "range": lambda: iter(range(3)), "long range": lambda: iter(range(0, 2**64, 2**62)),
    "dict": lambda: iter({1: 2, 3: 4}), "reversed dict": lambda: reversed({1: 2, 3: 4}.values()), "set": lambda: iter({1, 2, 3}),
    "sequence": lambda: iter(Counted()), "reversed": lambda: reversed((1, 2, 3)), "enumerate": lambda: enumerate("abc"), "count": lambda: itertools.count(),
    "repeat": lambda: itertools.repeat(None, 3), "islice": lambda: itertools.islice("abc", 3), "deque": lambda: iter(collections.deque("abc")),
}


@pytest.mark.parametrize("make", ADVANCING.values(), ids=ADVANCING)
def test_an_iterator_that_has_moved_on_is_another(make):
    desc = argument("iterator_at", reference.iterator_state(make()))
    program = GuardProgram([desc])
    iterator = make()
    assert program.alive((iterator,)) == 1 and program.alive((iterator,)) == 1  # asking does not move it
    next(iterator)
    assert program.alive((iterator,)) == 0 and not desc.check((iterator,)) and desc.explain((iterator,))


def test_items_that_an_iterator_will_give_are_read_ahead():
    items = [object(), object(), object()]
    desc = GuardDesc()
    for i in range(3):
        desc.output(desc.source("iterator_item", desc.source("arg"), index=i))
    program = GuardProgram([desc])
    for iterator, order in ((iter(items), items), (iter(tuple(items)), items), (reversed(items), items[::-1])):
        assert program.eval((iterator,))[2] == tuple(order) == tuple(iterator)
        assert program.eval((iterator,))[0] == "miss"


def test_state_of_iterators_is_a_tuple_of_small_ints():
    for wrong in ((2**63,), (1.0,), (True,), [1], 1, (1,) * 5):
        with pytest.raises((ValueError, NotImplementedError)):
            argument("iterator_at", wrong)


def test_long_deques_are_read_from_both_ends():
    values = collections.deque(range(1000))
    values.rotate(300)
    values.extendleft(range(70))
    for i in (0, 1, 63, 64, 500, 600, 1068, 1069):
        desc = GuardDesc()
        desc.guard("equals", desc.source("deque_item", desc.source("arg"), index=i), values[i])
        assert desc.check((values,)) and GuardProgram([desc]).alive((values,)) == 1
    assert not GuardDesc.from_text("framegate-guards 1\nn0 = arg 0\nn1 = deque_item n0 1070\nguard n1 present\n").check((values,))


def test_parts_of_functions_are_noticed_when_they_change():
    def function(x: int):
        """text"""

    function.mark = 1
    function.__annotations__  # noqa: B018  (computed when they are asked for, since 3.14)
    descs = []
    for i in range(6):
        desc = GuardDesc()
        desc.output(desc.source("function_part", desc.source("arg"), index=i))
        descs.append(desc)
    read = lambda: [GuardProgram([desc]).eval((function,))[2][0] for desc in descs]  # noqa: E731
    programs = [GuardProgram([desc]) for desc in descs]
    old = [program.eval((function,))[2][0] for program in programs]
    assert old[0] == "function" and old[3] == "text" and old[4] is function.__dict__
    function.__name__, function.__qualname__, function.__module__, function.__doc__ = "other", "some.other", "elsewhere", None
    function.__dict__ = {"mark": 2}
    function.__annotations__ = {}
    new = [program.eval((function,))[2][0] for program in programs]
    assert all(one is not two for one, two in zip(old, new)) and new == read()
    assert new[:4] == ["other", "some.other", "elsewhere", None] and new[4] == {"mark": 2} and new[5] == {}
