"""Graph breaks: what comes before and after runs compiled, values and order are plain Python's, and the reason is told."""

import os
import sys

import numpy as np
import pytest
from support_engine import Cases, cap, check_case, check_twins, counted, framegate, needs_engine

case = Cases()
X = np.arange(3.0)
INPUTS = ((X, 2), (X, 3), (np.ones((2, 2)), 2), (X.astype(np.float32), 0))


def opaque(v): print(end=""); return v


@case(*INPUTS)
def one_break(x, n): y = np.sin(x) + n; print("half"); return np.cos(y) * 2
@case(*INPUTS)
def value_through_break(x, n): y = x + 1; z = opaque(y); return y * z + n, y is z
@case(*INPUTS)
def break_with_stack(x, n): return (x + 1) * 2 + len([opaque(n), opaque(x)]) + x.sum()
@case(*INPUTS)
def break_in_branch(x, n):
    if n > 2: x = x * 2; print("big"); x = x + 1
    else: x = x - 1
    return x * n
@case(*INPUTS)
def break_in_loop(x, n):
    for i in range(n): x = x + i; print(i); x = x * 2
    return x
@case(*INPUTS)
def break_in_while(x, n):
    while n > 0: x = np.sqrt(x + n); print(n); n -= 1
    return x
@case(*INPUTS)
def break_in_comprehension(x, n): return x + sum([opaque(i) for i in range(n)])
@case(*INPUTS)
def break_in_dict_comprehension(x, n): d = {i: opaque(i * i) for i in range(n)}; return x + len(d), d
@case(*INPUTS)
def break_in_callee(x, n):
    def inner(v): v = v + 1; print("in"); return v * 2
    return inner(x) + inner(x * n)
@case(*INPUTS)
def break_two_deep(x, n):
    def a(v): return b(v + 1) * 2
    def b(v): print("deep"); return v - n
    return a(x) + 1
@case(*INPUTS)
def break_in_try(x, n):
    try:
        y = x + 1
        print("try")
        if n == 3: raise ValueError(n)
        return y
    except ValueError as e: print("except"); return x - 1, e.args
    finally: print("finally")
@case(*INPUTS)
def break_in_handler(x, n):
    try: [][n]
    except IndexError as e: y = x * 2; print(e); z = y + 1; return z
@case(*INPUTS)
def break_in_with(x, n):
    import contextlib
    with contextlib.suppress(ValueError):
        x = x + 1; print("with"); x = x * 2
        if n == 2: raise ValueError
        x = x - 1
    return x
@case(*INPUTS)
def break_in_for_over_iterator(x, n):
    it = iter([1, 2, 3])
    for v in it: x = x + v; print(v); x = x + next(it, 0)
    return x
@case(*INPUTS)
def break_with_closure_cells(x, n):
    total = 0
    def add(v):
        nonlocal total
        total += v
    add(1); print(total); add(n); y = x + total; print(total); add(10)
    return y * total
@case(*INPUTS)
def break_in_generator_expression(x, n): return x + sum(opaque(i) for i in range(n))
@case(*INPUTS)
def break_in_arguments(x, n): return np.add(opaque(x), opaque(n), out=None) + max(opaque(1), n)
@case(*INPUTS)
def break_in_f_string(x, n): return x + 1, f"{opaque(n)}-{opaque('s')}"
@case(*INPUTS)
def break_between_effects(x, n): log = [1]; log.append(x.size); print(log); log.append(n); y = x + len(log); print(log); log.clear(); return y, log
@case(*INPUTS)
def many_breaks(x, n):
    for i in range(5): x = x + 1; print(i)
    return x
@case(*INPUTS)
def break_last(x, n): x = x + n; print(x.shape)
@case(*INPUTS)
def break_first(x, n): print(n); return x + n
@case(*INPUTS)
def break_then_raise(x, n):
    x = x + 1
    print("then")
    x = x * 2
    raise ValueError("here", n)
@case(*INPUTS)
def data_dependent_branch(x, n): return x * 2 if x.sum() > 3 else x + n
@case(*INPUTS)
def data_dependent_loop(x, n):
    while x.sum() < 20: x = x + 1
    return x
@case(*INPUTS)
def data_dependent_shape(x, n): y = x[x > 0]; z = y * 2; return z.sum() + y.size, np.unique(x) + 1
@case(*INPUTS)
def item_of_array(x, n): v = x.sum().item(); return x + v, float(x.max()), int(x.min())
@case(*INPUTS)
def local_names(x, n): y = x + 1; return sorted(locals()), y
@case(*INPUTS)
def evaluates_text(x, n): y = x + n; return eval("y * 2"), len(dir())
@case(*INPUTS)
def own_frame(x, n): y = x + 1; f = sys._getframe(); return f.f_code.co_name, sorted(f.f_locals), y
@case(*INPUTS)
def imports_inside(x, n):
    import math
    from os import path
    return x * math.pi, path.join("a", str(n))
@case(*INPUTS)
def opens_a_file(x, n):
    with open(os.devnull) as f: y = x + len(f.read())
    return y * n
@case(*INPUTS)
def deletes_a_local(x, n): y = x + 1; print("d"); del y; y = x * n; return y
@case(*INPUTS)
def maybe_unbound_after_break(x, n):
    if n == 2: y = x
    print("u")
    return y + 1
@case(*INPUTS)
def object_made_before_break(x, n):
    class Acc:
        def __init__(s): s.v = 0
    a = Acc(); b = [a, a]; a.v += n; print(a.v); b[1].v += 1
    return x + a.v, b[0] is b[1]


@case.parametrize()
def test_breaks(case): check_case(case)


def test_a_break_in_the_middle_keeps_state_between_calls():
    def make():
        space = {"np": np}
        exec("N = 0\nL = []\ndef f(x):\n global N\n N += 1\n y = x + N\n print(N)\n L.append(N)\n N += 10\n return y * N\n", space)
        return space["f"], lambda: (space["N"], space["L"])
    check_twins(make, [(X,)] * 5 + [(np.ones(2),)])


# ---- what is told and counted


@needs_engine
def test_a_print_splits_into_two_graphs():
    run, counter = counted(one_break)
    for _ in range(3): run(X, 2)
    assert counter.frame_count == 2 and counter.op_count == 4


@needs_engine
def test_fullgraph_refuses_with_a_reason():
    with pytest.raises(framegate.exc.Unsupported) as e:
        framegate.compile(one_break, fullgraph=True)(X, 2)
    assert "print" in str(e.value)


@needs_engine
def test_explain_names_the_break():
    found = framegate.explain(one_break)(X, 2)
    assert found.graph_count == 2 and found.graph_break_count == 1 and found.op_count == 4
    reason = found.break_reasons[0]
    assert reason.gb_type and reason.explanation and "print" in str(reason)
    body = one_break.__code__.co_firstlineno + 1  # the first line is the decorator's
    assert any(line == body for _, line, _ in reason.user_stack)


@needs_engine
def test_breaks_are_counted_by_type():
    before = dict(framegate.stats()["graph_breaks"])
    run = cap(one_break)
    run(X, 2)
    after = framegate.stats()["graph_breaks"]
    assert sum(after.values()) == sum(before.values()) + 1


@needs_engine
def test_an_explicit_break_carries_its_message():
    def f(x):
        y = x + 1
        framegate.graph_break("because")
        return y * 2
    run, counter = counted(f)
    assert run(X).tolist() == ((X + 1) * 2).tolist() and counter.frame_count == 2
    assert "because" in str(framegate.explain(f)(X).break_reasons[0])


@needs_engine
def test_work_around_a_break_in_a_loop_is_still_captured():
    run, counter = counted(break_in_loop)
    run(X, 3)
    assert counter.op_count >= 2


def renamed_after_break(x, n): y = opaque(x); x = x + n; return x
def renamed_in_loop(x, n):
    for i in range(n): y = opaque(i); x = x * 2 + y
    return x
def moved_after_break(x, n): y = opaque(x); x, y = y * n, x; return x
def kept_in_a_list_after_break(x, n): y = opaque(n); n = [x + y, x]; return n[0] * 2
def data_dependent_break(x, n): at = x.nonzero(); x = x + at[0].sum(); return x


@needs_engine
@pytest.mark.parametrize("f", [renamed_after_break, renamed_in_loop, moved_after_break, kept_in_a_list_after_break, data_dependent_break])
def test_what_a_graph_makes_is_in_the_frame_that_returns(f):
    graphs = []
    run = framegate.compile(f, backend=lambda graph, inputs: graphs.append(graph) or graph)
    for x, n in INPUTS[:3] * 2:
        want, got = f(x, n), run(x, n)
        assert got.dtype == want.dtype and got.tolist() == want.tolist()
    assert graphs
