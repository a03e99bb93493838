"""Pooling over all spatial dimensions (ONNX GlobalAveragePool-22, GlobalMaxPool-22, GlobalLpPool-22)."""

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from ops.common.apply import V, apply1
from ops.common.boxes import CACHE_BYTES, pieces
from ops.common.thunks import in_turn
from ops.common.tiling import pool_stripes
from ops.common.windows import require_spatial
from ops.pool.compiled import AVERAGE_ALL, MAX_ALL
from ops.pool.gradient import lp_ratio, lp_slope
from ops.pool.powers import powers, roots
from ops.schema.attributes import Attribute, integer
from ops.schema.backward import Backward, Tensor, Terms
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Signature, Specs, Thunk, contiguous_at
from ops.tensor.errors import AttributeValueError, DtypeError
from ops.tensor.limits import constant
from ops.tensor.spec import FLOATS, Array, TensorSpec, compute_dtype


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    (x,) = inputs
    require_spatial(x)
    if x.dtype not in FLOATS:
        raise DtypeError(f"takes floating-point numbers, not {x.dtype}")
    if attrs.get("p", 1) < 1:
        raise AttributeValueError(f"p is {attrs['p']}; at least 1 is wanted")
    return (x.with_shape(x.shape[:2] + (1,) * (x.ndim - 2)),)


def _rows(array: Array) -> Array:
    """Returns the array as rows, one for each channel of an image."""
    return array.reshape((array.shape[0] * array.shape[1], math.prod(array.shape[2:])))


def _bind_max(call: Binding) -> Thunk:
    out = call.y.reshape(-1)
    return partial(np.maximum.reduce, _rows(call.x), axis=1, out=out, initial=-np.inf)


def _p(signature: Signature) -> int:
    """Returns the exponent; 0 for sums of the elements as they are."""
    return int(signature.attrs.get("p", 0))


def _piece_rows(signature: Signature) -> int:
    width = math.prod(signature.x.shape[2:]) * compute_dtype(signature.x.dtype).itemsize
    return max(1, min(math.prod(signature.x.shape[:2]), CACHE_BYTES // 4 // max(width, 1)))


def _temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of a few rows and of their sums, in the dtype of computation; empty where one is not needed."""
    dtype = compute_dtype(signature.x.dtype)
    wide = dtype != signature.x.dtype
    rows = _piece_rows(signature)
    width = math.prod(signature.x.shape[2:]) if wide or _p(signature) else 0
    return TensorSpec((rows, width), dtype), TensorSpec((rows if wide else 0,), dtype)


def _sum_rows(call: Binding, finish: Callable[[Array], tuple[Thunk, ...]]) -> Iterator[Thunk]:
    buffer, sums = call.temporaries
    x, y, p = _rows(call.x), call.y.reshape(-1), _p(call.signature)
    for a, b in pieces(len(x), _piece_rows(call.signature)):
        part, out = x[a:b], sums[: b - a] if sums.size else y[a:b]
        if p:
            yield from powers(p, part, buffer[: b - a])
        elif buffer.size:
            yield partial(np.copyto, buffer[: b - a], part)
        yield partial(np.add.reduce, buffer[: b - a] if buffer.size else part, axis=1, out=out)
        yield from finish(out)
        if sums.size:
            yield partial(np.copyto, y[a:b], out, casting="same_kind")


def _bind_average(call: Binding) -> Thunk:
    count = constant(math.prod(call.x.shape[2:]), compute_dtype(call.y.dtype))
    return in_turn(*_sum_rows(call, lambda sums: (partial(np.divide, sums, count, sums),)))


def _bind_lp(call: Binding) -> Thunk:
    return in_turn(*_sum_rows(call, partial(roots, call.attrs["p"])))


def _average_gradient(b: Backward) -> Terms:
    """Returns the gradient: each element of a channel gets the same share, a view that repeats one number."""
    share = 1 / max(math.prod(b.x.shape[2:]), 1)
    return b.terms(lambda: b.expand(b.dy * np.asarray(share, b.x.dtype), b.x.shape))


def _max_gradient(b: Backward) -> Terms:
    """Returns the gradient: where several elements are the largest, they share it."""

    def data() -> Tensor:
        largest = b.cast(b.equal(b.x, b.y), b.x.dtype)
        return largest * (b.dy / b.sum(largest, range(2, b.x.ndim)))

    return b.terms(data)


def _lp_gradient(b: Backward) -> Terms:
    return b.terms(lambda: lp_slope(b, b.attrs["p"]) * lp_ratio(b, b.attrs["p"]))


GLOBAL_AVERAGE_POOL = OpSchema(
    name="global_average_pool",
    summary="The mean of each channel: (N, C, spatial...) to (N, C, 1...).",
    infer=_infer,
    kernels=(AVERAGE_ALL, Kernel("rows", _bind_average, _temporaries, contiguous_at(0))),
    gradient=_average_gradient,
    stripes=pool_stripes,
)
GLOBAL_MAX_POOL = OpSchema(
    name="global_max_pool",
    summary="The largest element of each channel: (N, C, spatial...) to (N, C, 1...).",
    infer=_infer,
    kernels=(MAX_ALL, Kernel("rows", _bind_max, contiguous=contiguous_at(0))),
    gradient=_max_gradient,
    stripes=pool_stripes,
)
GLOBAL_LP_POOL = OpSchema(
    name="global_lp_pool",
    summary="(sum of |x| ** p) ** (1 / p) of each channel: (N, C, spatial...) to (N, C, 1...).",
    infer=_infer,
    kernels=(Kernel("rows", _bind_lp, _temporaries, contiguous_at(0)),),
    attributes=(Attribute("p", integer, 2),),
    gradient=_lp_gradient,
    stripes=pool_stripes,
)
OPS = (GLOBAL_AVERAGE_POOL, GLOBAL_MAX_POOL, GLOBAL_LP_POOL)


def global_average_pool(x: V) -> V:
    """Returns the mean of each channel: (N, C, 1...)."""
    return apply1(GLOBAL_AVERAGE_POOL, x)


def global_max_pool(x: V) -> V:
    """Returns the largest element of each channel: (N, C, 1...)."""
    return apply1(GLOBAL_MAX_POOL, x)


def global_lp_pool(x: V, p: int = 2) -> V:
    """Returns (sum of |x| ** p) ** (1 / p) of each channel: (N, C, 1...)."""
    return apply1(GLOBAL_LP_POOL, x, p=p)
