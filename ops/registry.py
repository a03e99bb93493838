"""Operators by name. An operator's module is imported when its schema is asked for."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType

from attrs import frozen

from ops.schema.schema import OpSchema
from ops.tensor.errors import UnknownOperatorError

OPERATORS: Mapping[str, str] = MappingProxyType(
    {
        "ops.control.branch": "if",
        "ops.control.loop": "loop",
        "ops.control.scan": "scan",
        "ops.convolution.conv": "conv",
        "ops.convolution.fused": "fused_conv",
        "ops.convolution.gradient": "conv_input_gradient conv_weight_gradient",
        "ops.convolution.nhwc": "nhwc_conv",
        "ops.convolution.nhwc_transpose": "nhwc_conv_transpose",
        "ops.convolution.transpose": "conv_transpose",
        "ops.elementwise.activation": (
            "relu tanh prelu clip leaky_relu thresholded_relu shrink hard_sigmoid hard_swish softsign"
        ),
        "ops.elementwise.activation_gradients": (
            "relu_gradient leaky_relu_gradient prelu_gradient clip_gradient hard_sigmoid_gradient "
            "shrink_gradient hard_swish_gradient softsign_gradient tanh_gradient"
        ),
        "ops.elementwise.binary": "add sub mul div mod bit_shift bitwise_and bitwise_or bitwise_xor",
        "ops.elementwise.bit_cast": "bit_cast",
        "ops.elementwise.cast": "cast",
        "ops.elementwise.comparison": "equal less less_or_equal greater greater_or_equal and or xor",
        "ops.elementwise.fused": "fused_elementwise",
        "ops.elementwise.power": "pow",
        "ops.elementwise.smooth": "sigmoid swish gelu elu selu celu softplus mish",
        "ops.elementwise.smooth_gradients": (
            "sigmoid_gradient softplus_gradient elu_gradient swish_gradient gelu_gradient mish_gradient"
        ),
        "ops.elementwise.unary": (
            "abs neg sign not bitwise_not exp log sqrt reciprocal floor ceil round erf is_nan is_inf sin cos tan "
            "asin acos atan sinh cosh asinh acosh atanh"
        ),
        "ops.elementwise.variadic": "sum mean min max",
        "ops.elementwise.where": "where",
        "ops.half.ops": "in_single",
        "ops.index.cache": "tensor_scatter",
        "ops.index.compress": "compress",
        "ops.index.gather": "gather gather_elements gather_nd",
        "ops.index.gather_gradient": "gather_gradient gather_elements_gradient gather_nd_gradient",
        "ops.index.non_max_suppression": "non_max_suppression",
        "ops.index.nonzero": "count_nonzero nonzero",
        "ops.index.scatter": "scatter_elements scatter_nd",
        "ops.index.top_k": "top_k",
        "ops.index.unique": "unique",
        "ops.movement.arange": "arange_count arange",
        "ops.movement.assign": "assign",
        "ops.movement.concat": "concat",
        "ops.movement.copy": "copy",
        "ops.movement.cumulative": "cum_sum cum_prod reverse_sequence",
        "ops.movement.generate": "trilu eye_like one_hot hardmax",
        "ops.movement.reshape": "reshape",
        "ops.movement.slicing": "slice slice_gradient",
        "ops.movement.tile": "tile",
        "ops.movement.views": "identity transpose expand split",
        "ops.norm.batch_norm": "batch_norm",
        "ops.norm.batch_norm_training": "batch_norm_training channel_sums batch_norm_data_gradient",
        "ops.norm.gradient": "norm_data_gradient norm_scale_gradient",
        "ops.norm.lrn": "lrn",
        "ops.norm.lrn_gradient": "lrn_gradient",
        "ops.norm.nhwc_lrn": "nhwc_lrn",
        "ops.norm.norm": "layer_norm rms_norm instance_norm group_norm",
        "ops.pool.global_pooling": "global_average_pool global_max_pool global_lp_pool",
        "ops.pool.gradient": "max_pool_gradient spread_windows",
        "ops.pool.nhwc": "nhwc_max_pool nhwc_average_pool",
        "ops.pool.pool": "max_pool average_pool lp_pool",
        "ops.products.determinant": "det",
        "ops.products.einsum": "einsum",
        "ops.products.fused": "fused_matmul",
        "ops.products.gemm": "gemm",
        "ops.products.matmul": "matmul",
        "ops.quantised.conv": "conv_integer qlinear_conv",
        "ops.quantised.dynamic": "dynamic_quantize_linear",
        "ops.quantised.linear": "quantize_linear dequantize_linear",
        "ops.quantised.matmul": "matmul_integer qlinear_matmul",
        "ops.quantised.nhwc_conv": "nhwc_quantised_conv",
        "ops.quantised.sum": "quantised_add quantised_mean",
        "ops.quantised.table": "look_up",
        "ops.recurrent.recurrent": "rnn gru lstm",
        "ops.reduce.arg": "arg_max arg_min",
        "ops.reduce.losses": "softmax_cross_entropy softmax_cross_entropy_gradient",
        "ops.reduce.reduce": (
            "reduce_max reduce_min reduce_sum reduce_prod reduce_mean reduce_l1 reduce_l2 reduce_sum_square "
            "reduce_log_sum reduce_log_sum_exp"
        ),
        "ops.reduce.softmax": "softmax log_softmax",
        "ops.reduce.softmax_gradients": "softmax_gradient log_softmax_gradient",
        "ops.spatial.deformed": "deformed_windows",
        "ops.spatial.depth_to_space": "depth_to_space space_to_depth",
        "ops.spatial.grid_sample": "grid_sample",
        "ops.spatial.pad": "pad",
        "ops.spatial.regions": "roi_align max_roi_pool",
        "ops.spatial.resize": "resize resize_gradient",
        "ops.training.dropout": "dropout_training",
        "ops.training.optimisers": "sgd_step momentum_step adam_step",
        "ops.training.random_uniform": "random_uniform",
        "ops.trees.ensemble": "tree_ensemble",
    }
)
"""The operators in `OPS` of each module, with spaces between them."""


@frozen(eq=False)
class Registry(Mapping[str, OpSchema]):
    """Schemas by name; `modules` has the module of each."""

    modules: Mapping[str, str]

    def __getitem__(self, name: str) -> OpSchema:
        return _schemas(self.modules[name])[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.modules)

    def __len__(self) -> int:
        return len(self.modules)


REGISTRY = Registry({name: module for module, names in OPERATORS.items() for name in names.split()})
"""Every operator of this package."""


def find(name: str) -> OpSchema:
    """Returns the schema of that name. Raises UnknownOperatorError."""
    if name not in REGISTRY.modules:
        raise UnknownOperatorError(f"no operator is named {name!r}")
    return REGISTRY[name]


@cache
def _schemas(module: str) -> Mapping[str, OpSchema]:
    return {schema.name: schema for schema in import_module(module).OPS}
