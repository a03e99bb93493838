"""Arenas that the caller gives: which buffers can be one, and executables that have bytes of the same buffer."""

import array
import gc
import mmap
import pickle
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import engine
import ops
from engine import ExecutionPlan, Graph
from engine.execution_plan import execution_plan
from engine.system.arrays import aligned_empty
from engine.text.errors import ArenaInUseError, EngineError, OptionError
from ops.schema.schema import Binding, Kernel, OpSchema, Thunk
from ops.tensor.layout import address_of
from ops.tensor.spec import Array
from tests.helpers.graphs.branching import branching_graph
from tests.helpers.graphs.training_graphs import chain
from tests.helpers.graphs.unplanned_run import random_feeds

OPTIONS: tuple[dict[str, Any], ...] = ({}, {"backend": "numpy", "threads": 1}, {"parallel": "exact", "threads": 2})


class _Exported:
    """What only gives its bytes by DLPack, as a tensor of another library."""

    def __init__(self, content: Array) -> None:
        self.content = content

    def __dlpack__(self, **options: Any) -> Any:
        return self.content.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.content.__dlpack_device__()


def _whole(count: int) -> Array:
    return np.full(count, 0xA5, np.uint8)


BUFFERS: dict[str, Callable[[int], Any]] = {
    "array": _whole,
    "bytearray": bytearray,
    "memoryview": lambda count: memoryview(bytearray(count)),
    "mmap": lambda count: mmap.mmap(-1, count),
    "dlpack": lambda count: _Exported(_whole(count)),
}


def _plan(**options: Any) -> ExecutionPlan:
    return engine.make_plan(branching_graph(2, 12), **options)


@pytest.fixture(scope="module")
def plan() -> ExecutionPlan:
    return _plan()


def _bits(outputs: dict[str, Array]) -> dict[str, bytes]:
    return {name: y.tobytes() for name, y in outputs.items()}


@pytest.mark.parametrize("kind", BUFFERS)
def test_every_kind_of_buffer_gives_the_bits_of_an_own_arena(kind: str, plan: ExecutionPlan) -> None:
    feeds = random_feeds(plan.graph, 3)
    exe = plan.executable(arena=BUFFERS[kind](plan.arena_bytes + 63))
    assert exe.arena_bytes == plan.arena_bytes and exe.plan is plan
    for _ in range(2):
        assert _bits(exe.run(feeds)) == _bits(plan.executable().run(feeds))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_way_to_run_gives_the_same_bits_in_one_buffer(options: dict[str, Any]) -> None:
    plan = _plan(**options)
    feeds, buffer = random_feeds(plan.graph, 4), _whole(plan.arena_bytes + 64)
    wanted = _bits(plan.executable().run(feeds))
    for debug in ("", "poison", ""):
        exe = plan.executable(arena=buffer, debug=debug)
        assert _bits(exe.run(feeds)) == wanted
        outputs, timings = exe.timed(feeds)
        assert _bits(outputs) == wanted and timings


@pytest.mark.parametrize("first", range(0, 65, 13))
def test_the_arena_is_the_first_aligned_bytes_and_nothing_else_is_written(first: int, plan: ExecutionPlan) -> None:
    block = _whole(plan.arena_bytes + 256)
    buffer = block[first : first + plan.arena_bytes + 63]
    low = first + -address_of(buffer) % 64
    plan.executable(arena=buffer).run(random_feeds(plan.graph, 5))
    outside = np.delete(block, slice(low, low + plan.arena_bytes))
    assert (outside == 0xA5).all() and not (block[low : low + plan.arena_bytes] == 0xA5).all()


def test_a_buffer_that_is_one_byte_too_small_is_refused_with_both_sizes(plan: ExecutionPlan) -> None:
    block = _whole(plan.arena_bytes + 128)
    low = -address_of(block) % 64
    plan.executable(arena=block[low : low + plan.arena_bytes])
    with pytest.raises(OptionError, match=f"arena of {plan.arena_bytes} bytes .* has {plan.arena_bytes - 1} bytes$"):
        plan.executable(arena=block[low : low + plan.arena_bytes - 1])
    behind = f"has {plan.arena_bytes} bytes, {plan.arena_bytes - 63} of them from the first multiple of 64 on"
    with pytest.raises(OptionError, match=behind):
        plan.executable(arena=block[low + 1 : low + 1 + plan.arena_bytes])


@pytest.mark.parametrize(
    ("buffer", "says"),
    [
        (bytes(9), "a bytes that is read-only"),
        (np.zeros(9, np.float32), "9 elements of float32"),
        (np.zeros((3, 3), np.uint8), "3x3 elements of uint8"),
        (np.zeros(18, np.uint8)[::2], "gaps between its bytes"),
        (np.ma.masked_array(np.zeros(9, np.uint8)), "masked array"),
        (array.array("d", [1.0]), "1 elements of float64"),
        (None, "a NoneType, which gives no bytes"),
        (7, "a int, which gives no bytes"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_an_arena_is_refused_in_one_line(buffer: Any, says: str, plan: ExecutionPlan) -> None:
    with pytest.raises(OptionError, match=says) as caught:
        plan.executable(arena=buffer)
    assert "\n" not in str(caught.value)


def test_modes_that_have_no_arena_and_plans_that_cannot_run_are_refused(plan: ExecutionPlan) -> None:
    with pytest.raises(OptionError, match="mode 'dynamic' has no arena"):
        plan.executable(arena=_whole(plan.arena_bytes + 63), mode="dynamic")
    with pytest.raises(OptionError, match="mode 'fast' is unknown"):
        plan.executable(mode="fast")
    with pytest.raises(OptionError, match="target 'none'"):
        _plan(target="none").executable()
    staged = Graph("staged")
    staged.output(ops.nonzero(staged.input("x", (8,))), "y")
    exe = engine.compile(staged)
    exe.run({"x": np.ones(8, np.float32)})
    with pytest.raises(EngineError, match="one stage of 'staged:1' cannot be run"):
        execution_plan(exe.stages[0].plan).executable()


def test_a_copy_has_an_arena_of_its_own(plan: ExecutionPlan) -> None:
    buffer, feeds = _whole(plan.arena_bytes + 63), random_feeds(plan.graph, 6)
    exe = plan.executable(arena=buffer)
    wanted = _bits(exe.run(feeds))
    copied = pickle.loads(pickle.dumps(exe))
    buffer[:] = 0
    assert _bits(copied.run(feeds)) == wanted and not buffer.any()
    assert copied.plan.plan.offset.tolist() == plan.plan.offset.tolist()


def test_a_plan_made_for_eviction_runs_in_an_arena_too() -> None:
    exe = engine.compile(branching_graph(2, 12), mode="dynamic", evict="lru", budget=4096)
    static = pickle.loads(pickle.dumps(exe.plan.executable(arena=_whole(exe.plan.arena_bytes + 63))))
    feeds = random_feeds(exe.graph, 2)
    assert _bits(static.run(feeds)) == _bits(exe.run(feeds))


def test_executables_of_one_plan_share_packed_weights(plan: ExecutionPlan) -> None:
    assert plan.prepacked_bytes > 0
    one, other = plan.executable(), plan.executable()
    packed = [[id(a) for arrays in exe.executor._packed.arrays.values() for a in arrays] for exe in (one, other)]
    assert packed[0] == packed[1]


def test_feeds_that_lie_in_the_buffer_are_copied_first(plan: ExecutionPlan) -> None:
    buffer, feeds = _whole(plan.arena_bytes + 63), random_feeds(plan.graph, 7)
    wanted = _bits(plan.executable().run(feeds))
    exe = plan.executable(arena=buffer)
    name, x = next(iter(feeds.items()))
    inside = buffer[-x.nbytes - address_of(buffer[-x.nbytes :]) % 4 :][: x.nbytes].view(x.dtype).reshape(x.shape)
    inside[...] = x
    assert _bits(exe.run({**feeds, name: inside})) == wanted


def _waiting(name: str, inside: threading.Event, leave: threading.Event) -> Graph:
    """Returns a graph whose operator waits in the middle of its run."""

    def wait(call: Binding) -> None:
        inside.set()
        assert leave.wait(20)
        np.copyto(call.y, call.x)

    def bind(call: Binding) -> Thunk:
        return partial(wait, call)

    graph = Graph(name)
    schema = OpSchema("wait", lambda specs, _: specs[:1], (Kernel("numpy", bind),))
    graph.output(graph.add(schema, [graph.input("x", (16,))], name="op")[0], "y")
    return graph


def test_two_runs_at_once_in_one_buffer_are_refused_and_the_first_one_is_right() -> None:
    inside, leave = threading.Event(), threading.Event()
    slow = engine.make_plan(_waiting("slow", inside, leave), optimise=0)
    fast = _plan()
    block = _whole(slow.arena_bytes + fast.arena_bytes + 128)
    feeds, x = random_feeds(fast.graph, 8), np.arange(16, dtype=np.float32)
    first, same = slow.executable(arena=block), fast.executable(arena=block)
    apart = fast.executable(arena=block[slow.arena_bytes + 63 :])
    results: list[Array] = []
    thread = threading.Thread(target=lambda: results.append(first.run({"x": x})["y"]))
    thread.start()
    try:
        assert inside.wait(20)
        with pytest.raises(ArenaInUseError, match=r"cannot run while 'slow' runs: they have bytes of the arena in"):
            same.run(feeds)
        wanted = _bits(fast.executable().run(feeds))
        assert _bits(apart.run(feeds)) == wanted
    finally:
        leave.set()
        thread.join()
    assert results[0].tolist() == x.tolist()
    assert _bits(same.run(feeds)) == wanted


def test_a_run_that_fails_leaves_the_buffer_to_others() -> None:
    def bind(_: Binding) -> Thunk:
        def fail() -> None:
            raise ValueError("no")

        return fail

    graph = Graph("failing")
    schema = OpSchema("fail", lambda specs, _: specs[:1], (Kernel("numpy", bind),))
    graph.output(graph.add(schema, [graph.input("x", (4,))], name="op")[0], "y")
    failing, plan = engine.make_plan(graph, optimise=0), _plan()
    buffer = _whole(max(plan.arena_bytes, failing.arena_bytes) + 63)
    one, other = failing.executable(arena=buffer), plan.executable(arena=buffer)
    with pytest.raises(EngineError, match="no"):
        one.run({"x": np.ones(4, np.float32)})
    other.run(random_feeds(plan.graph, 9))


@pytest.mark.slow
def test_a_buffer_with_parameters_of_another_executable_is_refused_until_that_one_is_gone() -> None:
    training, plan = engine.make_plan(chain(2, 8, 4)), engine.make_plan(branching_graph(2, 48))
    assert plan.arena_bytes > training.arena_bytes, "wherever parameters lie, the plan has bytes there"
    buffer = _whole(plan.arena_bytes + 63)
    exe = training.executable(arena=buffer)
    for other in (plan, training):
        with pytest.raises(OptionError, match="parameters of 'chain2' must stay there"):
            other.executable(arena=buffer)
    del exe
    gc.collect()
    first = plan.executable(arena=buffer)
    with pytest.raises(OptionError, match="parameters of 'chain2' must stay there"):
        training.executable(arena=buffer)
    del first
    gc.collect()
    feeds, wanted = random_feeds(training.graph, 1), training.executable()
    for debug in ("", "poison"):
        exe = training.executable(arena=buffer, debug=debug)
        exe.load(wanted.parameters)
        assert _bits(exe.run(feeds)) == _bits(wanted.run(feeds))
        assert _bits(exe.parameters) == _bits(wanted.parameters)
        del exe
        gc.collect()


def test_padding_is_of_the_executable_too_as_poison_fills_it() -> None:
    training, padded = engine.make_plan(chain(2, 8, 4)), engine.make_plan(branching_graph(1, 12), padding=4096)
    buffer = aligned_empty(padded.arena_bytes + training.arena_bytes, 64)
    watched = padded.executable(arena=buffer, debug="poison")
    behind = int((padded.plan.offset + padded.chunks.size).max())
    first = -(-behind // 64) * 64
    assert first + training.arena_bytes < padded.arena_bytes
    with pytest.raises(OptionError, match="parameters of 'chain2' must stay there"):
        training.executable(arena=buffer[first : first + training.arena_bytes])
    watched.run(random_feeds(padded.graph, 1))
