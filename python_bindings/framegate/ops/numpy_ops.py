"""Which functions, methods and attributes of NumPy are operations, and what each promises.

The registry is an allow-list. What is not here is refused, with its reason in ``numpy_refused.py``. The promises hold for exact ``numpy.ndarray``
and NumPy scalars of bool, integer, floating, complex and datetime dtypes; arrays of objects, text and records are never captured.

Rules for adding a row:

1. ``raises`` METADATA: with the same shapes, dtypes and constants, the call either always raises or never does, under the default error state. A
   Python int as a run-time scalar is the exception that NumPy makes for all rows: one that does not fit the array's dtype raises by its value.
2. A row without ``D`` has results whose structure, shape, dtype and strides follow from the same things.
3. ``V`` and ``R`` are "may"; without them the result shares no memory with any argument and is none of them.
4. An argument that decides any of this (axis, shape, mode) has a mark that keeps tensors out; indices that can be out of bounds make the row
   DATA_RAISES.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from framegate import _core

from .row_spec import (
    CHANGES_META,
    CREATES,
    DATA_RAISES,
    META,
    META_RAISES,
    NEVER,
    NONE,
    OTHER,
    SCALAR,
    STATE,
    TENSOR,
    TENSORS,
    D,
    E,
    O,
    R,
    S,
    V,
    W,
    names_of,
    register_table,
)

_UFUNC_KW = "| where casting: order: dtype: subok: signature:"
_GUFUNC_KW = "| axes: axis: keepdims: casting: order: dtype: subok: signature:"

UFUNCS = (
    (TENSOR, META_RAISES, O | S | E, "x / out> " + _UFUNC_KW,
     "abs absolute acos acosh arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh bitwise_count bitwise_invert bitwise_not cbrt ceil "
     "conj conjugate cos cosh deg2rad degrees exp exp2 expm1 fabs floor invert isfinite isinf isnan isnat log log10 log1p log2 logical_not negative "
     "positive rad2deg radians reciprocal rint sign signbit sin sinh spacing sqrt square tan tanh trunc"),
    (TENSOR, META_RAISES, O | S | E, "x1 x2 / out> " + _UFUNC_KW,
     "add arctan2 atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal float_power floor_divide fmax "
     "fmin fmod gcd greater greater_equal heaviside hypot lcm ldexp left_shift less less_equal logaddexp logaddexp2 logical_and logical_or "
     "logical_xor maximum minimum mod multiply nextafter not_equal remainder right_shift subtract true_divide"),
    # Integers to negative integer powers raise.
    (TENSOR, DATA_RAISES, O | S | E, "x1 x2 / out> " + _UFUNC_KW, "pow power"),
    # Without out, which may name some of the results and leave others.
    (TENSORS, META_RAISES, S | E, "x / " + _UFUNC_KW, "frexp modf"),
    (TENSORS, META_RAISES, S | E, "x1 x2 / " + _UFUNC_KW, "divmod"),
    (TENSOR, META_RAISES, O | E, "x1 x2 / out> " + _GUFUNC_KW, "matmul matvec vecdot vecmat"),
)

# Methods of ufuncs: bound to a ufunc that has a row itself, so never one that calls Python. Power reductions raise by data.
UFUNC_METHODS = (
    (TENSOR, DATA_RAISES, O | E, "array axis: dtype: out> keepdims: initial where", "reduce"),
    (TENSOR, DATA_RAISES, O | E, "array axis: dtype: out>", "accumulate"),
    (TENSOR, DATA_RAISES, O | E, "array indices: axis: dtype: out>", "reduceat"),
    (TENSOR, DATA_RAISES, O | S | E, "A B / | out> where casting: order: dtype: subok:", "outer"),
    (NONE, DATA_RAISES, W | S | E, "a! indices b /", "at"),
)

_LIKE_KW = "dtype: order: subok: shape: | device:"

NUMPY = (
    # Reductions.
    (TENSOR, META_RAISES, O, "a axis: out> keepdims: | where", "all any"),
    (TENSOR, META_RAISES, O | E, "a axis: out> keepdims: initial where", "amax amin max min"),
    (TENSOR, META_RAISES, O | E, "a axis: dtype: out> keepdims: initial where", "sum prod nansum nanprod"),
    (TENSOR, META_RAISES, O | E, "a axis: dtype: out> keepdims: | where", "mean nanmean"),
    (TENSOR, META_RAISES, O | E, "a axis: dtype: out> ddof: keepdims: | where mean correction:", "std var nanstd nanvar"),
    (TENSOR, META_RAISES, O | E, "a axis: out> keepdims: initial where", "nanmax nanmin"),
    (TENSOR, META_RAISES, O, "a axis: out> | keepdims:", "argmax argmin"),
    (TENSOR, DATA_RAISES, O, "a axis: out> | keepdims:", "nanargmax nanargmin"),
    (TENSOR, META_RAISES, O | E, "a axis: out> keepdims:", "ptp"),
    (TENSOR, META_RAISES, O | E, "a axis: out> overwrite_input=False keepdims:", "median nanmedian"),
    (TENSOR, DATA_RAISES, O | E, "a q axis: out> overwrite_input=False method: keepdims: | weights",
     "percentile quantile nanpercentile nanquantile"),
    (TENSOR, DATA_RAISES, E, "a axis: weights returned=False | keepdims:", "average"),
    (TENSOR, META_RAISES, O | E, "a axis: dtype: out>", "cumsum cumprod nancumsum nancumprod"),
    (TENSOR, META_RAISES, O | E, "x / | axis: dtype: out> include_initial:", "cumulative_sum cumulative_prod"),
    (TENSOR, META_RAISES, O | E, "a offset: axis1: axis2: dtype: out>", "trace"),
    # Products.
    (TENSOR, META_RAISES, V | R | S | E, "a b out!", "dot"),  # an out without dimensions is written, and a scalar is given back
    (TENSOR, META_RAISES, S | E, "a b", "vdot inner kron"),
    (TENSOR, META_RAISES, O | S | E, "a b out>", "outer"),
    (TENSOR, META_RAISES, E, "a b axes:", "tensordot"),
    (TENSOR, META_RAISES, E, "a b axisa: axisb: axisc: axis:", "cross"),
    (TENSOR, META_RAISES, O | V | E, "subscripts: *operands | out> optimize: dtype: order: casting:", "einsum"),
    (TENSOR, META_RAISES, E, "a v mode:", "convolve correlate"),
    (TENSOR, META_RAISES, E, "m y rowvar: bias: ddof: fweights: aweights: | dtype:", "cov"),
    (TENSOR, META_RAISES, E, "x y rowvar: | dtype:", "corrcoef"),
    # Elementwise.
    (TENSOR, META_RAISES, O | S | E, "a a_min a_max out> | min max where casting: order: dtype: subok:", "clip"),
    (TENSOR, META_RAISES, O | E, "a decimals: out>", "around round"),
    (TENSOR, META_RAISES, O | E, "x out>", "fix isneginf isposinf"),
    (TENSOR, META_RAISES, E, "z deg:", "angle"),
    (TENSOR, META_RAISES, E, "x", "sinc i0"),
    (TENSOR, META_RAISES, 0, "x", "iscomplex isreal"),
    (TENSOR, META_RAISES, V | R, "val", "real"),
    (TENSOR, META_RAISES, V, "val", "imag"),
    (TENSOR, META_RAISES, 0, "x copy=True nan: posinf: neginf:", "nan_to_num"),
    (TENSOR, META_RAISES, D | V | R, "a tol:", "real_if_close"),
    (TENSOR, META_RAISES, S | E, "a b rtol atol equal_nan:", "isclose"),
    (TENSOR, META_RAISES, S, "condition x+ y+ /", "where"),
    (TENSOR, META_RAISES, 0, "condlist choicelist default", "select"),
    (TENSOR, META_RAISES, E, "x xp fp left right period:", "interp"),
    (TENSOR, META_RAISES, E, "p x", "polyval"),
    (TENSOR, META_RAISES, E, "p discont: axis: | period:", "unwrap"),
    (TENSOR, META_RAISES, E, "y x dx: axis:", "trapezoid"),
    # Without n, which gives the argument itself where it is 0, also a list.
    (TENSOR, META_RAISES, V | R | E, "a | axis: prepend append", "diff"),
    (OTHER, META_RAISES, E, "f *varargs | axis: edge_order:", "gradient"),
    (TENSOR, META_RAISES, E, "ary to_end to_begin", "ediff1d"),
    (TENSOR, META_RAISES, 0, "a axis: bitorder:", "packbits"),
    (TENSOR, META_RAISES, 0, "a axis: count: bitorder:", "unpackbits"),
    # Shape: views.
    (TENSOR, META_RAISES, V, "a shape: order: | copy:", "reshape"),
    (TENSOR, META_RAISES, V, "a order:", "ravel"),
    (TENSOR, META_RAISES, V, "a axes:", "transpose permute_dims"),
    (TENSOR, META_RAISES, V, "x /", "matrix_transpose"),
    (TENSOR, META_RAISES, V, "a axis1: axis2:", "swapaxes"),
    (TENSOR, META_RAISES, V, "a source: destination:", "moveaxis"),
    (TENSOR, META_RAISES, V, "a axis: start:", "rollaxis"),
    (TENSOR, META_RAISES, V, "a axis:", "expand_dims flip"),
    (TENSOR, META_RAISES, V | R, "a axis:", "squeeze"),
    (TENSOR, META_RAISES, V, "m", "fliplr flipud"),
    (TENSOR, META_RAISES, V, "m k: axes:", "rot90"),
    (TENSOR, META_RAISES, V, "array shape: subok:", "broadcast_to"),
    (TENSORS, META_RAISES, V | R, "*args | subok:", "broadcast_arrays"),
    (TENSOR, META_RAISES, V | R, "ary", "atleast_1d atleast_2d atleast_3d"),
    (TENSOR, META_RAISES, V, "a offset: axis1: axis2:", "diagonal"),
    (TENSOR, META_RAISES, V, "v k:", "diag"),
    (TENSORS, META_RAISES, V, "ary indices_or_sections: axis:", "array_split split"),
    (TENSORS, META_RAISES, V, "ary indices_or_sections:", "hsplit vsplit dsplit"),
    (TENSORS, META_RAISES, V, "x / | axis:", "unstack"),
    (TENSORS, META_RAISES, V, "*xi | copy: sparse: indexing:", "meshgrid"),
    # Shape: copies.
    (TENSOR, META_RAISES, O, "arrays / axis: out> | dtype: casting:", "concat concatenate"),
    (TENSOR, META_RAISES, O, "arrays axis: out> | dtype: casting:", "stack"),
    (TENSOR, META_RAISES, 0, "tup | dtype: casting:", "hstack vstack dstack"),
    (TENSOR, META_RAISES, 0, "tup", "column_stack"),
    (TENSOR, META_RAISES, 0, "arrays", "block"),
    (TENSOR, META_RAISES, 0, "a order: subok:", "copy"),
    (TENSOR, META_RAISES, V | R | E, "x dtype: / | copy: device:", "astype"),
    (TENSOR, META_RAISES, 0, "v k:", "diagflat"),
    (TENSOR, META_RAISES, 0, "m k:", "tril triu"),
    (TENSOR, META_RAISES, 0, "x N: increasing:", "vander"),
    (TENSOR, META_RAISES, 0, "A reps:", "tile"),
    (TENSOR, META_RAISES, 0, "a repeats: axis:", "repeat"),
    (TENSOR, META_RAISES, 0, "a shift: axis:", "roll"),
    (TENSOR, META_RAISES, 0, "arr values axis:", "append"),
    (TENSOR, META_RAISES, 0, "array pad_width: mode' | stat_length: constant_values end_values reflect_type:", "pad"),
    (TENSOR, META_RAISES, V, "a new_shape:", "resize"),
    # Sorting and indices.
    (TENSOR, META_RAISES, 0, "a axis: kind: order: | stable:", "sort argsort"),
    (TENSOR, META_RAISES, 0, "a kth: axis: kind: order:", "partition argpartition"),
    (TENSOR, META_RAISES, 0, "a", "sort_complex"),
    (TENSOR, META_RAISES, 0, "keys axis:", "lexsort"),
    (TENSOR, META_RAISES, 0, "a v side: sorter:", "searchsorted"),
    (TENSOR, DATA_RAISES, 0, "x bins right:", "digitize"),
    (TENSOR, DATA_RAISES, O, "a indices axis: out> mode:", "take"),
    (TENSOR, DATA_RAISES, 0, "arr indices axis:", "take_along_axis"),
    (TENSOR, DATA_RAISES, O, "a choices out> mode:", "choose"),
    (TENSOR, DATA_RAISES, 0, "multi_index dims: mode: order:", "ravel_multi_index"),
    (TENSORS, DATA_RAISES, 0, "indices shape: order:", "unravel_index"),
    (TENSORS, META_RAISES, 0, "arr", "diag_indices_from"),
    (TENSORS, META_RAISES, 0, "arr k:", "tril_indices_from triu_indices_from"),
    # Results whose size or dtype is in the data.
    (TENSORS, META_RAISES, D, "a", "nonzero"),
    (TENSOR, META_RAISES, D, "a", "argwhere flatnonzero"),
    (TENSOR, DATA_RAISES, D | O, "condition a axis: out>", "compress"),
    (TENSOR, DATA_RAISES, D, "condition arr", "extract"),
    (TENSOR, DATA_RAISES, D, "arr obj values axis:", "insert"),
    (TENSOR, DATA_RAISES, D, "arr obj axis:", "delete"),
    (TENSOR, META_RAISES, D, "ar return_index=False return_inverse=False return_counts=False axis: | equal_nan: sorted:", "unique"),
    (TENSORS, META_RAISES, D, "x /", "unique_all unique_counts unique_inverse"),
    (TENSOR, META_RAISES, D, "x /", "unique_values"),
    (TENSOR, META_RAISES, D, "ar1 ar2 assume_unique: return_indices=False", "intersect1d"),
    (TENSOR, META_RAISES, D | V, "ar1 ar2 assume_unique:", "setdiff1d setxor1d"),
    (TENSOR, META_RAISES, D, "ar1 ar2", "union1d"),
    (TENSOR, META_RAISES, D | V | R, "filt trim: axis:", "trim_zeros"),
    (TENSORS, META_RAISES, D | V | R, "*args", "ix_"),
    (TENSOR, DATA_RAISES, D, "x / weights minlength:", "bincount"),
    (TENSORS, DATA_RAISES, D | E, "a bins: range: density: weights", "histogram"),
    (TENSOR, DATA_RAISES, D | E, "a bins: range: weights", "histogram_bin_edges"),
    (TENSORS, DATA_RAISES, D | E, "x y bins: range: density: weights", "histogram2d"),
    (TENSOR, DATA_RAISES, D | E, "seq_of_zeros", "poly"),
    (TENSOR, DATA_RAISES, D | E, "p", "roots"),
    (TENSOR, META_RAISES, D | V | R | E, "a1 a2", "polymul polyadd polysub"),
    (TENSORS, DATA_RAISES, D | V | R | E, "u v", "polydiv"),
    (TENSOR, DATA_RAISES, E, "x y deg: rcond: full=False w cov=False", "polyfit"),
    (TENSOR, META_RAISES, V | R | E, "p m:", "polyder"),
    (TENSOR, META_RAISES, V | R | E, "p m: k:", "polyint"),
    (TENSOR, DATA_RAISES, 0, "element test_elements assume_unique: invert: | kind:", "isin"),
    # Python scalars and metadata.
    (SCALAR, META_RAISES, S | E, "a b rtol atol equal_nan:", "allclose"),
    (SCALAR, META_RAISES, E, "a1 a2 equal_nan:", "array_equal"),
    (SCALAR, META_RAISES, E, "a1 a2", "array_equiv"),
    (META, META_RAISES, 0, "a", "ndim shape"),
    (META, META_RAISES, 0, "a axis:", "size"),
    (META, META_RAISES, 0, "x", "iscomplexobj isrealobj"),
    (META, META_RAISES, 0, "a", "isfortran"),
    (META, META_RAISES, 0, "element", "isscalar"),
    (META, META_RAISES, 0, "y", "iterable"),
    (META, META_RAISES, 0, "*arrays", "common_type result_type"),
    (META, META_RAISES, CREATES, "from_: to: casting:", "can_cast"),
    (META, META_RAISES, CREATES, "type1: type2: /", "promote_types"),
    (META, META_RAISES, CREATES, "arg1: arg2:", "issubdtype"),
    (META, META_RAISES, CREATES, "dtype: kind:", "isdtype"),
    (META, META_RAISES, CREATES, "dtype:", "finfo"),
    (META, META_RAISES, CREATES, "type:", "iinfo"),
    (META, META_RAISES, CREATES, "*args:", "broadcast_shapes"),
    # Creation.
    (TENSOR, META_RAISES, 0, "prototype " + _LIKE_KW, "empty_like"),
    (TENSOR, META_RAISES, 0, "a " + _LIKE_KW, "zeros_like ones_like"),
    (TENSOR, META_RAISES, 0, "a fill_value " + _LIKE_KW, "full_like"),
    (TENSOR, META_RAISES, CREATES, "shape: dtype: order: | device:", "zeros ones empty"),
    (TENSOR, META_RAISES, CREATES, "shape: fill_value dtype: order: | device:", "full"),
    (TENSOR, META_RAISES, CREATES, "start: stop: step: dtype: | device:", "arange"),
    (TENSOR, META_RAISES, CREATES | E, "start stop num: endpoint: retstep=False dtype: axis: | device:", "linspace"),
    (TENSOR, META_RAISES, CREATES | E, "start stop num: endpoint: base dtype: axis:", "logspace"),
    (TENSOR, DATA_RAISES, CREATES | E, "start stop num: endpoint: dtype: axis:", "geomspace"),
    (TENSOR, META_RAISES, CREATES, "N: M: k: dtype: order: | device:", "eye"),
    (TENSOR, META_RAISES, CREATES, "n: dtype:", "identity"),
    (TENSOR, META_RAISES, CREATES, "N: M: k: dtype:", "tri"),
    (TENSOR, META_RAISES, CREATES, "dimensions: dtype: sparse=False", "indices"),
    (TENSORS, META_RAISES, CREATES, "n: ndim:", "diag_indices"),
    (TENSORS, META_RAISES, CREATES, "n: k: m:", "tril_indices triu_indices"),
    (TENSOR, META_RAISES, CREATES, "M:", "bartlett blackman hamming hanning"),
    (TENSOR, META_RAISES, CREATES, "M: beta:", "kaiser"),
    (TENSOR, META_RAISES, CREATES | V | R | E, "object dtype: | copy: order: subok: ndmin:", "array"),
    (TENSOR, META_RAISES, CREATES | V | R | E, "a dtype: order: | device: copy:", "asarray asanyarray"),
    (TENSOR, META_RAISES, CREATES | V | R | E, "a dtype:", "ascontiguousarray asfortranarray"),
    (TENSOR, DATA_RAISES, CREATES | V | R | E, "a dtype: order:", "asarray_chkfinite"),
    (TENSOR, META_RAISES, CREATES | V | R | E, "a dtype: requirements:", "require"),
    # Writes.
    (NONE, META_RAISES, W | S | E, "dst! src casting: where", "copyto"),
    (NONE, META_RAISES, W | S, "a! val wrap:", "fill_diagonal"),
    (NONE, DATA_RAISES, W, "arr! mask vals", "place"),
    (NONE, META_RAISES, W, "a! mask values", "putmask"),
    (NONE, DATA_RAISES, W, "a! ind v mode:", "put"),
    (NONE, DATA_RAISES, W, "arr! indices values axis:", "put_along_axis"),
)

# Scalar types as constructors: np.float32(x). Text, None and out-of-range ints raise by value.
SCALAR_TYPES = (
    (TENSOR, DATA_RAISES, CREATES | S | V | R | E, "x /",
     "bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 longlong ulonglong float16 float32 float64 longdouble complex64 complex128 clongdouble"),
)

LINALG = (
    (TENSOR, DATA_RAISES, E, "a / | upper:", "cholesky"),
    (TENSOR, DATA_RAISES, E, "x p:", "cond"),
    (TENSOR, META_RAISES, E, "x1 x2 / | axis:", "cross vecdot"),
    (TENSOR, META_RAISES, E, "x1 x2 /", "matmul outer"),
    (TENSOR, META_RAISES, E, "a", "det"),
    (TENSORS, META_RAISES, E, "a", "slogdet"),
    (TENSOR, META_RAISES, V, "x / | offset:", "diagonal"),
    (TENSOR, META_RAISES, E, "x / | offset: dtype:", "trace"),
    (TENSOR, META_RAISES, V, "x /", "matrix_transpose"),
    (TENSOR, META_RAISES, E, "a b / | axes:", "tensordot"),
    # The dtype is complex only if an eigenvalue is.
    (TENSORS, DATA_RAISES, D | E, "a", "eig"),
    (TENSOR, DATA_RAISES, D | E, "a", "eigvals"),
    (TENSORS, DATA_RAISES, E, "a UPLO:", "eigh"),
    (TENSOR, DATA_RAISES, E, "a UPLO:", "eigvalsh"),
    (TENSOR, DATA_RAISES, E, "a", "inv"),
    (TENSOR, DATA_RAISES, E, "a rcond hermitian: | rtol", "pinv"),
    (TENSOR, DATA_RAISES, E, "a b", "solve"),
    (TENSORS, DATA_RAISES, D | E, "a b rcond:", "lstsq"),
    (TENSOR, DATA_RAISES, E, "x ord: axis: keepdims:", "norm"),
    (TENSOR, DATA_RAISES, E, "x / | keepdims: ord:", "matrix_norm"),
    (TENSOR, META_RAISES, E, "x / | axis: keepdims: ord:", "vector_norm"),
    (TENSOR, DATA_RAISES, V | R | E, "a n:", "matrix_power"),
    (TENSOR, DATA_RAISES, E, "A tol hermitian: | rtol", "matrix_rank"),
    (TENSOR, META_RAISES, O | E, "arrays | out>", "multi_dot"),
    (OTHER, DATA_RAISES, E, "a mode:", "qr"),
    (OTHER, DATA_RAISES, E, "a full_matrices: compute_uv: hermitian:", "svd"),
    (TENSOR, DATA_RAISES, E, "x /", "svdvals"),
    (TENSOR, DATA_RAISES, E, "a ind:", "tensorinv"),
    (TENSOR, DATA_RAISES, E, "a b axes:", "tensorsolve"),
)

FFT = (
    (TENSOR, META_RAISES, O | E, "a n: axis: norm: out>", "fft ifft rfft irfft hfft ihfft"),
    (TENSOR, META_RAISES, O | E, "a s: axes: norm: out>", "fft2 ifft2 fftn ifftn rfft2 irfft2 rfftn irfftn"),
    (TENSOR, META_RAISES, 0, "x axes:", "fftshift ifftshift"),
    (TENSOR, META_RAISES, CREATES, "n: d: device:", "fftfreq rfftfreq"),
)

# The global generator. Without a size these return Python scalars, so a size is required.
_RANDOM = CREATES | STATE
RANDOM = (
    (TENSOR, META_RAISES, _RANDOM, "d0+ *dn:", "rand randn"),
    (TENSOR, META_RAISES, _RANDOM, "size+", "random random_sample ranf sample standard_normal standard_exponential standard_cauchy"),
    (TENSOR, DATA_RAISES, _RANDOM, "low high size+ dtype:", "randint"),
    (TENSOR, DATA_RAISES, _RANDOM, "a size+ replace: p", "choice"),
    (TENSOR, DATA_RAISES, _RANDOM, "loc scale size+", "normal gumbel laplace logistic"),
    (TENSOR, DATA_RAISES, _RANDOM, "mean sigma size+", "lognormal"),
    (TENSOR, DATA_RAISES, _RANDOM, "low high size+", "uniform"),
    (TENSOR, DATA_RAISES, _RANDOM, "scale size+", "exponential rayleigh"),
    (TENSOR, DATA_RAISES, _RANDOM, "lam size+", "poisson"),
    (TENSOR, DATA_RAISES, _RANDOM, "p size+", "geometric logseries"),
    (TENSOR, DATA_RAISES, _RANDOM, "n p size+", "binomial negative_binomial"),
    (TENSOR, DATA_RAISES, _RANDOM, "n pvals size:", "multinomial"),
    (TENSOR, DATA_RAISES, _RANDOM, "a b size+", "beta"),
    (TENSOR, DATA_RAISES, _RANDOM, "a size+", "pareto power weibull zipf"),
    (TENSOR, DATA_RAISES, _RANDOM, "df size+", "chisquare standard_t"),
    (TENSOR, DATA_RAISES, _RANDOM, "df nonc size+", "noncentral_chisquare"),
    (TENSOR, DATA_RAISES, _RANDOM, "dfnum dfden size+", "f"),
    (TENSOR, DATA_RAISES, _RANDOM, "dfnum dfden nonc size+", "noncentral_f"),
    (TENSOR, DATA_RAISES, _RANDOM, "shape scale size+", "gamma"),
    (TENSOR, DATA_RAISES, _RANDOM, "shape size+", "standard_gamma"),
    (TENSOR, DATA_RAISES, _RANDOM, "ngood nbad nsample size+", "hypergeometric"),
    (TENSOR, DATA_RAISES, _RANDOM, "left mode right size+", "triangular"),
    (TENSOR, DATA_RAISES, _RANDOM, "mu kappa size+", "vonmises"),
    (TENSOR, DATA_RAISES, _RANDOM, "mean scale size+", "wald"),
    (TENSOR, DATA_RAISES, _RANDOM, "alpha size:", "dirichlet"),
    (TENSOR, DATA_RAISES, _RANDOM, "mean cov size: check_valid: tol:", "multivariate_normal"),
    (TENSOR, META_RAISES, _RANDOM, "x", "permutation"),
    (NONE, META_RAISES, W | STATE, "x!", "shuffle"),
    (NONE, DATA_RAISES, _RANDOM, "seed", "seed"),
)

# Methods that arrays and NumPy scalars share and that write nothing.
METHODS = (
    (TENSOR, META_RAISES, O, "self axis: out> keepdims: | where", "all any"),
    (TENSOR, META_RAISES, O | E, "self axis: out> keepdims: initial where", "max min"),
    (TENSOR, META_RAISES, O | E, "self axis: dtype: out> keepdims: initial where", "sum prod"),
    (TENSOR, META_RAISES, O | E, "self axis: dtype: out> keepdims: | where", "mean"),
    (TENSOR, META_RAISES, O | E, "self axis: dtype: out> ddof: keepdims: | where mean correction:", "std var"),
    (TENSOR, META_RAISES, O, "self axis: out> | keepdims:", "argmax argmin"),
    (TENSOR, META_RAISES, O | E, "self axis: dtype: out>", "cumsum cumprod"),
    (TENSOR, META_RAISES, O | E, "self offset: axis1: axis2: dtype: out>", "trace"),
    (TENSOR, META_RAISES, O | S | E, "self min max out> | where casting: order: dtype: subok:", "clip"),
    (TENSOR, META_RAISES, O | E, "self decimals: out>", "round"),
    (TENSOR, META_RAISES, V | R, "self /", "conj conjugate"),
    (TENSOR, META_RAISES, V | R | E, "self dtype: order: casting: subok: copy:", "astype"),
    (TENSOR, META_RAISES, 0, "self order:", "copy flatten"),
    (TENSOR, META_RAISES, V, "self order:", "ravel"),
    (TENSOR, META_RAISES, V, "self *shape: | order: copy:", "reshape"),
    (TENSOR, META_RAISES, V, "self *axes:", "transpose"),
    (TENSOR, META_RAISES, V, "self axis1: axis2: /", "swapaxes"),
    (TENSOR, META_RAISES, V | R, "self axis:", "squeeze"),
    (TENSOR, META_RAISES, V, "self offset: axis1: axis2:", "diagonal"),
    (TENSOR, META_RAISES, V, "self dtype: type=None", "view"),
    (TENSOR, META_RAISES, V, "self dtype: offset:", "getfield"),
    (TENSOR, META_RAISES, V | R, "self device: / | stream:", "to_device"),
    (TENSOR, META_RAISES, 0, "self inplace=False", "byteswap"),
    (TENSOR, META_RAISES, 0, "self repeats: axis:", "repeat"),
    (TENSOR, META_RAISES, 0, "self axis: kind: order: | stable:", "argsort"),
    (TENSOR, META_RAISES, 0, "self kth: axis: kind: order:", "argpartition"),
    (TENSOR, META_RAISES, 0, "self v side: sorter:", "searchsorted"),
    (TENSOR, DATA_RAISES, O, "self indices axis: out> mode:", "take"),
    (TENSOR, DATA_RAISES, O, "self choices out> mode:", "choose"),
    (TENSOR, DATA_RAISES, D | O, "self condition axis: out>", "compress"),
    (TENSORS, META_RAISES, D, "self /", "nonzero"),
    (SCALAR, META_RAISES, 0, "self *args:", "item"),
    (SCALAR, META_RAISES, 0, "self /", "tolist"),
    (SCALAR, META_RAISES, 0, "self order:", "tobytes"),
)

ARRAY_METHODS = (
    (TENSOR, META_RAISES, V | R | S | E, "self b / out!", "dot"),
    (META, META_RAISES, 0, "self /", "__len__"),
    (TENSOR, META_RAISES, 0, "self /", "__copy__"),
    (SCALAR, DATA_RAISES, 0, "self /", "__bool__ __int__ __float__ __complex__ __index__"),
    (NONE, META_RAISES, W, "self! axis: kind: order: | stable:", "sort"),
    (NONE, META_RAISES, W, "self! kth: axis: kind: order:", "partition"),
    (NONE, META_RAISES, W | S | E, "self! value /", "fill"),
    (NONE, DATA_RAISES, W, "self! indices values mode:", "put"),
    (NONE, META_RAISES, W, "self! val dtype: offset:", "setfield"),
    (NONE, META_RAISES, W | CHANGES_META, "self! *new_shape: | refcheck:", "resize"),
    (NONE, META_RAISES, CHANGES_META, "self write: align: uic:", "setflags"),
)

ATTRIBUTES = (
    (META, NEVER, 0, None, "shape ndim size dtype itemsize nbytes strides device"),
    (TENSOR, NEVER, V, None, "T"),
    (TENSOR, META_RAISES, V, None, "mT"),
    (TENSOR, NEVER, V | R, None, "real"),
    (TENSOR, META_RAISES, V, None, "imag"),
)


def register_numpy() -> int:
    """Register the rows of NumPy's main parts; the parts that NumPy itself loads late follow when they are there. Returns the number of names."""
    count = register_table(np, "numpy", UFUNCS) + register_table(np, "numpy", NUMPY) + register_table(np, "numpy", SCALAR_TYPES)
    # A NumPy scalar since 2.4, a Python int before that unless an axis is given.
    axis = "axis:" if isinstance(np.count_nonzero((1,)), np.generic) else "axis+"
    count += register_table(np, "numpy", ((TENSOR, META_RAISES, 0, f"a {axis} | keepdims:", "count_nonzero"),))
    for result, raises, flags, signature, names in UFUNC_METHODS:
        _core.register_bound_ops(np.ufunc, "numpy.ufunc", names_of(names), flags, raises, result, signature)
    count += register_table(np.linalg, "numpy.linalg", LINALG)
    count += register_table(np.ndarray, "ndarray", METHODS) + register_table(np.ndarray, "ndarray", ARRAY_METHODS)
    count += register_table(np.ndarray, "ndarray", ATTRIBUTES, is_attribute=True)
    # A scalar is immutable and its "views" are often itself.
    count += register_table(np.generic, "numpy.generic", METHODS, extra_flags=V | R)
    count += register_table(np.generic, "numpy.generic", ATTRIBUTES, is_attribute=True, extra_flags=V | R)
    for name in names_of(SCALAR_TYPES[0][4]):
        scalar_type = getattr(np, name, None)
        if scalar_type is not None:
            _core.register_op_base(scalar_type, np.generic)
    _core.register_late_ops("numpy.fft", register_fft)
    _core.register_late_ops("numpy.random", register_random)
    return count


def _is_loaded(name: str) -> Any:
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    return None if module is None or getattr(spec, "_initializing", False) else module


def register_fft() -> bool:
    """Register the rows of numpy.fft if it is fully loaded."""
    module = _is_loaded("numpy.fft")
    return module is not None and register_table(module, "numpy.fft", FFT) > 0


def register_random() -> bool:
    """Register the rows of numpy.random if it is fully loaded."""
    module = _is_loaded("numpy.random")
    return module is not None and register_table(module, "numpy.random", RANDOM) > 0
