"""Sequences of steps, some of which run several times: how many bytes are alive, and what that costs.

A step reads what the last run of the writer left; so a list of steps says it all.
"""

from collections.abc import Sequence

import numpy as np
from attrs import field, frozen

from allocator.problem import Column, column
from allocator.recompute.work import OverwriteChoice, RecomputeProblem


@frozen(eq=False)
class LiveRanges:
    """Stays in memory: `chunk[k]` is begun by the run at place `begin[k]`, and read last at `last[k]` (or there)."""

    chunk: Column = field(converter=column)
    begin: Column = field(converter=column)
    last: Column = field(converter=column)


def live_ranges(work: RecomputeProblem, sequence: Sequence[int]) -> LiveRanges:
    """Returns the stays of all chunks, by when they begin."""
    newest: dict[int, int] = {}
    chunks, begin, last = list[int](), list[int](), list[int]()
    for place, step in enumerate(sequence):
        for chunk in work.reads[step]:
            last[newest[chunk]] = place
        for chunk in work.writes[step]:
            newest[chunk] = len(chunks)
            chunks.append(chunk)
            begin.append(place)
            last.append(place)
    return LiveRanges(chunks, begin, last)


def alive(work: RecomputeProblem, sequence: Sequence[int], ranges: LiveRanges | None = None) -> Column:
    """Returns the bytes alive in each place: what is overwritten there, and what overwrites it, are the same bytes."""
    ranges = ranges or live_ranges(work, sequence)
    change, size = np.zeros(len(sequence) + 1, np.int64), work.sizes[ranges.chunk]
    np.add.at(change, ranges.begin, size)
    np.subtract.at(change, ranges.last + 1, size)
    ended: dict[int, list[int]] = {}
    for chunk, place in zip(
        *(c[ranges.begin < ranges.last].tolist() for c in (ranges.chunk, ranges.last)), strict=True
    ):
        if work.overwrites[sequence[place]]:
            ended.setdefault(place, []).append(chunk)
    total: Column = np.cumsum(change)[:-1]
    for place, chunks in ended.items():
        total[place] -= overwritten_bytes(work, sequence[place], frozenset(chunks))
    return total


def least_bytes(work: RecomputeProblem) -> int:
    """Returns the bytes that every schedule needs: those that stay to the end, and what one step touches."""
    staying, most = work.resident | work.resident_overwriters, 0  # which have the bytes of residents
    for step, (reads, writes) in enumerate(zip(work.reads, work.writes, strict=True)):
        touched = sum(work.size[c] for c in {*reads, *writes} - staying)
        overwrites = [t for t in work.overwrites[step] if t.out not in work.resident_overwriters]
        most = max(most, touched - _saved_bytes(work, overwrites))
    return sum(work.size[c] for c in work.resident) + most


def overwritten_bytes(work: RecomputeProblem, step: int, ending: frozenset[int]) -> int:
    """Returns the bytes that a step writes over chunks that end with it, the largest first."""
    return _saved_bytes(work, [t for t in work.overwrites[step] if t.src in ending])


def _saved_bytes(work: RecomputeProblem, overwrites: Sequence[OverwriteChoice]) -> int:
    if len(overwrites) <= 1:
        return work.size[overwrites[0].out] if overwrites else 0
    used, total = set[tuple[str, int]](), 0
    for take in sorted(overwrites, key=lambda t: (-work.size[t.out], work.size[t.src])):
        mine = {("out", take.out), ("src", take.src)}
        if not mine & used:
            used |= mine
            total += work.size[take.out]
    return total


def extra_cost(work: RecomputeProblem, sequence: Sequence[int]) -> int:
    """Returns the cost of all runs of steps beyond their first."""
    return sum(work.cost[i] for i in sequence) - sum(work.cost[i] for i in set(sequence))


def without_useless(work: RecomputeProblem, sequence: Sequence[int]) -> list[int]:
    """Returns the sequence without runs that nothing reads, of steps that run again later or have run before."""
    times = np.bincount(np.array(sequence, np.int64), minlength=len(work)).tolist()
    wanted, kept = set[int](), []
    for step in reversed(sequence):
        if times[step] > 1 and wanted.isdisjoint(work.writes[step]):
            times[step] -= 1
            continue
        wanted.difference_update(work.writes[step])
        wanted.update(work.reads[step])
        kept.append(step)
    return kept[::-1]
