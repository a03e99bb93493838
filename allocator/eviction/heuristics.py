"""Which chunks go when the heap has no room: the heuristics of DTR and Coop, by their names there."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
from attrs import define, frozen

from allocator.errors import UnknownHeuristicError
from allocator.eviction.chunk_graph import ChunkGraph, ChunkStates
from allocator.eviction.neighbourhoods import Alone, Components, Evicted, Neighbourhood, Nothing
from allocator.heaps.server import NOBODY, Server


@frozen
class Heuristic:
    """A score: work over bytes and over the time since the last use, of which the smallest goes.

    A heuristic with `window` takes chunks that lie side by side instead, until the request fits between them.
    """

    name: str
    neighbourhood: Callable[[ChunkGraph, ChunkStates], Neighbourhood]
    by_bytes: bool = True
    by_staleness: bool = True
    window: bool = False


HEURISTICS: Mapping[str, Heuristic] = MappingProxyType(
    {
        h.name: h
        for h in (
            Heuristic("dtr", Evicted),
            Heuristic("dtr_eq", Components),
            Heuristic("dtr_local", Alone),
            Heuristic("lru", Nothing, by_bytes=False),
            Heuristic("size", Nothing, by_staleness=False),
            Heuristic("coop", Evicted, by_bytes=False, window=True),
        )
    }
)
"""Heuristic by name, in the order in which they are listed."""


def heuristic(name: str) -> Heuristic:
    """Returns a heuristic. Raises UnknownHeuristicError."""
    if name not in HEURISTICS:
        raise UnknownHeuristicError(f"no heuristic {name!r}; there are {', '.join(HEURISTICS)}")
    return HEURISTICS[name]


@define(eq=False)
class Chooser:
    """A heuristic in one run: chooses the chunks to evict."""

    heuristic: Heuristic
    states: ChunkStates
    sizes: npt.NDArray[np.float64]
    neighbourhood: Neighbourhood

    def choose(self, clock: float, heap: Server, request: int) -> list[int]:
        """Returns what to evict so that a request may fit: one chunk, or those of a window; [] where none may go."""
        candidates = self.states.candidates()
        if not len(candidates):
            return []
        scores = self._scores(candidates, clock)
        if self.heuristic.window:
            window = cheapest_window(heap, request, dict(zip(candidates.tolist(), scores.tolist(), strict=True)))
            if window:
                return window
        return [int(candidates[np.argmin(scores)])]

    def _scores(self, chunks: npt.NDArray[np.int64], clock: float) -> npt.NDArray[np.float64]:
        scores = self.neighbourhood.cost(chunks)
        if self.heuristic.by_bytes:
            scores = scores / self.sizes[chunks]
        if self.heuristic.by_staleness:
            scores = scores / np.maximum(clock - self.states.touched[chunks], 1.0)
        return scores


def cheapest_window(heap: Server, request: int, scores: Mapping[int, float]) -> list[int]:
    """Returns the chunks of the window of addresses that holds a request at the least sum of scores.

    A window has free blocks and blocks of chunks with a score; [] where none is large enough. Of equal sums the lowest.
    """
    best, chosen, needed = np.inf, list[int](), heap.needed(request)
    for run in heap.runs(request):
        first, width, total = 0, 0, 0.0
        for last, (one, size) in enumerate(run):
            if one != NOBODY and one not in scores:
                first, width, total = last + 1, 0, 0.0
                continue
            width, total = width + size, total + scores.get(one, 0.0)
            while width - run[first][1] >= needed:
                width, total = width - run[first][1], total - scores.get(run[first][0], 0.0)
                first += 1
            inside = [c for c, _ in run[first : last + 1] if c != NOBODY] if width >= needed and total < best else []
            if inside:
                best, chosen = total, inside
    return chosen
