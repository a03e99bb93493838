import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.check.offsets import check
from allocator.kernels.mode import KernelMode
from allocator.problem import FREE, NO_CAPACITY, Column, Conflicts, Problem, column
from allocator.solvers.base import arena_bytes
from allocator.solvers.placing.covers import Covers
from allocator.solvers.placing.neighbours import Neighbours
from allocator.solvers.placing.placement import GapSearchMaker, Placer
from allocator.solvers.placing.sweep import Sweep
from tests.helpers.allocator.strategies import problems

SEARCHES = (Neighbours.of, Sweep.of, Covers.of)


def searches_for(problem: Problem) -> tuple[GapSearchMaker, ...]:
    """Returns the searches that support the problem."""
    return SEARCHES if problem.conflicts is None else SEARCHES[:1]


def conflict(problem: Problem, one: int, other: int) -> bool:
    """Returns whether the two chunks conflict."""
    if not problem.size[one] or not problem.size[other]:
        return False
    if problem.conflicts is None:
        return bool(problem.begin[one] < problem.end[other] and problem.begin[other] < problem.end[one])
    pairs = set(zip(problem.conflicts.one.tolist(), problem.conflicts.other.tolist(), strict=True))
    return (one, other) in pairs or (other, one) in pairs


def placed_by_trying(problem: Problem, order: list[int]) -> list[int]:
    """Places by best gap, offset by offset: a gap is a run of offsets at which the chain has no conflict."""
    result = problem.chains
    root, inner = result.root.tolist(), result.offset.tolist()
    offset: dict[int, int] = {}
    highest = int(problem.size.sum() + problem.alignment.sum() + problem.pinned.max(initial=0)) + 1

    def is_free(chunk: int, at: int) -> bool:
        placed = (r for r in offset if root[r] != root[chunk] and conflict(problem, chunk, r))
        return all(at + problem.size[chunk] <= offset[r] or offset[r] + problem.size[r] <= at for r in placed)

    for r in sorted(order, key=lambda r: problem.pinned[r] == FREE):
        members = [c for c in range(len(problem)) if root[c] == r and problem.size[c]]
        at = int(problem.pinned[r]) if problem.pinned[r] != FREE else -1
        if at < 0:
            runs: list[list[int]] = []
            for tried in range(highest):
                if all(is_free(c, tried + inner[c]) for c in members):
                    if not runs or runs[-1][-1] != tried - 1:
                        runs.append([])
                    runs[-1].append(tried)
            starts = [-(-run[0] // int(problem.alignment[r])) * int(problem.alignment[r]) for run in runs]
            spare = [run[-1] - start for run, start in zip(runs, starts, strict=True)]
            closed = [k for k in range(len(runs) - 1) if spare[k] >= 0]
            at = starts[min(closed, key=lambda k: (spare[k], k)) if closed else -1]
        offset |= {c: at + inner[c] for c in members}
    return [offset.get(c, 0) for c in range(len(problem))]


@st.composite
def ordered(draw: st.DrawFn, max_chunks: int = 10) -> tuple[Problem, list[int]]:
    """Draws a problem, with conflicts or without, some pinned chunks without conflicts, and an order of its roots."""
    problem = draw(problems(max_chunks=max_chunks, max_size=6))
    root = problem.chains.root
    pairs = [(a, b) for a in range(len(problem)) for b in range(a) if root[a] != root[b]]
    pairs = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    conflicts = draw(st.sampled_from([None, Conflicts([a for a, _ in pairs], [b for _, b in pairs])]))
    order = draw(st.permutations([r for r in range(len(problem)) if root[r] == r and problem.size[r]]))
    pinned = np.full(len(problem), FREE)
    for step, r in enumerate(order[: draw(st.integers(0, 2))]):
        pinned[r] = step * 64
    columns = (problem.begin, problem.end, problem.size, problem.alignment, pinned)
    overwrites = (problem.src, problem.dest, problem.overwrite_offset)
    return Problem(*columns, *overwrites, conflicts), draw(st.permutations(order))


def offsets_of(problem: Problem, order: list[int], is_plain: bool, search: GapSearchMaker) -> Column:
    placer = Placer.by(search, problem, KernelMode(is_plain))
    return placer.offsets(placer.place(placer.bodies(column(order))))


@given(ordered(), st.data())
@settings(max_examples=60)
def test_a_placer_takes_the_gap_that_trying_every_offset_finds(
    drawn: tuple[Problem, list[int]], data: st.DataObject
) -> None:
    problem, order = drawn
    search = data.draw(st.sampled_from(searches_for(problem)))
    offsets = offsets_of(problem, order, True, search)
    assert offsets.tolist() == placed_by_trying(problem, order)
    assert check(problem, offsets, arena_bytes(problem, offsets)) is None


@st.composite
def cliques(draw: st.DrawFn) -> tuple[Problem, list[int]]:
    """Draws many chunks that live at once, of one byte to many, so that offsets have several digits."""
    count = draw(st.integers(1, 120))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    begin, size = random.integers(0, 40, count), 2 ** random.integers(0, 30, count) + random.integers(0, 3, count)
    problem = Problem(begin, begin + random.integers(1, 40, count), size, np.ones(count), np.full(count, FREE))
    return problem, random.permutation(count).tolist()


@pytest.mark.slow
@given(cliques() | ordered(max_chunks=40))
@settings(max_examples=30)
def test_conflict_searches_place_alike_compiled_and_plain(drawn: tuple[Problem, list[int]]) -> None:
    wanted = offsets_of(*drawn, True, Neighbours.of)
    for search in searches_for(drawn[0]):
        assert np.array_equal(offsets_of(*drawn, True, search), wanted)
        assert np.array_equal(offsets_of(*drawn, False, search), wanted)


@pytest.mark.slow
@given(ordered(max_chunks=20), st.booleans(), st.data())
@settings(max_examples=30)
def test_placing_the_rest_of_an_order_equals_placing_all_of_it(
    drawn: tuple[Problem, list[int]], is_plain: bool, data: st.DataObject
) -> None:
    search = data.draw(st.sampled_from(searches_for(drawn[0])))
    placer = Placer.by(search, drawn[0], KernelMode(is_plain))
    order = placer.bodies(column(drawn[1]))
    (numbers,), (offset,) = placer.mode.numbers(np.array(order)), placer.mode.zeros(len(placer))
    arena = placer.place_rest(numbers, 0, NO_CAPACITY, offset)
    whole = np.array(offset)
    assert arena == int((whole + placer.size).max(initial=0))
    for kept in (data.draw(st.integers(0, len(order))), len(order)):
        assert placer.place_rest(numbers, kept, NO_CAPACITY, offset) == arena
        assert np.array(offset).tolist() == whole.tolist()
    assert placer.place_rest(numbers, 0, arena, offset) == arena
    assert np.array(offset).tolist() == whole.tolist()
    if arena:
        assert placer.place_rest(numbers, 0, arena - 1, offset) == arena


def last_of(sizes: list[int], alignments: list[int], pinned: list[int], search: GapSearchMaker) -> int:
    """Returns the offset of the last chunk, when all live at once and the others are pinned."""
    count = len(sizes)
    placer = Placer.by(search, Problem([0] * count, [1] * count, sizes, alignments, pinned))
    return int(placer.place(np.arange(count))[-1])


@pytest.mark.parametrize("search", SEARCHES)
def test_placement_takes_the_tightest_gap_and_of_equals_the_lowest(search: GapSearchMaker) -> None:
    """Gaps [0, 4), [8, 11), [15, 18) and [22, 25)."""
    pinned = [4, 11, 18, 25, FREE]
    assert last_of([4, 4, 4, 4, 3], [1] * 5, pinned, search) == 8
    assert last_of([4, 4, 4, 4, 4], [1] * 5, pinned, search) == 0
    assert last_of([4, 4, 4, 4, 5], [1] * 5, pinned, search) == 29


@pytest.mark.parametrize("search", SEARCHES)
def test_alignment_padding_does_not_count_as_room_in_a_gap(search: GapSearchMaker) -> None:
    """Gap [3, 8) has five bytes, but a chunk at a multiple of 4 has four there, and eight in gap [12, 20)."""
    assert last_of([3, 4, 4, 4], [1, 4, 4, 4], [0, 8, 20, FREE], search) == 4
    assert last_of([3, 4, 4, 5], [1, 4, 4, 4], [0, 8, 20, FREE], search) == 12
