"""Depthwise convolution of planes and its gradients, compiled: rows of one channel, multiplied and added tap by tap.

Imports numba: `ops.native.door` loads it, on first use. All work is one part's, since the scratch arrays are those of
one channel. Rows that follow each other in the padded plane are summed as one long row, since short rows would fill no
vector register; the sums between two rows of outputs are not used:

    padded plane, flat      0 0 0 0 0 0 | 0 a b c d 0 | 0 e f g h 0 | 0 0 0 0 0 0
    window of 3 x 3, sums                 r s t u . .   v w x y . .
"""

from typing import Any

import numpy as np
from numba import carray  # type: ignore[attr-defined, unused-ignore]

from ops.convolution.args import PLANES
from ops.native.memory import jitable, pointer, record_at
from ops.tensor.spec import Array

Geometry = tuple[int, int, int, int, int, int, int, int]


@jitable
def _plane(address: int, shape: Any, dtype: Any) -> Any:
    """Returns a dense array of two dimensions."""
    return carray(pointer(address), (shape[0], shape[1]), dtype)


@jitable
def _images(address: int, shape: Any, dtype: Any) -> Any:
    """Returns a dense array of four dimensions."""
    return carray(pointer(address), (shape[0], shape[1], shape[2], shape[3]), dtype)


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
    pitch, flat, total = padded.shape[1], padded.reshape(padded.size), sums.reshape(sums.size)
    steps = (sh, sw, dh, dw, pitch, 0, kh * kw, kw)
    padded[:] = 0
    for job in range(y.shape[0] * outputs):
        n, o = job // outputs, job % outputs
        padded[ph : ph + height, pw : pw + width] = x[n, o * x.shape[1] // outputs, :height, :width]
        for first in range(0, rows, sums.shape[0]):
            some = min(sums.shape[0], rows - first)
            row = total[: (some - 1) * pitch + reach]
            row[:] = bias[o]
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
    pitch, flat, grads = padded.shape[1], padded.reshape(padded.size), apart.reshape(apart.size)
    multiplier, span = dy.shape[1] // max(dx.shape[1], 1), (dy.shape[3] - 1) * sw + 1
    runs, length = (1, (dy.shape[2] - 1) * pitch + span) if sh == 1 else (dy.shape[2], span)
    apart[:] = 0
    for job in range(dx.shape[0] * dx.shape[1]):
        n, c = job // dx.shape[1], job % dx.shape[1]
        padded[:] = bias[c]
        for o in range(c * multiplier, (c + 1) * multiplier):
            apart[:, 0:span:sw] = dy[n, o]
            for step in range(weights.shape[1] * runs):
                tap, run = step // runs, step % runs
                target = flat[(run * sh + tap // kw * dh) * pitch + tap % kw * dw :][:length]
                source, factor = grads[run * pitch :], weights[o, tap]
                for i in range(len(target)):
                    target[i] += factor * source[i]
        dx[n, c] = padded[ph : ph + dx.shape[2], pw : pw + dx.shape[3]]


@jitable
def _weight_gradient(address: int, dtype: Any) -> None:
    """Computes the gradient by the weights from x and y, the gradient by the outputs."""
    args = record_at(address, PLANES)
    x, dy = _images(args.x, args.x_shape, dtype), _images(args.y, args.y_shape, dtype)
    sh, sw, dh, dw, ph, pw, kh, kw = _geometry(args)
    padded, apart = _plane(args.padded, args.padded_shape, dtype), _plane(args.rows, args.rows_shape, dtype)
    weights = _plane(args.weights, (dy.shape[1], kh * kw), dtype)
    pitch, flat, grads = padded.shape[1], padded.reshape(padded.size), apart.reshape(apart.size)
    multiplier, span = dy.shape[1] // max(x.shape[1], 1), (dy.shape[3] - 1) * sw + 1
    runs, length = (1, (dy.shape[2] - 1) * pitch + span) if sh == 1 else (dy.shape[2], span)
    apart[:], padded[:], weights[:] = 0, 0, 0
    for job in range(x.shape[0] * x.shape[1]):
        n, c = job // x.shape[1], job % x.shape[1]
        padded[ph : ph + x.shape[2], pw : pw + x.shape[3]] = x[n, c]
        for o in range(c * multiplier, (c + 1) * multiplier):
            apart[:, 0:span:sw] = dy[n, o]
            for step in range(weights.shape[1] * runs):
                tap, run = step // runs, step % runs
                pixels = flat[(run * sh + tap // kw * dh) * pitch + tap % kw * dw :][:length]
                source, total = grads[run * pitch :], dtype(0)
                for i in range(len(pixels)):
                    total += pixels[i] * source[i]
                weights[o, tap] += total


def convolve_float32(address: int, part: int, _: int) -> None:
    """Convolves float32; the arguments are a PLANES record."""
    if part == 0:
        _convolve(address, np.float32)


def convolve_float64(address: int, part: int, _: int) -> None:
    """Convolves float64; the arguments are a PLANES record."""
    if part == 0:
        _convolve(address, np.float64)


def data_gradient_float32(address: int, part: int, _: int) -> None:
    """Computes the gradient by the inputs in float32; the arguments are a PLANES record."""
    if part == 0:
        _data_gradient(address, np.float32)


def data_gradient_float64(address: int, part: int, _: int) -> None:
    """Computes the gradient by the inputs in float64; the arguments are a PLANES record."""
    if part == 0:
        _data_gradient(address, np.float64)


def weight_gradient_float32(address: int, part: int, _: int) -> None:
    """Computes the gradient by the weights in float32; the arguments are a PLANES record."""
    if part == 0:
        _weight_gradient(address, np.float32)


def weight_gradient_float64(address: int, part: int, _: int) -> None:
    """Computes the gradient by the weights in float64; the arguments are a PLANES record."""
    if part == 0:
        _weight_gradient(address, np.float64)
