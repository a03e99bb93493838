"""Heavy cliques of a relation of conflicts: chunks of which each two may share no byte.

The heaviest is found where the graph is small. Greedy cliques come first; then chunks that are too light with all their
neighbours are dropped; what is left, or parts of it, is searched by branch and bound, where each colour of a colouring
counts once, with its heaviest member (Kumlander 2004). There a set of chunks is a whole number: bit k says that chunk k
of the heaviest first is in it.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from attrs import define, field, frozen

from allocator.problem import Column, Conflicts, column
from allocator.ragged import row_starts

_STARTS, _FEWEST_STARTS = 48, 8
"""Chunks from which greedy cliques grow, at most and at least."""
_STARTED = 20_000_000
"""Pairs of neighbours of one chunk that all starts look at, about; where they are more, starts are fewer."""
_MOST_CHUNKS = 4_000
"""The most chunks for one branch and bound: their table of neighbours has the square of it in bits."""
_PARTS = 16
"""Branch and bounds on parts of a graph that is larger."""
_STEPS = 50_000
"""Chunks that branch and bound may colour. More of them find heavier cliques and take longer."""


@frozen(eq=False)
class _Graph:
    """Chunks, heaviest first: chunk k is chunk ids[k] of the whole; its neighbours: near[start[k] : start[k + 1]]."""

    ids: Column = field(converter=column)
    weight: Column = field(converter=column)
    start: Column = field(converter=column)
    near: Column = field(converter=column)

    def __len__(self) -> int:
        return len(self.ids)

    def neighbours(self, chunk: int) -> Column:
        """Returns the neighbours of one chunk, heaviest first."""
        return self.near[self.start[chunk] : self.start[chunk + 1]]


def heavy_cliques(conflicts: Conflicts, weight: Column, most: int = 1, hints: Sequence[Column] = ()) -> list[Column]:
    """Returns the heaviest cliques found within the limits, as chunks. Chunks of no weight are in none.

    At most `most` cliques are returned, heaviest first, and none where nothing has weight. `hints` are sets of chunks
    most of which conflict with each other.
    """
    graph = _graph(conflicts, weight)
    cliques = _greedily(graph, most) + _hinted(graph, hints)
    best = max((int(weight[c].sum()) for c in cliques), default=0)
    while len(graph) and (potential := _potential(graph)).min() <= best:
        graph = _part(graph, potential > best)
    steps = _STEPS
    for part in _small_parts(graph):
        search = _CliqueSearch(part.weight.tolist(), _masks(part), best, steps)
        better = search.heaviest()
        if better:
            cliques.append(np.sort(part.ids[better]))
        best, steps = search.best, search.steps
    return sorted(cliques, key=lambda clique: -int(weight[clique].sum()))[:most]


def _graph(conflicts: Conflicts, weight: Column) -> _Graph:
    ids = np.flatnonzero(weight > 0)
    ids = ids[np.argsort(-weight[ids], kind="stable")]
    rank = np.full(len(weight), -1)
    rank[ids] = np.arange(len(ids))
    a, b = rank[conflicts.one], rank[conflicts.other]
    stays = (a >= 0) & (b >= 0)
    row, near = np.concatenate((a[stays], b[stays])), np.concatenate((b[stays], a[stays]))
    order = np.argsort(row * max(len(ids), 1) + near)
    return _Graph(ids, weight[ids], row_starts(row, len(ids)), near[order])


def _part(graph: _Graph, stays: npt.NDArray[np.bool_]) -> _Graph:
    """Returns the same graph without some of its chunks."""
    row = np.repeat(np.arange(len(graph)), np.diff(graph.start))
    both = stays[row] & stays[graph.near]
    new = np.cumsum(stays) - 1
    start = row_starts(new[row[both]], int(stays.sum()))
    return _Graph(graph.ids[stays], graph.weight[stays], start, new[graph.near[both]])


def _small_parts(graph: _Graph) -> Iterator[_Graph]:
    """Yields the graph, or where it is large, some chunks with all their neighbours."""
    if 0 < len(graph) <= _MOST_CHUNKS:
        yield graph
        return
    for chunk in np.argsort(-_potential(graph), kind="stable")[:_PARTS].tolist():
        near = np.append(graph.neighbours(chunk)[:_MOST_CHUNKS], chunk)
        yield _part(graph, np.isin(np.arange(len(graph)), near))


def _greedily(graph: _Graph, wanted: int) -> list[Column]:
    """Returns cliques that grow from those who may be in heavy ones."""
    potential = _potential(graph)
    cliques: dict[bytes, Column] = {}
    best = 0
    near = len(graph.near) // max(len(graph), 1)
    starts = min(max(_STARTED // max(near**2, 1), _FEWEST_STARTS), _STARTS)
    for start in np.argsort(-potential, kind="stable")[:starts].tolist():
        if potential[start] <= best and len(cliques) >= wanted:
            break
        for worth in (graph.weight, potential):
            rows = _grown(graph, start, worth)
            best = max(best, int(graph.weight[rows].sum()))
            clique = np.sort(graph.ids[rows])
            cliques[clique.tobytes()] = clique
    return list(cliques.values())


def _hinted(graph: _Graph, hints: Sequence[Column]) -> list[Column]:
    """Returns cliques that grow from the heaviest of each hint, in which its chunks come first."""
    cliques, above = [], int(graph.weight.max(initial=0)) + 1
    for hint in hints:
        is_in = np.isin(graph.ids, hint)
        if is_in.any():
            rows = _grown(graph, int(is_in.argmax()), graph.weight + np.where(is_in, above, 0))
            cliques.append(np.sort(graph.ids[rows]))
    return cliques


def _potential(graph: _Graph) -> Column:
    """Returns the weight of each chunk and all its neighbours: no clique with it in it is heavier."""
    sums = np.concatenate(([0], np.cumsum(graph.weight[graph.near])))
    return column(graph.weight + sums[graph.start[1:]] - sums[graph.start[:-1]])


def _grown(graph: _Graph, start: int, worth: Column) -> list[int]:
    """Returns a clique with `start` in it, to which always that neighbour of all is added that is worth most."""
    clique, common = [start], graph.neighbours(start)
    is_near = np.zeros(len(graph), bool)
    while len(common):
        clique.append(int(common[worth[common].argmax()]))
        near = graph.neighbours(clique[-1])
        is_near[near] = True
        common = common[is_near[common]]
        is_near[near] = False
    return clique


def _masks(graph: _Graph) -> list[int]:
    """Returns the neighbours of each chunk as a whole number."""
    count = len(graph.ids)
    rows = np.zeros((count, count), bool)
    rows[np.repeat(np.arange(count), np.diff(graph.start)), graph.near] = True
    packed = np.packbits(rows, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


@frozen
class _Branch:
    """`chosen` is a clique; each of `open` is a neighbour of all of it; no clique of the two is above `bound`."""

    chosen: int
    open: int
    weight: int
    bound: int


@define
class _CliqueSearch:
    """Depth first, without recursion. Only cliques heavier than `best` count."""

    weight: list[int]
    near: list[int]
    best: int
    steps: int = _STEPS

    def heaviest(self) -> list[int]:
        """Returns the heaviest clique that was found, or nothing."""
        best_set, stack = 0, [_Branch(0, (1 << len(self.weight)) - 1, 0, sum(self.weight))]
        while stack and self.steps > 0:
            branch = stack.pop()
            if branch.bound <= self.best:
                continue
            if branch.weight > self.best:
                best_set, self.best = branch.chosen, branch.weight
            stack += self._branches(branch)
        return [k for k in range(len(self.weight)) if best_set >> k & 1]

    def _branches(self, branch: _Branch) -> list[_Branch]:
        """Returns a branch for each chunk that is coloured late enough to matter; the most promising is the last."""
        branches, open_, margin = list[_Branch](), branch.open, self.best - branch.weight
        coloured = self._coloured(open_)
        self.steps -= len(coloured) + 1
        for chunk, bound in reversed(coloured):
            if bound <= margin:
                break
            rest, weight = open_ & self.near[chunk], branch.weight + self.weight[chunk]
            branches.append(_Branch(branch.chosen | 1 << chunk, rest, weight, branch.weight + bound))
            open_ ^= 1 << chunk
        return branches[::-1]

    def _coloured(self, chunks: int) -> list[tuple[int, int]]:
        """Returns pairs (chunk, bound of cliques of it and those before), colour by colour, each heaviest first."""
        coloured, bound = list[tuple[int, int]](), 0
        while chunks:
            free = chunks
            bound += self.weight[(free & -free).bit_length() - 1]
            while free:
                chunk = (free & -free).bit_length() - 1
                coloured.append((chunk, bound))
                chunks ^= 1 << chunk
                free &= ~(self.near[chunk] | 1 << chunk)
        return coloured
