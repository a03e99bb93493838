"""Plans run on several threads: the bits of a run in sequence, whatever the order; failures end it and it goes on."""

import gc
import random
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import Graph
from engine.execution_plan import ExecutionPlan
from engine.executor.arenas import new_arena
from engine.executor.parallel import ParallelExecutor
from engine.lower.schedule import BARRIER, Schedule, by_data
from engine.system.timing import Stopwatch, Timing
from engine.text.errors import JudgeError, KernelError, OptionError
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Specs, Thunk
from tests.helpers.allocations import check_allocates_nothing
from tests.helpers.graphs.random_graphs import build, graphs, seeded
from tests.helpers.graphs.unplanned_run import assert_same, random_feeds, run_unplanned
from tests.helpers.ops.delayed_kernels import delay

THREADS = st.integers(2, 8)


def _plan(graph: Graph, **options: Any) -> ExecutionPlan:
    """Returns a plan in which every chunk has bytes of its own, so that a call need only wait for its data."""
    plan = engine.make_plan(graph, reuse=False, overwrite=False, optimise=0, **options)
    return evolve(plan, schedule=by_data(plan.lowered, "test"))


def _in_levels(plan: ExecutionPlan) -> ExecutionPlan:
    """Returns the same with barriers between the levels of the graph: nodes level by level, in no order of ticks."""
    ticks, before, after = (c.tolist() for c in (plan.schedule.tick, plan.schedule.before, plan.schedule.after))
    level = [0] * len(ticks)
    for b, a in sorted(zip(before, after, strict=True), key=lambda edge: edge[1]):
        level[a] = max(level[a], level[b] + 1)
    nodes_so_far, edges, last = list[int](), list[tuple[int, int]](), list[int]()
    for wanted in range(max(level, default=-1) + 1):
        nodes = [len(nodes_so_far) + i for i in range(level.count(wanted))]
        nodes_so_far += [ticks[i] for i in range(len(ticks)) if level[i] == wanted][::-1]
        edges += [(b, a) for b in last for a in nodes] + [(a, len(nodes_so_far)) for a in nodes]
        last = [len(nodes_so_far)]
        nodes_so_far.append(BARRIER)
    rows = np.array(edges, np.int64).reshape(-1, 2)
    return evolve(plan, schedule=Schedule("test", np.array(nodes_so_far, np.int64), rows[:, 0], rows[:, 1]))


def _executor(plan: ExecutionPlan, threads: int) -> ParallelExecutor:
    return ParallelExecutor(plan, new_arena(plan), threads)


def _check_order(plan: ExecutionPlan, timings: tuple[Timing, ...]) -> None:
    """Checks the real beginnings and ends, with barriers replaced by what they stand for."""
    at = {t.tick: t for t in timings}
    assert len(at) == len(timings) == len(plan.lowered.calls)
    ticks = plan.schedule.tick.tolist()
    done_by = [0.0] * len(ticks)
    edges = sorted(zip(plan.schedule.after.tolist(), plan.schedule.before.tolist(), strict=True))
    for node, tick in enumerate(ticks):
        begin = max((done_by[b] for a, b in edges if a == node), default=0.0)
        if tick != BARRIER:
            assert begin <= at[tick].begin <= at[tick].end
        done_by[node] = begin if tick == BARRIER else at[tick].end


@settings(max_examples=20, deadline=None)
@given(graphs(20), st.integers(1, 8), st.booleans(), st.randoms(use_true_random=False))
def test_outputs_have_the_bits_of_an_unplanned_run_and_calls_keep_the_schedule(
    graph: Graph, threads: int, levels: bool, rng: random.Random
) -> None:
    plan = _in_levels(_plan(graph)) if levels else _plan(graph)
    executor, feeds = _executor(plan, threads), random_feeds(graph)
    wanted = run_unplanned(graph, feeds)
    delay(executor, rng)
    for _ in range(3):
        executor.arena.fill(0xA5)
        watch = Stopwatch()
        assert_same(executor.run_timed(feeds, {}, True, watch), wanted)
        _check_order(plan, watch.timings())
        assert {t.thread for t in watch.timings()} <= set(range(threads))


@settings(max_examples=12, deadline=None)
@given(graphs(), THREADS, st.integers(0, 7))
def test_parallel_executor_reads_and_writes_bound_arrays_in_place(graph: Graph, threads: int, which: int) -> None:
    bound = tuple(n for i, n in enumerate([*graph.inputs, *graph.outputs]) if which >> i & 1)
    executor = _executor(_plan(graph, caller_buffers=bound), threads)
    for seed in range(3):
        feeds = random_feeds(graph, seed)
        out = {n: np.full(v.shape, 7, v.dtype) for n, v in graph.outputs.items()}
        outputs = executor.run(feeds, out, True)
        assert all(outputs[n] is out[n] for n in out)
        assert_same(outputs, run_unplanned(graph, feeds))


def _wide(branches: int = 8, width: int = 64) -> Graph:
    """Returns x -> branches of two operators each -> sums."""
    graph = Graph("wide")
    x = graph.input("x", (width, width))
    total = ops.neg(x)
    for i in range(branches):
        total = ops.add(total, ops.tanh(ops.mul(x, float(i))))
    graph.output(total, "y")
    return graph


def test_two_threads_may_run_at_once_and_take_turns() -> None:
    graph = _wide()
    executor = _executor(_plan(graph), 3)
    feeds = [random_feeds(graph, seed) for seed in range(4)]
    wanted = [run_unplanned(graph, feed) for feed in feeds]
    faults = list[str]()
    threads = [
        threading.Thread(target=_run_often, args=(executor, f, w, faults)) for f, w in zip(feeds, wanted, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert faults == []


def _run_often(executor: ParallelExecutor, feeds: dict[str, Any], wanted: dict[str, Any], faults: list[str]) -> None:
    for _ in range(30):
        if executor.run(feeds, {}, True)["y"].tobytes() != wanted["y"].tobytes():
            faults.append("another run's numbers")


def _same(specs: Specs, _: Attrs) -> Specs:
    return specs


class _Calls:
    """Operators whose kernels do as they are told, by name."""

    def __init__(self, wishes: dict[str, Callable[[], None]]) -> None:
        self.wishes = wishes
        self.ran = list[str]()

    def graph(self, *names: str) -> Graph:
        graph = Graph()
        x = graph.input("x", (4,))
        for name in names:
            graph.output(graph.add(OpSchema(name, _same, (Kernel("told", partial(self._bind, name)),)), [x])[0])
        return graph

    def _bind(self, name: str, call: Binding) -> Thunk:
        return partial(self._run, name, call)

    def _run(self, name: str, call: Binding) -> None:
        self.wishes.get(name, lambda: None)()
        call.y[:] = call.x
        self.ran.append(name)


def _fail(error: BaseException, *before: Callable[[], object]) -> None:
    for wait in before:
        wait()
    raise error


def test_a_failure_names_the_first_operator_and_the_executor_goes_on() -> None:
    together = threading.Barrier(2, timeout=60)
    calls = _Calls({})
    executor = _executor(_plan(calls.graph("a", "b", "c")), 2)
    for _ in range(5):
        calls.wishes = {n: partial(_fail, ValueError(f"no {n}"), together.wait) for n in "ab"}
        with pytest.raises(KernelError, match=r"operator 'a_0' failed on .*: no a") as caught:
            executor.run({"x": np.ones(4, np.float32)}, {}, True)
        assert isinstance(caught.value.__cause__, ValueError) and calls.ran == []
        calls.wishes = {}
        assert len(executor.run({"x": np.ones(4, np.float32)}, {}, True)) == 3
        assert sorted(calls.ran) == ["a", "b", "c"]
        calls.ran.clear()


@pytest.mark.parametrize("thread", ["caller", "helper"])
def test_parallel_executor_raises_base_exceptions_after_other_calls_are_done(thread: str) -> None:
    begun, calls = threading.Event(), _Calls({})
    executor = _executor(_plan(calls.graph("a", "b", "c")), 2)
    a_slow_one = partial(_slow, begun)
    failing = partial(_fail, KeyboardInterrupt(), partial(begun.wait, 60))
    calls.wishes = {"a": failing, "b": a_slow_one} if thread == "caller" else {"a": a_slow_one, "b": failing}
    with pytest.raises(KeyboardInterrupt):
        executor.run({"x": np.ones(4, np.float32)}, {}, True)
    assert calls.ran == (["b"] if thread == "caller" else ["a"])
    calls.wishes = {}
    assert len(executor.run({"x": np.ones(4, np.float32)}, {}, True)) == 3


def _slow(begun: threading.Event) -> None:
    begun.set()
    time.sleep(0.02)


def _helpers() -> set[threading.Thread]:
    return {t for t in threading.enumerate() if t.name == "arenaplan"}


def test_threads_are_made_at_first_use_and_end_with_the_executor() -> None:
    graph, others = _wide(), _helpers()
    gc.collect()
    gc.disable()
    try:
        executor = _executor(_plan(graph), 4)
        assert not _helpers() - others
        executor.run(random_feeds(graph), {}, True)
        mine = _helpers() - others
        assert len(mine) == 3
        executor.thunks[3] = partial(divmod, 1, 0)
        with pytest.raises(KernelError):
            executor.execute()
        del executor
        for thread in mine:
            thread.join(60)
        assert not any(thread.is_alive() for thread in mine)
    finally:
        gc.enable()


def test_parallel_executor_runs_allocate_no_arrays() -> None:
    graph = _wide(width=256)
    executor, feeds = _executor(_plan(graph), 3), random_feeds(graph)
    out = executor.run(feeds, {}, True)
    check_allocates_nothing(lambda: executor.run(feeds, out, True), most_bytes=32 * 1024)


def test_one_thread_runs_the_nodes_in_their_order_on_the_callers_thread() -> None:
    graph = _wide()
    executor, watch, others = _executor(_in_levels(_plan(graph)), 1), Stopwatch(), _helpers()
    executor.run_timed(random_feeds(graph), {}, True, watch)
    ticks = [t for t in executor.plan.schedule.tick.tolist() if t != BARRIER]
    assert [t.tick for t in watch.timings()] == ticks != sorted(ticks)
    assert {t.thread for t in watch.timings()} == {0} and _helpers() <= others


def test_parallel_executor_runs_an_empty_graph() -> None:
    graph = Graph()
    graph.output(graph.input("x", (3,)), "y")
    x = np.ones(3, np.float32)
    assert_same(_executor(_plan(graph), 2).run({"x": x}, {}, True), {"y": x})


def test_every_mode_tells_when_calls_ran() -> None:
    graph = _wide()
    for mode in ("static", "dynamic"):
        exe = engine.compile(graph, mode=mode, optimise=0)
        outputs, timings = exe.timed(random_feeds(graph))
        assert_same(outputs, exe.run(random_feeds(graph)))
        assert [t.tick for t in timings] == [c.tick for c in exe.plan.lowered.calls]
        assert all(0 <= t.begin <= t.end and t.thread == 0 for t in timings)
        assert all(one.end <= next_one.begin for one, next_one in pairwise(timings))


def test_wrong_schedules_and_options_are_refused() -> None:
    plan = _plan(_wide())
    with pytest.raises(JudgeError, match="does not run each call once"):
        _executor(evolve(plan, schedule=evolve(plan.schedule, tick=plan.schedule.tick[::-1] * 0 + 1)), 2)
    with pytest.raises(JudgeError, match="does not go forward"):
        _executor(evolve(plan, schedule=evolve(plan.schedule, before=plan.schedule.after)), 2)
    for threads in (0, -1, 2.0, True, 10**6):
        with pytest.raises(OptionError, match=r"threads .* is no integer"):
            _executor(plan, threads)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="is no integer from 0"):
        engine.compile(_wide(), threads=-1, optimise=0)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [2, 3, 5, 8])
def test_parallel_executor_gives_the_same_bits_with_delayed_kernels(threads: int) -> None:
    for seed in range(10):
        graph = build(seeded(1000 * threads + seed), 30)
        executor, feeds = _executor(_plan(graph), threads), random_feeds(graph)
        wanted, rng = run_unplanned(graph, feeds), random.Random(seed)
        plain = list(executor.thunks)
        for _ in range(200):
            executor.thunks = list(plain)
            delay(executor, rng)
            executor.arena.fill(0xA5)
            assert_same(executor.run(feeds, {}, True), wanted)
