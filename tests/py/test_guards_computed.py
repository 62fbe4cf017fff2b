"""Conditions that compute, conditions that ask the user's code, and tensors whose memory may meet."""

from __future__ import annotations

import abc
import gc
import random
import weakref

import guard_reference as reference
import numpy as np
import pytest
from framegate._core import GuardDesc, GuardProgram
from guard_random import random_postfix
from hypothesis import given, settings
from hypothesis import strategies as st
from test_guards import argument

NUMBERS = st.one_of(
    st.integers(-10, 10), st.integers(-(2**63) - 2, 2**63 + 2), st.integers(), st.floats(), st.booleans(),
    st.sampled_from([2**53, 2**53 + 1, 2.0**53, 2**63 - 1, 2.0**63, -(2**63), -(2.0**63), 0.5, -0.0, float("nan"), float("inf"), -float("inf"), "no", None]),
)


def expression(text: str, n: int = 1) -> GuardDesc:
    desc = GuardDesc()
    desc.relation("holds", tuple(desc.source("arg", index=i) for i in range(n)), expression=text)
    return desc


def agrees(text: str, values: tuple) -> None:
    desc = expression(text, len(values))
    want = reference.expression_holds(text, list(values), [False] * len(values))
    assert desc.check(values) is want, (text, values)
    assert GuardProgram([desc]).alive(values) == want == (GuardProgram([desc, expression("1", 1)]).alive(values) & 1)
    assert (desc.explain(values) == []) is want
    again = GuardDesc.from_text(desc.to_text())
    assert again.to_text() == desc.to_text() and again.check(values) is want and str(again)


@pytest.mark.parametrize("operation", reference.OPERATIONS)
@given(data=st.data())
@settings(max_examples=150)
def test_operations_agree_with_python(operation, data):
    a, b = data.draw(NUMBERS), data.draw(NUMBERS)
    text = f"v0 {operation}" if operation in ("neg", "abs", "not") else f"v0 v1 {operation}"
    agrees(text, (a, b))
    want = data.draw(NUMBERS)
    try:
        want = reference.expression_value(text, [a, b], [False] * 2)
    except reference.Wrong:
        pass
    agrees(f"{text} v2 ==", (a, b, want))


@given(seed=st.integers(0, 2**63), a=NUMBERS, b=NUMBERS)
@settings(max_examples=400)
def test_expressions_agree_with_python(seed, a, b):
    agrees(random_postfix(random.Random(seed), ["v0", "v1", "2", "-1", "0", "0.5", "9223372036854775807"], 5), (a, b))


@pytest.mark.parametrize("text", ["", "v0 v0", "+", "v0 +", "v1", "size0", "size0.64", "v0 nothing", "1.5.2", "1e999", "9223372036854775808", "float:0x", "v-1", "v", "v0 " * 65 + "+ " * 64, "0 " + "not " * 5000])
def test_texts_that_are_no_expression_are_refused(text):
    with pytest.raises(ValueError):
        expression(text)
    with pytest.raises(ValueError):
        GuardDesc.from_text(f"framegate-guards 1\nn0 = arg 0\nrelation holds n0 '{text}'\n")


def test_relations_between_sizes():
    desc = GuardDesc(slot_names=("x", "y"))
    x, y = desc.source("arg", index=0), desc.source("arg", index=1)
    desc.guard("type_is", x, np.ndarray)
    desc.guard("type_is", y, np.ndarray)
    desc.relation("holds", (x, y), expression="size0.1 size1.0 == size0.0 8 % 0 == and ndim1 2 == and stride1.1 8 == and")
    program = GuardProgram([desc])
    for shapes, want in ((((8, 3), (3, 5)), 1), (((16, 4), (4, 1)), 1), (((9, 3), (3, 5)), 0), (((8, 3), (4, 5)), 0), (((8, 3), (3,)), 0), (((8,), (3, 5)), 0)):
        arrays = tuple(map(np.ones, shapes))
        assert program.alive(arrays) == want and desc.check(arrays) == want, shapes
    assert program.alive((np.ones((8, 3)), 5)) == 0 and program.alive((np.ones((8, 3)), np.ones((3, 5), order="F"))) == 0
    assert "x.shape[1] == y.shape[0]" in str(desc)
    assert "values 3, 4" in desc.explain((np.ones((8, 3)), np.ones((4, 5))))[0]


def test_tensor_operands_need_a_source_that_is_known_to_be_one():
    desc = expression("size0.0 1 ==")
    assert not desc.check((np.ones(1),)) and GuardProgram([desc]).alive((np.ones(1),)) == 0


def test_equal_expressions_of_many_entries_are_one_instruction():
    descs = [expression("v0 8 % 0 ==") for _ in range(5)] + [expression("v0 7 % 0 ==")]
    program = GuardProgram(descs)
    assert program.dump().count("fact holds") == 2
    assert program.alive((16,)) == 0b011111 and program.alive((7,)) == 0b100000 and program.alive((56,)) == 0b111111


# ---- memory


BASE = np.arange(24.0)
VIEWS = [BASE[:12], BASE[12:], BASE[::2], BASE[1::2], BASE[::-1], BASE[3:3], BASE[5:6], BASE.reshape(4, 6)[:, :3], BASE.reshape(4, 6).T, np.arange(24.0), BASE[:0]]


@given(st.lists(st.integers(0, len(VIEWS) - 1), min_size=2, max_size=4))
@settings(max_examples=300)
def test_memory_of_arrays_is_told_apart_by_bounds(picks):
    arrays = tuple(VIEWS[i] for i in picks)
    desc = GuardDesc()
    nodes = tuple(desc.source("arg", index=i) for i in range(len(arrays)))
    for node in nodes:
        desc.guard("type_is", node, np.ndarray)
    desc.relation("memory_apart", nodes)
    want = all(not (a.size and b.size and np.may_share_memory(a, b)) for i, a in enumerate(arrays) for b in arrays[:i])
    assert desc.check(arrays) is want and GuardProgram([desc]).alive(arrays) == want and (desc.explain(arrays) == []) is want
    if want:
        assert not any(np.shares_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i])
    assert GuardDesc.from_text(desc.to_text()).check(arrays) is want


def test_memory_of_many_arrays():
    base = np.zeros(4000)
    pieces = [base[4 * i : 4 * i + 4] for i in range(1000)]
    random.Random(3).shuffle(pieces)
    desc = GuardDesc()
    nodes = tuple(desc.source("arg", index=i) for i in range(1000))
    for node in nodes:
        desc.guard("type_is", node, np.ndarray)
    desc.relation("memory_apart", nodes)
    program = GuardProgram([desc])
    assert program.alive(tuple(pieces)) == 1
    pieces[500] = base[998:1002]
    assert program.alive(tuple(pieces)) == 0 and "in common" in desc.explain(tuple(pieces))[0]


def test_memory_that_nobody_owns_is_never_apart():
    desc = GuardDesc()
    nodes = tuple(desc.source("arg", index=i) for i in range(2))
    for node in nodes:
        desc.guard("type_is", node, np.ndarray)
    desc.relation("memory_apart", nodes)
    foreign = np.frombuffer(memoryview(bytearray(16)).cast("d"))
    assert not desc.check((np.ctypeslib.as_array((np.ctypeslib.ctypes.c_double * 2)()), np.ones(2)))
    assert desc.check((foreign, np.ones(2)))


# ---- the user's callables


def asks(user, output=False, **more) -> GuardDesc:
    desc = GuardDesc(slot_names=("x",))
    node = desc.source("arg")
    desc.guard("accepts", node, user)
    for kind, operand in more.items():
        desc.guard(kind, node, operand)
    if output:
        desc.output(node)
    return desc


def test_a_callable_decides_and_is_asked_last():
    seen = []
    desc = asks(lambda x: seen.append(x) or x > 3, output=True, type_is=int)
    program = GuardProgram([desc])
    assert program.eval((5,))[0] == "hit" and program.eval((2,))[0] == "miss" and desc.check((5,)) and not desc.check((2,))
    assert seen == [5, 2, 5, 2]
    assert program.eval(("text",))[0] == "miss" and not desc.check(("text",)) and desc.explain(("text",))
    assert seen == [5, 2, 5, 2]  # it may take what the other conditions say for granted


@pytest.mark.parametrize("error", [ValueError, RecursionError, StopIteration, AssertionError])
def test_raising_is_a_mismatch(error):
    def user(x):
        raise error

    desc = asks(user)
    assert GuardProgram([desc]).eval((1,))[0] == "miss" and not desc.check((1,)) and len(desc.explain((1,))) == 1
    assert f"accepts x; saw 1, for which it raised {error.__name__}; a guard of the program's own refuses it" in desc.explain((1,))[0]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError, GeneratorExit])
def test_what_ends_the_program_is_passed_on(error):
    def user(x):
        raise error

    desc = asks(user)
    for ask in (lambda: GuardProgram([desc]).eval((1,)), lambda: desc.check((1,)), lambda: desc.explain((1,))):
        with pytest.raises(error):
            ask()


def test_truth_of_the_answer_is_asked_too():
    class Answer:
        def __bool__(self):
            raise ValueError

    assert not asks(lambda x: Answer()).check((1,)) and asks(lambda x: [0]).check((1,)) and not asks(lambda x: []).check((1,))


def test_facts_that_the_callable_breaks_are_noticed():
    class Holder:
        pass

    def empties(x):
        x.clear()
        return True

    desc = GuardDesc()
    node = desc.source("arg")
    desc.guard("length", node, lo=1)
    desc.guard("accepts", node, empties)
    assert GuardProgram([desc]).eval(([1],))[0] == "miss" and not desc.check(([1],))

    # What getattr gave was looked at before the callable ran.
    holder = Holder()
    holder.items = [1]
    desc = GuardDesc()
    root = desc.source("arg")
    items = desc.source("getattr", root, "items")
    desc.guard("length", items, lo=1)
    desc.guard("accepts", root, lambda h: h.items.clear() or True)
    assert GuardProgram([desc]).eval((holder,))[0] == "miss"

    # The value that it was shown is the one that must be found again.
    holder.items = [1]
    desc = GuardDesc()
    items = desc.source("instance_attr", desc.source("arg"), "items")
    desc.guard("accepts", items, lambda items: setattr(holder, "items", [1]) or True)
    desc.output(items)
    assert GuardProgram([desc]).eval((holder,))[0] == "miss" and not desc.check((holder,))


def test_later_getattr_that_changes_what_an_earlier_one_gave_is_noticed():
    class Sly:
        def __init__(self):
            self.kept = [1]

        @property
        def first(self):
            return self.kept

        @property
        def second(self):
            self.kept.append(2)
            return 1

    desc = GuardDesc()
    root = desc.source("arg")
    desc.guard("length", desc.source("getattr", root, "first"), lo=1)
    desc.guard("equals", desc.source("getattr", root, "second"), 1)
    assert GuardProgram([desc]).eval((Sly(),))[0] == "miss" and not desc.check((Sly(),))


def test_a_callable_that_asks_its_own_guards_finds_them_busy():
    answers = []
    programs = []

    def user(x):
        answers.append(programs[0].eval((x,))[0])
        return True

    programs.append(GuardProgram([asks(user)]))
    assert programs[0].eval((1,))[0] == "hit" and answers == ["busy"]


def test_a_description_does_not_change_while_it_is_checked():
    def user(x):
        desc.source("globals")
        return True

    desc = asks(user)
    assert not desc.check((1,))  # its error is a mismatch
    user_desc = asks(lambda x: True)
    assert user_desc.check((1,)) and user_desc.source("globals") >= 0


def test_callables_are_kept_and_let_go():
    class User:
        def __call__(self, x):
            return True

    user = User()
    desc = asks(user)
    user.owner = desc, GuardProgram([desc])
    alive = weakref.ref(user)
    del user
    gc.collect()
    assert alive() is not None and desc.check((1,))
    del desc
    gc.collect()
    assert alive() is None


def test_text_of_a_callable_names_it():
    desc = asks(callable)
    text = desc.to_text()
    assert "accepts @'builtins:callable'" in text
    again = GuardDesc.from_text(text)
    assert again.to_text() == text and again.check((len,)) and not again.check((1,)) and "accepts x" in str(again)
    local = asks(lambda x: x).to_text()
    assert not GuardDesc.from_text(local).check((1,)) and GuardDesc.from_text(local, lambda name: bool).check((1,))


def test_what_is_not_callable_is_refused():
    with pytest.raises(ValueError):
        asks(5)


def test_entries_beside_one_that_asks_see_fresh_facts():
    values = [1]
    first = asks(lambda x: x.append(2))
    second = GuardDesc()
    second.guard("length", second.source("arg"), lo=1)
    assert GuardProgram([first, second]).eval((values,))[0] == "miss" and values == [1, 2]


def test_registrations_with_abstract_classes_are_counted():
    desc = GuardDesc()
    desc.guard("abc_token", lo=abc.get_cache_token())
    program = GuardProgram([desc])
    assert program.alive(()) == 1 and desc.check(()) and "get_cache_token" in str(desc)

    class Base(abc.ABC):
        pass

    Base.register(int)
    assert program.alive(()) == 0 and not desc.check(()) and "registrations" in desc.explain(())[0]
    again = GuardDesc.from_text(desc.to_text().replace(f" {abc.get_cache_token() - 1}", f" {abc.get_cache_token()}"))
    assert again.check(())
    with pytest.raises(ValueError):
        argument("abc_token", lo=1)
