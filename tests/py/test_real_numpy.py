"""Real array code: equal to plain NumPy bit by bit over shapes, dtypes and Python values, and compiled as often as it must be, no more."""


import numpy as np
import numpy_models as models
import pytest
from support_engine import cap, check_same, check_twins, counted, entries, needs_engine, observe

NAMES = sorted(models.inputs())


def fresh(seed, n):
    return models.inputs(seed, n)


def agree(fn, compiled, a, b, **kwargs):
    check_same(observe(fn, a, dict(kwargs), filename=models.__file__), observe(compiled, b, dict(kwargs), filename=models.__file__), fn.__name__)


@pytest.mark.parametrize("name", NAMES)
def test_equals_plain_over_values_and_shapes(name):
    fn = fresh(0, 64)[name][0]
    compiled = cap(fn)
    for seed, n in ((0, 64), (1, 64), (2, 32), (3, 64), (4, 128), (0, 64)):
        agree(fn, compiled, fresh(seed, n)[name][1], fresh(seed, n)[name][1])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_equals_plain_over_dtypes(name, dtype):
    def cast(v):
        if isinstance(v, np.ndarray): return v.astype(dtype)
        if isinstance(v, (list, tuple)): return type(v)(map(cast, v))
        return {k: cast(x) for k, x in v.items()} if isinstance(v, dict) else v
    fn = fresh(0, 32)[name][0]
    compiled = cap(fn)
    for source in (lambda v: v, cast, lambda v: v, cast):
        agree(fn, compiled, source(fresh(5, 32)[name][1]), source(fresh(5, 32)[name][1]))


@pytest.mark.parametrize("name", NAMES)
def test_wrong_shapes_raise_what_numpy_raises(name):
    fn, args = fresh(0, 32)[name]
    compiled = cap(fn)
    agree(fn, compiled, fresh(0, 32)[name][1], fresh(0, 32)[name][1])
    bad = tuple(np.ones(3) if isinstance(a, np.ndarray) and i else a for i, a in enumerate(args))
    agree(fn, compiled, bad, tuple(a.copy() if isinstance(a, np.ndarray) else a for a in bad))


def test_black_scholes_over_python_numbers():
    fn = models.black_scholes
    compiled = cap(fn)
    for rate in (0.02, 0.03, 0, -0.0, np.float64(0.01), True):
        args = (np.array([100.0, 90.0]), 95.0, 1, rate, 0.2)
        agree(fn, compiled, args, args)
    agree(fn, compiled, (100.0, 95.0, 1.0, 0.02, 0.2), (100.0, 95.0, 1.0, 0.02, 0.2))
    agree(fn, compiled, (np.array([100.0]), np.array([0.0]), 1.0, 0.0, 0.0), (np.array([100.0]), np.array([0.0]), 1.0, 0.0, 0.0))


def test_heat_with_defaults_and_keywords():
    fn = models.heat_roll
    compiled = cap(fn)
    for kwargs in ({}, {"k": 0.2}, {"steps": 3}, {"k": 0.1, "steps": 0}, {"steps": 3, "k": 0.3}, {}):
        a = np.arange(12.0).reshape(3, 4)
        agree(fn, compiled, (a.copy(),), (a.copy(),), **kwargs)


def test_in_place_heat_writes_the_callers_array_and_its_views():
    compiled = cap(models.heat_slices)
    big = np.random.default_rng(0).standard_normal((8, 8))
    for source in (lambda b: b, lambda b: b[::2, ::2], lambda b: b.T, lambda b: b[1:, :5]):
        x, y = big.copy(), big.copy()
        r, s = models.heat_slices(source(x)), compiled(source(y))
        assert x.tobytes() == y.tobytes() and r.tobytes() == s.tobytes()
        assert np.shares_memory(s, y)
    u = big.copy()
    assert compiled(u) is u


def test_attention_with_and_without_a_mask():
    _, args = fresh(0, 64)["attention"]
    compiled = cap(models.attention)
    mask = np.tril(np.ones((8, 8), bool))
    for extra in ({}, {"mask": mask}, {"mask": None}, {"mask": ~mask}, {}):
        agree(models.attention, compiled, args, args, **extra)


def test_momentum_dataclass_updates_in_place():
    def make():
        opt = models.Momentum(rate=0.5)
        return opt.update, opt
    w, g = {"a": np.ones(3), "b": np.full((2, 2), 2.0)}, {"a": np.arange(3.0), "b": np.eye(2)}
    check_twins(make, [(w, g), (w, g), lambda o: setattr(o, "rate", 0.25), (w, g), (w, {"a": g["a"]}), (w, {"c": g["a"]}), (w, g)])


def test_model_as_list_of_dicts_changes_structure():
    r = np.random.default_rng(1)
    layers = [{"w": r.standard_normal((4, 4)), "b": r.standard_normal(4)} for _ in range(3)]
    compiled = cap(models.mlp)
    x = r.standard_normal((2, 4))
    for use in (layers, layers[:2], layers[:1], [], [dict(b=d["b"], w=d["w"]) for d in layers], layers):
        agree(models.mlp, compiled, (use, x), (use, x))
    layers[1]["w"][...] = 0
    agree(models.mlp, compiled, (layers, x), (layers, x))


def test_life_keeps_a_glider():
    board = np.zeros((6, 6), int)
    for i, j in ((0, 1), (1, 2), (2, 0), (2, 1), (2, 2)): board[i, j] = 1
    compiled, now = cap(models.life), board
    for _ in range(24): now = compiled(now)
    assert (now == board).all()


def test_kmeans_converges_to_the_same_centers():
    r = np.random.default_rng(3)
    points = np.concatenate([r.standard_normal((20, 2)) + c for c in ((0, 0), (8, 8), (-8, 8))])
    a = b = points[[0, 20, 40]]
    compiled = cap(models.kmeans_step)
    for _ in range(5):
        a, b = models.kmeans_step(points, a)[0], compiled(points, b)[0]
    assert a.tobytes() == b.tobytes()


# ---- what is compiled, and how often


@needs_engine
def test_black_scholes_is_one_graph_and_compiles_once_per_rank_and_dtype_or_shape():
    compiled, counter = counted(models.black_scholes)
    args = fresh(0, 64)["black_scholes"][1]
    compiled(*args)
    assert counter.frame_count == 1
    ops = counter.op_count
    # 2 erf of at least 14 operations and the 20 of the formula
    assert ops >= 40, ops
    for seed in range(5): compiled(*fresh(seed, 64)["black_scholes"][1])
    assert counter.frame_count == 1 and counter.op_count == ops
    compiled(*fresh(0, 32)["black_scholes"][1])
    compiled(*fresh(1, 32)["black_scholes"][1])
    assert 1 <= counter.frame_count <= 2
    compiled(*args)
    assert 1 <= counter.frame_count <= 2


@needs_engine
@pytest.mark.parametrize("name", NAMES)
def test_second_call_with_the_same_shapes_compiles_nothing(name):
    fn = fresh(0, 64)[name][0]
    compiled, counter = counted(fn)
    compiled(*fresh(0, 64)[name][1])
    first, ops = counter.frame_count, counter.op_count
    assert first >= 1 and ops >= 1
    for seed in range(4): compiled(*fresh(seed, 64)[name][1])
    assert (counter.frame_count, counter.op_count) == (first, ops)


@needs_engine
@pytest.mark.parametrize("name", ["black_scholes", "heat_roll", "nbody_step", "attention", "mlp", "life"])
def test_pure_functions_are_one_graph_under_fullgraph(name):
    fn = fresh(0, 64)[name][0]
    compiled, counter = counted(fn, fullgraph=True)
    compiled(*fresh(0, 64)[name][1])
    assert counter.frame_count == 1
    assert entries(compiled) == 1


@needs_engine
def test_a_learning_rate_and_a_step_counter_do_not_recompile():
    opt = models.Momentum()
    compiled, counter = counted(opt.update)
    w, g = {"a": np.ones(3)}, {"a": np.ones(3)}
    for _ in range(3): compiled(w, g)
    warm = counter.frame_count
    for k in range(50):
        opt.rate = 0.1 / (k + 1)
        assert compiled(w, g) == k + 4
    assert counter.frame_count - warm <= 1


# ---- one code object, several functions


def make(k, scale):
    def f(x, shift=scale):
        return x * k + shift + OFFSET  # noqa: F821
    return f


def test_functions_of_one_code_with_other_globals_cells_and_defaults_in_turn():
    import types
    base = make(2, 1)
    functions = []
    for k, shift, offset in ((2, 1, 0), (3, 1, 0), (2, 5, 0), (2, 1, 100), (3.0, 2, 7)):
        cell = types.CellType(k)
        functions.append(types.FunctionType(base.__code__, {"OFFSET": offset, "__builtins__": __builtins__}, "f", (shift,), (cell,)))
    compiled = [cap(f) for f in functions]
    x = np.arange(3.0)
    for _ in range(4):
        for f, c in zip(functions, compiled):
            check_same(observe(f, (x,)), observe(c, (x,)), "in turn")
    for f in functions:
        f.__globals__["OFFSET"] += 1
        f.__defaults__ = (9,)
        f.__closure__[0].cell_contents += 1
    for f, c in zip(functions, compiled):
        check_same(observe(f, (x,)), observe(c, (x,)), "changed")
