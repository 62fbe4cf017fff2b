"""NumPy inside functions: dtypes, shapes, views, in-place writes, errors and warnings of every operation; plain and compiled agree."""

import numpy as np
import pytest
from differential_compare import observe
from support_engine import Cases, cap, check_case, check_same

case, rows = Cases(), Cases()
A = np.arange(6.0).reshape(2, 3)
V = np.array([1.0, -2.0, 3.0])
I = np.array([3, 1, 2])
F32 = V.astype(np.float32)
ONE = ((V,), (F32,), (I,), (A,), (np.array(2.0),), (np.array([]),), (A.T,), (V[::-1],))
TWO = ((V, V + 1), (V, I), (F32, F32), (A, V), (V, 2), (2.5, I), (F32, 2.0), (I, True), (V, np.ones(4)), (np.float32(2), I))


@case(*TWO)
def add(a, b): return a + b
@case(*TWO)
def arithmetic(a, b): return a - b, a * b, a / (b * b + 1), -a
@case(*TWO)
def comparisons(a, b): return a < b, a == b, a >= b
@case(*TWO)
def ufuncs(a, b): return np.add(a, b), np.maximum(a, b), np.where(np.greater(a, b), a, b), np.hypot(a, b)
@case(*ONE)
def unary(a): return abs(a), np.exp(a), np.sin(a), np.sqrt(np.abs(a)), np.sign(a), +a
@case(*ONE)
def reductions(a): return a.sum(), a.mean() if a.size else None, np.prod(a), a.any(), a.all(), np.count_nonzero(a)
@case((V,), (A,), (np.array([]),))
def reductions_raise(a): return a.max(), a.argmin()
@case((A, 0), (A, 1), (A, -1), (A, None), (A, 2), (V, 0))
def axis(a, k): return a.sum(axis=k), np.mean(a, axis=k), a.max(axis=k, keepdims=True)
@case(*ONE)
def metadata(a): return a.shape, a.ndim, a.size, a.dtype, a.itemsize, a.nbytes, a.strides, a.flags.c_contiguous, len(a) if a.ndim else 0
@case((V, 0), (V, -1), (V, 3), (A, 1), (A, (0, 1)), (V, slice(1, None)), (A, (slice(None), 0)), (V, None), (V, ...), (V, "x"), (V, 1.5))
def index(a, i): return a[i]
@case((V, [0, 2]), (V, np.array([True, False, True])), (I, np.array([1])), (V, [5]))
def fancy_index(a, i): return a[i]
@case((V,), (I,), (A,))
def mask(a): return a[a > 1], np.where(a > 1, a, 0), np.nonzero(a), (a > 1).sum()
@case((V,), (I,), (A,), (F32,))
def in_place(a): a += 1; a *= 2; a -= a.min(); return a
@case((V, V), (I, V), (F32, V), (V, I), (V, 1.5), (I, 1.5), (I, 2))
def in_place_casts(a, b): a += b; return a
@case((V, 9), (I, 2.7), (A, 1), (V, np.ones(3)), (V, np.ones(2)), (I, "x"))
def store_all(a, v): a[...] = v; return a
@case((V, 0, 9.0), (V, 5, 1.0), (A, 0, V), (I, -1, 2.9), (A, (1, 2), 7))
def store_item(a, i, v): a[i] = v; return a
@case((V,), (A,))
def store_mask(a): a[a > 1] = 0; a[a < 0] *= -1; return a
@case((V,), (A,))
def view_writes(a): b = a[:1]; b[...] = 9; c = a.reshape(-1); c[-1] = 8; return a, b, c.base is not None
@case((A,), (A.T,))
def transposes(a): return a.T, a.T.T, np.transpose(a), a.swapaxes(0, 1), a.T @ a
@case((V,), (A,), (I,))
def copies_and_views(a): b = a; c = a.copy(); d = a.view(); b[0] = 5; return a, b is a, c, d, np.shares_memory(a, d)
@case((A, (3, 2)), (A, (-1,)), (A, (4, 2)), (V, (3, 1)))
def reshape(a, s): return a.reshape(s), np.reshape(a, s), a.ravel(), a.flatten()
@case((V,), (A,), (np.array(1.0),))
def new_axes(a): return a[None], a[..., None], np.expand_dims(a, 0), np.squeeze(a[None])
@case((V, V), (V, I), (A, A), (A, V))
def joins(a, b): return np.concatenate([a, b]), np.stack([a, b])
@case((V, V), (A, A), (I, F32))
def joins_more(a, b): return np.vstack([a, b]), np.hstack([a, b]), np.append(a, b), np.array([a, b])
@case((A,), (np.arange(4),))
def splits(a): x, *y = a; return x, y, [r for r in a], list(zip(a, a)), np.array_split(a, 2)
@case((V, V), (A, A.T), (A, V), (A, A), (V, A), (I, V))
def matrix_product(a, b): return a @ b
@case((V, V), (A, V), (np.eye(2), np.ones(2)))
def dots(a, b): return np.dot(a, b), np.inner(a, b), np.outer(a, b), np.einsum("...i,...i->...", a, b)
@case((3,), (0,), (1,))
def creation(n): return np.zeros(n), np.ones((n, 2), np.float32), np.arange(n), np.full(n, 7), np.eye(n), np.linspace(0, 1, n), np.empty(n).shape
@case((V,), (A,), (F32,))
def likes(a): return np.zeros_like(a), np.ones_like(a, dtype=int), np.full_like(a, 3), np.empty_like(a).dtype
@case((V, "float32"), (V, int), (I, bool), (V, "complex128"), (V, "nope"), (A, np.float16))
def casts(a, t): return a.astype(t), np.asarray(a, t), a.astype(t).dtype.name
@case((V,), (A,), (I,))
def order(a): return np.sort(a), np.argsort(a), a.argmax(), np.unique(a), a[::-1]
@case((V,), (A,))
def sort_in_place(a): a.sort(); return a
@case((V, 1), (A, 1), (V, -1), (A, (1, 0)))
def rolls(a, k): return np.roll(a, k), np.roll(a, 1, axis=0), np.flip(a)
@case((V,), (A,), (I,))
def cumulative(a): return np.cumsum(a), np.diff(a), np.cumprod(a, axis=0)
@case((V,), (I,), (A,))
def clip(a): return np.clip(a, 0, 2), a.clip(1), a.clip(max=1), np.fmin(a, 1)
@case((V,), (np.zeros(2),), (I,))
def zero_division(a): return a / 0, a // 2, a % 2
@case((np.array([-1.0, 4.0]),), (np.array([4.0]),))
def domain_warnings(a): x = np.log(a); y = np.sqrt(a); return x, y
@case((np.array([-1.0, 0.0]),),)
def silenced_warnings(a):
    with np.errstate(all="ignore"): x = 1 / a
    return x, 1 / a
@case((np.array([1.0, 0.0]),),)
def raised_warnings(a):
    with np.errstate(divide="raise"):
        try: return 1 / a
        except FloatingPointError as e: return str(e)
@case((V,), (np.array([1.0]),), (np.array(0.0),), (np.array([]),))
def truth(a): return 1 if a else 2
@case((V,), (np.array([1.0]),))
def scalar_from(a): return a[0], float(a[0]), int(a[0]), a[0].item(), type(a[0]).__name__, a.tolist()
@case((np.float64(2.5), 2), (np.int32(3), 2.0), (np.bool_(True), 1), (np.float32(1.1), 1.1), (np.int8(120), 10))
def numpy_scalars(a, b): return a + b, a * a, type(a + b).__name__, a == b, -a if not isinstance(a, np.bool_) else None
@case((V, 3), (V, 0), (A, 2))
def loop_over_axis(a, n):
    t = np.zeros_like(a)
    for i in range(n): t = t * 0.5 + a * i
    return t
@case((V,), (A,), (F32,), (I,))
def softmax(a): e = np.exp(a - a.max(axis=-1, keepdims=True)); return e / e.sum(axis=-1, keepdims=True)
@case((V,), (A,))
def layer_norm(a): m = a.mean(-1, keepdims=True); return (a - m) / np.sqrt(((a - m) ** 2).mean(-1, keepdims=True) + 1e-5)
@case((V, 2), (I, 3), (V, 0.5), (I, -1), (A, np.array([2.0, 0, 1])))
def powers(a, p): return a**p
@case((V, 2), (V, 3), (A, 2), (I, 2))
def branch_on_shape(a, n):
    if a.shape[0] == n: return a * 2
    if a.ndim > 1: return a.sum(axis=1)
    return a[:n]
@case((V,), (F32,), (I,), (A.astype(complex),))
def branch_on_dtype(a): return a * 0.5 if a.dtype.kind == "f" else a // 2 if a.dtype.kind == "i" else a.real
@case((np.arange(3.0), np.ones(())), (np.eye(3), np.ones((3, 3))), (np.arange(3), np.ones((), int)), (np.arange(3), np.ones(())), (np.arange(3.0), np.ones(1)))
def dot_gives_a_scalar_for_an_out_without_dimensions(a, o): r = np.dot(a, a, out=o); s = a.dot(a, o); r += 1; return r, s, r is o, s is o, type(r) is type(o), r.shape, o
@case((V, V * 2), (A, A + 1))
def out_argument(a, b): r = np.add(a, b, out=a); return r is a, a, np.multiply(a, 2, out=b) is b
@case((V, 1), (V, 2))
def multiple_results(a, n): return np.divmod(a, n), np.modf(a), np.unique(a, return_counts=True)
@case(({"w": V, "b": 1.0},), ({"w": I, "b": V},), ({"w": V},))
def dict_of_arrays(p): return p["w"] * 2 + p.get("b", 0)
@case(([V, V + 1],), ([V],), ([],), ([I, V, F32],))
def list_of_arrays(xs): return sum(xs), [x * 2 for x in xs], len(xs)
@case((V, V), (lambda v: (v, v))(V.copy()))
def maybe_aliased(a, b): a[0] = 100; return b[0], a is b, a + b
@case((lambda v: (v, v[1:]))(V.copy()), (V, V[1:]))
def maybe_overlapping(a, b): a += 1; b *= 2; return a, b
@case((np.array([1, "x", None], object),), (np.array(["a", "b"]),), (np.array([1, 2], "u1"),))
def other_dtypes(a): return a[0], a[::-1], a.dtype, a.copy()
@case((np.array([250], np.uint8), 10), (np.array([100], np.int8), 100))
def wraparound(a, n): return a + np.uint8(n), a * a
@case((np.array([250], np.uint8), 300), (np.array([1], np.int64), 2**70))
def python_int_out_of_range(a, n): return a + n
@case((V,), (A,))
def read_only(a): a.flags.writeable = False; a[0] = 1; return a
@case((V,), (A,), (np.array([]),))
def text_of(a): return str(a), repr(a), f"{a.shape}", f"{a.sum():.2f}"
@case((V,), (A,))
def iterate(a):
    t = 0
    for r in a: t = t + r * 2
    return t, [float(np.sum(r)) for r in a], max(map(np.sum, a))
@case((V, "sum"), (V, "mean"), (V, "cumsum"), (V, "nope"))
def method_by_name(a, name): return getattr(a, name)()
@case((V,), (I,))
def attribute_functions(a): f = np.add; g = a.sum; return f(a, a), g(), f.reduce(a), np.add.outer(a, a)
@case((A, V), (A, np.ones(2)))
def broadcast_raises(a, b):
    try: return a + b
    except ValueError as e: return str(e)
@case((V,), (A,))
def linear_algebra(a): return np.linalg.norm(a), np.linalg.norm(a, axis=-1), np.trace(np.atleast_2d(a))
@case((np.zeros((2, 2)),), (np.eye(2),))
def singular(a):
    try: return np.linalg.inv(a)
    except np.linalg.LinAlgError as e: return str(e)
@case((V[:1],), (np.array([[1]]),))
def item_calls(a): return a.item(0), a.min().item(), a.tolist()
@case((V, 0.1), (V, 0.2), (F32, 0.1))
def scalar_input_changes(a, k): return a * k + k
@case((I, 2), (I, 3), (I, -1))
def int_input_changes(a, k): return a * k, a[:k], a + k * k
@case((3, 4), (4, 3), (0, 1))
def shape_arithmetic(n, m): a = np.zeros((n, m)); return a.shape[0] * a.shape[1], np.ones(a.shape[::-1]).shape, a.reshape(-1).shape
@case((V,), (np.concatenate([V, V]),))
def convolution(a): return np.convolve(a, [1, 0, -1]), np.correlate(a, a), np.interp([0.5], np.arange(len(a)), a)
@case((np.array([1 + 2j, 3]),), (V,))
def complex_arrays(a): return a.real, a.imag, np.conj(a), np.abs(a), np.angle(a)

@case(*ONE[:4])
def scalar_becomes_an_array(a): s = a.sum(); q = s; s += a; return s, q, s.shape, s.ndim, type(q).__name__
@case(*ONE[:4])
def item_becomes_an_array(a): s = a[0]; s = s + 0; s *= a; return s.shape, s.dtype, s
@case((V,), (I,))
def number_becomes_an_array(a): n = 2; m = n; n -= a; x = -2; y = x ** a.astype(float); x **= a.astype(float); return n.shape, n, m * a, x, y
@case((A.T @ A,))
def matrix_product_in_place(a): c = a; a @= a; return c is a, a, c
@case((V,), (A,))
def matrix_product_in_place_with_a_number(a):
    x = 3
    try: x @= a
    except (TypeError, ValueError) as e: return str(e)
# What is in an array of objects, nobody knows before it is read.
@case((V,), (2,), ("s",), ([1],), (None,), (np.array(0),))
def object_array_of_no_dimension(v): a = np.array(0, dtype=object); a[()] = v; r = a[()]; return isinstance(r, np.ndarray), type(r), hasattr(r, "shape"), r
@case((V,), (2,), ("s",), ([1],), (None,))
def object_array(v): a = np.empty(2, object); a[0] = v; r = a[0]; return isinstance(r, np.ndarray), type(r), r, type(a[1]), len(a), a.shape
@case((1, 2), ("x", "y"), ([1], [2]), (V, V + 1))
def object_array_sums(v, w): a = np.empty(2, object); a[0] = v; a[1] = w; r = a.sum(); return isinstance(r, str), isinstance(r, np.ndarray), type(r), type(a[:1] * 2)
@case((V,), ("s",), (None,))
def object_fields(v): a = np.zeros(2, [("n", "f8"), ("o", "O")]); a["o"][0] = v; r = a[0]["o"]; q = a["o"][0]; return isinstance(r, np.ndarray), type(r), type(q), type(a["n"][0])
@case((V,), (I,))
def cast_to_objects(a): b = a.astype(object); b[0] = "s"; return type(b[0]), type(b[1]), (b[1:] * 2).shape

class Wrapped(np.ndarray):
    """What an operation on these gives is up to them."""
    def __array_wrap__(self, array, context=None, return_scalar=False): return type(self)
@case((V,), (A,))
def made_into_a_subclass(a): x = a.view(Wrapped); y = a.view(type=Wrapped); r = np.add(x, x); return r is Wrapped, np.add(y, 1) is Wrapped, type(r) is type
@case((V,), (A,))
def written_into_a_subclass(a): o = np.empty(a.shape).view(Wrapped); r = np.add(a, 1, out=o); return r is o, r is Wrapped, type(a.view(np.ndarray)), o.sum() is Wrapped
@case((V,), (np.array(5.7),))
def several_results_with_out(a):
    o, e = np.empty(a.shape), np.empty(a.shape, np.int32)
    m, x = np.frexp(a, o, None); n, y = np.frexp(a, out=(None, e)); p, q = np.modf(a, out=(o, None)); d, r = np.divmod(a, 2, o)
    return m is o, x is e, n is o, y is e, p is o, q is o, d is o, r is o, x, y, n, o, e
@case((V,), ([1.0, 2.0, 4.0],))
def no_difference_at_all(a): b = [1, 2]; return np.diff(a, n=0) is a, np.diff(b, n=0) is b, type(np.diff(a, 0)), np.diff(a, n=1), np.diff(a, 2)
# What is found on a constant's class is not always a method of it.
@case((np.log,), (np.add,), (np.frexp,))
def attributes_of_ufuncs(u): s = u.__signature__; return type(s).__name__, isinstance(s, object), str(s), hasattr(u, "no"), u.nin, u.__name__, callable(u.reduce), type(u.__doc__)
@case((3, "ab", 1.5, b"x"),)
def attributes_of_constants(n, s, x, b):
    return type((3).__doc__), type("a".__doc__), (3).from_bytes(b"a", "big"), "a".maketrans("a", "b"), (1.5).fromhex("0x1p1"), n.__doc__ is int.__doc__, b.fromhex("00"), x.__class__
@case((np.dtype("f8"),), (np.dtype([("a", "i4")]),))
def attributes_of_dtypes(d): return type(d.__doc__), d.names, d.itemsize, d.newbyteorder("=") == d, type(d).__name__, hasattr(d, "no")


@case.parametrize()
def test_arrays(case): check_case(case)


# An iterator over an array reads each element when its turn comes, whatever is written meanwhile, and is what iter() gives.
@rows((V,), (I,), (A,), (np.array([]),))
def written_while_iterating(a):
    seen = []
    for v in a: a[1:] += v; seen.append(v)
    return seen, a
@rows((V,), (A,))
def written_by_a_called_function(a):
    def grow(): a[...] += 1; return True
    return [v for v in a if grow()], list(map(lambda v: (grow(), v), a))
@rows((V,), (A,))
def written_under_enumerate_and_zip(a):
    b, seen = a[::-1], []
    for i, v in enumerate(a): b[0] = 9; seen.append((i, v))
    for v, w in zip(a, b): b[...] = v + w; seen.append(v)
    return seen, a
@rows((V,), (A,), (np.array(2.0),))
def written_between_next(a):
    it = iter(a)
    first = next(it)
    a[...] = 5
    return first, next(it), list(it), next(it, None), [v for v in it]
@rows((V,), (A,), (np.array([]),))
def kinds_of_iterators(a): it = iter(a); next(it, None); return type(it).__name__, type(iter(a)).__name__, it.__length_hint__(), list(it), it.__length_hint__()
@rows((V,), (A,))
def no_such_method(a): return iter(a).send(None)
@rows((V,), (A,))
def goes_on_behind_a_break(a):
    it = iter(a)
    first = next(it)
    eval("0")
    a[...] = 7
    return first, next(it), type(it).__name__, list(it), list(it)
@rows((V,), (A,), (V[:2],), (V[:1],), (np.array([]),))
def two_of_them(a): x, y = a; return x, y
@rows((V,), (A,), (V[:2],))
def two_of_a_result(a): x, y = a * 2; return x, y
@rows((V,), (A,), (V[:2],))
def two_of_them_or_not(a):
    try: x, y = a + 1
    except ValueError as e: return str(e)
    return x, y


@rows.parametrize()
@pytest.mark.parametrize("backend", ["eager", lambda graph, *_: graph], ids=["eager", "graph"])
def test_rows(case, backend):
    compiled = cap(case.fn, backend=backend)
    for args in [a for a in case.inputs for _ in range(2)] + [case.inputs[0]]:
        want, got = (observe(f, tuple(np.copy(a) for a in args), filename=__file__) for f in (case.fn, compiled))
        check_same(want, got, f"{case}{args!r}")
