"""Convolution out of packed panels, compiled for AVX-512.

Imports numba: ops.convolution.packed_door loads it, on first use.
"""

from collections.abc import Callable
from typing import Any

import numba
from numba.extending import intrinsic, register_jitable

from ops.convolution import packed_emit as vectors
from ops.convolution.packed_tiles import PIXELS
from ops.native.door import compiled_once
from ops.tensor.spec import Array

Compiled = Callable[..., None]
Geometry = tuple[int, int, int, int, int, int, int, int]
Run = tuple[int, int, int]
_SMALL = 7
"""Pixels of the small tile that may end an image."""


def _intrinsic(emit: Callable[..., None]) -> Any:
    """Returns a function for compiled code, of one tuple of words, whose LLVM code `emit` writes."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        emit(builder, *(builder.extract_value(values[0], i) for i in range(len(signature.args[0]))))
        return context.get_dummy_value()

    def typed(_: Any, words: Any) -> Any:
        return numba.void(words), generate

    return intrinsic(typed)


def _tile_intrinsic(pixels: int) -> Any:
    """Returns a function for compiled code that computes a tile of so many pixels.

    It takes words, bounds and `adds`; the types of the last two decide what code is written.
    """
    emit = vectors.tile(pixels)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        words, bounds, adds = signature.args
        numbers = [
            [builder.extract_value(v, i) for i in range(len(t))] for t, v in ((words, values[0]), (bounds, values[1]))
        ]
        emit(builder, *numbers, adds is not numba.types.none)
        return context.get_dummy_value()

    def typed(_: Any, words: Any, bounds: Any, adds: Any) -> Any:
        return numba.void(words, bounds, adds), generate

    return intrinsic(typed)


_copy = _intrinsic(vectors.copy)
_halve = _intrinsic(vectors.halve)
_pick = _intrinsic(vectors.pick)
_tile = _tile_intrinsic(PIXELS)
_small_tile = _tile_intrinsic(_SMALL)


@register_jitable
def _bits(first: int, last: int) -> int:
    """Returns a mask of the lanes [first, last), as far as they are in [0, 16)."""
    low, high = min(max(first, 0), 16), min(max(last, 0), 16)
    return ((1 << high) - 1) & ~((1 << low) - 1)


@register_jitable
def _fill_tap(x: Array, start: tuple[int, int], step: int, target: int, lanes: int) -> None:
    # Element (y, x + step * i) of each channel to lane i of `lanes`, channels 56 bytes apart; 0 outside x.
    (iy, ix), (channels, height, width) = start, x.shape
    first, last = max(-(ix // step), 0), min((width - 1 - ix) // step + 1, lanes)
    if not 0 <= iy < height:
        first, last = 0, 0
    source, plane, written = x.ctypes.data + 4 * (iy * width + ix), 4 * height * width, _bits(0, lanes)
    read, near, far = _bits(first, last), _bits(2 * first, 2 * last - 1), _bits(2 * first - 16, 2 * last - 17)
    for c in range(channels):
        if step == 1:
            _copy((source + c * plane, target + 56 * c, read, written))
        elif step == 2:
            _halve((source + c * plane, target + 56 * c, near, far, written))
        else:
            _pick((source + c * plane, 4 * step, target + 56 * c, read, written))


@register_jitable
def _fill_run(x: Array, panel: Array, run: Run, geometry: Geometry) -> None:
    # Pixels from (oy, ox) on, to the end of the panel: those beyond the row are wrong until their own run is written.
    sh, sw, dh, dw, ph, pw, kh, kw = geometry
    oy, ox, lane = run
    target = panel.ctypes.data + 4 * lane
    for ky in range(kh):
        for kx in range(kw):
            _fill_tap(x, (oy * sh - ph + ky * dh, ox * sw - pw + kx * dw), sw, target, 14 - lane)
            target += 56 * len(x)


@register_jitable
def _fill(x: Array, room: Array, pixels: tuple[int, int], width: int, geometry: Geometry) -> None:
    # The windows of output pixels [first, last) of one image, 14 to a panel; a run ends with a row of the output.
    first, last = pixels
    for number in range((last - first + 13) // 14):
        start = first + 14 * number
        pixel, end = start, min(start + 14, last)
        while pixel < end:
            _fill_run(x, room[number], (pixel // width, pixel % width, pixel - start), geometry)
            pixel += width - pixel % width


@register_jitable
def _multiply(room: Array, factors: tuple[Array, Array], y: Array, pixels: tuple[int, int], finish: Any) -> None:
    # One panel of weights with all tiles of a block; y (channels, pixels) has no more channels than the panel.
    (weights, bias), (first, last), (apart, bounds, adds) = factors, pixels, finish
    depth, pitch = len(weights), 4 * y.shape[1]
    for number in range((last - first + 13) // 14):
        pixel = first + 14 * number
        panel, target = room.ctypes.data + 56 * depth * number, y.ctypes.data + 4 * pixel
        w, b, lanes = weights.ctypes.data, bias.ctypes.data, _bits(0, min(14, last - pixel))
        if last - pixel > 7:
            _tile((panel, w, b, target, depth, pitch, lanes, len(y), apart), bounds, adds)
        else:
            _small_tile((panel, w, b, target, depth, pitch, lanes, len(y), apart), bounds, adds)


def _convolve(  # noqa: PLR0917 - arrays that differ in type cannot share a tuple
    x: Array,
    panels: Array,
    bias: Array,
    y: Array,
    room: Array,
    geometry: Geometry,
    residual: Array,
    bounds: Any,
    adds: Any,
) -> None:
    # All tiles of a block meet one panel of weights before the next, so that block and panel stay in the cache.
    flat = y.reshape(y.shape[0], y.shape[1], y.shape[2] * y.shape[3])
    total, most = flat.shape[2], 14 * len(room)
    finish = (residual.ctypes.data - y.ctypes.data, bounds, adds)
    for n in range(len(x)):
        for first in range(0, total, most):
            pixels = (first, min(first + most, total))
            _fill(x[n], room, pixels, y.shape[3], geometry)
            for p in range(len(panels)):
                here = flat[n, 32 * p : 32 * p + 32]
                _multiply(room, (panels[p], bias[32 * p : 32 * p + 32]), here, pixels, finish)


def convolve(bounds: int, adds: bool) -> Compiled:
    """Returns the compiled function that `ops.convolution.packed_door.convolve` describes."""
    types: Any = numba.types
    read = (types.Array(numba.float32, n, "C", readonly=True) for n in (4, 3, 1, 4))
    x, panels, bias, residual = read
    written = (types.Array(numba.float32, n, "C") for n in (4, 3))
    limits = types.UniTuple(numba.float64, bounds) if bounds else types.Tuple(())
    flag = types.boolean if adds else types.none
    geometry = types.UniTuple(numba.intp, 8)
    signature = numba.void(x, panels, bias, *written, geometry, residual, limits, flag)
    compiled: Compiled = compiled_once(_convolve, signature, error_model="numpy")
    return compiled
