"""Heaps against their plain models, a checker, and sequences worked out by hand."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from allocator.errors import OutOfMemoryError, ProblemError, UnknownHeapError
from allocator.heaps import HEAPS, simulate
from allocator.heaps.bfc import BFC_ONNXRUNTIME, BFC_TENSORFLOW, Bfc, Extension
from allocator.heaps.buddy import Buddy
from allocator.heaps.events import ALLOC, FREE, EventLog, Events, of_chunks, of_lifetimes
from allocator.heaps.growing import BEST_FIT, FIRST_FIT, Growing
from allocator.heaps.pytorch import PyTorch
from allocator.heaps.simulated import NEVER, NOWHERE, Heap, Simulated
from allocator.kernels import mode
from allocator.problem import NO_CAPACITY, Problem
from engine import Graph
from engine.trace.buffers import buffers_of
from engine.trace.to_problem import heap_events
from engine.trace.trace import ARRIVALS
from tests.helpers.allocator.plain_heaps import (
    KIB,
    MIB,
    BfcModel,
    BuddyModel,
    GrowingModel,
    Model,
    PyTorchModel,
    judge,
    run_model,
    same_as_model,
    streams,
    thrown,
)
from tests.helpers.allocator.strategies import problems
from tests.helpers.graphs.random_graphs import graphs

SMALL = st.integers(0, 9).map(lambda n: 100 * n)
EDGES = st.one_of(
    st.sampled_from([b + d for b in (512, MIB, 2 * MIB, 10 * MIB, 20 * MIB) for d in (-512, -1, 0, 1)]),
    st.integers(1, 12).map(lambda n: n * 300 * KIB),
    st.integers(0, 24 * MIB),
)
SMALL_BFC = Bfc("bfc", region=4 * KIB, max_region=32 * KIB, max_dead_bytes=2 * KIB)
BFCS = (
    SMALL_BFC,
    evolve(SMALL_BFC, releases=True),
    evolve(SMALL_BFC, extension=Extension.SAME_AS_REQUESTED),
)
BFC_SIZES = st.one_of(st.integers(0, 20).map(lambda n: 256 * n), st.integers(0, 80 * KIB))


def of(*steps: int | str, size: dict[str, int]) -> Events:
    """Returns events in the order of names: "a" allocates a, "-a" frees it."""
    names = list(size)
    ids = [names.index(str(s).removeprefix("-")) for s in steps]
    signs = [FREE if str(s).startswith("-") else ALLOC for s in steps]
    return Events(range(len(ids)), ids, signs, list(size.values()))


def places(got: Simulated) -> list[tuple[int, int]]:
    return list(zip(got.offset.tolist(), got.taken.tolist(), strict=True))


def segments(got: Simulated) -> list[int]:
    sizes: list[int] = got.segments.size.tolist()
    return sizes


def bfc_model(heap: Bfc, capacity: int = NO_CAPACITY) -> BfcModel:
    same = heap.extension is Extension.SAME_AS_REQUESTED
    return BfcModel(
        capacity,
        region=heap.region,
        max_region=heap.max_region,
        max_dead=heap.max_dead_bytes,
        same_as_requested=same,
        collects=heap.releases,
    )


# Properties


@given(streams(SMALL), st.booleans(), st.sampled_from((1, 64, 256)))
@settings(max_examples=40)
def test_first_and_best_fit_are_those_of_a_plain_list(events: Events, is_first: bool, rounding: int) -> None:
    got = simulate(Growing("fit", is_first, rounding), events)
    same_as_model(got, GrowingModel(is_first=is_first, rounding=rounding), events)
    judge(events, got, rounding, is_one=True)


@given(streams(EDGES))
@settings(max_examples=40)
def test_the_caching_allocator_is_that_of_a_plain_list(events: Events) -> None:
    got = simulate("pytorch", events)
    same_as_model(got, PyTorchModel(), events)
    judge(events, got, 512)


@given(streams(BFC_SIZES), st.sampled_from(BFCS))
@settings(max_examples=40)
def test_the_bfc_arenas_are_those_with_bins(events: Events, heap: Bfc) -> None:
    got = simulate(heap, events)
    same_as_model(got, bfc_model(heap), events)
    judge(events, got, 256)


@given(streams(SMALL), st.sampled_from((16, 64, 128)), st.sampled_from((16, 256, 1024)))
@settings(max_examples=40)
def test_buddies_are_those_of_a_plain_list(events: Events, block: int, growth: int) -> None:
    got = simulate(Buddy(block=block, growth=growth), events)
    same_as_model(got, BuddyModel(block, max(block, growth)), events)
    judge(events, got, block, is_one=True, joins_all=False)
    there = got.taken != NOWHERE
    assert (got.taken[there] < 2 * np.maximum(events.size[there], block)).all()
    assert (got.offset[there] % got.taken[there] == 0).all()


@given(streams(st.one_of(SMALL, EDGES)), st.sampled_from(sorted(HEAPS)))
@settings(max_examples=30)
def test_no_heap_reserves_less_than_reference_counting(events: Events, name: str) -> None:
    got, least = simulate(name, events), simulate("refcount", events)
    assert got.peak_reserved >= got.peak_used >= got.peak_requested == least.peak_reserved == least.peak_requested
    assert (got.timeline.reserved >= got.timeline.live).all()
    assert ((got.timeline.fragmentation >= 0) & (got.timeline.fragmentation <= 1)).all()
    assert ((got.timeline.waste >= 0) & (got.timeline.waste <= 1)).all()
    assert got.overhead >= least.overhead == 0


@given(st.lists(st.integers(1, 900), max_size=20), st.data())
@settings(max_examples=20)
def test_stacks_do_not_fragment_a_heap_that_grows(sizes: list[int], data: st.DataObject) -> None:
    steps, live = list[tuple[int, int]](), list[int]()
    for one in range(len(sizes)):
        live.append(one)
        steps.append((one, ALLOC))
        steps.extend((live.pop(), FREE) for _ in range(data.draw(st.integers(0, len(live)))))
    events = Events(range(len(steps)), [i for i, _ in steps], [s for _, s in steps], sizes)
    for heap in (FIRST_FIT, BEST_FIT):
        got = simulate(heap, events)
        assert got.peak_reserved == got.peak_used


@given(streams(st.one_of(SMALL, BFC_SIZES)), st.sampled_from(("refcount", "first_fit", "best_fit", "buddy")), st.data())
@settings(max_examples=40)
def test_a_heap_that_returns_no_memory_fails_at_its_capacity(events: Events, name: str, data: st.DataObject) -> None:
    heap = evolve(Buddy(), growth=256) if name == "buddy" else HEAPS[name]
    free = simulate(heap, events).timeline
    capacity = data.draw(st.integers(0, 1 + int(free.reserved.max(initial=0))))
    fails = np.flatnonzero(free.reserved > capacity)
    if not len(fails):
        assert simulate(heap, events, capacity).timeline.reserved.tolist() == free.reserved.tolist()
        return
    with pytest.raises(OutOfMemoryError) as failure:
        simulate(heap, events, capacity)
    error, before = failure.value, int(fails[0]) - 1
    reported = (error.heap, error.requested, error.capacity, error.in_use, error.reserved, error.largest_free)
    columns = (free.used, free.reserved, free.largest_free)
    assert reported[:3] == (name, int(events.size[events.id[before + 1]]), capacity)
    assert reported[3:] == tuple(int(c[before]) if before >= 0 else 0 for c in columns)


@given(streams(BFC_SIZES), st.sampled_from(BFCS), st.data())
@settings(max_examples=60)
def test_a_full_arena_fails_where_its_model_does(events: Events, heap: Bfc, data: st.DataObject) -> None:
    capacity = data.draw(tight(heap, events))
    fails_as(heap, bfc_model(heap, capacity), events, capacity)


@given(streams(EDGES), st.data())
@settings(max_examples=60)
def test_a_full_device_makes_the_caching_allocator_give_back_and_then_fail(events: Events, data: st.DataObject) -> None:
    capacity = data.draw(tight(PyTorch(), events))
    fails_as(PyTorch(), PyTorchModel(capacity), events, capacity)


def tight(heap: Heap, events: Events) -> st.SearchStrategy[int]:
    """Draws capacities that are just enough for some while, or not quite."""
    steps = sorted({0, *simulate(heap, events).timeline.reserved.tolist()})
    return st.one_of(
        st.builds(lambda at, by: max(at + by, 0), st.sampled_from(steps), st.sampled_from((-256, -1, 0, 1, 300))),
        st.integers(steps[-1] // 3, steps[-1]),
    )


def fails_as(heap: Heap, model: Model, events: Events, capacity: int) -> None:
    wanted = run_model(model, events)
    if wanted.failed == NEVER:
        got = simulate(heap, events, capacity)
        assert got.timeline.reserved.tolist() == wanted.reserved
        assert got.peak_reserved <= capacity
        judge(events, got, 256)
        return
    with pytest.raises(OutOfMemoryError) as failure:
        simulate(heap, events, capacity)
    error, asked = failure.value, int(events.size[events.id[wanted.failed]])
    assert (error.heap, error.requested, error.capacity) == (heap.name, asked, capacity)
    assert error.reserved == [0, *wanted.reserved][-1] >= error.in_use + error.largest_free


@given(problems(overwrites=True))
@settings(max_examples=20)
def test_events_of_lifetimes_free_before_they_allocate(problem: Problem) -> None:
    events = of_lifetimes(problem.begin, problem.end, problem.size)
    rows = list(zip(events.tick.tolist(), events.sign.tolist(), events.id.tolist(), strict=True))
    wanted = [(int(e), FREE, i) for i, e in enumerate(problem.end)]
    wanted += [(int(b), ALLOC, i) for i, b in enumerate(problem.begin)]
    assert rows == sorted(wanted)
    assert events.delta.sum() == 0


@pytest.mark.parametrize("name", HEAPS)
def test_a_compiled_heap_is_a_plain_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def sizes(rng: np.random.Generator) -> int:
        return int(2.0 ** rng.uniform(4, 24))

    events = thrown(np.random.default_rng(7), 1_500, sizes, life=60)
    capacity = int(1.6 * simulate("refcount", events).peak_reserved) if name == "pytorch" else NO_CAPACITY
    runs = []
    for is_plain in (True, False):
        monkeypatch.setattr(mode.KernelMode, "of", lambda *_, plain=is_plain: mode.KernelMode(plain))
        runs.append(simulate(name, events, capacity))
    plain, fast = runs
    assert places(plain) == places(fast)
    assert plain.calls == fast.calls
    for column in ("live", "used", "reserved", "largest_free"):
        assert getattr(plain.timeline, column).tolist() == getattr(fast.timeline, column).tolist()


@given(graphs())
@settings(max_examples=15, deadline=None)
def test_the_events_of_a_graph_are_those_of_its_dynamic_trace(graph: Graph) -> None:
    plan = engine.make_plan(graph, optimise=0)
    events = of_chunks(buffers_of(plan, "dynamic").chunks)
    reported = [
        (e.tick, e.chunk, FREE if e.kind == "free" else ALLOC, e.bytes)
        for e in plan.trace("dynamic")
        if e.kind in (*ARRIVALS, "free")
    ]
    columns = (events.tick.tolist(), events.id.tolist(), events.sign.tolist(), events.size[events.id].tolist())
    assert list(zip(*columns, strict=True)) == reported
    assert simulate("refcount", events).timeline.live.tolist() == [
        e.live_bytes for e in plan.trace("dynamic") if e.kind in (*ARRIVALS, "free")
    ]


def test_an_updated_parameter_asks_a_heap_for_nothing() -> None:
    """Its new value takes the bytes of the old one: the events of a trace are those of the chunks."""
    graph = Graph("count")
    count = graph.parameter(np.zeros(4), "count")
    graph.output(ops.relu(graph.assign(count, count + graph.input("by", (4,), "float64"))), "now")
    plan = engine.make_plan(graph, optimise=0)
    of_run, blocks = heap_events(plan.trace("dynamic"))
    of_plan = of_chunks(buffers_of(plan, "dynamic").chunks)
    assert of_run.tick.tolist() == of_plan.tick.tolist() == [0, 0, 2, 2, 4, 4]
    assert of_run.sign.tolist() == of_plan.sign.tolist() == [ALLOC, ALLOC, FREE, ALLOC, FREE, FREE]
    assert of_run.size[of_run.id].tolist() == of_plan.size[of_plan.id].tolist()
    assert blocks.tolist() == [0, 1, 1, 2]


def test_a_log_of_heap_events_hands_blocks_on_and_gives_them_back_once() -> None:
    log = EventLog()
    assert [log.begin(0, 7, 8), log.begin(0, 8, 0), log.begin(1, 9, 4, overwrites=7)] == [0, 1, 0]
    for chunk in (7, 9, 9, 8):
        log.end(2, chunk)
    assert log.begin(1, 9, 2) == 2
    events = log.events()
    assert events.id.tolist() == [0, 1, 0, 1, 2]
    assert events.sign.tolist() == [ALLOC, ALLOC, FREE, FREE, ALLOC]
    assert events.size.tolist() == [8, 0, 2]
    assert events.tick.tolist() == [0, 0, 2, 2, 2]
    assert len(EventLog().events()) == 0


# Sequences worked by hand


def test_first_fit_takes_the_lowest_hole_and_best_fit_the_tightest() -> None:
    size = {"a": 256, "b": 64, "c": 128, "d": 64, "e": 100}
    events = of("a", "b", "c", "d", "-a", "-c", "e", size=size)
    assert places(simulate("first_fit", events))[4] == (0, 128)  # in a's hole of 256 bytes, 128 stay free
    assert places(simulate("best_fit", events))[4] == (320, 128)  # all of c's hole


def test_a_free_block_at_the_end_of_a_heap_grows_by_what_misses() -> None:
    got = simulate("best_fit", of("a", "b", "-b", "c", size={"a": 64, "b": 128, "c": 200}))
    assert places(got)[2] == (64, 256)
    assert segments(got) == [64, 128, 128]
    assert got.timeline.reserved.tolist() == [64, 192, 192, 320]
    assert got.timeline.largest_free.tolist() == [0, 0, 128, 0]


def test_freed_neighbours_are_one_block() -> None:
    events = of("a", "b", "c", "-a", "-c", "-b", size={"a": 64, "b": 64, "c": 64})
    got = simulate("first_fit", events)
    assert got.timeline.largest_free.tolist() == [0, 0, 0, 64, 64, 192]
    assert got.timeline.fragmentation.tolist() == [0, 0, 0, 0, 0.5, 0]
    assert got.timeline.waste.tolist() == [0, 0, 0, 1 / 3, 2 / 3, 1]


def test_buddies_are_halved_joined_and_grow_by_aligned_blocks() -> None:
    size = {"a": 64, "b": 100, "c": 64, "d": 200, "e": 300}
    got = simulate(Buddy(block=64, growth=256), of("a", "b", "c", "-a", "-c", "-b", "d", "e", size=size))
    # 256 = [a 64][64][128]; b takes the 128, c the 64; all freed they are 256 again, which d takes whole.
    # e needs 512, which must lie at a multiple of 512: the 256 bytes before it become a free block.
    assert places(got) == [(0, 64), (128, 128), (64, 64), (0, 256), (512, 512)]
    assert segments(got) == [256, 768]
    assert got.timeline.largest_free.tolist() == [128, 64, 0, 64, 128, 256, 0, 256]


def test_a_buddy_that_was_freed_last_is_taken_first() -> None:
    size = dict.fromkeys("abcde", 64)
    got = simulate(Buddy(block=64, growth=256), of("a", "b", "c", "d", "-c", "-a", "e", size=size))
    assert got.offset.tolist() == [0, 64, 128, 192, 0]  # a was freed after c; neither's buddy is free


def test_the_caching_allocator_has_two_pools_and_three_sizes_of_segments() -> None:
    size = {"a": 1, "b": MIB, "c": MIB + 1, "d": 10 * MIB, "e": 10 * MIB, "f": 11 * MIB}
    got = simulate("pytorch", of(*size, size=size))
    assert segments(got) == [2 * MIB, 20 * MIB, 10 * MIB, 12 * MIB]
    assert places(got) == [
        (0, 512),
        (512, MIB),  # the small pool's segment was split behind a
        (2 * MIB, MIB + 512),  # 512 bytes too large for the small pool: 20 MiB, split
        (3 * MIB + 512, 10 * MIB),  # finds room in the rest of these
        (22 * MIB, 10 * MIB),  # does not; from 10 MiB on a segment has the size of its request
        (32 * MIB, 12 * MIB),  # in steps of 2 MiB; 1 MiB and less is not split off in the large pool
    ]


def test_the_caching_allocator_takes_the_smallest_block_and_merges_inside_a_segment() -> None:
    size = {"a": 512 * KIB, "b": 512 * KIB, "c": 1024, "d": 512, "e": MIB, "f": 1024}
    got = simulate("pytorch", of("a", "b", "c", "d", "-a", "-b", "-c", "e", "f", size=size))
    assert places(got)[4] == (0, MIB)  # a and b merged, and c behind them: 1,024 bytes stay
    assert places(got)[5] == (MIB, 1024)  # which are a better fit than the rest of the segment
    assert segments(got) == [2 * MIB]


def test_small_requests_never_take_large_blocks() -> None:
    got = simulate("pytorch", of("a", "-a", "b", size={"a": 2 * MIB, "b": 512}))
    assert segments(got) == [20 * MIB, 2 * MIB]


def test_a_full_device_gets_its_unused_segments_back_before_memory_is_out() -> None:
    size = {"a": 2 * MIB, "b": 24 * MIB, "c": 8 * MIB}
    got = simulate("pytorch", of("a", "-a", "b", size=size), 30 * MIB)
    assert got.timeline.reserved.tolist() == [20 * MIB, 20 * MIB, 24 * MIB]
    assert got.calls.segment_free == 1
    assert got.segments.end.tolist() == [2, NEVER]
    with pytest.raises(
        OutOfMemoryError, match="pytorch has no 8388608 bytes: 25165824 of 25165824 reserved"
    ) as failure:
        simulate("pytorch", of("a", "-a", "b", "c", size=size), 30 * MIB)
    assert failure.value.largest_free == 0
    assert isinstance(failure.value, MemoryError)


@pytest.mark.parametrize("name", ["pytorch", "bfc_tensorflow"])
def test_a_segment_of_which_one_block_is_used_stays(name: str) -> None:
    size = {"a": 2 * MIB, "b": 2 * MIB, "c": 24 * MIB}
    with pytest.raises(OutOfMemoryError) as failure:
        simulate(name, of("a", "b", "-a", "c", size=size), 25 * MIB)
    assert failure.value.in_use == 2 * MIB


def test_regions_of_tensorflow_double() -> None:
    size = {"a": MIB, "b": 3 * MIB // 2, "c": 20 * MIB, "d": MIB, "e": 1, "f": 3 * MIB, "g": 40 * MIB}
    got = simulate("bfc_tensorflow", of(*size, size=size))
    # The first is 2 MiB, the next 4; 8 were next, but c needs 32, which are next once more, as they were asked for.
    assert segments(got) == [2 * MIB, 4 * MIB, 32 * MIB, 32 * MIB, 64 * MIB]
    assert places(got) == [
        (0, MIB),
        (2 * MIB, 3 * MIB // 2),
        (6 * MIB, 32 * MIB),  # not split: less than twice what c needs, and less than 128 MiB would be left over
        (MIB, MIB),
        (7 * MIB // 2, 256),
        (38 * MIB, 3 * MIB),
        (70 * MIB, 64 * MIB),
    ]


def test_a_chunk_is_split_where_more_than_the_dead_bytes_would_be_left() -> None:
    heap = evolve(BFC_TENSORFLOW, max_dead_bytes=MIB)
    got = simulate(heap, of("a", size={"a": 3 * MIB}))
    assert places(got) == [(0, 3 * MIB)]
    assert places(simulate(BFC_TENSORFLOW, of("a", size={"a": 3 * MIB}))) == [(0, 4 * MIB)]


def test_regions_of_onnxruntime_begin_smaller_and_end_at_a_largest_one() -> None:
    size = {"a": 300, "b": 300, "c": 3_000_000, "d": 100}
    got = simulate("bfc_onnxruntime", of("a", "b", "c", "-a", "d", size=size))
    assert places(got) == [(0, 512), (512, 512), (MIB, 4 * MIB), (0, 256)]
    assert segments(got) == [MIB, 4 * MIB]
    many = {f"x{k}": 1024 for k in range(5)}
    heap = evolve(BFC_ONNXRUNTIME, region=1024, max_region=3000)
    assert segments(simulate(heap, of(*many, size=many))) == [1024, 2048, 3000]
    doubled = {f"x{k}": MIB << k for k in range(11)} | {"y": MIB, "z": 2048 * MIB}
    wanted = [MIB << k for k in range(11)] + [1024 * MIB, 2048 * MIB]
    assert segments(simulate("bfc_onnxruntime", of(*doubled, size=doubled))) == wanted


def test_an_arena_that_grows_as_requested_reserves_what_is_asked_for() -> None:
    size = {"a": 300, "b": 3_000_000, "c": 100}
    heap = evolve(BFC_ONNXRUNTIME, extension=Extension.SAME_AS_REQUESTED)
    got = simulate(heap, of("a", "b", "-b", "c", size=size))
    assert segments(got) == [512, 3_000_064]
    assert places(got)[2] == (512, 256)  # in the bytes of b


def test_tensorflow_gives_regions_back_before_memory_is_out() -> None:
    size = {"a": 2 * MIB, "b": 5 * MIB, "c": 9 * MIB}
    got = simulate("bfc_tensorflow", of("a", "-a", "b", size=size), 6 * MIB)
    assert got.timeline.reserved.tolist() == [2 * MIB, 2 * MIB, 6 * MIB]
    whole = simulate("bfc_tensorflow", of("a", "-a", "b", size=size), 5 * MIB)
    assert segments(whole) == [2 * MIB, 5 * MIB]
    with pytest.raises(OutOfMemoryError) as failure:
        simulate("bfc_tensorflow", of("a", "-a", "c", size=size), 6 * MIB)
    assert failure.value.reserved == failure.value.largest_free == 2 * MIB
    with pytest.raises(OutOfMemoryError):
        simulate("bfc_onnxruntime", of("a", "-a", "b", size=size), 6 * MIB)


def test_reference_counting_reserves_what_is_live() -> None:
    got = simulate("refcount", of("a", "b", "-a", size={"a": 3, "b": 4}))
    assert got.timeline.reserved.tolist() == [3, 7, 4]
    assert got.offset.tolist() == [NOWHERE, NOWHERE]
    assert (got.calls.segment_alloc, got.calls.segment_free) == (2, 1)
    with pytest.raises(OutOfMemoryError, match="has no 4 bytes: 3 of 3 reserved"):
        simulate("refcount", of("a", "b", size={"a": 3, "b": 4}), 6)


@pytest.mark.parametrize("name", HEAPS)
def test_heaps_give_no_place_to_chunks_without_bytes(name: str) -> None:
    got = simulate(name, of("a", "-a", size={"a": 0}))
    assert got.peak_reserved == got.overhead == 0
    assert places(got) == [(NOWHERE, NOWHERE)]
    assert got.calls.alloc == got.calls.free == got.calls.segment_alloc == 0
    assert simulate(name, of_lifetimes(*np.zeros((3, 0), np.int64))).peak_reserved == 0


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([0], [0, 1], [1, 1], [1, 1]), "differ in length"),
        (([0], [0], [2], [1]), "neither"),
        (([1, 0], [0, 1], [1, 1], [1, 1]), "backwards"),
        (([0], [1], [1], [1]), "no size"),
        (([0], [0], [1], [-1]), "fewer bytes"),
        (([0], [0], [1], [2**62]), "more than 64-bit"),
        (([0], [0], [-1], [1]), "not allocated before"),
        (([0, 0], [0, 0], [1, 1], [1]), "allocated twice"),
        (([0, 0, 0], [0, 0, 0], [1, -1, -1], [1]), "freed twice"),
    ],
)
def test_heap_events_that_make_no_sense_are_refused(columns: tuple[list[int], ...], message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        Events(*columns)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Buddy(block=48), "48 bytes are no block"),
        (lambda: Buddy(growth=0), "0 bytes are no block"),
        (lambda: evolve(FIRST_FIT, rounding=0), "rounded up to 0"),
        (lambda: evolve(BFC_ONNXRUNTIME, region=0), "bfc_onnxruntime needs a region"),
    ],
)
def test_heap_options_that_make_no_sense_are_refused(make: Callable[[], Heap], message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        make()


def test_simulate_refuses_an_unknown_heap() -> None:
    with pytest.raises(UnknownHeapError, match="no heap 'jemalloc'; there are refcount, first_fit"):
        simulate("jemalloc", of("a", size={"a": 1}))


# The judge itself


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"offset": [0, 0]}, "share bytes"),
        ({"offset": [0, 256]}, "behind all"),
        ({"offset": [0, 96]}, "not aligned"),
        ({"taken": [64, 0]}, "too small"),
    ],
)
def test_the_heap_judge_refuses_a_wrong_run(change: dict[str, Any], fault: str) -> None:
    events = of("a", "b", size={"a": 64, "b": 64})
    got = simulate("first_fit", events)
    judge(events, got, 64, is_one=True)
    with pytest.raises(AssertionError, match=fault):
        judge(events, evolve(got, **change), 64, is_one=True)
