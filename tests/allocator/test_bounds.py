import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.bounds import lower_bound, naive_bytes, peak_tick, profile, proved_bound
from allocator.check.bound import check_bound
from allocator.derive.chunks import derive, to_problem
from allocator.derive.refcount import refcount_peak
from allocator.problem import FREE, Bound, Conflicts, Problem, Witness
from allocator.solvers import EXHAUSTED, solve
from allocator.steps import OverwriteForward, Program, Step, ViewForward
from tests.helpers.allocator.brute_force import live_bytes, minimal_peak
from tests.helpers.allocator.random_problems import relabelled
from tests.helpers.allocator.strategies import problems, programs
from tests.helpers.allocator.usage_records import paper_example

SEARCHED = ("places of", "pinned among", "all orders of")


def free(begin: list[int], end: list[int], size: list[int], alignment: list[int]) -> Problem:
    return Problem(begin, end, size, alignment, [FREE] * len(begin))


@settings(max_examples=120)
@given(problems(max_chunks=6, max_size=5, horizon=4, alignments=(1, 2, 3, 8), pins=True, conflicts=True))
def test_no_plan_is_below_the_bound(problem: Problem) -> None:
    assert lower_bound(problem) <= minimal_peak(problem)


@given(problems(pins=True, conflicts=True), st.data())
def test_the_numbers_of_chunks_do_not_matter_to_the_bound(problem: Problem, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(problem))))
    assert lower_bound(relabelled(problem, order)) == lower_bound(problem)


@given(problems(alignments=(1,)))
def test_the_bound_is_not_below_the_largest_number_of_live_bytes(problem: Problem) -> None:
    horizon = int(problem.end.max(initial=0))
    live = [live_bytes(problem, tick) for tick in range(horizon)]
    assert profile(problem).tolist() == live
    assert lower_bound(problem) >= max(live, default=0)
    assert peak_tick(problem) == (int(np.argmax(live)) if any(live) else 0)


def test_lower_bound_of_the_paper_example_is_met() -> None:
    assert lower_bound(paper_example()) == 124
    assert naive_bytes(paper_example()) == 234
    assert peak_tick(paper_example()) == 5


def test_alignment_raises_the_bound_but_the_topmost_end_is_not_aligned() -> None:
    three = Problem([0, 0, 0], [1, 1, 1], [10, 60, 70], [64] * 3, [FREE] * 3)
    assert lower_bound(three) == minimal_peak(three) == 64 + 64 + 70


def test_overwriters_may_share_a_cell_of_the_alignment() -> None:
    """In tick 4 chunk 1 has byte 3 and chunk 3 has bytes 1 and 2, both left over from larger, aligned chunks."""
    begin, end, size = [0, 1, 2, 3], [2, 6, 4, 6], [4, 1, 3, 2]
    problem = Problem(begin, end, size, [4, 1, 4, 1], [FREE] * 4, [1, 3], [0, 2], [3, 1])
    assert lower_bound(problem) == minimal_peak(problem) == 4


def test_aligned_chunks_waste_bytes_that_others_are_too_large_for() -> None:
    """13 bytes are alive. Chunks 0 and 1 begin 8 bytes apart, and chunk 2 of 8 bytes keeps them 16 bytes apart."""
    small = free([0, 0, 0], [1, 1, 1], [2, 3, 8], [8, 8, 1])
    assert lower_bound(small) == minimal_peak(small) == 8 + 8 + 2


def test_less_aligned_chunks_fill_cells_of_their_own() -> None:
    """27 bytes are alive. The bound that counts in cells of 8 bytes must not count all of chunk 2."""
    problem = free([0, 0, 0, 0], [1, 1, 1, 1], [2, 8, 9, 8], [8, 8, 1, 8])
    assert lower_bound(problem) == minimal_peak(problem) == 27


def test_a_small_clique_is_stacked_in_all_orders() -> None:
    """14 bytes are alive. Of the 5 bytes between chunks 0 and 1 either of the others takes 4, so one byte is lost."""
    small = free([0] * 4, [1] * 4, [3, 3, 4, 4], [8, 8, 1, 1])
    assert lower_bound(small) == minimal_peak(small) == 8 + 3 + 4


def test_bytes_below_and_above_an_overwriter_are_too_few_for_another() -> None:
    """Chunk 1 overwrites the byte in the middle of 5; chunk 2 has 3 bytes, and either side has room for 2."""
    problem = Problem([0, 3, 4], [4, 6, 6], [5, 1, 3], [1] * 3, [FREE] * 3, [1], [0], [2])
    assert lower_bound(problem) == minimal_peak(problem) == 6


def test_overwriters_that_begin_elsewhere_waste_bytes() -> None:
    """12 bytes are alive in tick 2. Chunk 1 begins 2 bytes behind an edge of 8, and ends 2 below one."""
    problem = Problem([0, 1, 2], [2, 4, 4], [8, 4, 8], [8, 1, 8], [FREE] * 3, [1], [0], [2])
    assert lower_bound(problem) == minimal_peak(problem) == 16


def test_bytes_of_its_chain_lie_below_and_above_an_overwriter() -> None:
    """Just the overwriters 2 and 3 conflict, each in the middle of a chunk of 8 bytes."""
    columns = ([0, 0, 1, 1], [2, 2, 3, 3], [8, 8, 2, 2], [1] * 4, [FREE] * 4, [2, 3], [0, 1], [3, 3])
    problem = Problem(*columns, Conflicts([2], [3]))
    assert lower_bound(problem) == minimal_peak(problem) == 3 + 2 + 2 + 3


def test_a_slot_between_pinned_chunks_is_filled_by_some_chunks_only() -> None:
    """17 bytes are alive. Of three chunks of 3 bytes two fit below byte 8, so one lies above byte 16."""
    problem = Problem([0] * 4, [1] * 4, [3, 3, 3, 8], [1] * 4, [FREE, FREE, FREE, 8])
    assert lower_bound(problem) == minimal_peak(problem) == 16 + 3


def test_a_slot_between_pinned_chunks_is_lost_to_a_chunk_that_conflicts_with_others_there() -> None:
    """Chunk 0 would fit below chunk 1, but later chunk 2 lies there."""
    problem = Problem([0, 0, 1], [2, 1, 2], [4, 4, 1], [1] * 3, [FREE, 5, 3])
    assert lower_bound(problem) == minimal_peak(problem) == 9 + 4


def test_a_slot_between_pinned_chunks_is_counted_in_cells() -> None:
    """Chunks 0 and 1 have 8 bytes, as the slot has, but do not fit there: the second would begin at byte 8."""
    problem = Problem([0] * 3, [1] * 3, [5, 3, 2], [8, 8, 1], [FREE, FREE, 8])
    assert lower_bound(problem) == minimal_peak(problem) == 16 + 3


def test_the_heaviest_clique_of_conflicts_is_a_bound() -> None:
    """Chunks 0, 1 and 2 conflict; 0 and 1 conflict with a larger one each, too."""
    pairs = Conflicts([0, 0, 1, 0, 1], [1, 2, 2, 3, 4])
    problem = Problem([0] * 5, [1] * 5, [4, 4, 4, 5, 5], [1] * 5, [FREE] * 5, conflicts=pairs)
    assert lower_bound(problem) == minimal_peak(problem) == 12


def test_a_pinned_end_is_a_bound() -> None:
    assert lower_bound(Problem([0], [1], [8], [1], [100])) == 108


def test_the_bytes_of_an_overwrite_count_once() -> None:
    problem = Problem([0, 2], [3, 5], [8, 8], [1, 1], [FREE, FREE], [1], [0], [0])
    assert profile(problem).tolist() == [8, 8, 8, 8, 8]


def test_reference_counting_needs_both_sides_of_an_overwrite_at_once() -> None:
    step = Step(reads=(1,), writes=(2,), overwrites=(OverwriteForward(2, 1),))
    program = Program((Step(writes=(0,)), Step(views=(ViewForward(1, 0),)), step, Step(reads=(2,))), (8, 8, 8))
    assert refcount_peak(program) == 16
    assert lower_bound(to_problem(derive(program), alignment=1)) == 8


@given(programs())
def test_reference_counting_needs_no_less_than_the_bound_of_a_plan(program: Program) -> None:
    assert refcount_peak(program) >= lower_bound(to_problem(derive(program), alignment=1))
    assert refcount_peak(program) == lower_bound(to_problem(derive(program, overwrite=False), alignment=1))


def test_lower_bound_of_no_chunks_is_zero() -> None:
    empty = Problem([], [], [], [], [])
    assert (lower_bound(empty), naive_bytes(empty), peak_tick(empty), len(profile(empty))) == (0, 0, 0, 0)
    assert refcount_peak(Program((), ())) == 0


@pytest.mark.parametrize(
    ("problem", "bound"),
    [
        (free([0, 1], [2, 3], [4, 4], [1, 1]), Bound(8, "bytes alive in tick 1", Witness(1))),
        (Problem([0], [1], [4], [1], [12]), Bound(16, "end of the highest pinned chunk", Witness(chunks=(0,)))),
        (
            free([0, 0], [1, 1], [5, 5], [8, 8]),
            Bound(13, "sizes and alignment of 2 chunks that are alive at once", Witness(chunks=(0, 1), cell=8)),
        ),
        (
            Problem([0] * 4, [1] * 4, [3, 3, 3, 8], [1] * 4, [FREE, FREE, FREE, 8]),
            Bound(19, "pinned among 4 chunks that are alive at once"),
        ),
        (
            Problem([0, 9], [1, 10], [4, 4], [1, 1], [FREE, FREE], conflicts=Conflicts([0], [1])),
            Bound(8, "sizes and alignment of 2 chunks of which each two conflict", Witness(chunks=(0, 1))),
        ),
        (free([0], [1], [0], [1]), Bound(0, "no chunk has bytes")),
    ],
)
def test_a_bound_names_its_proof(problem: Problem, bound: Bound) -> None:
    assert proved_bound(problem) == bound
    assert solve(problem).bound == bound


@given(problems(max_chunks=7, max_size=5, horizon=5, pins=True, conflicts=True))
def test_a_bound_that_a_search_proved_names_the_search(problem: Problem) -> None:
    plan = solve(problem, "exact", nodes=2_000)
    assert (plan.bound.reason == EXHAUSTED) == (plan.lower_bound > lower_bound(problem))
    assert not plan.bound.witness or plan.bound == proved_bound(problem)


@settings(max_examples=120)
@given(problems(max_chunks=8, alignments=(1, 2, 3, 8), pins=True, conflicts=True))
def test_the_judge_adds_up_what_a_bound_names(problem: Problem) -> None:
    bound = proved_bound(problem)
    assert check_bound(problem, bound) is None
    assert bound.witness or bound.nbytes == 0 or bound.reason.startswith(SEARCHED)


@given(problems(alignments=(1,)))
def test_without_alignment_the_load_is_the_witness(problem: Problem) -> None:
    bound = proved_bound(problem)
    if bound.nbytes == max(profile(problem), default=0) > 0:
        assert bound.witness == Witness(peak_tick(problem))
