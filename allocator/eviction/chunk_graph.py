"""The chunks of a program as a graph: which chunks each is computed from, and what becomes of each during a run."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt
from attrs import define, field, frozen

from allocator.recompute.work import RecomputeProblem


@frozen(eq=False)
class ChunkGraph:
    """Chunk c is computed by step `writer[c]`, at `cost[c]`, from the chunks `parents[c]`, and into `children[c]`."""

    writer: tuple[int, ...]
    cost: tuple[int, ...]
    parents: tuple[tuple[int, ...], ...]
    children: tuple[tuple[int, ...], ...]


def chunk_graph(work: RecomputeProblem) -> ChunkGraph:
    """Returns the graph of all chunks, workspaces among them, which nothing is computed from."""
    parents = tuple(work.reads[w] for w in work.writer)
    children = tuple(tuple(dict.fromkeys(o for step in users for o in work.writes[step])) for users in work.users)
    return ChunkGraph(work.writer, tuple(work.cost[w] for w in work.writer), parents, children)


@define(eq=False)
class ChunkStates:
    """What is true of each chunk at one moment of a run.

    `pending` counts the steps that still read it, `locks` those that need it just now. `computed`: some step has
    written it; `resident`: it has bytes in the heap. What is `fixed` cannot be computed again, and is never evicted.
    `touched` is the clock (work done so far) when it was last used.
    """

    pending: list[int]
    locks: npt.NDArray[np.int64]
    computed: npt.NDArray[np.bool_]
    resident: npt.NDArray[np.bool_]
    fixed: npt.NDArray[np.bool_]
    touched: npt.NDArray[np.float64]
    missing: set[int] = field(factory=set)
    """Chunks that were evicted and are still to be read by a step that has not run."""

    def is_out(self, chunk: int) -> bool:
        """Returns whether a chunk was computed, and is not in the heap."""
        return bool(self.computed[chunk]) and not self.resident[chunk]

    def candidates(self) -> npt.NDArray[np.int64]:
        """Returns the chunks that may be evicted now, in ascending order."""
        return np.flatnonzero(self.resident & ~self.fixed & (self.locks == 0))

    def frontier(self, chunk: int, graph: ChunkGraph) -> tuple[list[int], list[int]]:
        """Returns the resident and the missing chunks that can be computed again only with this one.

        They are what its children lead to, through chunks that are out; each in ascending order.
        """
        met = reached(chunk, graph.children, self.is_out)
        return sorted(c for c in met if self.resident[c]), sorted(met & self.missing)


def reached(chunk: int, ways: Sequence[Iterable[int]], through: Callable[[int], bool]) -> set[int]:
    """Returns all chunks that `ways`, parents or children by chunk, lead to; behind one only if it goes `through`."""
    met, stack = set[int](), [chunk]
    while stack:
        for near in ways[stack.pop()]:
            if near not in met:
                met.add(near)
                if through(near):
                    stack.append(near)
    return met


def states_of(work: RecomputeProblem, fixed: Iterable[int]) -> ChunkStates:
    """Returns the states before the first step."""
    count = len(work.size)
    return ChunkStates(
        [len(users) for users in work.users],
        np.zeros(count, np.int64),
        np.zeros(count, np.bool_),
        np.zeros(count, np.bool_),
        np.isin(np.arange(count), list(fixed)),
        np.zeros(count),
    )
