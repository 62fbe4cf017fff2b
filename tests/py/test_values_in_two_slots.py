"""What the interpreter keeps in two slots of the stack (since 3.14 the exit of a `with`, since 3.15 an iterator) over graph breaks: in the frame that goes on,
in segments behind it and in chains, whatever becomes of the value there."""

import contextlib
from typing import Any

import pytest
from support_engine import cap

log: list[Any] = []


def brk() -> None: print(end="")
def same(x): print(end=""); return x


class Manager:
    swallows = False
    def __enter__(self): log.append("enter"); return self
    def __exit__(self, *args): log.append(("exit", args[0])); return self.swallows


class Swallowing(Manager):
    swallows = True


class WithoutExit:
    def __enter__(self): return self


class WithoutEnter:
    def __exit__(self, *args): pass


class ExitIsStatic:
    def __enter__(self): return 5
    @staticmethod
    def __exit__(*args): log.append(("static", len(args))); return True


def loops_in_with(m, x):
    with m:
        brk()
        y = x + 1
        for i in [1, 2, 3]:
            brk()
            if i == x: return i, y
            for j in (4, 5):
                brk()
                if j == x: break
        brk()
    brk()
    return y


def raises_in_two(m, x):
    with m, Swallowing():
        brk()
        raise ValueError(x)
    brk()
    return 7


def returns_from_try(m, x):
    try:
        with m:
            brk()
            return [same(x) for k in range(3)]
    finally:
        brk()


def leaves_a_while(m, x):
    with m:
        with Manager():
            while x:
                brk(); x -= 1
                if x == 2: continue
                if x == 1: break
    return any(same(q) == 1 for q in [0, 1, x]), all(same(q) for q in [0]), tuple(same(q) for q in [x]), list(same(q) for q in "ab")


def ends_at_a_test(m, x):
    return any((q > x for q in [1, 2, 9])), same(3), {k: same(x) for k in (1, 2)}


def loops_over(xs, x):
    r = []
    for i in xs:
        for j in (brk() or xs):
            r.append((i, j, same(x)))
            if j == x: continue
            with Manager():
                if i == x: break
                r.append(same(i))
        else:
            brk(); r.append("else")
    return r


def outcome(fn, *args):
    log.clear()
    try:
        result = fn(*args)
    except Exception as e:
        result = repr(e)
    return result, list(log)


MANAGERS = [Manager, Swallowing, WithoutExit, WithoutEnter, ExitIsStatic, contextlib.nullcontext, int]


@pytest.mark.parametrize("manager", MANAGERS, ids=lambda m: m.__name__)
@pytest.mark.parametrize("fn", [loops_in_with, raises_in_two, returns_from_try, leaves_a_while, ends_at_a_test])
def test_exits_and_iterators_of_managers(fn, manager):
    for x in (1, 2, 3, 4, 9):
        compiled = cap(fn)
        want = outcome(fn, manager(), x)
        for _ in range(3):
            assert outcome(compiled, manager(), x) == want


def test_loops_over_every_kind_of_iterable():
    compiled = cap(loops_over)
    for xs in ([1, 2, 3], (1, 2), {1: 2, 3: 4}, "12", range(3), []):
        for x in (1, 2, 5):
            want = outcome(loops_over, xs, x)
            for _ in range(3):
                assert outcome(compiled, xs, x) == want


def made_and_asked(x):
    g = (i + 1 for i in x)
    log.append("made")
    return list(g)


def made_for_nothing(x):
    _ = (i for i in x)
    return 3


class Logged:
    def __iter__(self): log.append("iter"); return iter((1, 2))


@pytest.mark.parametrize("fn", [made_and_asked, made_for_nothing])
@pytest.mark.parametrize("of", [Logged(), [1, 2], 5], ids=["object", "list", "int"])
def test_a_generator_expression_asks_for_its_iterator_when_plain_python_does(fn, of):
    compiled = cap(fn)
    want = outcome(fn, of)
    for _ in range(3):
        assert outcome(compiled, of) == want


def test_annotations_of_functions_made_behind_a_break():
    def make(a):
        brk()
        def inner(x: int = a) -> "float":
            """text"""
            return x
        return inner
    compiled = cap(make)
    for a in (1, 2, 2):
        ours, theirs = compiled(a), make(a)
        assert ours.__annotations__ == theirs.__annotations__ and ours.__doc__ == "text" and ours() == a
        assert bool(getattr(ours, "__annotate__", 1)) == bool(getattr(theirs, "__annotate__", 1))


def test_a_string_that_is_returned_is_no_docstring():
    def make(x):
        def inner(): return "a string"
        return inner.__doc__, inner, x + 1
    compiled = cap(make)
    for x in (1, 2):
        doc, inner, n = compiled(x)
        assert (doc, inner.__doc__, inner(), n) == (None, None, "a string", x + 1)
