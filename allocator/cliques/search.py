"""Which cliques of a problem are worth a look, and the most that one of them needs."""

from collections.abc import Iterator
from operator import itemgetter

import numpy as np

from allocator.breadths import Breadths, breadths_of, first_tick
from allocator.cliques.aligned import bytes_in_cells, cells, whole_cells
from allocator.cliques.clique import Clique, all_chunks
from allocator.cliques.feasible import FeasibleOffsets
from allocator.cliques.max_weight import heavy_cliques
from allocator.cliques.orders import StackSearch
from allocator.cliques.pinned import bytes_in_slots
from allocator.cliques.stacks import MOST_FREE, bytes_in_stacks
from allocator.problem import FREE, Bound, Column, Conflicts, Problem, Witness, distinct

_MOST_TICKS = 16
"""Ticks that are looked at for what is alive in them, and pinned chunks for what lives with them."""
_MOST_CLIQUES = 8
"""Cliques that are looked at for their bytes, and for the room that they may need."""


def bound_of_cliques(problem: Problem, bound: Bound, looks: int) -> Bound:
    """Returns the largest bound that one of the searched cliques proves, or the given one, which is proved already.

    The orders of large cliques are searched with so many looks (`StackSearch`).
    """
    whole = all_chunks(problem)
    room = _room(whole)
    has_pins = bool(((whole.pinned != FREE) & (whole.size > 0)).any())
    if problem.conflicts is not None:
        cliques = _cliques(problem, whole, room)
    else:
        cliques = _alive(problem, whole, room, bound.nbytes) if has_pins or (room != whole.size).any() else iter(())
    kind = "that are alive at once" if problem.conflicts is None else "of which each two conflict"
    feasible, narrowed = FeasibleOffsets(problem, whole), list[Clique]()
    for clique in cliques:
        bound = _added(clique, bound, kind)
        narrowed.append(feasible.narrowed(clique))
    for clique in narrowed:
        chunks = f"{len(clique)} chunks {kind}"
        bound = bound.raised(Bound(bytes_in_cells(clique, bound.nbytes), f"places of {chunks} in cells"))
        bound = bound.raised(Bound(bytes_in_slots(clique, feasible), f"pinned among {chunks}"))
    stacks = StackSearch(looks)
    for clique in sorted(narrowed, key=lambda clique: -int(clique.size.sum())):
        # the slowest bound comes last: the more is proved before, the sooner it ends
        stacked = _stacked(clique, feasible, stacks, bound.nbytes)
        bound = bound.raised(Bound(stacked, f"all orders of {len(clique)} chunks {kind}"))
    return bound


def _stacked(clique: Clique, feasible: FeasibleOffsets, stacks: StackSearch, proved: int) -> int:
    """Returns what all orders of a clique need, or `proved`: exactly for a few chunks, or as far as the search goes."""
    if np.count_nonzero(clique.pinned == FREE) <= MOST_FREE:
        return bytes_in_stacks(clique, feasible, proved)
    return stacks.bytes_needed(clique, proved)


def _added(clique: Clique, bound: Bound, kind: str) -> Bound:
    """Returns the larger of the bound and what the sizes of a clique add up to, with the clique as its witness."""
    cell, nbytes = max(((cell, whole_cells(clique, cell)) for cell in (1, *cells(clique))), key=itemgetter(1))
    if nbytes <= bound.nbytes:
        return bound
    witness = Witness(chunks=tuple(clique.ids.tolist()), cell=cell)
    return Bound(nbytes, f"sizes and alignment of {len(clique)} chunks {kind}", witness)


def heaviest_clique(problem: Problem) -> Column:
    """Returns the chunks of a heavy clique of conflicts; nothing where no chunk has bytes."""
    whole = all_chunks(problem)
    cliques = _cliques(problem, whole, whole.size)
    return max((clique.ids for clique in cliques), key=lambda ids: int(problem.size[ids].sum()), default=whole.ids[:0])


def _room(whole: Clique) -> Column:
    """Returns the bytes that a chunk may cost a clique: those of its root, rounded up to its alignment."""
    root_size = whole.size + whole.tail + np.where(whole.pinned == FREE, whole.shift, 0)
    alignment = np.maximum(whole.alignment, 1)
    return np.where(whole.size > 0, -(-root_size // alignment) * alignment, 0)


def _cliques(problem: Problem, whole: Clique, room: Column) -> Iterator[Clique]:
    """Yields heavy cliques by size and by room. What is alive at once hints at them, as it mostly conflicts."""
    conflicts, first = _of_bodies(problem, whole), first_tick(problem)
    live = breadths_of(first, problem.end, room)
    ticks = live.tick[np.argsort(-live.value, kind="stable")][:_MOST_CLIQUES].tolist()
    hints = [np.flatnonzero((first <= tick) & (tick < problem.end)) for tick in ticks]
    cliques = heavy_cliques(conflicts, whole.size, _MOST_CLIQUES, hints)
    if (room != whole.size).any():
        cliques += heavy_cliques(conflicts, room, _MOST_CLIQUES, hints)
    yield from map(whole.some, {clique.tobytes(): clique for clique in cliques}.values())


def _of_bodies(problem: Problem, whole: Clique) -> Conflicts:
    """Returns the conflicts, where chains whose chunks all have the bytes of the root count as their root."""
    conflicts = problem.conflicts or Conflicts()
    if not len(problem.src):
        return conflicts
    used, is_solid = problem.size > 0, np.ones(len(problem), bool)
    np.logical_and.at(is_solid, whole.root[used], (whole.size == problem.size[whole.root])[used])
    body = np.where(is_solid[whole.root], whole.root, whole.ids)
    both = used[conflicts.one] & used[conflicts.other]
    one, other = body[conflicts.one[both]], body[conflicts.other[both]]
    pairs = distinct(np.minimum(one, other) * len(problem) + np.maximum(one, other))
    return Conflicts(pairs // len(problem), pairs % len(problem))


def _alive(problem: Problem, whole: Clique, room: Column, proved: int) -> Iterator[Clique]:
    """Yields what is alive in the ticks that may need most room, in all and beside each of the highest pins."""
    first = first_tick(problem)
    lives = np.flatnonzero((whole.size > 0) & (first < problem.end))
    begin, end, top = first[lives], problem.end[lives], (whole.pinned + whole.size)[lives]
    live = breadths_of(begin, end, room[lives])
    high = np.flatnonzero(whole.pinned[lives] != FREE)
    high = high[np.lexsort((end[high], begin[high], -top[high]))][:_MOST_TICKS]
    ticks = distinct(np.append(_fullest(live, begin, end, proved), _fullest_of_each(live, begin[high], end[high])))
    alive_sets = [lives[(begin <= tick) & (tick < end)] for tick in ticks.tolist()]
    yield from map(whole.some, {ids.tobytes(): ids for ids in alive_sets}.values())


def _fullest(live: Breadths, begin: Column, end: Column, proved: int) -> Column:
    """Returns the ticks that may need most room, where it is more than `proved`: after begins and before ends."""
    rows = np.flatnonzero(live.value > proved)
    rows = rows[np.isin(live.tick[rows], begin) & np.isin(live.tick[rows + 1], end)]
    return live.tick[rows[np.argsort(-live.value[rows], kind="stable")][:_MOST_TICKS]]


def _fullest_of_each(live: Breadths, begin: Column, end: Column) -> Column:
    """Returns the tick in [begin, end) in which most room may be needed."""
    first, behind = np.searchsorted(live.tick, begin).tolist(), np.searchsorted(live.tick, end).tolist()
    rows = [a + int(np.argmax(live.value[a:b])) for a, b in zip(first, behind, strict=True)]
    return live.tick[np.array(rows, np.int64)]
