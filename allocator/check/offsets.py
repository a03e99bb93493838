"""The judge of plans. It believes the problem, and nothing else: it shares no code with what makes plans."""

from bisect import bisect_left
from enum import StrEnum

import numpy as np
from attrs import frozen

from allocator.kernels.judge import CURSOR, ENTERED, NO_ROW, OTHER, find_overlap
from allocator.machine_code.arrays import compiled
from allocator.problem import FREE, Column, Problem, stable_order

MANY = 20_000
"""From so many chunks on, the list of those alive could be long, and the sweep is compiled."""
GROUP = 5_000
"""Chunks that enter the compiled sweep at once, at least: what it looks up for them stays in the processor's cache.
`tools/bench_solvers.py` with a million chunks shows what that is worth."""
SLICE = 20_000
"""Chunks that the compiled sweep looks at before Python can handle Ctrl-C: some milliseconds."""


class FaultKind(StrEnum):
    """Ways in which a plan can be wrong."""

    LENGTH = "length"
    NEGATIVE = "negative offset"
    ALIGNMENT = "alignment"
    PINNED = "pinned offset"
    ARENA = "arena too small"
    OVERWRITE = "misplaced overwrite"
    OVERLAP = "overlap"


@frozen
class Fault:
    """The first fault of a plan: its kind (see the checker's own), which chunks, and what is wrong in numbers."""

    kind: StrEnum
    chunks: tuple[int, ...]
    message: str


def check(problem: Problem, offsets: Column, arena_bytes: int) -> Fault | None:
    """Returns the first fault of a plan, or None. O(n log n).

    Two chunks that are alive in one tick share no byte, but for an overwriter and the chunk that it overwrites, in the
    one tick of overwriting, at the declared offset. Chunks of no bytes lie nowhere: their offsets are not looked at.
    Conflicts, where the problem has them, are believed in place of lifetimes.
    """
    if len(offsets) != len(problem):
        return Fault(FaultKind.LENGTH, (), f"{len(offsets)} offsets for {len(problem)} chunks")
    return (
        _check_each(problem, offsets, arena_bytes)
        or _check_pairs(problem, offsets)
        or (_check_overlaps(problem, offsets) if problem.conflicts is None else _check_conflicts(problem, offsets))
    )


def _check_each(problem: Problem, offsets: Column, arena_bytes: int) -> Fault | None:
    used = problem.size > 0
    wrong = {
        FaultKind.NEGATIVE: offsets < 0,
        FaultKind.ALIGNMENT: offsets % problem.alignment != 0,
        FaultKind.PINNED: (problem.pinned != FREE) & (problem.pinned != offsets),
        FaultKind.ARENA: offsets > arena_bytes - problem.size,
    }
    for kind, column in wrong.items():
        rows = np.flatnonzero(column & used)
        if len(rows):
            i = int(rows[0])
            return Fault(
                kind,
                (i,),
                f"chunk {i} of {problem.size[i]} bytes lies at {offsets[i]}; alignment {problem.alignment[i]}, "
                f"pinned to {problem.pinned[i]}, arena {arena_bytes}",
            )
    return None


def _check_pairs(problem: Problem, offsets: Column) -> Fault | None:
    src, dest = problem.src, problem.dest
    wanted = offsets[dest] + problem.overwrite_offset
    misplaced = np.flatnonzero((offsets[src] != wanted) & (problem.size[src] > 0))
    if not len(misplaced):
        return None
    k = int(misplaced[0])
    message = f"chunk {src[k]} overwrites chunk {dest[k]} and must lie at {wanted[k]}, but lies at {offsets[src[k]]}"
    return Fault(FaultKind.OVERWRITE, (int(src[k]), int(dest[k])), message)


def _check_conflicts(problem: Problem, offsets: Column) -> Fault | None:
    assert problem.conflicts is not None
    a, b = problem.conflicts.one, problem.conflicts.other
    used = (problem.size[a] > 0) & (problem.size[b] > 0)
    apart = (offsets[a] + problem.size[a] <= offsets[b]) | (offsets[b] + problem.size[b] <= offsets[a])
    overlapping = np.flatnonzero(used & ~apart)
    return _overlap(problem, offsets, int(a[overlapping[0]]), int(b[overlapping[0]])) if len(overlapping) else None


def _check_overlaps(problem: Problem, offsets: Column) -> Fault | None:
    """Checks overlaps by a sweep over time with the disjoint byte ranges in use, in address order.

    An overwriter enters one tick late: until then it lies in the range of the chunk that it overwrites, which is in use
    and overlaps nothing. So two ranges that overlap are a fault, and it is enough to compare neighbours.
    """
    rows, enter = occupied(problem)
    low, end = offsets[rows], problem.end[rows]
    sweep = _sweep if len(rows) < MANY else _sweep_compiled
    pair = sweep(enter[rows], end, low, low + problem.size[rows])
    return _overlap(problem, offsets, *rows[list(pair)].tolist()) if pair else None


def occupied(problem: Problem) -> tuple[Column, Column]:
    """Returns the chunks that have bytes of their own, and when each chunk enters: an overwriter one tick late."""
    enter = problem.begin.copy()
    enter[problem.src] += 1
    return np.flatnonzero((problem.size > 0) & (enter < problem.end)), enter


def _sweep(enter: Column, end: Column, low: Column, high: Column) -> tuple[int, ...]:
    """Returns the first two rows that are in use in one tick and share a byte, newcomer first, or none.

    In a tick those that leave come first, highest first: the cheap end of a list.
    """
    rows = np.arange(len(low))
    tick, enters = np.concatenate((end, enter)), np.repeat([False, True], len(rows))
    order = np.lexsort((np.concatenate((-low, low)), enters, tick))
    starts: list[int] = []
    holders: list[int] = []
    first, behind = low.tolist(), high.tolist()
    for comes, row in zip(enters[order].tolist(), np.concatenate((rows, rows))[order].tolist(), strict=True):
        at = bisect_left(starts, first[row])
        if not comes:
            del starts[at], holders[at]
            continue
        if at > 0 and behind[holders[at - 1]] > first[row]:
            return row, holders[at - 1]
        if at < len(starts) and starts[at] < behind[row]:
            return row, holders[at]
        starts.insert(at, first[row])
        holders.insert(at, row)
    return ()


def _sweep_compiled(enter: Column, end: Column, low: Column, high: Column) -> tuple[int, ...]:
    """Finds the same as `_sweep`, compiled, for any number of chunks alive at once. O(n log n).

    Chunks enter in groups, each with those that are still in use, or as many as these.
    """
    entering, rows, done = stable_order(low, enter), np.zeros(0, np.int64), 0
    while done < len(entering):
        group = entering[done : done + max(GROUP, len(rows))]
        rows, done = np.concatenate((rows, group)), done + len(group)
        pair = _sweep_group(enter[rows], end[rows], low[rows], high[rows])
        if pair:
            return tuple(rows[list(pair)].tolist())
        rows = rows[end[rows] > enter[rows[-1]]]
    return ()


def _sweep_group(enter: Column, end: Column, low: Column, high: Column) -> tuple[int, ...]:
    """Finds the same for chunks that stand by tick, then address. Between slices Python handles Ctrl-C."""
    rows, leaving, holder = np.arange(len(low)), stable_order(end), stable_order(low)
    place = np.empty(len(low), np.int64)
    place[holder] = rows
    tree = np.zeros(2 << len(low).bit_length(), np.int8)
    cursor, row = np.zeros(CURSOR, np.int64), NO_ROW
    while row == NO_ROW and cursor[ENTERED] < len(low):
        row = compiled(find_overlap)(enter, end, low, high, rows, leaving, place, holder, tree, cursor, SLICE)
    return () if row == NO_ROW else (row, int(cursor[OTHER]))


def _overlap(problem: Problem, offsets: Column, *chunks: int) -> Fault:
    a, b = sorted(chunks)
    message = f"chunk {_extent(problem, offsets, a)} and chunk {_extent(problem, offsets, b)}"
    return Fault(FaultKind.OVERLAP, (a, b), message)


def _extent(problem: Problem, offsets: Column, i: int) -> str:
    where = f"bytes [{offsets[i]}, {offsets[i] + problem.size[i]})"
    return f"{i} has {where} in ticks [{problem.begin[i]}, {problem.end[i]})"
