"""FRAMEGATE_VERIFY: what is compared, and that a comparison itself does nothing that the program could notice."""

from __future__ import annotations

import random
import warnings

import numpy as np
import pytest

framegate = pytest.importorskip("framegate")
from framegate import _verify, config  # noqa: E402


@pytest.fixture(autouse=True)
def strict():
    with config.patch(verify=True, strict_errors=True):
        yield


@pytest.fixture
def compared(monkeypatch):
    """The calls that were run a second time."""
    seen = []
    real = _verify._compare
    monkeypatch.setattr(_verify, "_compare", lambda *a: (seen.append(a), real(*a))[1])
    return seen


class Box:
    shared: list = []
    count = 0

    def __init__(self, v):
        self.v, self.items = v, []


class Dies(Box):
    dropped: list = []

    def __del__(self):
        self.dropped.append(self.v)


class Own(Box):
    seen: list = []

    def __getattribute__(self, name):
        Own.seen.append(name)
        return object.__getattribute__(self, name)


LOG: list = []
TABLE = {"n": 0}


def pure(x, y):
    return x * y + 1


def writes_argument(box, n):
    box.v = n
    box.items.append(n)
    return n


def writes_global(x):
    LOG.append(x)
    TABLE["n"] = TABLE["n"] + 1
    return x


@pytest.mark.parametrize("fn, args", [
    (pure, (np.ones(3), 2.5)), (pure, (3, 4)), (writes_argument, (Box(1), 5)), (writes_global, (7,)),
    (lambda a: a.sort() or a, ([3, 1, 2],)), (lambda a, b: (a.append(1), b.append(2), a is b), (*[[1]] * 2,)),
], ids=["arrays", "numbers", "argument", "global", "list", "aliases"])
def test_what_can_be_repeated_is_compared_and_changes_once(fn, args, compared):
    gate = framegate.compile(fn)
    LOG.clear()
    TABLE["n"] = 0
    gate(*args)
    before = len(LOG)
    for i in range(3):
        gate(*args)
    assert compared
    if fn is writes_global:
        assert before == 1 and TABLE["n"] == len(LOG) == 4
    if fn is writes_argument:
        assert args[0].items == [5] * 4


def test_a_difference_is_found():
    def f(x):
        return x + 1

    gate = framegate.compile(f)
    gate(1)
    code = f.__code__
    real = _verify._outcome
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_verify, "_outcome", lambda fn, args, kwargs: real(fn, args, kwargs) if fn is not gate.__dict__["_framegate_gate"] else (99, None))
        with pytest.raises(framegate.exc.InternalError, match="99"):
            gate(1)
    assert f.__code__ is code and gate(1) == 2


def prints(x):
    y = x + 1
    print("line")
    return y


def writes_after_a_branch(x, loud):
    if loud:
        print("line")
    return x * 2


def through_a_helper(x):
    return prints(x) + 1


def through_map(x):
    return list(map(prints, [x, x]))


def in_a_handler(x):
    try:
        return x / 0
    except ZeroDivisionError:
        print("line")
        return x


@framegate.allow_in_graph
def allowed(x):
    print("line")
    return x + 1


def calls_allowed(x):
    return allowed(x) * 2


@framegate.substitute_in_graph(writes_after_a_branch)
def quiet(x, loud):
    return x * 2


def calls_substituted(x):
    return writes_after_a_branch(x, True)


@framegate.assume_constant_result
def constant():
    print("line")
    return 3


def calls_constant(x):
    return x + constant()


def asks_is_compiling(x):
    if not framegate.is_compiling():
        print("line")
    return x + 1


@pytest.mark.parametrize("fn, args", [
    (prints, (1,)), (through_a_helper, (1,)), (through_map, (1,)), (in_a_handler, (1,)), (calls_allowed, (np.ones(2),)),
    (calls_substituted, (1,)), (calls_constant, (1,)), (asks_is_compiling, (1,)),
], ids=lambda v: v.__name__ if callable(v) else "")
def test_output_is_made_as_often_as_without(fn, args, capsys):
    with config.patch(verify=False):
        gate = framegate.compile(fn)
        counts = []
        for checked in (False, True):
            framegate.reset()
            if checked:
                with config.patch(verify=True):
                    gate = framegate.compile(fn)
            capsys.readouterr()
            for _ in range(4):
                gate(*args)
            counts.append(capsys.readouterr().out.count("line"))
    assert counts[0] == counts[1]


def test_another_version_that_breaks_is_not_run_twice(compared, capsys):
    gate = framegate.compile(writes_after_a_branch_of_its_own)
    capsys.readouterr()
    for _ in range(3):
        gate(1, False), gate(1, True)
    assert capsys.readouterr().out.count("line") == 3 and len(compared) == 2


def writes_after_a_branch_of_its_own(x, loud):
    if loud:
        print("line")
    return x * 2


def test_a_version_that_another_gate_made_is_known_to_break(compared, capsys):
    with config.patch(verify=False):
        framegate.compile(prints)(1)
    capsys.readouterr()
    gate = framegate.compile(prints)
    for _ in range(3):
        gate(1)
    assert capsys.readouterr().out.count("line") == 3 and not compared


@pytest.mark.parametrize("draw", [
    lambda x: x + random.random(), lambda x: x + np.random.rand(2), lambda x: np.random.permutation(x), lambda x: x + np.random.default_rng(3).random(2),
], ids=["random", "rand", "permutation", "generator"])
def test_random_numbers_come_in_the_same_order(draw):
    results = []
    for checked in (False, True):
        with config.patch(verify=checked):
            gate = framegate.compile(draw)
        random.seed(5)
        np.random.seed(5)
        results.append([np.asarray(gate(np.ones(2))).tolist() for _ in range(4)])
    assert results[0] == results[1]


def writes_class_list(box):
    box.shared.append(1)
    return len(box.shared)


def writes_class(box, kind):
    kind.count += 1
    return kind.count


def writes_type_of(box):
    type(box).count += 1
    return box.count


def writes_both_ways(mine, box):
    mine.append(1)
    box.shared.append(2)
    return len(mine)


def writes_module(x):
    framegate.testing.counted_here.append(x)
    return x


def test_what_all_calls_share_is_written_once(compared):
    framegate.testing.counted_here = []
    try:
        for fn, args in [(writes_class_list, (Box(1),)), (writes_class, (Box(1), Box)), (writes_type_of, (Box(1),)), (writes_both_ways, (Box.shared, Box(1))),
                         (writes_module, (1,))]:
            gate = framegate.compile(fn)
            Box.shared.clear()
            Box.count = 0
            for _ in range(4):
                gate(*args)
            assert (len(Box.shared), Box.count) in {(4, 0), (0, 4), (8, 0), (0, 0)}, fn
        assert len(framegate.testing.counted_here) == 4 and not compared
    finally:
        del framegate.testing.counted_here
        Box.shared.clear()
        Box.count = 0


def test_no_destructor_and_no_attribute_hook_of_the_user_runs_because_of_the_comparison():
    def f(box):
        return box.v + 1

    gate = framegate.compile(f)
    dies = Dies(3)
    for _ in range(3):
        assert gate(dies) == 4
    assert Dies.dropped == []
    own = Own(3)
    Own.seen.clear()
    for _ in range(3):
        assert gate(own) == 4
    assert Own.seen == ["v"] * 3


def test_a_warning_is_shown_once():
    def f(x):
        return x / 0.0

    gate = framegate.compile(f)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        for _ in range(4):
            gate(np.ones(2))
    assert len(shown) == 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(RuntimeWarning):
                gate(np.ones(2))
