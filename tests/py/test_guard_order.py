"""What failed often is asked first: in the next program, never before what it needs, and not for ever."""

from __future__ import annotations

import framegate
import pytest
from framegate._core import GuardDesc, GuardProgram


def numbers(n: int) -> GuardDesc:
    desc = GuardDesc()
    for i in range(n):
        number = desc.source("arg", index=i)
        desc.guard("in_range", number, lo=0, hi=100 + i)
        desc.output(number)
    return desc


def order_of(program: GuardProgram, what: str) -> list[str]:
    """The instructions of this name, as they stand, by the register that they read."""
    return [line.split("src=")[1].split(" ")[0] for line in program.dump().splitlines() if f": {what} " in line]


def fail(program: GuardProgram, args: tuple, times: int) -> None:
    for _ in range(times):
        assert program.eval(args)[0] == "miss"


def test_the_condition_that_fails_is_the_first_of_the_next_program():
    desc = numbers(4)
    program = GuardProgram([desc])
    assert order_of(program, "fact in_range") == ["0", "1", "2", "3"]
    fail(program, (1, 1, 500, 1), 10)
    again = GuardProgram([desc], program)
    assert order_of(again, "fact in_range") == ["2", "0", "1", "3"]
    fail(again, (500, 1, 1, 1), 100)
    assert order_of(GuardProgram([desc], again), "fact in_range") == ["0", "2", "1", "3"]
    assert again.eval((1, 1, 1, 1)) == ("hit", 0, (1, 1, 1, 1))
    assert again.eval((1, 1, 500, 1))[0] == "miss" and again.eval((1, 1, 1, 500))[0] == "miss"


def test_what_does_not_fail_any_more_is_forgotten():
    desc = numbers(3)
    program = GuardProgram([desc])
    fail(program, (1, 1, 500), 20)
    for _ in range(3):
        program = GuardProgram([desc], program)
        assert order_of(program, "fact in_range")[0] == "2"
    for _ in range(6):
        program = GuardProgram([desc], program)
    assert order_of(program, "fact in_range") == ["0", "1", "2"]


def test_counts_stay_within_what_fits():
    desc = numbers(2)
    program = GuardProgram([desc])
    fail(program, (1, 500), 70000)
    for _ in range(15):
        assert order_of(program := GuardProgram([desc], program), "fact in_range") == ["1", "0"]
    assert order_of(GuardProgram([desc], GuardProgram([desc], program)), "fact in_range") == ["0", "1"]


def test_a_new_entry_is_asked_the_same_question_first():
    def entry(size):
        desc = numbers(3)
        desc.guard("equals", desc.source("arg", index=3), size)
        return desc

    program = GuardProgram([entry(5)])
    fail(program, (1, 1, 1, 6), 10)
    descs = [entry(5), entry(6), entry(7)]
    program = GuardProgram(descs, program)
    assert program.dump().splitlines()[0].startswith("0: load arg") and "table equals" in program.dump().splitlines()[1]
    assert [program.alive((1, 1, 1, size)) for size in (5, 6, 7, 8)] == [1, 2, 4, 0]


def test_an_attribute_that_changes_comes_before_its_siblings_and_behind_its_type():
    class Slots:
        __slots__ = ("a", "b", "c")

    made = Slots()
    made.a = made.b = made.c = 1
    desc = GuardDesc()
    number = desc.source("arg")
    desc.guard("type_is", number, Slots)
    for offset in (16, 24, 32):
        desc.guard("equals", desc.source("slot_attr", number, index=offset), 1)
    other = GuardDesc()
    other.guard("type_is", other.source("arg"), int)
    program = GuardProgram([desc, other])
    made.c = 2
    fail(program, (made,), 50)
    program = GuardProgram([desc, other], program)
    lines = program.dump().splitlines()
    slots = [i for i, line in enumerate(lines) if "load slot_attr" in line]
    assert "fact type_is" in "".join(lines[: slots[0]])
    assert order_of(program, "fact equals")[0] == lines[slots[0]].split("dst=")[1].split(" ")[0]
    assert program.alive((object(),)) == 0 and program.alive((5,)) == 2 and program.alive((made,)) == 0
    made.c = 1
    assert program.alive((made,)) == 1


def test_conditions_on_no_source_and_relations_keep_their_places():
    desc = GuardDesc()
    nodes = tuple(desc.source("arg", index=i) for i in range(3))
    desc.guard("abc_token", lo=-1)
    desc.relation("distinct", nodes[:2])
    desc.relation("distinct", nodes[1:])
    for number in nodes:
        desc.guard("is_not_none", number)
    program = GuardProgram([desc])
    lines = program.dump().splitlines()
    assert "abc_token" in lines[0] and all("distinct" in line for line in lines[-3:-1])
    program = GuardProgram([desc], program)
    assert "abc_token" in program.dump().splitlines()[0]


def test_more_than_64_entries_are_ordered_too():
    descs = []
    for i in range(70):
        desc = numbers(3)
        desc.guard("in_range", desc.source("arg", index=3), lo=i * 10, hi=i * 10 + 9)
        descs.append(desc)
    program = GuardProgram(descs)
    assert order_of(program, "fact in_range")[0] == "0"
    fail(program, (1, 1, 1, -5), 20)
    program = GuardProgram(descs, program)
    assert order_of(program, "fact in_range")[:70] == ["3"] * 70
    assert program.alive((1, 1, 1, 695)) == 1 << 69


def test_a_function_that_may_compile_no_more_gets_a_better_order_all_the_same():
    @framegate.compile(recompile_limit=2)
    def f(a, b, c, d):
        return a + (1 if b else 2) + (1 if c else 2) + (1 if d == 5 else 2)

    before = framegate.stats()
    assert f(1, True, True, 5) == 4 and f(1, True, True, 6) == 5
    for n in range(7, 300):
        assert f(1, True, True, 6.5 + n) == 5
    after = framegate.stats()
    assert after["recompile_limit"] - before["recompile_limit"] > 256 and after["compiles"] - before["compiles"] == 2
    assert f(1, True, True, 5) == 4 and f(1, True, True, 6) == 5


@pytest.mark.parametrize("old", [None, 5])
def test_what_is_no_program_is_refused(old):
    with pytest.raises(TypeError):
        GuardProgram([numbers(1)], old)
