"""Arrays that start at a cache line, so that no vector of packed weights is split between two lines."""

import math

import numpy as np
from numpy.typing import DTypeLike

from ops.tensor.spec import Array, Shape

CACHE_LINE = 64


def aligned_zeros(shape: Shape, dtype: DTypeLike) -> Array:
    """Returns dense zeros whose address is a multiple of a cache line."""
    nbytes = math.prod(shape) * np.dtype(dtype).itemsize
    buffer = np.zeros(nbytes + CACHE_LINE, np.uint8)
    start = -buffer.ctypes.data % CACHE_LINE
    return buffer[start : start + nbytes].view(dtype).reshape(shape)
