"""Positions of marked elements in numpy: what `ops.index.places` does, with temporaries of the caller."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from ops.common.boxes import CACHE_BYTES, pieces
from ops.common.indices import INT64
from ops.index.sorting import count_up
from ops.schema.schema import Thunk
from ops.tensor.spec import Array, TensorSpec

_PIECE = CACHE_BYTES // 8
"""Marks that are looked at together."""


def mark_specs(marks: int, count: int) -> tuple[TensorSpec, ...]:
    """Returns the specs of two numbers for each mark of a piece, and of the positions and a last one."""
    piece = TensorSpec((min(marks, _PIECE),), INT64)
    return piece, piece, TensorSpec((count + 1,), INT64)


def position_steps(marks: Array, first: int, temporaries: Sequence[Array], total: Array) -> Iterator[Thunk]:
    """Yields steps that append the flat positions of marks (bools in one dimension, the first one at `first`).

    The positions stand at the beginning of the last temporary, as many as there is room for; `total` (1,) counts all.
    Each element writes its position to the slot of the next mark: the last one that does so is that mark itself.
    """
    numbers, slots, out = temporaries
    for a, b in pieces(len(marks), max(len(numbers), 1)):
        number, slot = numbers[: b - a], slots[: b - a]
        yield partial(np.copyto, slot, marks[a:b])
        yield partial(np.add.accumulate, slot, 0, None, number)
        yield partial(np.subtract, number, slot, slot)
        yield partial(np.add, slot, total, slot)
        yield partial(np.add, total, number[-1:], total)
        yield from count_up(number)
        yield partial(np.add, number, np.asarray(first + a, INT64), number)
        yield partial(np.put, out, slot, number, "clip")
