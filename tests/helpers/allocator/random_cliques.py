"""Cliques for tests, and the smallest arena of each by trying all orders."""

from itertools import permutations

from hypothesis import strategies as st

from allocator.cliques.clique import Clique
from allocator.problem import FREE


@st.composite
def cliques(draw: st.DrawFn, most: int = 5) -> Clique:
    count = draw(st.integers(1, most))

    def numbers(low: int, high: int) -> list[int]:
        return draw(st.lists(st.integers(low, high), min_size=count, max_size=count))

    shift = numbers(0, 6)
    extra = numbers(0, 3)
    return Clique(
        ids=range(count),
        root=range(count),
        size=numbers(1, 9),
        alignment=draw(st.lists(st.sampled_from((1, 2, 3, 4, 8)), min_size=count, max_size=count)),
        shift=shift,
        head=[s + e for s, e in zip(shift, extra, strict=True)],
        tail=numbers(0, 6),
        pinned=[FREE] * count,
    )


def stacked(clique: Clique) -> int:
    """Returns the smallest arena: tries all orders, each chunk as low as it can lie."""
    rows = list(
        zip(*(c.tolist() for c in (clique.size, clique.alignment, clique.shift, clique.head, clique.tail)), strict=True)
    )
    best = []
    for order in permutations(rows):
        top = arena = 0
        for size, alignment, shift, head, tail in order:
            at = max(top, head)
            top = at + (shift - at) % alignment + size
            arena = max(arena, top + tail)
        best.append(arena)
    return min(best)
