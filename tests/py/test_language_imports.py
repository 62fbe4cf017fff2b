"""import statements in functions: of a module that is there they are part of the graph, and what changes in sys.modules is seen."""
# ruff: noqa: I001  (the order and the forms of the imports are what is tested)

import builtins
import sys
import types

import numpy as np
import pytest
from support_engine import Cases, cap, check_case, check_same, framegate, needs_engine, observe

A = np.arange(3.0)
case = Cases()


@case((A, 4.0))
def plain_import(a, n):
    import math
    return a * math.sqrt(n)
@case((A, 4.0))
def names_from_a_module(a, n):
    from math import floor, pi as p
    return a + floor(n) * p
@case((A, 1))
def dotted(a, n):
    import os.path
    import os.path as op
    return os.path.join is op.join, a + n
@case((A, 1))
def submodules(a, n):
    import numpy.linalg as la
    from numpy import linalg
    from numpy.linalg import norm
    return la is linalg, norm(a), n
@case((A, 1))
def in_a_callee(a, n):
    def inner(x):
        from collections import OrderedDict
        return OrderedDict is not None, x + n
    return inner(a)
@case((A, 2), (A, 0))
def under_a_handler(a, n):
    try:
        import math
        return a * (math.pi // n)
    except ImportError: return "import"
    except ZeroDivisionError: return "zero"


missing = Cases()


@missing((A, 1))
def not_there(a, n):
    try: import fg_no_such_module
    except ImportError as e: return a + n, str(e), e.name
    return fg_no_such_module
@missing((A, 1))
def name_not_there(a, n):
    from math import no_such_name
    return no_such_name


@case.parametrize()
def test_import(case): check_case(case)


@missing.parametrize()
def test_missing(case): check_case(case)


@needs_engine
@case.parametrize()
def test_one_graph(case):
    f = framegate.compile(case.fn, fullgraph=True)
    for args in case.inputs * 2: check_same(observe(case.fn, args), observe(f, args), "fullgraph")


@pytest.fixture
def module():
    m = types.ModuleType("fg_test_module")
    m.scale, m.table = 2.0, {"k": 1}
    sys.modules["fg_test_module"] = m
    yield m
    sys.modules.pop("fg_test_module", None)
    sys.modules.pop("fg_test_module.part", None)


def reads(a):
    import fg_test_module
    from fg_test_module import scale
    return a * scale + fg_test_module.table["k"]


def both(f, g, what): check_same(observe(f, (A,)), observe(g, (A,)), what)


def test_what_is_in_sys_modules_is_looked_at_each_time(module):
    g = cap(reads)
    both(reads, g, "first")
    module.scale = 3.0
    both(reads, g, "name rebound")
    other = types.ModuleType("fg_test_module")
    other.scale, other.table = 5.0, {"k": 7}
    sys.modules["fg_test_module"] = other
    both(reads, g, "another module")
    sys.modules["fg_test_module"] = None
    both(reads, g, "forbidden")
    class Other(types.ModuleType):
        def __getattr__(self, name): return 11.0 if name == "scale" else {"k": 0}
    sys.modules["fg_test_module"] = Other("fg_test_module")
    both(reads, g, "module of a class of its own")
    del sys.modules["fg_test_module"]
    both(reads, g, "gone")
    sys.modules["fg_test_module"] = module
    both(reads, g, "back")


def test_submodule_of_a_package(module):
    def f(a):
        from fg_test_module import part
        import fg_test_module.part as again
        return a * part.n, part is again
    module.__path__ = []
    module.part = part = types.ModuleType("fg_test_module.part")
    part.n = 3
    sys.modules["fg_test_module.part"] = part
    g = cap(f)
    both(f, g, "there")
    part.n = 4
    both(f, g, "changed")
    del sys.modules["fg_test_module.part"]
    both(f, g, "gone from sys.modules")
    del module.part
    both(f, g, "gone from the package")


def test_relative_import(module):
    code = "def f(a):\n    from . import scale\n    from .part import n\n    return a * scale + n\n"
    module.__path__ = []
    part = sys.modules["fg_test_module.part"] = types.ModuleType("fg_test_module.part")
    part.n = 3
    env = {"__package__": "fg_test_module", "__name__": "fg_test_module.user", "__builtins__": builtins}
    exec(code, env)
    f, g = env["f"], cap(env["f"])
    both(f, g, "there")
    env["__package__"] = "fg_other"
    both(f, g, "another package")


def test_import_may_be_replaced(module, monkeypatch):
    g = cap(reads)
    both(reads, g, "first")
    seen, original = [], builtins.__import__
    def mine(name, *args):
        seen.append(name)
        return original(name, *args)
    monkeypatch.setattr(builtins, "__import__", mine)
    assert (reads(A) == g(A)).all()
    assert seen.count("fg_test_module") == 4


class Lookalike(dict):
    """Somebody's own table, with other modules under the same names."""


@pytest.mark.parametrize("kind", [dict, Lookalike])
@pytest.mark.parametrize("when", ["before", "between", "behind a break"])
def test_sys_modules_may_be_rebound(module, monkeypatch, kind, when):
    """An import statement goes on with the table that the interpreter began with; what reads sys.modules reads the new one."""
    other = types.ModuleType("fg_test_module")
    other.scale, other.table = 5.0, {"k": 7}
    mine = kind(sys.modules, fg_test_module=other)

    def by_name(a):
        import sys
        from fg_test_module import scale
        return a * scale, sys.modules["fg_test_module"].table["k"], "fg_test_module" in sys.modules

    def rebinding(a):
        import fg_test_module
        b, before = a * fg_test_module.scale, sys.modules
        sys.modules = mine
        try:
            print(end="")
            import fg_test_module as again
            return b, again is fg_test_module, again.scale, sys.modules["fg_test_module"].scale
        finally: sys.modules = before
    for f in (reads, by_name, rebinding):
        g = cap(f)
        if when == "between":
            both(f, g, "first")
        with monkeypatch.context() as m:
            m.setattr(sys, "modules", mine)
            both(f, g, "rebound")
            both(f, g, "rebound, again")
        both(f, g, "back")
        both(f, g, "back, again")


def test_a_module_that_only_the_new_table_has(module, monkeypatch):
    def f(a):
        try:
            import fg_test_other
            return a * fg_test_other.scale
        except ImportError as e: return str(e)
    other = types.ModuleType("fg_test_other")
    other.scale = 5.0
    g = cap(f)
    both(f, g, "nowhere")
    with monkeypatch.context() as m:
        m.setattr(sys, "modules", {**sys.modules, "fg_test_other": other})
        both(f, g, "in the new table")
    both(f, g, "nowhere again")


def test_names_that_a_function_has_imported(module):
    """They are variables like any other: assigned, captured, global, deleted, in a loop, and shadowed by what comes later."""
    env = {"__name__": "fg_user", "__builtins__": builtins}
    exec("""
def in_a_closure(a):
    from fg_test_module import scale
    def inner(): return a * scale
    scale += 1
    return inner()
def as_global(a):
    global fg_test_module, held
    import fg_test_module
    from fg_test_module import scale as held
    return a * held, fg_test_module.table
def deleted(a):
    from fg_test_module import scale, table
    del scale
    try: return a * scale
    except NameError as e: return str(e), table
def in_a_loop(a):
    for _ in range(3):
        import fg_test_module as m
        a = a * m.scale
        m.scale += 1
    m.scale -= 3
    return a
def shadowed(a):
    import fg_test_module
    b = a * fg_test_module.scale
    fg_test_module = fg_test_module.table
    return b, fg_test_module["k"]
def in_a_class(a):
    class C:
        from fg_test_module import scale
    return a * C.scale
""", env)
    for name in ("in_a_closure", "as_global", "deleted", "in_a_loop", "shadowed", "in_a_class"):
        f, g = env[name], cap(env[name])
        both(f, g, name)
        module.scale += 1
        both(f, g, name + ", changed")
        assert sys.modules["fg_test_module"] is module
