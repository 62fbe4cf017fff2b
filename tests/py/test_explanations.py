"""What a miss says: the value by its name in the user's code, what was expected and seen in words, the user's own line, and what to do."""

import inspect
import json
import textwrap

import framegate
import numpy as np
import pytest


class Thing:
    def __init__(self):
        self.scale = 2.0
        self.name = "a"
        self.parts = [1, 2]


def use(x, k, fn, thing):
    y = x + k
    if fn is not None:
        y = fn(y)
    if thing.name == "a":
        y = y * thing.scale
    for part in thing.parts:
        y = y + part
    return y


def line_of(text):
    lines, first = inspect.getsourcelines(use)
    (at,) = [i for i, line in enumerate(lines) if text in line]
    return f"test_explanations.py:{first + at}"


def failing(args, change=None):
    thing = Thing()
    compiled = framegate.compile(use)
    compiled(np.ones(3), 2, None, thing)
    tree = framegate.cache_entries(compiled)[0].guards
    if change is not None:
        change(thing)
    lines = tree.explain(*args(thing))
    assert lines and not tree.check(*args(thing))
    return lines[0]


@pytest.mark.parametrize(
    "args, change, words",
    [
        (lambda t: (np.ones(4), 2, None, t), None, ["x is a numpy.ndarray of float64, shape (3,)", "saw size 4 instead of 3 in dimension 0", line_of("x + k")]),
        (lambda t: (np.ones(3, "f4"), 2, None, t), None, ["saw dtype float32 instead of float64", line_of("x + k")]),
        (lambda t: (np.ones((3, 1)), 2, None, t), None, ["saw ndim 2 instead of 1"]),
        (lambda t: ([1.0], 2, None, t), None, ["x is a numpy.ndarray", "saw list"]),
        (lambda t: (np.ones(3), 2.5, None, t), None, ["type(k) is int; saw float", "pass one type", line_of("x + k")]),
        (lambda t: (np.ones(3), 2, abs, t), None, ["fn is None", line_of("fn is not None")]),
        (lambda t: (np.ones(3), 2, lambda y: y, t), None, ["fn is None; saw function", "once, outside"]),
        (lambda t: (np.ones(3), 2, None, t), lambda t: setattr(t, "name", "b"), ["thing.name == 'a'; saw 'b'", line_of("thing.name")]),
        (lambda t: (np.ones(3), 2, None, t), lambda t: setattr(t, "scale", 2), ["type(thing.scale) is float; saw int", line_of("thing.scale")]),
        (lambda t: (np.ones(3), 2, None, t), lambda t: t.parts.append(3), ["len(thing.parts) == 2; saw length 3", line_of("thing.parts")]),
        (lambda t: (np.ones(3), 2, None, t), lambda t: delattr(t, "name"), ["thing.name"]),
        (lambda t: (np.ones(3), 2, None, object()), None, ["type(thing) is", "saw object"]),
    ],
)
def test_a_miss_names_source_values_and_line(args, change, words):
    text = failing(args, change)
    for word in words:
        assert word in text, text


def test_the_line_is_the_users_where_a_library_asked():
    class Odd:
        def __init__(self):
            self.indent = "    "

    def f(x, odd):
        return x + len(textwrap.dedent(odd.indent + "a"))

    def g(x, encoder):
        return x + len(json.JSONEncoder.default.__name__) + encoder.n  # a library's class, reached from here

    odd = Odd()
    compiled = framegate.compile(f)
    compiled(np.ones(2), odd)
    for tree in [entry.guards for entry in framegate.cache_entries(compiled)]:
        assert "textwrap.py" not in str(tree), str(tree)
    odd.n = 1
    compiled = framegate.compile(g)
    compiled(np.ones(2), odd)
    assert "/json/" not in "".join(line.rpartition("(")[2] for line in str(framegate.cache_entries(compiled)[0].guards).splitlines())


def test_why_is_one_paragraph_for_each_outcome():
    compiled = framegate.compile(use)
    thing = Thing()
    assert "no entries yet" in framegate.why(compiled)(np.ones(3), 2, None, thing)
    compiled(np.ones(3), 2, None, thing)
    assert "would hit entry" in framegate.why(compiled)(np.ones(3), 2, None, thing)
    text = framegate.why(compiled)(np.ones(4), 2, None, thing)
    assert "would not hit" in text and "saw size 4 instead of 3" in text and "\n" not in text
    assert "cannot be bound" in framegate.why(compiled)() or "do not fit" in framegate.why(compiled)()
