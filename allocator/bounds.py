"""What no plan can go below, and bytes alive at once. All in bytes."""

import numpy as np

from allocator.breadths import breadths
from allocator.cliques.orders import MOST_LOOKS
from allocator.cliques.search import bound_of_cliques, heaviest_clique
from allocator.problem import FREE, Bound, Column, Problem, Witness


def lower_bound(problem: Problem) -> int:
    """Returns the bytes that no arena goes below; see `proved_bound`."""
    return proved_bound(problem).nbytes


def proved_bound(problem: Problem, looks: int = MOST_LOOKS) -> Bound:
    """Proves a lower bound: the largest operator breadth, the highest pinned end, and what cliques need beyond that.

    Operator breadth: Pisarchyk and Lee 2020. The bytes of an overwrite count once in the tick of overwriting. Chunks
    that are alive in one tick, or a clique of conflicts, may need more bytes than their sum: for alignment, for pinned
    chunks between them, and for the chains of overwrites to which they belong. Of large cliques that is a search, which
    takes so many looks at most; see `looks_within`.
    """
    if not (problem.size > 0).any():
        return Bound(0, "no chunk has bytes")
    bound = Bound(0)
    if problem.conflicts is None:
        live = breadths(problem)
        row = int(np.argmax(live.value))
        tick = int(live.tick[row])
        bound = Bound(int(live.value[row]), f"bytes alive in tick {tick}", Witness(tick))
    end = np.where((problem.pinned != FREE) & (problem.size > 0), problem.pinned + problem.size, 0)
    highest = int(end.argmax())
    pinned = Bound(int(end[highest]), "end of the highest pinned chunk", Witness(chunks=(highest,)))
    bound = bound.raised(pinned)
    return bound if _adds_up(problem) else bound_of_cliques(problem, bound, looks)


def _adds_up(problem: Problem) -> bool:
    """Returns whether chunks that are alive at once need just their sizes, so that no clique raises the bound."""
    is_free = problem.conflicts is None and not len(problem.src) and bool((problem.pinned == FREE).all())
    return is_free and not (problem.size % np.maximum(problem.alignment, 1)).any()


def naive_bytes(problem: Problem) -> int:
    """Returns the bytes of all chunks, overwriters too, when each has an allocation of its own for ever."""
    return int(problem.size.sum())


def profile(problem: Problem) -> Column:
    """Returns live bytes in each tick, up to the last end: the operator breadths."""
    live = breadths(problem)
    before = np.append(0, live.value)[:-1]
    return np.repeat(before, np.diff(live.tick, prepend=0))


def peak_tick(problem: Problem) -> int:
    """Returns the first tick in which most bytes are alive; 0 where there are none."""
    live = breadths(problem)
    return int(live.tick[np.argmax(live.value)]) if live.value.any() else 0


def heaviest(problem: Problem) -> Column:
    """Returns the heaviest clique that is found in a problem with conflicts, as chunks.

    A chain whose chunks all have the bytes of its root may stand there as its root.
    """
    return heaviest_clique(problem)
