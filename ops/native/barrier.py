"""Where the words lie with which threads of one run wait for each other: bytes from the first, a cache line each.

They begin as zeros, but for FAILED, which is -1.
"""

import numpy as np

from ops.tensor.spec import Array

JOINED, PARTS, GO, ARRIVED, OVER, FAILED, STATUS = (64 * i for i in range(7))
"""Helpers that came; threads that run; whether they do; arrivals behind steps; whether all stop; a failed step."""
CLOSED = 1 << 32
"""Added to JOINED when nobody may join any more."""
_WORDS = 7 * 8


def new_state() -> Array:
    """The words of a run that has not begun."""
    return clear(np.empty(_WORDS, np.int64))


def clear(state: Array) -> Array:
    """The same words, as before a run."""
    state.fill(0)
    state[FAILED // 8] = -1
    return state
