"""Product of matrices, scale, bias, addition of a tensor and activation as one operator. Passes fuse these.

The output may overwrite the tensor that is added: a residual addition is computed in place.
"""

import math

import numpy as np

from ops.common.epilogue import BIAS, CLIP, GELU_ERF, GELU_TANH, LEAK, NONE, RESIDUAL, SILU
from ops.common.tiling import matmul_stripes
from ops.products.fused_blas import FUSED_BLAS
from ops.products.kernels import FUSED_KERNELS
from ops.products.matmul import MATMUL, matmul_cost
from ops.products.onednn import PACKED
from ops.products.onednn_strided import STRIDED
from ops.schema.attributes import Attribute, flag, number, one_of
from ops.schema.schema import Attrs, OpSchema, Specs, overwrites_from
from ops.tensor.errors import AttributeValueError, DtypeError, ShapeError
from ops.tensor.spec import TensorSpec, broadcast_shapes

_WIDE = frozenset({np.dtype("float32"), np.dtype("float64")})
_IDLE = {NONE: ("low", "high", "slope"), CLIP: ("slope",), LEAK: ("low", "high")}
_DEFAULTS = {"low": -math.inf, "high": math.inf, "slope": 1.0}


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    a, b = inputs[:2]
    if a.dtype not in _WIDE:
        raise DtypeError(f"takes float32 or float64, not {a.dtype}")
    if a.ndim < 2 or b.ndim < 2:
        raise ShapeError(f"takes matrices, not {a} and {b}")
    right = b.with_shape((*b.shape[:-2], b.shape[-1], b.shape[-2])) if attrs["transpose_b"] else b
    (y,) = MATMUL.infer((a, right), {})
    for added in inputs[BIAS:RESIDUAL]:
        if added != y.with_shape(y.shape[-1:]):
            raise ShapeError(f"the bias is {added}, but the product is {y}")
    for added in inputs[RESIDUAL:]:
        _check_added(added, y)
    for name in _IDLE.get(attrs["activation"], tuple(_DEFAULTS)):
        if attrs[name] != _DEFAULTS[name]:
            raise AttributeValueError(f"activation {attrs['activation']!r} has no {name}")
    return (y,)


def _check_added(added: TensorSpec, y: TensorSpec) -> None:
    """Raises ShapeError unless the tensor broadcasts to y along all axes except the last one."""
    fits = added.dtype == y.dtype and added.shape[-1:] == y.shape[-1:]
    if not fits or broadcast_shapes(added.shape, y.shape) != y.shape:
        raise ShapeError(f"the tensor to add is {added}, but the product is {y}")


FUSED_MATMUL = OpSchema(
    name="fused_matmul",
    summary="The activation of (alpha * a @ b + bias + a tensor); inputs a, b, bias, that tensor.",
    infer=_infer,
    kernels=(*FUSED_BLAS, *FUSED_KERNELS, PACKED, STRIDED),
    arity=(2, 4),
    attributes=(
        Attribute("transpose_b", flag, False),
        Attribute("alpha", number, 1.0),
        Attribute("activation", one_of(NONE, CLIP, LEAK, GELU_ERF, GELU_TANH, SILU), NONE),
        Attribute("low", number, -math.inf),
        Attribute("high", number, math.inf),
        Attribute("slope", number, 1.0),
    ),
    overwrites=overwrites_from(RESIDUAL),
    cost=matmul_cost,
    stripes=matmul_stripes,
)
OPS = (FUSED_MATMUL,)
