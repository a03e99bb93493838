"""Depthwise convolution of planes and its gradients, compiled: rows of one channel, multiplied and added tap by tap.

Imports numba: a door loads it, on first use. All work is one part's, since the scratch arrays are those of
one channel. Rows that follow each other in the padded plane are summed as one long row, since short rows would fill no
vector register; the sums between two rows of outputs are not used:

    padded plane, flat      0 0 0 0 0 0 | 0 a b c d 0 | 0 e f g h 0 | 0 0 0 0 0 0
    window of 3 x 3, sums                 r s t u . .   v w x y . .
"""

from typing import Any

import numpy as np

from allocator.machine_code.entry import ANY_ORDER, entry
from allocator.machine_code.memory import array_at, copy, fill, jitable
from ops.convolution.args import PLANES
from ops.native.memory import record_at
from ops.tensor.spec import Array

Geometry = tuple[int, int, int, int, int, int, int, int]


@jitable
def _plane(address: int, shape: Any, dtype: Any) -> Any:
    """Returns a dense array of two dimensions."""
    return array_at(address, (shape[0], shape[1]), dtype)


@jitable
def _line(address: int, shape: Any, dtype: Any) -> Any:
    """Returns the elements of the same array in one dimension."""
    return array_at(address, (shape[0] * shape[1],), dtype)


@jitable
def _paste(plane: Array, top: int, left: int, part: Array, shape: Any) -> None:
    """Copies rows and columns of a part into a plane."""
    for i in range(shape[0]):
        copy(part[i, : shape[1]], plane[top + i, left:])


@jitable
def _spread(plane: Array, step: int, part: Array) -> None:
    """Copies the rows of a part into those of a plane, `step` columns apart."""
    for i in range(part.shape[0]):
        for j in range(part.shape[1]):
            plane[i, j * step] = part[i, j]


@jitable
def _images(address: int, shape: Any, dtype: Any) -> Any:
    """Returns a dense array of four dimensions."""
    return array_at(address, (shape[0], shape[1], shape[2], shape[3]), dtype)


@jitable
def _geometry(args: Any) -> Geometry:
    g = args.geometry
    return g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7]


@jitable
def _sum_taps(row: Array, flat: Array, weights: Array, geometry: Geometry, start: int) -> None:
    """Adds the products of all taps to a row of sums, whose windows begin at flat[start], three taps at a time."""
    _, _, dh, dw, pitch, _, taps, kw = geometry
    for tap in range(taps % 3):
        factor, pixels = weights[tap], flat[start + tap // kw * dh * pitch + tap % kw * dw :]
        for j in range(len(row)):
            row[j] += factor * pixels[j]
    for tap in range(taps % 3, taps, 3):
        f, g, h = weights[tap], weights[tap + 1], weights[tap + 2]
        p = flat[start + tap // kw * dh * pitch + tap % kw * dw :]
        q = flat[start + (tap + 1) // kw * dh * pitch + (tap + 1) % kw * dw :]
        r = flat[start + (tap + 2) // kw * dh * pitch + (tap + 2) % kw * dw :]
        for j in range(len(row)):
            row[j] += f * p[j] + g * q[j] + h * r[j]


@jitable
def _convolve(address: int, dtype: Any) -> None:
    args = record_at(address, PLANES)
    x, y = _images(args.x, args.x_shape, dtype), _images(args.y, args.y_shape, dtype)
    sh, sw, dh, dw, ph, pw, kh, kw = _geometry(args)
    padded, sums = _plane(args.padded, args.padded_shape, dtype), _plane(args.rows, args.rows_shape, dtype)
    weights, bias = _plane(args.weights, (y.shape[1], kh * kw), dtype), _plane(args.bias, (1, y.shape[1]), dtype)[0]
    low, high = dtype(args.low), dtype(args.high)
    outputs, rows, reach = y.shape[1], y.shape[2], (y.shape[3] - 1) * sw + 1
    height, width = max(0, min(x.shape[2], padded.shape[0] - ph)), max(0, min(x.shape[3], padded.shape[1] - pw))
    flat, total = _line(args.padded, args.padded_shape, dtype), _line(args.rows, args.rows_shape, dtype)
    pitch = padded.shape[1]
    steps = (sh, sw, dh, dw, pitch, 0, kh * kw, kw)
    fill(flat, 0)
    for job in range(y.shape[0] * outputs):
        n, o = job // outputs, job % outputs
        _paste(padded, ph, pw, x[n, o * x.shape[1] // outputs], (height, width))
        for first in range(0, rows, sums.shape[0]):
            some = min(sums.shape[0], rows - first)
            row = total[: (some - 1) * pitch + reach]
            fill(row, bias[o])
            _sum_taps(row, flat, weights[o], steps, first * sh * pitch)
            for i in range(some):
                for j in range(y.shape[3]):
                    value = row[i * pitch + j * sw]
                    value = low if value < low else value
                    y[n, o, first + i, j] = high if value > high else value


@jitable
def _data_gradient(address: int, dtype: Any) -> None:
    """Computes x, the gradient by the inputs, from y, that of the outputs; dy is laid out as the windows are apart."""
    args = record_at(address, PLANES)
    dx, dy = _images(args.x, args.x_shape, dtype), _images(args.y, args.y_shape, dtype)
    sh, sw, dh, dw, ph, pw, kh, kw = _geometry(args)
    padded, apart = _plane(args.padded, args.padded_shape, dtype), _plane(args.rows, args.rows_shape, dtype)
    weights, bias = _plane(args.weights, (dy.shape[1], kh * kw), dtype), _plane(args.bias, (1, dx.shape[1]), dtype)[0]
    flat, grads = _line(args.padded, args.padded_shape, dtype), _line(args.rows, args.rows_shape, dtype)
    pitch = padded.shape[1]
    multiplier, span = dy.shape[1] // max(dx.shape[1], 1), (dy.shape[3] - 1) * sw + 1
    runs, length = (1, (dy.shape[2] - 1) * pitch + span) if sh == 1 else (dy.shape[2], span)
    fill(grads, 0)
    for job in range(dx.shape[0] * dx.shape[1]):
        n, c = job // dx.shape[1], job % dx.shape[1]
        fill(flat, bias[c])
        for o in range(c * multiplier, (c + 1) * multiplier):
            _spread(apart, sw, dy[n, o])
            for step in range(weights.shape[1] * runs):
                tap, run = step // runs, step % runs
                target = flat[(run * sh + tap // kw * dh) * pitch + tap % kw * dw :][:length]
                source, factor = grads[run * pitch :], weights[o, tap]
                for i in range(len(target)):
                    target[i] += factor * source[i]
        for i in range(dx.shape[2]):
            copy(padded[ph + i, pw : pw + dx.shape[3]], dx[n, c, i])


@jitable
def _weight_gradient(address: int, dtype: Any) -> None:
    """Computes the gradient by the weights from x and y, the gradient by the outputs."""
    args = record_at(address, PLANES)
    x, dy = _images(args.x, args.x_shape, dtype), _images(args.y, args.y_shape, dtype)
    sh, sw, dh, dw, ph, pw, kh, kw = _geometry(args)
    padded, apart = _plane(args.padded, args.padded_shape, dtype), _plane(args.rows, args.rows_shape, dtype)
    weights = _plane(args.weights, (dy.shape[1], kh * kw), dtype)
    flat, grads = _line(args.padded, args.padded_shape, dtype), _line(args.rows, args.rows_shape, dtype)
    pitch = padded.shape[1]
    multiplier, span = dy.shape[1] // max(x.shape[1], 1), (dy.shape[3] - 1) * sw + 1
    runs, length = (1, (dy.shape[2] - 1) * pitch + span) if sh == 1 else (dy.shape[2], span)
    fill(grads, 0)
    fill(flat, 0)
    fill(_line(args.weights, (dy.shape[1], kh * kw), dtype), 0)
    for job in range(x.shape[0] * x.shape[1]):
        n, c = job // x.shape[1], job % x.shape[1]
        _paste(padded, ph, pw, x[n, c], (x.shape[2], x.shape[3]))
        for o in range(c * multiplier, (c + 1) * multiplier):
            _spread(apart, sw, dy[n, o])
            for step in range(weights.shape[1] * runs):
                tap, run = step // runs, step % runs
                pixels = flat[(run * sh + tap // kw * dh) * pitch + tap % kw * dw :][:length]
                source, total = grads[run * pitch :], dtype(0)
                for i in range(len(pixels)):
                    total += pixels[i] * source[i]
                weights[o, tap] += total


@entry()
def convolve_float32(address: int, part: int, _: int) -> None:
    """Convolves float32; the arguments are a PLANES record."""
    if part == 0:
        _convolve(address, np.float32)


@entry()
def convolve_float64(address: int, part: int, _: int) -> None:
    """Convolves float64; the arguments are a PLANES record."""
    if part == 0:
        _convolve(address, np.float64)


@entry(fastmath=ANY_ORDER)
def data_gradient_float32(address: int, part: int, _: int) -> None:
    """Computes the gradient by the inputs in float32; the arguments are a PLANES record."""
    if part == 0:
        _data_gradient(address, np.float32)


@entry(fastmath=ANY_ORDER)
def data_gradient_float64(address: int, part: int, _: int) -> None:
    """Computes the gradient by the inputs in float64; the arguments are a PLANES record."""
    if part == 0:
        _data_gradient(address, np.float64)


@entry(fastmath=ANY_ORDER)
def weight_gradient_float32(address: int, part: int, _: int) -> None:
    """Computes the gradient by the weights in float32; the arguments are a PLANES record."""
    if part == 0:
        _weight_gradient(address, np.float32)


@entry(fastmath=ANY_ORDER)
def weight_gradient_float64(address: int, part: int, _: int) -> None:
    """Computes the gradient by the weights in float64; the arguments are a PLANES record."""
    if part == 0:
        _weight_gradient(address, np.float64)
