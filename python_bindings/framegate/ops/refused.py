"""Public names of NumPy and torch that are no operations, and why. A graph break on one of them can cite the reason.

A name is in a row table or here; a test looks for names in neither. Patterns are those of ``fnmatch`` on the dotted name.
"""

from __future__ import annotations

import fnmatch
import functools

CALLS_BACK = "calls a function that the user passes"
IO = "reads or writes files or text"
STATE = "reads or changes the settings of the library, not tensors"
OBJECT = "makes or reads an object that is no tensor"
TYPE = "a type: isinstance tests and conversions are the tracer's work, not operations"
MEMORY = "the answer depends on addresses or on memory that is no tensor"
AUTOGRAD = "part of autograd, whose state is not tensors"
LAYOUT = "sparse, quantised and other special layouts are never captured"
DEVICE = "manages devices, threads or the build, not tensors"
COMPILER = "part of torch's own compiler, script or export machinery"
GONE = "deprecated or removed: raises or warns on each call"
SUBCLASS = "makes a subclass of ndarray, which is never captured"
FORMS = "written as an operator or a builtin call, whose row is in operator_ops.py"
NUMBERS = "works on Python numbers"
OTHER_LIBRARY = "hands memory to or takes it from another library"

# (reason, patterns). The first match decides.
REFUSED: tuple[tuple[str, str], ...] = (
    (CALLS_BACK,
     "numpy.apply_along_axis numpy.apply_over_axes numpy.piecewise numpy.fromfunction numpy.frompyfunc numpy.vectorize numpy.mask_indices "
     "numpy.fromiter Tensor.apply_ Tensor.map_ Tensor.map2_ torch.vmap torch.cond torch.while_loop torch.nn.functional.triplet_margin_with_distance_loss "
     "torch.nn.functional.boolean_dispatch torch.nn.functional.handle_torch_function torch.nn.functional.has_torch_function*"),
    (IO,
     "numpy.save* numpy.load* numpy.fromfile numpy.fromregex numpy.fromstring numpy.genfromtxt numpy.array2string numpy.array_repr numpy.array_str "
     "numpy.base_repr numpy.binary_repr numpy.format_float_* numpy.info numpy.typename numpy.mintypecode numpy.datetime_as_string ndarray.tofile "
     "ndarray.dump ndarray.dumps torch.save torch.load torch.set_printoptions torch.get_file_path torch.typename"),
    (STATE,
     "numpy.get_printoptions numpy.set_printoptions numpy.printoptions numpy.getbufsize numpy.setbufsize numpy.geterr numpy.seterr numpy.geterrcall "
     "numpy.seterrcall numpy.errstate numpy.get_include numpy.show_config numpy.show_runtime numpy.test numpy.linalg.test numpy.fft.test "
     "numpy.random.test torch.get_default_device torch.set_default_* torch.get_deterministic_* torch.set_deterministic_* torch.*deterministic_algorithms* "
     "torch.get_float32_matmul_precision torch.set_float32_matmul_precision torch.is_warn_always_enabled torch.set_warn_always torch.set_flush_denormal"),
    ("changes or reads a random generator as an object",
     "numpy.random.get_state numpy.random.set_state numpy.random.default_rng numpy.random.get_bit_generator numpy.random.set_bit_generator "
     "torch.manual_seed torch.seed torch.initial_seed torch.get_rng_state torch.set_rng_state torch.thread_safe_generator"),
    ("returns bytes or warns on each call", "numpy.random.bytes numpy.random.random_integers"),
    (SUBCLASS, "numpy.asmatrix numpy.bmat numpy.matrix numpy.recarray numpy.memmap numpy.record"),
    (MEMORY,
     "numpy.shares_memory numpy.may_share_memory numpy.frombuffer numpy.from_dlpack ndarray.base ndarray.ctypes ndarray.data ndarray.flags Tensor.data_ptr "
     "Tensor.const_data_ptr Tensor.untyped_storage Tensor.storage Tensor.storage_type Tensor.is_shared Tensor.share_memory_ Tensor.is_set_to "
     "Tensor.storage_offset "
     "torch.is_storage torch.frombuffer"),
    ("the type of the result depends on the value of a scalar", "numpy.min_scalar_type"),
    ("calendars are parsed from text", "numpy.busday* numpy.is_busday numpy.datetime_data"),
    ("plans work instead of doing it", "numpy.einsum_path numpy.nested_iters"),
    ("builds lists of lists", "numpy.histogramdd"),
    (OBJECT,
     "numpy.broadcast numpy.flatiter numpy.ndenumerate numpy.ndindex numpy.nditer numpy.poly1d numpy.ufunc numpy.c_ numpy.r_ numpy.s_ numpy.mgrid "
     "numpy.ogrid numpy.index_exp ndarray.flat Tensor.names Tensor.name Tensor.qscheme Tensor.type Tensor.dim_order Tensor.__array_priority__"),
    (GONE, "numpy.row_stack Tensor.resize Tensor.resize_as Tensor.new Tensor.reinforce Tensor.eig Tensor.lstsq Tensor.solve Tensor.symeig torch.eig "
     "torch.lstsq torch.solve torch.symeig torch.matrix_rank Tensor.volatile Tensor.lu torch.lu"),
    (FORMS, "ndarray.__* Tensor.__* "),
    (TYPE, "numpy.ndarray numpy.dtype numpy.busdaycalendar numpy.bool numpy.bytes_ numpy.str_ numpy.object_ numpy.void numpy.datetime64 "
     "numpy.timedelta64 numpy.character numpy.flexible numpy.generic numpy.number numpy.inexact numpy.floating numpy.complexfloating numpy.integer "
     "numpy.signedinteger numpy.unsignedinteger numpy.linalg.LinAlgError numpy.random.BitGenerator numpy.random.Generator numpy.random.MT19937 "
     "numpy.random.PCG64* numpy.random.Philox numpy.random.RandomState numpy.random.SFC64 numpy.random.SeedSequence"),
    (AUTOGRAD,
     "Tensor.backward Tensor.grad Tensor.grad_fn Tensor.grad_dtype Tensor.register_hook Tensor.register_post_accumulate_grad_hook Tensor.is_leaf "
     "Tensor.retains_grad Tensor.output_nr torch.set_autocast* torch.get_autocast* torch.autocast* torch.is_autocast_c* torch.is_autocast_ipu_enabled torch.is_autocast_xla_enabled torch.clear_autocast_cache torch.is_anomaly* torch.set_anomaly*"),
    (LAYOUT, "Tensor.to_sparse_coo torch.saddmm torch.spmm torch.dsmm torch.hsmm torch.quantized_* Tensor.is_*"),
    (NUMBERS, "torch.sym_*"),
    (OTHER_LIBRARY, "torch.from_dlpack torch.to_dlpack torch.from_numpy torch.asarray Tensor.numpy"),
    (DEVICE,
     "Tensor.ipu Tensor.mtia Tensor.xpu Tensor.module_load torch.get_device_module torch.get_num_* torch.set_num_* torch.init_num_threads "
     "torch.compiled_with_cxx11_abi torch.prepare_multiprocessing_environment torch.profiler_* "),
    (COMPILER,
     "torch.compile torch.fork torch.wait torch.import_ir_module* torch.merge_type_from_type_comment torch.parse_* torch.unify_type_list "
     "torch.classproperty"),
    ("chooses its steps by the values it meets", "torch.lobpcg torch.pca_lowrank torch.svd_lowrank torch.nn.functional.linear_cross_entropy "
     "torch.nn.functional.grouped_mm torch.nn.functional.scaled_mm torch.nn.functional.scaled_grouped_mm"),
    ("hidden indexing entry; x[...] is the way", "Tensor.index Tensor.as_subclass"),
    ("a helper of torch.nn.functional", "torch.nn.functional.assert_int_or_pair"),
)


@functools.lru_cache(maxsize=1)
def _generated() -> dict[str, str]:
    from .torch_table import REFUSED as by_reason

    return {name: reason for reason, names in by_reason.items() for name in names.split()}


def refusal(dotted: str) -> str | None:
    """Why this public name ("numpy.fromfunction", "Tensor.backward") is no operation; None if nothing is known about it."""
    for reason, patterns in REFUSED:
        if any(fnmatch.fnmatchcase(dotted, pattern) for pattern in patterns.split()):
            return reason
    return _generated().get(dotted) if dotted.startswith(("torch.", "Tensor.")) else None
