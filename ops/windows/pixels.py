"""Channels-last tensors (N, spatial..., C): how their pixels lie in memory.

A pixel is its C elements side by side. Pixels follow each other at one pitch, which is more than C where the tensor is
a part of the channels of a wider one: what is computed inside a concatenation lies so.
"""

import math

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ops.tensor.layout import Layout
from ops.tensor.spec import Array, TensorSpec


def dense_pixels(layout: Layout) -> bool:
    """Returns whether each pixel is dense, and all of them follow each other at one pitch, none on another."""
    if len(layout.shape) < 2:
        return False
    if 0 in layout.shape:
        return True
    channels, step = layout.shape[-1], layout.strides[-1]
    if channels > 1 and step != layout.itemsize:
        return False
    count = math.prod(layout.shape[:-1])
    line = Layout(0, layout.shape[:-1], layout.strides[:-1], layout.itemsize).reshape((count,))
    if line is None:
        return False
    hop = line.strides[0]
    return count == 1 or (hop >= channels * layout.itemsize and hop % layout.itemsize == 0)


def pitch(array: Array) -> int:
    """Returns the elements from one pixel to the next, of an array whose pixels are dense."""
    hops = (s for n, s in zip(reversed(array.shape[:-1]), reversed(array.strides[:-1]), strict=True) if n > 1)
    return next(hops, array.shape[-1] * array.itemsize) // array.itemsize if array.size else array.shape[-1]


def rows(array: Array) -> Array:
    """Returns the view (pixels, C) of an array whose pixels are dense."""
    shape = (math.prod(array.shape[:-1]), array.shape[-1])
    if 0 in shape:
        return np.empty(shape, array.dtype)
    hop = pitch(array) * array.itemsize
    return as_strided(array, shape, (hop, array.itemsize), writeable=array.flags.writeable)


def channels_first(spec: TensorSpec) -> TensorSpec:
    """Returns the view (N, C, spatial...) of (N, spatial..., C)."""
    return spec.with_shape((spec.shape[0], spec.shape[-1], *spec.shape[1:-1]))


def channels_last(spec: TensorSpec) -> TensorSpec:
    """Returns the view (N, spatial..., C) of (N, C, spatial...)."""
    return spec.with_shape((spec.shape[0], *spec.shape[2:], spec.shape[1]))
