"""Maximum pooling that also says where each maximum lies."""

import math
from collections.abc import Iterator
from functools import partial
from itertools import product

import numpy as np

from ops.common.boxes import pieces
from ops.common.thunks import in_turn
from ops.common.windows import Windows, pool_windows, tap_range
from ops.schema.schema import Binding, Kernel, Signature, Thunk, unless
from ops.tensor.spec import FLOATS, Array, TensorSpec

_PIECE = 16 << 10
"""Most outputs of one piece, where one channel has no more already."""


def _channels(signature: Signature) -> int:
    return max(1, min(signature.x.shape[1], _PIECE // max(math.prod(signature.y.shape[2:]), 1)))


def _temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of a mask of outputs, and of places of elements.

    The mask says which outputs of a piece take the element at hand of their window; the places say where in its channel
    that element lies, for each output.
    """
    outputs = signature.y.shape[2:]
    return TensorSpec((_channels(signature), *outputs), np.dtype(bool)), TensorSpec(outputs, np.dtype("int64"))


def _steps_of_axes(w: Windows, storage_order: int) -> list[int]:
    """Returns how far apart neighbours along each axis are, in elements.

    A channel is stored by rows (`storage_order` 0) or by columns (1).
    """
    if storage_order:
        return [math.prod(w.sizes[:a]) for a in range(w.ndim)]
    return [math.prod(w.sizes[a + 1 :]) for a in range(w.ndim)]


def _places(w: Windows, taps: tuple[int, ...], steps: list[int], buffer: Array) -> Iterator[Thunk]:
    """Yields steps that write, for each output, the place in its channel of one element of the window."""
    yield partial(buffer.fill, 0)
    for axis, (tap, step) in enumerate(zip(taps, steps, strict=True)):
        starts = np.arange(w.outputs[axis]) * w.strides[axis] + tap * w.dilations[axis] - w.begins[axis]
        column = (starts * step).astype(np.int64).reshape((-1,) + (1,) * (w.ndim - 1 - axis))
        yield partial(np.add, buffer, column, buffer)


def _tap(x: Array, y: Array, places: Array, mask: Array, buffer: Array) -> Iterator[Thunk]:
    """Yields steps that take one element of each window where it is larger than all before."""
    yield partial(np.greater, x, y, mask)
    yield partial(np.copyto, y, x, where=mask)
    yield partial(np.copyto, places, buffer, where=mask)


def _piece(call: Binding, x: Array, y: Array, places: Array, bases: Array) -> Iterator[Thunk]:
    """Yields steps for a few channels of one image; `bases` are the places of their first elements."""
    w = pool_windows(call.signature)
    mask, buffer = call.temporaries
    steps = _steps_of_axes(w, call.attrs["storage_order"])
    yield partial(y.fill, -np.inf if y.dtype in FLOATS else np.iinfo(y.dtype).min)
    yield partial(places.fill, 0)
    for taps in product(*map(range, w.kernel)):
        ranges = [tap_range(w, a, t) for a, t in enumerate(taps)]
        target, source = tuple(o for o, _ in ranges), tuple(i for _, i in ranges)
        yield from _places(w, taps, steps, buffer)
        part = y[:, *target]
        yield from _tap(x[:, *source], part, places[:, *target], mask[: len(x), *target], buffer[target])
    yield partial(np.add, places, bases, places)


def _bind(call: Binding) -> Thunk:
    y, places = call.outputs
    batch, channels = y.shape[:2]
    size = math.prod(call.x.shape[2:])
    bases = (np.arange(batch * channels) * size).reshape((batch, channels) + (1,) * (y.ndim - 2))
    steps: list[Thunk] = []
    for n in range(batch):
        for a, b in pieces(channels, _channels(call.signature)):
            steps += _piece(call, call.x[n, a:b], y[n, a:b], places[n, a:b], bases[n, a:b])
    return in_turn(*steps)


def _supports(signature: Signature) -> bool:
    return len(signature.outputs) == 2


_unsupported = unless(_supports, "no indices are an output")


INDICES = Kernel("taps", _bind, _temporaries, unsupported=_unsupported)
"""Tap by tap, with a mask of the outputs that take it."""
