"""Dicts that are watched for memos: every way of changing one is noticed, and what changes often is no longer watched."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
import textwrap
import weakref

import framegate
import numpy as np
import pytest
from framegate import _core

WATCHES = _core.cpython_watched() >= 0
needs_watches = pytest.mark.skipif(not WATCHES, reason="no dict can be watched here")


def test_the_self_test_passes_where_the_interpreter_announces_changes():
    assert WATCHES is (sys.version_info >= (3, 12))


class Layer:
    kind = 1

    def __init__(self, i, own):
        if own == "given":
            self.__dict__ = {}
        self.scale, self.shift, self.hooks = i + 2, 1, {}
        self.parts = {"a": np.full(2, float(i)), "b": np.full(2, 2.0)}
        if own == "asked":
            vars(self)


class Later(Layer):
    kind = 5


class Model:
    def __init__(self, own, n=6):
        self.layers = [Layer(i, own) for i in range(n)]


def array(value):
    return np.full(2, float(value))


def compute(model):
    out = np.zeros(2)
    for layer in model.layers:
        if layer.hooks:
            out += 1000 * len(layer.hooks)
        out = out * 3 + layer.scale * layer.shift + layer.parts["a"] + layer.parts["b"] + layer.kind
    return out


def total(model):
    return float(compute(model)[0])


def assign(layer):
    layer.scale = 50


def replace_dict(layer):
    layer.__dict__ = {"scale": 9, "shift": 8, "hooks": {}, "parts": {"a": array(7), "b": array(6)}}


def add_hook(layer):
    layer.hooks["x"] = 1


def delete(layer):
    del layer.scale
    layer.__dict__["scale"] = 77


def shadow(layer):
    layer.kind = 30


def store_in_parts(layer):
    layer.parts["a"] = array(40)


def remove_part(layer):
    layer.parts.pop("b")
    layer.parts.setdefault("b", array(12))


def set_state(layer):
    state = pickle.loads(pickle.dumps(vars(layer)))
    state["scale"] = 13
    copied = copy.copy(layer)
    vars(layer).clear()
    vars(layer).update(vars(copied) | state)


def other_class(layer):
    layer.__class__ = Later


def swap(layer):
    vars(layer)["parts"] = {"a": array(90), "b": array(91)}


def c_level(layer):
    exec("scale = 123", {}, vars(layer))


CHANGES = [
    assign,
    lambda layer: setattr(layer, "shift", 4),
    lambda layer: object.__setattr__(layer, "shift", 14),
    lambda layer: vars(layer).update(scale=60),
    lambda layer: vars(layer).__ior__({"scale": 61}),
    lambda layer: layer.parts.update(b=array(31)),
    lambda layer: layer.parts.__init__(b=array(32)),
    lambda layer: setattr(layer, "hooks", {1: 1, 2: 2}),
    replace_dict,
    add_hook,
    delete,
    shadow,
    store_in_parts,
    remove_part,
    set_state,
    other_class,
    swap,
    c_level,
]


def settled(model):
    framegate.reset()
    compiled = framegate.compile(compute)
    for _ in range(300):
        compiled(model)
    return lambda model: float(compiled(model)[0])


@pytest.mark.parametrize("own", ["inline", "asked", "given"])
def test_every_way_of_changing_an_object_is_noticed(own):
    for at in 0, 3:
        for change in CHANGES:
            model = Model(own)
            compiled = settled(model)
            assert not WATCHES or _core.cpython_watched() > 0
            before = total(model)
            assert compiled(model) == before
            change(model.layers[at])
            after = total(model)
            assert after != before and compiled(model) == after
            for _ in range(100):
                assert compiled(model) == after


@pytest.mark.parametrize("own", ["inline", "asked", "given"])
def test_a_change_of_the_class_is_noticed(own):
    model = Model(own)
    compiled = settled(model)
    held, Layer.kind = Layer.kind, 11
    try:
        assert compiled(model) == total(model)
        Layer.hooks = property(lambda self: {1: 1})
        assert compiled(model) == total(model)
        del Layer.hooks
        assert compiled(model) == total(model)
    finally:
        Layer.kind = held


@pytest.mark.parametrize("own", ["inline", "asked", "given"])
def test_stores_in_a_loop_that_has_been_specialised_are_noticed(own):
    model = Model(own)
    compiled = settled(model)

    def store(layer, n):
        for i in range(n):
            layer.scale = i
            layer.parts["b"] = array(i)

    for n in range(1, 60):
        store(model.layers[n % 6], n)
        assert compiled(model) == total(model)


@needs_watches
def test_objects_are_freed_and_nothing_is_watched_that_is_gone():
    gc.collect()
    before = _core.cpython_watched()
    model = Model("given")
    compiled = settled(model)
    assert _core.cpython_watched() >= before + 6
    gone = weakref.ref(model.layers[2])
    model.layers[2] = Layer(2, "given")
    assert gone() is None
    model.layers[2].scale = 99
    assert compiled(model) == total(model)
    del model, compiled
    framegate.reset()
    gc.collect()
    assert _core.cpython_watched() <= before


@needs_watches
def test_addresses_that_are_used_again_prove_nothing():
    for _ in range(5):
        model = Model("inline")
        compiled = settled(model)
        for i in range(40):
            layer = model.layers[i % 6]
            layer.parts = None  # its dict goes, the next may lie there
            layer.parts = {"a": array(i), "b": array(i + 1)}
            assert compiled(model) == total(model)
            layer.hooks = None
            layer.hooks = {i: i} if i % 3 == 0 else {}
            assert compiled(model) == total(model)


class Counting:
    def __init__(self, i):
        self.__dict__ = {}
        self.count, self.scale, self.parts = 0, i, {"a": array(i)}


def counted(model):
    out = array(0)
    for layer in model.layers:
        out = out * 2 + layer.scale + layer.parts["a"]
    model.layers[1].count += 1
    return out


@needs_watches
def test_what_changes_at_every_call_is_not_watched_and_leaves_the_rest_theirs():
    model = Model("given", 0)
    model.layers = [Counting(i) for i in range(8)]
    compiled = framegate.compile(counted)
    for _ in range(20000):
        compiled(model)
    assert model.layers[1].count == 20000
    entry = framegate.cache_entries(compiled)[0]
    assert len(framegate.cache_entries(compiled)) <= 8 and entry is not None
    watched = _core.cpython_watched()
    for _ in range(200):
        compiled(model)
    assert watched > 0 and abs(_core.cpython_watched() - watched) <= 1
    model.layers[3].parts["a"] = array(1000)
    assert compiled(model)[0] == counted(model)[0]


def test_no_object_gets_a_dict_for_being_watched():
    model = Model("inline")
    settled(model)
    sizes = [sys.getsizeof(layer) for layer in model.layers]
    referents = [any(type(r) is dict and "scale" in r for r in gc.get_referents(layer)) for layer in model.layers]
    assert len(set(sizes)) == 1 and not any(referents)


def run(text, **how):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=100, **how)


@needs_watches
def test_watchers_of_others_are_undisturbed_and_all_ids_may_be_taken():
    testcapi = pytest.importorskip("_testcapi")
    if not hasattr(testcapi, "add_dict_watcher"):
        pytest.skip("the interpreter's own tests are not installed")
    watcher = testcapi.add_dict_watcher(0)
    try:
        model = Model("given")
        testcapi.watch_dict(watcher, vars(model.layers[0]))
        compiled = settled(model)
        model.layers[0].scale = 5
        assert testcapi.get_dict_watcher_events() == ["mod:scale:5"]
        assert compiled(model) == total(model)
        model.layers[1].scale = 6
        assert compiled(model) == total(model)
        assert testcapi.get_dict_watcher_events() == ["mod:scale:5"]
    finally:
        testcapi.clear_dict_watcher(watcher)
    done = run(
        """
        import _testcapi
        taken = []
        try:
            while True:
                taken.append(_testcapi.add_dict_watcher(0))
        except RuntimeError:
            pass
        import framegate
        from framegate import _core
        assert _core.cpython_watched() == -1
        class C: pass
        c = C(); c.a = {"k": 1}
        f = framegate.compile(lambda c: c.a["k"])
        for i in range(300):
            assert f(c) == 1
        c.a["k"] = 2
        assert f(c) == 2
        """
    )
    assert done.returncode == 0, done.stderr


@needs_watches
def test_the_id_is_given_back_at_exit():
    pytest.importorskip("_testcapi")
    done = run(
        """
        import atexit
        def last():
            import _testcapi
            from framegate import _core
            assert _core.cpython_watched() == -1
            watched[0]["k"] = 9
            assert f(*watched) == 9
            print("given back")
        atexit.register(last)
        import framegate
        watched = [{"k": 1}, {"k": 2}]
        f = framegate.compile(lambda a, b: a["k"] + 0 * b["k"])
        for _ in range(300): f(*watched)
        """
    )
    assert done.returncode == 0 and done.stdout.strip() == "given back", done.stderr
