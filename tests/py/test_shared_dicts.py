"""Objects that are their own __dict__, have another one's, or have one together: whatever the entry was made for, each call is as plain."""

import re

import framegate
import pytest
from support_engine import entries


class C:
    pass


class D(dict):
    pass


class S:
    __slots__ = ("__dict__",)


def one_dict():
    p, o = C(), C()
    p.__dict__ = o.__dict__
    o.z = 1
    return p, o


def one_dict_of_two_classes():
    class E:
        pass
    p, o = C(), E()
    p.__dict__ = o.__dict__
    o.z = 1
    return p, o


def an_object_for_a_dict():
    p, o = C(), D(z=1)
    p.__dict__ = o
    return p, o


def each_the_dict_of_the_other():
    p, o = D(), D(z=1)
    p.__dict__, o.__dict__ = o, p
    p["z"] = 4
    return p, o


def beside_slots():
    p, o = S(), D(z=1)
    p.__dict__ = o
    return p, o


def apart():
    p, o = C(), C()
    p.z = o.z = 1
    return p, o


def apart_of_two_classes():
    class E(C):
        pass
    p, o = C(), E()
    p.z = o.z = 1
    return p, o


def a_dict_apart():
    p, o = D(z=2), D(z=1)
    p.z = o.z = 1
    return p, o


def a_function():
    def f():
        pass
    p = C()
    f.z = p.z = 1
    return p, f


def dict_of_a_function():
    def f():
        pass
    f.z, p = 1, C()
    p.__dict__ = f.__dict__
    return p, f


def its_own():
    p, o = D(z=1), D(z=3)
    p.__dict__, o.__dict__ = p, o
    return p, o


def an_exact_dict():
    p, d = C(), {}
    p.__dict__ = d
    p.z = 1
    return p, d


MAKERS = [one_dict, one_dict_of_two_classes, an_object_for_a_dict, each_the_dict_of_the_other, beside_slots, apart, apart_of_two_classes,
          a_dict_apart, a_function, dict_of_a_function, its_own, an_exact_dict]


def written_and_read(p, o):
    p.z += 4
    return o.z


def written_the_other_way(p, o):
    o.z = 9
    return p.z


def a_new_name(p, o):
    p.new = 1
    return getattr(o, "new", None)


def taken_out(p, o):
    del p.z
    return hasattr(o, "z")


def read_before(p, o):
    a = o.z
    p.z = 5
    return a, o.z, p.z


def an_item(p, o):
    p.z = 7
    return o["z"]


def written_as_item(p, o):
    o["z"] = 99
    return p.z


def lengths(p, o):
    n = len(o)
    p.nn = 5
    return n, len(o), bool(o), "nn" in o, list(o)


def which_is_which(p, o):
    p.u = 1
    return vars(p) is o, p.__dict__ is o, o.__dict__ is p, vars(p) is vars(o), p.__dict__ is p.__dict__, vars(p) is not None


def kept_in_itself(p, o):
    p.me, p.l, p.d = p, [p], p.__dict__
    p.l.append(p.l)
    return p.d["me"] is p, p.d is p.__dict__, p.__dict__ is p.d, p.l[1] is p.l, p.d == p.__dict__


def before_a_break(p, o):
    p.z = 100
    framegate.graph_break()
    return o.z


def after_a_break(p, o):
    framegate.graph_break()
    p.z = 100
    return o.z, p.__dict__ is o.__dict__


def made_here(p, o):
    x = D()
    x.__dict__ = x
    x.z, p.k = 1, x
    return x["z"], p.k is x, x


def shown(value):
    return re.sub("0x[0-9a-f]+", "", repr(value))


USES = [written_and_read, written_the_other_way, a_new_name, taken_out, read_before, an_item, written_as_item, lengths, which_is_which,
        kept_in_itself, before_a_break, after_a_break, made_here]


@pytest.mark.parametrize("use", USES)
def test_each_call_is_as_plain(use):
    for first in MAKERS:
        for second in MAKERS:
            compiled = framegate.compile(use)
            for make in (first, second, first):
                seen = []
                for fn in (use, compiled):
                    args = make()
                    try:
                        answer = fn(*args)
                    except (AttributeError, TypeError, KeyError) as e:
                        answer = repr(e)
                    seen.append(shown((answer, args, [vars(a) if hasattr(a, "__dict__") else None for a in args])))
                assert seen[0] == seen[1], (first.__name__, second.__name__, make.__name__)


def test_an_object_that_is_its_own_dict_goes_with_its_cycle():
    import gc
    import weakref

    def fn():
        class X(dict):
            def __init__(self):
                dict.__init__(self)
                self.__dict__ = self
        x = X()
        x.attr = 42
        ref = weakref.ref(x)
        del x
        gc.collect()
        return ref() is None
    compiled = framegate.compile(fn)
    assert compiled() and compiled() and fn()


def test_entries_of_objects_that_are_apart_are_used_again():
    compiled = framegate.compile(written_and_read)
    for _ in range(5):
        assert compiled(*apart()) == 1
    assert entries(compiled) == 1
