"""Maximum, average and Lp pooling over sliding windows (ONNX MaxPool-22, AveragePool-22, LpPool-22)."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, cast

import numpy as np

from ops.common.apply import V, apply, apply1
from ops.common.batches import dense_images
from ops.common.tiling import pool_stripes
from ops.common.windows import (
    POOL_ATTRIBUTES,
    Sizes,
    Windows,
    each,
    pool_windows,
    require_spatial,
    spatial_attributes,
    tap_range,
    windows,
)
from ops.pool.compiled import AVERAGE_PLANES, MAX_PLANES
from ops.pool.gradient import lp_ratio, lp_slope, max_pool_gradient, spread
from ops.pool.indices import INDICES
from ops.pool.passes import Pooling, bind_pool, pool_temporaries
from ops.pool.powers import powers, roots
from ops.schema.attributes import Attribute, flag, integer
from ops.schema.backward import Backward, Terms
from ops.schema.schema import Attrs, Binding, Cost, Kernel, OpSchema, Signature, Specs, Thunk, always, unless
from ops.tensor.errors import AttributeValueError, DtypeError
from ops.tensor.limits import constant
from ops.tensor.spec import FLOATS, Array, compute_dtype

MAX_DTYPES = FLOATS | {np.dtype("int8"), np.dtype("uint8")}


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    (x,) = inputs
    require_spatial(x)
    if x.dtype not in FLOATS:
        raise DtypeError(f"takes floating-point numbers, not {x.dtype}")
    return (x.with_shape(x.shape[:2] + windows(x.shape[2:], attrs["kernel_shape"], attrs).outputs),)


def _infer_max(inputs: Specs, attrs: Attrs) -> Specs:
    (x,) = inputs
    if x.dtype not in MAX_DTYPES:
        raise DtypeError(f"takes floating-point numbers, int8 or uint8, not {x.dtype}")
    if attrs["storage_order"] not in (0, 1):
        raise AttributeValueError(f"storage_order is {attrs['storage_order']}; 0 (rows) or 1 (columns) is wanted")
    (y,) = _infer((x.with_dtype("float32"),), attrs)
    return (y.with_dtype(x.dtype), y.with_dtype("int64"))[: 1 + attrs["with_indices"]]


def _infer_lp(inputs: Specs, attrs: Attrs) -> Specs:
    if attrs["p"] < 1:
        raise AttributeValueError(f"p is {attrs['p']}; at least 1 is wanted")
    return _infer(inputs, attrs)


def _max(signature: Signature) -> Pooling:
    dtype = signature.x.dtype
    least = -np.inf if dtype in FLOATS else np.iinfo(dtype).min
    return Pooling(pool_windows(signature), np.maximum, constant(least, dtype))


def _copy(source: Array, buffer: Array) -> tuple[Thunk, ...]:
    return (partial(np.copyto, buffer, source),)


def _average(signature: Signature) -> Pooling:
    w, dtype = pool_windows(signature), compute_dtype(signature.x.dtype)
    outer = signature.attrs["count_include_pad"]

    @cache  # only a kernel that is bound needs them: they are as long as the axes
    def counts() -> tuple[Array, ...]:
        return tuple(window_counts(w, axis, outer).astype(dtype) for axis in range(w.ndim))

    before = None if dtype == signature.x.dtype else _copy
    return Pooling(w, np.add, constant(0, dtype), before, lambda sums: _divide(counts(), sums) if sums.size else ())


def window_counts(w: Windows, axis: int, include_pad: bool) -> Array:
    """Returns how many elements of each window count, along one axis; at least 1."""
    counts = np.zeros(w.outputs[axis], np.int64)
    for tap in range(w.kernel[axis]):
        if include_pad:
            starts = np.arange(w.outputs[axis]) * w.strides[axis] + tap * w.dilations[axis]
            counts += starts < w.begins[axis] + w.sizes[axis] + w.ends[axis]
        else:
            counts[tap_range(w, axis, tap)[0]] += 1
    return np.maximum(counts, 1)


def _divide(counts: tuple[Array, ...], sums: Array) -> tuple[Thunk, ...]:
    """Returns steps that divide sums by the size of each window: by one number where all windows have one size."""
    if all((c == c[0]).all() for c in counts):
        size = np.asarray(np.prod([c[0] for c in counts]), dtype=sums.dtype)
        return (partial(np.divide, sums, size, sums),)
    lengths = ((-1,) + (1,) * (len(counts) - 1 - axis) for axis in range(len(counts)))
    return tuple(partial(np.divide, sums, c.reshape(n), sums) for c, n in zip(counts, lengths, strict=True))


def _lp(signature: Signature) -> Pooling:
    dtype, p = compute_dtype(signature.x.dtype), signature.attrs["p"]
    return Pooling(pool_windows(signature), np.add, constant(0, dtype), partial(powers, p), partial(roots, p))


def _kernel(pooling: Callable[[Signature], Pooling], unsupported: Callable[[Signature], str]) -> Kernel:
    def bind(call: Binding) -> Thunk:
        return bind_pool(pooling(call.signature), call)

    def temporaries(signature: Signature) -> Specs:
        return pool_temporaries(pooling(signature), signature)

    return Kernel("axes", bind, temporaries, unsupported=unsupported, writes=dense_images)


def _without_indices(signature: Signature) -> bool:
    return len(signature.outputs) == 1


def _cost(signature: Signature) -> Cost:
    taps = sum(pool_windows(signature).kernel)
    return Cost(signature.y.size * taps, signature.x.nbytes + sum(s.nbytes for s in signature.outputs))


def _average_gradient(b: Backward) -> Terms:
    w, outer = pool_windows(b.signature), b.attrs["count_include_pad"]
    counts = [window_counts(w, axis, outer) for axis in range(w.ndim)]
    each = np.asarray(1.0)
    for count in counts:
        each = each[..., np.newaxis] / count
    number = each.flat[0] if each.size and (each == each.flat[0]).all() else each
    return b.terms(lambda: spread(b, b.dy * np.asarray(number, b.x.dtype)))


def _lp_gradient(b: Backward) -> Terms:
    p = b.attrs["p"]
    return b.terms(lambda: spread(b, lp_ratio(b, p)) * lp_slope(b, p))


MAX_POOL = OpSchema(
    name="max_pool",
    summary="The largest element of each window; with `with_indices` also where it is, counted in the whole input.",
    infer=_infer_max,
    kernels=(MAX_PLANES, _kernel(_max, unless(_without_indices, "indices are an output")), INDICES),
    attributes=(*POOL_ATTRIBUTES, Attribute("storage_order", integer, 0), Attribute("with_indices", flag, False)),
    cost=_cost,
    gradient=max_pool_gradient,
    stripes=pool_stripes,
)
AVERAGE_POOL = OpSchema(
    name="average_pool",
    summary="The mean of each window; padding counts as zeros only with `count_include_pad`.",
    infer=_infer,
    kernels=(AVERAGE_PLANES, _kernel(_average, always)),
    attributes=(*POOL_ATTRIBUTES, Attribute("count_include_pad", flag, False)),
    cost=_cost,
    gradient=_average_gradient,
    stripes=pool_stripes,
)
LP_POOL = OpSchema(
    name="lp_pool",
    summary="(sum of |x| ** p) ** (1 / p) of each window.",
    infer=_infer_lp,
    kernels=(_kernel(_lp, always),),
    attributes=(*POOL_ATTRIBUTES, Attribute("p", integer, 2)),
    cost=_cost,
    gradient=_lp_gradient,
)
OPS = (MAX_POOL, AVERAGE_POOL, LP_POOL)


def _window(x: V, kernel_shape: Sizes, strides: Sizes, pads: Sizes, dilations: Sizes) -> dict[str, Any]:
    kernel = each(kernel_shape, x.spec.ndim - 2)
    return {"kernel_shape": kernel, **spatial_attributes(x.spec, strides, pads, dilations)}


def max_pool(
    x: V,
    kernel_shape: Sizes,
    strides: Sizes = 1,
    pads: Sizes = 0,
    *,
    dilations: Sizes = 1,
    ceil_mode: bool = False,
    auto_pad: str = "NOTSET",
) -> V:
    """Returns the largest element of each window."""
    window = _window(x, kernel_shape, strides, pads, dilations)
    return apply1(MAX_POOL, x, **window, ceil_mode=ceil_mode, auto_pad=auto_pad)


def max_pool_with_indices(
    x: V,
    kernel_shape: Sizes,
    strides: Sizes = 1,
    pads: Sizes = 0,
    *,
    dilations: Sizes = 1,
    ceil_mode: bool = False,
    auto_pad: str = "NOTSET",
    storage_order: int = 0,
) -> tuple[V, V]:
    """Returns the largest element of each window, and its position in the whole of x (int64)."""
    window = _window(x, kernel_shape, strides, pads, dilations)
    more = {"ceil_mode": ceil_mode, "auto_pad": auto_pad, "storage_order": storage_order}
    return cast(tuple[V, V], apply(MAX_POOL, (x,), **window, **more, with_indices=True))


def average_pool(
    x: V,
    kernel_shape: Sizes,
    strides: Sizes = 1,
    pads: Sizes = 0,
    *,
    dilations: Sizes = 1,
    ceil_mode: bool = False,
    auto_pad: str = "NOTSET",
    count_include_pad: bool = False,
) -> V:
    """Returns the mean of each window; padding counts as zeros only with `count_include_pad`."""
    window = _window(x, kernel_shape, strides, pads, dilations)
    more = {"ceil_mode": ceil_mode, "auto_pad": auto_pad, "count_include_pad": count_include_pad}
    return apply1(AVERAGE_POOL, x, **window, **more)


def lp_pool(
    x: V,
    kernel_shape: Sizes,
    strides: Sizes = 1,
    pads: Sizes = 0,
    *,
    p: int = 2,
    dilations: Sizes = 1,
    ceil_mode: bool = False,
    auto_pad: str = "NOTSET",
) -> V:
    """Returns (sum of |x| ** p) ** (1 / p) of each window."""
    window = _window(x, kernel_shape, strides, pads, dilations)
    return apply1(LP_POOL, x, **window, p=p, ceil_mode=ceil_mode, auto_pad=auto_pad)
