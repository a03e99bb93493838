"""The door to a product of packed panels, compiled for AVX-512 on first use."""

from collections.abc import Callable
from functools import cache
from importlib import import_module

from ops.native.processor import has

Compiled = Callable[..., None]


def has_avx512() -> bool:
    """Whether compiled code has vectors of 16 floats."""
    return has("avx512f")


@cache
def convolve(bounds: int = 0, *, adds: bool = False) -> Compiled:
    """f(x, panels, bias, y, room, geometry, residual, limits, flag): y = convolution of x, one group.

    All arrays are dense and of float32: x (N, C, H, W), panels (ceil(O / 32), taps * C, 32) of weights, bias (O,), y
    (N, O, OH, OW); room (tiles, taps * C, 14) holds the inputs of a block of tiles. The geometry is strides, dilations,
    begin pads and kernel, two of each. What is read may be read-only, as constants are.
    Where `adds` is set, the flag is True, and `residual` is added, like y and maybe at the very place of y; else the
    flag is None, and `residual` is not looked at. The limits are as many floats as `bounds` says: none; (slope,), by
    which negative results are multiplied; (low, high), between which they are held. NaN stays NaN.
    """
    compiled: Compiled = import_module("ops.convolution.packed_code").convolve(bounds, adds)
    return compiled
