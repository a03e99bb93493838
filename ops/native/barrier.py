"""The words by which threads of one run wait for each other: offsets in bytes, a cache line for each word.

They begin as zeros, but for FAILED, which is -1.
"""

import numpy as np

from ops.tensor.spec import Array

JOINED, PARTS, GO, ARRIVED, OVER, FAILED, STATUS, LEFT = (64 * i for i in range(8))
"""Helpers that joined; threads of the run; whether it has begun; arrivals after steps; whether it is over; the step
that failed, and its status; the step with which the first thread goes on if it left for a moment, or 0."""
CLOSED = 1 << 32
"""Added to JOINED when no helper may join any more."""
_WORDS = 8 * 8


def new_state() -> Array:
    """Returns the words of a run that has not begun."""
    return clear(np.empty(_WORDS, np.int64))


def clear(state: Array) -> Array:
    """Resets the words for another run, and returns them."""
    state.fill(0)
    state[FAILED // 8] = -1
    return state
