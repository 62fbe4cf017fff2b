"""The engine under test, and the strict comparison that the language, effect and report tests share.

FG_TEST_ENGINE=framegate (default) tests the engine. FG_TEST_ENGINE=plain runs the same tests on plain Python: that checks the tests
themselves (the expected values are CPython's), and the few that count compilations are skipped.
"""
import copy
import os
from typing import Any, Callable

import pytest
from differential_compare import Observation, differences, observe

ENGINE = os.environ.get("FG_TEST_ENGINE", "framegate")

if ENGINE == "framegate":
    import framegate

    cap = framegate.compile
else:
    framegate = None

    def cap(fn: Any = None, **_: Any) -> Any:
        return (lambda f: f) if fn is None else fn

needs_engine = pytest.mark.skipif(framegate is None, reason="counts what the engine did")


class Case:
    """A function and the argument tuples to call it with, in this order, each twice; then the first once more."""

    def __init__(self, fn: Callable[..., Any], inputs: tuple, kwargs: dict | None = None) -> None:
        self.fn, self.inputs, self.kwargs = fn, inputs, kwargs or {}

    def __repr__(self) -> str:
        return self.fn.__name__


class Cases(list):
    """Collects cases by decorator: `@cases((1, 2), (3.0, 4))` above a function of two arguments."""

    def __call__(self, *inputs: Any) -> Callable[[Callable], Callable]:
        def add(fn: Callable) -> Callable:
            self.append(Case(fn, inputs or ((),)))
            return fn
        return add

    def parametrize(self) -> Any:
        names = [c.fn.__name__ for c in self]
        assert len(set(names)) == len(names), sorted(n for n in names if names.count(n) > 1)
        return pytest.mark.parametrize("case", self, ids=names)


def _fresh(args: Any) -> tuple:
    return copy.deepcopy(args if isinstance(args, tuple) else (args,))


def check_same(plain: Observation, got: Observation, what: str) -> None:
    found = differences(plain, got)
    assert not found, what + "".join(f"\n  {kind}:\n    plain    {a!r}\n    compiled {b!r}" for kind, a, b in found)


def check_case(case: Case) -> None:
    """Plain and compiled agree on every call: value, type, identity, exception with lines, mutated arguments, output, warnings."""
    compiled = cap(case.fn)
    order = [i for i in range(len(case.inputs)) for _ in range(2)] + [0]
    name = case.fn.__code__.co_filename
    for i in order:
        args = case.inputs[i]
        want = observe(case.fn, _fresh(args), filename=name)
        got = observe(compiled, _fresh(args), filename=name)
        check_same(want, got, f"{case.fn.__name__}{args!r}")


def check_twins(make: Callable[[], tuple], calls: list) -> None:
    """For functions with state of their own. make() gives (function, state) with nothing shared between two results; state, an object or a
    function, is compared after each call. calls: argument tuples, or functions of the state that change it."""
    plain, plain_state = make()
    other, other_state = make()
    compiled = cap(other)
    name = plain.__code__.co_filename if hasattr(plain, "__code__") else None
    for k, args in enumerate(calls):
        if callable(args):
            args(plain_state)
            args(other_state)
            continue
        want = observe(plain, _fresh(args), state=plain_state, filename=name)
        got = observe(compiled, _fresh(args), state=other_state, filename=name)
        check_same(want, got, f"call {k} with {args!r}")


def counted(fn: Any, **options: Any) -> tuple[Any, Any]:
    """(compiled function, its CompileCounter)."""
    from framegate.testing import CompileCounter
    counter = CompileCounter()
    return framegate.compile(fn, backend=counter, **options), counter


def entries(fn: Any) -> int:
    return len(framegate.cache_entries(fn))
