"""Copies that an engine makes beside calls: what they cost, and that no fault of theirs passes the judges."""

import pickle
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
import pytest
from attrs import evolve

import engine
from engine import ExecutionPlan
from engine.check import check_data_flow, check_races
from engine.executor.arenas import new_arena
from engine.executor.parallel import ParallelExecutor
from engine.lower.copied import Copied, with_copies
from engine.lower.schedule import in_sequence
from engine.system.timing import Stopwatch
from engine.text.errors import DataFlowError, OtherPlanError, PlanRefusedError, RaceError
from tests.helpers.graphs.unplanned_run import assert_same, random_feeds, run_unplanned
from tests.helpers.graphs.waiting import BOARD, drawn_waiting, waiting, with_engine
from tests.helpers.onnx.onnx_writer import to_onnx
from tests.helpers.ops.delayed_kernels import delay

BESIDE: dict[str, Any] = {"memories": with_engine(*BOARD), "optimise": 0, "nodes": 50}


@cache
def drawn(seed: int, fast: str = "3KiB") -> ExecutionPlan:
    """Returns the plan of a drawn network in which an engine makes copies."""
    memories = with_engine(f"fast={fast},10GB/s", "slow=64KiB,1GB/s")
    plan = engine.make_plan(drawn_waiting(seed), **{**BESIDE, "memories": memories})
    assert plan.lowered.engine_copies
    return plan


def test_what_calls_wait_is_the_part_of_the_copies_that_no_call_hides() -> None:
    (without,) = engine.make_plan(waiting(), **{**BESIDE, "memories": BOARD}).report().transfers
    plan = engine.make_plan(waiting(), **BESIDE)
    (transfers,) = plan.report().transfers
    assert transfers.copy_seconds == pytest.approx(2 * 1024 * (1 / 10e9 + 1 / 1e9))
    assert transfers.waiting_seconds == pytest.approx(transfers.copy_seconds / 2)
    assert transfers.seconds == pytest.approx(without.seconds - transfers.copy_seconds / 2)
    assert (without.copy_seconds, without.waiting_seconds) == (0, 0)
    assert "copies take 2.253 us beside calls, which wait 1.126 us for them" in str(plan.report())


def test_one_memory_without_the_engine_is_as_none_with_it() -> None:
    plain = engine.make_plan(waiting(), **{**BESIDE, "memories": BOARD})
    one = engine.make_plan(waiting(), **{**BESIDE, "memories": [BESIDE["memories"][0], BOARD[1]]})
    assert one.moved == plain.moved and one.places == plain.places and not one.lowered.engine_copies
    alone = engine.make_plan(waiting(), memories=with_engine("only=64KiB,1GB/s"), optimise=0)
    assert alone.places == engine.make_plan(waiting(), memories=["only=64KiB,1GB/s"], optimise=0).places


@pytest.mark.parametrize("seed", [10, 12])
def test_copies_run_when_the_schedule_lets_them_and_never_cost_more_than_in_turn(seed: int) -> None:
    plan = drawn(seed)
    (transfers,), times = plan.report().transfers, plan.copy_times
    (without,) = (
        engine.make_plan(drawn_waiting(seed), **{**BESIDE, "memories": ["fast=3KiB,10GB/s", "slow=64KiB,1GB/s"]})
        .report()
        .transfers
    )
    assert transfers.seconds <= without.seconds and transfers.waiting_seconds < transfers.copy_seconds
    assert transfers.lower_bound <= transfers.seconds
    begin, end = fixpoint(plan)
    for copied in times.copies:
        assert (copied.begin, copied.end) == pytest.approx((begin[copied.tick], end[copied.tick]))
    calls = [end[t] - begin[t] for t in begin if t not in {c.tick for c in times.copies}]
    assert times.waiting == pytest.approx(max(end.values()) - sum(calls))


def fixpoint(plan: ExecutionPlan) -> tuple[dict[int, float], dict[int, float]]:
    """Returns begin and end of each call and copy, moved back from 0 until nothing overlaps that waits."""
    (memories,) = plan.memories
    lowered, row_of = plan.lowered, memories.contents.row_of
    takes = dict[int, float]()
    for call in lowered.calls:
        moved: dict[int, list[int]] = {row_of[v]: [0, 0] for v in (*call.inputs, *call.outputs, *call.workspace)}
        read, written = (dict.fromkeys((*values, *call.workspace)) for values in (call.inputs, call.outputs))
        for way, values in enumerate((read, written)):
            for value in values:
                moved[row_of[value]][way] += lowered.values[value].spec.nbytes
        takes[call.tick] = sum(op.schema.cost(op.signature).flops for op in call.operators) / 1e10
        for row, (was_read, was_written) in moved.items():
            memory = memories.memories[int(memories.assigned.memory[row])]
            takes[call.tick] += was_read / memory.read_bandwidth + was_written / memory.write_bandwidth
    begin, schedule, is_changed = dict.fromkeys(takes, 0.0), plan.schedule, True
    while is_changed:
        is_changed = False
        for before, after in zip(schedule.tick[schedule.before], schedule.tick[schedule.after], strict=True):
            least = begin[int(before)] + takes[int(before)]
            if begin[int(after)] < least:
                begin[int(after)], is_changed = least, True
    return begin, {tick: begin[tick] + takes[tick] for tick in takes}


def test_a_plan_with_an_engine_is_saved_and_followed(tmp_path: Path) -> None:
    plain, planned = tmp_path / "plain.onnx", tmp_path / "planned.onnx"
    graph = drawn_waiting(12)
    onnx.save(to_onnx(graph), plain)
    options = {**BESIDE, "memories": with_engine("fast=4KiB,10GB/s", "slow=64KiB,1GB/s")}
    plan = engine.make_plan(engine.load_onnx(plain), **options)
    assert any(copied.until > copied.after for moved in plan.moved for copied in moved.copies)
    engine.save_plan(plan, plain, planned)
    exe = engine.compile(engine.load_onnx(planned), embedded=engine.load_plan(planned, required=True), **options)
    followed = pickle.loads(pickle.dumps(exe))
    for one in (exe, followed):
        assert one.plan.is_followed and one.plan.moved == plan.moved and one.plan.copy_times == plan.copy_times
        (array,) = one.run(random_feeds(graph)).values()
        (wanted,) = run_unplanned(graph, random_feeds(graph)).values()
        assert array.tobytes() == wanted.tobytes()
    proto = onnx.load(planned)
    (entry,) = (p for p in proto.metadata_props if p.key == "pkg.arenaplan.moves")
    entry.value = entry.value.replace("]", ',"x"]', 1)
    onnx.save(proto, planned)
    with pytest.raises(PlanRefusedError, match=r"'pkg\.arenaplan\.moves'"):
        engine.load_plan(planned)


@pytest.mark.parametrize("seed", [10, 12])
def test_a_plan_with_an_engine_gives_the_same_bits(seed: int) -> None:
    plan, feeds = drawn(seed), random_feeds(drawn_waiting(seed))
    wanted = run_unplanned(plan.graph, feeds)
    for debug in ("", "poison"):
        assert_same(plan.executable(debug=debug).run(feeds), wanted)


@pytest.mark.parametrize("seed", [10, 12])
def test_copies_run_on_a_thread_of_their_own_when_the_schedule_lets_them(seed: int) -> None:
    plan = drawn(seed)
    executor, feeds = ParallelExecutor(plan, new_arena(plan), 2), random_feeds(plan.graph)
    wanted, copies = run_unplanned(plan.graph, feeds), {copied.tick for copied in plan.copy_times.copies}
    delay(executor, Random(seed))
    for _ in range(5):
        executor.arena.fill(0xA5)
        watch = Stopwatch()
        assert_same(executor.run_timed(feeds, {}, True, watch), wanted)
        at = {timing.tick: timing for timing in watch.timings()}
        assert {at[tick].thread for tick in at.keys() - copies} == {0} and {at[tick].thread for tick in copies} <= {
            0,
            1,
        }
        schedule = plan.schedule
        for before, after in zip(schedule.tick[schedule.before], schedule.tick[schedule.after], strict=True):
            assert at[int(before)].end <= at[int(after)].begin
        assert_same(executor.run(feeds, {}, True), wanted)


@pytest.mark.parametrize("memories", [BOARD, tuple(with_engine(*BOARD))], ids=["in turn", "beside"])
def test_tensors_move_where_operators_run_at_once(memories: tuple[str, ...]) -> None:
    graph = drawn_waiting(12)
    exe = engine.compile(graph, parallel="edges", threads=3, **{**BESIDE, "memories": memories})
    assert isinstance(exe.executor, ParallelExecutor) and exe.report().transfers[0].moves
    wanted = run_unplanned(graph, random_feeds(graph))
    delay(exe.executor, Random(1))
    for _ in range(5):
        assert_same(exe.run(random_feeds(graph)), wanted)
    copies = [copied.tick for copied in exe.plan.copy_times.copies if copied.is_beside]
    assert bool(copies) == (memories is not BOARD)
    waits = set(
        zip(
            *(exe.plan.schedule.tick[c].tolist() for c in (exe.plan.schedule.before, exe.plan.schedule.after)),
            strict=True,
        )
    )
    assert waits.issuperset(pairwise(copies))
    followed = pickle.loads(pickle.dumps(exe))
    assert followed.plan.is_followed and followed.plan.moved == exe.plan.moved


@pytest.mark.parametrize("seed", [7, 9])
def test_what_is_copied_up_to_the_tick_of_a_view_makes_no_call_wait_for_itself(seed: int) -> None:
    exe = engine.compile(drawn_waiting(seed), parallel="edges", threads=2, **BESIDE)
    lowered = exe.plan.lowered
    assert not {call.tick for call in lowered.calls}.issuperset(lowered.engine_copies.values())
    feeds = random_feeds(drawn_waiting(seed))
    assert_same(exe.run(feeds), run_unplanned(drawn_waiting(seed), feeds))


def _without(plan: ExecutionPlan, edge: int) -> ExecutionPlan:
    schedule = plan.schedule
    before, after = (np.delete(column, edge) for column in (schedule.before, schedule.after))
    return evolve(plan, schedule=evolve(schedule, before=before, after=after))


def _between(plan: ExecutionPlan) -> Iterator[tuple[int, bool, str]]:
    """Yields each edge between calls and copies: its number, whether it ends in a copy, and what the two share."""
    copies = {copied.tick for copied in plan.copy_times.copies}
    calls, ticks = {call.tick: call for call in plan.lowered.calls}, plan.schedule.tick.tolist()
    for edge, (b, a) in enumerate(zip(plan.schedule.before.tolist(), plan.schedule.after.tolist(), strict=True)):
        before, after = calls[ticks[b]], calls[ticks[a]]
        if (before.tick in copies) != (after.tick in copies):
            yield edge, after.tick in copies, "data" if set(before.outputs) & set(after.inputs) else "bytes"


def test_each_kind_of_wait_that_is_left_out_is_a_race() -> None:
    """A copy that comes too late, begins too early, or whose source is overwritten while it is under way."""
    caught = dict[tuple[bool, str], int]()
    for plan in (drawn(10, "2KiB"), drawn(12)):
        for edge, is_copy, kind in _between(plan):
            try:
                check_races(_without(plan, edge))
            except RaceError as error:
                assert "/copied" in str(error) and "neither waits for the other" in str(error)
                caught[is_copy, kind] = caught.get((is_copy, kind), 0) + 1
    assert caught.keys() == {(False, "data"), (True, "data"), (False, "bytes"), (True, "bytes")}


def test_a_chunk_that_is_read_from_the_memory_that_it_left_is_no_data() -> None:
    plan = engine.make_plan(waiting(), **BESIDE)
    lowered, (left, back) = plan.lowered, plan.moved[0].values
    source = next(call.inputs[0] for call in lowered.calls if left in call.outputs)
    stale = [evolve(s, inputs=tuple(source if v == back else v for v in s.inputs)) for s in lowered.instructions]
    with pytest.raises(DataFlowError):
        check_data_flow(evolve(plan, lowered=evolve(lowered, instructions=tuple(stale))))


def test_copies_in_their_turn_are_refused_where_nothing_orders_them() -> None:
    plan = drawn(12)
    check_races(evolve(plan, schedule=in_sequence(plan.lowered)))
    schedule = in_sequence(plan.lowered)
    with pytest.raises(RaceError):
        check_races(evolve(plan, schedule=evolve(schedule, before=schedule.before[:0], after=schedule.after[:0])))


@pytest.mark.parametrize("until", [3, 99])
def test_a_copy_that_ends_before_it_begins_or_never_is_refused(until: int) -> None:
    lowered = engine.make_plan(waiting(), optimise=0).lowered
    with pytest.raises(OtherPlanError, match=f"the copy of 'relu_0' ends in tick {until}, which cannot be"):
        with_copies(lowered, [Copied("relu_0", 4, until)])
