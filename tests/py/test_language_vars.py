"""`obj.__dict__` and vars(obj), read: names are facts about the instance, whatever the class has under them; the dict that is passed on is the object's."""

import numpy as np
import pytest
from differential_compare import observe
from support_engine import Cases, cap, check_case, check_twins, framegate, needs_engine

one_graph, case = Cases(), Cases()
X = np.arange(3.0)


class Config:
    shared = 1
    def __init__(self, **k): self.__dict__.update(k)
    @property
    def size(self): return self.__dict__.get("_size", 3)


class Plain:
    @property
    def size(self): return vars(self).get("_size", 3)


class Mapped(Config):
    """As configuration classes with renamed attributes do it."""
    names = {"hidden": "d_model"}
    def __getattribute__(self, name):
        if name != "names" and name in super().__getattribute__("names"): name = super().__getattribute__("names")[name]
        spec = super().__getattribute__("__dict__").get("_spec")
        if spec is not None and name == "d_model": return spec
        return super().__getattribute__(name)


class Slots:
    __slots__ = ("a", "__dict__")
    def __init__(self): self.a = 1; self.b = 2


class Own:
    __dict__ = {"a": 1}


class Child(Slots): pass


CONFIGS = ((X, Config()), (X, Config(a=2)), (X, Config(shared=5, _size=7)), (X, Config(a=None)))


@one_graph(*CONFIGS)
def get(x, c): return x * (c.__dict__.get("a") or 1), c.__dict__.get("shared", 9), vars(c).get("a", x)
@one_graph(*CONFIGS)
def contains(x, c): return "a" in c.__dict__, "shared" in c.__dict__, "size" not in vars(c), c.size, c.__dict__.__contains__("a"), x + 1
@one_graph(*CONFIGS)
def after_stores(x, c):
    c.a = 5
    d = c.__dict__
    first = d["a"], "new" in d
    c.new = x + 1
    return first, d["new"], d.get("new") is c.new
@one_graph(*CONFIGS)
def missing(x, c):
    try: return x + c.__dict__["_size"]
    except KeyError as e: return e.args, x
@one_graph(*CONFIGS)
def of_a_new_object(x, c):
    n = Plain()
    n.a = x * 2
    return n.__dict__["a"], "b" in n.__dict__, n.size, isinstance(n.__dict__, dict), type(vars(n)) is dict
@one_graph(*CONFIGS)
def passed_on(x, c): return c.__dict__, x + 1, c.__dict__ is vars(c)
@one_graph(*CONFIGS)
def passed_on_and_changed(x, c):
    d = c.__dict__
    c.late = x
    return [d], d.get("late") is x
@one_graph((X, Mapped(d_model=4)), (X, Mapped(d_model=5, _spec=7)), (X, Mapped(hidden=1, d_model=2)))
def own_getattribute(x, c): return x * c.hidden, c.d_model
@case((X, Mapped(d_model=4)), (X, Mapped(d_model=4, _spec={"a": 1})))
def own_getattribute_of_the_dict(x, c): return c.__dict__, x
@case(*CONFIGS)
def written(x, c):
    c.__dict__["a"] = 3
    d = vars(c); d.update(b=x + 1)
    return c.a, c.b
@case(*CONFIGS)
def all_of_it(x, c): return list(c.__dict__), len(vars(c)), dict(c.__dict__), {**vars(c)}, [k for k in c.__dict__], bool(c.__dict__), x + 1
@case(*CONFIGS)
def removed(x, c):
    c.a = 1
    del c.a
    return "a" in c.__dict__, c.__dict__.pop("shared", None), x
@case((X, Slots()), (X, Child()))
def slots(x, c): return c.__dict__.get("a"), "b" in c.__dict__, c.a, x
@case((X, Own()), (X, 3), (X, None), (X, Config))
def odd(x, c): return x, vars(c)["a"] if hasattr(c, "__dict__") and isinstance(vars(c), dict) and "a" in vars(c) else 0
@case((X, Config(a=1), 3), (X, Config(a=1), ("a",)), (X, Config(a=1), []))
def odd_keys(x, c, k): return k in c.__dict__, c.__dict__.get(k), x


@Cases([*one_graph, *case]).parametrize()
def test_language(case): check_case(case)


@needs_engine
@one_graph.parametrize()
def test_one_graph(case):
    f = framegate.compile(case.fn, fullgraph=True)
    for args in case.inputs: assert observe(f, args).error is None


def test_names_come_and_go():
    def make():
        c = Config(a=1)
        def f(x): return x * c.__dict__.get("a", 10), "b" in vars(c)
        return f, c
    def add(c): c.b = 2
    def change(c): c.a = 7
    def remove(c): del c.a
    def replace(c): c.__dict__ = {"b": 1}
    check_twins(make, [(X,), add, (X,), change, (X,), remove, (X,), replace, (X,)])


@pytest.mark.parametrize("as_attribute", [True, False])
def test_the_dict_is_written_elsewhere(as_attribute):
    c = Config(a=1)
    d = c.__dict__
    def f(x, c, d):
        if as_attribute: c.a = 2; return d["a"], c.__dict__["a"], x
        d["a"] = 2; return c.__dict__["a"], c.__dict__.get("a"), x
    g = cap(f)
    for _ in range(2): c.a = 1; assert g(X, c, d)[:2] == (2, 2) and c.a == 2
