"""What need not be computed again after all, as there is room to keep it."""

from collections.abc import Sequence

from attrs import frozen

from allocator.problem import Column
from allocator.recompute.sequence import LiveRanges, alive, live_ranges, without_useless
from allocator.recompute.work import RecomputeProblem

_MOST_SWEEPS = 20


def keep(work: RecomputeProblem, sequence: Sequence[int], budget: int) -> list[int]:
    """Returns the sequence without runs whose results fit into the budget from the run before on, dearest first."""
    shorter = without_useless(work, sequence)
    for _ in range(_MOST_SWEEPS):
        fewer = _sweep(work, shorter, budget)
        if len(fewer) == len(shorter):
            break
        shorter = fewer
    return shorter


@frozen
class _Gap:
    """A chunk is not in memory behind the place `last`, up to the place `again`."""

    chunk: int
    last: int
    again: int


def _sweep(work: RecomputeProblem, sequence: Sequence[int], budget: int) -> list[int]:
    """Returns at most one run of each step is left out."""
    ranges = live_ranges(work, sequence)
    bytes_alive, gaps = alive(work, sequence, ranges), _gaps(ranges)
    order = sorted(gaps, key=lambda place: (-_worth(work, sequence[place], gaps[place]), place))
    left_out, touched = set[int](), set[int]()
    for place in order:
        step = sequence[place]
        if step not in touched and _fits(work, sequence, gaps[place], bytes_alive, budget):
            touched.add(step)
            left_out.add(place)
            for gap in gaps[place]:
                bytes_alive[gap.last : gap.again] += work.size[gap.chunk]
    return without_useless(work, [step for place, step in enumerate(sequence) if place not in left_out])


def _gaps(ranges: LiveRanges) -> dict[int, list[_Gap]]:
    """Returns for each run but the first of its step the gaps that it ends, of chunks that are read."""
    before: dict[int, int] = {}
    gaps: dict[int, list[_Gap]] = {}
    for chunk, begin, last in zip(ranges.chunk.tolist(), ranges.begin.tolist(), ranges.last.tolist(), strict=True):
        if chunk in before:
            brought = gaps.setdefault(begin, [])
            if last > begin:
                brought.append(_Gap(chunk, before[chunk], begin))
        before[chunk] = last
    return gaps


def _worth(work: RecomputeProblem, step: int, gaps: Sequence[_Gap]) -> float:
    return work.cost[step] / max(sum(work.size[g.chunk] for g in gaps), 1)


def _fits(
    work: RecomputeProblem, sequence: Sequence[int], gaps: Sequence[_Gap], bytes_alive: Column, budget: int
) -> bool:
    """Returns whether the budget holds with the chunks kept. Where one was overwritten, its bytes come on top."""
    more = sum(work.size[g.chunk] for g in gaps)
    for gap in gaps:
        if gap.again > gap.last + 1 and int(bytes_alive[gap.last + 1 : gap.again].max()) + more > budget:
            return False
        taken = sum(work.size[t.out] for t in work.overwrites[sequence[gap.last]] if t.src == gap.chunk)
        if taken and int(bytes_alive[gap.last]) + more > budget:
            return False
    return True
