"""The preset `tricks`: what each trick saves, on random graphs, on networks, and what can go wrong."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import engine
import ops
from engine.graph.graph import Graph
from engine.sweeps.chart import sweep_chart
from engine.sweeps.measures import MEASURES
from engine.sweeps.measures import TRICKS as PRESET
from engine.sweeps.sweep import sweep
from engine.sweeps.table import Table
from engine.sweeps.tricks import BOTH, FORWARD, IN_PLACE, MODES, NONE, SHARING, TRAINING, TRICKS, tricks
from engine.zoo import squeezenet
from tests.helpers.graphs.random_graphs import graphs
from tests.helpers.onnx.saved_models import save_perceptron

KIB = 1024


def swept(models: list[str], **vary: list[Any]) -> Table:
    return sweep(models, preset=PRESET, vary=vary, on="here")


def made_up(mode: str, **values: Any) -> Table:
    row = {"task": mode, "model": "zoo:a", "batch": 1, "mode": mode, "status": "ok", "error": None, **values}
    return Table(("model", "batch", "mode", *MEASURES[PRESET].columns), ("batch", "mode"), (row,), PRESET)


@settings(max_examples=15, deadline=None)
@given(graphs(most=8))
def test_no_trick_costs_memory_and_both_save_most(graph: Graph) -> None:
    cost = tricks(graph)
    loss = 64 * (len(graph.vars) + 2)  # of alignment, where chunks of other sizes lie beside each other
    assert set(cost) == set(MEASURES[PRESET].columns)
    assert cost[NONE] + loss >= max(cost[IN_PLACE], cost[SHARING])
    assert min(cost[IN_PLACE], cost[SHARING]) + loss >= cost[BOTH] >= 0


def test_tricks_count_a_small_graph_as_by_hand() -> None:
    graph = Graph("four")
    x = graph.input("x", (16,))
    graph.output(ops.exp(ops.exp(ops.exp(ops.exp(x)))), "y")
    cost = tricks(graph)
    assert {name: cost[name] for name in TRICKS} == {NONE: 3 * 64, IN_PLACE: 64, SHARING: 2 * 64, BOTH: 64}
    assert (cost["operators"], cost["held_bytes"], cost["workspace_bytes"]) == (4, 0, 0)
    assert cost["both_over_none"] == 1 / 3


def test_parameters_are_counted_apart_from_what_is_internal() -> None:
    graph = Graph("step")
    w = graph.parameter([1.0] * 16, "w")
    graph.output(ops.reduce_sum(w), "y")
    graph.assign(w, -w)
    cost = tricks(graph)
    assert (cost["held_bytes"], cost["arena_bytes"]) == (16 * 8, 16 * 8)
    assert {name: cost[name] for name in TRICKS} == dict.fromkeys(TRICKS, 0)


def test_a_network_is_trained_and_run_forward_and_without_a_loss_run_forward_alone(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = str(save_perceptron(tmp_path / "perceptron.onnx", "n"))
    table = swept(["zoo:squeezenet", path, "zoo:nothing"], batch=[2], image=[32])
    training, forward, file, nothing = table.rows
    assert [row["mode"] for row in table.rows] == [TRAINING, FORWARD, FORWARD, FORWARD]
    assert training[BOTH] > forward[BOTH] and training[BOTH] <= training[NONE] / 2
    graph = squeezenet(2, 32)
    plan = engine.make_plan(graph, caller_buffers=(*graph.inputs, *graph.outputs), nest=False, optimise=0)
    assert forward["arena_bytes"] == plan.arena_bytes
    assert "no dimension 'image' open" in file["error"] and "no network 'zoo:nothing'" in nothing["error"]
    assert [axes.get_title() for axes in sweep_chart(table).axes] == list(MODES.values())
    assert swept([path], batch=[3]).good[0]["mode"] == FORWARD


def test_models_and_modes_that_make_no_sense_are_rows_with_errors(tmp_path: Path) -> None:
    path = str(save_perceptron(tmp_path / "perceptron.onnx", "n"))
    models = ["zoo:squeezenet?batch=4", "zoo:squeezenet?optimiser=adam", "zoo:squeezenet?training=true"]
    errors = [row["error"] for row in swept(models, batch=[2], mode=["training", "forward"], image=[32]).rows]
    assert "says that batch is 4, where it has to be 2" in errors[0]
    assert "says that optimiser is adam, where it has to be sgd" in errors[2]
    assert "says that training is true, where it has to be false" in errors[5]
    (row,) = swept([path], mode=["training"]).rows
    assert row["error"] == f"{path} has no loss, and is run forward alone"
    (row,) = swept([path], mode=["twice"]).rows
    assert row["error"] == "mode is training or forward, not 'twice'"


def test_the_table_of_tricks_has_each_size_in_its_column() -> None:
    sizes = dict(zip(TRICKS, (80 * KIB, 60 * KIB, 30 * KIB, 20 * KIB), strict=True))
    table = made_up(TRAINING, operators=21, held_bytes=7 * KIB, both_over_none=0.25, **sizes)
    names, line, *notes = table.text().splitlines()
    cells = [[cell.strip() for cell in text.split("  ") if cell.strip()] for text in (names, line)]
    assert dict(zip(*cells, strict=True)) == {
        "model": "zoo:a",
        "batch": "1",
        "mode": "training",
        "operators": "21",
        "held": "7.00 KiB",
        "none": "80.00 KiB",
        "in place": "60.00 KiB",
        "sharing": "30.00 KiB",
        "both": "20.00 KiB",
        "both over none": "25.00%",
    }
    assert tuple(notes) == MEASURES[PRESET].notes


def test_panels_have_a_bar_for_each_trick_and_one_scale() -> None:
    pytest.importorskip("matplotlib")
    rows = [
        made_up(mode, arena_bytes=1, **dict.fromkeys(TRICKS, size)).rows[0]
        for mode, size in ((TRAINING, 2**30), (FORWARD, 2**20))
    ]
    training, forward = sweep_chart(Table((), ("batch", "mode"), tuple(rows), PRESET)).axes
    assert len(training.containers) == len(forward.containers) == len(TRICKS)
    assert training.get_xlim() == forward.get_xlim()


@pytest.mark.slow
def test_the_claims_of_mxnet_hold_for_its_network() -> None:
    training, forward = sweep(preset=PRESET, on="here").rows
    assert training[BOTH] <= training[NONE] / 2
    assert forward[BOTH] <= forward[NONE] / 10
