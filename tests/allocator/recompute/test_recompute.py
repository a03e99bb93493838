"""Schedules in which steps run again: random work, against the planner's results."""

from collections.abc import Sequence

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.bounds import lower_bound
from allocator.derive.chunks import derive, to_problem
from allocator.recompute.keeps import keep
from allocator.recompute.search import cheapest, measured, smallest
from allocator.recompute.segments import drops
from allocator.recompute.sequence import alive, extra_cost, least_bytes, without_useless
from allocator.recompute.walk import NO_END, Manner, walk
from allocator.recompute.work import NEVER, RecomputeProblem, work_of
from allocator.steps import OverwriteForward, Program, Step
from tests.helpers.allocator.recompute_works import chain, works

MANNERS = (Manner(), Manner(0.0, 0.5))


def program_of(program: Program, sequence: Sequence[int]) -> Program:
    """Returns the same steps with values of their own for each run, as the planner sees them."""
    newest: dict[int, int] = {}
    sizes, steps = list[int](), []
    for i in sequence:
        step = program.steps[i]
        reads = tuple(newest[v] for v in step.reads)
        sources = dict(newest)
        for v in step.writes:
            newest[v] = len(sizes)
            sizes.append(program.sizes[v])
        overwrites = tuple(evolve(o, out=newest[o.out], src=sources[o.src]) for o in step.overwrites)
        steps.append(Step(reads, tuple(newest[v] for v in step.writes), overwrites=overwrites))
    return Program(tuple(steps), sizes)


def check_runnable(work: RecomputeProblem, sequence: Sequence[int]) -> None:
    """Checks that every step runs, after the writers of its inputs, and only those twice that may."""
    assert list(dict.fromkeys(sorted(sequence))) == list(range(len(work)))
    written = set[int]()
    ran = set[int]()
    for step in sequence:
        assert written.issuperset(work.reads[step])
        assert step not in ran or work.until[step] != NEVER
        written.update(work.writes[step])
        ran.add(step)


@settings(max_examples=60, deadline=None)
@given(works(), st.integers(0, 100), st.sampled_from(MANNERS))
def test_recompute_schedules_can_run_and_need_the_bytes_that_the_planner_computes(
    given_work: tuple[RecomputeProblem, Program], percent: int, manner: Manner
) -> None:
    work, program = given_work
    least, plain = least_bytes(work), int(alive(work, range(len(work))).max())
    budget = least + (plain - least) * percent // 100
    walked = walk(work, budget, manner=manner)
    check_runnable(work, walked)
    peak = int(alive(work, walked).max())
    kept = keep(work, walked, max(budget, peak))
    check_runnable(work, kept)
    assert alive(work, kept).max() <= max(budget, peak)
    assert extra_cost(work, kept) <= extra_cost(work, walked)
    for sequence in (walked, kept):
        bound = lower_bound(to_problem(derive(program_of(program, sequence)), alignment=1))
        assert bound == alive(work, sequence).max() >= least


@settings(max_examples=30, deadline=None)
@given(works(), st.integers(0, 100))
def test_recompute_search_is_deterministic_and_keeps_a_budget_or_reports_its_best_peak(
    given_work: tuple[RecomputeProblem, Program], percent: int
) -> None:
    work, _ = given_work
    plain = measured(work, range(len(work)))
    schedule = cheapest(work, plain.peak * percent // 100)
    again = cheapest(work, plain.peak * percent // 100)
    assert (list(schedule.sequence), schedule.peak, schedule.cost) == (list(again.sequence), again.peak, again.cost)
    check_runnable(work, schedule.sequence)
    assert least_bytes(work) <= schedule.peak == alive(work, schedule.sequence).max() <= plain.peak
    assert least_bytes(work) <= smallest(work).peak <= plain.peak


@given(works())
def test_recompute_runs_nothing_again_where_the_budget_holds_anyway(
    given_work: tuple[RecomputeProblem, Program],
) -> None:
    work, _ = given_work
    plain = measured(work, range(len(work)))
    assert cheapest(work, plain.peak).cost == 0
    assert keep(work, walk(work, plain.peak), plain.peak) == list(range(len(work)))


@pytest.mark.parametrize("layers", [16, 64, 144])
def test_a_chain_needs_bytes_as_the_square_root_of_its_length_for_one_more_forward_pass(layers: int) -> None:
    """Chen et al. 2016, section 4.1: 2 sqrt(n) values, at the cost of a forward pass."""
    work = chain(layers)
    assert alive(work, range(len(work))).max() >= 64 * layers
    schedule = cheapest(work, int(64 * (2 * layers**0.5 + 4)))
    assert schedule.peak <= 64 * (2 * layers**0.5 + 4)
    assert schedule.cost <= 10 * layers * 1.05


def test_segments_alone_need_bytes_as_the_square_root_and_run_no_step_thrice() -> None:
    work = chain(100)
    sequences = [walk(work, NO_END, drop=drop) for drop in drops(work)]
    peaks = [int(alive(work, s).max()) // 64 for s in sequences]
    assert min(peaks) <= 2 * 10 + 5
    assert all(extra_cost(work, s) <= 10 * 100 and max(map(s.count, set(s))) <= 2 for s in sequences)


def test_recompute_leaves_out_runs_whose_values_are_unread_until_they_run_again() -> None:
    program = Program((Step(writes=(0,)), Step((0,), (1,)), Step((0,), (2,)), Step(reads=(1, 2))), [64] * 3)
    work = work_of(program, [0, 1, 1, 0], ())
    assert without_useless(work, [0, 1, 2, 1, 3]) == [0, 2, 1, 3]


def test_recompute_runs_readers_of_a_parameter_only_before_its_update() -> None:
    """Step 1 computes from the parameter 0; step 3 writes over it; step 4 reads what step 1 wrote."""
    update = Step((0, 2), (3,), overwrites=(OverwriteForward(3, 0, required=True),))
    steps = (Step(writes=(0,)), Step((0,), (1,)), Step((1,), (2,)), update, Step((1, 3), (4,)), Step(reads=(3, 4)))
    work = work_of(Program(steps, [64] * 5), [0, 1, 1, 1, 1, 0], ())
    assert work.until == (NEVER, 3, 6, NEVER, 6, NEVER)
    for budget in range(0, 400, 32):
        assert walk(work, budget) == [0, 1, 2, 3, 4, 5]


def test_bytes_of_a_parameter_count_once_though_all_its_versions_are_touched() -> None:
    """Parameter 0 becomes 2 and then 3, in its own bytes; beside it there is only what step 1 computes."""
    updates = [Step((a, 1), (b,), overwrites=(OverwriteForward(b, a, required=True),)) for a, b in ((0, 2), (2, 3))]
    program = Program((Step(writes=(0,)), Step((0,), (1,)), *updates, Step(reads=(3,))), [640, 64, 640, 640])
    work = work_of(program, [0, 1, 1, 1, 0], ())
    assert work.resident == {0} and work.resident_overwriters == {2, 3}
    assert least_bytes(work) == smallest(work).peak == 704
