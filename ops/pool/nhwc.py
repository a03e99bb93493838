"""Maximum and average pooling of channels-last tensors: one pass a tap of the window, whole pixels at a time.

Windows are clipped at the borders, so nothing is ever padded.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import numpy as np
from attrs import frozen

from ops.common.boxes import CACHE_BYTES, Box, boxes
from ops.common.thunks import in_turn
from ops.common.tiling import nhwc_pool_rows, nhwc_pool_stripes
from ops.common.windows import (
    POOL_ATTRIBUTES,
    Windows,
    nhwc_pool_windows,
    require_spatial,
    tap_range,
    windows,
)
from ops.pool.nhwc_compiled import AVERAGE_NATIVE, MAX_NATIVE
from ops.pool.onednn import AVERAGE_POOL, MAX_POOL
from ops.pool.pool import MAX_DTYPES, window_counts
from ops.quantised.max_pool import QUANTISED_MAX_POOL
from ops.schema.attributes import Attribute, flag
from ops.schema.schema import Attrs, Binding, Cost, Kernel, OpSchema, Signature, Specs, Thunk
from ops.tensor.errors import DtypeError
from ops.tensor.limits import constant
from ops.tensor.spec import FLOATS, Array
from ops.windows.pixels import channels_first, channels_last, dense_pixels


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    (x,) = inputs
    require_spatial(x)
    first = channels_first(x)
    outputs = windows(first.shape[2:], attrs["kernel_shape"], attrs).outputs
    return (channels_last(first.with_shape((*first.shape[:2], *outputs))),)


def _infer_max(inputs: Specs, attrs: Attrs) -> Specs:
    if inputs[0].dtype not in MAX_DTYPES:
        raise DtypeError(f"takes floating-point numbers, int8 or uint8, not {inputs[0].dtype}")
    return _infer(inputs, attrs)


def _infer_average(inputs: Specs, attrs: Attrs) -> Specs:
    if inputs[0].dtype not in FLOATS - {np.dtype("float16")}:
        raise DtypeError(f"takes float32 or float64, not {inputs[0].dtype}")
    return _infer(inputs, attrs)


@frozen(eq=False)
class _Pooling:
    """How the elements of a window become one: `ufunc` combines two at a time, beginning with `identity`.

    `finish(part of y, its box)` returns steps that turn the combined elements into the result, in place.
    """

    windows: Windows
    ufunc: np.ufunc
    identity: Array
    finish: Callable[[Array, Box], Iterator[Thunk]]


def _nothing(_: Array, __: Box) -> Iterator[Thunk]:
    return iter(())


def _max(signature: Signature) -> _Pooling:
    dtype = signature.x.dtype
    least = -np.inf if dtype in FLOATS else np.iinfo(dtype).min
    return _Pooling(nhwc_pool_windows(signature), np.maximum, constant(least, dtype), _nothing)


def _average(signature: Signature) -> _Pooling:
    w, dtype = nhwc_pool_windows(signature), signature.x.dtype
    counts = [window_counts(w, axis, signature.attrs["count_include_pad"]) for axis in range(w.ndim)]

    def divide(part: Array, box: Box) -> Iterator[Thunk]:
        inside = [c[a:b] for c, a, b in zip(counts, box.firsts, box.lasts, strict=True)]
        if all((c == c[0]).all() for c in inside):
            inside = [c[:1] for c in inside]
        number = np.prod(np.broadcast_arrays(*np.ix_(*inside)), axis=0)[..., np.newaxis].astype(dtype)
        yield partial(np.divide, part, number, part)

    return _Pooling(w, np.add, constant(0, dtype), divide)


def _box(pooling: _Pooling, x: Array, y: Array, box: Box) -> Iterator[Thunk]:
    """Yields steps for one box of one image (spatial..., C)."""
    w, out = pooling.windows, y[box.ranges]
    axes = [
        [tap_range(w, axis, tap, a, b) for tap in range(w.kernel[axis])]
        for axis, (a, b) in enumerate(zip(box.firsts, box.lasts, strict=True))
    ]
    taps = [tuple(zip(*ranges, strict=True)) for ranges in product(*axes)]
    whole = next((i for i, (outs, _) in enumerate(taps) if out[outs].shape == out.shape), -1)
    yield partial(np.copyto, out, x[taps.pop(whole)[1]] if whole >= 0 else pooling.identity)
    for outs, ins in taps:
        part = out[outs]
        if part.size:
            yield partial(pooling.ufunc, part, x[ins], out=part)
    yield from pooling.finish(out, box)


def _kernel(pooling: Callable[[Signature], _Pooling]) -> Kernel:
    def bind(call: Binding) -> Thunk:
        case, pixel = pooling(call.signature), max(call.y.shape[-1] * call.y.itemsize, 1)
        steps: list[Thunk] = []
        for x, y in zip(call.x, call.y, strict=True):
            for box in boxes(case.windows.outputs, CACHE_BYTES // 4 // pixel):
                steps += _box(case, x, y, box)
        return in_turn(*steps)

    return Kernel("taps", bind, writes=dense_pixels)


def _cost(signature: Signature) -> Cost:
    taps = math.prod(nhwc_pool_windows(signature).kernel)
    return Cost(signature.y.size * taps, signature.x.nbytes + signature.y.nbytes)


MAX_TAPS, AVERAGE_TAPS = _kernel(_max), _kernel(_average)
NHWC_MAX_POOL = OpSchema(
    name="nhwc_max_pool",
    summary="The largest element of each window of a channel; x (N, spatial..., C).",
    infer=_infer_max,
    kernels=(MAX_POOL, MAX_NATIVE, QUANTISED_MAX_POOL, MAX_TAPS),
    attributes=POOL_ATTRIBUTES,
    cost=_cost,
    stripes=nhwc_pool_stripes,
    rows=nhwc_pool_rows,
)
NHWC_AVERAGE_POOL = OpSchema(
    name="nhwc_average_pool",
    summary="The mean of each window of a channel; padding counts as zeros only with `count_include_pad`.",
    infer=_infer_average,
    kernels=(AVERAGE_POOL, AVERAGE_NATIVE, AVERAGE_TAPS),
    attributes=(*POOL_ATTRIBUTES, Attribute("count_include_pad", flag, False)),
    cost=_cost,
    stripes=nhwc_pool_stripes,
    rows=nhwc_pool_rows,
)
OPS = (NHWC_MAX_POOL, NHWC_AVERAGE_POOL)
