"""Batch normalization over channels, compiled: moments and sums, and scaled data, in one pass each.

Imports numba: a door loads it, on first use. A part has channels, or rows (one channel of one image), of its
own. The elements of a row are summed in lanes of their own type, rows are added in float64, in order, so that the bits
are the same in every run.
"""

from typing import Any

import numpy as np
from numba import carray  # type: ignore[attr-defined, unused-ignore]

from allocator.machine_code.entry import ANY_ORDER, entry
from allocator.machine_code.memory import jitable, pointer
from ops.native.memory import record_at, share
from ops.norm.args import CHANNEL_SUMS, COMBINE, MOMENTS, SCALE_SHIFT
from ops.tensor.spec import Array


@jitable
def _flat(address: int, count: int, dtype: Any) -> Any:
    """Returns a dense array of one dimension."""
    return carray(pointer(address), (count,), dtype)


@jitable
def _whole(address: int, args: Any, dtype: Any) -> Any:
    """Returns the dense data of all images."""
    return _flat(address, args.images * args.channels * args.elements, dtype)


@jitable
def _images(address: int, args: Any, pitch: int, dtype: Any) -> Any:
    """Returns the elements from the first image to the end of the last one, those in between with them."""
    return _flat(address, (args.images - 1) * pitch + args.channels * args.elements, dtype)


@jitable
def _scale_shift(address: int, part: int, parts: int, dtype: Any) -> None:
    args = record_at(address, SCALE_SHIFT)
    channels, count, inside = args.channels, args.elements, args.x == args.y
    x, y = _whole(args.x, args, dtype), _whole(args.y, args, dtype)
    factors, shifts = _flat(args.factors, channels, dtype), _flat(args.shifts, channels, dtype)
    first, last = share(args.images * channels, part, parts)
    for number in range(first, last):
        f, s = factors[number % channels], shifts[number % channels]
        source, row = x[number * count : (number + 1) * count], y[number * count : (number + 1) * count]
        # A loop over one array alone: over two that may overlap, no vectors could be used where both are the same.
        if inside:
            for i in range(len(row)):
                row[i] = row[i] * f + s
        else:
            for i in range(len(row)):
                row[i] = source[i] * f + s


@jitable
def _moments(address: int, part: int, parts: int, dtype: Any) -> None:
    args = record_at(address, MOMENTS)
    images, channels, elements, pitch = args.images, args.channels, args.elements, args.x_pitch
    x, count = _images(args.x, args, pitch, dtype), np.float64(images * elements)
    means, variances = _flat(args.means, channels, dtype), _flat(args.variances, channels, dtype)
    first, last = share(channels, part, parts)
    for c in range(first, last):
        total = 0.0
        for n in range(images):
            row, sum_of_row = x[n * pitch + c * elements :][:elements], dtype(0)
            for i in range(len(row)):
                sum_of_row += row[i]
            total += sum_of_row
        means[c] = total / count
        mean, total = means[c], 0.0
        for n in range(images):
            row, sum_of_row = x[n * pitch + c * elements :][:elements], dtype(0)
            for i in range(len(row)):
                sum_of_row += (row[i] - mean) * (row[i] - mean)
            total += sum_of_row
        variances[c] = total / count


@jitable
def _channel_sums(address: int, part: int, parts: int, dtype: Any) -> None:
    args = record_at(address, CHANNEL_SUMS)
    channels, elements, x_pitch, dy_pitch = args.channels, args.elements, args.x_pitch, args.dy_pitch
    x, dy = _images(args.x, args, x_pitch, dtype), _images(args.dy, args, dy_pitch, dtype)
    means, factors = _flat(args.means, channels, dtype), _flat(args.factors, channels, dtype)
    products, sums = _flat(args.products, channels, dtype), _flat(args.sums, channels, dtype)
    first, last = share(channels, part, parts)
    for c in range(first, last):
        mean, sum_total, product_total = means[c], 0.0, 0.0
        for n in range(args.images):
            row, grads = x[n * x_pitch + c * elements :][:elements], dy[n * dy_pitch + c * elements :][:elements]
            sum_of_row, product_of_row = dtype(0), dtype(0)
            for i in range(len(row)):
                sum_of_row += grads[i]
                product_of_row += (row[i] - mean) * grads[i]
            sum_total += sum_of_row
            product_total += product_of_row
        sums[c], products[c] = sum_total, product_total * factors[c]


@jitable
def _combine_row(row: Array, grads: Array, out: Array, over: tuple[bool, bool], numbers: Any) -> None:
    """Writes one row; what is read where it is written is named by the same array: else no vectors could be used."""
    mean, x_factor, middle, dy_factor = numbers
    if over[0]:
        for i in range(len(out)):
            out[i] = (out[i] - mean) * x_factor + (grads[i] - middle) * dy_factor
    elif over[1]:
        for i in range(len(out)):
            out[i] = (row[i] - mean) * x_factor + (out[i] - middle) * dy_factor
    else:
        for i in range(len(out)):
            out[i] = (row[i] - mean) * x_factor + (grads[i] - middle) * dy_factor


@jitable
def _combine(address: int, part: int, parts: int, dtype: Any) -> None:
    args = record_at(address, COMBINE)
    channels, count, over = args.channels, args.elements, (args.x == args.y, args.dy == args.y)
    x, dy, y = _whole(args.x, args, dtype), _whole(args.dy, args, dtype), _whole(args.y, args, dtype)
    means, x_factors = _flat(args.means, channels, dtype), _flat(args.x_factors, channels, dtype)
    middles, dy_factors = _flat(args.middles, channels, dtype), _flat(args.dy_factors, channels, dtype)
    first, last = share(args.images * channels, part, parts)
    for number in range(first, last):
        c, start, end = number % channels, number * count, (number + 1) * count
        numbers = means[c], x_factors[c], middles[c], dy_factors[c]
        _combine_row(x[start:end], dy[start:end], y[start:end], over, numbers)


@entry()
def scale_shift_float32(address: int, part: int, parts: int) -> None:
    """Scales and shifts float32; the arguments are a SCALE_SHIFT record."""
    _scale_shift(address, part, parts, np.float32)


@entry()
def scale_shift_float64(address: int, part: int, parts: int) -> None:
    """Scales and shifts float64; the arguments are a SCALE_SHIFT record."""
    _scale_shift(address, part, parts, np.float64)


@entry(fastmath=ANY_ORDER)
def moments_float32(address: int, part: int, parts: int) -> None:
    """Computes means and variances of float32; the arguments are a MOMENTS record."""
    _moments(address, part, parts, np.float32)


@entry(fastmath=ANY_ORDER)
def moments_float64(address: int, part: int, parts: int) -> None:
    """Computes means and variances of float64; the arguments are a MOMENTS record."""
    _moments(address, part, parts, np.float64)


@entry(fastmath=ANY_ORDER)
def channel_sums_float32(address: int, part: int, parts: int) -> None:
    """Computes sums over channels of float32; the arguments are a CHANNEL_SUMS record."""
    _channel_sums(address, part, parts, np.float32)


@entry(fastmath=ANY_ORDER)
def channel_sums_float64(address: int, part: int, parts: int) -> None:
    """Computes sums over channels of float64; the arguments are a CHANNEL_SUMS record."""
    _channel_sums(address, part, parts, np.float64)


@entry(fastmath=ANY_ORDER)
def combine_float32(address: int, part: int, parts: int) -> None:
    """Combines data and gradients of float32; the arguments are a COMBINE record."""
    _combine(address, part, parts, np.float32)


@entry(fastmath=ANY_ORDER)
def combine_float64(address: int, part: int, parts: int) -> None:
    """Combines data and gradients of float64; the arguments are a COMBINE record."""
    _combine(address, part, parts, np.float64)
