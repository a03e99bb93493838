"""Node data for Model Explorer: numbers by the names of nodes, in the form that its page reads."""

import json
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import engine
import ops
from engine import Graph
from engine.exporters.model_explorer import MEASURES
from tests.helpers.graphs.random_graphs import graphs
from tests.helpers.onnx.small_models import model, node, value
from tests.helpers.traces.exported_files import exported

COLOUR = re.compile(r"#[0-9a-f]{6}")


def node_data(measure: str, plan: engine.ExecutionPlan, mode: str = "static") -> dict[str, Any]:
    data: dict[str, Any] = json.loads(exported(f"model-explorer-{measure}", plan.trace(mode)))
    return data


def numbers(measure: str, plan: engine.ExecutionPlan) -> dict[str, int]:
    return {name: result["value"] for name, result in node_data(measure, plan)["results"].items()}


@given(graphs())
@settings(max_examples=20, deadline=None)
def test_model_explorer_shows_the_peak_as_the_largest_number(graph: Graph) -> None:
    plan = engine.make_plan(graph, optimise=0)
    alive, report = numbers("alive", plan), plan.report()
    at_ends = {0, len(plan.lowered.instructions) + 1}
    if alive and report.peak_tick not in at_ends:
        assert max(alive.values()) == report.peak_bytes == alive[report.peak_operator]
    assert {call.name for call in plan.lowered.calls if call.operators} <= alive.keys()


def test_the_form_is_that_of_graph_node_data() -> None:
    plan = engine.make_plan(onnx_graph(), optimise=0)
    for measure, described in MEASURES.items():
        data = node_data(measure, plan)
        assert data.keys() - {"hideAggregatedStats", "hideInChildrenStatsTable"} == {"results", "name", "gradient"}
        assert ("hideAggregatedStats" in data) == (measure != "outputs") and data["name"] == f"g: {described.title}"
        stops = [item["stop"] for item in data["gradient"]]
        assert stops == sorted(stops) and stops[0] == 0 and stops[-1] == 1
        assert all(COLOUR.fullmatch(item["bgColor"]) for item in data["gradient"])
        assert all(result.keys() == {"value"} for result in data["results"].values())


def onnx_graph() -> Graph:
    """Returns a node that becomes several operators, one without a name, and a convolution with a workspace."""
    weights = {"w": np.ones((4, 3, 3, 3), np.float32)}
    nodes = [
        node("Conv", ["x", "w"], ["h"], name="/layer/conv"),
        node("LpNormalization", ["h"], ["s"], name="/layer/norm", axis=1),
        node("Relu", ["s"], ["y"]),
    ]
    return engine.load_onnx(model(nodes, [value("x", (1, 3, 6, 6))], initializers=weights))


def test_a_node_has_the_largest_number_of_its_operators() -> None:
    graph = onnx_graph()
    plan = engine.make_plan(graph, optimise=0)
    inside = [op.name for op in graph.operators if op.name.startswith("/layer/norm")]
    assert len(inside) > 1
    assert numbers("alive", plan).keys() >= {"/layer/conv", *inside, "Relu_2", "<node_2>"}
    outputs = numbers("outputs", plan)
    assert min(outputs[name] for name in inside) < outputs["/layer/norm"]
    assert outputs["/layer/norm"] == outputs["/layer/conv"] == outputs["<node_2>"] == 256
    workspace = [v.spec.nbytes for v in plan.lowered.values if v.name == "/layer/conv/workspace"]
    assert [numbers("workspaces", plan)["/layer/conv"]] == workspace
    assert max(numbers("offsets", plan).values()) < plan.arena_bytes


def test_a_tensor_that_is_joined_in_place_belongs_to_what_joins_it() -> None:
    nodes = [
        node("Relu", ["x"], ["a"], name="r"),
        node("Neg", ["x"], ["b"], name="n"),
        node("Concat", ["a", "b"], ["c"], name="cc", axis=0),
        node("Relu", ["c"], ["y"], name="last"),
    ]
    plan = engine.make_plan(engine.load_onnx(model(nodes, [value("x", (4, 4))])), optimise=0)
    assert numbers("outputs", plan) == {"r": 64, "n": 64, "cc": 128, "last": 128}
    offsets = numbers("offsets", plan)
    assert offsets["r"] == offsets["cc"] == offsets["n"] - 64
    assert numbers("alive", plan) == {"r": 192, "n": 192, "last": 128}  # the concatenation does not run


def test_a_node_called_like_a_step_of_another_is_no_part_of_it() -> None:
    nodes = [
        node("ReduceSum", ["x"], ["a"], name="conv1"),
        node("Tanh", ["x"], ["b"], name="conv1/tanh"),
        node("Add", ["a", "b"], ["y"], name="sum"),
    ]
    plan = engine.make_plan(engine.load_onnx(model(nodes, [value("x", (4, 4))])), optimise=0)
    assert numbers("outputs", plan) == {"conv1": 4, "conv1/tanh": 64, "sum": 64}


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_model_explorer_takes_any_node_name(mode: str) -> None:
    graph = Graph("g")
    x = graph.input("x", (3,))
    for name in ("results/x", '"</script><script>alert(1)</script>\n', "\ud800", "y" * 10_000):
        with graph.naming(name):
            x = ops.relu(x)
    graph.output(x, "y")
    assert len(node_data("alive", engine.make_plan(graph, optimise=0), mode)["results"]) == 8


def test_a_node_called_results_is_no_graph() -> None:
    nodes = [node("Relu", ["x"], ["y"], name="results")]
    plan = engine.make_plan(engine.load_onnx(model(nodes, [value("x", (3,))])), optimise=0)
    assert node_data("alive", plan).keys() == {"g"}
