"""The preset `placements`: its numbers are those of plans, its chart, its table, and models at a batch."""

import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from allocator.derive import chunks as memory
from allocator.solvers import solve
from engine import zoo
from engine.graph.graph import Graph
from engine.lower.steps import to_program
from engine.sweeps.chart import sweep_chart
from engine.sweeps.measures import MEASURES, PLACEMENTS
from engine.sweeps.placements import HEAPS, place
from engine.sweeps.placements_chart import SERIES
from engine.sweeps.rows import Row
from engine.sweeps.sweep import sweep
from engine.sweeps.table import Table
from engine.text.errors import EngineError, OptionError
from engine.zoo import mobilenet_v2
from tests.helpers.graphs.random_graphs import graphs

SIZES = st.integers(0, 2**44)
KIB, MIB = 2**10, 2**20


def made_up(model: str, batch: int, *sizes: int) -> Row:
    """Returns a row of five sizes, in the order of the bars, and the lower bound."""
    values = dict(zip([*(series.column for series in SERIES), "lower_bound"], sizes, strict=True))
    return {"task": f"{model} {batch}", "model": model, "batch": batch, "status": "ok", "error": None, **values}


def table_of(*rows: Row) -> Table:
    return Table(("model", "batch", *MEASURES[PLACEMENTS].columns), ("batch",), rows, PLACEMENTS)


@settings(max_examples=10, deadline=None)
@given(graphs(most=8))
def test_every_way_to_place_a_graph_needs_what_its_bounds_say(graph: Graph) -> None:
    row = place(graph, repeats=1)
    assert tuple(sorted(row)) == tuple(sorted(MEASURES[PLACEMENTS].columns))
    assert row["lower_bound"] <= row["arena_bytes"]
    assert row["tflite_bound"] <= row["tflite_bytes"] <= row["naive_bytes"] + 64 * len(graph.vars) * 2
    assert row["refcount_bytes"] <= min(row[f"{heap}_bytes"] for heap in HEAPS)
    assert row["arena_bytes"] == engine.make_plan(graph, optimise=0).arena_bytes


def test_unoptimised_means_that_no_two_tensors_share_a_byte_and_tflite_greedy_by_size_without_overwrites() -> None:
    graph = mobilenet_v2(1, 32)
    row = place(graph, repeats=1)
    apart = engine.make_plan(graph, views=False, overwrite=False, reuse=False, optimise=0)
    sizes = [v.spec.nbytes for v in apart.lowered.values if v.id in apart.ids]
    assert 0 <= sum(-(-size // 64) * 64 for size in sizes) - row["unoptimised_bytes"] < 64
    plan = engine.make_plan(graph, optimise=0)
    chunks = memory.derive(to_program(plan.lowered, plan.ids), overwrite=False)
    assert row["tflite_bytes"] == solve(memory.to_problem(chunks, 64, 0), "greedy_by_size").arena_bytes


def test_placements_have_the_numbers_of_the_plans() -> None:
    graph = zoo.squeezenet(image=64)
    row, plan = place(graph, repeats=1), engine.make_plan(graph, optimise=0)
    plain = engine.make_plan(graph, strategy="greedy_by_size", overwrite=False, nest=False, optimise=0)
    assert row["weights_bytes"] == sum(entry.nbytes for entry in graph.constants.entries.values())
    assert row["naive_bytes"] == plan.report().naive_bytes
    assert row["naive_bytes"] > row["refcount_bytes"] == plain.report().dynamic_peak_bytes
    assert (row["arena_bytes"], row["lower_bound"]) == (plan.arena_bytes, plan.plan.lower_bound)
    assert row["arena_bytes"] < row["tflite_bytes"] == plain.arena_bytes
    assert row["saved"] == 1 - row["arena_bytes"] / row["unoptimised_bytes"]


def test_a_batch_that_no_machine_could_hold_is_planned_all_the_same() -> None:
    row = place(mobilenet_v2(2_000_000, 32), repeats=1)
    assert row["arena_bytes"] > 2**37


def test_the_table_of_placements_has_each_size_in_its_column_and_notes_below() -> None:
    sizes = (n * KIB for n in (40, 17, 13, 12, 10, 9))
    row = {**made_up("net", 2, *sizes), "weights_bytes": 5 * KIB, "saved": 0.75, "plan_seconds": 0.0345}
    names, line, *notes = table_of(row).text().splitlines()
    cells = [[cell.strip() for cell in text.split("  ") if cell.strip()] for text in (names, line)]
    assert dict(zip(*cells, strict=True)) == {
        "model": "net",
        "batch": "2",
        "weights": "5.00 KiB",
        "unoptimised": "40.00 KiB",
        "pytorch": "17.00 KiB",
        "refcount": "13.00 KiB",
        "tflite": "12.00 KiB",
        "arena": "10.00 KiB",
        "lower bound": "9.00 KiB",
        "saved": "75.00%",
        "plan": "34.5 ms",
    }
    assert tuple(notes) == MEASURES[PLACEMENTS].notes
    assert table_of(row).summary() == ""


@settings(max_examples=6, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 2), *[SIZES] * 6), min_size=1, max_size=5))
def test_bars_are_as_long_as_their_bytes_or_cut_and_carry_the_number(sizes: list[tuple[int, ...]]) -> None:
    pytest.importorskip("matplotlib")
    rows = [made_up(f"m{i}", *numbers) for i, numbers in enumerate(sizes)]
    figure = sweep_chart(table_of(*rows))
    for axes, batch in zip(figure.axes, dict.fromkeys(row["batch"] for row in rows), strict=True):
        unit = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}[axes.get_xlabel()]
        end = axes.get_xlim()[1]
        lengths = [row[s.column] / unit for row in rows if row["batch"] == batch for s in SERIES]
        assert [bar.get_width() for bar in axes.patches] == pytest.approx([min(length, end) for length in lengths])
        assert [text.get_text() for text in axes.texts] == [f"{length:.2f}" for length in lengths]
        assert sum(length <= end for length in lengths) >= len(lengths) * 4 / 5


@pytest.mark.parametrize("batches", [(1,), (1, 2, 4)])
def test_texts_on_a_chart_of_placements_do_not_overlap(batches: tuple[int, ...]) -> None:
    pytest.importorskip("matplotlib")
    rows = [
        made_up(model, batch, *(size * MIB * batch for size in sizes))
        for model, sizes in (("a_long_name_of_a_network", (162, 24, 10, 9, 7, 7)), ("b", (160, 30, 25, 25, 25, 25)))
        for batch in batches
    ]
    figure = sweep_chart(table_of(*rows))
    figure.draw_without_rendering()
    boxes = [t.get_window_extent() for axes in figure.axes for t in (*axes.texts, axes.title, *axes.get_yticklabels())]
    boxes += [legend.get_window_extent() for legend in figure.legends]
    page = figure.bbox
    assert all(page.x0 <= b.x0 and b.x1 <= page.x1 and page.y0 <= b.y0 and b.y1 <= page.y1 for b in boxes)
    assert [(i, j) for i, a in enumerate(boxes) for j, b in enumerate(boxes[:i]) if a.overlaps(b)] == []


def test_a_chart_of_placements_without_matplotlib_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(EngineError, match=r"pip install -e '\.\[charts\]'"):
        sweep_chart(table_of(made_up("m", 1, *range(6))))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"preset": "nothing"}, "'nothing' is no preset; one of: placements, tricks"),
        ({"order": "memory"}, "leave out 'order'"),
        ({"vary": {"strategy": ["best"]}}, "leave out 'strategy'"),
        ({"budget": "1 MiB"}, "leave out 'budget'"),
        ({"recompute": False}, "leave out 'recompute'"),
        ({"runs": 1}, "leave out 'runs'"),
    ],
)
def test_a_preset_takes_no_options_of_planning(options: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        sweep(**{"preset": PLACEMENTS, **options})


@pytest.mark.slow
def test_the_networks_of_the_preset_are_planned_to_a_proof_at_both_batches() -> None:
    rows = sweep(preset=PLACEMENTS, on="here").rows
    names = ("zoo:vgg16", "zoo:resnet50", "zoo:mobilenet_v2")
    assert [(row["model"], row["batch"]) for row in rows] == [(name, batch) for name in names for batch in (1, 128)]
    for row in rows:
        assert row["arena_bytes"] == row["lower_bound"] <= row["refcount_bytes"] <= row["tflite_bytes"]
        assert row["arena_bytes"] < 0.25 * row["unoptimised_bytes"]
