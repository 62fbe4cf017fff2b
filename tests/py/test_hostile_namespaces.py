"""Classes whose namespaces have keys that are no strings and compare by code of their own: neither tracing nor guards ever call it."""

from __future__ import annotations

import framegate
import pytest
from framegate._core import GuardDesc, GuardProgram

pytestmark = pytest.mark.filterwarnings("ignore:non-string key")  # since 3.13 the interpreter says so itself

NAMES = ["a", "shared", "m", "missing", "__getattribute__", "__doc__", "__getattr__", "__bool__", "__len__", "__iter__", "__eq__", "__setattr__", "__class__"]
USES = [
    lambda o: o.a + 1,
    lambda o: o.shared + o.a,
    lambda o: o.m(),
    lambda o: o.missing,
    lambda o: 1 if o else 2,
    lambda o: [x for x in o],
    lambda o: o + 1,
    lambda o: o == 3,
    lambda o: setattr(o, "z", 4) or o.z,
    lambda o: isinstance(o, int),
    lambda o: type(o).shared,
]


def key(name, log, equal=False):
    class Key:
        def __hash__(self):
            return hash(name)

        def __eq__(self, other):
            log.append(other)
            return equal and other == name

    return Key()


def answer(f, o, log):
    log.clear()
    try:
        got = f(o)
    except Exception as error:
        got = repr(error)
    return got, len(log)


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_tracing_and_hits_compare_no_key_that_plain_python_does_not(name, equal):
    log: list = []
    for use in USES:
        base = type("Base", (), {key(name, log, equal): 7, "shared": 1, "m": lambda self: 3})
        for cls in base, type("Derived", (base,), {}):
            compiled = framegate.compile(use)
            for i in range(3):
                type.__setattr__(cls, "count", i)  # a new version
                o = cls()
                object.__getattribute__(o, "__dict__")["a"] = 5 + i
                plain, n_plain = answer(use, o, log)
                got, n = answer(compiled, o, log)
                assert got == plain and n <= n_plain


def test_a_memo_is_made_without_code_of_a_class_that_could_free_what_was_read():
    """A version is given to a class by looking a name up; that name may lie beside a key of another kind."""
    for name in ("__doc__", "x", "__name__"):
        log: list = []
        cls = type("Named", (), {key(name, log): 1, "x": 5})
        held = {"list": [1.5], "object": cls()}
        desc = GuardDesc()
        root = desc.source("arg", -1, None, 0)
        desc.guard("type_is", root, dict)
        item = desc.source("dict_item", root, "list")
        desc.guard("type_is", item, list)
        desc.output(item)
        held_object = desc.source("dict_item", root, "object")
        for missing in ("p", "q", "r"):
            desc.guard("attr_lacks", held_object, missing)
        desc.guard("absent", desc.source("type_lookup", desc.source("type", held_object), "nothing"))
        program = GuardProgram([desc])
        log.clear()
        for i in range(20):
            cls.count = i
            result, _, inputs = program.eval((held,))
            assert result == "hit" and inputs[0] is held["list"]
        assert not log
