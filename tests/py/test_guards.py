"""Guards against their plain Python reference: random object graphs, random descriptions, merged programs, and changes between calls."""

from __future__ import annotations

import random
import types

import guard_reference as reference
import numpy as np
import pytest
from framegate._core import GuardDesc, GuardProgram, guard_accessors, guard_kinds
from guard_random import INDEXED, KEYS, NAN, NAN_OTHER, SCALARS, Plain, Slots, compare, make_call, mutate, native, random_desc
from hypothesis import given, settings
from hypothesis import strategies as st


@given(st.integers(0, 2**63))
@settings(max_examples=400)
def test_program_agrees_with_the_reference_over_changes(seed):
    rng = random.Random(seed)
    call = make_call(rng)
    descs = [random_desc(rng, call)]
    for _ in range(rng.randrange(6)):
        if rng.random() < 0.5:
            mutate(rng, call)
        descs.append(random_desc(rng, call))
    for _ in range(4):
        compare(descs, call, rng)
        mutate(rng, call)


@given(st.integers(0, 2**63))
@settings(max_examples=25)
def test_program_of_more_than_64_entries_agrees_with_the_reference(seed):
    rng = random.Random(seed)
    call = make_call(rng)
    base = call["args"][0]
    descs = []
    for i in range(rng.choice((64, 65, 130))):
        call["args"][0] = rng.choice(SCALARS) if rng.random() < 0.7 else base
        descs.append(random_desc(rng, call, impure=rng.random() < 0.05))
    for _ in range(2):
        compare(descs, call, rng)
        call["args"][0] = rng.choice(SCALARS)


@given(st.integers(0, 2**63))
@settings(max_examples=150)
def test_text_round_trips(seed):
    rng = random.Random(seed)
    call = make_call(rng)
    desc = random_desc(rng, call)
    text = desc.to_text()
    again = GuardDesc.from_text(text)
    assert again.to_text() == text
    if "?'" not in text:
        assert again.check(**native(call)) is desc.check(**native(call))
        assert str(again) == str(desc)


@given(st.integers(0, 2**63), st.integers(0, 2**63))
@settings(max_examples=150)
def test_rewind_takes_back_exactly_what_was_added(seed, other):
    rng = random.Random(seed)
    call = make_call(rng)
    desc = random_desc(rng, call)
    before, mark = desc.to_text(), desc.mark()
    more = random.Random(other)
    for _ in range(5):
        number = desc.source("arg", index=more.randrange(3))
        number = desc.source("dict_item", number, more.choice(KEYS))
        desc.guard("type_is", number, more.choice((Plain, int, str)))
        desc.output(number)
    desc.rewind(mark)
    assert desc.to_text() == before
    number = desc.source("arg", index=0)
    assert desc.source("arg", index=0) == number


@given(st.text(alphabet="nguardoutp=@?'\"0123456789 \n()-,:.xbearlsif_", max_size=200))
def test_hostile_text_gives_value_error(text):
    for hostile in (text, "framegate-guards 1\n" + text):
        try:
            GuardDesc.from_text(hostile).to_text()
        except ValueError:
            pass


def argument(kind: str, operand=None, **numbers):
    desc = GuardDesc(slot_names=("x",))
    number = desc.source("arg")
    desc.guard(kind, number, **({} if operand is None else {"object": operand}), **numbers)
    desc.output(number)
    return desc


def test_tables_tell_64_constants_apart_by_bits():
    values = [0, 0.0, -0.0, 1, 1.0, True, "1", b"1", NAN, NAN_OTHER, 1j, "", b"", 2**70, 2**70 + 1, *range(100, 149)]
    program = GuardProgram([argument("equals", value) for value in values])
    assert "table equals" in program.dump()
    for i, value in enumerate(values):
        copy = {int: lambda v: int(str(v)), float: lambda v: v * 1.0, str: lambda v: "".join(list(v)), bytes: lambda v: bytes(bytearray(v))}
        made = copy.get(type(value), lambda v: v)(value)
        assert program.alive((made,)) == 1 << i
    for value in (2, None, 0j, "2", [0], 2**70 + 2):
        assert program.alive((value,)) == 0


def test_tables_of_types_lengths_and_identities():
    classes = [type(f"T{i}", (), {}) for i in range(70)]
    program = GuardProgram([argument("type_is", cls) for cls in classes])
    assert [program.alive((cls(),)) for cls in classes] == [1 << i for i in range(70)]
    program = GuardProgram([argument("is", cls) for cls in classes])
    assert [program.alive((cls,)) for cls in classes] == [1 << i for i in range(70)]
    program = GuardProgram([argument("length", lo=i) for i in range(70)])
    assert [program.alive(([0] * i,)) for i in range(70)] == [1 << i for i in range(70)]
    assert program.alive((5,)) == 0


def test_tables_of_arrays_differing_in_every_field():
    base = np.zeros((4, 6))
    frozen = base.copy()
    frozen.flags.writeable = False
    arrays = [base, np.zeros((4, 7)), np.zeros((5, 6)), base.T, np.zeros((6, 4)), np.zeros((4, 6), "f4"), np.zeros((4, 6), ">f8"), frozen,
              np.zeros(24), np.zeros(()), np.zeros((4, 6, 1)), np.asfortranarray(base), base[::-1], np.zeros((4, 12))[:, ::2]]
    program = GuardProgram([argument("tensor", one) for one in arrays])
    assert "table ndarray" in program.dump()
    for i, one in enumerate(arrays):
        assert program.alive((one,)) == 1 << i
    assert program.alive((np.zeros((9, 9)),)) == 0
    assert program.alive((np.ma.zeros((4, 6)),)) == 0


def test_entry_that_asks_two_rows_of_one_table_never_matches():
    both = GuardDesc()
    number = both.source("arg")
    both.guard("equals", number, 1)
    both.guard("equals", number, 2)
    program = GuardProgram([both, *(argument("equals", i) for i in range(5))])
    assert [program.alive((i,)) for i in range(5)] == [2 << i for i in range(5)]


def test_death_of_a_weakly_held_object_ends_the_entry():
    class Local:
        pass

    for kind, make in (("type_is", lambda: type("Local", (), {})), ("is", Local)):
        held = make()
        desc = argument(kind, held)
        program = GuardProgram([desc])
        value = held() if kind == "type_is" else held
        assert program.alive((value,)) == 1
        assert not desc.dead
        del value, held
        import gc

        gc.collect()
        assert desc.dead
        assert program.alive((Local(),)) == 0 and not desc.check((Local(),))
        assert "no longer exists" in desc.explain((1,))[0]


def test_user_containers_and_instances_without_weak_references_are_refused():
    for value in ([], {}, bytearray(), ([],), Slots(), types.CellType(1)):
        with pytest.raises(NotImplementedError):
            argument("is", value)


def test_instance_dicts_are_not_made_by_reading():
    import gc

    value = Plain()
    value.a = 1
    desc = GuardDesc()
    number = desc.source("arg")
    desc.guard("attr_lacks", number, "b")
    desc.output(desc.source("instance_attr", number, "a"))
    assert GuardProgram([desc]).eval((value,)) == ("hit", 0, (1,))
    assert desc.explain((value,)) == []
    assert not any(type(child) is dict for child in gc.get_referents(value))


def test_exceptions_of_impure_sources():
    class Stops:
        def __init__(self, error):
            self.error = error

        @property
        def a(self):
            raise self.error

    desc = GuardDesc()
    number = desc.source("getattr", desc.source("arg"), "a")
    desc.guard("present", number)
    program = GuardProgram([desc])
    for error in (ValueError(), AttributeError(), RecursionError()):
        assert program.eval((Stops(error),))[0] == "miss"
    for error in (KeyboardInterrupt(), SystemExit(), MemoryError()):
        with pytest.raises(type(error)):
            program.eval((Stops(error),))
        with pytest.raises(type(error)):
            desc.check((Stops(error),))


def test_pure_facts_run_again_after_python_ran():
    class Changes:
        def __init__(self, other):
            self.other = other

        @property
        def a(self):
            self.other.append(1)
            return 5

    desc = GuardDesc()
    desc.guard("length", desc.source("arg", index=1), lo=0)
    desc.guard("equals", desc.source("getattr", desc.source("arg", index=0), "a"), 5)
    other: list = []
    assert GuardProgram([desc]).eval((Changes(other), other))[0] == "miss"
    assert other == [1]
    other.clear()
    assert not desc.check((Changes(other), other))


def test_value_that_python_replaced_is_not_the_one_that_was_read():
    namespace = {}

    class Replaces:
        @property
        def a(self):
            namespace["x"] = Replaces()
            return 5

    namespace["x"] = Replaces()
    desc = GuardDesc()
    number = desc.source("dict_item", desc.source("globals"), "x")
    desc.output(number)
    desc.guard("equals", desc.source("getattr", number, "a"), 5)
    assert GuardProgram([desc]).eval((), globals=namespace)[0] == "miss"


def test_program_is_busy_while_its_guard_runs_python():
    answers = []

    class Reenters:
        @property
        def a(self):
            answers.append(program.eval((self,))[0])
            return 5

    desc = GuardDesc()
    desc.guard("equals", desc.source("getattr", desc.source("arg"), "a"), 5)
    program = GuardProgram([desc])
    assert program.eval((Reenters(),))[0] == "hit"
    assert answers == ["busy"]


def test_impure_candidates_are_tried_in_order_and_others_see_fresh_facts():
    class Counts:
        reads = 0

        @property
        def a(self):
            type(self).reads += 1
            return type(self).reads

    def entry(expected):
        desc = GuardDesc()
        desc.guard("equals", desc.source("getattr", desc.source("arg"), "a"), expected)
        return desc

    program = GuardProgram([entry(9), entry(2), argument("type_is", Counts)])
    assert program.eval((Counts(),), order=[0, 1, 2])[:2] == ("hit", 1)
    assert program.eval((Counts(),), order=[2, 0, 1])[:2] == ("hit", 2)


def test_usable_bits_limit_the_winner():
    program = GuardProgram([argument("type_is", int), argument("equals", 5)])
    assert program.eval((5,))[1] == 0
    assert program.eval((5,), order=[1, 0])[1] == 1
    assert program.eval((5,), usable=2)[1] == 1
    assert program.eval((6,), usable=2)[0] == "miss"
    assert GuardProgram([argument("equals", 5)]).eval((5,), usable=0)[0] == "miss"


def test_type_lookup_follows_changes_of_the_class():
    class Base:
        def f(self):
            pass

    class Derived(Base):
        pass

    desc = GuardDesc()
    number = desc.source("arg")
    desc.guard("type_is", number, Derived)
    desc.guard("is", desc.source("type_lookup", desc.source("type", number), "f"), Base.f)
    program = GuardProgram([desc])
    original = Base.f
    assert "versioned" in program.dump()
    assert program.alive((Derived(),)) == 1
    Derived.f = lambda self: None
    assert program.alive((Derived(),)) == 0
    del Derived.f
    assert program.alive((Derived(),)) == 1
    Base.g = 1
    assert program.alive((Derived(),)) == 1
    Base.f = lambda self: None
    assert program.alive((Derived(),)) == 0
    assert original is not Base.f


def test_names_and_lines_in_messages():
    def user_code(x):
        pass

    desc = GuardDesc(slot_names=("x",))
    number = desc.source("dict_item", desc.source("instance_attr", desc.source("arg"), "cfg"), "lr")
    desc.guard("equals", number, 0.5, code=user_code.__code__, line=12)
    value = Plain()
    value.cfg = {"lr": 0.25}
    assert desc.source_str(number) == "x.cfg['lr']"
    [line] = desc.explain((value,))
    assert "x.cfg['lr'] == 0.5" in line and "saw 0.25" in line and f"{__file__}:12" in line
    assert f"{__file__}:12" in str(desc)
    assert len(desc) == 1


def test_unbound_identities_match_only_what_resolve_supplies():
    class Local:
        pass

    text = argument("type_is", Local).to_text()
    assert "?'" in text
    unbound = GuardDesc.from_text(text)
    assert not unbound.check((Local(),)) and unbound.to_text() == text
    assert unbound.explain((Local(),)) != []
    asked = []

    def resolve(name):
        asked.append(name)
        return Local

    assert GuardDesc.from_text(text, resolve).check((Local(),))
    assert len(asked) == 1

    def refuses(name):
        raise LookupError(name)

    assert not GuardDesc.from_text(text, refuses).check((Local(),))


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("n", [2, 6, 7, 40, 300, 1500])
def test_distinct_of_many(n, shared):
    desc = GuardDesc()
    desc.relation("distinct", tuple(desc.source("arg", index=i) for i in range(n)))
    args = [object() for _ in range(n)]
    if shared:
        args[n - 1] = args[n // 3]
    assert GuardProgram([desc]).alive(tuple(args)) == (0 if shared else 1)
    assert GuardProgram([desc, argument("type_is", object)]).alive(tuple(args)) == (2 if shared else 3)
    assert desc.check(tuple(args)) is not shared
    assert bool(desc.explain(tuple(args))) is shared


def test_storage_distinct():
    base = np.zeros(8)
    desc = GuardDesc()
    numbers = [desc.source("arg", index=i) for i in range(2)]
    for number in numbers:
        desc.guard("tensor", number, base[:4])
    desc.relation("storage_distinct", tuple(numbers))
    program = GuardProgram([desc])
    assert program.alive((base[:4], np.zeros(8)[:4])) == 1
    assert program.alive((base[:4], base[:4])) == 0
    assert desc.check((base[:4], np.zeros(8)[:4])) and not desc.check((base[:4], base[:4]))


def test_every_row_of_the_tables_is_named():
    assert len(set(guard_accessors)) == len(guard_accessors) and len(set(guard_kinds)) == len(guard_kinds)
    for name in guard_accessors:
        if name != "getattr" and name not in INDEXED and name not in ("dict_item", "const", "type_lookup", "instance_attr", "slot_attr"):
            assert reference.read(name, object(), None, {"args": []}) is not None
