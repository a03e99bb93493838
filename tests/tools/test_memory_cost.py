"""tools/memory_cost.py: what each trick saves, on random graphs, on networks, and what can go wrong."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings

import engine
import ops
from engine.cli.memory_cost import BOTH, FORWARD, IN_PLACE, NONE, SHARING, TRAINING, TRICKS, MemoryCost, memory_cost
from engine.cli.memory_cost_chart import cost_chart
from engine.graph.graph import Graph
from engine.zoo import resnet18
from tests.helpers.cli.cli_checks import Capture
from tests.helpers.graphs.random_graphs import graphs
from tests.helpers.onnx.saved_models import save_perceptron
from tools import memory_cost as tool

KEYS = {"model", "batch", "mode", "operators", "held_bytes", "internal_bytes", "workspace_bytes", "arena_bytes"}
SMALL = ["--shape", "x=1,3,32,32", "--batch", "2"]


@settings(max_examples=15, deadline=None)
@given(graphs(most=8))
def test_no_trick_of_memory_cost_costs_memory_and_both_save_most(graph: Graph) -> None:
    cost = memory_cost(graph, "g", 1, FORWARD).internal_bytes
    loss = 64 * (len(graph.vars) + 2)  # of alignment, where chunks of other sizes lie beside each other
    assert list(cost) == list(TRICKS)
    assert cost[NONE] + loss >= max(cost[IN_PLACE], cost[SHARING])
    assert min(cost[IN_PLACE], cost[SHARING]) + loss >= cost[BOTH] >= 0


def test_memory_cost_counts_a_small_graph_as_by_hand() -> None:
    graph = Graph("four")
    x = graph.input("x", (16,))
    graph.output(ops.exp(ops.exp(ops.exp(ops.exp(x)))), "y")
    cost = memory_cost(graph, "four", 1, FORWARD)
    assert dict(cost.internal_bytes) == {NONE: 3 * 64, IN_PLACE: 64, SHARING: 2 * 64, BOTH: 64}
    assert (cost.operators, cost.held_bytes, cost.workspace_bytes) == (4, 0, 0)


def test_parameters_are_counted_apart_from_what_is_internal() -> None:
    graph = Graph("step")
    w = graph.parameter([1.0] * 16, "w")
    graph.output(ops.reduce_sum(w), "y")
    graph.assign(w, -w)
    cost = memory_cost(graph, "step", 1, TRAINING)
    assert cost.held_bytes == 16 * 8
    assert dict(cost.internal_bytes) == dict.fromkeys(TRICKS, 0)
    assert cost.arena_bytes == 16 * 8


def test_a_network_is_trained_and_run_forward(tmp_path: Path, capsys: Capture) -> None:
    out, chart = tmp_path / "rows.json", tmp_path / "rows.png"
    assert tool.main(["resnet18", *SMALL, "--json", str(out), "--chart", str(chart)]) == 0
    training, forward = json.loads(out.read_text())["rows"]
    assert training.keys() == forward.keys() == KEYS
    assert [training["mode"], forward["mode"]] == [TRAINING, FORWARD]
    assert training["model"] == forward["model"] == "zoo:resnet18"
    assert training["internal_bytes"][BOTH] > forward["internal_bytes"][BOTH]
    assert training["internal_bytes"][BOTH] <= training["internal_bytes"][NONE] / 2
    plan = engine.make_plan(resnet18(2, 32), caller_buffers=("x", "y"), nest=False, optimise=0)
    assert forward["arena_bytes"] == plan.arena_bytes
    assert chart.read_bytes().startswith(b"\x89PNG")
    assert "zoo:resnet18      2  training" in capsys.readouterr().out


def test_a_file_and_a_network_without_a_loss_are_run_forward_alone(tmp_path: Path, capsys: Capture) -> None:
    path = save_perceptron(tmp_path / "perceptron.onnx", "n")
    assert tool.main([str(path), "zoo:lstm_classifier?sequence=4&vocabulary=9", "--batch", "3"]) == 0
    shown = capsys.readouterr().out
    assert shown.count(FORWARD) == 2 and f" {TRAINING} " not in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["lenet"], "there is no network 'zoo:lenet'; did you mean zoo:alexnet? there are zoo:alexnet, zoo:vgg16"),
        (["lenet?batch=2"], "there is no network 'zoo:lenet'"),
        (["lenet.onnx"], "lenet.onnx: there is no such file"),
        ([str(Path(__file__).parent)], "is a folder; a model is one file"),
        (["resnet18", "--chart", "rows.pdf"], "'rows.pdf' is no name of a chart, which is a PNG file"),
        (["zoo:lenet"], "there is no network 'zoo:lenet'"),
        (["squeezenet?batch=4", "--batch", "2"], "zoo:squeezenet?batch=4 says that batch is 4, where it has to be 2"),
        (["squeezenet?optimiser=adam"], "says that optimiser is adam, where it has to be sgd"),
        (["squeezenet?optimiser=sgd"], "says that optimiser is sgd, where it has to be none"),
        (["squeezenet?training=true&image=32"], "says that training is true, where it has to be false"),
        (["resnet18?bach=2"], "no option 'bach'"),
        (["resnet18", "--batch", "0"], "no integer from 1 on"),
    ],
)
def test_memory_cost_tells_unknown_networks_in_one_clear_error(words: list[str], message: str, capsys: Capture) -> None:
    assert tool.main(words) != 0
    assert message in capsys.readouterr().err


def test_a_chart_has_a_bar_for_each_trick_in_each_mode() -> None:
    rows = [MemoryCost("zoo:a", 1, m, 1, 0, dict.fromkeys(TRICKS, 2**20), 0, 0) for m in (TRAINING, FORWARD)]
    figure = cost_chart(rows)
    assert [axes.get_title() for axes in figure.axes] == [TRAINING, FORWARD]
    assert all(len(axes.containers) == len(TRICKS) for axes in figure.axes)


def test_panels_have_one_scale() -> None:
    sizes = {TRAINING: 2**30, FORWARD: 2**20}
    rows = [MemoryCost("zoo:a", 1, m, 1, 0, dict.fromkeys(TRICKS, size), 0, 0) for m, size in sizes.items()]
    training, forward = cost_chart(rows).axes
    assert training.get_xlim() == forward.get_xlim()


@pytest.mark.slow
def test_the_claims_of_mxnet_hold_for_its_network(tmp_path: Path) -> None:
    out = tmp_path / "rows.json"
    assert tool.main(["inception_bn", "--json", str(out)]) == 0
    training, forward = (row["internal_bytes"] for row in json.loads(out.read_text())["rows"])
    assert training[BOTH] <= training[NONE] / 2
    assert forward[BOTH] <= forward[NONE] / 10
