"""The door to a product of packed panels, compiled for AVX-512 on first use."""

from collections.abc import Callable
from functools import cache
from importlib import import_module

from ops.native.processor import has

Compiled = Callable[..., None]


def has_avx512() -> bool:
    """Returns whether compiled code has vectors of 16 floats."""
    return has("avx512f")


@cache
def convolve(bounds: int = 0, *, adds: bool = False) -> Compiled:
    """Returns f(x, panels, bias, y, room, geometry, residual, limits, flag), which writes a convolution of x to y.

    There is one group. All arrays are dense and of float32: x (N, C, H, W), panels (ceil(O / 32), taps * C, 32) of
    weights, bias (O,), y (N, O, OH, OW); room (tiles, taps * C, 14) holds the inputs of a block of tiles. The geometry
    is strides, dilations, begin pads and kernel, two of each. Arrays that are only read may be read-only.

    Where `adds` is set, the flag is True and `residual`, an array of y's shape, is added; it may be y itself. Else the
    flag is None and `residual` is not read. The limits are as many floats as `bounds` says: none; (slope,), by which
    negative results are multiplied; (low, high), between which results are held. NaN stays NaN.
    """
    compiled: Compiled = import_module("ops.convolution.packed_code").convolve(bounds, adds)
    return compiled
