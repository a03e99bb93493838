"""Operators by name. Built from explicit tuples; nothing registers itself when it is imported."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from ops.control.branch import OPS as BRANCH
from ops.control.loop import OPS as LOOPS
from ops.control.scan import OPS as SCANS
from ops.convolution.conv import OPS as CONV
from ops.convolution.fused import OPS as FUSED_CONV
from ops.convolution.gradient import OPS as CONV_GRADIENT
from ops.convolution.nhwc import OPS as NHWC_CONV
from ops.convolution.nhwc_transpose import OPS as NHWC_CONV_TRANSPOSE
from ops.convolution.transpose import OPS as CONV_TRANSPOSE
from ops.elementwise.activation import OPS as ACTIVATION
from ops.elementwise.activation_gradients import OPS as ACTIVATION_GRADIENTS
from ops.elementwise.binary import OPS as BINARY
from ops.elementwise.cast import OPS as CAST
from ops.elementwise.comparison import OPS as COMPARISON
from ops.elementwise.fused import OPS as FUSED_ELEMENTWISE
from ops.elementwise.power import OPS as POWER
from ops.elementwise.smooth import OPS as SMOOTH
from ops.elementwise.smooth_gradients import OPS as SMOOTH_GRADIENTS
from ops.elementwise.unary import OPS as UNARY
from ops.elementwise.variadic import OPS as VARIADIC
from ops.elementwise.where import OPS as WHERE
from ops.half.ops import OPS as STORED
from ops.index.compress import OPS as COMPRESS
from ops.index.gather import OPS as GATHER
from ops.index.gather_gradient import OPS as GATHER_GRADIENTS
from ops.index.non_max_suppression import OPS as NON_MAX_SUPPRESSION
from ops.index.nonzero import OPS as NONZERO
from ops.index.scatter import OPS as SCATTER
from ops.index.top_k import OPS as TOP_K
from ops.index.unique import OPS as UNIQUE
from ops.movement.arange import OPS as ARANGE
from ops.movement.assign import OPS as ASSIGN
from ops.movement.concat import OPS as CONCAT
from ops.movement.copy import OPS as COPY
from ops.movement.cumulative import OPS as CUMULATIVE
from ops.movement.generate import OPS as GENERATE
from ops.movement.reshape import OPS as RESHAPE
from ops.movement.slicing import OPS as SLICING
from ops.movement.tile import OPS as TILE
from ops.movement.views import OPS as VIEWS
from ops.norm.batch_norm import OPS as BATCH_NORM
from ops.norm.batch_norm_training import OPS as BATCH_NORM_TRAINING
from ops.norm.gradient import OPS as NORM_GRADIENT
from ops.norm.lrn import OPS as LRN
from ops.norm.lrn_gradient import OPS as LRN_GRADIENT
from ops.norm.nhwc_lrn import OPS as NHWC_LRN
from ops.norm.norm import OPS as NORM
from ops.pool.global_pooling import OPS as GLOBAL_POOL
from ops.pool.gradient import OPS as POOL_GRADIENT
from ops.pool.nhwc import OPS as NHWC_POOL
from ops.pool.pool import OPS as POOL
from ops.products.einsum import OPS as EINSUM
from ops.products.fused import OPS as FUSED_MATMUL
from ops.products.gemm import OPS as GEMM
from ops.products.matmul import OPS as MATMUL
from ops.quantised.conv import OPS as QUANTISED_CONV
from ops.quantised.dynamic import OPS as QUANTISED_DYNAMIC
from ops.quantised.linear import OPS as QUANTISED
from ops.quantised.matmul import OPS as QUANTISED_MATMUL
from ops.quantised.nhwc_conv import OPS as NHWC_QUANTISED_CONV
from ops.quantised.sum import OPS as QUANTISED_SUM
from ops.quantised.table import OPS as QUANTISED_TABLE
from ops.recurrent.recurrent import OPS as RECURRENT
from ops.reduce.arg import OPS as ARG
from ops.reduce.losses import OPS as LOSSES
from ops.reduce.reduce import OPS as REDUCE
from ops.reduce.softmax import OPS as SOFTMAX
from ops.reduce.softmax_gradients import OPS as SOFTMAX_GRADIENTS
from ops.schema.schema import OpSchema
from ops.spatial.depth_to_space import OPS as DEPTH
from ops.spatial.pad import OPS as PAD
from ops.spatial.resize import OPS as RESIZE
from ops.tensor.errors import DuplicateOperatorError, UnknownOperatorError
from ops.training.dropout import OPS as DROPOUT
from ops.training.optimisers import OPS as OPTIMISE


def index(*families: Iterable[OpSchema]) -> Mapping[str, OpSchema]:
    """Returns all schemas by name. Raises DuplicateOperatorError."""
    schemas: dict[str, OpSchema] = {}
    for family in families:
        for schema in family:
            if schema.name in schemas:
                raise DuplicateOperatorError(f"two operators are named {schema.name!r}")
            schemas[schema.name] = schema
    return MappingProxyType(schemas)


REGISTRY = index(
    ACTIVATION,
    ACTIVATION_GRADIENTS,
    ARANGE,
    ARG,
    ASSIGN,
    BATCH_NORM,
    BATCH_NORM_TRAINING,
    BINARY,
    BRANCH,
    CAST,
    COMPARISON,
    COMPRESS,
    CONCAT,
    CONV,
    CONV_GRADIENT,
    CONV_TRANSPOSE,
    COPY,
    CUMULATIVE,
    DEPTH,
    DROPOUT,
    EINSUM,
    FUSED_CONV,
    FUSED_ELEMENTWISE,
    FUSED_MATMUL,
    GATHER,
    GATHER_GRADIENTS,
    GEMM,
    GENERATE,
    GLOBAL_POOL,
    LOOPS,
    LOSSES,
    LRN,
    LRN_GRADIENT,
    MATMUL,
    NHWC_CONV,
    NHWC_CONV_TRANSPOSE,
    NHWC_LRN,
    NHWC_POOL,
    NON_MAX_SUPPRESSION,
    NONZERO,
    NORM,
    OPTIMISE,
    NORM_GRADIENT,
    PAD,
    POOL,
    POOL_GRADIENT,
    POWER,
    QUANTISED,
    QUANTISED_CONV,
    QUANTISED_DYNAMIC,
    QUANTISED_MATMUL,
    QUANTISED_SUM,
    QUANTISED_TABLE,
    NHWC_QUANTISED_CONV,
    RECURRENT,
    REDUCE,
    RESHAPE,
    RESIZE,
    SCANS,
    SCATTER,
    SLICING,
    SMOOTH,
    SMOOTH_GRADIENTS,
    SOFTMAX,
    SOFTMAX_GRADIENTS,
    TILE,
    STORED,
    TOP_K,
    UNARY,
    UNIQUE,
    VARIADIC,
    VIEWS,
    WHERE,
)
"""Every operator of this package."""


def find(name: str) -> OpSchema:
    """Returns the schema of that name. Raises UnknownOperatorError."""
    if name not in REGISTRY:
        raise UnknownOperatorError(f"no operator is named {name!r}")
    return REGISTRY[name]
