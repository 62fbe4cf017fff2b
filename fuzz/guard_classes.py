"""Classes of the objects that guards are tried on, in fuzz/guard_objects.py and in the tests of memos."""


class Node:
    shared = 1

    def method(self):
        return self

    @property
    def first(self):
        return self.a


class Other(Node):
    extra = "class"


class Slotted:
    __slots__ = ("a", "b", "__dict__")
