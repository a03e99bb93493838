"""Operators by name. Built from explicit tuples; nothing registers itself when it is imported."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from ops.activation import OPS as ACTIVATION
from ops.activation_gradients import OPS as ACTIVATION_GRADIENTS
from ops.arange import OPS as ARANGE
from ops.arg import OPS as ARG
from ops.assign import OPS as ASSIGN
from ops.batch_norm import OPS as BATCH_NORM
from ops.batch_norm_training import OPS as BATCH_NORM_TRAINING
from ops.binary import OPS as BINARY
from ops.cast import OPS as CAST
from ops.comparison import OPS as COMPARISON
from ops.compress import OPS as COMPRESS
from ops.concat import OPS as CONCAT
from ops.control import OPS as CONTROL
from ops.conv import OPS as CONV
from ops.conv_gradient import OPS as CONV_GRADIENT
from ops.conv_transpose import OPS as CONV_TRANSPOSE
from ops.copy import OPS as COPY
from ops.cumulative import OPS as CUMULATIVE
from ops.depth import OPS as DEPTH
from ops.dropout import OPS as DROPOUT
from ops.einsum import OPS as EINSUM
from ops.errors import DuplicateOperatorError, UnknownOperatorError
from ops.fused_conv import OPS as FUSED_CONV
from ops.fused_elementwise import OPS as FUSED_ELEMENTWISE
from ops.fused_matmul import OPS as FUSED_MATMUL
from ops.gather import OPS as GATHER
from ops.gather_gradient import OPS as GATHER_GRADIENTS
from ops.gemm import OPS as GEMM
from ops.generate import OPS as GENERATE
from ops.global_pool import OPS as GLOBAL_POOL
from ops.losses import OPS as LOSSES
from ops.lrn import OPS as LRN
from ops.lrn_gradient import OPS as LRN_GRADIENT
from ops.matmul import OPS as MATMUL
from ops.nhwc.conv import OPS as NHWC_CONV
from ops.nhwc.conv_transpose import OPS as NHWC_CONV_TRANSPOSE
from ops.nhwc.lrn import OPS as NHWC_LRN
from ops.nhwc.pool import OPS as NHWC_POOL
from ops.nhwc.quantised_conv import OPS as NHWC_QUANTISED_CONV
from ops.non_max_suppression import OPS as NON_MAX_SUPPRESSION
from ops.nonzero import OPS as NONZERO
from ops.norm import OPS as NORM
from ops.norm_gradient import OPS as NORM_GRADIENT
from ops.optimise import OPS as OPTIMISE
from ops.pad import OPS as PAD
from ops.pool import OPS as POOL
from ops.pool_gradient import OPS as POOL_GRADIENT
from ops.power import OPS as POWER
from ops.quantised import OPS as QUANTISED
from ops.quantised_conv import OPS as QUANTISED_CONV
from ops.quantised_dynamic import OPS as QUANTISED_DYNAMIC
from ops.quantised_matmul import OPS as QUANTISED_MATMUL
from ops.quantised_sum import OPS as QUANTISED_SUM
from ops.quantised_table import OPS as QUANTISED_TABLE
from ops.recurrent import OPS as RECURRENT
from ops.reduce import OPS as REDUCE
from ops.reshape import OPS as RESHAPE
from ops.resize import OPS as RESIZE
from ops.scatter import OPS as SCATTER
from ops.schema import OpSchema
from ops.slicing import OPS as SLICING
from ops.smooth import OPS as SMOOTH
from ops.smooth_gradients import OPS as SMOOTH_GRADIENTS
from ops.softmax import OPS as SOFTMAX
from ops.softmax_gradients import OPS as SOFTMAX_GRADIENTS
from ops.stored.single import OPS as STORED
from ops.tile import OPS as TILE
from ops.top_k import OPS as TOP_K
from ops.unary import OPS as UNARY
from ops.unique import OPS as UNIQUE
from ops.variadic import OPS as VARIADIC
from ops.views import OPS as VIEWS
from ops.where import OPS as WHERE


def index(*families: Iterable[OpSchema]) -> Mapping[str, OpSchema]:
    """All schemas by name. Raises DuplicateOperatorError."""
    found: dict[str, OpSchema] = {}
    for family in families:
        for schema in family:
            if schema.name in found:
                raise DuplicateOperatorError(f"two operators are named {schema.name!r}")
            found[schema.name] = schema
    return MappingProxyType(found)


REGISTRY = index(
    ACTIVATION,
    ACTIVATION_GRADIENTS,
    ARANGE,
    ARG,
    ASSIGN,
    BATCH_NORM,
    BATCH_NORM_TRAINING,
    BINARY,
    CAST,
    COMPARISON,
    COMPRESS,
    CONCAT,
    CONTROL,
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
    """The schema of that name. Raises UnknownOperatorError."""
    if name not in REGISTRY:
        raise UnknownOperatorError(f"no operator is named {name!r}")
    return REGISTRY[name]
