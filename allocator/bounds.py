"""What no plan can go below, and what other ways of running need. All in bytes."""

import numpy as np

from allocator.breadths import breadths, breadths_of, first_tick
from allocator.chains import chains
from allocator.chunks import derive
from allocator.problem import FREE, Column, Conflicts, Problem
from allocator.steps import Program


def lower_bound(problem: Problem) -> int:
    """No arena is smaller: the largest operator breadth, in bytes or in cells of alignment; the highest pinned end.

    Operator breadth: Pisarchyk and Lee 2020. The bytes of an overwrite count once in the tick of overwriting.
    """
    if not (problem.size > 0).any():
        return 0
    if problem.conflicts is not None:
        return _heaviest_found(problem, problem.conflicts)
    breadth = int(breadths(problem).value.max())
    is_pinned = (problem.pinned != FREE) & (problem.size > 0)
    highest = int((problem.pinned + problem.size)[is_pinned].max(initial=0))
    return max(breadth, highest, _breadth_in_cells(problem))


def _heaviest_found(problem: Problem, conflicts: Conflicts) -> int:
    """The heaviest of the cliques that each chunk makes with heavier ones, greedily, and the highest pinned end."""
    near: list[set[int]] = [set() for _ in range(len(problem))]
    for one, other in zip(conflicts.one.tolist(), conflicts.other.tolist(), strict=True):
        near[one].add(other)
        near[other].add(one)
    order = np.argsort(-problem.size, kind="stable").tolist()
    is_pinned = (problem.pinned != FREE) & (problem.size > 0)
    best = int((problem.pinned + problem.size)[is_pinned].max(initial=0))
    for first in order:
        weight, common = int(problem.size[first]), near[first]
        for chunk in sorted(common, key=lambda c: (-problem.size[c], c)):
            if chunk in common:
                weight, common = weight + int(problem.size[chunk]), common & near[chunk]
        best = max(best, weight)
    return best


def naive_bytes(problem: Problem) -> int:
    """Bytes of all chunks, overwriters too, when each has an allocation of its own for ever."""
    return int(problem.size.sum())


def profile(problem: Problem) -> Column:
    """Live bytes in each tick, up to the last end: the operator breadths."""
    live = breadths(problem)
    before = np.append(0, live.value)[:-1]
    return np.repeat(before, np.diff(live.tick, prepend=0))


def peak_tick(problem: Problem) -> int:
    """The first tick in which most bytes are alive; 0 where there are none."""
    live = breadths(problem)
    return int(live.tick[np.argmax(live.value)]) if live.value.any() else 0


def refcount_peak(program: Program) -> int:
    """Peak of dynamic reference counting: no overwrites; views share; a chunk lives from its write to its last reader.

    Bytes that live at once; what a heap loses to fragmentation is not in it.
    """
    chunks = derive(program, overwrite=False)
    return int(breadths_of(chunks.begin, chunks.end, chunks.size).value.max(initial=0))


def _breadth_in_cells(problem: Problem) -> int:
    """A bound that knows alignment. A cell is `cell` bytes, the greatest common divisor of the alignments of all roots.

    A chunk that begins at the edge of a cell (each root does) shares none of its cells with another such chunk; any
    other overwriter owns at least the cells that it fills. So what is alive in one tick owns a sum of cells, and only
    the last cell of the topmost chunk may be partly unused: at most the largest such remainder among the chunks.
    """
    used = problem.size > 0
    is_root = used.copy()
    is_root[problem.src] = False
    cell = int(np.gcd.reduce(problem.alignment[is_root]))
    skew = chains(problem).offset % cell
    at_edge = skew == 0
    filled = np.maximum((problem.size - (cell - skew)) // cell, 0)
    cells = np.where(at_edge, -(-problem.size // cell), filled)
    first = first_tick(problem)
    live = breadths_of(first, problem.end, cells)
    peak = int(np.argmax(live.value))
    tick = live.tick[peak]
    alive = (first <= tick) & (tick < problem.end) & at_edge & used
    unused = (cells * cell - problem.size)[alive].max(initial=0)
    return int(live.value[peak]) * cell - int(unused)
