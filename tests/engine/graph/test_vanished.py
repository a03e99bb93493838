"""What passes took out of a graph can still be found by its name."""

import numpy as np
import pytest

import engine
import ops
from engine import Graph, zoo
from engine.explain.names import UnknownNameError
from engine.graph.vanished import FOLDED, INSIDE, SAME, UNUSED, Fate
from engine.passes.cleanup.common import COMMON
from engine.passes.cleanup.redundant import MOVEMENT, NO_OPS
from engine.passes.fuse.conv import FUSE_CONV
from tests.helpers.cli.cli_checks import Capture, data, error
from tests.helpers.graphs.growing_networks import random_convolutions


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
    assert lines[0] == "'batch_norm_0' is computed within operator relu_0."
    assert "  computes also conv_0, batch_norm_0" in lines
    tensor = plan.explain(tensor="conv_0")
    assert tensor.tensor == "relu_0"
    assert str(tensor).startswith("'conv_0' is computed within operator relu_0.\nrelu_0: ")
    same = plan.explain(tensor="identity_0")
    assert same.tensor == "x" and "tensor x has the same elements" in same.fate
    assert plan.explain(operator="relu_0").fate == plan.explain(tensor="relu_0").fate == ""
    with pytest.raises(UnknownNameError, match="network: 'neg_0' is not computed: nothing needs it any more"):
        plan.explain(operator="neg_0")
    with pytest.raises(UnknownNameError, match="network: 'identity_0' is not computed: tensor x has the same"):
        plan.explain(operator="identity_0")


def test_constants_that_passes_took_away_have_fates() -> None:
    after = engine.optimise(network(), 2)
    gone = {name: fate for name, fate in after.vanished.tensors.items() if fate.was_constant}
    assert gone["ones"] == Fate(INSIDE, "relu_0", was_constant=True)
    assert gone["w"].how in (FOLDED, INSIDE)
    assert {v.name for v in network().constants} <= after.vars.keys() | gone.keys()
    text = engine.make_plan(network()).explain(tensor="ones").fate
    assert text == "'ones' is a constant that operator relu_0 reads in another form."
    twice = Graph("twice")
    x = twice.input("x", (2, 2))
    first, second = (twice.constant(np.full((2, 2), 3, np.float32), name) for name in ("first", "second"))
    twice.output(ops.max(ops.exp(x), first) / ops.min(ops.tanh(x), second), "y")
    kept = engine.make_plan(twice).explain(tensor="second")
    assert kept.fate == "'second' is a constant that is kept once: constant first has the same elements."


def test_operators_that_passes_made_are_no_parts() -> None:
    graph = image_network()
    after = engine.optimise(graph)
    names = {op.name for op in graph.operators}
    assert any(op.name not in names for op in after.operators), "else the test is worthless"
    assert {part for parts in after.vanished.all_parts().values() for part in parts} <= names


def test_what_was_inside_a_duplicate_is_inside_the_one_that_stays() -> None:
    graph = Graph("twice")
    x = graph.input("x", (1, 2, 4, 4))
    w = graph.constant(np.ones((2, 2, 3, 3), np.float32), "w")
    first, second = (ops.relu(ops.conv2d(x, w, pads=1)) for _ in range(2))
    graph.output(ops.tanh(first) + ops.exp(second), "y")
    once = COMMON(FUSE_CONV(graph))
    assert once.vanished.operators["conv_1"] == Fate(INSIDE, "relu_0") == once.vanished.operators["conv_0"]
    assert once.vanished.operators["relu_1"] == Fate(SAME, "relu_0")


def test_movements_that_undo_each_other_are_needed_by_nothing() -> None:
    graph = Graph("back")
    x = ops.exp(graph.input("x", (4, 6)))
    graph.output(ops.relu(ops.transpose(ops.transpose(x, (1, 0)), (1, 0))), "y")
    gone = NO_OPS(MOVEMENT(graph)).vanished.operators
    assert (gone["transpose_0"], gone["transpose_1"]) == (Fate(UNUSED), Fate(SAME, "exp_0"))


@pytest.mark.parametrize("seed", range(6))
def test_no_name_is_given_to_something_else(seed: int) -> None:
    for graph in (image_network(), random_convolutions(seed)):
        after = engine.optimise(graph)
        sizes = {v.name: v.spec.size for v in graph.vars.values()}
        assert all(sizes.get(v.name, v.spec.size) == v.spec.size for v in after.vars.values())
        assert not after.vanished.tensors.keys() & after.vars.keys()
        assert after.vanished.added.isdisjoint(op.name for op in graph.operators)


def image_network() -> Graph:
    """Returns convolutions that are computed with channels last, two of whose results are outputs, one transposed."""
    graph = Graph("images")
    rng = np.random.default_rng(0)
    h = graph.input("x", (1, 16, 16, 16))
    w = graph.constant(rng.standard_normal((16, 16, 3, 3)).astype(np.float32), "w")
    for _ in range(4):
        h = ops.relu(ops.conv2d(h, w, pads=(1, 1, 1, 1)))
    first, second = h, ops.tanh(ops.conv2d(h, w, pads=(1, 1, 1, 1)))
    graph.output(first, "first")
    graph.output(second, "second")
    graph.output(ops.transpose(ops.relu(second), (0, 2, 3, 1)), "turned")
    return graph


@pytest.mark.parametrize("level", [1, 2, 3])
def test_outputs_keep_their_names_through_a_change_of_layout(level: int) -> None:
    graph = image_network()
    after = engine.optimise(graph, level)
    assert level < 3 or any("nhwc" in op.schema.name for op in after.operators), "else the test is worthless"
    for name, var in graph.outputs.items():
        assert after.outputs[name].name == var.name
    plan = engine.make_plan(graph, optimise=level)
    for name, var in graph.outputs.items():
        for asked in (name, var.name):
            explained = plan.explain(tensor=asked)
            assert (explained.tensor, explained.shape, explained.role) == (var.name, var.shape, "output")
    assert plan.explain(tensor="first").fate == "Output 'first' is tensor relu_3."
    assert all(plan.explain(operator=op.name).kernel for op in graph.operators if op.schema.name == "conv")


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
