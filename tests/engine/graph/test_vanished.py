"""What passes took out of a graph can still be found by its name."""

import numpy as np
import pytest

import engine
import ops
from engine import Graph, zoo
from engine.explain.sentences import UnknownNameError
from engine.graph.vanished import FOLDED, INSIDE, SAME, UNUSED, Fate
from tests.helpers.cli.cli_checks import Capture, data, error


def network() -> Graph:
    """Returns a convolution, a normalization and relu, behind an identity, a folded sum and something unused."""
    graph = Graph("network")
    x = graph.input("x", (1, 4, 8, 8))
    rng = np.random.default_rng(0)
    w = graph.constant(rng.standard_normal((4, 4, 3, 3)).astype(np.float32), "w")
    ones = graph.constant(np.ones(4, np.float32), "ones")
    h = ops.conv2d(ops.identity(x), ops.add(w, 1.0), pads=(1, 1, 1, 1))
    h = ops.relu(ops.batch_norm(h, ones, ones, ones, ones))
    ops.neg(h)
    graph.output(ops.tanh(h), "y")
    return graph


@pytest.mark.parametrize("level", [2, 3])
def test_each_name_of_the_graph_before_is_present_or_has_a_fate(level: int) -> None:
    graph = network()
    after = engine.optimise(graph, level)
    gone = after.vanished
    present = {op.name for op in after.operators}
    assert {op.name for op in graph.operators} - present == gone.operators.keys() - present
    vars = {v.name for op in graph.operators for v in op.outputs}
    assert vars - after.vars.keys() <= gone.tensors.keys()
    assert gone.operators["conv_0"] == gone.operators["batch_norm_0"] == Fate(INSIDE, "relu_0")
    assert gone.tensors["conv_0"] == gone.tensors["batch_norm_0"] == Fate(INSIDE, "relu_0")
    assert gone.tensors["identity_0"] == Fate(SAME, "x") == gone.operators["identity_0"]
    assert gone.operators["neg_0"].how == UNUSED
    assert gone.operators["add_0"].how in (FOLDED, INSIDE)
    assert gone.all_parts()["relu_0"] == ("conv_0", "batch_norm_0")
    assert graph.vanished.operators == {}


def test_fates_of_an_optimised_graph_stay_where_it_is_planned_again() -> None:
    after = engine.optimise(network(), 2)
    plan = engine.make_plan(after)
    assert plan.lowered.graph.vanished.operators["batch_norm_0"] == Fate(INSIDE, "relu_0")


def test_every_network_of_the_zoo_keeps_track_of_every_operator() -> None:
    for graph in (zoo.mobilenet_v2(image=32), zoo.minilm(sequence=8), zoo.densenet121(image=32)):
        after = engine.optimise(graph)
        names = {op.name for op in after.operators}
        gone = after.vanished.operators
        assert {op.name for op in graph.operators} <= names | gone.keys()
        assert not names & gone.keys()
        assert all(fate.place in names for fate in gone.values() if fate.how == INSIDE)
        assert all(fate.place in after.vars for fate in gone.values() if fate.how in (SAME, FOLDED))
        assert sum(fate.how == INSIDE for fate in gone.values()) > len(graph.operators) // 4


def test_explain_finds_what_was_fused() -> None:
    plan = engine.make_plan(network())
    fused = plan.explain(operator="batch_norm_0")
    assert fused.operator == "relu_0" and fused.parts == ("conv_0", "batch_norm_0")
    lines = str(fused).splitlines()
    assert lines[0] == "'batch_norm_0' is computed within operator relu_0 (passes over the graph)."
    assert "  computes also conv_0, batch_norm_0" in lines
    tensor = plan.explain(tensor="conv_0")
    assert tensor.tensor == "relu_0"
    assert str(tensor).startswith("'conv_0' is computed within operator relu_0 (passes over the graph).\nrelu_0: ")
    same = plan.explain(tensor="identity_0")
    assert same.tensor == "x" and "tensor x has the same elements" in same.fate
    assert plan.explain(operator="relu_0").fate == plan.explain(tensor="relu_0").fate == ""
    with pytest.raises(UnknownNameError, match="network: 'neg_0' is not computed: nothing needs it any more"):
        plan.explain(operator="neg_0")
    with pytest.raises(UnknownNameError, match="network: 'identity_0' is not computed: tensor x has the same"):
        plan.explain(operator="identity_0")


def test_kernels_say_what_they_compute_besides() -> None:
    (use,) = [use for use in engine.make_plan(network()).report().kernels if use.operator == "relu_0"]
    assert use.parts == ("conv_0", "batch_norm_0")


def test_the_commands_find_what_was_fused(capsys: Capture) -> None:
    small = ["explain", "zoo:resnet18?image=32"]
    printed = data([*small, "--operator", "batch_norm_0"], capsys)
    assert "is computed within operator" in printed["fate"] and "batch_norm_0" in printed["parts"]
    assert "is computed within operator" in data([*small, "--tensor", "conv_0"], capsys)["fate"]
    assert "has no operator 'batch_norm_99'" in error([*small, "--operator", "batch_norm_99"], 2, capsys)
    uses = data(["plan", "zoo:resnet18?image=32"], capsys)["kernels"]
    assert any("batch_norm_0" in use["parts"] for use in uses)


def test_a_plan_within_a_budget_finds_them_too() -> None:
    graph = zoo.resnet18(image=32)
    least = engine.make_plan(graph).arena_bytes
    plan = engine.make_plan(graph, budget=least)
    assert plan.explain(operator="batch_norm_0").fate
