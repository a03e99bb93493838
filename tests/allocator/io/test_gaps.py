"""Ticks in which a buffer is not alive although its lifetime holds them."""

from itertools import combinations

import pytest
from hypothesis import given, settings

from allocator.errors import UnsupportedProblemError
from allocator.io import gaps
from allocator.io.gaps import conflicts_of
from allocator.io.instance import Gaps, Instance
from allocator.problem import column
from allocator.solvers import STRATEGIES, solve
from tests.helpers.allocator.file_instances import gapped

TAKING = tuple(s.name for s in STRATEGIES.values() if s.traits.conflicts)


def alive(instance: Instance) -> list[set[int]]:
    """Returns the ticks of each buffer outside its gaps; none for buffers of no bytes."""
    ticks = [set(range(r.begin, r.end)) if r.size else set() for r in instance.problem.rows()]
    holes = instance.gaps
    for chunk, begin, end in zip(holes.chunk.tolist(), holes.begin.tolist(), holes.end.tolist(), strict=True):
        ticks[chunk] -= set(range(begin, end))
    return ticks


@given(gapped())
@settings(max_examples=40)
def test_two_buffers_are_in_conflict_where_both_are_alive_in_a_tick(instance: Instance) -> None:
    problem, ticks = instance.problem, alive(instance)
    pairs = conflicts_of(problem.begin, problem.end, problem.size, instance.gaps)
    wanted = [pair for pair in combinations(range(len(problem)), 2) if ticks[pair[0]] & ticks[pair[1]]]
    assert list(zip(pairs.one.tolist(), pairs.other.tolist(), strict=True)) == wanted


@pytest.mark.parametrize("name", TAKING)
@given(instance=gapped())
@settings(max_examples=15)
def test_every_strategy_that_takes_conflicts_keeps_gaps(name: str, instance: Instance) -> None:
    problem, ticks = instance.problem, alive(instance)
    offset = solve(problem, name).offset
    for tick in range(int(problem.end.max(initial=0))):
        used = [
            byte for r in problem.rows() if tick in ticks[r.id] for byte in range(offset[r.id], offset[r.id] + r.size)
        ]
        assert len(used) == len(set(used))


def test_gaps_that_touch_or_overlap_count_as_one() -> None:
    pairs = conflicts_of(column([0, 2]), column([9, 6]), column([1, 1]), Gaps([0, 0], [2, 3], [4, 6]))
    assert len(pairs) == 0
    assert len(conflicts_of(column([0, 2]), column([9, 7]), column([1, 1]), Gaps([0, 0], [2, 3], [4, 6]))) == 1


def test_gaps_with_more_conflicts_than_memory_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaps, "MOST_PAIRS", 5)
    few, many = column([1] * 3), column([1] * 4)
    assert len(conflicts_of(few - 1, few, few, Gaps())) == 3
    with pytest.raises(UnsupportedProblemError, match="6 pairs meet, 5 are the most"):
        conflicts_of(many - 1, many, many, Gaps())
