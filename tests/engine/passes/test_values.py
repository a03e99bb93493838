"""The judge of values: every pass on every kind of graph keeps its promise, and a pass that breaks it is named."""

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import Graph, Operator, zoo
from engine.onnx.load import load_onnx
from engine.onnx.seeded import seed_weights
from engine.passes import Edit
from engine.passes.base import LAST_BITS, Rule, RulePass
from engine.passes.fold import batch_norm
from engine.passes.fold.affine import Affine, affine
from engine.passes.pipeline import Applied
from engine.passes.values import check_values, compute, difference
from engine.planning.options import Options
from engine.stages.pass_values import judge_passes, small_lengths
from engine.text.errors import PassError
from ops.elementwise.binary import ADD, MUL
from ops.elementwise.unary import NEG
from ops.index.gather import GATHER
from tests.helpers.graphs.control_graphs import control_graphs
from tests.helpers.graphs.formula_graphs import formula_graphs
from tests.helpers.graphs.layered_networks import layered_graphs
from tests.helpers.graphs.random_graphs import graphs, seeded
from tests.helpers.graphs.staged_networks import Net, nets
from tests.helpers.graphs.symbolic_graphs import symbolic
from tests.helpers.graphs.unplanned_run import assert_same, random_feeds, run_unplanned
from tests.helpers.onnx import open_models
from tests.helpers.onnx.quantised_models import DRIFTING, quantised_model
from tools.open_networks import NARROW, decoder_model, encoder_model
from tools.run_networks import NETWORKS
from tools.staged_networks import detector

SMALL: dict[str, dict[str, int]] = {
    "alexnet": {"image": 63},
    "inception_v3": {"image": 75},
    "lstm_classifier": {},
    "gpt2": {"capacity": 8},
    "minilm": {"sequence": 8},
    "bert_base": {"sequence": 8},
}
"""Networks of the zoo with small shapes; the others have images of 64 x 64."""
OPEN: dict[str, Callable[[], Graph]] = {
    "encoder": lambda: load_onnx(encoder_model(NARROW)),
    "decoder": lambda: load_onnx(decoder_model(NARROW)),
    "detector": lambda: load_onnx(open_models.detector()),
    "branches": lambda: load_onnx(open_models.branches()),
    "loop": lambda: load_onnx(open_models.loops("Loop")),
    "scan": lambda: load_onnx(open_models.loops("Scan")),
    "detector in stages": lambda: detector("n"),
    "boxes": lambda: detector(64),
    "mobilenet_v2": lambda: zoo.mobilenet_v2(batch="n", image=64),
    "lstm": lambda: zoo.lstm_classifier(batch="n"),
    "minilm": lambda: zoo.minilm(batch="n", sequence="m"),
}
"""Networks whose lengths are names, or whose sizes data decide."""


def judge(graph: Graph, caplog: pytest.LogCaptureFixture, level: int = 3) -> None:
    """Judges all passes over a graph, which must fit random inputs."""
    with caplog.at_level(logging.WARNING, "arenaplan"):
        judge_passes(graph, Options(optimise=level))
    assert "are not compared" not in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("name", zoo.NETWORKS)
def test_every_pass_over_a_network_of_the_zoo_keeps_its_promise(name: str, caplog: pytest.LogCaptureFixture) -> None:
    judge(zoo.NETWORKS[name](**SMALL.get(name, {"image": 64})), caplog)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mobilenet_v2", "minilm", pytest.param("unet", marks=pytest.mark.slow)])
def test_every_pass_over_a_training_step_keeps_its_promise(name: str, caplog: pytest.LogCaptureFixture) -> None:
    graph = zoo.NETWORKS[name](training=True, **SMALL.get(name, {"image": 64}))
    engine.train_step(graph, graph.outputs["loss"], engine.SGD(0.1))
    judge(graph, caplog)


@pytest.mark.parametrize("name", OPEN)
def test_every_pass_over_an_open_network_keeps_its_promise(name: str, caplog: pytest.LogCaptureFixture) -> None:
    judge(OPEN[name](), caplog)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["resnet18", "minilm"])
def test_every_pass_over_stored_tensors_keeps_its_promise(
    name: str, dtype: str, caplog: pytest.LogCaptureFixture
) -> None:
    judge(engine.cast_storage(zoo.NETWORKS[name](**SMALL.get(name, {"image": 64})), dtype), caplog)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NETWORKS if name not in DRIFTING])
def test_every_pass_over_a_timed_network_keeps_its_promise(name: str, caplog: pytest.LogCaptureFixture) -> None:
    network = NETWORKS[name]
    judge(load_onnx(network.model() if network.has_weights else seed_weights(network.model())), caplog)


@pytest.mark.slow
def test_every_pass_over_a_quantised_network_keeps_its_promise(tmp_path: Any, caplog: pytest.LogCaptureFixture) -> None:
    judge(load_onnx(quantised_model(zoo.mobilenet_v2(image=32), tmp_path)), caplog)


@settings(max_examples=30, deadline=None)
@given(layered_graphs())
def test_every_pass_over_random_layers_keeps_its_promise(graph: Graph) -> None:
    judge_passes(graph, Options())


@settings(max_examples=30, deadline=None)
@given(formula_graphs())
def test_every_pass_over_random_formulas_keeps_its_promise(graph: Graph) -> None:
    judge_passes(graph, Options())


@settings(max_examples=20, deadline=None)
@given(graphs())
def test_computing_without_a_plan_gives_the_bits_of_the_tests_own_run(graph: Graph) -> None:
    feeds = random_feeds(graph)
    assert_same(compute(graph, feeds), run_unplanned(graph, feeds))


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(nets(5))
def test_passes_over_networks_in_stages_keep_their_promise(net: Net) -> None:
    judge_passes(net.graph, Options())


@settings(max_examples=12, deadline=None)
@given(control_graphs())
def test_passes_over_control_flow_keep_their_promise(graph: Graph) -> None:
    judge_passes(graph, Options())


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_passes_over_random_open_graphs_keep_their_promise(seed: int) -> None:
    judge_passes(symbolic(seeded(seed), 8), Options())


def net() -> Graph:
    """Returns -(x + 1) * 3, and its input as an output."""
    graph = Graph("net")
    x = graph.input("x", (4,))
    graph.output(ops.neg(x + 1.0) * 3.0, "y")
    graph.output(ops.abs(x), "z")
    return graph


def applied(graph: Graph, rule: Rule, tolerance: float = LAST_BITS) -> Applied:
    """Returns what a rule makes of a graph, with a promise."""
    return Applied("own", graph, RulePass("own", rule)(graph), tolerance)


def refused(graph: Graph, rule: Rule, tolerance: float = LAST_BITS) -> str:
    """Returns the words of the judge's refusal."""
    feeds = random_feeds(graph)
    with pytest.raises(PassError) as error:
        check_values([applied(graph, rule, tolerance)], lambda each: compute(each, feeds))
    return str(error.value)


def drop_addition(edit: Edit, operator: Operator) -> None:
    if operator.schema is ADD:
        edit.replace(operator.outputs[0], operator.inputs[0])


def nudge(edit: Edit, operator: Operator) -> None:
    if operator.schema is NEG:
        edit.replace(operator.outputs[0], operator.inputs[0] * (-1 - 1e-6))


def test_a_pass_that_drops_a_term_is_told_with_the_element_that_differs_most() -> None:
    words = refused(net(), drop_addition)
    assert (
        words.startswith("pass 'own' moves 'y' by ") and "of its largest value, and may by 0.0001: element (" in words
    )


def test_a_promise_of_bits_is_held_to_the_bit() -> None:
    feeds = random_feeds(net())
    check_values([applied(net(), nudge)], lambda each: compute(each, feeds))
    assert "moves 'y' by " in (words := refused(net(), nudge, 0.0)) and "keeps every bit" in words


def test_a_pass_that_makes_what_was_a_number_nan_is_told() -> None:
    def spoil(edit: Edit, operator: Operator) -> None:
        if operator.schema is NEG:
            edit.replace(operator.outputs[0], ops.log(operator.inputs[0] - 100.0))

    assert "by inf of its largest value" in refused(net(), spoil)


def test_a_pass_that_changes_what_a_parameter_becomes_is_told() -> None:
    graph = Graph("step")
    held = graph.parameter(np.ones(4, np.float32), "held")
    graph.output(graph.assign(held, held + graph.input("x", (4,)) * 0.5), "y")

    def halve(edit: Edit, operator: Operator) -> None:
        if operator.schema is MUL:
            edit.replace(operator.outputs[0], operator.inputs[0])

    assert "moves 'parameter held'" in refused(graph, halve) or "moves 'y'" in refused(graph, halve)


def test_codes_may_move_by_a_few_steps_and_numbers_of_16_bits_by_a_few_of_theirs() -> None:
    graph = Graph("codes")
    x = graph.input("x", (4,))
    codes = ops.quantize_linear(x, np.float32(0.1), np.uint8(128))
    graph.output(ops.neg(ops.dequantize_linear(codes, np.float32(0.1), np.uint8(128))), "y")
    feeds = {"x": np.array([1.0, -2.0, 0.3, 10.0], np.float32)}

    def shifted(by: float) -> Rule:
        def rule(edit: Edit, operator: Operator) -> None:
            if operator.schema is NEG:
                edit.replace(operator.outputs[0], (operator.inputs[0] - by) * -1.0)

        return rule

    check_values([applied(graph, shifted(0.1))], lambda each: compute(each, feeds))
    with pytest.raises(PassError, match=r"may by 0\.02"):
        check_values([applied(graph, shifted(0.5))], lambda each: compute(each, feeds))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_codes_that_are_all_small_may_move_by_one_step(dtype: Any) -> None:
    graph = Graph("codes")
    graph.output(ops.quantize_linear(ops.neg(graph.input("x", (3,))), np.float32(1), dtype(2)), "y")
    feeds = {"x": np.array([1.0, 0.0, -1.0], np.float32)}

    def shifted(by: float) -> Rule:
        def rule(edit: Edit, operator: Operator) -> None:
            if operator.schema is NEG:
                edit.replace(operator.outputs[0], (operator.inputs[0] - by) * -1.0)

        return rule

    check_values([applied(graph, shifted(1.0))], lambda each: compute(each, feeds))
    for by, tolerance in ((2.0, 1e-4), (1.0, 0.0)):
        with pytest.raises(PassError, match="moves 'y' by"):
            check_values([applied(graph, shifted(by), tolerance)], lambda each: compute(each, feeds))


def test_a_graph_that_fails_behind_a_pass_is_told() -> None:
    graph = Graph("rows")
    x = graph.input("x", (4, 3))
    graph.output(ops.gather(x, graph.input("at", (2,), "int64"), axis=0), "y")

    def outside(edit: Edit, operator: Operator) -> None:
        if operator.schema is GATHER and operator.inputs[1] not in edit.constants:
            edit.replace(operator.outputs[0], ops.gather(operator.inputs[0], np.array([9, 9]), axis=0))

    assert "leaves a graph that fails: operator" in refused(graph, outside)


def test_a_graph_that_random_inputs_do_not_fit_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    graph = Graph("positions")
    graph.output(ops.gather(graph.input("x", (1, 3)), graph.input("at", (9,), "int64"), axis=0) + 0.0, "y")
    with caplog.at_level(logging.WARNING, "arenaplan"):
        judge_passes(graph, Options())
    assert "passes over graph 'positions' are not compared: it cannot be computed now" in caplog.text


def test_a_watched_run_judges_the_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph("layer")
    x, w = graph.input("x", (1, 2, 4, 4)), np.ones((3, 2, 1, 1), np.float32)
    rows = [np.full(3, n, np.float32) for n in (1, 2, 3, 4)]
    graph.output(ops.batch_norm(ops.conv(x, w), *rows), "y")
    engine.compile(graph, debug="poison")
    right = affine

    def without_shift(*arguments: Any) -> Affine | None:
        function = right(*arguments)
        return function and evolve(function, shift=0 * function.shift)

    monkeypatch.setattr(batch_norm, "affine", without_shift)
    engine.compile(graph)
    with pytest.raises(PassError, match="pass 'batch normalization folded' moves 'y'"):
        engine.compile(graph, debug="poison")


@pytest.mark.parametrize(
    ("actual", "wanted", "moved"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([1.0, 3.0], [1.0, 4.0], 0.25),
        ([np.nan, 1.0], [np.nan, 1.0], 0.0),
        ([np.inf, 1.0], [-np.inf, 1.0], np.inf),
        ([0.0], [np.nan], np.inf),
        ([1e-9], [0.0], np.inf),
        ([], [], 0.0),
    ],
)
def test_difference_is_in_parts_of_the_largest_value(actual: list[float], wanted: list[float], moved: float) -> None:
    assert difference(np.array(actual), np.array(wanted)) == moved


def test_small_lengths_fit_and_are_no_ones() -> None:
    lengths = small_lengths(zoo.minilm(batch="n", sequence="m"))
    assert set(lengths) == {"n", "m"} and min(lengths.values()) > 1 and max(lengths.values()) < 100
    assert small_lengths(net()) == {}
