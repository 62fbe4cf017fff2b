"""Call, change one thing, call again: names, functions, modules, and special methods that count."""
from __future__ import annotations

import builtins
import gc
import sys
import types

import pytest
from support_engine import cap
from support_soundness import Scenarios, follow, outcome

scenarios = Scenarios()


def space_of(source: str, **names):
    space = dict(names)
    exec(source, space)
    return space


@scenarios
def globals_rebound():
    space = space_of("def g(x): return x + 1\ndef f(x): return g(x) * k\n", k=2)
    yield space["f"], 3
    space["k"] = 2.0
    yield space["f"], 3
    space["g"] = lambda x: x - 1
    yield space["f"], 3
    del space["g"]
    yield space["f"], 3
    space["g"] = abs
    yield space["f"], -3
    space["k"] = True
    yield space["f"], -3
    del space["k"]
    yield space["f"], 3


@scenarios
def global_that_shadows_a_builtin():
    space = space_of("def f(x): return len(x), max(x), sum(x), isinstance(x, list)\n")
    yield space["f"], [1, 2]
    space["len"] = lambda x: 99
    yield space["f"], [1, 2]
    space["max"] = min
    yield space["f"], [1, 2]
    del space["len"]
    yield space["f"], [1, 2]
    space["isinstance"] = lambda *a: "no"
    yield space["f"], [1, 2]
    del space["isinstance"], space["max"]
    yield space["f"], [1, 2]


@scenarios
def builtin_rebound():
    def fn(x):
        return len(x), sorted(x)

    yield fn, [2, 1]
    saved = builtins.len, builtins.sorted
    try:
        builtins.len = lambda x: 77
        yield fn, [2, 1]
        builtins.sorted = lambda x: "sorted"
        yield fn, [2, 1]
        builtins.len = saved[0]
        yield fn, [2, 1]
    finally:
        builtins.len, builtins.sorted = saved
    yield fn, [2, 1]


@scenarios
def own_builtins_dict_of_a_function():
    own = dict(vars(builtins))
    space = {"__builtins__": own}
    exec("def f(x): return len(x), abs(-1)", space)
    yield space["f"], [1]
    own["len"] = lambda x: 5
    yield space["f"], [1]
    del own["abs"]
    yield space["f"], [1]


@scenarios
def closure_cells_rebound():
    k, g = 1, None

    def g(x):
        return x + k

    def fn(x):
        return g(x), k

    def rebind(value):
        nonlocal k
        k = value

    yield fn, 1
    for v in (2, 2.0, True, "s", -0.0, 0.0, None, 3):
        rebind(v)
        yield fn, 1
    g.__closure__[0].cell_contents = 50
    yield fn, 1
    del g.__closure__[0].cell_contents
    yield fn, 1
    rebind(4)
    yield fn, 1
    g = lambda x: -x  # noqa: E731
    yield fn, 1


@scenarios
def defaults_and_keyword_defaults():
    def g(x, a=1, *, b=2, c=(3,)):
        return x, a, b, c

    def fn(x):
        return g(x)

    yield fn, 0
    g.__defaults__ = (10,)
    yield fn, 0
    g.__defaults__ = (1.0,)
    yield fn, 0
    g.__kwdefaults__["b"] = 20
    yield fn, 0
    g.__kwdefaults__["b"] = 2.0
    yield fn, 0
    g.__kwdefaults__ = {"b": 5, "c": 6}
    yield fn, 0
    del g.__kwdefaults__["c"]
    yield fn, 0
    g.__kwdefaults__ = None
    yield fn, 0
    g.__defaults__ = None
    yield fn, 0
    g.__kwdefaults__ = {"b": 1, "c": 1}
    g.__defaults__ = (5, 6)
    yield fn, 0


@scenarios
def own_defaults():
    def fn(x, a=1, *, b=2):
        return x, a, b

    yield fn, 0
    fn.__defaults__ = (7,)
    yield fn, 0
    fn.__kwdefaults__["b"] = 8
    yield fn, 0
    fn.__kwdefaults__ = {"b": True}
    yield fn, 0
    fn.__defaults__ = None
    yield fn, 0


@scenarios
def mutable_default():
    def g(x, acc=[1, 2]):  # noqa: B006
        return x, acc[0], len(acc)

    def fn(x):
        return g(x)

    yield fn, 0
    g.__defaults__[0][0] = 5
    yield fn, 0
    g.__defaults__[0].append(5)
    yield fn, 0


@scenarios
def code_replaced():
    def g(x):
        return x + 1

    class C:
        def m(self, x):
            return x + 10

    c = C()
    bound = c.m

    def fn(x):
        return g(x), c.m(x), bound(x), C.m(c, x)

    yield fn, 1
    g.__code__ = (lambda x: x + 2).__code__
    yield fn, 1
    C.m.__code__ = (lambda self, x: x + 20).__code__
    yield fn, 1
    g.__code__ = (lambda x, y=3: x).__code__
    yield fn, 1
    g.__code__ = g.__code__.replace(co_consts=tuple(9 if v == 3 else v for v in g.__code__.co_consts))
    g.__defaults__ = (1,)
    yield fn, 1
    g.__code__ = (lambda x: x * 2.5).__code__
    yield fn, 1
    g.__code__ = g.__code__.replace(co_consts=tuple(3.5 if v == 2.5 else v for v in g.__code__.co_consts))
    yield fn, 1


@scenarios
def module_replaced():
    name = "framegate_soundness_module"
    module = types.ModuleType(name)
    module.k, module.f = 1, (lambda: "first")
    sys.modules[name] = module
    space = space_of(f"def f():\n import {name} as m\n return m.k, m.f()\ndef g():\n from {name} import k\n return k\n")
    try:
        yield (space["f"],)
        yield (space["g"],)
        module.k = 2
        yield (space["f"],)
        yield (space["g"],)
        other = types.ModuleType(name)
        other.k, other.f = 3, (lambda: "second")
        sys.modules[name] = other
        yield (space["f"],)
        yield (space["g"],)
        del other.k
        yield (space["f"],)
        other.__getattr__ = lambda n: n
        yield (space["f"],)
        yield (space["g"],)
        del sys.modules[name]
        yield (space["f"],)
    finally:
        sys.modules.pop(name, None)


@scenarios
def module_attribute_and_class():
    module = types.ModuleType("m")
    module.k = 1
    space = space_of("def f(): return m.k, getattr(m, 'z', None)", m=module)

    class Special(types.ModuleType):
        @property
        def k(self):
            return "property"

    yield (space["f"],)
    module.k = 2
    yield (space["f"],)
    module.__getattr__ = lambda name: "made " + name
    yield (space["f"],)
    module.__class__ = Special
    yield (space["f"],)
    module.__class__ = types.ModuleType
    del module.__getattr__
    yield (space["f"],)
    space["m"] = types.SimpleNamespace(k=5)
    yield (space["f"],)


@scenarios
def cached_function_replaced():
    space = space_of("import functools\n@functools.lru_cache\ndef g(x): return x + k\ndef f(x): return g(x)\n", k=1)
    yield space["f"], 1
    space["k"] = 10
    yield space["f"], 1  # the old answer is kept
    space["g"].cache_clear()
    yield space["f"], 1


@scenarios.parametrize()
def test_names_and_functions(make):
    follow(make)


class Hostile:
    """Special methods that count, raise or change something."""

    log: list = []

    def __init__(self, act="count", v=1):
        self.act, self.v = act, v

    def _do(self, what):
        Hostile.log.append(what)
        if self.act == "raise":
            raise RuntimeError(what)

    def __eq__(self, other):
        self._do("eq")
        return self is other

    def __hash__(self):
        self._do("hash")
        return 1

    def __bool__(self):
        self._do("bool")
        return self.v > 0

    def __len__(self):
        self._do("len")
        return self.v


@pytest.mark.parametrize("act", ["count", "raise"])
def test_special_methods_run_as_often_as_in_plain_python(act):
    def fn(o, table):
        found = [bool(o), o == 1, len(o), o in [1, 2]]
        return found, table.get(1), table.get("a")

    compiled = cap(fn)
    for v in (1, 0, 5):
        for _ in range(4):
            o = Hostile(act, v)
            quiet = Hostile("count")
            table = {quiet: 3, "a": 4}
            quiet.act = act
            logs, answers = [], []
            for one in (fn, compiled):
                Hostile.log.clear()
                answers.append(outcome(one, (o, table)))
                logs.append(list(Hostile.log))
            assert answers[0] == answers[1] and logs[0] == logs[1]


def test_gate_entered_again_from_inside():
    depth = []

    class Node:
        @property
        def p(self):
            depth.append(1)
            if len(depth) < 3:
                return compiled(self) + 1
            return 0

    def fn(n):
        return n.p + len(depth)

    compiled = cap(fn)
    for _ in range(4):
        depth.clear()
        got = compiled(Node())
        depth.clear()

        class Plain:
            @property
            def p(self):
                depth.append(1)
                return fn(self) + 1 if len(depth) < 3 else 0

        assert got == fn(Plain())


def test_gate_entered_again_from_an_attribute_hook_that_changes_the_world():
    space = space_of("def f(o): return o.p, k, o.p, k\n", k=0)

    class Hook:
        def __getattr__(self, name):
            space["k"] += 1
            if space["k"] % 5 == 0:
                gc.collect()
            return space["k"]

    compiled = cap(space["f"])
    for start in (0, 0, 3, 0, 7):
        space["k"] = start
        want = space["f"](Hook())
        space["k"] = start
        assert compiled(Hook()) == want
