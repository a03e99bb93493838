"""Local response normalization across channels that are the last axis (ONNX LRN-13)."""

import math

import numpy as np

from ops.common.boxes import CACHE_BYTES, pieces
from ops.common.thunks import in_turn
from ops.common.tiling import first_input_rows
from ops.common.windows import require_spatial
from ops.norm.lrn import lrn_cost, normalise
from ops.norm.lrn_compiled import LRN_NATIVE
from ops.norm.lrn_gradient import LRN_ATTRIBUTES
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Signature, Specs, Thunk, overwrites_first
from ops.tensor.errors import AttributeValueError, DtypeError
from ops.tensor.spec import FLOATS, TensorSpec
from ops.windows.pixels import dense_pixels, rows


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    (x,) = inputs
    require_spatial(x)
    if x.dtype not in FLOATS - {np.dtype("float16")}:
        raise DtypeError(f"takes float32 or float64, not {x.dtype}")
    if attrs["size"] < 1:
        raise AttributeValueError(f"size is {attrs['size']}; at least 1 is wanted")
    return (x,)


def _most(signature: Signature) -> int:
    """Returns the number of pixels of one piece."""
    return max(1, CACHE_BYTES // 4 // max(signature.x.shape[-1] * signature.x.dtype.itemsize, 1))


def _temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of squares and their sums for a few pixels."""
    channels = signature.x.shape[-1]
    pixels = min(_most(signature), math.prod(signature.x.shape[:-1]))
    return (signature.x.with_shape((pixels, channels)),) * 2


def _bind(call: Binding) -> Thunk:
    squares, sums = call.temporaries
    x, y = rows(call.x), rows(call.y)
    steps: list[Thunk] = []
    for a, b in pieces(len(x), _most(call.signature)):
        steps += normalise(call.attrs, x[a:b].T, y[a:b].T, squares[: b - a].T, sums[: b - a].T)
    return in_turn(*steps)


LRN_PIECES = Kernel("pieces", _bind, _temporaries, reads=dense_pixels, writes=dense_pixels)
NHWC_LRN = OpSchema(
    name="nhwc_lrn",
    summary="x / (bias + alpha / size * sum of x ** 2 over `size` channels around) ** beta; x (N, spatial..., C).",
    infer=_infer,
    kernels=(LRN_NATIVE, LRN_PIECES),
    attributes=LRN_ATTRIBUTES,
    overwrites=overwrites_first,
    cost=lrn_cost,
    rows=first_input_rows,
)
OPS = (NHWC_LRN,)
