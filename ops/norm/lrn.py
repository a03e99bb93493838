"""Local response normalization across channels (ONNX LRN-13)."""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from ops.common.apply import V, apply1
from ops.common.boxes import CACHE_BYTES, pieces
from ops.common.thunks import in_turn
from ops.common.tiling import image_stripes
from ops.common.windows import require_spatial
from ops.norm.lrn_gradient import LRN_ATTRIBUTES, lrn_gradient, window_sums
from ops.schema.schema import (
    Attrs,
    Binding,
    Cost,
    Kernel,
    OpSchema,
    Signature,
    Specs,
    Thunk,
    contiguous_at,
    overwrites_first,
)
from ops.tensor.errors import AttributeValueError, DtypeError
from ops.tensor.limits import constant
from ops.tensor.spec import FLOATS, Array, TensorSpec, compute_dtype


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    (x,) = inputs
    require_spatial(x)
    if x.dtype not in FLOATS:
        raise DtypeError(f"takes floating-point numbers, not {x.dtype}")
    if attrs["size"] < 1:
        raise AttributeValueError(f"size is {attrs['size']}; at least 1 is wanted")
    return (x,)


def _columns(signature: Signature) -> int:
    """Returns the number of pixels of one piece."""
    column = signature.x.shape[1] * compute_dtype(signature.x.dtype).itemsize
    return max(1, min(math.prod(signature.x.shape[2:]), CACHE_BYTES // 4 // max(column, 1)))


def _temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of squares and their sums, for a few pixels of all channels.

    For float16 there are also the pixels in float32.
    """
    dtype = compute_dtype(signature.x.dtype)
    shape = (signature.x.shape[1], _columns(signature))
    return tuple(TensorSpec(s, dtype) for s in (shape, shape, shape if dtype != signature.x.dtype else (0, 0)))


def normalise(attrs: Attrs, x: Array, y: Array, squares: Array, sums: Array) -> Iterator[Thunk]:
    """Yields the steps for a few pixels (C, pixels); `squares` and `sums` are temporaries of that shape."""
    yield partial(np.multiply, x, x, squares)
    yield from window_sums(squares, sums, attrs["size"])
    yield partial(np.multiply, sums, constant(attrs["alpha"] / attrs["size"], sums.dtype), sums)
    yield partial(np.add, sums, constant(attrs["bias"], sums.dtype), sums)
    yield partial(np.power, sums, constant(-attrs["beta"], sums.dtype), sums)
    yield partial(np.multiply, x, sums, y)


def _piece(call: Binding, x: Array, y: Array, scratch: tuple[Array, ...]) -> Iterator[Thunk]:
    """Yields steps for a few pixels (C, pixels) of one image."""
    squares, sums, wide = (r.reshape(-1)[: x.size].reshape(x.shape) if r.size else r for r in scratch)
    attrs, out = call.attrs, y
    if wide.size:
        yield partial(np.copyto, wide, x)
        x = out = wide
    yield from normalise(attrs, x, out, squares, sums)
    if out is not y:
        yield partial(np.copyto, y, out, casting="same_kind")


def _bind(call: Binding) -> Thunk:
    scratch = call.temporaries
    pixels = math.prod(call.x.shape[2:])
    flat = (*call.x.shape[:2], pixels)
    steps: list[Thunk] = []
    for x, y in zip(call.x.reshape(flat), call.y.reshape(flat), strict=True):
        for a, b in pieces(pixels, _columns(call.signature)):
            steps += _piece(call, x[:, a:b], y[:, a:b], scratch)
    return in_turn(*steps)


def lrn_cost(signature: Signature) -> Cost:
    """Counts an addition for each element of the window, and what is done once an element."""
    return Cost((signature.attrs["size"] + 5) * signature.x.size, signature.x.nbytes + signature.y.nbytes)


LRN = OpSchema(
    name="lrn",
    summary="x / (bias + alpha / size * sum of x ** 2 over `size` channels around) ** beta; x (N, C, spatial...).",
    infer=_infer,
    kernels=(Kernel("pieces", _bind, _temporaries, contiguous=contiguous_at(0)),),
    attributes=LRN_ATTRIBUTES,
    overwrites=overwrites_first,
    cost=lrn_cost,
    gradient=lrn_gradient,
    stripes=image_stripes,
)
OPS = (LRN,)


def lrn(x: V, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> V:
    """Returns x / (bias + alpha / size * sum of x ** 2 over `size` channels around) ** beta; x (N, C, spatial...)."""
    return apply1(LRN, x, size=size, alpha=alpha, beta=beta, bias=bias)
