"""Sample calls of NumPy's operations for test_ops_promises.py: expressions over the names that ``draw`` gives values to.

Names: x y (3, 4) floats; v w (4,) floats; s (4, 4) floats, spd positive definite; c (3, 4) complex; i j (3, 4) ints; n (4,) ints; b (3, 4) and
bv (4,) masks; k (3,) indices into 4; k34 (3, 4) indices into 4; u (8,) uint8; z 0-d float; sc float64 scalar; e sorted (5,) floats; q (2,) in [0, 1];
t (2, 3, 4) floats; f a Fortran-ordered (3, 4); o an output like x. A draw changes values, never metadata.
"""

from __future__ import annotations

import numpy as np

STYLES = ("normal", "zeros", "ones", "nan", "negative", "huge", "lucky")


def draw(style: str, seed: int) -> dict:
    """Values for the names of the samples; the same shapes, dtypes and strides for every style."""
    rng = np.random.default_rng(seed)

    def floats(*shape):
        a = rng.normal(size=shape) * 3
        if style == "zeros":
            a = np.zeros(shape)
        elif style == "ones":
            a = np.ones(shape)
        elif style == "nan":
            a.flat[::2] = np.nan
            a.flat[1 % a.size] = np.inf
        elif style == "negative":
            a = -np.abs(a)
        elif style == "huge":
            a = a * 1e200
        elif style == "lucky":
            a = np.abs(a) + 0.5
        return a

    def ints(*shape):
        a = rng.integers(-5, 100, size=shape)
        if style in ("zeros", "ones"):
            a = np.full(shape, int(style == "ones"), dtype=a.dtype)
        elif style == "negative":
            a = -np.abs(a) - 1
        elif style == "lucky":
            a = np.abs(a) + 1
        return a

    def mask(*shape):
        return {"zeros": np.zeros(shape, bool), "ones": np.ones(shape, bool)}.get(style, rng.random(shape) < 0.5)

    def indices(*shape):
        if style in ("huge", "negative"):
            return np.full(shape, 50 if style == "huge" else -40)
        return rng.integers(0, 3, size=shape)

    s = floats(4, 4)
    square = rng.normal(size=(4, 4))
    names = {
        "x": floats(3, 4), "y": floats(3, 4), "v": floats(4), "w": floats(4), "s": s, "c": floats(3, 4) + 1j * floats(3, 4), "i": ints(3, 4),
        "j": ints(3, 4), "n": ints(4), "b": mask(3, 4), "bv": mask(4), "k": indices(3), "k34": indices(3, 4), "u": ints(8).astype(np.uint8),
        "z": np.array(floats(1)[0]), "sc": np.float64(floats(1)[0]), "e": np.sort(floats(5)), "q": np.abs(np.sin(floats(2))) if style != "huge" else
        np.array([0.2, 1.5]), "t": floats(2, 3, 4), "f": np.asfortranarray(floats(3, 4)), "o": np.zeros((3, 4)), "ov": np.zeros(4), "oi": np.zeros(4, np.int64),
        "spd": square @ square.T + np.eye(4) if style in ("normal", "lucky") else s.copy(), "f32": floats(3, 4).astype(np.float32),
    }
    return names


REDUCE = "all any max min sum prod mean std var argmax argmin cumsum cumprod"
NUMPY_REDUCE = REDUCE + " amax amin nansum nanprod nanmean nanstd nanvar nanmax nanmin nanargmax nanargmin ptp median nanmedian nancumsum nancumprod"
VARIANTS = ("{0})", "{0}, axis=0)", "{0}, axis=-1)")

EXPRESSIONS = """
np.average(x); np.average(x, axis=1, weights=v); np.percentile(x, 30); np.percentile(x, q * 100, axis=0); np.quantile(x, q); np.quantile(x, 0.5, axis=1)
np.nanpercentile(x, 30, axis=1); np.nanquantile(x, q); np.cumulative_sum(v); np.cumulative_prod(v); np.trace(s); np.trace(s, 1); np.count_nonzero(x)
np.count_nonzero(x, axis=0); np.median(x, axis=1, keepdims=True); np.sum(x, where=b); np.max(x, initial=1.0, where=b); np.sum(i, axis=(0, 1)); np.sum(x, axis=())
np.dot(s, v); np.dot(x, s); np.dot(x, 2.0); np.vdot(x, y); np.inner(v, w); np.inner(x, y); np.kron(v, w); np.outer(v, w); np.tensordot(x, y, ((0, 1), (0, 1)))
np.cross(x[:, :3], y[:, :3]); np.einsum('ij->ji', x); np.einsum('ij,kj->ik', x, y); np.einsum('ii->i', s); np.einsum('ij', x); np.convolve(v, w)
np.convolve(v, w, 'same'); np.correlate(v, w); np.cov(x); np.cov(x, y); np.corrcoef(x)
np.clip(x, 0.0, 1.0); np.clip(i, 1, 5); np.clip(x, v, w); np.around(x, 1); np.round(x); np.round(i); np.fix(x); np.isneginf(x); np.isposinf(x); np.angle(c)
np.angle(x); np.sinc(x); np.i0(x); np.iscomplex(c); np.iscomplex(x); np.isreal(c); np.real(x); np.real(c); np.imag(x); np.imag(c); np.nan_to_num(x)
np.nan_to_num(i); np.nan_to_num(z); np.real_if_close(c); np.real_if_close(x); np.isclose(x, y); np.isclose(x, 1.0); np.where(b, x, y); np.where(b, x, 0.0)
np.select([b, ~b], [x, y], 0.0); np.interp(v, e, e); np.interp(v, e, e, period=3.0); np.polyval(v, x); np.unwrap(v); np.trapezoid(x); np.trapezoid(x, axis=0, dx=2.0)
np.diff(x); np.diff(x, axis=0, prepend=x[:1]); np.diff(b); np.gradient(x); np.gradient(v); np.gradient(v, 2.0); np.gradient(v, w)
np.ediff1d(x); np.packbits(b); np.packbits(b, axis=0); np.unpackbits(u); np.unpackbits(u, count=3)
np.reshape(x, (4, 3)); np.reshape(x, (3, 4)); np.reshape(f, -1); np.reshape(x, -1, copy=True); np.ravel(x); np.ravel(v); np.ravel(f); np.transpose(x)
np.transpose(v); np.transpose(t, (2, 0, 1)); np.permute_dims(t, (0, 2, 1)); np.matrix_transpose(t); np.swapaxes(t, 0, 1); np.moveaxis(t, 0, -1)
np.moveaxis(t, 0, 0); np.rollaxis(t, 2); np.rollaxis(t, 0); np.expand_dims(x, 0); np.expand_dims(x, ()); np.flip(x); np.flip(x, 0); np.squeeze(x); np.squeeze(x[:1])
np.fliplr(x); np.flipud(x); np.rot90(x); np.rot90(x, 2); np.rot90(x, 0); np.broadcast_to(v, (3, 4)); np.broadcast_to(x, (3, 4)); np.broadcast_arrays(x, v)
np.broadcast_arrays(x, y); np.atleast_1d(x); np.atleast_2d(v); np.atleast_3d(v); np.atleast_1d(z); np.diagonal(s); np.diag(s); np.diag(v); np.diag(s, 1)
np.array_split(v, 3); np.split(x, 2, axis=1); np.split(v, [1, 3]); np.hsplit(x, 2); np.vsplit(x, 3); np.dsplit(t, 2); np.unstack(x); np.meshgrid(v, w)
np.meshgrid(v, w, copy=False, sparse=True); np.meshgrid(v, w, indexing='ij')
np.concatenate([x, y]); np.concatenate([x]); np.concatenate((x, y), axis=1); np.concatenate([x, i]); np.concat([v, w]); np.stack([x, y]); np.stack([x], axis=-1)
np.hstack([x, y]); np.hstack([v]); np.vstack([x, y]); np.vstack([v]); np.dstack([x, y]); np.dstack([t]); np.column_stack([v, w]); np.column_stack([x]); np.block([[x, y], [y, x]])
np.block([x]); np.block(x); np.copy(x); np.copy(f, order='K'); np.astype(x, np.float32); np.astype(x, np.float64, copy=False); np.astype(x, np.int64); np.diagflat(v); np.tril(x)
np.triu(s, 1); np.vander(v); np.vander(v, 3); np.tile(v, 2); np.tile(x, (1, 1)); np.repeat(x, 2); np.repeat(x, [1, 2, 0], axis=0); np.roll(x, 1); np.roll(x, 0, axis=0)
np.append(x, y); np.append(x, y, axis=0); np.pad(x, 1); np.pad(x, 0); np.pad(x, 1, mode='reflect'); np.pad(x, 1, constant_values=2.0); np.pad(v, (1, 2), mode='edge'); np.resize(x, (2, 2))
np.resize(x, (3, 4)); np.resize(v, 9)
np.sort(x); np.sort(x, axis=None); np.argsort(x); np.argsort(i, kind='stable'); np.partition(v, 2); np.argpartition(v, 2); np.sort_complex(c); np.sort_complex(v); np.lexsort((v, w))
np.searchsorted(e, v); np.searchsorted(e, 1.0, side='right'); np.digitize(x, e); np.take(v, k); np.take(x, k, axis=1); np.take(v, 2); np.take_along_axis(x, k34, 1)
np.choose(k, [v[:3], w[:3], v[:3]]); np.ravel_multi_index((k, k), (4, 4)); np.unravel_index(k, (2, 2)); np.diag_indices_from(s); np.tril_indices_from(s); np.triu_indices_from(s, 1)
np.nonzero(x); np.argwhere(b); np.flatnonzero(b); np.compress(bv, v); np.compress(bv, x, axis=1); np.extract(b, x); np.insert(v, 1, 2.0); np.insert(v, k, 1.0)
np.delete(v, 1); np.delete(v, k); np.unique(i); np.unique(x); np.unique(i, axis=0); np.unique_all(i); np.unique_counts(i); np.unique_inverse(i); np.unique_values(i); np.intersect1d(i, j)
np.setdiff1d(i, j); np.setdiff1d(v, w, assume_unique=True); np.setxor1d(i, j); np.union1d(i, j); np.trim_zeros(v); np.ix_(k, k); np.ix_(bv, bv); np.ix_(v, v); np.bincount(n)
np.bincount(k, weights=v[:3]); np.histogram(x); np.histogram(x, bins=3); np.histogram(x, bins=3, range=(0.0, 1.0)); np.histogram_bin_edges(x, 4); np.histogram2d(v, w); np.poly(v)
np.poly(s); np.roots(v); np.polymul(v, w); np.polyadd(v, w); np.polysub(v, w); np.polydiv(v, w[:2]); np.polyfit(v, w, 1); np.polyder(v); np.polyder(v, 0); np.polyint(v); np.polyint(v, 0)
np.isin(i, n); np.isin(x, v); np.isin(i, n, kind='table'); np.allclose(x, y); np.array_equal(x, y); np.array_equal(x, v); np.array_equiv(x, v)
np.ndim(x); np.shape(x); np.size(x); np.size(x, 1); np.iscomplexobj(c); np.isrealobj(c); np.isfortran(f); np.isscalar(x); np.isscalar(sc); np.iterable(x); np.common_type(x, c); np.result_type(x, i)
np.can_cast(np.int32, np.float32); np.promote_types('f4', 'i8'); np.issubdtype(x.dtype, np.floating); np.isdtype(x.dtype, 'integral'); np.finfo(x.dtype); np.iinfo(np.int32)
np.broadcast_shapes((3, 1), (4,))
np.zeros_like(x); np.ones_like(f); np.zeros_like(x, dtype=int, shape=(2,)); np.full_like(x, 3.0); np.empty_like(x); np.zeros((2, 3)); np.ones(3, dtype=np.float32); np.empty(0)
np.full((2, 2), 7.0); np.full((3, 4), x); np.arange(5); np.arange(0.0, 1.0, 0.25); np.linspace(0.0, 1.0, 5); np.linspace(v, w, 3); np.logspace(0.0, 1.0, 5); np.geomspace(1.0, 8.0, 4)
np.geomspace(v, w, 3); np.eye(3); np.eye(2, 3, k=1); np.identity(3); np.tri(3); np.indices((2, 3)); np.diag_indices(3); np.tril_indices(3); np.triu_indices(3, 1); np.bartlett(5); np.blackman(5)
np.hamming(5); np.hanning(5); np.kaiser(5, 2.0); np.array(x); np.array(x, copy=False); np.array([v, w]); np.array([1.0, 2.0]); np.asarray(x); np.asarray(x, dtype=np.float32); np.asanyarray(x)
np.ascontiguousarray(x); np.ascontiguousarray(f); np.asfortranarray(x); np.asfortranarray(f); np.asarray_chkfinite(x); np.require(x, requirements='C'); np.require(f, requirements='C')
np.copyto(o, x); np.copyto(o, x, where=b); np.fill_diagonal(s, 1.0); np.place(x, b, v); np.putmask(x, b, y); np.put(x, k, v[:3]); np.put_along_axis(x, k34, 1.0, 1)
np.linalg.cholesky(spd); np.linalg.cond(s); np.linalg.cross(x[:, :3], y[:, :3]); np.linalg.vecdot(x, y); np.linalg.matmul(s, s); np.linalg.outer(v, w); np.linalg.det(s)
np.linalg.slogdet(s); np.linalg.diagonal(s); np.linalg.trace(s); np.linalg.matrix_transpose(t); np.linalg.tensordot(x, y, axes=((0, 1), (0, 1))); np.linalg.eig(s); np.linalg.eigvals(s)
np.linalg.eigh(s); np.linalg.eigvalsh(s); np.linalg.inv(s); np.linalg.pinv(s); np.linalg.solve(s, v); np.linalg.lstsq(x, x[:, 0]); np.linalg.norm(x); np.linalg.norm(x, 2)
np.linalg.norm(x, axis=1); np.linalg.matrix_norm(x); np.linalg.vector_norm(x, axis=0); np.linalg.matrix_power(s, 3); np.linalg.matrix_power(s, 1); np.linalg.matrix_power(s, -1)
np.linalg.matrix_power(s, 0); np.linalg.matrix_rank(s); np.linalg.multi_dot([s, s, v]); np.linalg.qr(s); np.linalg.qr(s, 'r'); np.linalg.svd(s); np.linalg.svd(s, compute_uv=False)
np.linalg.svdvals(s); np.linalg.tensorinv(s[:, None], ind=1); np.linalg.tensorsolve(s, v)
np.fft.fft(x); np.fft.fft(v, 3); np.fft.ifft(c); np.fft.rfft(v); np.fft.irfft(c); np.fft.hfft(c); np.fft.ihfft(v); np.fft.fft2(x); np.fft.ifft2(x); np.fft.fftn(t); np.fft.ifftn(t); np.fft.rfft2(x)
np.fft.irfft2(c); np.fft.rfftn(t); np.fft.irfftn(c); np.fft.fftshift(v); np.fft.ifftshift(v); np.fft.fftfreq(5); np.fft.rfftfreq(5); np.fft.fftshift(x, axes=())
np.random.rand(3); np.random.randn(2, 3); np.random.random(4); np.random.random_sample((2, 2)); np.random.ranf(2); np.random.sample(3); np.random.standard_normal(3)
np.random.standard_exponential(3); np.random.standard_cauchy(3); np.random.randint(0, 5, 3); np.random.choice(v, 2); np.random.choice(4, 3); np.random.normal(v, 1.0, 4)
np.random.normal(0.0, v, 4); np.random.gumbel(0.0, 1.0, 3); np.random.laplace(0.0, 1.0, 3); np.random.logistic(0.0, 1.0, 3); np.random.lognormal(0.0, 1.0, 3); np.random.uniform(0.0, 1.0, 3)
np.random.exponential(1.0, 3); np.random.rayleigh(1.0, 3); np.random.poisson(1.0, 3); np.random.geometric(0.5, 3); np.random.logseries(0.5, 3); np.random.binomial(5, 0.5, 3)
np.random.negative_binomial(5, 0.5, 3); np.random.multinomial(5, [0.5, 0.5]); np.random.beta(1.0, 1.0, 3); np.random.pareto(1.0, 3); np.random.power(1.0, 3); np.random.weibull(1.0, 3)
np.random.zipf(2.0, 3); np.random.chisquare(1.0, 3); np.random.standard_t(1.0, 3); np.random.noncentral_chisquare(1.0, 1.0, 3); np.random.f(1.0, 1.0, 3); np.random.noncentral_f(1.0, 1.0, 1.0, 3)
np.random.gamma(1.0, 1.0, 3); np.random.standard_gamma(1.0, 3); np.random.hypergeometric(3, 3, 2, 3); np.random.triangular(0.0, 0.5, 1.0, 3); np.random.vonmises(0.0, 1.0, 3)
np.random.wald(1.0, 1.0, 3); np.random.dirichlet([1.0, 1.0]); np.random.multivariate_normal([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]]); np.random.permutation(v); np.random.permutation(5)
np.random.shuffle(x); np.random.seed(5)
x.trace(); x.clip(0.0, 1.0); x.round(1); i.round(); x.conj(); c.conj(); x.conjugate(); c.conjugate(); x.astype(np.float32); x.astype(np.float64, copy=False); x.astype(np.float64); x.copy(); x.flatten()
f.flatten('K'); x.ravel(); f.ravel(); v.ravel(); x.reshape(4, 3); x.reshape((3, 4)); f.reshape(-1); x.transpose(); t.transpose(1, 0, 2); x.swapaxes(0, 1); x.squeeze(); x[:1].squeeze(); s.diagonal()
x.view(); x.view(np.int64); x.getfield(np.float32, 0); x.to_device('cpu'); x.byteswap(); x.repeat(2); x.argsort(); v.argpartition(1); e.searchsorted(v); v.take(k); k.choose([v[:3], w[:3], v[:3]])
x.compress(bv, axis=1); x.nonzero(); x.item(3); z.item(); x.item(); x.tolist(); x.tobytes(); x.dot(s); x.__len__(); z.__len__(); x.__copy__(); x.__bool__(); z.__bool__(); z.__int__(); z.__float__()
z.__complex__(); n.__index__(); x.sort(); x.sort(axis=0); v.partition(1); x.fill(2.0); x.put(k, v[:3]); x.setfield(1.0, np.float64)
x.shape; x.ndim; x.size; x.dtype; x.itemsize; x.nbytes; x.strides; x.device; x.T; v.T; z.T; x.mT; v.mT; x.real; c.real; x.imag; c.imag; z.real; i.imag; b.real
np.add.reduce(x); np.add.reduce(x, axis=None); np.add.reduce(x, axis=()); np.maximum.reduce(x, axis=1); np.power.reduce(i); np.logical_and.reduce(b); np.add.accumulate(x); np.add.reduceat(v, [0, 2])
np.multiply.outer(v, w); np.add.at(v, k, 1.0); np.add.outer(v, 1.0)
operator.add(x, y); operator.add(x, 1.0); operator.sub(1.0, x); operator.mul(x, y); operator.truediv(x, y); operator.floordiv(i, j); operator.mod(i, j); operator.matmul(s, s); operator.and_(b, b)
operator.or_(i, j); operator.xor(b, b); operator.lshift(i, j); operator.rshift(i, j); operator.eq(x, y); operator.ne(x, y); operator.lt(x, y); operator.le(x, y); operator.gt(x, y); operator.ge(x, y)
operator.pow(x, y); operator.pow(i, j); operator.neg(x); operator.abs(x); operator.inv(i); operator.invert(b); operator.pos(x); operator.iadd(x, y); operator.iadd(sc, 1.0); operator.isub(x, y); operator.imul(x, 2.0)
operator.itruediv(x, y); operator.ifloordiv(i, j); operator.imod(i, j); operator.iand(b, b); operator.ior(i, j); operator.ixor(i, j); operator.ilshift(i, j); operator.irshift(i, j); operator.imatmul(s, s)
operator.ipow(x, y); operator.getitem(x, 1); operator.getitem(x, (0, 0)); operator.getitem(x, slice(1, None)); operator.getitem(x, ...); operator.setitem(x, 1, v); operator.setitem(x, slice(None), 0.0)
operator.truth(z); operator.truth(x); operator.not_(z); operator.index(n); builtins.abs(x); builtins.divmod(i, j); builtins.pow(x, 2); builtins.pow(i, j); builtins.len(x); builtins.len(z); builtins.bool(z)
builtins.int(z); builtins.float(z); builtins.complex(z); builtins.float(x)
np.add(x, y, o); np.add(x, y, out=o); np.clip(x, 0.0, 1.0, out=o); np.sum(x, 0, None, ov); np.sum(x, axis=0, out=ov); np.dot(s, v, ov); np.take(v, [0, 1, 2, 3], out=ov); x.mean(0, None, ov); np.cumsum(v, out=ov)
np.argmax(x, axis=0, out=oi); np.concatenate([v[:2], w[:2]], out=ov); np.add(x, 1.0, where=b); np.matmul(x, s); np.matvec(s, v); np.vecdot(x, y); np.vecmat(v, s); np.matmul(v, w); np.einsum('ij->j', x, out=ov)
"""


def expressions() -> list[str]:
    """All sample expressions, those made by rule included."""
    out = [e.strip() for line in EXPRESSIONS.strip().splitlines() for e in line.split(";") if e.strip()]
    for name in NUMPY_REDUCE.split():
        out += [f"np.{name}(" + variant.format(a) for a in ("x", "i", "z") for variant in VARIANTS]
    for name in REDUCE.split():
        out += [f"x.{name}({args})" for args in ("", "0", "axis=1")]
        out += [f"sc.{name}()"]
    for name in dir(np):
        ufunc = getattr(np, name)
        if isinstance(ufunc, np.ufunc) and ufunc.signature is None:
            operands = ("x", "i", "b", "c", "z", "f32", "sc") if ufunc.nin == 1 else ("x, y", "i, j", "b, b", "c, c", "x, v", "f32, 2", "x, 1.5", "i, 3", "z, z", "2, i")
            out += [f"np.{name}({args})" for args in operands]
    for name in "bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 longlong ulonglong float16 float32 float64 longdouble complex64 complex128 clongdouble".split():
        out += [f"np.{name}({args})" for args in ("x", "i", "z", "1.5")]
    scalar = "conj conjugate copy flatten ravel squeeze transpose item tolist tobytes nonzero argsort round"
    out += [f"sc.{name}()" for name in scalar.split()]
    out += [f"sc.{name}" for name in "shape ndim size dtype itemsize nbytes strides device T real imag".split()]
    return out
