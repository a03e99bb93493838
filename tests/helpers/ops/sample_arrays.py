"""Arrays for tests. Random ones depend on a seed alone, so that a failure replays on the same data."""

import math

import numpy as np
from hypothesis import strategies as st

from ops.tensor.limits import info
from ops.tensor.spec import Array

SEEDS = st.integers(0, 2**32 - 1)
"""Seeds that Hypothesis draws."""


def normal(seed: int, *shapes: tuple[int, ...], dtype: str = "float32") -> list[Array]:
    """Returns an array of normal numbers for each shape."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(s).astype(dtype) for s in shapes]


def numbered(shape: tuple[int, ...], dtype: str = "float32", first: int = 0) -> Array:
    """Returns an array of `first`, `first` + 1, ... in row-major order."""
    return np.arange(first, first + math.prod(shape)).astype(dtype).reshape(shape)


def full_range(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """Returns integers from the least to the largest that the type holds."""
    ends = info(np.dtype(dtype))
    return rng.integers(int(ends.min), int(ends.max) + 1, shape).astype(dtype)


def exact_factors(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """Returns integers that onnxruntime multiplies by bytes exactly on any processor: int8 has only 7 bits.

    Where a processor has no VNNI, onnxruntime adds pairs of products of uint8 and int8 in 16 bits, and saturates.
    """
    numbers = full_range(rng, shape, dtype)
    return numbers // numbers.dtype.type(2) if dtype == "int8" else numbers


def perhaps_special(draw: st.DrawFn, x: Array) -> Array:
    """Returns the array, in half of all cases with NaN or an infinity in a tenth of its elements."""
    if draw(st.booleans()):
        x[np.random.default_rng(1).random(x.shape) < 0.1] = draw(st.sampled_from([np.nan, np.inf, -np.inf]))
    return x
