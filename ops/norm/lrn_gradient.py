"""The gradient of local response normalization, and the sums over neighbouring channels that both directions need.

With d = bias + alpha / size * (sum of x ** 2 over the channels around), y = x * d ** -beta and
dx[c] = dy[c] * d[c] ** -beta - 2 * alpha * beta / size * x[c] * (sum of dy * x * d ** (-beta - 1) over all channels
whose sums have x[c] in them), which are the channels around, seen from the other side.
"""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from ops.common.boxes import CACHE_BYTES, pieces
from ops.common.thunks import in_turn
from ops.common.windows import require_spatial
from ops.schema.attributes import Attribute, integer, number
from ops.schema.backward import Backward, Terms
from ops.schema.schema import (
    Attrs,
    Binding,
    Cost,
    Kernel,
    OpSchema,
    Signature,
    Specs,
    Thunk,
    all_contiguous,
    overwrites_either,
)
from ops.tensor.errors import DtypeError, ShapeError
from ops.tensor.limits import constant
from ops.tensor.spec import FLOATS, Array, TensorSpec, compute_dtype

LRN_ATTRIBUTES = (
    Attribute("size", integer),
    Attribute("alpha", number, 1e-4),
    Attribute("beta", number, 0.75),
    Attribute("bias", number, 1.0),
)
_ROOMS = 5


def window_sums(values: Array, sums: Array, size: int, mirrored: bool = False) -> Iterator[Thunk]:
    """Yields steps that add up the channels [c - (size - 1) // 2, c + size // 2] for each c.

    Mirrored, they add up [c - size // 2, c + (size - 1) // 2].
    """
    yield partial(np.copyto, sums, values)
    channels = len(values)
    before, behind = min((size - 1) // 2, channels), min(size // 2, channels)
    if mirrored:
        before, behind = behind, before
    for shift in range(-before, behind + 1):
        low, high = max(0, -shift), min(channels, channels - shift)
        if shift and low < high:
            part = sums[low:high]
            yield partial(np.add, part, values[low + shift : high + shift], part)


def _infer(inputs: Specs, _: Attrs) -> Specs:
    dy, x = inputs
    require_spatial(x)
    if x.dtype not in FLOATS or dy.dtype != x.dtype:
        raise DtypeError(f"takes floating-point numbers of one type, not {dy.dtype}, {x.dtype}")
    if dy.shape != x.shape:
        raise ShapeError(f"gradient {dy.shape} and data {x.shape} must have one shape")
    return (x,)


def _columns(signature: Signature) -> int:
    """Returns the number of pixels of one piece."""
    column = signature.x.shape[1] * compute_dtype(signature.x.dtype).itemsize
    return max(1, min(math.prod(signature.x.shape[2:]), CACHE_BYTES // _ROOMS // max(column, 1)))


def _temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of five arrays of a few pixels of all channels.

    They are x and dy in the dtype of computation, and three of intermediate values.
    """
    dtype = compute_dtype(signature.x.dtype)
    return (TensorSpec((signature.x.shape[1] * _columns(signature),), dtype),) * _ROOMS


def _piece(call: Binding, arrays: tuple[Array, ...], scratch: tuple[Array, ...]) -> Iterator[Thunk]:
    """Yields steps for a few pixels (C, pixels) of one image; `arrays` are x, dy and dx."""
    x, dy, dx = arrays
    wide, grads, sums, powers, terms = (r[: x.size].reshape(x.shape) for r in scratch)
    attrs, dtype = call.attrs, wide.dtype
    share = attrs["alpha"] / attrs["size"]
    yield partial(np.copyto, wide, x)
    yield partial(np.copyto, grads, dy)
    yield partial(np.multiply, wide, wide, terms)
    yield from window_sums(terms, sums, attrs["size"])
    yield partial(np.multiply, sums, constant(share, dtype), sums)
    yield partial(np.add, sums, constant(attrs["bias"], dtype), sums)
    yield partial(np.power, sums, constant(-attrs["beta"], dtype), powers)
    yield partial(np.multiply, grads, powers, grads)
    yield partial(np.multiply, grads, wide, terms)
    yield partial(np.divide, terms, sums, terms)
    yield from window_sums(terms, sums, attrs["size"], mirrored=True)
    yield partial(np.multiply, sums, wide, sums)
    yield partial(np.multiply, sums, constant(2 * attrs["beta"] * share, dtype), sums)
    yield partial(np.subtract, grads, sums, grads)
    yield partial(np.copyto, dx, grads, casting="same_kind")


def _bind(call: Binding) -> Thunk:
    scratch = call.temporaries
    pixels = math.prod(call.x.shape[2:])
    dy, x, dx = (v.reshape((*call.x.shape[:2], pixels)) for v in (*call.inputs, call.y))
    steps: list[Thunk] = []
    for n in range(len(x)):
        for a, b in pieces(pixels, _columns(call.signature)):
            steps += _piece(call, (x[n, :, a:b], dy[n, :, a:b], dx[n, :, a:b]), scratch)
    return in_turn(*steps)


def _cost(signature: Signature) -> Cost:
    return Cost((2 * signature.attrs["size"] + 12) * signature.x.size, signature.nbytes)


def lrn_gradient(b: Backward) -> Terms:
    """Returns the gradient of local response normalization."""
    return b.terms(lambda: b.apply1(LRN_GRADIENT, b.dy, b.x, **b.attrs))


LRN_GRADIENT = OpSchema(
    name="lrn_gradient",
    summary="The gradient of local response normalization by x, of dy and x.",
    infer=_infer,
    kernels=(Kernel("pieces", _bind, _temporaries, contiguous=all_contiguous),),
    arity=(2, 2),
    attributes=LRN_ATTRIBUTES,
    overwrites=overwrites_either,
    cost=_cost,
)
OPS = (LRN_GRADIENT,)
