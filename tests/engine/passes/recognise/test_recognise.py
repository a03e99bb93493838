"""Formulas as exporters write them become one operator."""

from collections.abc import Collection

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ops
from engine import Graph, Var, optimise
from engine.passes import verify
from engine.passes.base import Pass
from engine.passes.cleanup.common import COMMON
from engine.passes.edit import Edit
from engine.passes.pipeline import RECOGNITION
from engine.passes.recognise import activations
from engine.passes.recognise.activations import ACTIVATIONS
from engine.passes.recognise.layer_norms import LAYER_NORMS
from engine.passes.recognise.polynomials import Polynomial, polynomial
from engine.passes.recognise.softmaxes import SOFTMAXES
from engine.passes.recognise.transposes import GEMM_FLAGS
from ops.elementwise.binary import ADD
from tests.helpers.graphs.formula_graphs import (
    BIAS,
    FORMULAS,
    SCALE,
    Formula,
    build_formulas,
    formula_graphs,
    layer_norm,
    softmax,
)
from tests.helpers.graphs.pass_checks import schema_names
from tests.helpers.graphs.random_graphs import seeded
from tests.helpers.graphs.unplanned_run import random_feeds, run_unplanned

CASES = [(name, formula, schema) for name, (formulas, schema) in FORMULAS.items() for formula in formulas]


def graph_of(formula: Formula) -> Graph:
    """Returns a graph of the formula, on a value that is computed by arithmetic too."""
    graph = Graph("formula")
    x = ops.relu(graph.input("x", (2, 3, 6))) * 2.0 - BIAS
    graph.output(formula(x), "y")
    return COMMON(graph)


def recognised(graph: Graph) -> Graph:
    """Returns the graph behind the passes that recognise formulas, with nothing fused."""
    for each in (LAYER_NORMS, SOFTMAXES, ACTIVATIONS):
        graph = each(graph)
    return graph


def close(one: Graph, other: Graph, tolerance: float = 1e-5) -> None:
    """Checks that both compute the same."""
    feeds = random_feeds(one)
    actual, wanted = run_unplanned(other, feeds), run_unplanned(one, feeds)
    assert list(actual) == list(wanted)
    for name, array in wanted.items():
        np.testing.assert_allclose(actual[name], array, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("name", "formula", "schema"), CASES, ids=[f"{n}-{i}" for i, (n, _, _) in enumerate(CASES)])
def test_a_formula_is_one_operator(name: str, formula: Formula, schema: str) -> None:
    graph = graph_of(formula)
    after = recognised(graph)
    verify(graph, after)
    assert schema_names(after) == ["relu", "mul", "sub", schema], name
    close(graph, after)
    assert recognised(after) is after


@settings(max_examples=20)
@given(formula_graphs())
def test_recognised_formulas_compute_the_same(graph: Graph) -> None:
    after = optimise(graph, 2)
    verify(graph, after)
    close(graph, after, 1e-4)
    for each in RECOGNITION:
        once = each(graph)
        assert each(once) is once


@pytest.mark.slow
def test_recognised_formulas_compute_the_same_in_many_graphs() -> None:
    for seed in range(200):
        graph = build_formulas(seeded(seed))
        after = optimise(graph, 2)
        verify(graph, after)
        close(graph, after, 1e-4)


BEFORE = """\
graph formula
  input    %x: float32[2,6]
  constant %constant_0: float32[]
  constant %constant_1: float32[]
  constant %scale: float32[6]
  constant %bias: float32[6]
  %reduce_mean_0: float32[2,1] = reduce_mean(%x) axes=(-1,) keepdims=True
  %sub_0: float32[2,6] = sub(%x, %reduce_mean_0)
  %pow_0: float32[2,6] = pow(%sub_0, %constant_0)
  %reduce_mean_1: float32[2,1] = reduce_mean(%pow_0) axes=(-1,) keepdims=True
  %add_0: float32[2,1] = add(%reduce_mean_1, %constant_1)
  %sqrt_0: float32[2,1] = sqrt(%add_0)
  %div_0: float32[2,6] = div(%sub_0, %sqrt_0)
  %mul_0: float32[2,6] = mul(%div_0, %scale)
  %normal: float32[2,6] = add(%mul_0, %bias)
  output   y = %normal
"""
AFTER = """\
graph formula
  input    %x: float32[2,6]
  constant %scale: float32[6]
  constant %bias: float32[6]
  %normal: float32[2,6] = layer_norm(%x, %scale, %bias) axis=1 epsilon=9.999999747378752e-06 with_stats=False
  output   y = %normal
"""


def test_a_layer_normalisation_before_and_after() -> None:
    graph = Graph("formula")
    normal = layer_norm(graph.input("x", (2, 6)))
    scaled = normal * graph.constant(SCALE, "scale")
    (shifted,) = graph.add(ADD, [scaled, graph.constant(BIAS, "bias")], name="shift", output_names=["normal"])
    graph.output(shifted, "y")
    assert graph.text() == BEFORE
    after = LAYER_NORMS(graph)
    assert after.text() == AFTER
    assert [op.name for op in after.operators] == ["shift"]


def test_a_softmax_before_and_after() -> None:
    graph = Graph("formula")
    graph.output(softmax(graph.input("x", (2, 6))), "y")
    assert (
        graph.text()
        == """\
graph formula
  input    %x: float32[2,6]
  %reduce_max_0: float32[2,1] = reduce_max(%x) axes=(-1,) keepdims=True
  %sub_0: float32[2,6] = sub(%x, %reduce_max_0)
  %exp_0: float32[2,6] = exp(%sub_0)
  %reduce_sum_0: float32[2,1] = reduce_sum(%exp_0) axes=(-1,) keepdims=True
  %div_0: float32[2,6] = div(%exp_0, %reduce_sum_0)
  output   y = %div_0
"""
    )
    assert (
        SOFTMAXES(graph).text()
        == """\
graph formula
  input    %x: float32[2,6]
  %div_0: float32[2,6] = softmax(%x) axis=1
  output   y = %div_0
"""
    )


def test_an_activation_before_and_after() -> None:
    graph = Graph("formula")
    x = graph.input("x", (2, 6))
    graph.output(x * ops.sigmoid(x * 1.5), "y")
    assert (
        graph.text()
        == """\
graph formula
  input    %x: float32[2,6]
  constant %constant_0: float32[]
  %mul_0: float32[2,6] = mul(%x, %constant_0)
  %sigmoid_0: float32[2,6] = sigmoid(%mul_0)
  %mul_1: float32[2,6] = mul(%x, %sigmoid_0)
  output   y = %mul_1
"""
    )
    assert (
        ACTIVATIONS(graph).text()
        == """\
graph formula
  input    %x: float32[2,6]
  %mul_1: float32[2,6] = swish(%x) alpha=1.5
  output   y = %mul_1
"""
    )


def test_a_product_transposes_for_itself() -> None:
    graph = Graph("product")
    a, b = graph.input("a", (4, 3)), graph.input("b", (5, 4))
    graph.output(ops.gemm(ops.transpose(a), ops.transpose(b)), "y")
    after = GEMM_FLAGS(graph)
    verify(graph, after)
    assert (
        after.text()
        == """\
graph product
  input    %a: float32[4,3]
  input    %b: float32[5,4]
  %gemm_0: float32[3,5] = gemm(%a, %b) alpha=1.0 beta=1.0 trans_a=True trans_b=True
  output   y = %gemm_0
"""
    )
    close(graph, after)
    assert GEMM_FLAGS(after) is after


def _unlike(formula: Formula, each: Pass) -> None:
    graph = graph_of(formula)
    assert each(graph) is graph


@pytest.mark.parametrize(
    "formula",
    [
        lambda x: x * 0.5 * (ops.erf(x / 1.5) + 1.0),
        lambda x: x * 0.5 * (ops.erf(x / 1.4142135) - 1.0),
        lambda x: x * 0.6 * (ops.erf(x / 1.4142135) + 1.0),
        lambda x: (x + 1.0) * 0.5 * (ops.erf(x / 1.4142135) + 1.0),
        lambda x: 0.5 * x * (1.0 + ops.tanh(0.79788456 * (x + 0.05 * ops.pow(x, 3.0)))),
        lambda x: x * ops.clip(x + 3.0, 0.0, 5.0) / 6.0,
        lambda x: x * ops.sigmoid(x + 1.0),
        lambda x: x * ops.tanh(ops.softplus(x + 1.0)),
    ],
)
def test_a_formula_with_another_number_is_left_alone(formula: Formula) -> None:
    _unlike(formula, ACTIVATIONS)


@pytest.mark.parametrize(
    "formula",
    [
        lambda x: (x - ops.reduce_mean(x, (1,))) / ops.sqrt(ops.reduce_mean(ops.pow(x, 2.0), (-1,)) + 1e-5),
        lambda x: x / ops.sqrt(ops.reduce_mean(ops.pow(x, 2.0), (1,)) + 1e-5),
        lambda x: x / ops.sqrt(ops.reduce_sum(ops.pow(x, 2.0), (-1,)) + 1e-5),
        lambda x: x / ops.sqrt(ops.reduce_mean(ops.pow(x, 3.0), (-1,)) + 1e-5),
        lambda x: x / ops.sqrt(ops.reduce_mean(ops.pow(x + 1.0, 2.0), (-1,)) + 1e-5),
    ],
)
def test_near_misses_of_a_normalisation_are_not_recognised(formula: Formula) -> None:
    _unlike(formula, LAYER_NORMS)


@pytest.mark.parametrize(
    "formula",
    [
        lambda x: ops.exp(x) / ops.reduce_sum(ops.exp(x + 1.0), (-1,)),
        lambda x: ops.exp(x) / ops.reduce_max(ops.exp(x), (-1,)),
        lambda x: ops.exp(x) / ops.reduce_sum(ops.exp(x), (1, 2)),
        lambda x: x - ops.reduce_log_sum_exp(x + 1.0, (-1,)),
    ],
)
def test_near_misses_of_a_softmax_are_not_recognised(formula: Formula) -> None:
    _unlike(formula, SOFTMAXES)


def test_a_maximum_of_other_rows_is_subtracted_still() -> None:
    def formula(x: Var) -> Var:
        power = ops.exp(x - ops.reduce_max(x, (1,)))
        return power / ops.reduce_sum(power, (-1,))

    graph = graph_of(formula)
    after = SOFTMAXES(graph)
    assert schema_names(after)[3:] == ["reduce_max", "sub", "softmax"]
    close(graph, after)


@pytest.mark.parametrize("pieces", [1, 2])
def test_a_piece_that_something_else_needs_keeps_the_formula(pieces: int) -> None:
    graph = Graph("formula")
    x = graph.input("x", (2, 3, 6))
    gate = ops.sigmoid(x)
    graph.output(x * gate, "y")
    if pieces > 1:
        graph.output(gate, "gate")
    assert (ACTIVATIONS(graph) is graph) == (pieces > 1)


def test_formulas_are_read_only_around_gates_that_serve_one_result(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Var] = []

    def counted(edit: Edit, var: Var, atoms: Collection[Var]) -> Polynomial:
        calls.append(var)
        return polynomial(edit, var, atoms)

    monkeypatch.setattr(activations, "polynomial", counted)
    graph = Graph("gates")
    x = graph.input("x", (8,))
    for _ in range(30):  # each gate is read through all later ones, but serves its own sum only
        x = ops.tanh(x * 1.5) + x
    graph.output(x, "y")
    assert ACTIVATIONS(graph) is graph
    assert len(calls) < 30 * 40


def test_a_bias_is_taken_once_and_a_scale_only_before_it() -> None:
    graph = graph_of(lambda x: (layer_norm(x) + BIAS) * SCALE + BIAS)
    after = LAYER_NORMS(graph)
    assert schema_names(after)[3:] == ["layer_norm", "mul", "add"]
    close(graph, after)


@given(st.sampled_from([(6,), (1, 6), (1,), (), (3, 6), (2, 1, 6)]))
def test_a_scale_is_taken_in_where_it_fits_the_rows(shape: tuple[int, ...]) -> None:
    scale = np.linspace(0.5, 2, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    graph = graph_of(lambda x: layer_norm(x) * scale)
    after = LAYER_NORMS(graph)
    fits = all(n == 1 for n in shape[:-1])
    assert schema_names(after)[3:] == ["layer_norm", "mul"][: 2 - fits]
    close(graph, after)
