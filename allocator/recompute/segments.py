"""Chen's schedule: the forward pass in segments, of which only what later ones read is kept (Chen et al. 2016).

With about sqrt(n) segments of n layers, as many values are kept between segments as are computed again inside one.
Here a forward pass is what comes before the step with most bytes alive; segments have as many bytes each.
"""

from collections.abc import Iterator

import numpy as np

from allocator.recompute.sequence import alive
from allocator.recompute.walk import Drop
from allocator.recompute.work import NEVER, RecomputeProblem


def drops(work: RecomputeProblem) -> Iterator[Drop]:
    """Yields the drops of values at the peak in 2, 4, 8, 16 ... segments, up to one for each value."""
    turn = int(alive(work, range(len(work))).argmax())
    stored = _stored(work, turn)
    count = 2
    while count <= len(stored):
        yield Drop(turn, _inside(work, turn, stored, count))
        count *= 2


def _stored(work: RecomputeProblem, turn: int) -> list[int]:
    """Returns the chunks that are alive at the peak, not used in it, and can be computed again."""
    return [
        chunk
        for chunk, writer in enumerate(work.writer)
        if writer < turn
        and work.until[writer] != NEVER
        and work.users[chunk]
        and work.users[chunk][-1] > turn
        and turn not in work.users[chunk]
    ]


def _inside(work: RecomputeProblem, turn: int, stored: list[int], count: int) -> frozenset[int]:
    """Returns those that no later segment reads before the peak."""
    bytes_to = np.cumsum([work.size[c] for c in stored])
    ends = [work.writer[stored[int(i)]] for i in np.searchsorted(bytes_to, bytes_to[-1] * np.arange(1, count) / count)]
    edges = np.array(ends)
    inside = set()
    for chunk in stored:
        read = max((u for u in work.users[chunk] if u < turn), default=work.writer[chunk])
        if np.searchsorted(edges, work.writer[chunk]) == np.searchsorted(edges, read):
            inside.add(chunk)
    return frozenset(inside)
