"""What a clique needs because of its pinned chunks: the others must be packed into the slots that those leave."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from allocator.cliques.aligned import cells, counted
from allocator.cliques.clique import Clique
from allocator.cliques.feasible import FeasibleOffsets
from allocator.cliques.subset_sum import largest_sum, smallest_sum
from allocator.problem import FREE, align_up

Slot = tuple[int, int]
Mask = npt.NDArray[np.bool_]
_MOST_PLACES = 20_000
"""Chunks times slots; a clique with more of them is passed over, and so is one with a twentieth of it in chunks."""
_WORK = 2**23
"""Bits that sums may shift for one clique. More bits make bounds tighter and take longer."""


def bytes_in_slots(clique: Clique, feasible: FeasibleOffsets) -> int:
    """Returns the bytes that an arena with the clique has at least; 0 where all or none are pinned, or too many."""
    is_pinned = clique.pinned != FREE
    if is_pinned.all() or not is_pinned.any():
        return 0
    slots, free = tuple(_slots(clique.some(is_pinned))), clique.some(~is_pinned)
    if len(free) * max(len(slots), 20) > _MOST_PLACES:
        return 0
    low, high = np.array(slots).T
    lowest = np.array([feasible.runs(chunk).above(low) for chunk in free.ids.tolist()])
    may_lie = (lowest + free.size[:, None] <= high).T
    tried = (1, *cells(free))
    work = _WORK // (len(tried) * len(slots))
    return max(_bytes_needed(free, slots, may_lie, cell, work) for cell in tried)


def _slots(pinned: Clique) -> Iterator[Slot]:
    """Yields the ranges of bytes between pinned chunks, lowest first, and the endless one above them."""
    order = np.argsort(pinned.pinned, kind="stable")
    low = np.append(pinned.pinned[order], 2**62)
    high = np.maximum.accumulate(np.append(0, (pinned.pinned + pinned.size)[order]))
    return ((a, b) for a, b in zip(high.tolist(), low.tolist(), strict=True) if a < b)


def _bytes_needed(free: Clique, slots: tuple[Slot, ...], may_lie: Mask, cell: int, work: int) -> int:
    """Returns the bytes that the free chunks need, counted in cells.

    What lies in a slot has no more cells than there are behind its first edge, but for the unused bytes of the topmost
    chunk; chunks that are all of the other kind have no more than fill the slot. Each slot is filled as well as some of
    the chunks that may lie there can; the rest, which is some of the chunks again, lies above the topmost pinned chunk.
    """
    count, unused, is_loose = counted(free, cell)
    filled = 0
    for (low, high), here in zip(slots[:-1], may_lie[:-1], strict=True):
        room = max(high - align_up(low, cell) + unused, high - low if is_loose else 0, 0)
        filled += largest_sum(count[here].tolist(), room // cell, work)
    is_high = ~may_lie[:-1].any(axis=0)
    high_count = int(count[is_high].sum())
    above = high_count + smallest_sum(count[~is_high].tolist(), int(count.sum()) - filled - high_count, work)
    if not above:
        return 0
    top = slots[-1][0]
    needed = align_up(top, cell) + above * cell - unused
    return (min(needed, top + above * cell) if is_loose else needed) + int(free.tail.min())
