"""The gradients of pooling, as operators and rules.

That of a maximum finds again in x where it lies: to keep the places of all maxima, eight bytes each, would cost more
than x itself wherever windows are small. That of a sum spreads each element over its window, one axis at a time.

numba compiles that of a maximum, row by row; in numpy (`ops.pool.maxima`) all windows of some channels go together.
"""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from allocator.machine_code.door import address
from ops.common.batches import by_image, dense_images
from ops.common.boxes import pieces
from ops.common.thunks import in_turn
from ops.common.widened import require_wide, widened
from ops.common.windows import POOL_ATTRIBUTES, Windows, tap_range, windows
from ops.native.call import native_call
from ops.pool.args import MAXIMA
from ops.pool.maxima import maxima_specs, maxima_steps
from ops.pool.passes import PIECE_BYTES
from ops.schema.attributes import Attribute, integers
from ops.schema.backends import NUMBA
from ops.schema.backward import Backward, Tensor, Terms
from ops.schema.schema import Attrs, Binding, Cost, Kernel, OpSchema, Signature, Specs, Thunk, all_contiguous
from ops.tensor.errors import DtypeError, GradientError, ShapeError
from ops.tensor.spec import FLOATS, Array, Shape, TensorSpec, compute_dtype
from ops.windows.args import geometry

_MOST_AXES = 3


def window_attributes(attrs: Attrs) -> dict[str, Any]:
    """Returns those attributes of a pooling operator that its gradient has too."""
    return {a.name: attrs[a.name] for a in POOL_ATTRIBUTES}


def _check(dy: TensorSpec, x: TensorSpec, attrs: Attrs) -> None:
    outputs = windows(x.shape[2:], attrs["kernel_shape"], attrs).outputs
    if dy.shape != x.shape[:2] + outputs:
        raise ShapeError(f"gradient {dy.shape} does not fit the windows over {x.shape}: {x.shape[:2] + outputs}")


def _infer_max(inputs: Specs, attrs: Attrs) -> Specs:
    dy, x = inputs
    require_wide(inputs)
    _check(dy, x, attrs)
    if not 3 <= x.ndim <= 2 + _MOST_AXES:
        raise ShapeError(f"data {x.shape} must have 1 to {_MOST_AXES} spatial dimensions")
    if math.prod(x.shape[2:]) >= 2**31:
        raise ShapeError(f"data {x.shape} have 2 ** 31 elements or more in a channel")
    return (x,)


def _infer_spread(inputs: Specs, attrs: Attrs) -> Specs:
    (dy,) = inputs
    if dy.dtype not in FLOATS:
        raise DtypeError(f"takes floating-point numbers, not {dy.dtype}")
    x = dy.with_shape(dy.shape[:2] + attrs["sizes"])
    _check(dy, x, attrs)
    return (x,)


def _bind_max(call: Binding) -> Thunk:
    w = _max_windows(call.signature)
    best, places = call.temporaries

    def bind(dy: Array, x: Array, dx: Array) -> Thunk:
        return native_call(
            address("ops.pool.gradient_code", f"scatter_maxima_{x.dtype.name}"),
            MAXIMA,
            dy=dy,
            x=x,
            dx=dx,
            best=best,
            places=places,
            channels=math.prod(x.shape[:2]),
            span=len(best),
            **geometry(w),
        )

    return by_image(bind, *call.inputs, call.y)


def _row(signature: Signature) -> tuple[TensorSpec, TensorSpec]:
    """Returns the specs of the maxima of one row of windows in steps of one, and of their places."""
    strides = _max_windows(signature).strides
    row = signature.x.with_shape(((signature.x.shape[-1] - 1) * strides[-1] + 1,))
    return row, row.with_dtype("int32")


def _max_windows(signature: Signature) -> Windows:
    return windows(signature.inputs[1].shape[2:], signature.attrs["kernel_shape"], signature.attrs)


def _taps_temporaries(signature: Signature) -> Specs:
    x = signature.inputs[1]
    return maxima_specs(_max_windows(signature), math.prod(x.shape[:2]), x.dtype)


def _bind_taps(call: Binding) -> Thunk:
    w = _max_windows(call.signature)

    def bind(dy: Array, x: Array, dx: Array) -> Thunk:
        lead = (math.prod(x.shape[:2]),)
        data = (dy.reshape(lead + w.outputs), x.reshape(lead + w.sizes), dx.reshape(lead + w.sizes))
        return in_turn(*maxima_steps(w, data, call.temporaries))

    return by_image(bind, *call.inputs, call.y)


def _windows(signature: Signature) -> Windows:
    return windows(signature.attrs["sizes"], signature.attrs["kernel_shape"], signature.attrs)


def _stages(w: Windows) -> list[Shape]:
    """Returns the spatial shapes before 0, 1, ... axes are spread; the last axis is spread first."""
    return [w.outputs[: w.ndim - n] + w.sizes[w.ndim - n :] for n in range(w.ndim + 1)]


def _channels(signature: Signature) -> int:
    largest = max(map(math.prod, _stages(_windows(signature)))) * compute_dtype(signature.x.dtype).itemsize
    return max(1, min(math.prod(signature.x.shape[:2]), PIECE_BYTES // max(largest, 1)))


def _temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of a few channels before each axis is spread, and after the last.

    Empty where that is the input or the output itself.
    """
    dtype, channels = compute_dtype(signature.x.dtype), _channels(signature)
    sizes = [channels * math.prod(s) for s in _stages(_windows(signature))]
    if dtype == signature.x.dtype:
        sizes[0] = sizes[-1] = 0
    return tuple(TensorSpec((n,), dtype) for n in sizes)


def _spread_axis(w: Windows, source: Array, target: Array, axis: int) -> Iterator[Thunk]:
    """Yields steps that add each element along one axis to all elements of its window."""
    lead = (slice(None),) * (1 + axis)
    yield partial(target.fill, 0)
    for tap in range(w.kernel[axis]):
        outputs, inside = tap_range(w, axis, tap)
        part = target[*lead, inside]
        yield partial(np.add, part, source[*lead, outputs], part)


def _bind_spread(call: Binding) -> Thunk:
    w, most = _windows(call.signature), _channels(call.signature)
    scratch = call.temporaries
    channels = math.prod(call.x.shape[:2])
    x, y = call.x.reshape((channels, *w.outputs)), call.y.reshape((channels, *w.sizes))
    steps: list[Thunk] = []
    for a, b in pieces(channels, most):
        shapes = [(b - a, *s) for s in _stages(w)]
        chain = [r[: math.prod(s)].reshape(s) if r.size else r for r, s in zip(scratch, shapes, strict=True)]
        if chain[0].size:
            steps.append(partial(np.copyto, chain[0], x[a:b]))
        else:
            chain[0] = x[a:b]
        out = chain[-1] if chain[-1].size else y[a:b]
        for axis, source, target in zip(reversed(range(w.ndim)), chain, (*chain[1:-1], out), strict=False):
            steps += _spread_axis(w, source, target, axis)
        if chain[-1].size:
            steps.append(partial(np.copyto, y[a:b], out, casting="same_kind"))
    return in_turn(*steps)


def max_pool_gradient(b: Backward) -> Terms:
    """Returns the gradient of maximum pooling. Raises GradientError for too many spatial dimensions."""
    if b.x.ndim > 2 + _MOST_AXES:
        raise GradientError(f"has no rule for its gradient over {b.x.ndim - 2} spatial dimensions")
    return b.terms(lambda: widened(b, MAX_POOL_GRADIENT, b.dy, b.x, **window_attributes(b.attrs))[0])


def spread(b: Backward, dy: Tensor) -> Tensor:
    """Returns an array like the first input, where each element of dy is added to all elements of its window."""
    return b.apply1(SPREAD_WINDOWS, dy, **window_attributes(b.attrs), sizes=b.x.shape[2:])


def _power(x: Tensor, exponent: int) -> Tensor:
    """Returns x to the power of an integer from 1 on, by squaring."""
    if exponent == 1:
        return x
    half = _power(x, exponent // 2)
    return half * half * x if exponent % 2 else half * half


def lp_ratio(b: Backward, p: int) -> Tensor:
    """Returns dy / y ** (p - 1), and 0 where y is 0: there the norm has no gradient."""
    if p == 1:
        return b.dy
    none = b.equal(b.y, b.constant(0.0, b.y.spec))
    zero = b.constant(0.0, b.y.spec)
    return b.where(none, zero, b.dy / _power(b.y, p - 1))


def lp_slope(b: Backward, p: int) -> Tensor:
    """Returns sign(x) * |x| ** (p - 1), the gradient of |x| ** p / p."""
    if p % 2:
        return b.sign(b.x) * _power(b.x, p - 1) if p > 1 else b.sign(b.x)
    return _power(b.x, p - 1)


def _cost(signature: Signature) -> Cost:
    taps = math.prod(signature.attrs["kernel_shape"])
    return Cost(signature.x.size * taps, signature.nbytes)


MAX_POOL_GRADIENT = OpSchema(
    name="max_pool_gradient",
    summary="Each element of dy added to the place where its window over x has its maximum, the first of several.",
    infer=_infer_max,
    kernels=(
        Kernel("windows", _bind_max, _row, reads=dense_images, writes=dense_images, backend=NUMBA),
        Kernel("taps", _bind_taps, _taps_temporaries, reads=dense_images, writes=dense_images),
    ),
    arity=(2, 2),
    attributes=POOL_ATTRIBUTES,
    cost=_cost,
)
SPREAD_WINDOWS = OpSchema(
    name="spread_windows",
    summary="Each element of dy added to all of its window over `sizes`: the gradient of the sums of windows.",
    infer=_infer_spread,
    kernels=(Kernel("axes", _bind_spread, _temporaries, contiguous=all_contiguous),),
    attributes=(*POOL_ATTRIBUTES, Attribute("sizes", integers)),
    cost=_cost,
)
OPS = (MAX_POOL_GRADIENT, SPREAD_WINDOWS)
