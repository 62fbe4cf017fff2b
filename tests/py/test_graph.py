"""framegate.Graph: building, replay, lifetimes, text forms."""

import collections
import functools
import gc
import operator
import subprocess
import sys
import weakref

import framegate
import numpy as np
import pytest
from framegate import Graph, _core
from hypothesis import given
from hypothesis import strategies as st

Pair = collections.namedtuple("Pair", "left right")


def build(fn, n):
    """A graph of n inputs whose output is what fn(graph, *placeholders) gives."""
    graph = Graph("g")
    graph.output(fn(graph, *[graph.placeholder(f"x{i}") for i in range(n)]))
    return graph


def test_nodes_tell_what_they_are():
    g = Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    a = g.call_function(operator.add, (x, [y, 1]), {"k": y})
    m = g.call_method("sum", (a,), {"axis": 0})
    t = g.get_attr(m, "real")
    out = g.output((t,))
    assert [n.op for n in g.nodes] == ["placeholder", "placeholder", "call_function", "call_method", "get_attr", "output"]
    assert (a.target, m.target, t.target, out.target) == (operator.add, "sum", "real", "output")
    assert a.args == (x, [y, 1]) and a.kwargs == {"k": y} and a.all_input_nodes == [x, y]
    assert y.users == [a] and a.users == [m] and out.users == []
    assert [n.index for n in g.nodes] == list(range(6))
    assert (g.op_count, g.placeholder_count) == (3, 2)
    assert a.graph is g and g.graph is g and a.stack_trace is None and a.code is None
    assert a.meta == {} and a.meta is a.meta
    with pytest.raises(AttributeError):
        a.target = operator.sub


def test_names_are_unique_identifiers_and_no_builtins_or_keywords():
    g = Graph()
    for name in ("x", "x", "x_1", "sum", "class", "1a", "a b", "", "é"):
        g.placeholder(name)
    g.call_function(sum, ([],))
    g.call_function(lambda: 0)
    names = [n.name for n in g.nodes]
    assert len(set(names)) == len(names)
    assert names[:3] == ["x", "x_1", "x_1_1"]
    assert all(n.isidentifier() for n in names) and not {"sum", "class"} & set(names)
    later = g.call_function(sum, ([],))
    assert later.name not in names


@pytest.mark.parametrize("name", ["neg", "pos", "invert", "abs"])
def test_unary_operators(name):
    f = getattr(operator, name)
    assert build(lambda g, x: g.call_function(f, (x,)), 1)(5) == f(5)


@pytest.mark.parametrize("name", "add sub mul matmul truediv floordiv mod pow lshift rshift and_ or_ xor iadd isub imul imatmul itruediv ifloordiv imod ipow ilshift irshift iand ior ixor lt le eq ne gt ge getitem".split())
def test_binary_operators_do_what_the_function_does(name):
    f = getattr(operator, name)
    g = build(lambda g, x, y: g.call_function(f, (x, y)), 2)
    arguments = {"matmul": [np.eye(2), np.ones(2)], "imatmul": [np.eye(2), np.eye(2)], "getitem": [{3: 4}, 3]}.get(name, [13, 3])
    assert np.array_equal(g(*arguments), f(*arguments))
    if name in ("eq", "ne"):
        return
    with pytest.raises(TypeError) as plain:
        f(object(), "a")
    with pytest.raises(TypeError) as replayed:
        g(object(), "a")
    assert str(plain.value) == str(replayed.value)


def test_a_replaced_operator_is_called_as_it_is():
    assert build(lambda g, x: g.call_function(lambda a, b: (a, b), (x, 1)), 1)(5) == (5, 1)


def test_wrong_number_of_operands_raises_as_plain():
    g = build(lambda g, x: g.call_function(operator.add, (x,)), 1)
    with pytest.raises(TypeError, match="add"):
        g(1)


def test_structures_in_arguments_and_output():
    def fn(g, x, y):
        d = g.call_function(dict, ({"a": x, "b": [y, (x, slice(None, y))]},), {"k": {x} and frozenset([x, y])})
        return {"d": d, "p": Pair(x, [y]), "o": collections.OrderedDict(z=x), "s": {x, y}, "e": (), "l": []}

    out = build(fn, 2)(1, 2)
    assert out == {"d": {"a": 1, "b": [2, (1, slice(None, 2))], "k": frozenset([1, 2])}, "p": Pair(1, [2]), "o": {"z": 1}, "s": {1, 2}, "e": (), "l": []}
    assert type(out["p"]) is Pair and type(out["o"]) is collections.OrderedDict


def test_mutable_constants_are_made_anew_by_each_call():
    g = build(lambda g, x: g.call_function(lambda a, *, k: (a.append(1), k.clear(), (a, k))[2], ([5],), {"k": {1: [x]}}), 1)
    first, second = g(0), g(0)
    assert first == second == ([5, 1], {}) and first[0] is not second[0]


def test_an_input_that_is_returned_is_the_same_object():
    x = object()
    assert build(lambda g, a: (a, a), 1)(x) == (x, x)
    assert build(lambda g, a: a, 1)(x) is x


def test_arity_and_keywords():
    g = build(lambda g, x: x, 1)
    with pytest.raises(TypeError, match="takes 1 inputs.*2 were given"):
        g(1, 2)
    with pytest.raises(TypeError, match="no keywords"):
        g(x0=1)


def test_a_graph_without_output_cannot_be_called_and_one_with_output_not_extended():
    g = Graph()
    with pytest.raises(RuntimeError, match="no output"):
        g()
    g.output(())
    assert g() == ()
    with pytest.raises(RuntimeError, match="output node"):
        g.placeholder("x")


@pytest.mark.parametrize(
    ("add", "message"),
    [
        (lambda g, x: g.call_function(3), "callable"),
        (lambda g, x: g.call_function(abs, (Graph().placeholder("y"),)), "another graph"),
        (lambda g, x: g.call_function(dict, ({x: 1},)), "dict key"),
        (lambda g, x: g.call_method("real"), "first argument"),
        (lambda g, x: g.placeholder(3), "str"),
        (lambda g, x: g.call_function(abs, (), {1: 2}), "string"),
    ],
)
def test_bad_nodes_are_refused(add, message):
    g = Graph()
    x = g.placeholder("x")
    with pytest.raises(TypeError, match=message):
        add(g, x)
    assert len(g.nodes) == 1


def test_unsupported_dict_types_are_an_error_at_the_call():
    g = build(lambda g, x: g.call_function(len, (collections.defaultdict(list, a=x),)), 1)
    with pytest.raises(TypeError, match="defaultdict"):
        g(1)


class Tracked:
    alive = 0

    def __init__(self, *_):
        type(self).alive += 1

    def __del__(self):
        type(self).alive -= 1


def test_intermediates_die_after_their_last_use():
    counts = []

    def fn(g, x):
        a = g.call_function(Tracked, (x,))
        b = g.call_function(Tracked, (a,))
        g.call_function(Tracked, (b,))  # used by nobody
        g.call_function(lambda _: counts.append(Tracked.alive), (x,))
        c = g.call_function(Tracked, (b,))
        g.call_function(lambda _: counts.append(Tracked.alive), (x,))
        return c

    result = build(fn, 1)(0)
    assert counts == [1, 1] and Tracked.alive == 1
    del result
    assert Tracked.alive == 0


def test_a_failing_call_releases_everything_and_names_its_node():
    def fn(g, x):
        a = g.call_function(Tracked, (x,))
        b = g.call_function(operator.truediv, (1, x))
        return (a, b)

    g = build(fn, 1)
    assert g.failed_node is None
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            g(0)
    assert Tracked.alive == 0 and g.failed_node is g.nodes[2]


def test_large_arrays_that_are_used_again_are_not_written_in_place():
    def fn(g, x):
        a = g.call_function(operator.add, (x, 1.0))
        b = g.call_function(operator.mul, (a, 2.0))
        return g.call_function(operator.add, (a, b))

    x = np.zeros(1 << 17)
    assert (build(fn, 1)(x) == 3.0).all() and (x == 0).all()


def test_graphs_may_call_themselves_and_each_other():
    cell = []
    g = build(lambda g, n: g.call_function(lambda n: n if n == 0 else cell[0](n - 1) + 1, (n,)), 1)
    cell.append(g)
    assert g(20) == 20


def test_many_nodes_many_registers_many_arguments():
    def fn(g, x):
        parts = [g.call_function(operator.add, (x, i)) for i in range(300)]
        return g.call_function(lambda *a: sum(a), parts)

    assert build(fn, 1)(1) == sum(range(300)) + 300


def test_a_long_chain_is_freed_without_recursion():
    g = Graph()
    n = g.placeholder("x")
    for _ in range(200_000):
        n = g.call_function(operator.add, (n, 1))
    g.output(n)
    assert g(0) == 200_000
    last = g.nodes[-2]
    del g, n
    assert last.graph is None and last.users == []
    del last


def test_cycles_through_callables_are_collected():
    g = Graph()
    g.output(g.call_function(functools.partial(list, [g])))
    ref = weakref.ref(g)
    del g
    gc.collect()
    assert ref() is None


def test_no_example_input_is_kept():
    class X:
        pass

    x = X()
    g = build(lambda g, a: (g.call_function(id, (a,)),), 1)
    g(x)
    ref = weakref.ref(x)
    del x
    assert ref() is None


def test_code_and_readable():
    g = build(lambda g, x: (g.call_function(operator.add, (x, 1)), g.call_method("sum", (x,), {"axis": (0, 1)}), g.get_attr(x, "T")), 1)
    assert g.code == "def g(x0):\n    add = operator.add(x0, 1)\n    sum_1 = x0.sum(axis=(0, 1))\n    T = x0.T\n    return (add, sum_1, T)\n"
    assert str(g) == g.code
    assert repr(g) == "<framegate.Graph 'g': 1 inputs, 3 operations>"


def test_code_runs_as_it_stands():
    g = build(lambda g, x: (g.call_function(operator.add, (x, float("nan"))), g.call_function(max, (x, 3))), 1)
    scope = {"operator": operator}
    exec(g.code, scope)
    assert str(scope["g"](4)) == str(g(4))


def test_print_readable_prints_when_asked(capsys):
    g = build(lambda g, x: x, 1)
    text = g.print_readable()
    assert capsys.readouterr().out == text + "\n"
    assert g.print_readable(print_output=False) == text and capsys.readouterr().out == ""


def test_to_dot_has_every_node_and_edge():
    dot = build(lambda g, x: g.call_function(operator.add, (x, 'a"b\\')), 1).to_dot()
    assert dot.startswith('digraph "g" {') and "n0 -> n1;" in dot and "n1 -> n2;" in dot and '\\"' not in dot.replace('\\\\', "").split("n0 [")[0]


CONSTANTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.text() | st.binary() | st.just(...) | st.sampled_from([int, np.float32, np.add, np.dtype("f8"), np.float32(1.5), operator.add]),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text() | st.integers(), inner) | st.builds(slice, inner, inner, inner),
    max_leaves=12,
)


@given(CONSTANTS)
def test_json_round_trip(value):
    g = build(lambda g, x: (g.call_function(operator.getitem, (x, value)), g.call_method("m", (x, value), {"k": [x, value]}), g.get_attr(x, "T"), Pair(x, value)), 1)
    text = g.to_json()
    back = Graph.from_json(text)
    assert back.to_json() == text and back.code == g.code and back.name == g.name


def test_json_keeps_signs_and_nans():
    value = (0.0, -0.0, float("nan"), complex(-0.0, float("inf")), True, 1)
    out = Graph.from_json(build(lambda g: value, 0).to_json())()
    assert repr(out) == repr(value)


def test_json_refuses_what_has_no_text_form():
    for value in (object(), np.ones(3), lambda: 0):
        with pytest.raises(ValueError):
            build(lambda g, value=value: value, 0).to_json()


@pytest.mark.parametrize("text", ["", "[]", "{}", "3", "null", '{"framegate_graph": 2, "name": "g", "nodes": []}', '{"framegate_graph": 1, "name": 3, "nodes": []}'])
def test_bad_json_is_a_value_error(text):
    with pytest.raises(ValueError, match="not the JSON form"):
        Graph.from_json(text)


@given(st.data())
def test_damaged_json_is_a_value_error_or_a_graph(data):
    text = build(lambda g, x: g.call_function(operator.add, (x, [1, (2.0, slice(x))])), 1).to_json()
    at = data.draw(st.integers(0, len(text) - 1))
    damaged = text[:at] + data.draw(st.text(max_size=2)) + text[at + 1 :]
    try:
        graph = Graph.from_json(damaged)
    except ValueError:
        return
    assert isinstance(graph, Graph)


def test_checked_call_checks_the_number_of_outputs():
    checked = _core.checked_call(lambda *a, **k: a[0], 2, "what backend 'b' made of graph 'g'")
    assert checked((1, 2)) == (1, 2) and checked([1, 2]) == (1, 2)
    for bad, message in [((1,), "too few outputs.*: 1, but the graph has 2"), ([1, 2, 3], "too many"), (5, "returned a int")]:
        with pytest.raises(framegate.exc.BackendCompilerFailed, match=message) as info:
            checked(bad)
        assert "graph 'g'" in str(info.value)
    with pytest.raises(ZeroDivisionError):
        _core.checked_call(lambda: 1 / 0, 1, "x")()
    assert _core.checked_call(lambda: 5, -1, "x")() == 5
    with pytest.raises(TypeError):
        _core.checked_call(3, 1, "x")


def test_leaks_nothing():
    def once():
        g = build(lambda g, x: (g.call_function(operator.add, (x, [1])), Pair(x, {"a": x}), frozenset([x])), 1)
        for value in ([1], 5):
            try:
                g(value)
            except TypeError:
                pass
        assert g.code

    for _ in range(100):
        once()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(500):
        once()
    gc.collect()
    assert sys.getallocatedblocks() - before < 250


def test_keyboard_interrupt_stops_a_long_replay():
    code = (
        "import framegate, time, os, signal, threading\n"
        "g = framegate.Graph()\n"
        "for _ in range(4000): g.call_function(time.sleep, (0.005,))\n"
        "g.output(())\n"
        "threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "try: g()\n"
        "except KeyboardInterrupt: print('stopped')\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=15)
    assert out.stdout == "stopped\n", out.stderr
