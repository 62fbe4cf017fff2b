"""The assembler on instruction lists nobody compiled, the verifier on broken code, and the readers of frames, instances and tracebacks."""

import dis
import random
import sys
import threading
import traceback
import types

import pytest

core = pytest.importorskip("framegate._core")


# What is said of the mapping that is merged into keywords; later versions do not name the callee.
OF_SEVEN = r"seven\(\) argument after \*\*" if sys.version_info < (3, 15) else r"Value after \*\*"


def three(a, b, c):
    return None


def seven():
    return 7


def assembled(instructions, handlers=(), like=three, varnames=None):
    code = core.cpython_assemble(like.__code__, [("RESUME", 0)] + list(instructions), handlers, varnames)
    core.cpython_verify(code)
    return types.FunctionType(code, globals())


C, CALL0, RETURN = ("CALLEE",), ("CALL", 0), ("RETURN_VALUE",)


def load(name):
    return ("LOAD_GLOBAL", 0, name)


def fast(slot):
    return ("LOAD_FAST", slot)


def names_of(function):
    return [i.opname for i in dis.get_instructions(function)]


@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("after", [0, 1])
def test_callee_marks_on_either_side_or_none(before, after):
    def callee(instruction):
        return [C] * before + [instruction] + [C] * after

    f = assembled([*callee(fast(0)), *callee(load("len")), fast(1), ("CALL", 1), *callee(load("seven")), CALL0, ("CALL", 2), RETURN])
    assert f(lambda a, b: (a, b), [1, 2, 3], None) == (3, 7)


def test_call_without_mark_puts_the_null_before_straight_code():
    f = assembled([load("seven"), CALL0, RETURN])
    assert f(1, 2, 3) == 7
    assert "SWAP" not in names_of(f) and "PUSH_NULL" not in names_of(f)
    f = assembled([fast(0), ("LOAD_ATTR", 0, "real"), ("LOAD_ATTR", 0, "conjugate"), CALL0, RETURN])
    assert f(5, 2, 3) == 5
    # From 3.13 on it stands above the callee.
    assert (names_of(f).index("PUSH_NULL") < names_of(f).index("LOAD_ATTR")) == (sys.version_info < (3, 13))


def test_call_without_mark_behind_a_branch_moves_the_null():
    code = [fast(0), ("JUMP_IF_FALSE", 0, None, 5), fast(1), ("JUMP", 0, None, 6), fast(2), CALL0, RETURN]
    f = assembled(code)
    assert f(1, seven, None) == 7 and f(0, None, lambda: 8) == 8
    assert ("SWAP" in names_of(f)) == (sys.version_info < (3, 13))


@pytest.mark.parametrize("marks", [0, 1])
def test_a_double_keyword_names_its_callee_with_or_without_a_mark(marks):
    mark = [C] * marks
    code = [*mark, fast(0), *mark, fast(1), ("BUILD_MAP", 0), fast(2), ("DICT_MERGE", 1), fast(2), ("DICT_MERGE", 1), ("CALL_EX", 1), RETURN]
    f = assembled(code)
    with pytest.raises(TypeError, match=r"seven\(\) got multiple values for keyword argument 'k'"):
        f(seven, (), {"k": 1})
    with pytest.raises(TypeError, match=OF_SEVEN + r" must be a mapping, not int"):
        f(seven, (), 5)
    f = assembled([i for n, i in enumerate(code) if n not in (len(code) - 3, len(code) - 4)])
    assert f(lambda *a, **k: (a, k), (1, 2), {"k": 1}) == ((1, 2), {"k": 1})


def test_a_mapping_that_two_branches_merge_names_its_callee():
    code = [
        fast(0), fast(1), ("JUMP_IF_FALSE", 0, None, 6), ("BUILD_TUPLE", 0), ("JUMP", 0, None, 7), ("BUILD_TUPLE", 0), ("BUILD_MAP", 0), fast(2),
        ("DICT_MERGE", 1), ("CALL_EX", 1), RETURN,
    ]  # fmt: skip
    f = assembled(code)
    for flag in (0, 1):
        assert f(lambda **k: k, flag, {"k": 1}) == {"k": 1}
        with pytest.raises(TypeError, match=OF_SEVEN + r" must be a mapping, not NoneType"):
            f(seven, flag, None)


def test_marks_that_differ_between_branches():
    f = assembled([C, fast(0), ("JUMP_IF_FALSE", 0, None, 7), fast(1), C, ("JUMP", 0, None, 9), fast(2), C, CALL0, RETURN])
    assert f(1, seven, None) == 7 and f(0, None, lambda: 8) == 8


@pytest.mark.parametrize("marks", [0, 1])
def test_call_of_the_result_of_a_call(marks):
    f = assembled([C] * (2 * marks) + [fast(0), CALL0, CALL0, RETURN])
    assert f(lambda: seven, None, None) == 7


@pytest.mark.parametrize("marks", [0, 1])
@pytest.mark.parametrize("keywords", [0, 1])
def test_call_with_packed_arguments(marks, keywords):
    packed = [fast(1)] + [fast(2)] * keywords
    f = assembled([C] * marks + [fast(0)] + [C] * marks + packed + [("CALL_EX", keywords), RETURN])
    assert f(lambda *a, **k: (a, k), (1, 2), {"x": 3}) == ((1, 2), {"x": 3} if keywords else {})
    branch = [fast(0), ("JUMP_IF_FALSE", 0, None, 5), fast(0), ("JUMP", 0, None, 6), fast(0), *packed, ("CALL_EX", keywords), RETURN]
    assert assembled(branch)(lambda *a, **k: (a, k), (1, 2), {"x": 3}) == ((1, 2), {"x": 3} if keywords else {})


def test_keyword_call_without_mark():
    f = assembled([fast(0), fast(1), ("LOAD_CONST", 0, ("k",)), ("CALL_KW", 1), RETURN])
    assert f(lambda *, k: k, 9, None) == 9


def test_method_call_takes_no_null():
    for marks in (0, 1):
        f = assembled([C] * marks + [fast(0), ("LOAD_METHOD", 0, "append")] + [C] * marks + [fast(1), ("CALL", 1), ("POP_TOP",), fast(0), RETURN])
        assert f([1], 2, None) == [1, 2]
        assert "PUSH_NULL" not in names_of(f)


def test_stale_marks_do_not_disturb_a_loop():
    # 1: for x in a: x.f(); the marks around the method call are not used by any call
    f = assembled([fast(0), ("GET_ITER",), ("FOR_ITER", 0, None, 10), C, ("LOAD_METHOD", 0, "clear"), C, CALL0, ("POP_TOP",),
                   ("JUMP", 0, None, 3), ("LOAD_CONST", 0, None), RETURN])  # fmt: skip
    lists = [[1], [2]]
    f(lists, None, None)
    assert lists == [[], []]


def test_handler_depth_counts_the_null():
    # len(<raises>) inside a handler that keeps one value: the NULL of the call lies above it
    f = assembled(
        [fast(1), C, load("len"), ("LOAD_CONST", 0, 5, -1, 0), ("CALL", 1, None, -1, 0), RETURN, ("POP_TOP",), RETURN],
        [(7, 1, 0)],
    )
    assert f(None, "kept", None) == "kept"


def test_constants_are_told_apart_by_type_and_bits():
    values = [1, True, 1.0, 0.0, -0.0, (1,), (True,), (1.0,), "1", b"1", 0j, complex(0.0, -0.0), None, ..., float("nan")]
    f = assembled([("LOAD_CONST", 0, v) for v in values * 2] + [("BUILD_TUPLE", 2 * len(values)), RETURN])
    got = f(1, 2, 3)
    assert list(map(repr, got)) == list(map(repr, values * 2))
    # Later versions have small integers, and then the common constants too, in instructions of their own.
    elsewhere = (sys.version_info >= (3, 14)) + (sys.version_info >= (3, 15))
    assert len(f.__code__.co_consts) == len(values) - elsewhere
    assert f.__doc__ is None


def test_user_objects_are_constants_by_identity():
    class Same:
        def __eq__(self, other):
            raise AssertionError

        __hash__ = None

    a, b = Same(), Same()
    f = assembled([("LOAD_CONST", 0, a), ("LOAD_CONST", 0, b), ("LOAD_CONST", 0, a), ("BUILD_TUPLE", 3), RETURN])
    got = f(1, 2, 3)
    assert got[0] is a and got[1] is b and got[2] is a


def test_a_string_first_is_no_docstring():
    assert assembled([("LOAD_CONST", 0, "text"), RETURN]).__doc__ is None


def test_names_that_are_no_identifiers():
    f = assembled([fast(0), ("STORE_FAST", 3), fast(3), RETURN], varnames=("a", "b", "c", ".fg0"))
    assert f(4, 5, 6) == 4
    assert f.__code__.co_varnames[3] == ".fg0" and f.__code__.co_nlocals == 4


def test_more_than_255_constants_names_and_a_long_jump():
    body = []
    for i in range(700):
        body += [("LOAD_CONST", 0, i + 1000.5), ("POP_TOP",)]
    f = assembled([fast(0), ("JUMP_IF_TRUE", 0, None, 3 + len(body)), *body, load("seven"), CALL0, RETURN])
    assert f(True, 0, 0) == 7 and f(False, 0, 0) == 7
    back = [fast(0), ("JUMP_IF_FALSE", 0, None, 5 + len(body)), *body, ("LOAD_CONST", 0, False), ("STORE_FAST", 0), ("JUMP", 0, None, 1)]
    back += [load("seven"), CALL0, RETURN]
    back[1] = ("JUMP_IF_FALSE", 0, None, 1 + len(back) - 3)
    assert assembled(back)(True, 0, 0) == 7


def test_lines_and_columns():
    at = (-1, -1, 0)
    positions = [(1, 1, 0, 1), (3, 3, 200, 220), (3, 9, 4, 2), (2, 2, -1, -1), (-1, -1, -1, -1), (100000, 100000, 5, 90)]
    listing = [("NOP", 0, None, *at, *p) for p in positions]
    f = assembled([*listing, ("LOAD_CONST", 0, None), RETURN])
    first = 1 if sys.version_info < (3, 15) else 2  # behind RESUME and its cache
    got = list(f.__code__.co_positions())[first : first + len(positions)]
    assert got == [tuple(None if x < 0 else x for x in p) for p in positions]


def test_code_with_moved_nulls_decodes_again():
    code = [fast(0), ("JUMP_IF_FALSE", 0, None, 5), fast(0), ("JUMP", 0, None, 6), fast(0), fast(1), fast(2), ("CALL_EX", 1), RETURN]
    f = assembled(code)
    again = types.FunctionType(core.cpython_roundtrip(f.__code__), globals())
    assert again(lambda *a, **k: (a, k), (1,), {"x": 2}) == f(lambda *a, **k: (a, k), (1,), {"x": 2}) == ((1,), {"x": 2})


BROKEN = {
    "underflow": [("POP_TOP",), ("LOAD_CONST", 0, None), RETURN],
    "runs past its end": [fast(0)],
    "disagree": [fast(0), ("JUMP_IF_FALSE", 0, None, 4), fast(0), ("NOP",), ("LOAD_CONST", 0, None), RETURN],
    "jump out": [("JUMP", 0, None, 77)],
    "without an object": [("LOAD_CONST",), RETURN],
    "no str": [("LOAD_GLOBAL", 0, 5), RETURN],
    "argument out of range": [fast(99), RETURN],
    "handler index": [("NOP", 0, None, -1, 5), fast(0), RETURN],
    "LOAD_SPECIAL": [fast(0), ("LOAD_SPECIAL", 0), RETURN],
    "keyword names": [fast(0), fast(1), fast(2), ("CALL_KW", 1), RETURN],
    "used as a value": [fast(0), ("LOAD_METHOD", 0, "x"), RETURN],
    "CALL_SUPER": [fast(0), fast(1), fast(2), ("CALL_SUPER", 0), RETURN],
}


@pytest.mark.parametrize("why", BROKEN)
def test_broken_input_is_refused(why):
    with pytest.raises(ValueError, match=why):
        assembled(BROKEN[why])


def test_random_input_is_refused_or_verifies():
    rng = random.Random(1)
    ops = sorted({i[0] for f in (dis.dis, traceback.format_exc, random.Random.sample, types.new_class) for i in core.cpython_decode(f.__code__)[0]})
    ops += ["CALL_KW", "CALL_EX", "CALL_SUPER", "CALLEE", "SWAP", "COPY", "RERAISE", "FOR_ITER", "SEND", "LOAD_METHOD", "MATCH_KEYS", "PRINT"]
    objects = [None, "name", ("k",), 1.5, (1, (2.0,))]
    made = 0
    for _ in range(3000):
        n = rng.randrange(2, 14)
        listing = [
            (rng.choice(ops), rng.choice([0, 0, 1, 1, 2, 3, 8]), rng.choice(objects), rng.randrange(-1, n), rng.choice([-1, -1, 0, 1]), rng.choice([0, 1, 64]))
            for _ in range(n)
        ]
        listing = [fast(0)] * rng.randrange(4) + listing + [fast(0), RETURN]
        try:
            code = core.cpython_assemble(three.__code__, [("RESUME", 0), *listing], [(rng.randrange(n), rng.randrange(2), rng.randrange(2))] * 2)
        except ValueError:
            continue
        core.cpython_verify(code)
        core.cpython_verify(core.cpython_roundtrip(code))
        made += 1
    assert made > 50


def test_mutated_code_is_refused_or_verifies():
    """Bytes of the code, the exception table and the location table changed at random: an answer, never a crash."""
    rng = random.Random(2)
    sources = [dis._get_instructions_bytes, traceback.TracebackException.__init__, random.Random.sample]
    refused = 0
    for _ in range(3000):
        code = rng.choice(sources).__code__
        field = rng.choice(["co_code", "co_code", "co_exceptiontable", "co_linetable"])
        raw = bytearray(getattr(code, field))
        for _ in range(rng.randrange(1, 4)):
            if raw:
                # Making a code object with an instrumented opcode in its own bytes ends the interpreter from 3.12 on.
                highest = 237 if field == "co_code" and sys.version_info >= (3, 12) else 256
                raw[rng.randrange(len(raw))] = rng.randrange(highest)
        changed = code.replace(**{field: bytes(raw)})
        try:
            core.cpython_verify(changed)
            core.cpython_roundtrip(changed)
        except ValueError:
            refused += 1
    assert refused > 300


def test_decoding_is_cached_and_lets_the_code_object_go():
    import gc
    import weakref

    space = {}
    exec("def f(a): return a.b(1, k=2)", space)
    code = space["f"].__code__
    assert core.cpython_decode(code) == core.cpython_decode(code)
    ref = weakref.ref(code)
    del code, space
    gc.collect()
    assert ref() is None


def test_frame_readers():
    def look(a, b=2):
        unbound = a  # noqa: F841
        del unbound
        return core.cpython_frame()

    code, function, line, slots = look(1)
    assert code is look.__code__ and function is look and line == look.__code__.co_firstlineno + 3 and slots == {"a": 1, "b": 2}

    def change(a):
        core.cpython_slot_set(0, "new")
        return a

    assert change("old") == "new"


def test_traced():
    assert not core.cpython_traced() or sys.gettrace() or sys.getprofile()
    seen = []
    old = sys.getprofile()
    sys.setprofile(lambda *a: None)
    try:
        seen.append(core.cpython_traced())
    finally:
        sys.setprofile(old)
    assert seen == [True]


def test_stack_left_on_any_thread():
    seen = {}

    def deep(n, name):
        seen.setdefault(name, []).append(core.cpython_stack_left())
        if n:
            # sort() calls its key from C, so each level takes C stack
            sorted([1], key=lambda _: deep(n - 1, name))

    deep(20, "main")
    old = threading.stack_size(512 * 1024)
    try:
        thread = threading.Thread(target=deep, args=(20, "thread"))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(old)
    for name, limit in (("main", 1 << 40), ("thread", 512 * 1024)):
        values = seen[name]
        assert all(0 < b < a for a, b in zip(values, values[1:])), values
        assert values[0] < limit


def test_instance_attributes_without_a_dict():
    class Plain:
        pass

    class Slots:
        __slots__ = ("a",)

    class Dict(dict):
        pass

    o = Plain()
    o.b, o.a = 1, 2
    assert core.cpython_instance_attrs(o) == [("b", 1), ("a", 2)]
    del o.b
    assert core.cpython_instance_attrs(o) == [("a", 2)] and core.cpython_instance_attr(o, "b") is None
    o.b = None
    assert core.cpython_instance_attr(o, "b") == (None,) and core.cpython_instance_attr(o, "c") is None
    assert core.cpython_instance_attrs(o) == [("a", 2), ("b", None)]
    o.__dict__["z"] = 3  # from here on a dict
    assert core.cpython_instance_attr(o, "z") == (3,) and core.cpython_instance_attr(o, "a") == (2,)
    o.__dict__[5] = "general keys"
    assert core.cpython_instance_attr(o, "z") == (3,) and core.cpython_instance_attr(o, "nothing") is None
    d = Dict()
    assert core.cpython_instance_attr(d, "q") is None
    d.q = 4
    assert core.cpython_instance_attr(d, "q") == (4,)
    s = Slots()
    s.a = 1
    assert core.cpython_instance_attr(s, "a") is None and core.cpython_instance_attrs(s) == []
    assert core.cpython_instance_attr(7, "real") is None
    many = Plain()
    for i in range(500):
        setattr(many, f"n{i}", i)
    assert all(core.cpython_instance_attr(many, f"n{i}") == (i,) for i in range(500))
    assert core.cpython_instance_attrs(many) == [(f"n{i}", i) for i in range(500)]


def test_reading_an_instance_makes_no_dict():
    import gc

    class Plain:
        pass

    o = Plain()
    o.marker = [1]
    core.cpython_instance_attr(o, "marker")
    core.cpython_instance_attrs(o)
    # A dict would stand between the object and its value.
    assert any(r is o.marker for r in gc.get_referents(o))


def test_versions():
    d = {"a": 1}
    first = core.cpython_dict_version(d)
    d["a"] = 1
    assert core.cpython_dict_version(d) == first
    d["a"] = 2
    if sys.version_info < (3, 14):
        assert core.cpython_dict_version(d) != first
    else:  # no such thing any more
        assert core.cpython_dict_version(d) == first == 0

    class T:
        x = 1

    first = core.cpython_type_version(T)
    assert first and core.cpython_type_version(T) == first
    T.x = 2
    assert core.cpython_type_version(T) not in (0, first)


def test_traceback_entries_go_below_the_newest():
    def inner():
        return [][1]

    def other():
        pass

    try:
        inner()
    except IndexError as e:
        code = other.__code__
        second = 2 if sys.version_info < (3, 15) else 4  # behind RESUME and its cache
        core.cpython_traceback_add(e, code, globals(), second, code.co_firstlineno + 1)
        core.cpython_traceback_add(e, code, globals(), 0, code.co_firstlineno)
        frames = traceback.extract_tb(e.__traceback__)
        assert [f.name for f in frames] == ["test_traceback_entries_go_below_the_newest", "other", "other", "inner"]
        assert [f.lineno - code.co_firstlineno for f in frames[1:3]] == [0, 1]
        entry = e.__traceback__.tb_next.tb_next
        assert entry.tb_frame.f_lineno == code.co_firstlineno + 1 and entry.tb_lasti == second and entry.tb_frame.f_globals is globals()
    fresh = ValueError("never raised")
    core.cpython_traceback_add(fresh, other.__code__, globals(), 0, 5)
    assert fresh.__traceback__.tb_lineno == 5 and fresh.__traceback__.tb_next is None
    with pytest.raises(ValueError):
        core.cpython_traceback_add(7, other.__code__, globals(), 0, 5)
