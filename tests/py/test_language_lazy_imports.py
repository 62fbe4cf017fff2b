"""Modules that are imported when a name bound to them is read."""

import sys
import textwrap
import types

import framegate
import numpy as np
import pytest

pytestmark = pytest.mark.skipif(sys.version_info < (3, 15), reason="the interpreter imports at once")


@pytest.fixture
def space(tmp_path, monkeypatch):
    """The names of a module that imports `slow_to_import`, which counts its imports, in four ways."""
    (tmp_path / "slow_to_import.py").write_text("import sys\nsys.slow_imports = getattr(sys, 'slow_imports', 0) + 1\nFACTOR = 3\ndef scale(x): return x * FACTOR\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "slow_imports", 0, raising=False)
    monkeypatch.delitem(sys.modules, "slow_to_import", raising=False)
    module = types.ModuleType("user_of_lazy_imports")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    text = """
        lazy import slow_to_import
        lazy from slow_to_import import scale, FACTOR
        import user_of_lazy_imports as itself

        def by_module(x): return slow_to_import.scale(x) + 1
        def by_name(x): return scale(x) + 1
        def only_passes_it_on(x): return x + 1, slow_to_import
        def number(x): return x * FACTOR
        def attribute(x): return itself.FACTOR * x
        def is_there(x): return x + ("slow_to_import" in globals())
        def in_a_branch(x, use):
            y = x + 1
            if use:
                y = slow_to_import.scale(y)
            return y - 1
    """
    exec(textwrap.dedent(text), module.__dict__)
    return module


X = np.ones(3)


def told(value):
    return [told(v) for v in value] if isinstance(value, tuple) else getattr(value, "__name__", None) or value.tolist()


@pytest.mark.parametrize("name", ["by_module", "by_name", "only_passes_it_on", "number", "attribute"])
def test_the_name_is_what_its_use_would_give(space, name):
    gate = framegate.compile(getattr(space, name))
    got = [told(gate(X)) for _ in range(4)]
    assert sys.slow_imports == 1
    assert got == [told(getattr(space, name)(X))] * 4


def test_what_is_not_read_is_not_imported(space):
    gate = framegate.compile(space.in_a_branch)
    for _ in range(3):
        assert told(gate(X, False)) == [1.0] * 3
        assert told(framegate.compile(space.is_there)(X)) == [2.0] * 3
    assert sys.slow_imports == 0
    for _ in range(3):
        assert told(gate(X, True)) == [5.0] * 3
    assert sys.slow_imports == 1


def test_the_same_under_an_interception(space):
    with framegate.intercept():
        got = [told(space.by_module(X)) for _ in range(3)]
    assert got == [[4.0] * 3] * 3 and sys.slow_imports == 1
