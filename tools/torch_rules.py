"""What torch's own schemas do not say about its operations: the hand rules of tools/torch_table.py.

Everything here is a set of names. A name in no set gets the careful default: it may raise by data, and if it is composed of other operations and its
schema names no alias, it may return a view of an argument or the argument itself.
"""

# Raises only for reasons that metadata and constants decide (beside everything tagged pointwise, views and creation functions).
RAISES_METADATA = set("""
abs add sub mul div true_divide neg matmul mm bmm mv dot vdot inner outer ger addmm addmv addbmm baddbmm addr chain_matmul kron tensordot
conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc convolution linear bilinear
softmax log_softmax layer_norm group_norm batch_norm instance_norm rms_norm native_layer_norm native_batch_norm native_group_norm
sum mean prod std var std_mean var_mean amax amin aminmax max min argmax argmin all any norm logsumexp nansum nanmean median nanmedian mode
cumsum cumprod cummax cummin logcumsumexp sort argsort topk kthvalue msort count_nonzero dist
cat concat concatenate stack hstack vstack dstack column_stack row_stack block_diag tile repeat roll flip fliplr flipud rot90 tril triu diag_embed
diagflat diag trace clone where cross cdist pdist cosine_similarity pairwise_distance pixel_shuffle pixel_unshuffle channel_shuffle
avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d
adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d max_pool1d_with_indices max_pool2d_with_indices
relu relu6 elu selu celu gelu silu mish hardswish hardtanh hardsigmoid leaky_relu prelu softplus softshrink hardshrink tanhshrink logsigmoid
log_sigmoid glu threshold sigmoid tanh tanh_ square
dropout alpha_dropout feature_dropout feature_alpha_dropout native_dropout rrelu
mse_loss l1_loss smooth_l1_loss huber_loss soft_margin_loss kl_div poisson_nll_loss hinge_embedding_loss margin_ranking_loss cosine_embedding_loss
triplet_margin_loss binary_cross_entropy_with_logits
scaled_dot_product_attention einsum
upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_bilinear2d upsample_bicubic2d upsample_linear1d upsample_trilinear3d interpolate
im2col col2im unfold fold constant_pad_nd pad reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d
copy fill zero copy_ fill_ zero_ masked_fill lerp addcmul addcdiv clamp clamp_min clamp_max clip renorm
fft_fft fft_ifft fft_rfft fft_irfft fft_hfft fft_ihfft fft_fft2 fft_ifft2 fft_rfft2 fft_irfft2 fft_fftn fft_ifftn fft_rfftn fft_irfftn
fft_fftshift fft_ifftshift fft_fftfreq fft_rfftfreq fft_hfft2 fft_ihfft2 fft_hfftn fft_ihfftn
linalg_vector_norm linalg_diagonal linalg_cross linalg_matmul linalg_vecdot linalg_multi_dot linalg_vander linalg_det linalg_slogdet
det slogdet logdet
cumulative_trapezoid trapezoid trapz cartesian_prod combinations corrcoef diff gradient frexp
rand rand_like randn randn_like randint randint_like randperm empty_like zeros_like ones_like full_like
zeros ones empty full arange range linspace logspace eye empty_strided empty_permuted scalar_tensor complex polar heaviside
tril_indices triu_indices bartlett_window blackman_window hamming_window hann_window kaiser_window
new_zeros new_ones new_empty new_full new_empty_strided
isclose isin isreal logical_and logical_or logical_xor logical_not eq ne lt le gt ge
broadcast_tensors meshgrid atleast_1d atleast_2d atleast_3d nan_to_num float_power
lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell
stft istft sum_to_size equal allclose item to type_as contiguous
result_type promote_types can_cast
absolute negative arccos arccosh arcsin arcsinh arctan arctanh arctan2 fix multiply subtract greater greater_equal less less_equal not_equal
detach
""".split())

# Tagged pointwise or listed above and yet can raise because of values: integer division by zero, negative exponents, asserted ranges.
RAISES_DATA = set("""
floor_divide remainder fmod pow bernoulli binary_cross_entropy normal poisson binomial multinomial polygamma special_polygamma mvlgamma div divide
special_multigammaln floor_divide_ div_ divide_ special_zeta
""".split())

# Composed operations whose result is always newly made.
FRESH = set("""
matmul linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d softmax log_softmax layer_norm group_norm batch_norm instance_norm
rms_norm std var std_mean var_mean norm cross_entropy_loss nll_loss nll_loss_nd nll_loss2d kl_div outer inner ger kron
max_pool1d max_pool2d max_pool3d avg_pool1d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
embedding embedding_bag bilinear cosine_similarity pairwise_distance pdist cdist
hstack vstack dstack column_stack stack concat concatenate selu relu6 prelu tril triu isclose logical_and logical_or logical_xor logical_not
square true_divide divide multiply subtract greater greater_equal less less_equal not_equal negative absolute arccos arccosh arcsin arcsinh arctan
arctan2 arctanh float_power lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell
fft_fft fft_ifft fft_rfft fft_irfft fft_hfft fft_ihfft fft_fft2 fft_ifft2 fft_rfft2 fft_irfft2 fft_fftn fft_ifftn fft_rfftn fft_irfftn
logsumexp nanmean msort argsort isreal cross trapezoid trapz cumulative_trapezoid
where max min all any
binary_cross_entropy_with_logits l1_loss hinge_embedding_loss margin_ranking_loss cosine_embedding_loss triplet_margin_loss poisson_nll_loss
one_hot
""".split())

# The structure, shape or dtype of the result depends on data, beside what is tagged dynamic_output_shape.
DATA_OUTPUT = set("""
nonzero masked_select unique unique_consecutive unique_dim bincount repeat_interleave argwhere tensor_split linalg_lstsq one_hot
histogramdd segment_reduce index
""".split())

# Arguments without which an operation is another one, whose result depends on data.
REQUIRED = {"where": {"input", "other"}}

# The argument of such an operation that says the shape of the result where it is a number.
COUNTS = {"one_hot": "num_classes", "repeat_interleave": "repeats"}

# A compiler that decomposes it drops the check of the data.
NEEDS_DATA = {"one_hot"}

# Uses the random generator although nothing is tagged.
STATE = set("""
lstm gru rnn_tanh rnn_relu scaled_dot_product_attention dropout alpha_dropout feature_dropout feature_alpha_dropout dropout_ alpha_dropout_
feature_dropout_ feature_alpha_dropout_ native_dropout rrelu rrelu_ rand rand_like randn randn_like randint randint_like randperm bernoulli bernoulli_
multinomial normal normal_ poisson binomial uniform_ random_ exponential_ geometric_ cauchy_ log_normal_ fractional_max_pool2d fractional_max_pool3d
fractional_max_pool2d_with_indices fractional_max_pool3d_with_indices
""".split())

# Arguments that are written although the declarations do not say so: running statistics while training.
WRITTEN_ARGUMENTS = {"running_mean", "running_var"}

# Python scalars among the arguments that decide metadata, so none is a run-time value.
NO_SCALARS = set("arange range linspace logspace scalar_tensor".split())

# bool, int and number results: what metadata decides, and what data decides. Names with such results in neither set are refused.
RESULT_META = set("""
size stride dim is_floating_point is_complex is_signed is_same_size result_type promote_types can_cast is_conj is_neg numel
""".split())
RESULT_SCALAR = set("equal allclose item is_nonzero".split())

# Names that a pattern below would refuse and should not.
NOT_REFUSED = set("index_copy index_copy_ grid_sampler grid_sampler_2d grid_sampler_3d".split())

# (reason, names or prefixes ending in a star). First match decides.
REFUSED = (
    ("changes what autograd or another library tracks, not a computation on tensors",
     "retain_grad output_nr data set_data detach_copy record_stream is_leaf q_* requires_grad grad"),
    ("sparse layouts are never captured",
     "*sparse* coalesce is_coalesced indices values crow_indices ccol_indices col_indices row_indices dense_dim hspmm smm sspaddmm saddmm "
     "indices_copy values_copy ccol_indices_copy col_indices_copy crow_indices_copy row_indices_copy sampled_addmm to_dense"),
    ("quantised tensors are never captured",
     "*quantize* *quantized* fake_quantize* fused_moving_avg* int_repr fbgemm_* q_scale q_zero_point q_per_channel_* qscheme choose_qparams* dequantize"),
    ("an internal kernel of one device or library",
     "*mkldnn* cudnn_* miopen_* xnnpack* *onednn* mps_*"),
    ("named dimensions are never captured",
     "align_* refine_names rename rename_ names"),
    ("internal: made for autograd, code generation or one backend",
     "*_backward *_backward_* *_jvp batch_norm_* native_norm* norm_except_dim lift* *_forward_only slow_conv* thnn_conv* conv_depthwise3d "
     "resize_as_sparse_ native_channel_shuffle grid_sampler* convolution_overrideable *_copy affine_grid_generator sym_* "
     "fused_* embedding_renorm_ infinitely_differentiable*"),
    ("reads memory that is no tensor", "from_file frombuffer"),
    ("not a function of its arguments alone", "is_vulkan_available is_pinned is_inference is_distributed pin_memory unsafe_*"),
)
