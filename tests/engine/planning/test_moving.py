"""Tensors that change their memory between two uses: same bits in all ways to run, and never longer transfers."""

import pickle
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import engine
import ops
from engine import SGD, Executable, Graph
from engine.lower.calls import Join
from engine.lower.copied import Copied, with_copies
from engine.planning import memories as several
from engine.planning.placed import PlacedPlan
from engine.text.errors import OtherPlanError, PlanRefusedError
from tests.helpers.graphs.perceptrons import perceptron
from tests.helpers.graphs.unplanned_run import assert_same, random_feeds, run_unplanned
from tests.helpers.graphs.waiting import BOARD, drawn_waiting, waiting
from tests.helpers.onnx.onnx_writer import to_onnx

PLAIN: dict[str, Any] = {"memories": BOARD, "optimise": 0, "nodes": 50}


def test_a_tensor_that_waits_leaves_the_fast_memory_and_comes_back() -> None:
    plan = engine.make_plan(waiting(), **PLAIN)
    (transfers,) = plan.report().transfers
    moves = [(move.tensor, move.leaves, move.enters, move.bytes) for move in transfers.moves]
    assert moves == [("relu_0", "fast", "slow", 1024), ("relu_0", "slow", "fast", 1024)]
    out, back = (plan.lowered.tick_name(move.tick) for move in transfers.moves)
    calls = [call.name for call in plan.lowered.calls]
    assert calls.index(out) == calls.index("mul_2") + 1 and calls.index(back) == calls.index("mul_3") - 1
    assert transfers.moved_bytes == 2048 and transfers.seconds < 0.6 * transfers.unmoved_seconds
    assert "2 moves between memories, 2.00 KiB; without: 11.162 us, 84.7% more" in str(plan.report())


def test_one_read_comes_from_where_the_tensor_waits() -> None:
    (transfers,) = engine.make_plan(waiting(reads=1), **PLAIN).report().transfers
    assert [(move.tensor, move.leaves, move.enters) for move in transfers.moves] == [("relu_0", "fast", "slow")]


def test_a_plan_with_moves_gives_the_same_bits_in_all_ways_to_run_and_is_followed(tmp_path: Path) -> None:
    graph = waiting()
    feeds = random_feeds(graph)
    wanted = run_unplanned(graph, feeds)
    exes = [engine.compile(graph, debug=debug, **PLAIN) for debug in ("", "poison")]
    followed: Executable = pickle.loads(pickle.dumps(exes[0]))
    assert followed.plan.is_followed and followed.plan.moved == exes[0].plan.moved
    assert followed.report().transfers[0].moves == exes[0].report().transfers[0].moves
    apart = exes[0].plan.executable(arena={"fast": np.zeros(1 << 13, np.uint8)})
    for exe in (*exes, followed, apart, engine.compile(graph, parallel="levels", **PLAIN)):
        assert_same(exe.run(feeds), wanted)
    plain, planned = tmp_path / "plain.onnx", tmp_path / "planned.onnx"
    onnx.save(to_onnx(graph), plain)
    model = engine.load_onnx(plain)
    engine.save_plan(engine.make_plan(model, **PLAIN), plain, planned)
    required = engine.load_plan(planned, required=True)
    again = engine.compile(engine.load_onnx(planned), embedded=required, **PLAIN)
    assert again.plan.moved and required is not None and required.moves
    (array,) = again.run(feeds).values()
    assert array.tobytes() == wanted["y"].tobytes()


@pytest.mark.parametrize("text", ['{"copies": 3, "plain_seconds": 1}', '{"copies": [], "plain_seconds": -1}', "[]"])
def test_moves_in_a_file_that_are_none_are_one_clear_error(text: str, tmp_path: Path) -> None:
    plain, planned = tmp_path / "plain.onnx", tmp_path / "planned.onnx"
    onnx.save(to_onnx(waiting()), plain)
    engine.save_plan(engine.make_plan(engine.load_onnx(plain), **PLAIN), plain, planned)
    proto = onnx.load(planned)
    (entry,) = (p for p in proto.metadata_props if p.key == "pkg.arenaplan.moves")
    entry.value = text
    onnx.save(proto, planned)
    with pytest.raises(PlanRefusedError, match=r"'pkg\.arenaplan\.moves'"):
        engine.load_plan(planned)


@pytest.mark.parametrize(
    "options",
    [
        {"place": {"relu_0": "!slow"}},
        {"place": {"relu*": "slow"}},
        {"parallel": "levels"},
        {"reuse": False},
        {"memories": ["only=64KiB,1GB/s"]},
        {"memories": ["fast=64KiB,2GB/s", "slow=64KiB,1GB/s"]},
    ],
    ids=str,
)
def test_nothing_moves_that_rules_speak_of_or_that_has_no_reason_to(options: dict[str, Any]) -> None:
    (transfers,) = engine.make_plan(waiting(), **{**PLAIN, **options}).report().transfers
    assert not transfers.moves and transfers.unmoved_seconds == transfers.seconds


def test_views_are_views_of_the_copy_behind_it() -> None:
    graph = Graph("views")
    y = waits = ops.relu(graph.input("x", (16, 16)))
    for _ in range(3):
        y = y * waits
    for _ in range(4):
        y = ops.tanh(y @ y)
    half = ops.reshape(waits, (8, 32))
    for _ in range(3):
        half = ops.tanh(half * ops.reshape(waits, (8, 32)))
    graph.output(y, "y")
    graph.output(ops.reshape(half, (256,)), "z")
    exe = engine.compile(graph, debug="poison", **{**PLAIN, "memories": ("fast=2KiB,20GB/s", "slow=64KiB,1GB/s")})
    assert exe.report().transfers[0].moves
    feeds = random_feeds(graph)
    assert_same(exe.run(feeds), run_unplanned(graph, feeds))


@pytest.mark.parametrize("seed", [10, 12, 70, 111, 136])
def test_drawn_networks_copy_from_one_memory_to_another_alone(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, board = drawn_waiting(seed), ("fast=3KiB,10GB/s", "mid=2KiB,4GB/s", "slow=64KiB,1GB/s")
    plan = engine.make_plan(graph, **{**PLAIN, "memories": BOARD if seed % 2 else board})
    (transfers,) = plan.report().transfers
    assert transfers.moves and all(move.leaves != move.enters for move in transfers.moves)
    monkeypatch.setattr(several, "with_moves", lambda plan, *_, **__: plan)
    (without,) = engine.make_plan(graph, **{**PLAIN, "memories": BOARD if seed % 2 else board}).report().transfers
    assert transfers.seconds < transfers.unmoved_seconds == without.seconds
    feeds = random_feeds(graph)
    assert_same(plan.executable(debug="poison").run(feeds), run_unplanned(graph, feeds))


def test_training_on_two_memories_moves_no_parameter_and_learns_the_same() -> None:
    graph = perceptron(2, 16, SGD(0.1))
    options: dict[str, Any] = {"memories": ["fast=3KiB,10GB/s", "slow=1MiB,1GB/s"], "optimise": 0, "nodes": 50}
    exe, plain = engine.compile(graph, **options), engine.compile(graph, optimise=0)
    feeds = random_feeds(graph)
    for _ in range(3):
        assert_same(exe.run(feeds), plain.run(feeds))
    assert_same(exe.parameters, plain.parameters)
    assert not {move.tensor for move in exe.report().transfers[0].moves} & exe.parameters.keys()


@pytest.mark.parametrize("copied", [Copied("nobody", 1), Copied("relu_0", 99), Copied("relu_0", 1)], ids=str)
def test_what_is_not_there_to_be_copied_is_refused(copied: Copied) -> None:
    graph = Graph("constant")
    weight = graph.constant(np.ones((4, 4), np.float32), "w")
    graph.output(ops.relu(graph.input("x", (4, 4)) @ weight), "y")
    lowered = engine.make_plan(graph, optimise=0).lowered
    with pytest.raises(OtherPlanError, match=f"there is no '{copied.tensor}' to copy behind tick {copied.after}"):
        with_copies(lowered, [copied])
    with pytest.raises(OtherPlanError, match="'w' cannot be copied"):
        with_copies(lowered, [Copied("w", 1)])


def test_what_inputs_of_a_join_are_views_of_stays_where_it_is() -> None:
    graph = Graph("joined")
    waits = ops.relu(graph.input("x", (16, 16)))
    y = ops.tanh(waits @ waits)
    seen = ops.reshape(ops.reshape(waits, (256,)), (16, 16))
    graph.output(ops.tanh(ops.concat([y, seen], axis=0)), "z")
    lowered = engine.make_plan(graph, optimise=0).lowered
    assert any(isinstance(instruction, Join) for instruction in lowered.instructions)
    for name in ("tanh_0", "relu_0"):
        with pytest.raises(OtherPlanError, match=f"'{name}' cannot be copied"):
            with_copies(lowered, [Copied(name, 3)])


def test_no_copies_are_tried_when_the_time_of_planning_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(several, "with_moves", lambda plan, *_, **__: plan)
        plain = engine.make_plan(waiting(), **PLAIN)

    def plan(*_: object) -> PlacedPlan:
        raise AssertionError

    assert several.with_moves(plain, plain.options, plan, time.monotonic()) is plain
    with pytest.raises(AssertionError):
        several.with_moves(plain, plain.options, plan, time.monotonic() + 60)
