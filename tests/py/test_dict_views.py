"""One state under two names: a dict that is an object's attributes, a module's names or a function's defaults, written by one name and read by the other."""

import builtins
import sys
import types

import pytest
from framegate._core import GuardDesc
from support_engine import cap, entries, needs_engine


class C:
    cls = "class"

    def __init__(self):
        self.x, self.y = 1, [2]

    def bump(self):
        self.x += 1
        return self.x


class Computed:
    @property
    def x(self):
        return self.__dict__["hidden"]


class Lively(types.ModuleType):
    @property
    def twice(self):
        return self.x * 2


def item_then_attr(d, o):
    d["x"] = 5
    return o.x


def attr_then_item(d, o):
    o.x = 6
    return d["x"]


def read_first(d, o):
    a, b = o.x, d["x"]
    d["x"] = a + 10
    c = o.x
    o.x = b + 20
    return a, b, c, d["x"]


def new_name(d, o):
    d["z"] = 1
    o.w = 2
    return o.z, d["w"], len(d)


def deleted(d, o):
    a = o.x
    del d["x"]
    return a, hasattr(o, "x"), getattr(o, "x", None), o.cls


def deleted_as_attribute(d, o):
    a = d["x"]
    del o.x
    return a, "x" in d, d.get("x"), len(d)


def shadowed(d, o):
    a = o.cls
    d["cls"] = "own"
    return a, o.cls


def popped(d, o):
    a = d.pop("x")
    return a, getattr(o, "x", "gone")


def cleared(d, o):
    a = o.x
    d.clear()
    return a, getattr(o, "x", "gone"), len(d)


def updated(d, o):
    d.update(x=7, q=8)
    return o.x, o.q


def set_default(d, o):
    return d.setdefault("x", 3), d.setdefault("n", 4), o.n


def through_method(d, o):
    d["x"] = 40
    a = o.bump()
    return a, d["x"]


def listed(d, o):
    names = list(d)
    o.later = 1
    return names, list(d), [v for v in d.values() if v.__class__ is int]


def in_a_loop(d, o):
    out = []
    for i in range(4):
        d["x"] = i
        o.x += 10
        out.append((o.x, d["x"]))
    return out


BODIES = [item_then_attr, attr_then_item, read_first, new_name, deleted, deleted_as_attribute, shadowed, popped, cleared, updated, set_default, through_method, listed, in_a_loop]


def outcome(f, *args):
    try:
        return f(*args)
    except Exception as error:
        return type(error), str(error)


def same(o):
    return vars(o), o


def apart(o):
    return dict(vars(o)), o


def other(o):
    return vars(C()), o


def inline(o):
    return {"x": 1, "y": [2]}, o


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("order", [(same, apart, same), (apart, same, apart, same), (inline, same, inline), (other, same, other)])
def test_instance_dict(body, order):
    c = cap(body)
    for form in order + order:
        plain, ours = C(), C()
        plain_args, our_args = form(plain), form(ours)
        assert outcome(c, *our_args) == outcome(body, *plain_args)
        assert vars(ours) == vars(plain) and our_args[0] == plain_args[0]


@pytest.mark.parametrize("body", BODIES)
def test_namespace_object(body):
    c = cap(body)
    for _ in range(3):
        plain, ours = types.SimpleNamespace(x=1, y=[2], cls="s", bump=len), types.SimpleNamespace(x=1, y=[2], cls="s", bump=len)
        assert outcome(c, vars(ours), ours) == outcome(body, vars(plain), plain)
        assert vars(ours) == vars(plain)


def asks_for_it(o):
    d = o.__dict__
    d["x"] = 3
    a = o.x
    vars(o)["x"] = 4
    b = o.x
    o.x = 5
    return a, b, o.x, d["x"], vars(o)["x"]


def asks_for_it_late(o):
    o.x = 2
    d = vars(o)
    o.x = 3
    d["x"] += 1
    return o.x


def hidden(o):
    o.__dict__["hidden"] = 1
    a = o.x
    o.__dict__["hidden"] = 2
    return a, o.x


@pytest.mark.parametrize("body, make", [(asks_for_it, C), (asks_for_it_late, C), (hidden, Computed)])
def test_dict_asked_for_in_the_function(body, make):
    c = cap(body)
    for _ in range(3):
        assert c(make()) == body(make())


MODULE = """
import sys
N = 1
def h(): return N
def by_dict(d, m):
    global N
    a = N
    d["N"] = 5
    b = N, h(), m.N
    N = 6
    c = d["N"], m.N
    m.N = 7
    return a, b, c, N, d["N"], globals()["N"]
def new(d, m):
    d["FRESH"] = 1
    a = FRESH
    del d["FRESH"]
    try: FRESH
    except NameError as e: return a, str(e)
def hides(d, m):
    a = len("ab")
    d["len"] = lambda s: "mine"
    b = len("ab")
    del d["len"]
    return a, b, len("ab")
def lively(d, m):
    global x
    x = 4
    a = m.x, m.twice
    m.x = 5
    return a, x, d["x"]
"""


@pytest.mark.parametrize("kind", [types.ModuleType, Lively])
@pytest.mark.parametrize("name", ["by_dict", "new", "hides", "lively"])
def test_module_names(kind, name):
    def results(compiled):
        m = kind("dict_views_module")
        sys.modules[m.__name__] = m
        try:
            exec(MODULE, m.__dict__)
            f = cap(m.__dict__[name]) if compiled else m.__dict__[name]
            return [outcome(f, m.__dict__, m) for _ in range(3)]
        finally:
            del sys.modules[m.__name__]

    assert results(True) == results(False)


def test_names_that_are_an_instances_dict():
    def results(compiled):
        o = C()
        exec("def f(o):\n global x\n a = o.x\n x = a + 1\n b = o.x\n o.x = 9\n return a, b, x", vars(o))
        f = cap(o.f) if compiled else o.f
        return [f(o) for _ in range(3)]

    assert results(True) == results(False)


def reads_builtins(b, name):
    a = len([1])
    b[name] = lambda v: "replaced"
    c = len([1])
    return a, c


def test_builtins():
    def results(f):
        kept = builtins.len
        try:
            return f(builtins.__dict__, "len")
        finally:
            builtins.len = kept

    c = cap(reads_builtins)
    assert [results(c), results(c)] == [results(reads_builtins), results(reads_builtins)]


def with_defaults(a=1, *, k=2):
    return a, k


def writes_defaults(d):
    a = with_defaults()
    d["k"] = 30
    b = with_defaults()
    d["k"] = 2
    return a, b, with_defaults()


def test_keyword_defaults():
    c = cap(writes_defaults)
    for _ in range(3):
        assert c(with_defaults.__kwdefaults__) == writes_defaults(with_defaults.__kwdefaults__)


def counts_on_function(d):
    d["calls"] = d.get("calls", 0) + 1
    return counts_on_function_target.calls


def counts_on_function_target():
    pass


def test_function_dict():
    def results(f):
        vars(counts_on_function_target).clear()
        return [f(vars(counts_on_function_target)) for _ in range(3)]

    assert results(cap(counts_on_function)) == results(counts_on_function)
    c = cap(counts_on_function)
    vars(counts_on_function_target)["calls"] = 7
    assert c({"calls": 1}) == 7 and c({}) == 7 and c(vars(counts_on_function_target)) == 8


def reads_proxy(proxy, o):
    a = proxy["cls"]
    C.cls = "changed"
    b = proxy["cls"], o.cls, C.cls
    C.cls = "class"
    return a, b


def test_type_dict():
    c = cap(reads_proxy)
    for _ in range(2):
        assert c(C.__dict__, C()) == reads_proxy(C.__dict__, C())


@needs_engine
def test_dict_and_object_are_captured_together_where_they_are_apart():
    def f(d, o, x):
        d["n"] = x
        o.n = d["n"] + 1
        return o.n

    c = cap(f, fullgraph=True)
    for i in range(5):
        o, d = C(), {}
        if i % 2:
            vars(o)["z"] = 1
        assert c(d, o, i) == i + 1 and d == {"n": i} and o.n == i + 1
    assert entries(c) == 1
    o = C()
    assert cap(f)(vars(o), o, 3) == 4 and vars(o)["n"] == 4


def test_relation():
    desc = GuardDesc(slot_names=("x", "y", "z"))
    desc.relation("no_dict_of", tuple(desc.source("arg", index=i) for i in range(3)))
    desc = GuardDesc.from_text(desc.to_text())
    o = C()
    assert desc.check((o, {}, {})) and desc.check((1, 2, 3))
    d = vars(o)
    assert desc.check((o, {}, C()))
    assert not desc.check((o, {}, d)) and not desc.check((d, o, o)) and "__dict__" in str(desc.explain((d, o, o)))
    assert not desc.check((types, {}, vars(types)))
