"""Variables that are seen or changed through a frame: locals(), f_locals of the caller (which writes through from CPython 3.13 on), exec and eval in a compiled function."""

import sys

import framegate
import pytest


def poke(value, name="x"):
    sys._getframe(1).f_locals[name] = value


def a_variable(a):
    x = a
    poke(99)
    return x + 1


def variables_that_depend_on_it(a):
    x = a * 2
    y = x + 1
    poke(7, "y")
    z = x + y
    poke(3, "z")
    return x, y, z


def in_a_loop(a):
    total = 0
    for i in range(a):
        x = i
        poke(i * 10)
        total += x
    return total


def inner(a):
    x = a
    poke(50)
    return x


def in_an_inlined_function(a):
    return inner(a) + a


def two_snapshots(a):
    x = a
    first = locals()
    x = a + 1
    second = locals()
    return x, first["x"], second["x"], first is second, sorted(first), sorted(second)


def a_cell(a):
    x = a

    def read():
        return x

    poke(8)
    return read(), x


def a_name_that_is_no_variable(a):
    x = [a]
    shown = sys._getframe().f_locals
    shown["x"] = 5
    shown["new"] = 6
    return x, shown["new"]


def in_a_comprehension(a):
    x = a
    return [poke(y, "y") or y for y in range(3)], x


def by_exec(a):
    x = a
    exec("x = 7")
    return x, eval("x")


CASES = [
    a_variable, variables_that_depend_on_it, in_a_loop, in_an_inlined_function, two_snapshots, a_cell, a_name_that_is_no_variable, in_a_comprehension, by_exec,
]  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_same_as_in_plain_python(case):
    compiled = framegate.compile(case)
    for a in (1, 2, 3, 1, 2, 3):
        assert compiled(a) == case(a)
