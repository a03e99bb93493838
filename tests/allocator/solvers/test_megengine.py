"""MegEngine's strategies, and strip packing: cases of its own tests, and properties of all of them."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from allocator.check.offsets import check
from allocator.kernels import mode
from allocator.problem import FREE, Problem, align_up
from allocator.solvers import STRATEGIES, solve
from allocator.solvers.base import SolverOptions, arena_bytes
from allocator.solvers.placing.timeline import Timeline, sorted_timeline, timeline_by_id
from allocator.solvers.placing.units import units_of
from tests.helpers.allocator.megengine_problems import megengine_problem
from tests.helpers.allocator.random_problems import relabelled
from tests.helpers.allocator.strategies import problems

ALL = ("pushdown", "pushdown_sorted", "best_fit", "best_fit_sorted", "interval_move", "strip_packing_bestfit")
BY_ID = ("pushdown", "best_fit")
paddings_and_alignments = pytest.mark.parametrize(("padding", "alignment"), [(1, 1), (1, 2), (2, 1), (2, 2)])


def own_test(
    rows: list[tuple[int, int, int]], over: list[tuple[int, int, int]], padding: int, alignment: int
) -> Problem:
    """Returns a problem of (begin, end, size) each, and (src, dest, offset) of overwrites."""
    begin, end, size = zip(*rows, strict=True)
    columns = np.array(over, np.int64).reshape(-1, 3).T
    alignments = np.full(len(rows), alignment)
    alignments[columns[0]] = 1
    return Problem(begin, end, np.array(size) + padding, alignments, [FREE] * len(rows), *columns)


@pytest.mark.parametrize("name", ALL)
@paddings_and_alignments
def test_megengine_alloc_reaches_its_bound(name: str, padding: int, alignment: int) -> None:
    problem = own_test([(0, 1, 1), (0, 1, 1), (1, 2, 2)], [], padding, alignment)
    plan = solve(problem, name)
    expected = max(align_up(2 + padding, alignment), 2 * align_up(1 + padding, alignment))
    assert plan.arena_bytes == plan.lower_bound
    assert align_up(plan.arena_bytes, alignment) == expected


@pytest.mark.parametrize("name", ALL)
@paddings_and_alignments
def test_megengine_overwrite_reaches_its_bound(name: str, padding: int, alignment: int) -> None:
    problem = own_test([(0, 2, 3), (1, 3, 1), (2, 4, 1)], [(1, 0, 1), (2, 1, 0)], padding, alignment)
    plan = solve(problem, name)
    assert plan.offset.tolist() == [0, 1, 1]
    assert plan.arena_bytes == plan.lower_bound == 3 + padding


@pytest.mark.parametrize("name", ALL)
@paddings_and_alignments
def test_megengine_overwrite_same_end_reaches_its_bound(name: str, padding: int, alignment: int) -> None:
    problem = own_test([(1, 2, 1), (0, 2, 1)], [(0, 1, 0)], padding, alignment)
    plan = solve(problem, name)
    assert plan.arena_bytes == plan.lower_bound == 1 + padding


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("alignment", [1, 256])
@pytest.mark.parametrize("padding", [1, 32])
@pytest.mark.parametrize("count", [10, 300, 1000])
def test_megengine_strategies_plan_random_problems_rightly(name: str, alignment: int, padding: int, count: int) -> None:
    problem = megengine_problem(count, count, alignment, padding)
    plan = solve(problem, name)
    assert check(problem, plan.offset, plan.arena_bytes) is None
    assert len(problem.src) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 60), alignment=st.sampled_from((1, 8)))
@settings(max_examples=15)
def test_megengine_strategies_compiled_and_plain_give_the_same_plan(
    name: str, seed: int, count: int, alignment: int
) -> None:
    problem = megengine_problem(seed, count, alignment)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mode, "SMALL", count + 1)
        plain = STRATEGIES[name].solve(problem, SolverOptions()).offset
        patch.setattr(mode, "SMALL", 0)
        compiled = STRATEGIES[name].solve(problem, SolverOptions()).offset
    assert plain.tolist() == compiled.tolist()


@pytest.mark.parametrize("name", [name for name in ALL if name not in BY_ID])
@given(problem=problems(max_chunks=20, max_size=4, horizon=6), data=st.data())
@settings(max_examples=30)
def test_megengine_strategies_do_not_depend_on_chunk_ids(name: str, problem: Problem, data: st.DataObject) -> None:
    other = relabelled(problem, data.draw(st.permutations(range(len(problem)))))
    assert solve(other, name).arena_bytes == solve(problem, name).arena_bytes


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("empty", [Problem([], [], [], [], []), Problem([1], [2], [0], [4], [FREE])])
def test_megengine_strategies_place_no_chunks_in_no_bytes(name: str, empty: Problem) -> None:
    assert solve(empty, name).arena_bytes == 0


def best_fit_offsets(problem: Problem, line: Timeline, alignment: int) -> list[int]:
    """Computes best fit with one alignment, on the free ranges in address order. Chunks without bytes stay at 0."""
    offset, top = [0] * len(problem), 0
    dest = {
        int(s): (int(d), int(at)) for s, d, at in zip(problem.src, problem.dest, problem.overwrite_offset, strict=True)
    }
    free: list[tuple[int, int]] = []

    def give_back(low: int, high: int) -> None:
        for other in [f for f in free if low in f or high in f]:
            free.remove(other)
            low, high = min(low, other[0]), max(high, other[1])
        free.append((low, high))

    def take(low: int, size: int) -> None:
        around = next(f for f in free if f[0] <= low and low + size <= f[1])
        free.remove(around)
        free.extend(f for f in ((around[0], low), (low + size, around[1])) if f[0] < f[1])

    for tick in sorted({*line.begin.tolist(), *line.end.tolist()}):
        for row in np.flatnonzero(line.end == tick).tolist():
            if row not in line.dest:
                give_back(offset[line.ids[row]], offset[line.ids[row]] + int(line.size[row]))
        for row in np.flatnonzero(line.begin == tick).tolist():
            chunk, size = int(line.ids[row]), int(line.size[row])
            if chunk in dest:
                old, at = dest[chunk]
                offset[chunk] = offset[old] + at
                give_back(offset[old], offset[old] + int(problem.size[old]))
            else:
                aligned = [(high - align_up(low, alignment), align_up(low, alignment)) for low, high in free]
                fitting = [a for a in aligned if a[0] >= size]
                offset[chunk] = min(fitting)[1] if fitting else top
                if not fitting:
                    top = align_up(top + size, alignment)
                    free.append((offset[chunk], top))
            take(offset[chunk], size)
    return offset


@pytest.mark.parametrize(("name", "line"), [("best_fit", timeline_by_id), ("best_fit_sorted", sorted_timeline)])
@given(problem=problems(max_chunks=20, horizon=12, alignments=(1,)), alignment=st.sampled_from((1, 4)))
@settings(max_examples=60)
def test_best_fit_takes_the_smallest_free_range_that_fits(
    name: str, line: Callable[[Problem], Timeline], problem: Problem, alignment: int
) -> None:
    rooted = np.where(np.isin(np.arange(len(problem)), problem.src), 1, alignment)
    columns = (problem.pinned, problem.src, problem.dest, problem.overwrite_offset)
    aligned = Problem(problem.begin, problem.end, problem.size, rooted, *columns)
    used = problem.size > 0
    expected = np.array(best_fit_offsets(aligned, line(aligned), alignment), np.int64)
    assert solve(aligned, name).offset[used].tolist() == expected[used].tolist()


def test_best_fit_splits_the_smallest_hole_that_is_large_enough() -> None:
    """Chunks 1 and 3 leave 6 bytes at 9 and 5 bytes at 23; chunk 5 of 5 bytes takes the latter."""
    begin, end, size = [0, 1, 2, 3, 4, 6], [9, 5, 9, 5, 9, 9], [9, 6, 8, 5, 7, 5]
    problem = Problem(begin, end, size, [1] * 6, [FREE] * 6)
    assert solve(problem, "best_fit").offset.tolist() == [0, 9, 15, 23, 28, 23]


def test_best_fit_leaves_a_hole_at_the_end_that_is_too_small() -> None:
    """Chunk 1 leaves 4 bytes on top; chunk 2 of 5 bytes begins behind them, as the heap never grows a hole."""
    problem = Problem([0, 0, 1], [2, 1, 2], [2, 4, 5], [1] * 3, [FREE] * 3)
    plan = solve(problem, "best_fit")
    assert plan.offset.tolist() == [0, 2, 6]
    assert plan.arena_bytes == 11


def test_best_fit_uses_what_an_overwriter_leaves() -> None:
    """Chunk 1 overwrites bytes 6 to 10 of chunk 0; chunk 2 takes the 6 bytes below, chunk 3 the rest of chunk 1's."""
    problem = Problem([0, 1, 2, 4], [2, 4, 5, 5], [12, 4, 6, 6], [1] * 4, [FREE] * 4, [1], [0], [6])
    assert solve(problem, "best_fit").offset.tolist() == [0, 6, 0, 6]


def pushed(address: list[int], size: list[int], above: list[tuple[int, int]]) -> list[int]:
    """Returns addresses after all have moved up as far as those below push them."""
    moved = list(address)
    for _ in moved:
        for low, high in above:
            moved[high] = max(moved[high], moved[low] + size[low])
    return moved


def interval_move_arena(begin: list[int], end: list[int], size: list[int]) -> int:
    """Computes interval move by trial: tries each gap and compares peaks. Chunks are in the order of insertion."""
    address: list[int] = []
    above: list[tuple[int, int]] = []
    for new, want in enumerate(size):
        conflicting = sorted(
            (c for c in range(new) if begin[c] < end[new] and begin[new] < end[c]), key=lambda c: address[c]
        )
        peak = max((a + s for a, s in zip(address, size, strict=False)), default=0)
        tops = [0, *(max(address[c] + size[c] for c in conflicting[: k + 1]) for k in range(len(conflicting)))]
        lows = [*(address[c] for c in conflicting), peak]
        trials = []
        for k, (floor, low) in enumerate(zip(tops, lows, strict=True)):
            if low < floor:
                continue
            order = [*above, *((c, new) for c in conflicting[:k]), *((new, c) for c in conflicting[k:])]
            after = pushed([*address, floor], size, order)
            rise = max(a + s for a, s in zip(after, size, strict=False)) - peak
            trials.append((low - floor < want, max(rise, 0), abs(low - floor - want), floor, after, order))
        *_, address, above = min(trials, key=lambda t: t[:4])
    return max((a + s for a, s in zip(address, size, strict=True)), default=0)


@given(problems(max_chunks=14, max_size=20, horizon=12, alignments=(1,)))
@settings(max_examples=60)
def test_interval_move_is_what_trying_each_gap_gives(problem: Problem) -> None:
    free = problem.size * ~np.isin(np.arange(len(problem)), problem.src)
    rows = sorted(
        (begin - end, begin, -size)
        for begin, end, size in zip(problem.begin.tolist(), problem.end.tolist(), free.tolist(), strict=True)
        if size
    )
    begin, end, size = [b for _, b, _ in rows], [b - x for x, b, _ in rows], [-s for *_, s in rows]
    alone = Problem(begin, end, size, [1] * len(rows), [FREE] * len(rows))
    assert solve(alone, "interval_move").arena_bytes == interval_move_arena(begin, end, size)


def test_interval_move_raises_what_is_in_the_way_as_far_as_there_is_slack() -> None:
    """Chunk 1 lifts chunk 0 to bytes 5 to 8; chunk 2 alone makes the peak of 10; chunk 3 lies at bytes 0 to 3.

    Chunk 4 of 4 bytes conflicts with chunks 0 and 3. Between them it has 2 bytes, above them 2 bytes. It takes the
    former, since chunk 0 can give way by 2 bytes.
    """
    begin, end, size = [0, 0, 20, 9, 9], [10, 9, 26, 14, 12], [3, 5, 10, 3, 4]
    plan = solve(Problem(begin, end, size, [1] * 5, [FREE] * 5), "interval_move")
    assert plan.offset.tolist() == [7, 0, 0, 0, 3]
    assert plan.arena_bytes == plan.lower_bound == 10


def test_interval_move_prefers_the_tightest_gap_that_fits() -> None:
    """Chunk 0 lies at bytes 5 to 8 below a peak of 12; chunk 3 of 4 bytes fits below it, but more tightly above."""
    problem = Problem([0, 0, 20, 9], [10, 9, 26, 12], [3, 5, 12, 4], [1] * 4, [FREE] * 4)
    assert solve(problem, "interval_move").offset.tolist() == [5, 0, 0, 8]


@given(st.integers(0, 2**32))
@settings(max_examples=10)
def test_interval_move_rounds_sizes_up_where_all_have_one_alignment(seed: int) -> None:
    """MegEngine aligns sizes first, so aligned chunks get the plan of chunks that have those sizes."""
    aligned = megengine_problem(seed, 60, 16)
    rounded = np.where(np.isin(np.arange(60), aligned.src), aligned.size, -(-aligned.size // 16) * 16)
    columns = (aligned.pinned, aligned.src, aligned.dest, aligned.overwrite_offset)
    whole = Problem(aligned.begin, aligned.end, rounded, np.ones(60), *columns)
    units = units_of(whole)
    assume(len(set(zip(units.begin, units.end, units.size, strict=True))) == len(units.ids))
    first, second = (STRATEGIES["interval_move"].solve(p, SolverOptions()).offset for p in (aligned, whole))
    assert first.tolist() == second.tolist()
    assert arena_bytes(aligned, first) <= arena_bytes(whole, second)
