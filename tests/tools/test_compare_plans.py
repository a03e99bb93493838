"""tools/compare_plans.py: the rows, their chart, models at a batch, and what can go wrong."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from allocator.derive import chunks as memory
from allocator.solvers import solve
from engine.cli.charts import SERIES, bar_chart
from engine.cli.placements import HEAPS, Placements, place, table
from engine.graph.graph import Graph
from engine.lower.steps import to_program
from engine.models.batches import at_batch
from engine.text.errors import EngineError, ModelError
from engine.zoo import mobilenet_v2
from tests.helpers.graphs.random_graphs import graphs
from tests.helpers.onnx import small_models
from tests.helpers.onnx.saved_models import save_perceptron
from tools import compare_plans

Capture = pytest.CaptureFixture[str]
SMALL = ["--shape", "x=1,3,32,32"]
KEYS = {
    *("model", "batch", "operators", "weights_bytes", "unoptimised_bytes", "naive_bytes", "refcount_bytes"),
    *("tflite_bytes", "tflite_bound", "arena_bytes", "lower_bound", "strategy", "status", "planning_seconds"),
    "reserved_bytes",
}
SIZES = st.integers(0, 2**44)


def made_up(model: str, batch: int, *sizes: int) -> Placements:
    """Returns a row of five sizes, in the order of the bars, and the lower bound."""
    apart, pytorch, refcount, tflite, arena, bound = sizes
    reserved = dict.fromkeys(HEAPS, pytorch)
    sizes = (apart, apart, refcount, tflite, tflite, arena, bound)
    return Placements(model, batch, 1, 0, *sizes, "best", "feasible", 0.5, reserved)


def rows_of(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(path.read_text())["rows"]
    return rows


@settings(max_examples=15, deadline=None)
@given(graphs(most=8))
def test_every_way_to_place_a_graph_needs_what_its_bounds_say(graph: Graph) -> None:
    row = place(graph, "g", 1, repeats=1)
    assert row.lower_bound <= row.arena_bytes
    assert row.tflite_bound <= row.tflite_bytes <= row.naive_bytes + 64 * len(graph.vars) * 2
    assert row.refcount_bytes <= min(row.reserved_bytes.values(), default=0)
    assert row.arena_bytes == engine.make_plan(graph, optimise=0).arena_bytes


def test_not_optimised_means_that_no_two_tensors_share_a_byte() -> None:
    graph = mobilenet_v2(1, 32)
    plan = engine.make_plan(graph, views=False, overwrite=False, reuse=False, optimise=0)
    sizes = [v.spec.nbytes for v in plan.lowered.values if v.id in plan.ids]
    behind_the_last = sum(-(-size // 64) * 64 for size in sizes) - place(graph, "m", 1).unoptimised_bytes
    assert 0 <= behind_the_last < 64


def test_tflite_means_greedy_by_size_with_views_and_without_overwrites() -> None:
    graph = mobilenet_v2(1, 32)
    plan = engine.make_plan(graph, optimise=0)
    chunks = memory.derive(to_program(plan.lowered, plan.ids), overwrite=False)
    wanted = solve(memory.to_problem(chunks, 64, 0), "greedy_by_size")
    assert place(graph, "m", 1).tflite_bytes == wanted.arena_bytes


def test_a_batch_that_no_machine_could_hold_is_planned_all_the_same() -> None:
    row = place(mobilenet_v2(2_000_000, 32), "m", 2_000_000)
    assert row.arena_bytes > 2**37
    assert "GiB" in table([row])


def test_networks_and_batches_become_a_table_json_and_a_chart(tmp_path: Path, capsys: Capture) -> None:
    out, chart = tmp_path / "rows.json", tmp_path / "chart.png"
    options = ["--batch", "1,3", *SMALL, "--json", str(out), "--chart", str(chart)]
    assert compare_plans.main(["zoo:mobilenet_v2", "zoo:resnet50", *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[0] == "network"
    rows = rows_of(out)
    assert [(row["model"], row["batch"]) for row in rows] == [
        *(("zoo:mobilenet_v2", 1), ("zoo:mobilenet_v2", 3), ("zoo:resnet50", 1), ("zoo:resnet50", 3))
    ]
    assert [line.split()[:2] for line in lines[1:5]] == [[row["model"], str(row["batch"])] for row in rows]
    assert all(set(row) == KEYS and set(row["reserved_bytes"]) == set(HEAPS) for row in rows)
    assert rows[1]["arena_bytes"] == engine.make_plan(mobilenet_v2(3, 32), optimise=0).arena_bytes
    assert rows[1]["planning_seconds"] > 0
    assert chart.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["chart.png", "rows.json"]


def test_compare_plans_takes_all_of_the_zoo_by_default() -> None:
    assert [str(m) for m in compare_plans.MODELS] == ["zoo:vgg16", "zoo:resnet50", "zoo:mobilenet_v2"]


@settings(max_examples=6, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 2), *[SIZES] * 6), min_size=1, max_size=5))
def test_bars_are_as_long_as_their_bytes_or_cut_and_carry_the_number(sizes: list[tuple[int, ...]]) -> None:
    rows = [made_up(f"m{i}", *numbers) for i, numbers in enumerate(sizes)]
    figure = bar_chart(rows)
    for axes, batch in zip(figure.axes, dict.fromkeys(row.batch for row in rows), strict=True):
        unit = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}[axes.get_xlabel()]
        end = axes.get_xlim()[1]
        lengths = [s.bytes(row) / unit for row in rows if row.batch == batch for s in SERIES]
        assert [bar.get_width() for bar in axes.patches] == pytest.approx([min(length, end) for length in lengths])
        assert [text.get_text() for text in axes.texts] == [f"{length:.2f}" for length in lengths]
        assert sum(length <= end for length in lengths) >= len(lengths) * 4 / 5


@pytest.mark.parametrize("batches", [(1,), (1, 128), (1, 2, 4)])
def test_texts_on_a_compare_plans_chart_do_not_overlap(batches: tuple[int, ...]) -> None:
    mib = 2**20
    rows = [
        made_up(model, batch, *(size * mib * batch for size in sizes))
        for model, sizes in (("a_long_name_of_a_network", (162, 24, 10, 9, 7, 7)), ("b", (160, 30, 25, 25, 25, 25)))
        for batch in batches
    ]
    figure = bar_chart(rows)
    figure.draw_without_rendering()
    boxes = [t.get_window_extent() for axes in figure.axes for t in (*axes.texts, axes.title, *axes.get_yticklabels())]
    boxes += [legend.get_window_extent() for legend in figure.legends]
    page = figure.bbox
    assert all(page.x0 <= b.x0 and b.x1 <= page.x1 and page.y0 <= b.y0 and b.y1 <= page.y1 for b in boxes)
    assert [(i, j) for i, a in enumerate(boxes) for j, b in enumerate(boxes[:i]) if a.overlaps(b)] == []


def test_compare_plans_without_matplotlib_says_what_to_install(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(EngineError, match=r"pip install -e '\.\[charts\]'"):
        bar_chart([made_up("m", 1, *range(6))])
    chart = tmp_path / "chart.png"
    assert compare_plans.main(["zoo:mobilenet_v2", "--batch", "1", *SMALL, "--chart", str(chart)]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("compare_plans: error: ") and len(shown.splitlines()) == 1
    assert not chart.exists()


def test_an_onnx_file_takes_the_batch_where_it_leaves_one_open(tmp_path: Path) -> None:
    model = save_perceptron(tmp_path / "p.onnx", batch="n")
    assert [at_batch(model, n, {}).inputs["x"].shape for n in (1, 7)] == [(1, 8), (7, 8)]


def test_a_batch_that_a_file_fixes_is_the_only_one_it_takes(tmp_path: Path, capsys: Capture) -> None:
    model = save_perceptron(tmp_path / "p.onnx", batch=4)
    assert at_batch(model, 4, {}).inputs["x"].shape == (4, 8)
    assert compare_plans.main([str(model), "--batch", "4,5"]) == 1
    shown = capsys.readouterr().err
    assert "leaves no batch open" in shown and "[4, 8]" in shown and len(shown.splitlines()) == 1


def test_all_open_inputs_take_the_batch_and_other_open_dimensions_come_from_a_shape(tmp_path: Path) -> None:
    inputs = [small_models.value("a", ["n", "s"]), small_models.value("b", ["n", "s"]), small_models.value("c", [1, 3])]
    nodes = [small_models.node("Add", ["a", "b"], ["t"]), small_models.node("Add", ["t", "w"], ["u"])]
    nodes.append(small_models.node("Add", ["u", "c"]))
    proto = small_models.model(
        nodes, [*inputs, small_models.value("w", [1, 3])], initializers={"w": np.ones((1, 3), "f")}
    )
    path = tmp_path / "two.onnx"
    onnx.save(proto, path)
    graph = at_batch(path, 5, {"a": (1, 3)})
    assert {name: var.shape for name, var in graph.inputs.items()} == {"a": (5, 3), "b": (5, 3), "c": (1, 3)}
    assert graph.outputs["y"].shape == (5, 3)
    with pytest.raises(ModelError, match=r"more than the batch open: n \(axis 0 of 'a', axis 0 of 'b'\), s"):
        at_batch(path, 5, {})


def test_a_file_without_inputs_has_no_batch(tmp_path: Path) -> None:
    path = tmp_path / "none.onnx"
    onnx.save(small_models.model([small_models.node("Neg", ["w"])], [], initializers={"w": np.ones(2, "f")}), path)
    with pytest.raises(ModelError, match="no input"):
        at_batch(path, 1, {})


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["zoo:lenet"], 1, "zoo:vgg16"),
        (["/nowhere/nothing.onnx"], 1, "nothing.onnx"),
        (["--batch", "1,0"], 2, "'0'"),
        (["--batch", "2,2"], 2, "twice"),
        (["--batch", "many"], 2, "many"),
        (["--chart", "rows.svg"], 2, "a PNG file"),
        (["zoo:mobilenet_v2", "--shape", "z=1,2"], 1, "no input 'z'"),
        (["zoo:mobilenet_v2", *SMALL, "--batch", "1", "--json", "/nowhere/x.json"], 1, "no such folder"),
    ],
)
def test_compare_plans_tells_errors_in_one_line_and_an_exit_code(
    words: list[str], code: int, message: str, capsys: Capture
) -> None:
    assert compare_plans.main(words) == code
    shown = capsys.readouterr().err
    assert message in shown and shown.startswith("compare_plans: error: ") and len(shown.splitlines()) == 1


@pytest.mark.slow
def test_the_three_networks_at_both_batches_are_planned_to_a_proof(tmp_path: Path, capsys: Capture) -> None:
    assert compare_plans.main(["--json", str(tmp_path / "rows.json")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 9
    rows = rows_of(tmp_path / "rows.json")
    assert len(rows) == 6
    for row in rows:
        assert row["arena_bytes"] == row["lower_bound"] <= row["refcount_bytes"] <= row["tflite_bytes"]
        assert row["arena_bytes"] < 0.25 * row["unoptimised_bytes"]
