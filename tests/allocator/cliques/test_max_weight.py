from itertools import combinations

import numpy as np
import pytest
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st

from allocator.cliques import max_weight as cliques
from allocator.cliques.max_weight import heavy_cliques
from allocator.problem import Column, Conflicts, column


@frozen(eq=False)
class Weighted:
    weight: Column
    pairs: tuple[tuple[int, int], ...]

    def conflicts(self) -> Conflicts:
        return Conflicts([a for a, _ in self.pairs], [b for _, b in self.pairs])

    def is_clique(self, chunks: tuple[int, ...]) -> bool:
        return all((a, b) in self.pairs or (b, a) in self.pairs for a, b in combinations(chunks, 2))

    def heaviest(self) -> int:
        ids = range(len(self.weight))
        cliques = (c for k in range(len(ids) + 1) for c in combinations(ids, k) if self.is_clique(c))
        return max(int(self.weight[list(c)].sum()) for c in cliques)


@st.composite
def graphs(draw: st.DrawFn, most: int = 8) -> Weighted:
    weight = draw(st.lists(st.integers(0, 9), min_size=1, max_size=most))
    every = list(combinations(range(len(weight)), 2))
    mask = draw(st.integers(0, 2 ** len(every) - 1))
    return Weighted(column(weight), tuple(p for k, p in enumerate(every) if mask >> k & 1))


@given(graphs(), st.integers(1, 4))
def test_the_heaviest_clique_comes_first(graph: Weighted, most: int) -> None:
    cliques = heavy_cliques(graph.conflicts(), graph.weight, most)
    weights = [int(graph.weight[c].sum()) for c in cliques]
    assert max(weights, default=0) == graph.heaviest()
    assert weights == sorted(weights, reverse=True)
    assert len({tuple(c.tolist()) for c in cliques}) == len(cliques) <= most
    assert all(graph.is_clique(tuple(c.tolist())) and graph.weight[c].all() for c in cliques)


@given(graphs(), st.data())
def test_max_weight_search_cut_short_still_finds_cliques(graph: Weighted, data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cliques, "_MOST_CHUNKS", data.draw(st.integers(1, 4)))
        patch.setattr(cliques, "_STEPS", data.draw(st.integers(0, 10)))
        patch.setattr(cliques, "_STARTS", data.draw(st.integers(0, 2)))
        heaviest = heavy_cliques(graph.conflicts(), graph.weight)
    assert all(graph.is_clique(tuple(c.tolist())) for c in heaviest)
    assert all(graph.weight[c].sum() <= graph.heaviest() for c in heaviest)


def test_max_weight_clique_need_not_hold_the_heaviest_chunk() -> None:
    """Chunks 0, 1 and 2 conflict: 12 bytes. Each conflicts with one of 5 bytes too, which comes first: 9 bytes."""
    graph = Weighted(column([4, 4, 4, 5, 5, 5]), ((0, 1), (0, 2), (1, 2), (0, 3), (1, 4), (2, 5)))
    assert [c.tolist() for c in heavy_cliques(graph.conflicts(), graph.weight)] == [[0, 1, 2]]


def test_a_clique_among_thousands_of_chunks() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 6_000, (2, 30_000))
    hidden = rng.choice(6_000, 12, replace=False)
    a, b = (np.array(c) for c in zip(*combinations(hidden.tolist(), 2), strict=True))
    low, high = np.minimum(np.append(one, a), np.append(other, b)), np.maximum(np.append(one, a), np.append(other, b))
    pairs = np.unique(np.stack((low, high), axis=1)[low < high], axis=0)
    weight = np.ones(6_000, np.int64)
    cliques = heavy_cliques(Conflicts(pairs[:, 0], pairs[:, 1]), weight)
    assert [c.tolist() for c in cliques] == [sorted(hidden.tolist())]


def test_max_weight_search_finds_no_clique_without_weight() -> None:
    assert heavy_cliques(Conflicts([0], [1]), column([0, 0])) == []
