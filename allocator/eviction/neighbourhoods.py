"""What evicting a chunk costs beyond computing it: the chunks around it that were evicted before.

`Evicted` follows them, `Components` keeps sums of them in a union-find structure, and `Alone` leaves them out: the
heuristics h_DTR, h_DTR^eq and h_DTR^local of Kirisame et al. 2021, section 4.1.
"""

from typing import Protocol

import numpy as np
import numpy.typing as npt
from attrs import define, field

from allocator.eviction.chunk_graph import ChunkGraph, ChunkStates, reached


class Neighbourhood(Protocol):
    """A way to count the work that evicting a chunk may bring about."""

    def left(self, chunk: int, /) -> None:
        """Notes that a chunk has left the heap."""

    def returned(self, chunk: int, /) -> None:
        """Notes that a chunk that had left the heap is in it again."""

    def cost(self, chunks: npt.NDArray[np.int64], /) -> npt.NDArray[np.float64]:
        """Returns the work of each chunk, with that of its neighbourhood."""


@define(eq=False)
class Nothing:
    """No work: all chunks are alike."""

    graph: ChunkGraph
    states: ChunkStates

    def left(self, chunk: int) -> None:
        """Notes nothing."""

    def returned(self, chunk: int) -> None:
        """Notes nothing."""

    def cost(self, chunks: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Returns ones."""
        return np.ones(len(chunks))


@define(eq=False)
class Alone:
    """The work of the step that computes the chunk."""

    graph: ChunkGraph
    states: ChunkStates
    _own: npt.NDArray[np.float64] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._own = np.array(self.graph.cost, np.float64)

    def left(self, chunk: int) -> None:
        """Notes nothing."""

    def returned(self, chunk: int) -> None:
        """Notes nothing."""

    def cost(self, chunks: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Returns the costs of the steps."""
        return self._own[chunks]


@define(eq=False)
class Evicted:
    """The work of computing the chunk, all that has to be computed before, and what is missing and needs the chunk.

    The second are ancestors, through chunks that are out of the heap. The third are descendants, through chunks that
    are missing: one that nobody reads any more will not be computed for its own sake.
    Sums are kept until a chunk of the neighbourhood changes.
    """

    graph: ChunkGraph
    states: ChunkStates
    _sum: npt.NDArray[np.float64] = field(init=False)
    _is_old: npt.NDArray[np.bool_] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._sum = np.zeros(len(self.graph.cost))
        self._is_old = np.ones(len(self.graph.cost), np.bool_)

    def left(self, chunk: int) -> None:
        """Notes that the sums around a chunk have changed."""
        self._change(chunk)

    def returned(self, chunk: int) -> None:
        """Notes that the sums around a chunk have changed."""
        self._change(chunk)
        self._is_old[chunk] = True

    def cost(self, chunks: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Returns the sums, computed anew where they are old."""
        for chunk in chunks[self._is_old[chunks]].tolist():
            self._sum[chunk] = self._summed(chunk)
            self._is_old[chunk] = False
        return self._sum[chunks]

    def _summed(self, chunk: int) -> int:
        graph, steps = self.graph, {self.graph.writer[chunk]}
        total = graph.cost[chunk]
        for near in (*self._ancestors(chunk), *self._descendants(chunk)):
            if graph.writer[near] not in steps:
                steps.add(graph.writer[near])
                total += graph.cost[near]
        return total

    def _ancestors(self, chunk: int) -> set[int]:
        is_out = self.states.is_out
        return set(filter(is_out, reached(chunk, self.graph.parents, is_out)))

    def _descendants(self, chunk: int) -> set[int]:
        missing = self.states.missing
        return reached(chunk, self.graph.children, missing.__contains__) & missing

    def _change(self, chunk: int) -> None:
        """Marks what is resident at the ends of the ways that lead through chunks that are out, or missing."""
        below = reached(chunk, self.graph.children, self.states.is_out)
        above = reached(chunk, self.graph.parents, self.states.missing.__contains__)
        near = np.fromiter(below | above, np.int64)
        self._is_old[near[self.states.resident[near]]] = True


@define(eq=False)
class Components:
    """The work of the chunk and of the components of evicted chunks that it touches, whichever way they are read.

    A chunk that is computed again takes its own work out of its component, which stays joined.
    """

    graph: ChunkGraph
    states: ChunkStates
    _above: list[int] = field(factory=list)
    _sum: list[float] = field(factory=list)
    _node: dict[int, int] = field(factory=dict)

    def left(self, chunk: int) -> None:
        """Joins a chunk with the components that it touches."""
        node = len(self._above)
        self._above.append(node)
        self._sum.append(float(self.graph.cost[chunk]))
        for root in self._touched(chunk):
            self._above[root] = node
            self._sum[node] += self._sum[root]
        self._node[chunk] = node

    def returned(self, chunk: int) -> None:
        """Takes a chunk out of its component."""
        self._sum[self._root(self._node.pop(chunk))] -= self.graph.cost[chunk]

    def cost(self, chunks: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Returns the work of each chunk and the sums of what it touches."""
        return np.array([self.graph.cost[c] + sum(self._sum[r] for r in self._touched(c)) for c in chunks.tolist()])

    def _touched(self, chunk: int) -> set[int]:
        node = self._node
        near = (*self.graph.parents[chunk], *self.graph.children[chunk])
        return {self._root(node[c]) for c in near if c in node}

    def _root(self, node: int) -> int:
        above = self._above
        while above[node] != node:
            above[node] = above[above[node]]
            node = above[node]
        return node
