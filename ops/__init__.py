"""Operators: what they take, what they compute, what memory they need. `ops.<name>(var, ...)` adds one to a graph."""

from typing import TYPE_CHECKING

from ops.lazy import homes_of, importer

if TYPE_CHECKING:  # the names for checkers of types and editors; at run time each is imported when it is first used
    from ops.convolution.conv import conv, conv1d, conv2d, conv3d
    from ops.convolution.transpose import conv_transpose
    from ops.elementwise.activation import (
        clip,
        hard_sigmoid,
        hard_swish,
        leaky_relu,
        prelu,
        relu,
        shrink,
        softsign,
        tanh,
        thresholded_relu,
    )
    from ops.elementwise.binary import add, bit_shift, bitwise_and, bitwise_or, bitwise_xor, div, mod, mul, sub
    from ops.elementwise.bit_cast import bit_cast
    from ops.elementwise.cast import cast
    from ops.elementwise.comparison import (
        equal,
        greater,
        greater_or_equal,
        less,
        less_or_equal,
        logical_and,
        logical_or,
        logical_xor,
    )
    from ops.elementwise.power import pow
    from ops.elementwise.smooth import celu, elu, gelu, mish, selu, sigmoid, softplus, swish
    from ops.elementwise.unary import (
        abs,
        acos,
        acosh,
        asin,
        asinh,
        atan,
        atanh,
        bitwise_not,
        ceil,
        cos,
        cosh,
        erf,
        exp,
        floor,
        is_inf,
        is_nan,
        log,
        logical_not,
        neg,
        reciprocal,
        round,
        sign,
        sin,
        sinh,
        sqrt,
        tan,
    )
    from ops.elementwise.variadic import max, mean, min, sum
    from ops.elementwise.where import where
    from ops.index.cache import tensor_scatter
    from ops.index.compress import compress
    from ops.index.gather import gather, gather_elements, gather_nd
    from ops.index.non_max_suppression import non_max_suppression
    from ops.index.nonzero import count_nonzero, nonzero
    from ops.index.scatter import scatter_elements, scatter_nd
    from ops.index.top_k import top_k
    from ops.index.unique import unique
    from ops.movement.arange import arange
    from ops.movement.concat import concat, stack
    from ops.movement.cumulative import cum_prod, cum_sum, reverse_sequence
    from ops.movement.generate import eye_like, hardmax, one_hot, trilu
    from ops.movement.indexing import getitem
    from ops.movement.reshape import flatten, reshape, squeeze, unsqueeze
    from ops.movement.slicing import slice
    from ops.movement.tile import tile
    from ops.movement.views import dropout, expand, identity, split, transpose
    from ops.norm.batch_norm import batch_norm
    from ops.norm.batch_norm_training import batch_norm_running, batch_norm_training
    from ops.norm.lrn import lrn
    from ops.norm.norm import group_norm, instance_norm, layer_norm, rms_norm
    from ops.pool.global_pooling import global_average_pool, global_lp_pool, global_max_pool
    from ops.pool.pool import average_pool, lp_pool, max_pool, max_pool_with_indices
    from ops.products.determinant import det
    from ops.products.einsum import einsum
    from ops.products.gemm import gemm, linear
    from ops.products.matmul import matmul
    from ops.quantised.conv import conv_integer, qlinear_conv
    from ops.quantised.dynamic import dynamic_quantize_linear
    from ops.quantised.linear import dequantize_linear, quantize_linear
    from ops.quantised.matmul import matmul_integer, qlinear_matmul
    from ops.recurrent.recurrent import gru, lstm, rnn
    from ops.reduce.arg import arg_max, arg_min
    from ops.reduce.losses import mse_loss, softmax_cross_entropy
    from ops.reduce.reduce import (
        reduce_l1,
        reduce_l2,
        reduce_log_sum,
        reduce_log_sum_exp,
        reduce_max,
        reduce_mean,
        reduce_min,
        reduce_prod,
        reduce_sum,
        reduce_sum_square,
    )
    from ops.reduce.softmax import log_softmax, softmax
    from ops.schema.attributes import Attribute
    from ops.schema.schema import Binding, Cost, Kernel, OpSchema, Overwrite, Signature, evaluate
    from ops.spatial.deformed import deformed_windows
    from ops.spatial.depth_to_space import depth_to_space, space_to_depth
    from ops.spatial.grid_sample import grid_sample
    from ops.spatial.pad import pad
    from ops.spatial.regions import max_roi_pool, roi_align
    from ops.spatial.resize import resize
    from ops.tensor.errors import OpError
    from ops.tensor.spec import TensorSpec
    from ops.training.dropout import dropout_training
    from ops.training.random_uniform import random_uniform
    from ops.trees.ensemble import tree_ensemble

__all__ = [
    "Attribute",
    "Binding",
    "Cost",
    "Kernel",
    "OpError",
    "OpSchema",
    "Overwrite",
    "Signature",
    "TensorSpec",
    "abs",
    "acos",
    "acosh",
    "add",
    "arange",
    "arg_max",
    "arg_min",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "average_pool",
    "batch_norm",
    "batch_norm_running",
    "batch_norm_training",
    "bit_cast",
    "bit_shift",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "cast",
    "ceil",
    "celu",
    "clip",
    "compress",
    "concat",
    "conv",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_integer",
    "conv_transpose",
    "cos",
    "cosh",
    "count_nonzero",
    "cum_prod",
    "cum_sum",
    "deformed_windows",
    "depth_to_space",
    "dequantize_linear",
    "det",
    "div",
    "dropout",
    "dropout_training",
    "dynamic_quantize_linear",
    "einsum",
    "elu",
    "equal",
    "erf",
    "evaluate",
    "exp",
    "expand",
    "eye_like",
    "flatten",
    "floor",
    "gather",
    "gather_elements",
    "gather_nd",
    "gelu",
    "gemm",
    "getitem",
    "global_average_pool",
    "global_lp_pool",
    "global_max_pool",
    "greater",
    "greater_or_equal",
    "grid_sample",
    "group_norm",
    "gru",
    "hard_sigmoid",
    "hard_swish",
    "hardmax",
    "identity",
    "instance_norm",
    "is_inf",
    "is_nan",
    "layer_norm",
    "leaky_relu",
    "less",
    "less_or_equal",
    "linear",
    "log",
    "log_softmax",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "lp_pool",
    "lrn",
    "lstm",
    "matmul",
    "matmul_integer",
    "max",
    "max_pool",
    "max_pool_with_indices",
    "max_roi_pool",
    "mean",
    "min",
    "mish",
    "mod",
    "mse_loss",
    "mul",
    "neg",
    "non_max_suppression",
    "nonzero",
    "one_hot",
    "pad",
    "pow",
    "prelu",
    "qlinear_conv",
    "qlinear_matmul",
    "quantize_linear",
    "random_uniform",
    "reciprocal",
    "reduce_l1",
    "reduce_l2",
    "reduce_log_sum",
    "reduce_log_sum_exp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "reduce_sum_square",
    "relu",
    "reshape",
    "resize",
    "reverse_sequence",
    "rms_norm",
    "rnn",
    "roi_align",
    "round",
    "scatter_elements",
    "scatter_nd",
    "selu",
    "shrink",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "slice",
    "softmax",
    "softmax_cross_entropy",
    "softplus",
    "softsign",
    "space_to_depth",
    "split",
    "sqrt",
    "squeeze",
    "stack",
    "sub",
    "sum",
    "swish",
    "tan",
    "tanh",
    "tensor_scatter",
    "thresholded_relu",
    "tile",
    "top_k",
    "transpose",
    "tree_ensemble",
    "trilu",
    "unique",
    "unsqueeze",
    "where",
]

_HOMES = homes_of(
    {
        "ops.convolution.conv": "conv conv1d conv2d conv3d",
        "ops.convolution.transpose": "conv_transpose",
        "ops.elementwise.activation": (
            "clip hard_sigmoid hard_swish leaky_relu prelu relu shrink softsign tanh thresholded_relu"
        ),
        "ops.elementwise.binary": "add bit_shift bitwise_and bitwise_or bitwise_xor div mod mul sub",
        "ops.elementwise.bit_cast": "bit_cast",
        "ops.elementwise.cast": "cast",
        "ops.elementwise.comparison": (
            "equal greater greater_or_equal less less_or_equal logical_and logical_or logical_xor"
        ),
        "ops.elementwise.power": "pow",
        "ops.elementwise.smooth": "celu elu gelu mish selu sigmoid softplus swish",
        "ops.elementwise.unary": (
            "abs acos acosh asin asinh atan atanh bitwise_not ceil cos cosh erf exp floor is_inf is_nan log "
            "logical_not neg reciprocal round sign sin sinh sqrt tan"
        ),
        "ops.elementwise.variadic": "max mean min sum",
        "ops.elementwise.where": "where",
        "ops.index.cache": "tensor_scatter",
        "ops.index.compress": "compress",
        "ops.index.gather": "gather gather_elements gather_nd",
        "ops.index.non_max_suppression": "non_max_suppression",
        "ops.index.nonzero": "count_nonzero nonzero",
        "ops.index.scatter": "scatter_elements scatter_nd",
        "ops.index.top_k": "top_k",
        "ops.index.unique": "unique",
        "ops.movement.arange": "arange",
        "ops.movement.concat": "concat stack",
        "ops.movement.cumulative": "cum_sum cum_prod reverse_sequence",
        "ops.movement.generate": "eye_like hardmax one_hot trilu",
        "ops.movement.indexing": "getitem",
        "ops.movement.reshape": "flatten reshape squeeze unsqueeze",
        "ops.movement.slicing": "slice",
        "ops.movement.tile": "tile",
        "ops.movement.views": "dropout expand identity split transpose",
        "ops.norm.batch_norm": "batch_norm",
        "ops.norm.batch_norm_training": "batch_norm_running batch_norm_training",
        "ops.norm.lrn": "lrn",
        "ops.norm.norm": "group_norm instance_norm layer_norm rms_norm",
        "ops.pool.global_pooling": "global_average_pool global_lp_pool global_max_pool",
        "ops.pool.pool": "average_pool lp_pool max_pool max_pool_with_indices",
        "ops.products.determinant": "det",
        "ops.products.einsum": "einsum",
        "ops.products.gemm": "gemm linear",
        "ops.products.matmul": "matmul",
        "ops.quantised.conv": "conv_integer qlinear_conv",
        "ops.quantised.dynamic": "dynamic_quantize_linear",
        "ops.quantised.linear": "dequantize_linear quantize_linear",
        "ops.quantised.matmul": "matmul_integer qlinear_matmul",
        "ops.recurrent.recurrent": "gru lstm rnn",
        "ops.reduce.arg": "arg_max arg_min",
        "ops.reduce.losses": "mse_loss softmax_cross_entropy",
        "ops.reduce.reduce": (
            "reduce_l1 reduce_l2 reduce_log_sum reduce_log_sum_exp reduce_max reduce_mean reduce_min reduce_prod "
            "reduce_sum reduce_sum_square"
        ),
        "ops.reduce.softmax": "log_softmax softmax",
        "ops.schema.attributes": "Attribute",
        "ops.schema.schema": "Binding Cost Kernel OpSchema Overwrite Signature evaluate",
        "ops.spatial.deformed": "deformed_windows",
        "ops.spatial.depth_to_space": "depth_to_space space_to_depth",
        "ops.spatial.grid_sample": "grid_sample",
        "ops.spatial.pad": "pad",
        "ops.spatial.regions": "max_roi_pool roi_align",
        "ops.spatial.resize": "resize",
        "ops.tensor.errors": "OpError",
        "ops.tensor.spec": "TensorSpec",
        "ops.training.dropout": "dropout_training",
        "ops.training.random_uniform": "random_uniform",
        "ops.trees.ensemble": "tree_ensemble",
    }
)
"""Where each public name is defined: module and name in it."""


if not TYPE_CHECKING:  # a checker of types would take every name for one that exists
    _import = importer(__name__, _HOMES)

    def __getattr__(name: str) -> object:
        """Returns a public name. Raises AttributeError for any other name."""
        value = _import(name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted(__all__)
