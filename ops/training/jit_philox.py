"""The door to numba for dropout: random bits that are a function of where and when they are drawn, so none are kept.

Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011): four words of a counter, two of a
key, ten rounds.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ops.native.door import compiled_once
from ops.tensor.spec import Array

Compiled = Callable[..., None]
_WORD, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
_FACTORS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_STEPS = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)


@cache
def drop(dtype: np.dtype[Any]) -> Compiled:
    """Returns f(x, step, y, scratch, seed, threshold, scale), which drops elements.

    y = x * scale where the bits of an element are `threshold` or more, else 0. x and y are dense, flat and of that
    dtype, at the same place or far from each other; `step` is one int64; `scratch` (uint64) has a word for each element
    of a block, a multiple of 4. An element has 32 bits: the same ones for the same element, step, seed and length of
    the scratch.
    """
    import numba  # noqa: PLC0415 - takes long to load, and only these kernels want it

    element, types = numba.from_dtype(dtype), numba.types
    read = types.Array(element, 1, "C", readonly=True), types.Array(types.int64, 1, "C", readonly=True)
    written = types.Array(element, 1, "C"), types.Array(types.uint64, 1, "C")
    signature = numba.void(*read, *written, types.uint64, types.uint64, element)
    compiled: Compiled = compiled_once(_drop, signature, error_model="numpy")
    return compiled


def _drop(  # noqa: PLR0917 - compiled code takes its columns one by one
    x: Array, step: Array, y: Array, scratch: Array, seed: Any, threshold: Any, scale: Any
) -> None:
    # As many elements at a time as the scratch has words, so that vectors can be used: of 4 * n words, word j of
    # counter i is that of element j * n + i.
    counters, when, inside = len(scratch) // 4, np.uint64(step[0]), x.ctypes.data == y.ctypes.data
    words = scratch.reshape((4, counters))
    for start in range(0, len(y), len(scratch)):
        for i in range(counters):
            index = np.uint64(start // 4 + i)
            a, b, c, d = index & _LOW, index >> _WORD, when & _LOW, when >> _WORD
            key, more = seed & _LOW, seed >> _WORD
            for _ in range(10):
                p, q = _FACTORS[0] * a, _FACTORS[1] * c
                a, b, c, d = (q >> _WORD) ^ b ^ key, q & _LOW, (p >> _WORD) ^ d ^ more, p & _LOW
                key, more = (key + _STEPS[0]) & _LOW, (more + _STEPS[1]) & _LOW
            words[0, i], words[1, i], words[2, i], words[3, i] = a, b, c, d
        source, out = x[start : start + len(scratch)], y[start : start + len(scratch)]
        if inside:
            for e in range(len(out)):
                out[e] = out[e] * scale if scratch[e] >= threshold else out.dtype.type(0)
        else:
            for e in range(len(out)):
                out[e] = source[e] * scale if scratch[e] >= threshold else out.dtype.type(0)
