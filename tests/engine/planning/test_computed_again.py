"""Tensors that are dropped and computed again in several memories: same bits, and never longer transfers."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import engine
import ops
from engine import Executable, Graph
from engine.lower.calls import Role
from engine.lower.copied import Copied, with_copies
from engine.text.errors import OtherPlanError, PlanRefusedError
from tests.helpers.graphs.unplanned_run import assert_same, random_feeds, run_unplanned
from tests.helpers.graphs.waiting import drawn_cheap, rectified, squashed, with_engine
from tests.helpers.onnx.onnx_writer import to_onnx

SLOW = ("fast=3KiB,10GB/s", "slow=64KiB,0.1GB/s")
PLAIN: dict[str, Any] = {"memories": SLOW, "optimise": 0, "nodes": 50}


RECTIFIED: dict[str, Any] = {**PLAIN, "memories": ["fast=2KiB,10GB/s", "slow=64KiB,1GB/s"]}


def test_a_tensor_is_computed_again_where_that_takes_less_than_to_copy_it() -> None:
    plan = engine.make_plan(rectified(), **RECTIFIED)
    report = plan.report()
    (transfers,) = report.transfers
    (again,) = transfers.recomputed
    assert (again.tensor, again.memory, again.bytes) == ("relu_0", "fast", 1024)
    call = plan.lowered.instructions[again.tick - 1]
    assert call.name == "relu_0/again" and plan.lowered.values[call.outputs[0]].role is Role.AGAIN
    assert 0 < transfers.recompute_seconds < 0.01 * transfers.seconds < 0.007 * transfers.unmoved_seconds
    (placed,) = plan.memories
    assert transfers.lower_bound == placed.assigned.bound + transfers.recompute_seconds
    assert min(way.seconds for way in transfers.baselines) == pytest.approx(transfers.seconds)
    assert report.operators == len(plan.lowered.graph.operators) + 1
    assert "2 moves between memories, 2.00 KiB and 1 tensor computed again; without: " in str(report)
    (kept,) = engine.make_plan(rectified(), **RECTIFIED, place={"relu_0": "!slow"}).report().transfers
    assert not kept.recomputed and kept.seconds > transfers.seconds
    (copied,) = engine.make_plan(rectified(), **RECTIFIED, recompute=False).report().transfers
    assert copied.moves and not copied.recomputed and copied.seconds > transfers.seconds


@pytest.mark.parametrize("seed", [3, 10, 19])
@pytest.mark.parametrize("kind", ["in turn", "copy engine", "edges"])
def test_drawn_networks_give_the_same_bits_and_take_less(seed: int, kind: str) -> None:
    graph, feeds = drawn_cheap(seed), random_feeds(drawn_cheap(seed))
    options = PLAIN | {"memories": with_engine(*SLOW)} if kind == "copy engine" else PLAIN
    options |= {"parallel": "edges"} if kind == "edges" else {}
    plan = engine.make_plan(graph, **options)
    assert_same(plan.executable(debug="poison").run(feeds), run_unplanned(graph, feeds))
    (transfers,) = plan.report().transfers
    (without,) = engine.make_plan(graph, **options, recompute=False).report().transfers
    assert not without.recomputed and transfers.seconds <= without.seconds
    assert transfers.seconds < without.seconds or not transfers.recomputed


def test_what_rules_name_is_not_computed_again_for_others(tmp_path: Path) -> None:
    options: dict[str, Any] = {**PLAIN, "memories": ["fast=2624,10GB/s", "slow=3008,0.5GB/s"]}
    graph = drawn_cheap(23)
    (again,) = engine.make_plan(graph, **options).report().transfers
    assert [tensor.tensor for tensor in again.recomputed[:2]] == [
        "sigmoid_0",
        "mul_0",
    ]  # the second one reads the first
    proto = to_onnx(graph)
    for number, node in enumerate(proto.graph.node):
        node.name = f"node_{number}"  # in models, names of operators and of tensors differ
    onnx.save(proto, tmp_path / "named.onnx")
    for where in ("fast", "slow"):
        plan = engine.make_plan(engine.load_onnx(tmp_path / "named.onnx"), **options, place={"node_0": where})
        assert "sigmoid_0" not in {tensor.tensor for tensor in plan.report().transfers[0].recomputed}


def test_training_computes_activations_again_and_learns_the_same() -> None:
    graph = squashed()
    exe = engine.compile(graph, **PLAIN | {"memories": ["fast=4KiB,10GB/s", "slow=1MiB,0.5GB/s"]})
    plain, feeds = engine.compile(graph, optimise=0), random_feeds(graph)
    again = [tensor.tensor for tensor in exe.report().transfers[0].recomputed]
    assert again == ["add_1", "sigmoid_1", "add_0", "sigmoid_0"]
    for _ in range(3):
        assert_same(exe.run(feeds), plain.run(feeds))
    assert_same(exe.parameters, plain.parameters)


def test_a_saved_plan_computes_the_same_again(tmp_path: Path) -> None:
    exe, feeds = engine.compile(rectified(), **RECTIFIED), random_feeds(rectified())
    followed: Executable = pickle.loads(pickle.dumps(exe))
    assert followed.plan.is_followed and followed.plan.moved == exe.plan.moved
    assert followed.report().transfers[0].recomputed == exe.report().transfers[0].recomputed
    assert_same(followed.run(feeds), exe.run(feeds))
    plain, planned = tmp_path / "plain.onnx", tmp_path / "planned.onnx"
    onnx.save(to_onnx(rectified()), plain)
    engine.save_plan(engine.make_plan(engine.load_onnx(plain), **RECTIFIED), plain, planned)
    again = engine.compile(engine.load_onnx(planned), embedded=engine.load_plan(planned, required=True), **RECTIFIED)
    assert any(copied.again for moved in again.plan.moved for copied in moved.copies)
    with pytest.raises(OtherPlanError, match="computes values again, and recompute is off"):
        engine.compile(
            engine.load_onnx(planned),
            embedded=engine.load_plan(planned, required=True),
            recompute=False,
            **RECTIFIED,
        )
    proto = onnx.load(planned)
    (entry,) = (p for p in proto.metadata_props if p.key == "pkg.arenaplan.moves")
    for wrong in ([9], [-1], 3):
        entry.value = json.dumps(json.loads(entry.value) | {"computed": wrong})
        onnx.save(proto, planned)
        with pytest.raises(PlanRefusedError, match=r"'pkg\.arenaplan\.moves'"):
            engine.load_plan(planned)


def test_what_cannot_be_computed_again_is_refused() -> None:
    graph = Graph("refused")
    weight = graph.constant(np.ones((4, 4), np.float32), "w")
    y = ops.tanh(graph.input("x", (4, 4)) @ weight)
    graph.output(y, "y")
    graph.output(ops.reshape(y, (16,)), "flat")
    lowered = engine.make_plan(graph, optimise=0).lowered
    assert with_copies(lowered, [Copied("tanh_0", 2, again=True)])[0].instructions[2].name == "tanh_0/again"
    for name in ("x", "reshape_0"):
        with pytest.raises(OtherPlanError, match=f"'{name}' cannot be computed again"):
            with_copies(lowered, [Copied(name, 3, again=True)])


def test_a_parameter_that_is_updated_is_not_read_again() -> None:
    graph = squashed(2)
    plan = engine.make_plan(graph, **PLAIN | {"memories": ["fast=4KiB,10GB/s", "slow=1MiB,0.5GB/s"]})
    last = len(plan.lowered.instructions)
    first = next(call for call in plan.lowered.calls if "w0" in {plan.lowered.values[v].source for v in call.inputs})
    with pytest.raises(OtherPlanError, match=r"comes too late: .* updates parameter 'w0' in place"):
        with_copies(plan.lowered, [Copied(plan.lowered.values[first.outputs[0]].name, last, again=True)])
