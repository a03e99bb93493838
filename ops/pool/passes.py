"""Pooling one axis at a time: the maximum of a window is the maximum of the maxima of its rows, and so are sums.

A piece of a few channels is pooled along all axes before the next piece begins, so that it stays in the cache. Windows
are clipped at the borders, so nothing is ever padded.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from attrs import frozen

from ops.common.boxes import pieces
from ops.common.thunks import in_turn
from ops.common.windows import Windows, tap_range
from ops.schema.schema import Binding, Signature, Thunk
from ops.tensor.spec import Array, Shape, TensorSpec

PIECE_BYTES = 64 << 10
"""Most bytes of one temporary, unless one channel alone is larger."""


def _nothing(_: Array) -> tuple[Thunk, ...]:
    return ()


@frozen(eq=False)
class Pooling:
    """How the elements of a window become one: `ufunc` combines two at a time, beginning with `identity`.

    `prepare(x, temporary)` returns steps that write the elements to combine into a temporary; it is None where these
    are the elements of x as they are. `finish(y)` returns steps that turn the combined elements into the result, in
    place (as a division by the size of windows).
    """

    windows: Windows
    ufunc: np.ufunc
    identity: Array
    prepare: Callable[[Array, Array], tuple[Thunk, ...]] | None = None
    finish: Callable[[Array], tuple[Thunk, ...]] = _nothing

    @property
    def dtype(self) -> np.dtype[Any]:
        """Returns the dtype of computation."""
        return self.identity.dtype

    @property
    def stages(self) -> list[Shape]:
        """Returns the spatial shapes after 0, 1, ... axes are pooled."""
        w = self.windows
        return [w.outputs[:a] + w.sizes[a:] for a in range(w.ndim + 1)]


def join_axis(pooling: Pooling, source: Array, target: Array, axis: int) -> Iterator[Thunk]:
    """Yields steps that pool (C, spatial...) along one spatial axis."""
    w, lead = pooling.windows, (slice(None),) * (1 + axis)
    ranges = [tap_range(w, axis, t) for t in range(w.kernel[axis])]
    whole = [i for o, i in ranges if o == slice(0, w.outputs[axis])]
    parts = [(o, i) for o, i in ranges if o != slice(0, w.outputs[axis]) and o != slice(0, 0)]
    if len(whole) > 1:
        yield partial(pooling.ufunc, source[*lead, whole[0]], source[*lead, whole[1]], out=target)
    else:
        yield partial(np.copyto, target, source[*lead, whole[0]] if whole else pooling.identity)
    for inside in whole[2:]:
        yield partial(pooling.ufunc, target, source[*lead, inside], out=target)
    for outputs, inside in parts:
        part = target[*lead, outputs]
        yield partial(pooling.ufunc, part, source[*lead, inside], out=part)


def _channels(pooling: Pooling, signature: Signature) -> int:
    largest = max(map(math.prod, pooling.stages)) * pooling.dtype.itemsize
    return max(1, min(signature.x.shape[1], PIECE_BYTES // max(largest, 1)))


def pool_temporaries(pooling: Pooling, signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of the values of a piece before the first axis, and after each axis.

    A spec is empty where those values are the input or the output itself.
    """
    channels, stages = _channels(pooling, signature), pooling.stages
    sizes = [channels * math.prod(s) for s in stages]
    if pooling.prepare is None:
        sizes[0] = 0
    if pooling.dtype == signature.y.dtype:
        sizes[-1] = 0
    return tuple(TensorSpec((n,), pooling.dtype) for n in sizes)


def _piece(pooling: Pooling, x: Array, y: Array, scratch: tuple[Array, ...]) -> Iterator[Thunk]:
    """Yields steps that pool a few channels of one image."""
    shapes = [(len(x), *s) for s in pooling.stages]
    held = [r[: math.prod(s)].reshape(s) for r, s in zip(scratch[1:-1], shapes[1:-1], strict=True)]
    source, out = x, y
    if pooling.prepare is not None:
        source = scratch[0][: x.size].reshape(x.shape)
        yield from pooling.prepare(x, source)
    if pooling.dtype != y.dtype:
        out = scratch[-1][: y.size].reshape(y.shape)
    chain = (source, *held, out)
    for axis in range(pooling.windows.ndim):
        yield from join_axis(pooling, chain[axis], chain[axis + 1], axis)
    yield from pooling.finish(out)
    if out is not y:
        yield partial(np.copyto, y, out, casting="same_kind")


def bind_pool(pooling: Pooling, call: Binding) -> Thunk:
    """Returns the thunk that pools all of x (N, C, spatial...)."""
    scratch = call.temporaries
    steps: list[Thunk] = []
    for x, y in zip(call.x, call.y, strict=True):
        for a, b in pieces(len(x), _channels(pooling, call.signature)):
            steps += _piece(pooling, x[a:b], y[a:b], scratch)
    return in_turn(*steps)
