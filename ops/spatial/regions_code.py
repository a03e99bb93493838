"""Samples and maxima of regions of images, each output by itself. Imports numba: a door loads it, on first use.

Sums and products are in the order of the kernels of numpy, so that both give the same bits.
"""

from typing import Any

import numpy as np

from allocator.machine_code.entry import CALL, EXACT, entry
from allocator.machine_code.memory import array_at, fill, jitable
from ops.native.memory import record_at
from ops.spatial.args import REGIONS
from ops.tensor.spec import Array


@jitable
def _larger(best: Any, other: Any) -> Any:
    """Returns the larger of two numbers, NaN where one is NaN."""
    return other if other > best or other != other else best  # noqa: PLR0124 - NaN alone differs from itself


@jitable
def _maxima(image: Array, bounds: Array, y: Array) -> None:
    channels, height, width = y.shape
    for c in range(channels):
        for i in range(height):
            for j in range(width):
                top, bottom = bounds[1 + 2 * i], bounds[2 + 2 * i]
                left, right = bounds[1 + 2 * (height + j)], bounds[2 + 2 * (height + j)]
                if top >= bottom or left >= right:
                    y[c, i, j] = 0
                    continue
                best = image[c, top, left]
                for row in range(top, bottom):
                    for column in range(left, right):
                        best = _larger(best, image[c, row, column])
                y[c, i, j] = best


def _placing(dtype: Any) -> Any:
    """Returns the function that gives the elements beside a sample and their weights, in numbers of one type."""
    zero, one, half = dtype(0), dtype(1), dtype(0.5)

    @jitable
    def place(start: Any, size: Any, at: tuple[int, int, int], length: int) -> Any:
        output, sample, samples = at
        exact = start + dtype(output) * size + (dtype(sample) + half) * size / dtype(samples)
        inside = one if exact >= -one and exact <= dtype(length) else zero
        moved = exact if exact > zero else zero
        moved = moved if moved < dtype(length - 1) else dtype(length - 1)
        low = int(moved)
        rest = moved - dtype(low)
        return low, min(low + 1, length - 1), (one - rest) * inside, rest * inside

    return place


@jitable
def _add(image: Array, y: Array, at: tuple[int, int], sample: Any, is_max: bool) -> None:
    """Adds a sample of all channels to an output, or takes the largest product; neighbours lie in one cache line."""
    (i, j), ((top, bottom, a, b), (left, right, p, q)) = at, sample
    first, second, third, fourth = a * p, a * q, b * p, b * q
    for c in range(len(y)):
        one, two = image[c, top, left] * first, image[c, top, right] * second
        three, four = image[c, bottom, left] * third, image[c, bottom, right] * fourth
        if is_max:
            y[c, i, j] = _larger(_larger(_larger(_larger(y[c, i, j], one), two), three), four)
        else:
            y[c, i, j] += one + two + three + four


@jitable
def _fill(y: Array, value: Any) -> None:
    for c in range(y.shape[0]):
        for i in range(y.shape[1]):
            fill(y[c, i], value)


@jitable
def _divide(y: Array, divisor: Any) -> None:
    for c in range(y.shape[0]):
        for i in range(y.shape[1]):
            for j in range(y.shape[2]):
                y[c, i, j] /= divisor


def _pooling(dtype: Any) -> Any:
    """Returns the function that computes all outputs of a region: means of their samples, or the largest products."""
    place = _placing(dtype)
    zero, least = dtype(0), dtype(-np.inf)

    @jitable
    def pool(image: Array, edges: Array, counts: Array, y: Array, is_max: bool) -> None:
        rows, columns = counts[1], counts[2]
        _fill(y, least if is_max and rows * columns else zero)
        for i in range(y.shape[1]):
            for r in range(rows):
                row = place(edges[0], edges[1], (i, r, rows), image.shape[1])
                for j in range(y.shape[2]):
                    for s in range(columns):
                        column = place(edges[2], edges[3], (j, s, columns), image.shape[2])
                        _add(image, y, (i, j), (row, column), is_max)
        if not is_max:
            _divide(y, dtype(max(rows * columns, 1)))

    return pool


def _declare(dtype: Any) -> None:
    """Declares roi_align_DTYPE and max_roi_pool_DTYPE; the arguments are a REGIONS record."""
    pool = _pooling(dtype)

    @entry(CALL, fastmath=EXACT, name=f"roi_align_{np.dtype(dtype).name}")
    def roi_align(address: int) -> int:
        args = record_at(address, REGIONS)
        regions, channels, height, width = args.regions, args.channels, args.outputs[0], args.outputs[1]
        x = array_at(args.x, (args.images, channels, args.lengths[0], args.lengths[1]), dtype)
        y = array_at(args.y, (regions, channels, height, width), dtype)
        edges, counts = array_at(args.edges, (regions, 4), dtype), array_at(args.table, (regions, 3), np.int64)
        for n in range(regions):
            pool(x[counts[n, 0]], edges[n], counts[n], y[n], args.is_max != 0)
        return 0

    @entry(CALL, fastmath=EXACT, name=f"max_roi_pool_{np.dtype(dtype).name}")
    def max_roi_pool(address: int) -> int:
        args = record_at(address, REGIONS)
        regions, channels, height, width = args.regions, args.channels, args.outputs[0], args.outputs[1]
        x = array_at(args.x, (args.images, channels, args.lengths[0], args.lengths[1]), dtype)
        y = array_at(args.y, (regions, channels, height, width), dtype)
        table = array_at(args.table, (regions, 1 + 2 * (height + width)), np.int64)
        for n in range(regions):
            _maxima(x[table[n, 0]], table[n], y[n])
        return 0


for _dtype in (np.float32, np.float64):
    _declare(_dtype)
