"""Rows of torch: the generated table (torch_table.py) plus what no declaration describes, written by hand.

Functions of torch.nn.functional that are written in Python are operations as a whole: all they do with the outside is tensor work, reading their
arguments, and (dropout and its kin) the random generator. Functions that take a callable, and everything about autograd, hooks, optimisers,
distributed work and data loading, have no row; refused.py says why.

Every row that may return a view may also return the argument itself: which of the two it is depends on sizes, strides and dtype.
"""

from __future__ import annotations

import sys

from framegate import _core

from .row_spec import (
    CHANGES_META,
    CREATES,
    DATA_RAISES,
    META,
    META_RAISES,
    NEEDS_DATA,
    NEVER,
    ORDER,
    OTHER,
    SCALAR,
    SELF,
    STATE,
    TENSOR,
    TENSORS,
    D,
    O,
    R,
    S,
    V,
    W,
    register_table,
)

_OPTIONS = "dtype: device: requires_grad: pin_memory:"
_LOSS = "size_average: reduce: reduction:"

TORCH = (
    (OTHER, META_RAISES, V | R, "*tensors", "atleast_1d atleast_2d atleast_3d"),
    (TENSOR, META_RAISES, 0, "*tensors", "block_diag"),
    (TENSORS, META_RAISES, V | R, "*tensors", "broadcast_tensors"),
    (TENSORS, META_RAISES, V | R, "*tensors | indexing:", "meshgrid"),
    (TENSOR, META_RAISES, V | R, "*tensors", "cartesian_prod"),
    (TENSOR, META_RAISES, V | R, "*matrices | out>", "chain_matmul"),
    (TENSOR, META_RAISES, V | R, "equation: *operands", "einsum"),
    (TENSOR, META_RAISES, 0, "x1 x2 p: compute_mode:", "cdist"),
    (TENSOR, META_RAISES, O, "input p: dim: keepdim: out> dtype:", "norm"),
    (TENSORS, META_RAISES, V | R, "tensor split_size_or_sections: dim:", "split"),
    (TENSOR, META_RAISES, V | R | O, "a b dims: out>", "tensordot"),
    (TENSOR, DATA_RAISES, 0, "input n_fft: hop_length: win_length: window center: pad_mode: normalized: onesided: return_complex: align_to_window:",
     "stft"),
    (TENSOR, META_RAISES, 0, "src embed_dim: num_heads: qkv_weight qkv_bias proj_weight proj_bias use_gelu: norm_first: eps: norm_weight_1 norm_bias_1 "
     "norm_weight_2 norm_bias_2 ffn_weight_1 ffn_bias_1 ffn_weight_2 ffn_bias_2 mask mask_type:", "_transformer_encoder_layer_fwd"),
    (OTHER, META_RAISES, D, "input sorted: return_inverse: return_counts: dim:", "unique"),
    (OTHER, META_RAISES, D, "input return_inverse: return_counts: dim:", "unique_consecutive"),
    (TENSORS, DATA_RAISES, 0, "indices shape:", "unravel_index"),
    (TENSOR, DATA_RAISES, CREATES | S | NEEDS_DATA, "data / | " + _OPTIONS, "tensor"),
    (TENSOR, DATA_RAISES, CREATES | V | R, "data dtype: device:", "as_tensor"),
    (TENSOR, META_RAISES, V | R | NEEDS_DATA, "input r: with_replacement:", "combinations"),
    (TENSOR, META_RAISES, V | R | NEEDS_DATA, "input", "corrcoef"),
    (TENSOR, DATA_RAISES, V | R | NEEDS_DATA, "input | correction: fweights aweights", "cov"),
    (META, META_RAISES, 0, "obj /", "is_tensor"),
    (META, META_RAISES, 0, "input", "numel get_device"),
    (META, META_RAISES, CREATES, "*shapes:", "broadcast_shapes"),
    (META, META_RAISES, CREATES, "type:", "finfo iinfo"),
    # The thread's state, which is a fact of every entry that uses torch.
    (META, NEVER, CREATES, "", "is_grad_enabled is_inference_mode_enabled get_default_dtype"),
    (META, META_RAISES, CREATES, "device_type:", "is_autocast_enabled"),
)

FUNCTIONAL = (
    # Activations: one argument says whether the first is written.
    (TENSOR, META_RAISES, V | R, "input inplace?", "relu relu6 selu silu mish hardswish hardsigmoid"),
    (TENSOR, META_RAISES, V | R, "input alpha: inplace?", "elu celu"),
    (TENSOR, META_RAISES, V | R, "input negative_slope: inplace?", "leaky_relu"),
    (TENSOR, META_RAISES, V | R, "input min_val: max_val: inplace?", "hardtanh"),
    (TENSOR, META_RAISES, V | R, "input threshold: value: inplace?", "threshold"),
    (TENSOR, META_RAISES, 0, "input", "sigmoid tanh softsign tanhshrink logsigmoid"),
    (TENSOR, META_RAISES, 0, "input dim: _stacklevel: dtype:", "softmax log_softmax softmin"),
    (TENSOR, META_RAISES, 0, "input dim:", "glu"),
    # Random.
    (TENSOR, META_RAISES, STATE | V | R, "input p: training: inplace?", "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout"),
    (TENSOR, META_RAISES, STATE | V | R, "input lower: upper: training: inplace?", "rrelu"),
    (TENSOR, META_RAISES, STATE, "logits tau: hard: eps: dim:", "gumbel_softmax"),
    (OTHER, DATA_RAISES, STATE, "input kernel_size: output_size: output_ratio: return_indices: _random_samples",
     "fractional_max_pool2d fractional_max_pool3d"),
    (TENSORS, DATA_RAISES, STATE, "input kernel_size: output_size: output_ratio: return_indices: _random_samples",
     "fractional_max_pool2d_with_indices fractional_max_pool3d_with_indices"),
    (OTHER, META_RAISES, STATE | V | R,
     "query key value embed_dim_to_check: num_heads: in_proj_weight in_proj_bias bias_k bias_v add_zero_attn: dropout_p: out_proj_weight "
     "out_proj_bias training: key_padding_mask need_weights: attn_mask use_separate_proj_weight: q_proj_weight k_proj_weight v_proj_weight static_k "
     "static_v average_attn_weights: is_causal:", "multi_head_attention_forward"),
    # Normalisation.
    (TENSOR, META_RAISES, 0, "input running_mean! running_var! weight bias training: momentum: eps:", "batch_norm"),
    (TENSOR, META_RAISES, 0, "input running_mean! running_var! weight bias use_input_stats: momentum: eps:", "instance_norm"),
    (TENSOR, META_RAISES, 0, "input normalized_shape: weight bias eps:", "layer_norm"),
    (TENSOR, META_RAISES, 0, "input normalized_shape: weight eps:", "rms_norm"),
    (TENSOR, META_RAISES, 0, "input num_groups: weight bias eps:", "group_norm"),
    (TENSOR, META_RAISES, 0, "input size: alpha: beta: k:", "local_response_norm"),
    (TENSOR, META_RAISES, O, "input p: dim: eps: out>", "normalize"),
    # Pooling and resampling.
    (TENSOR, META_RAISES, V | R, "input output_size:", "adaptive_avg_pool2d adaptive_avg_pool3d"),
    (OTHER, META_RAISES, 0, "input output_size: return_indices:", "adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d"),
    (TENSORS, META_RAISES, 0, "input output_size: return_indices:",
     "adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices"),
    (OTHER, META_RAISES, 0, "input kernel_size: stride: padding: dilation: ceil_mode: return_indices:", "max_pool1d max_pool2d max_pool3d"),
    (TENSORS, META_RAISES, 0, "input kernel_size: stride: padding: dilation: ceil_mode: return_indices:",
     "max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices"),
    (TENSOR, DATA_RAISES, 0, "input indices kernel_size: stride: padding: output_size:", "max_unpool1d max_unpool2d max_unpool3d"),
    (TENSOR, META_RAISES, 0, "input norm_type: kernel_size: stride: ceil_mode:", "lp_pool1d lp_pool2d lp_pool3d"),
    (TENSOR, META_RAISES, V | R, "input size: scale_factor: mode: align_corners: recompute_scale_factor: antialias:", "interpolate"),
    (TENSOR, META_RAISES, V | R, "input size: scale_factor: mode: align_corners:", "upsample"),
    (TENSOR, META_RAISES, V | R, "input size: scale_factor:", "upsample_nearest upsample_bilinear"),
    (TENSOR, META_RAISES, 0, "theta size: align_corners:", "affine_grid"),
    (TENSOR, META_RAISES, 0, "input grid mode: padding_mode: align_corners:", "grid_sample"),
    (TENSOR, META_RAISES, 0, "input output_size: kernel_size: dilation: padding: stride:", "fold"),
    (TENSOR, META_RAISES, 0, "input kernel_size: dilation: padding: stride:", "unfold"),
    (TENSOR, META_RAISES, V | R, "input pad: mode: value:", "pad"),
    # Losses and look-ups. With max_norm an embedding rewrites its weight.
    (TENSOR, DATA_RAISES, 0, "input weight padding_idx: max_norm=None norm_type: scale_grad_by_freq: sparse=False", "embedding"),
    (TENSOR, DATA_RAISES, 0, "input weight offsets max_norm=None norm_type: scale_grad_by_freq: mode: sparse=False per_sample_weights "
     "include_last_offset: padding_idx:", "embedding_bag"),
    (TENSOR, DATA_RAISES, 0, "input target weight " + _LOSS, "binary_cross_entropy multilabel_soft_margin_loss"),
    (TENSOR, META_RAISES, 0, "input target weight " + _LOSS + " pos_weight", "binary_cross_entropy_with_logits"),
    (TENSOR, DATA_RAISES, 0, "input target weight size_average: ignore_index: reduce: reduction: label_smoothing:", "cross_entropy"),
    (TENSOR, DATA_RAISES, 0, "input target weight size_average: ignore_index: reduce: reduction:", "nll_loss"),
    (TENSOR, DATA_RAISES, NEEDS_DATA, "log_probs targets input_lengths target_lengths blank: reduction: zero_infinity:", "ctc_loss"),
    (TENSOR, META_RAISES, 0, "input target " + _LOSS + " weight", "mse_loss l1_loss"),
    (TENSOR, META_RAISES, 0, "input target " + _LOSS + " beta:", "smooth_l1_loss"),
    (TENSOR, META_RAISES, 0, "input target reduction: delta: weight", "huber_loss"),
    (TENSOR, META_RAISES, 0, "input target " + _LOSS, "soft_margin_loss"),
    (TENSOR, META_RAISES, 0, "input target " + _LOSS + " log_target:", "kl_div"),
    (TENSOR, META_RAISES, 0, "input target log_input: full: size_average: eps: reduce: reduction:", "poisson_nll_loss"),
    (TENSOR, DATA_RAISES, NEEDS_DATA, "input target var full: eps: reduction:", "gaussian_nll_loss"),
    (TENSOR, META_RAISES, 0, "input target margin: " + _LOSS, "hinge_embedding_loss"),
    (TENSOR, META_RAISES, 0, "input1 input2 target margin: " + _LOSS, "margin_ranking_loss cosine_embedding_loss"),
    (TENSOR, META_RAISES, 0, "anchor positive negative margin: p: eps: swap: " + _LOSS, "triplet_margin_loss"),
    (TENSOR, DATA_RAISES, 0, "input target p: margin: weight " + _LOSS, "multi_margin_loss"),
    (TENSOR, DATA_RAISES, 0, "input target " + _LOSS, "multilabel_margin_loss"),
)

TENSOR_METHODS = (
    # The parser of .to() takes a device, a dtype or a tensor first.
    (TENSOR, META_RAISES, V | R, "self other *args: | dtype: device: non_blocking: copy: memory_format:", "to"),
    (TENSOR, META_RAISES, V | R, "self | memory_format:", "bfloat16 bool byte cdouble cfloat char cpu double float half int long short"),
    (TENSOR, META_RAISES, V | R, "self device: non_blocking: memory_format:", "cuda"),
    (TENSOR, META_RAISES, V | R, "self p: dim: keepdim: dtype:", "norm"),
    (TENSORS, META_RAISES, V | R, "self split_size: dim:", "split"),
    (TENSOR, META_RAISES, V | R, "self dim: sizes:", "unflatten"),
    (TENSOR, DATA_RAISES, 0, "self n_fft: hop_length: win_length: window center: pad_mode: normalized: onesided: return_complex: align_to_window:",
     "stft"),
    (TENSOR, DATA_RAISES, 0, "self n_fft: hop_length: win_length: window center: normalized: onesided: length: return_complex:", "istft"),
    (OTHER, META_RAISES, D, "self sorted: return_inverse: return_counts: dim:", "unique"),
    (OTHER, META_RAISES, D, "self return_inverse: return_counts: dim:", "unique_consecutive"),
    (TENSOR, DATA_RAISES, NEEDS_DATA, "self data | " + _OPTIONS, "new_tensor"),
    (TENSOR, META_RAISES, V | R | NEEDS_DATA, "self", "corrcoef"),
    (TENSOR, DATA_RAISES, V | R | NEEDS_DATA, "self | correction: fweights aweights", "cov"),
    (META, META_RAISES, 0, "self", "__len__ ndimension nelement numel element_size get_device is_complex is_floating_point is_signed dim"),
    (META, META_RAISES, 0, "self dim:", "size"),
    (META, META_RAISES, ORDER, "self dim:", "stride"),
    (META, META_RAISES, ORDER, "self memory_format:", "is_contiguous"),
    (SCALAR, META_RAISES, 0, "self", "tolist"),
    (SCALAR, DATA_RAISES, 0, "self", "__bool__ __int__ __float__ __complex__ __index__"),
    (SELF, META_RAISES, W | CHANGES_META, "self! requires_grad:", "requires_grad_"),
    (TENSOR, META_RAISES, V | R, "self other", "view_as expand_as reshape_as"),
)

TENSOR_ATTRIBUTES = (
    (META, NEVER, 0, None, "shape ndim dtype device layout requires_grad itemsize nbytes is_cpu is_cuda is_meta is_mps is_xpu is_quantized is_sparse "
     "is_sparse_csr is_mkldnn is_nested"),
    (TENSOR, META_RAISES, V | R, None, "T H mT mH real imag"),
    (TENSOR, NEVER, V | R, None, "data"),
)


def register_torch() -> int:
    """Register torch's rows. torch must be fully imported. Returns the number of names."""
    torch = sys.modules["torch"]
    from .torch_table import TABLES

    owners = {
        "torch": torch,
        "Tensor": torch.Tensor,
        "torch.nn.functional": torch.nn.functional,
        "torch.linalg": torch.linalg,
        "torch.fft": torch.fft,
        "torch.special": torch.special,
    }
    # torch.nn.functional re-exports functions of torch: the owner that comes last names the row, so torch does.
    count = 0
    for owner in ("torch.nn.functional", "torch.special", "torch.fft", "torch.linalg", "Tensor", "torch"):
        count += register_table(owners[owner], owner, TABLES[owner])
    count += register_table(torch, "torch", TORCH)
    count += register_table(torch.nn.functional, "torch.nn.functional", FUNCTIONAL)
    count += register_table(torch.Tensor, "Tensor", TENSOR_METHODS)
    count += register_table(torch.Tensor, "Tensor", TENSOR_ATTRIBUTES, is_attribute=True)
    _core.register_op_base(torch.nn.Parameter, torch.Tensor)
    return count
