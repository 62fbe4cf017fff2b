"""Members of constant types: what a type has under some names, all decided by one look at its version."""

from __future__ import annotations

import gc
import itertools

import pytest
from framegate._core import GuardDesc, GuardProgram


def classes():
    class Base:
        def one(self):
            pass

        def two(self):
            pass

    class Derived(Base):
        three = 3

    return Base, Derived


def members(cls, *names):
    """A description of one call without arguments: the class has under each name what it has now, or nothing."""
    desc = GuardDesc()
    of = desc.source("const", -1, cls)
    for name in names:
        node = desc.source("type_lookup", of, name)
        found = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)
        desc.guard(*(("absent", node) if found is None else ("is", node, found)))
    return desc


def operations(program):
    return [line.split(": ")[1].split(" src=")[0] for line in program.dump().splitlines()]


def agree(program, descs):
    want = sum(desc.check(()) << i for i, desc in enumerate(descs))
    assert program.alive(()) == want, program.dump()
    return want


def test_one_instruction_for_all_members_and_no_load_of_the_type():
    _, cls = classes()
    program = GuardProgram([members(cls, "one", "two", "three", "missing")])
    assert operations(program) == ["fact members", "end"]
    assert program.alive(()) == 1


@pytest.mark.parametrize("name", ["one", "three", "missing"])
@pytest.mark.parametrize("where", ["base", "derived"])
def test_each_member_is_seen_to_change_and_to_come_back(name, where):
    base, cls = classes()
    desc = members(cls, "one", "two", "three", "missing")
    program = GuardProgram([desc])
    owner = base if where == "base" else cls
    had, old = name in vars(owner), vars(owner).get(name)
    shadowed = where == "base" and name == "three"
    for _ in range(3):
        setattr(owner, name, lambda self: None)
        assert agree(program, [desc]) == (1 if shadowed else 0)
        if had:
            setattr(owner, name, old)
        else:
            delattr(owner, name)
        assert agree(program, [desc]) == 1
        owner.other = object()
        assert agree(program, [desc]) == 1
        assert program.alive(()) == 1


def test_bases_that_are_replaced():
    class Other:
        one = 1

    base, cls = classes()
    desc = members(cls, "one", "three")
    program = GuardProgram([desc])
    cls.__bases__ = (Other,)
    assert agree(program, [desc]) == 0
    cls.__bases__ = (base,)
    assert agree(program, [desc]) == 1


def test_a_type_that_dies_is_not_looked_at():
    _, cls = classes()
    desc = members(cls, "one", "three")
    program = GuardProgram([desc])
    assert program.alive(()) == 1
    del cls
    gc.collect()
    again = [classes() for _ in range(50)]
    assert program.alive(()) == 0 and not desc.check(()) and again


def test_static_types_count_too():
    desc = members(int, "__add__", "__nothing__")
    program = GuardProgram([desc])
    assert operations(program) == ["fact members", "end"]
    assert agree(program, [desc]) == 1


def test_a_member_of_which_more_is_asked_keeps_its_own_instructions():
    base, cls = classes()
    desc = members(cls, "two", "three")
    function = desc.source("type_lookup", desc.source("const", -1, cls), "one")
    code = desc.source("code", function)
    desc.guard("is", code, base.one.__code__)
    program = GuardProgram([desc])
    assert operations(program)[0] == "fact members" and "load const" in operations(program)
    assert agree(program, [desc]) == 1
    base.one = lambda self: None
    assert agree(program, [desc]) == 0
    base.one = base.two
    assert agree(program, [desc]) == (base.two.__code__ is code)


def test_members_that_relations_or_inputs_read():
    _, cls = classes()
    desc = members(cls, "one", "two", "three")
    of = desc.source("const", -1, cls)
    one, two = desc.source("type_lookup", of, "one"), desc.source("type_lookup", of, "two")
    desc.relation("distinct", (one, two))
    desc.output(desc.source("type_lookup", of, "three"))
    program = GuardProgram([desc])
    assert agree(program, [desc]) == 1
    assert program.eval(())[:2] == ("hit", 0) and program.eval(())[2] == (3,)
    cls.one = cls.two
    assert agree(program, [desc]) == 0


def test_what_is_not_so_when_the_program_is_built():
    base, cls = classes()
    desc = members(cls, "one", "missing")
    old, base.one = base.one, None
    program = GuardProgram([desc])
    assert agree(program, [desc]) == 0
    base.one = old
    assert agree(program, [desc]) == 1
    cls.missing = 1
    assert agree(program, [desc]) == 0


def test_entries_that_ask_for_different_members():
    base, cls = classes()
    names = ["one", "two", "three", "missing"]
    subsets = [list(s) for n in range(1, 4) for s in itertools.combinations(names, n)]
    descs = [members(cls, *subset) for subset in subsets]
    cls.three = 4
    descs.append(members(cls, "three", "one"))
    program = GuardProgram(descs)
    agree(program, descs)
    for owner, name, value in ((cls, "three", 3), (base, "two", 0), (cls, "missing", 1), (cls, "one", 2)):
        setattr(owner, name, value)
        agree(program, descs)
    del cls.missing, cls.one
    agree(program, descs)


def test_more_than_64_entries():
    base, cls = classes()
    descs = [members(cls, *names) for names in (["one"], ["two", "missing"], ["three"])] * 30
    program = GuardProgram(descs)
    assert agree(program, descs) == (1 << 90) - 1
    base.two = None
    assert agree(program, descs).bit_count() == 60
