"""The gradient of maximum pooling in numpy: all windows of some channels, tap by tap."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np

from ops.common.boxes import CACHE_BYTES, pieces
from ops.common.indices import INT64, add_positions, element_strides
from ops.common.windows import Windows, tap_range
from ops.schema.schema import Thunk
from ops.tensor.limits import constant
from ops.tensor.spec import BOOL, Array, TensorSpec


def maxima_specs(w: Windows, channels: int, dtype: np.dtype[np.generic]) -> tuple[TensorSpec, ...]:
    """Returns the specs of the temporaries of a few channels.

    They are maxima, their places, two masks of windows, and terms; then, twice, the places of all elements of one
    channel.
    """
    most = max(1, min(channels, CACHE_BYTES // (8 * max(math.prod(w.outputs), 1))))
    maxima = TensorSpec((most, *w.outputs), dtype)
    marks, numbers = maxima.with_dtype(BOOL), TensorSpec(w.sizes, INT64)
    return maxima, maxima.with_dtype(INT64), marks, marks, maxima, numbers, numbers


def maxima_steps(w: Windows, data: tuple[Array, Array, Array], temporaries: Sequence[Array]) -> Iterator[Thunk]:
    """Yields steps that add each element of dy to dx where the maximum of its window lies.

    `data` are dy, x and dx: (channels, spatial...). Of several maxima the first is taken; NaN is above all, and of
    several NaN the last is taken.
    """
    dy, x, dx = data
    *scratch, numbers, term = temporaries
    yield partial(numbers.fill, 0)
    yield add_positions(numbers, term, element_strides(w.sizes))
    yield partial(dx.fill, 0)
    for a, b in pieces(len(x), len(scratch[0])):
        maxima, places, better, mark, terms = (buffer[: b - a] for buffer in scratch)
        yield partial(places.fill, -1)
        for taps in product(*map(range, w.kernel)):
            ranges = [tap_range(w, axis, tap) for axis, tap in enumerate(taps)]
            outputs, inside = (tuple(r[side] for r in ranges) for side in range(2))
            window, source = (slice(None), *outputs), x[a:b, *inside]
            if not source.size:
                continue
            yield partial(np.greater, source, maxima[window], better[window])
            yield partial(np.not_equal, source, source, mark[window])
            yield partial(np.logical_or, better[window], mark[window], better[window])
            yield partial(np.less, places[window], constant(0, INT64), mark[window])
            yield partial(np.logical_or, better[window], mark[window], better[window])
            yield partial(np.copyto, maxima[window], source, where=better[window])
            yield partial(np.copyto, places[window], numbers[inside], where=better[window])
        yield partial(np.copyto, terms, dy[a:b])
        yield partial(np.less, places, constant(0, INT64), mark)
        yield partial(np.copyto, terms, constant(0, terms.dtype), where=mark)
        yield partial(np.copyto, places, constant(0, INT64), where=mark)
        for one, place, term_of_one in zip(dx[a:b], places, terms, strict=True):
            yield partial(np.add.at, one.reshape(-1), place.reshape(-1), term_of_one.reshape(-1))
