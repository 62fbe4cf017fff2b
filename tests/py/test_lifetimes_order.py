"""The variables of a frame end in the order of plain Python when it returns, whatever was compiled, broke and was resumed: finalizers and weak references
with callbacks say so. Cases by hand, and functions made by chance from seeds."""
import gc
import random
import weakref
from typing import Any, Callable

import pytest
from support_engine import cap

log: list[str] = []


class S:
    def __init__(self, name: str = "s") -> None: self.name = name


class D:
    def __init__(self, name: str) -> None: self.name, self.other = name, None
    def __del__(self) -> None: log.append("end of " + self.name)


def gone(ref: Any) -> None: log.append("gone")
def keep(o): return o
def two(o, p): q = [o, p]; return q
def with_two(f, *args): return f(*args)


def a_callback_before(xs): o = S(); r = weakref.ref(o, gone); print(end=""); k = len(xs); return k
def a_callback_behind(xs): o = S(); print(end=""); r = weakref.ref(o, gone); k = len(xs); return k
def two_ends(xs): a = D("a"); print(end=""); b = D("b"); k = len(xs); return k
def two_callbacks(xs): a = S(); print(end=""); b = S(); c = weakref.ref(a, gone); d = weakref.ref(b, gone); return len(xs)
def an_earlier_slot(xs): b = 0; a = D("a"); print(end=""); b = [D("b")]; k = len(xs); return k
def within_a_list(xs): b = 0; c = 0; a = D("a"); print(end=""); c = xs + [1]; b = [a, D("b")]; k = len(xs); return k
def moved(xs): a = D("a"); b = D("b"); print(end=""); a, b = b, a; return len(xs)
def moved_on(xs): c = 0; a = D("a"); b = D("b"); print(end=""); c = a; a = 1; return len(xs)
def emptied(xs): a = D("a"); b = [a]; c = D("c"); print(end=""); a = None; return len(xs)
def deleted(xs): a = D("a"); c = D("c"); b = [a]; print(end=""); del a; return len(xs)
def returned(xs): a = D("a"); c = D("c"); print(end=""); b = D("b"); a, b = b, a; return a.name
def in_a_closure(xs): x = D("x"); g = lambda: x; print(end=""); y = D("y"); z = [x, y]; return len(xs)
def argument_cells(xs, p=None, q=None): g = lambda: p; p = D("p"); q = D("q"); print(end=""); xs = D("xs"); return 1
def argument_cells_resumed(xs, p=None, q=None): g = lambda: p; p = D("p"); q = D("q"); print(end=""); xs = len([xs, q]); return xs
def a_function(xs): a = D("a"); print(end=""); f = lambda o=a: o; a = D("other"); return len(xs)
def an_object(xs): a = D("a"); print(end=""); b = S(a); a = len(xs); c = D("c"); return a
def an_array(xs): a = D("a"); print(end=""); b = (a, [1.0]); c = D("c"); a = 2.5; return len(xs)


def with_finally(xs):
    try:
        a = D("a"); print(end=""); b = D("b"); k = len(xs); return k
    finally:
        c = D("c"); d = len(xs)


def in_a_loop(xs):
    for i in xs:
        o = D(f"o{i}"); w = weakref.ref(o, gone); print(end=""); v = [o]; k = i
    return k


def in_two_loops(xs):
    for i in xs:
        for j in xs:
            a = D(f"{i}{j}"); b = [a]
        print(end=""); c = b
    return i


def in_a_handler(xs):
    a = D("a")
    try:
        print(end=""); b = [a]; raise ValueError(xs)
    except ValueError:
        c = D("c"); a = 0
    return len(xs)


FUNCTIONS: list[Callable] = [a_callback_before, a_callback_behind, two_ends, two_callbacks, an_earlier_slot, within_a_list, moved, moved_on, emptied, deleted, returned,
                             in_a_closure, argument_cells, argument_cells_resumed, a_function, an_object, an_array, with_finally, in_a_loop, in_two_loops,
                             in_a_handler]


def seen(f: Callable, n_args: int = 0) -> Any:
    log.clear()
    held = [D(f"argument {i}") for i in range(n_args)]
    try:
        result = repr(f([1, 2], *held))
    except Exception as e:
        result = f"{type(e).__name__}: {e}"
    ends = list(log)
    held.clear()
    return result, ends


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_variables_end_in_the_order_of_their_slots(f: Callable) -> None:
    want, ours = seen(f), cap(f)
    for _ in range(3):
        assert seen(ours) == want


def made(rng: random.Random) -> tuple[str, int]:
    names, lines, count = list("abcde"), [], [0]
    args = rng.sample(names, rng.randint(0, 2))

    def fresh() -> str:
        count[0] += 1
        return f'D("{count[0]}")'

    def block(depth: int, n: int) -> None:
        for _ in range(n):
            statement(depth)

    def statement(depth: int) -> None:
        v, w, u = (rng.choice(names) for _ in range(3))
        simple = [f"{v} = {fresh()}"] * 4 + ["print(end='')"] * 2 + [
            f"{v} = {w}", f"{v} = [{w}, {u}]", f"{v} = ({w}, {u}, 1)", f"{v} = {{'k': {w}}}", f"{v} = None", f"{v} = S(); {w} = weakref.ref({v}, gone)",
            f"if isinstance({v}, D): {v}.other = {w}", f"{v} = keep({w})", f"{v} = two({w}, {u})", "k = len(xs)", f"{v}, {w} = {w}, {v}",
            f"if isinstance({v}, list): {v}.append({w})", f"if isinstance({v}, list) and {v}: {w} = {v}.pop()", f"g = lambda: {v}", "log.append('here')"]
        if depth > 2 or rng.random() < .85:
            lines.append("    " * depth + rng.choice(simple))
            return
        head, tail = rng.choice([(f"if k > {rng.randint(0, 2)}:", None), (f"for k in range({rng.randint(1, 3)}):", None), ("try:", "except ValueError:"),
                                 ("try:", "finally:")])
        lines.append("    " * depth + head)
        block(depth + 1, rng.randint(1, 3))
        if tail:
            lines.append("    " * depth + tail)
            block(depth + 1, 1)
    lines.append(f"def f(xs, {', '.join(args)}):")
    lines.append("    k = 0; " + " = ".join([n for n in names if n not in args]) + " = None")
    block(1, rng.randint(4, 12))
    lines.append("    return " + rng.choice(["k", "len(xs)", "None"]))
    return "\n".join(lines), len(args)


@pytest.mark.parametrize("first", range(0, 240, 40))
def test_functions_made_by_chance_end_their_variables_in_order(first: int) -> None:
    gc.disable()  # a cycle ends whenever the collector runs
    try:
        for seed in range(first, first + 40):
            source, n_args = made(random.Random(seed))
            space = dict(globals())
            exec(compile(source, f"<seed {seed}>", "exec"), space)
            want, ours = seen(space["f"], n_args), cap(space["f"])
            for _ in range(2):
                assert seen(ours, n_args) == want, f"seed {seed}\n{source}"
    finally:
        gc.enable()
