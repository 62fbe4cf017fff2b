"""Attributes and the dict that shows them: whatever writes one, a compiled function that reads the other sees it, also after many calls that found nothing changed (memos). What versions do here
is their own: values beside the object, a dict that shares them, versions that a store leaves alone, types that run out of versions."""

import framegate
import pytest


class Pair:
    def __init__(self):
        self.x, self.y = 1, 2


def read_item(o): return o.__dict__["x"] + o.y
def read_names(o): return vars(o)["x"], sorted(map(str, vars(o)))
def read_attribute(o): return o.x * 2
def read_dict(d): return d["x"]
def read_values(d): return list(d.values())
def read_missing(o): return getattr(o, "z", None), "z" in o.__dict__


BY_DICT = (read_dict, read_values)
WRITES = {
    "store": lambda o, i: setattr(o, "x", i),
    "slot wrapper": lambda o, i: object.__setattr__(o, "x", i),
    "item": lambda o, i: o.__dict__.__setitem__("x", i),
    "update": lambda o, i: o.__dict__.update(x=i, y=-i),
    "another name": lambda o, i: setattr(o, "z", i),
    "removed and back": lambda o, i: (delattr(o, "y"), setattr(o, "y", i)),
    "another dict": lambda o, i: setattr(o, "__dict__", {"x": i, "y": i}),
    "a key that is no str": lambda o, i: (o.__dict__.__setitem__(i, i), o.__dict__.pop(i)),
    "many names": lambda o, i: [setattr(o, f"n{k}", i) for k in range(40)],
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("read", [read_item, read_names, read_attribute, read_dict, read_values, read_missing])
def test_every_write_is_seen(read, first, write):
    o = Pair()
    if first:
        assert o.__dict__
    compiled = framegate.compile(read)
    for i in range(60):
        if i % 12 == 11:
            WRITES[write](o, i)
        elif i % 12 == 7:
            o.x = -i
        argument = o.__dict__ if read in BY_DICT else o
        assert compiled(argument) == read(argument)


def test_a_dict_that_outlives_its_object_has_the_values():
    compiled = framegate.compile(read_dict)
    for i in range(30):
        o = Pair()
        o.x = i
        d = o.__dict__
        assert compiled(d) == i
        del o
        assert compiled(d) == i
        d["x"] = -i
        assert compiled(d) == -i


def test_a_type_that_runs_out_of_versions_is_read_all_the_same():
    class Changed:
        v = 0

    class Below(Changed):
        pass

    compiled = framegate.compile(lambda o: (o.v, type(o).v))
    o, below = Changed(), Below()
    for i in range(2500):
        Changed.v = i
        if i % 50 < 2:
            assert compiled(o) == compiled(below) == (i, i)
