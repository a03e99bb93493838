"""Profiles of bodies: their chunks, the gaps that each two leave each other, and what is alive at once."""

import numpy as np
import numpy.typing as npt
from attrs import evolve, field, frozen

from allocator.problem import FREE, Column, Conflicts, Problem, column, distinct
from allocator.ragged import RaggedArray, row_starts
from allocator.solvers.search.bodies import Bodies, bodies, select

FAR = 1 << 62
"""A distance that no two bodies have, in bytes."""


@frozen(eq=False)
class PairGaps:
    """Pair k of bodies, one[k] < other[k], may lie `low` to `high` bytes apart for one of the gaps of row k.

    The distance is the offset of the other, less that of the one; ends are in, gaps ascend.
    """

    one: Column = field(converter=column)
    other: Column = field(converter=column)
    start: Column = field(converter=column)
    low: Column = field(converter=column)
    high: Column = field(converter=column)


@frozen(eq=False)
class Pieces:
    """The chunks that bodies consist of: bytes [shift, shift + size) of body `owner`, in ticks [begin, end).

    `near` lists for each the pieces of other bodies that it may share no byte with; `cliques` as in Bodies.
    """

    owner: Column = field(converter=column)
    shift: Column = field(converter=column)
    begin: Column = field(converter=column)
    end: Column = field(converter=column)
    size: Column = field(converter=column)
    near: RaggedArray
    cliques: RaggedArray


def arranged(part: Bodies) -> Bodies:
    """Returns the same bodies in an order that ids do not decide, but between bodies that agree in all else."""
    near_count = np.diff(part.near.start)
    keys = (part.root, near_count, part.is_solid, part.pinned, part.alignment, part.end, part.begin, -part.size)
    return select(part, np.lexsort(keys))


def pieces(problem: Problem, part: Bodies) -> Pieces:
    """Derives the pieces of the bodies of one part. An overwriter counts from its second tick."""
    chain = problem.chains
    owner = np.full(len(problem), -1)
    owner[part.root] = np.arange(len(part))
    owner = owner[chain.root]
    begin = problem.begin.copy()
    if problem.conflicts is None:
        begin[problem.src] += 1
    ids = np.flatnonzero((owner >= 0) & (problem.size > 0) & (begin < problem.end))
    conflicts = problem.conflicts
    if conflicts is not None:
        place = np.full(len(problem), -1)
        place[ids] = np.arange(len(ids))
        one, other = place[conflicts.one], place[conflicts.other]
        conflicts = Conflicts(one[(one >= 0) & (other >= 0)], other[(one >= 0) & (other >= 0)])
    size, one_each = problem.size[ids], np.ones(len(ids), np.int64)
    alone = bodies(Problem(begin[ids], problem.end[ids], size, one_each, one_each * FREE, conflicts=conflicts))
    return Pieces(
        owner[ids], chain.offset[ids], begin[ids], problem.end[ids], problem.size[ids], alone.near, alone.cliques
    )


def pair_gaps(part: Bodies, made_of: Pieces) -> PairGaps:
    """Derives the distances that each two conflicting bodies may have, where offsets are aligned.

    Two pieces that share no byte forbid the distances strictly between two numbers; gaps are what is left.
    """
    p, q = made_of.near.row_of_each(), made_of.near.item
    forward = made_of.owner[p] < made_of.owner[q]
    p, q = p[forward], q[forward]
    pair = made_of.owner[p] * len(part) + made_of.owner[q]
    low = made_of.shift[p] - made_of.shift[q] - made_of.size[q]
    high = made_of.shift[p] - made_of.shift[q] + made_of.size[p]
    order = np.lexsort((high, low, pair))
    pair, low, high = pair[order], low[order], high[order]
    row = np.cumsum(np.diff(pair, prepend=-1) != 0) - 1
    top = _highest_so_far(row, high)
    is_first = np.diff(row, prepend=-1) != 0
    opens = is_first | (low >= np.append(0, top[:-1]))
    is_last = np.diff(row, append=len(pair)) != 0
    gap_row = np.concatenate((row[opens], row[is_last]))
    gap_low = np.concatenate((np.where(is_first, -FAR, np.append(0, top[:-1]))[opens], top[is_last]))
    gap_high = np.concatenate((low[opens], np.full(is_last.sum(), FAR)))
    pairs = distinct(pair)
    one, other = pairs // max(len(part), 1), pairs % max(len(part), 1)
    step = np.gcd(part.alignment[one], part.alignment[other])[gap_row]
    gap_low = np.where(gap_low > -FAR, -(-gap_low // step) * step, gap_low)
    gap_high = np.where(gap_high < FAR, gap_high // step * step, gap_high)
    order = np.lexsort((gap_low, gap_row))
    order = order[gap_low[order] <= gap_high[order]]
    return PairGaps(one, other, row_starts(gap_row[order], len(one)), gap_low[order], gap_high[order])


def _highest_so_far(row: Column, value: Column) -> Column:
    """Returns the running maximum in each row."""
    values, rank = np.unique(value, return_inverse=True)
    return np.asarray(values[np.maximum.accumulate(row * len(values) + rank) % max(len(values), 1)], np.int64)


def without_mirrors(gaps: PairGaps, is_alike: npt.NDArray[np.bool_]) -> PairGaps:
    """Returns the gaps without mirrored plans: of two bodies that are alike, the other never lies below the one."""
    row = np.repeat(np.arange(len(gaps.one)), np.diff(gaps.start))
    keeps = ~is_alike[row] | (gaps.high >= 0)
    low = np.where(is_alike[row], np.maximum(gaps.low, 0), gaps.low)
    start = row_starts(row[keeps], len(gaps.one))
    return evolve(gaps, start=start, low=low[keeps], high=gaps.high[keeps])


def alike(part: Bodies, made_of: Pieces, gaps: PairGaps) -> npt.NDArray[np.bool_]:
    """Returns for each pair whether both bodies have the same pieces at the same times, and are free."""
    order = np.lexsort((made_of.shift, made_of.end, made_of.begin, made_of.owner))
    start = np.searchsorted(made_of.owner[order], np.arange(len(part) + 1))
    columns = np.stack((made_of.begin, made_of.end, made_of.shift, made_of.size), axis=1)[order]
    looks = [
        (columns[a:b].tobytes(), alignment, pinned)
        for a, b, alignment, pinned in zip(
            start[:-1].tolist(), start[1:].tolist(), part.alignment.tolist(), part.pinned.tolist(), strict=True
        )
    ]
    kind = {look: k for k, look in enumerate(dict.fromkeys(looks))}
    number = np.array([kind[look] for look in looks], np.int64)
    return np.asarray((number[gaps.one] == number[gaps.other]) & (part.pinned[gaps.one] == FREE))
