"""What need not be searched for: bodies that find a place within a capacity wherever all others lie."""

import numpy as np
from attrs import frozen

from allocator.problem import FREE, Column
from allocator.solvers.search.bodies import Bodies, select


@frozen(eq=False)
class Reduction:
    """Body i of `core`, to be searched for, is body kept[i] of the part; `late` are the others, in order of placing."""

    part: Bodies
    core: Bodies
    kept: Column
    late: tuple[int, ...]

    def completed(self, core_offset: Column) -> Column:
        """Returns the offsets of all bodies of the part: the late ones lie in the lowest gaps that the others leave."""
        offset = np.zeros(len(self.part), np.int64)
        offset[self.kept] = core_offset
        is_placed = np.zeros(len(self.part), bool)
        is_placed[self.kept] = True
        for body in self.late:
            near = self.part.near.row(body)
            offset[body] = _lowest_gap(self.part, offset, near[is_placed[near]], body)
            is_placed[body] = True
        return offset


def reduce(part: Bodies, capacity: int) -> Reduction:
    """Takes bodies out of which even the worst arrangement of their neighbours leaves a place within the capacity.

    A neighbour of v bytes bars a body of u bytes from v + u - 1 offsets; a body whose neighbours bar fewer aligned
    offsets than there are within the capacity can be placed last. What is taken out bars nothing: so in rounds.
    """
    unit = int(np.gcd.reduce(np.concatenate((part.size, part.alignment, part.pinned[part.pinned != FREE]))))
    size, alignment = part.size // unit, part.alignment // unit
    rows, items = part.near.row_of_each(), part.near.item
    barred = (size[rows] + size[items] - 2) // alignment[rows] + 1
    offers = (capacity // unit - size) // alignment + 1
    stays, rounds = np.ones(len(part), bool), []
    while True:
        weight = np.bincount(rows[stays[items]], barred[stays[items]].astype(float), len(part))
        leaves = stays & (part.pinned == FREE) & (weight < offers)
        if not leaves.any():
            break
        rounds.append(np.flatnonzero(leaves))
        stays &= ~leaves
    late = tuple(int(body) for leaving in reversed(rounds) for body in leaving)
    kept = np.flatnonzero(stays)
    return Reduction(part, select(part, kept), kept, late)


def _lowest_gap(part: Bodies, offset: Column, near: Column, body: int) -> int:
    size, alignment, at = int(part.size[body]), int(part.alignment[body]), 0
    for other in near[np.argsort(offset[near], kind="stable")].tolist():
        if offset[other] >= at + size:
            break
        at = max(at, -(-int(offset[other] + part.size[other]) // alignment) * alignment)
    return at
