"""What lies next to a chunk in the arena while it is alive."""

import numpy as np
from attrs import frozen

from engine.explain.accesses import Accesses
from engine.explain.names import shown
from engine.text.units import format_bytes


@frozen(eq=False)
class Neighbour:
    """A tensor that is alive at some time together with another, and `gap` bytes above or below it."""

    tensor: str
    offset: int
    bytes: int
    gap: int
    begin: int
    end: int

    def text(self) -> str:
        """For people."""
        apart = f", {self.gap} bytes apart" if self.gap else ""
        return f"{shown(self.tensor)} ({format_bytes(self.bytes)} from byte {self.offset}{apart})"


def neighbours(found: Accesses, chunk: int) -> tuple[tuple[Neighbour, ...], tuple[Neighbour, ...]]:
    """(below, above): the nearest of all that are alive with it, none where there is nobody between it and an end.

    What it overwrites or is overwritten by lies in its bytes and is no neighbour.
    """
    problem, offset = found.plan.problem, found.plan.plan.offset
    low, high = int(offset[chunk]), int(offset[chunk] + problem.size[chunk])
    together = (problem.begin < problem.end[chunk]) & (problem.begin[chunk] < problem.end) & (problem.size > 0)
    below = np.flatnonzero(together & (offset + problem.size <= low))
    above = np.flatnonzero(together & (offset >= high))
    nearest_below = below[np.argsort(-(offset + problem.size)[below], kind="stable")][:1]
    nearest_above = above[np.argsort(offset[above], kind="stable")][:1]
    return (
        tuple(_neighbour(found, int(c), low - int(offset[c] + problem.size[c])) for c in nearest_below),
        tuple(_neighbour(found, int(c), int(offset[c]) - high) for c in nearest_above),
    )


def _neighbour(found: Accesses, chunk: int, gap: int) -> Neighbour:
    problem = found.plan.problem
    return Neighbour(
        found.name(chunk),
        int(found.plan.plan.offset[chunk]),
        int(problem.size[chunk]),
        gap,
        int(problem.begin[chunk]),
        int(problem.end[chunk]),
    )
