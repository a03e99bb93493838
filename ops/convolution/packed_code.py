"""Convolution out of packed panels, compiled for AVX-512.

Imports numba: a door loads it, on first use.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.extending import intrinsic

from allocator.machine_code.entry import CALL, EXACT, entry
from allocator.machine_code.memory import array_at, jitable
from ops.convolution import packed_emit as vectors
from ops.convolution.args import PACKED
from ops.convolution.packed_tiles import PIXELS
from ops.native.memory import record_at
from ops.tensor.spec import Array

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


@jitable
def _bits(first: int, last: int) -> int:
    """Returns a mask of the lanes [first, last), as far as they are in [0, 16)."""
    low, high = min(max(first, 0), 16), min(max(last, 0), 16)
    return ((1 << high) - 1) & ~((1 << low) - 1)


@jitable
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


@jitable
def _fill_run(x: Array, panel: Array, run: Run, geometry: Geometry) -> None:
    # Pixels from (oy, ox) on, to the end of the panel: those beyond the row are wrong until their own run is written.
    sh, sw, dh, dw, ph, pw, kh, kw = geometry
    oy, ox, lane = run
    target = panel.ctypes.data + 4 * lane
    for ky in range(kh):
        for kx in range(kw):
            _fill_tap(x, (oy * sh - ph + ky * dh, ox * sw - pw + kx * dw), sw, target, 14 - lane)
            target += 56 * len(x)


@jitable
def _fill(x: Array, room: Array, pixels: tuple[int, int], width: int, geometry: Geometry) -> None:
    # The windows of output pixels [first, last) of one image, 14 to a panel; a run ends with a row of the output.
    first, last = pixels
    for number in range((last - first + 13) // 14):
        start = first + 14 * number
        pixel, end = start, min(start + 14, last)
        while pixel < end:
            _fill_run(x, room[number], (pixel // width, pixel % width, pixel - start), geometry)
            pixel += width - pixel % width


@jitable
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


@jitable
def _convolve(  # noqa: PLR0917 - arrays that differ in type cannot share a tuple
    x: Array, factors: tuple[Array, Array], results: tuple[Array, int], room: Array, geometry: Geometry, finish: Any
) -> None:
    # All tiles of a block meet one panel of weights before the next, so that block and panel stay in the cache.
    (panels, bias), (y, width) = factors, results
    total, most = y.shape[2], 14 * len(room)
    for n in range(len(x)):
        for first in range(0, total, most):
            pixels = (first, min(first + most, total))
            _fill(x[n], room, pixels, width, geometry)
            for p in range(len(panels)):
                here = y[n, 32 * p : 32 * p + 32]
                _multiply(room, (panels[p], bias[32 * p : 32 * p + 32]), here, pixels, finish)


@jitable
def _no_bounds(_: Any) -> Any:
    return ()


@jitable
def _one_bound(limits: Any) -> Any:
    return (limits[0],)


@jitable
def _two_bounds(limits: Any) -> Any:
    return (limits[0], limits[1])


_TAKE_BOUNDS = (_no_bounds, _one_bound, _two_bounds)


def _declare(bounds: int, adds: bool) -> None:
    """Declares convolve_BOUNDS or convolve_BOUNDS_add, which writes y; the arguments are a PACKED record.

    `adds`: the residual is added. Of the limits, as many are used as `bounds` says: none; (slope,), by which negative
    results are multiplied; (low, high), between which results are held. NaN stays NaN.
    """
    flag, take = True if adds else None, _TAKE_BOUNDS[bounds]

    @entry(CALL, fastmath=EXACT, needs=("avx512f",), name=f"convolve_{bounds}{'_add' if adds else ''}")
    def convolve(address: int) -> int:
        args = record_at(address, PACKED)
        g, limits, outputs = args.geometry, args.limits, args.outputs
        x = array_at(args.x, (args.images, args.channels, args.height, args.width), np.float32)
        panels = array_at(args.panels, ((outputs + 31) // 32, args.depth, 32), np.float32)
        y = array_at(args.y, (args.images, outputs, args.out_height * args.out_width), np.float32)
        room = array_at(args.room, (args.tiles, args.depth, PIXELS), np.float32)
        geometry = (g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7])
        finish = (args.residual - args.y, take(limits), flag)
        _convolve(x, (panels, array_at(args.bias, (outputs,), np.float32)), (y, args.out_width), room, geometry, finish)
        return 0


for _bounds in range(3):
    for _adds in (False, True):
        _declare(_bounds, _adds)
