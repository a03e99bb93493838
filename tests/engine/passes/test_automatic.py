"""The passes that run by default: every public way to a plan optimises at level 3, and the caller's graph stays."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from threadpoolctl import threadpool_limits

import engine
import ops
from engine import Graph, zoo
from engine.api import WATCHED_NODES
from engine.onnx.embedded import plan_of, texts_of
from engine.passes import automatic
from engine.passes.pipeline import Applied, applied_passes
from engine.planning.options import AUTO, DEFAULTS, HIGHEST_LEVEL, LEVELS, Options
from engine.planning.placed import PlacedPlan
from engine.planning.planner import plan_graph
from engine.saved.replay import embed
from engine.text.errors import OptionError
from engine.text.units import format_bytes
from ops.tensor.spec import Array
from tests.helpers.cli.cli_checks import Capture, data
from tests.helpers.graphs.growing_networks import audio_encoder, random_convolutions, side_branches
from tests.helpers.graphs.staged_graphs import staged_graph
from tests.helpers.graphs.unplanned_run import assert_same, random_feeds
from tests.helpers.onnx.small_models import model, node, value

SMALL = "zoo:resnet18?image=32"


def difference(actual: Array, wanted: Array) -> float:
    """Returns the largest difference over the largest value."""
    return float(np.abs(actual - wanted).max() / np.abs(wanted).max())


def small_network() -> Graph:
    return zoo.resnet18(image=32)


def test_the_default_level_is_the_highest_everywhere() -> None:
    assert (DEFAULTS.optimise, DEFAULTS.level, HIGHEST_LEVEL) == (AUTO, LEVELS[-1], 3)
    graph = small_network()
    text = engine.optimise(graph, 3).text()
    assert engine.optimise(graph).text() == text
    assert engine.make_plan(graph).lowered.graph.text() == text
    assert engine.compile(graph).plan.lowered.graph.text() == text
    assert engine.make_plan(graph, optimise=0).lowered.graph is graph


def test_the_graph_of_the_caller_stays_as_it_was() -> None:
    graph = small_network()
    before, operators = graph.text(), graph.operators
    exe = engine.compile(graph)
    assert exe.graph is graph and graph.text() == before and graph.operators == operators
    assert len(exe.plan.lowered.graph.operators) < len(operators)


@pytest.mark.parametrize("level", LEVELS)
def test_outputs_of_every_level_are_within_the_tolerance(level: int) -> None:
    graph = small_network()
    feeds = random_feeds(graph)
    plain, optimised = (engine.compile(graph, optimise=n).run(feeds)["y"] for n in (0, level))
    assert difference(optimised, plain) < 1e-4
    if level < 2:
        assert plain.tobytes() == optimised.tobytes()


def test_a_graph_that_was_optimised_before_is_planned_as_it_is() -> None:
    graph = engine.optimise(small_network())
    plan = engine.make_plan(graph)
    assert plan.lowered.graph is graph
    assert plan.arena_bytes == engine.make_plan(graph, optimise=0).arena_bytes
    assert "optimised at level 3: as many operators, nothing to change" in str(plan.report())


def test_a_training_step_is_optimised_and_its_parameters_keep_their_names() -> None:
    def losses(**options: int) -> list[float]:
        step = Graph("classifier")
        rng = np.random.default_rng(0)
        x, label = step.input("x", (8, 6)), step.input("label", (8,), "int64")
        first = step.parameter(rng.normal(0, 0.3, (6, 16)).astype(np.float32), "first")
        last = step.parameter(rng.normal(0, 0.3, (16, 3)).astype(np.float32), "last")
        loss = ops.softmax_cross_entropy(ops.relu(ops.identity(x @ first)) @ last, label)
        engine.train_step(step, loss, engine.SGD(0.5))
        exe = engine.compile(step, optimise=options["optimise"]) if options else engine.compile(step)
        exe.load({"first": exe.parameters["first"] * 2})
        feeds = {"x": rng.standard_normal((8, 6)).astype(np.float32), "label": rng.integers(0, 3, 8)}
        count = len(exe.plan.lowered.graph.operators)
        assert count < len(step.operators) if not options else count == len(step.operators)
        return [float(exe.run(feeds)["loss"]) for _ in range(5)]

    np.testing.assert_allclose(losses(), losses(optimise=0), rtol=1e-5)


def test_sizes_that_are_not_known_are_no_error() -> None:
    graph = Graph("open")
    graph.output(ops.relu(ops.identity(graph.input("x", ("n", 4)))), "y")
    x = np.ones((3, 4), np.float32)
    np.testing.assert_array_equal(engine.compile(graph)(x=x)["y"], x)
    staged = staged_graph((0, 1), (True,), "n")
    feeds = {name: np.ones(tuple(4 for _ in v.shape), v.dtype) for name, v in staged.inputs.items()}
    assert engine.compile(staged).run(feeds).keys() == staged.outputs.keys()


@pytest.mark.parametrize("level", [-1, 4, True, 2.0, "high", "22", None])
def test_an_unknown_level_is_refused(level: object) -> None:
    with pytest.raises(OptionError, match="is no level of optimisation; there are 0, 1, 2, 3"):
        Options(optimise=level)


@pytest.mark.parametrize("command", ["plan", "heaps", "explain"])
def test_commands_optimise_by_default(command: str, capsys: Capture) -> None:
    of_levels = {n: data([command, SMALL, "--optimise", n], capsys)["arena_bytes"] for n in ("0", "3")}
    assert data([command, SMALL], capsys)["arena_bytes"] == of_levels["3"] < of_levels["0"]


def test_a_trace_has_the_operators_that_are_left(capsys: Capture) -> None:
    of_levels = {n: data(["trace", SMALL, "--optimise", n], capsys)["facts"]["ticks"] for n in ("0", "3")}
    assert data(["trace", SMALL], capsys)["facts"]["ticks"] == of_levels["3"] < of_levels["0"]


def test_the_report_says_what_passes_did(capsys: Capture) -> None:
    plan = engine.make_plan(small_network())
    (done,) = plan.report().optimisation
    assert (done.level, done.before, done.after) == (3, 69, len(plan.lowered.graph.operators))
    assert sum(count for _, count in done.changes) == done.after - done.before
    (line,) = [line for line in str(plan.report()).splitlines() if "optimised at level 3: 69 -> " in line]
    assert "batch normalization folded -20" in line
    printed = data(["plan", SMALL], capsys)["optimisation"]
    assert [(row["level"], row["before"], row["after"]) for row in printed] == [(3, 69, done.after)]
    assert engine.make_plan(small_network(), optimise=0).report().optimisation == ()


def test_a_plan_in_a_file_is_one_of_its_level(tmp_path: Path, capsys: Capture) -> None:
    nodes = [node("MatMul", ["x", "x"], ["h"]), node("Identity", ["h"], ["i"]), node("Relu", ["i"], ["y"])]
    onnx.save(model(nodes, [value("x", (8, 8))]), tmp_path / "model.onnx")
    planned = str(tmp_path / "planned.onnx")
    data(["plan", str(tmp_path / "model.onnx"), "-o", planned], capsys)
    assert data(["plan", planned], capsys)["origin"] == "from the file"
    exe = engine.compile(engine.load_onnx(planned), embedded=engine.load_plan(planned))
    assert exe.plan.is_followed and exe.report().operators < 3
    assert data(["plan", planned, "--optimise", "2"], capsys)["origin"] == (
        f"made anew: the plan in {planned} was made with optimise='auto', not 2"
    )


GROWING: dict[str, Callable[[], Graph]] = {"channels last": audio_encoder, "fusion": side_branches}


@pytest.mark.parametrize("group", GROWING)
def test_a_group_of_passes_that_makes_the_arena_larger_is_left_out(group: str) -> None:
    graph = GROWING[group]()
    plain, whole = (engine.make_plan(graph, optimise=level) for level in (0, 3))
    plan = engine.make_plan(graph)
    assert plan.arena_bytes <= plain.arena_bytes < whole.arena_bytes
    (done,) = plan.report().optimisation
    assert done.left_out == (group,) and done.cost == 0
    assert f"left out, as the arena would be larger: {group}" in str(plan.report())
    assert whole.report().optimisation[0].left_out == ()
    feeds = random_feeds(graph)
    assert difference(engine.compile(graph).run(feeds)["y"], engine.compile(graph, optimise=0).run(feeds)["y"]) < 1e-4


def test_what_costs_little_stays_for_speed_and_the_report_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = audio_encoder()
    plain, whole = (engine.make_plan(graph, optimise=level) for level in (0, 3))
    monkeypatch.setattr(automatic, "LEAST_SHARE", 2)
    plan = engine.make_plan(graph)
    assert plan.arena_bytes == whole.arena_bytes
    (done,) = plan.optimisation
    assert done.left_out == () and done.cost == whole.arena_bytes - plain.arena_bytes > 0
    assert f"the arena is {format_bytes(done.cost)} larger for speed" in str(plan.report())


@pytest.mark.parametrize("seed", range(12))
def test_random_networks_need_no_more_than_without_passes(seed: int) -> None:
    graph = random_convolutions(seed)
    plain, plan = engine.make_plan(graph, optimise=0), engine.make_plan(graph)
    cost = plan.optimisation[0].cost
    assert plan.arena_bytes <= plain.arena_bytes + cost
    assert cost * automatic.LEAST_SHARE <= plain.arena_bytes


def test_nothing_else_is_planned_where_the_arena_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[Graph] = []

    def plan_once(graph: Graph, options: Options) -> PlacedPlan:
        planned.append(graph)
        return plan_graph(graph, options)

    monkeypatch.setattr(automatic, "plan_graph", plan_once)
    engine.make_plan(small_network())
    assert len(planned) == 1


@pytest.mark.parametrize(
    "options",
    [{"debug": "poison"}, {"parallel": "exact"}, {"padding": 4096}, {"strategy": "naive"}, {"budget": "1 GiB"}],
)
def test_every_way_to_run_leaves_out_the_same_passes_and_gives_the_same_bits(options: dict[str, Any]) -> None:
    """On some processors BLAS computes convolutions; on another number of threads, its last bits are others."""
    graph = audio_encoder()
    feeds, plain = random_feeds(graph), engine.compile(graph)
    other = engine.compile(graph, **options)
    assert other.plan.optimisation[0].left_out == plain.plan.optimisation[0].left_out == ("channels last",)
    with threadpool_limits(1):
        assert_same(other.run(feeds), plain.run(feeds))


def test_the_limit_of_a_watched_run_does_not_choose_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []

    def plan_once(graph: Graph, options: Options, *arguments: Any, **others: Any) -> PlacedPlan:
        searched.append(options.nodes)
        return plan_graph(graph, options, *arguments, **others)

    monkeypatch.setattr(automatic, "plan_graph", plan_once)
    exe = engine.compile(audio_encoder(), debug="poison")
    assert searched.pop() == exe.plan.options.nodes == WATCHED_NODES
    assert set(searched) == {DEFAULTS.nodes} != {WATCHED_NODES}
    engine.compile(audio_encoder(), debug="poison", nodes=50)
    assert searched[-1] == 50


def test_passes_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    optimised: list[str] = []

    def counted(graph: Graph, level: int, **options: Any) -> Iterator[Applied]:
        optimised.extend([graph.name] if level else [])
        return applied_passes(graph, level, **options)

    saved = embed(engine.make_plan(small_network()))
    monkeypatch.setattr(automatic, "applied_passes", counted)
    others: tuple[dict[str, Any], ...] = ({}, {"optimise": 2}, {"backend": "numpy"}, {"alignment": 16})
    for options in others:
        optimised.clear()
        plan = engine.make_plan(small_network(), embedded=saved, **options)
        assert plan.is_followed == (not options)
        assert optimised == ["resnet18"]
    for options in ({"store": "float16", "optimise": 3}, {"optimise": 3}, {"debug": "poison"}):
        optimised.clear()
        engine.compile(small_network(), **options)
        assert optimised == ["resnet18"]
    optimised.clear()
    engine.compile(staged_graph((0, 1), (True,), "n"))
    assert len(optimised) == 1


def test_stored_networks_leave_out_what_makes_their_arena_larger() -> None:
    graph = side_branches()
    plain, plan, whole = (engine.make_plan(graph, store="float16", optimise=level) for level in (0, AUTO, 3))
    assert plan.arena_bytes <= plain.arena_bytes < whole.arena_bytes
    assert plan.optimisation[0].left_out == ("fusion",)
    again = engine.make_plan(graph, store="float16", embedded=embed(plan))
    assert again.is_followed and again.optimisation == plan.optimisation
    other = engine.make_plan(graph, embedded=embed(plan))
    assert other.origin == "made anew: the plan was made with store='float16', not ''"


def test_a_saved_plan_without_some_passes_is_followed() -> None:
    plan = engine.make_plan(audio_encoder())
    embedded = plan_of(texts_of(embed(plan)), "the file", True)
    assert embedded.left_out == ("channels last",)
    again = engine.make_plan(audio_encoder(), embedded=embedded)
    assert again.is_followed and again.arena_bytes == plan.arena_bytes
    assert again.optimisation == plan.optimisation
