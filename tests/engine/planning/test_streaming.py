"""Weights that are copied into a fast memory for the calls that read them: same bits, and never longer transfers."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from attrs import evolve

import engine
import ops
from engine import Executable, Graph
from engine.check import check_data_flow
from engine.graph.deferred import Deferred
from engine.lower.calls import Role, Storage
from engine.lower.copied import Copied, with_copies
from engine.lower.streamed import streamed
from engine.text.errors import DataFlowError, OtherPlanError, PlanRefusedError
from tests.helpers.graphs.striped import BOARD, striped
from tests.helpers.graphs.unplanned_run import assert_same, random_feeds, run_unplanned
from tests.helpers.onnx.onnx_writer import to_onnx

PLAIN: dict[str, Any] = {"memories": BOARD, "optimise": 0, "nodes": 50}


@pytest.mark.parametrize("prepack", [True, False], ids=["packed", "as they are"])
def test_a_weight_has_a_slot_in_the_fast_memory_while_it_is_read(prepack: bool) -> None:
    plan = engine.make_plan(striped(), prepack=prepack, **PLAIN)
    (transfers,) = plan.report().transfers
    moves = [(move.tensor, move.leaves, move.enters, move.bytes) for move in transfers.moves]
    assert moves == [(name, "flash", "fast", 4096) for name in ("w0", "w1", "w2")]
    assert transfers.seconds < 0.5 * transfers.unmoved_seconds
    rows = {value.name for value in plan.lowered.values if value.role is Role.PACKED and value.source == "w0"}
    assert rows == ({"w0/packed", "w0/copied"} if prepack else set())
    for move in transfers.moves:
        (copy,) = plan.lowered.instructions[move.tick - 1].outputs
        readers = [call.tick for call in plan.lowered.calls if copy in call.inputs]
        assert len(readers) == 4 and min(readers) > move.tick
    (share,) = (share for share in transfers.memories if share.name == "flash")
    assert share.weights_bytes == 3 * 4096 and share.seconds == pytest.approx(3 * 4096 / 1e8)


@pytest.mark.parametrize("place", [{"constants": "flash"}, {"w*": "flash"}, {"w0": "!fast", "w1": "flash"}], ids=str)
@pytest.mark.parametrize("prepack", [True, False], ids=["packed", "as they are"])
def test_a_weight_that_rules_speak_of_stays_where_they_say_and_has_a_slot(place: Any, prepack: bool) -> None:
    options = {**PLAIN, "memories": ["fast=64KiB,10GB/s", BOARD[1]], "place": place, "prepack": prepack}
    exe = engine.compile(striped(), debug="poison", **options)
    (transfers,) = exe.report().transfers
    ruled = ["w0", "w1"] if "w0" in place else ["w0", "w1", "w2"]
    assert [(move.tensor, move.leaves, move.enters) for move in transfers.moves] == [
        (name, "flash", "fast") for name in ruled
    ]
    (flash,) = (share for share in transfers.memories if share.name == "flash")
    assert [weight.name for weight in flash.weights] == ruled and transfers.seconds < transfers.unmoved_seconds
    feeds = random_feeds(striped())
    for each in (exe, pickle.loads(pickle.dumps(exe))):
        assert_same(each.run(feeds), run_unplanned(striped(), feeds))


def test_a_plan_with_slots_gives_the_same_bits_in_all_ways_to_run_and_is_followed(tmp_path: Path) -> None:
    graph = striped()
    feeds = random_feeds(graph)
    wanted = run_unplanned(graph, feeds)
    exes = [engine.compile(graph, debug=debug, **PLAIN) for debug in ("", "poison")]
    followed: Executable = pickle.loads(pickle.dumps(exes[0]))
    assert followed.plan.is_followed and followed.plan.moved == exes[0].plan.moved and exes[0].plan.moved
    apart = exes[0].plan.executable(arena={"fast": np.zeros(1 << 15, np.uint8)})
    in_files = (BOARD[0], f"{BOARD[1]},folder={tmp_path}")
    tier = engine.compile(graph, **{**PLAIN, "memories": in_files})
    assert tier.report().transfers[0].moves
    for exe in (*exes, followed, apart, tier, exes[0]):
        assert_same(exe.run(feeds), wanted)
    plain, planned = tmp_path / "plain.onnx", tmp_path / "planned.onnx"
    onnx.save(to_onnx(graph), plain)
    engine.save_plan(engine.make_plan(engine.load_onnx(plain), **PLAIN), plain, planned)
    required = engine.load_plan(planned, required=True)
    again = engine.compile(engine.load_onnx(planned), embedded=required, **PLAIN)
    assert required is not None and any(required.read_until) and again.plan.moved
    (array,) = again.run(feeds).values()
    assert array.tobytes() == wanted["y"].tobytes()
    proto = onnx.load(planned)
    (entry,) = (p for p in proto.metadata_props if p.key == "pkg.arenaplan.moves")
    entry.value = entry.value.replace('"read_until":[', '"read_until":[1,')
    onnx.save(proto, planned)
    with pytest.raises(PlanRefusedError, match=r"'pkg\.arenaplan\.moves' read_until: 4 ticks for 3 copies"):
        engine.load_plan(planned)


def test_a_copy_engine_brings_weights_that_are_read_once_while_other_calls_run() -> None:
    rng, graph = np.random.default_rng(1), Graph("chain")
    y = graph.input("x", (32, 32))
    for layer in range(6):
        y = ops.tanh(y @ graph.constant(rng.standard_normal((32, 32)).astype(np.float32), f"w{layer}"))
    graph.output(y, "y")
    board = "fast=18KiB,10GB/s,copy-engine", "flash=1MiB,1GB/s,read-only,copy-engine"
    exe = engine.compile(graph, debug="poison", **{**PLAIN, "memories": board})
    (transfers,) = exe.report().transfers
    assert [move.leaves for move in transfers.moves] == ["flash"] * len(transfers.moves) and len(transfers.moves) > 2
    assert transfers.seconds < 0.9 * transfers.unmoved_seconds
    feeds = random_feeds(graph)
    wanted = run_unplanned(graph, feeds)
    for each in (exe, exe.plan.executable(), pickle.loads(pickle.dumps(exe))):
        assert_same(each.run(feeds), wanted)


def test_pages_go_back_to_the_system_while_packed_weights_go_to_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = engine.make_plan(striped(), **{**PLAIN, "memories": (BOARD[0], f"{BOARD[1]},folder={tmp_path}")})
    trimmed = list[int]()
    monkeypatch.setattr("engine.executor.binding._MOST_FREED", 4000)
    monkeypatch.setattr("engine.executor.binding.trim", lambda: trimmed.append(1))
    plan.executable()
    assert len(trimmed) == 3


def test_a_weight_comes_again_where_others_need_its_slot_in_between() -> None:
    rng, graph = np.random.default_rng(1), Graph("in turn")
    one, other = (graph.constant(rng.standard_normal((32, 32)).astype(np.float32), name) for name in "ab")
    y = graph.input("x", (8, 32))
    for weight in (one, other, one, other):
        for _ in range(5):
            y = ops.tanh(y @ weight)
    graph.output(y, "y")
    exe = engine.compile(graph, debug="poison", **{**PLAIN, "memories": ("fast=7KiB,10GB/s", BOARD[1])})
    (transfers,) = exe.report().transfers
    assert [move.tensor for move in transfers.moves].count("a") + len(transfers.moves) > 2
    feeds = random_feeds(graph)
    assert_same(exe.run(feeds), run_unplanned(graph, feeds))


@pytest.mark.parametrize("options", [{"parallel": "levels"}, {"reuse": False}], ids=str)
def test_no_weight_has_a_slot_where_calls_run_in_levels_or_bytes_are_not_reused(options: dict[str, Any]) -> None:
    options = {**PLAIN, "memories": ("fast=64KiB,10GB/s", BOARD[1]), "place": {"constants": "flash"}} | options
    (transfers,) = engine.make_plan(striped(), **options).report().transfers
    assert not transfers.moves


def test_what_is_seen_through_a_view_or_is_an_output_has_no_slot() -> None:
    rng, graph = np.random.default_rng(1), Graph("kinds")
    names = ("read", "seen", "out", "joined")
    read, seen, out, joined = (graph.constant(rng.standard_normal((4, 4)).astype(np.float32), name) for name in names)
    x = graph.input("x", (4, 4))
    y = x + read + ops.reshape(seen, (16,))[:4] + out
    graph.output(ops.concat([y, joined], axis=0), "y")
    graph.output(out, "z")
    lowered = engine.make_plan(graph, optimise=0).lowered
    assert "read" in {lowered.values[v].name for v in streamed(lowered)}
    assert not {lowered.values[v].name for v in streamed(lowered)} & {"seen", "out"}


@pytest.mark.parametrize(
    "copied", [Copied("w0", 1), Copied("w0", 5, read_until=5), Copied("w0", 1, read_until=999)], ids=str
)
def test_copies_of_weights_that_nothing_can_read_are_refused(copied: Copied) -> None:
    lowered = engine.make_plan(striped(), optimise=0).lowered
    with pytest.raises(OtherPlanError, match="'w0'"):
        with_copies(lowered, [copied])


def test_the_judge_sees_a_slot_with_another_weight_and_one_that_is_packed_otherwise() -> None:
    plan = engine.make_plan(striped(), **PLAIN)
    check_data_flow(plan)
    lowered, entries = plan.lowered, dict(plan.lowered.constants.entries)
    rows = [v.id for v in lowered.values if v.role is Role.PACKED and v.storage is Storage.CONSTANT]
    swapped = entries | {rows[0]: entries[rows[1]], rows[1]: entries[rows[0]]}
    unpacked = entries | {rows[0]: Deferred(lowered.values[rows[0]].spec, lambda: np.zeros(4096, np.uint8))}
    for wrong in (swapped, unpacked):
        with pytest.raises(DataFlowError, match="is not what its kernel packs"):
            check_data_flow(evolve(plan, lowered=evolve(lowered, constants=wrong)))
    slots = [v.id for v in lowered.values if v.role is Role.PACKED and v.storage is Storage.ARENA]
    calls = [
        evolve(call, inputs=tuple({slots[0]: slots[1], slots[1]: slots[0]}.get(v, v) for v in call.inputs))
        if call.name == "matmul_4"
        else call
        for call in lowered.instructions
    ]
    with pytest.raises(DataFlowError, match="matmul_4"):
        check_data_flow(evolve(plan, lowered=evolve(lowered, instructions=tuple(calls))))
