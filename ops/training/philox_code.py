"""Dropout: random bits that are a function of where and when they are drawn, so none are kept.

Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011): four words of a counter, two of a
key, ten rounds. Imports numba: a door loads it.
"""

from typing import Any

import numpy as np

from allocator.machine_code.entry import CALL, EXACT, entry
from allocator.machine_code.memory import array_at, jitable, longs
from ops.native.memory import record_at
from ops.tensor.spec import Array
from ops.training.args import DROP

_WORD, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
_FACTORS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_STEPS = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)


@jitable
def _drop(x: Array, y: Array, rooms: tuple[Array, Array], numbers: Any, inside: bool) -> None:
    # As many elements at a time as the scratch has words, so that vectors can be used: of 4 * n words, word j of
    # counter i is that of element j * n + i.
    (words, scratch), (when, seed, threshold, scale) = rooms, numbers
    counters = words.shape[1]
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


def _declare(dtype: Any) -> None:
    """Declares drop_DTYPE, which drops elements; the arguments are a DROP record."""

    @entry(CALL, fastmath=EXACT, name=f"drop_{np.dtype(dtype).name}")
    def drop(address: int) -> int:
        args = record_at(address, DROP)
        x, y = array_at(args.x, (args.size,), dtype), array_at(args.y, (args.size,), dtype)
        scratch = array_at(args.scratch, (4, args.words // 4), np.uint64)
        drawn = array_at(args.scratch, (args.words,), np.uint64)
        numbers = np.uint64(longs(args.step, 1)[0]), np.uint64(args.seed), np.uint64(args.threshold), dtype(args.scale)
        _drop(x, y, (scratch, drawn), numbers, args.x == args.y)
        return 0


for _dtype in (np.float32, np.float64):
    _declare(_dtype)
