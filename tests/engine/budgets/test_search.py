"""The search for the cheapest way to a budget: what it answers can be planned, fits, and costs what it says."""

from pathlib import Path

import numpy as np
import pytest

import arenaplan as ap
from arenaplan import ops
from engine.budgets.ladder import Ladder
from tests.engine.passes.cascade.random_chains import large_images
from tests.helpers.onnx.convolutions import convolutions


def _perceptron(rows: int = 64) -> ap.Graph:
    random = np.random.default_rng(0)
    graph = ap.Graph("perceptron")
    x = graph.input("x", (1, 16))
    for wide in (rows, 4 * rows, rows):
        x = ops.tanh(x @ random.standard_normal((x.shape[1], wide)).astype(np.float32))
    graph.output(x, "y")
    return graph


def _deep() -> ap.Graph:
    graph = ap.Graph("deep")
    x = graph.input("x", (64, 16))
    for i in range(6):
        x = ops.tanh(x @ graph.parameter(np.eye(16, dtype=np.float32), f"w{i}"))
    ap.train_step(graph, ops.reduce_mean(x * x, axes=None, keepdims=False), ap.SGD(0.1))
    return graph


def _planned(graph: ap.Graph, ladder: Ladder) -> int:
    return ap.make_plan(graph, **ladder.options).arena_bytes


def test_a_budget_that_is_met_as_asked_takes_no_step() -> None:
    ladder = ap.budget_ladder(_perceptron(), "1 MiB")
    assert ladder.fits and not ladder.best.steps and ladder.rungs == (ladder.asked,)
    assert "fits in 1.00 MiB as asked" in str(ladder)


@pytest.mark.slow
def test_the_answer_fits_and_is_the_end_of_the_ladder(tmp_path: Path) -> None:
    graph = ap.load_onnx(convolutions(tmp_path), shapes={"x": (1, 8, 48, 48)})
    asked = ap.make_plan(graph).arena_bytes
    ladder = ap.budget_ladder(graph, asked * 9 // 10)
    assert ladder.fits and ladder.rungs[0] is ladder.asked and ladder.rungs[-1].arena_bytes == ladder.best.arena_bytes
    assert {step.family for step in ladder.best.steps} & {"storage", "cascades"}
    assert _planned(graph, ladder) == ladder.best.arena_bytes <= asked * 9 // 10
    (run,) = ladder.best.ran
    assert run.seconds > 0 and run.difference < 0.1
    assert all(
        len(now.steps) == len(before.steps) + 1 for before, now in zip(ladder.rungs, ladder.rungs[1:], strict=False)
    )


def test_values_are_computed_again_where_that_is_what_fits() -> None:
    graph = _deep()
    budget = ap.make_plan(graph).arena_bytes * 7 // 10
    ladder = ap.budget_ladder(graph, budget)
    assert ladder.fits and _planned(graph, ladder) <= budget
    with pytest.raises(ap.BudgetError):
        ap.make_plan(graph, budget=budget, recompute=False)
    assert ladder.best.again > 0 or ladder.best.steps


def test_where_nothing_fits_the_nearest_plan_is_told_with_what_holds_it() -> None:
    graph = _perceptron()
    least = 64 * 4  # the output
    with pytest.raises(ap.BudgetError, match=r"at least 256 bytes .*, as output 'y' is whole when a run ends"):
        ap.budget_ladder(graph, least - 1)
    ladder = ap.budget_ladder(graph, least)
    assert not ladder.fits and ladder.best is ladder.nearest and ladder.best.arena_bytes > least
    assert ladder.best.arena_bytes <= min(way.arena_bytes for way in (ladder.asked, *ladder.alone))
    assert ladder.held_by and sum(t.bytes for t in ladder.held_by) <= ladder.best.arena_bytes
    assert _planned(graph, ladder) <= ladder.best.arena_bytes
    assert "what holds it" in str(ladder) and "too much" in str(ladder)


@pytest.mark.slow
def test_steps_that_work_against_each_other_need_more_together(tmp_path: Path) -> None:
    graph = ap.load_onnx(convolutions(tmp_path, size=24), shapes={"x": (1, 8, 24, 24)})
    ladder = ap.budget_ladder(graph, graph.inputs["x"].spec.nbytes)
    assert ladder.clashes
    for clash in ladder.clashes:
        assert len(clash.both.steps) == 2 and clash.better.steps[0] in clash.both.steps
        assert clash.both.arena_bytes > clash.better.arena_bytes < ladder.asked.arena_bytes
        (better,) = clash.better.steps
        assert ap.make_plan(graph, **better.changes).arena_bytes == clash.better.arena_bytes
        assert f"{better.how} alone: " in str(ladder)


@pytest.mark.slow
def test_a_plan_for_another_processor_is_estimated_and_not_run(tmp_path: Path) -> None:
    graph = ap.load_onnx(convolutions(tmp_path), shapes={"x": (1, 8, 48, 48)})
    asked = ap.make_plan(graph, target="none").arena_bytes
    ladder = ap.budget_ladder(graph, asked * 9 // 10, target="none")
    assert ladder.fits and not ladder.best.ran and not ladder.asked.ran and not ladder.is_run
    assert "this plan does not run here" in str(ladder)


def test_a_graph_with_open_lengths_is_refused() -> None:
    graph = ap.Graph()
    graph.output(ops.relu(graph.input("x", ("n", 4))), "y")
    with pytest.raises(ap.EngineError, match="lengths are given for: n"):
        ap.budget_ladder(graph, 64)


@pytest.mark.slow
def test_every_way_that_a_budget_leads_to_is_part_of_the_ladder() -> None:
    graph = large_images()
    asked = ap.make_plan(graph).arena_bytes
    budget = asked * 4 // 10
    planned = ap.make_plan(graph, budget=budget)
    ladder = ap.budget_ladder(graph, budget, optimise=3)
    assert planned.optimisation[0].cascades and ladder.fits
    assert ladder.by_budget and planned.options.cascade in {way.steps[0].changes["cascade"] for way in ladder.by_budget}
    data = ladder.to_json()
    below = [rung["needed_below"] for rung in data["by_budget"]]
    assert below[0] == asked and below == sorted(below, reverse=True)
    assert all(rung["arena_bytes"] < rung["needed_below"] for rung in data["by_budget"])
    assert data["ladder"][0]["needed_below"] is None and data["ladder"][1]["needed_below"] == asked
    for rung in data["by_budget"]:
        budget = rung["needed_below"] - 1
        assert ap.make_plan(graph, budget=budget).arena_bytes == rung["arena_bytes"]
    assert "what a budget alone leads to:" in str(ladder)
