"""Methods of C that belong to a class, reached through super(): what runs is the one further up, not the class's own of that name."""

import framegate
import numpy as np


class Base:
    seen: list = []

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        Base.seen.append(cls.__name__)


class Derived(Base):
    pass


class Numbers(dict):
    @classmethod
    def fromkeys(cls, keys, value=None):
        made = super().fromkeys(keys, value)
        made["made by"] = cls.__name__
        return made


class Text(bytes):
    @classmethod
    def fromhex(cls, text):
        return len(super().fromhex(text)) + 1


def plain_fields(number):
    return int.from_bytes(b"\x01\x02", "big") + number, dict.fromkeys("ab", number), float.fromhex("0x1p3")


def test_a_method_that_calls_the_one_it_hides():
    def fn(x):
        return x + 1, Numbers.fromkeys("ab", 2), type(Numbers.fromkeys("a")), Text.fromhex("0a0b")

    gate = framegate.compile(fn)
    expected = fn(np.ones(2))
    for _ in range(4):
        assert repr(gate(np.ones(2))) == repr(expected)


def test_the_hook_of_a_class_statement():
    hook = framegate.compile(Base.__init_subclass__.__func__)
    for _ in range(4):
        before = len(Base.seen)
        hook(Derived)
        assert Base.seen[before:] == ["Derived"]
    with framegate.intercept():
        for name in "abcd":
            type(name, (Base,), {})
    assert Base.seen[-4:] == list("abcd")


def test_without_super():
    gate = framegate.compile(plain_fields)
    for number in (1, 2, 3):
        assert gate(number) == plain_fields(number)


def test_one_that_is_kept():
    def fn(cls):
        return cls.fromkeys, super(Numbers, cls).fromkeys

    gate = framegate.compile(fn)
    for _ in range(3):
        own, above = gate(Numbers)
        assert own("a")["made by"] == "Numbers" and list(above("a")) == ["a"] and type(above("a")) is Numbers
