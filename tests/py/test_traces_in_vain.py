"""Traces of which nothing can come: a break where something lives that cannot be made at run time, and facts that cannot hold."""

import types

import framegate
import numpy as np
import pytest
from support_engine import entries


def breaks_inside():
    x = 1
    framegate.graph_break()
    yield x
    yield x + 1


def closes(x):
    try:
        yield x
    finally:
        x += 1


def counts(n):
    for i in range(n):
        yield i


KEPT = []


def first_value(x):
    it = breaks_inside()
    v = next(it)
    return v + x


def given_back(x):
    return counts(x)


def a_list_that_has_itself(x):
    l = [x]
    l.append(l)
    y = x + 1
    framegate.graph_break()
    return y, l[1] is l, len(l)


def two_that_have_each_other(x):
    a, b = {"x": x}, []
    a["b"], y = b, x * 2
    b.append(a)
    framegate.graph_break()
    return a["b"][0] is a, y


def half_used(x):
    y = x * 2
    it = (a + y for a in (1, 2, 3))
    z = next(it) + y
    framegate.graph_break()
    return list(it), z


def in_a_dict(x):
    d = {"a": [counts(x)]}
    z = x + 1
    framegate.graph_break()
    return list(d["a"][0]), z


def loop(x):
    s = 0
    for v in breaks_inside():
        s += v * x
    else:
        s += 10
    return s


def loop_that_breaks(x):
    s = [0]
    for v in counts(x):
        framegate.graph_break()
        s.append(v)
    return s


def kept_by_somebody(x):
    it = counts(x)
    KEPT.append(it)
    return next(it), KEPT.pop() is it


def consumed(x):
    return sum(a for a in (x, x) if KEPT.append(a) is None), len(KEPT), KEPT.clear()


def several(x):
    a, b, c = counts(x), closes(x), breaks_inside()
    return next(a), next(b), next(c), list(a), b.close(), list(c)


def thrown_into(x):
    it = closes(x)
    next(it)
    try:
        it.throw(KeyError)
    except KeyError:
        return x
    return None


def closed(x):
    it = counts(x)
    v = next(it)
    it.close()
    return v, list(it)


def delegated(x):
    def inner():
        r = yield from counts(x)
        yield r
        framegate.graph_break()
        yield 5
    it = inner()
    return [next(it), list(it)]


USES = [first_value, given_back, a_list_that_has_itself, two_that_have_each_other, half_used, in_a_dict, loop, loop_that_breaks,
        kept_by_somebody, consumed, several, thrown_into, closed, delegated]


def of_generators(value):
    return list(value) if isinstance(value, types.GeneratorType) else value


@pytest.mark.parametrize("use", USES)
def test_what_has_no_form_at_the_break_ends_the_trace_before_it(use):
    compiled = framegate.compile(use)
    before = framegate.stats()
    for x in (2, 2, 3, 3, 2, 2, 2):
        assert of_generators(compiled(x)) == of_generators(use(x))
    compiles = framegate.stats().get("compiles", 0) - before.get("compiles", 0)
    misses = framegate.stats().get("misses", 0) - before.get("misses", 0)
    assert entries(compiled) >= 1
    of = framegate.stats().get("unsupported", 0) - before.get("unsupported", 0)
    for _ in range(30):
        assert of_generators(compiled(2)) == of_generators(use(2))
    assert framegate.stats().get("compiles", 0) - before.get("compiles", 0) == compiles and misses < 30 and of <= 4


def overlapping(a, b, i):
    a += 1
    return a.sum() + b.sum() + i


def test_compiles_of_which_nothing_comes_become_rare_and_say_so(capsys, caplog):
    compiled = framegate.compile(overlapping, backend=lambda graph, examples: graph)
    plain, x = np.arange(10.0), np.arange(10.0)
    before = framegate.stats().get("compiles", 0)
    framegate.logs.set_logs("graph_breaks")
    try:
        for i in range(60):
            assert compiled(x[:6], x[2:8], i) == overlapping(plain[:6], plain[2:8], i)
    finally:
        framegate.logs.set_logs()
    assert framegate.stats().get("compiles", 0) - before == 6
    assert "32 calls run plain before the next one" in caplog.text + capsys.readouterr().err
    for i in range(70):
        assert compiled(x[:3], x[5:], i) == overlapping(plain[:3], plain[5:], i)
    assert entries(compiled) == 1


def test_fullgraph_says_what_breaks_at_each_call():
    compiled = framegate.compile(first_value, fullgraph=True)
    for _ in range(8):
        with pytest.raises(framegate.exc.Unsupported):
            compiled(1)
