"""Gradient rules of operators against central differences."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import Graph, Var
from ops.registry import REGISTRY
from ops.schema.schema import no_gradient
from tests.helpers.graphs.random_graphs import seeded
from tests.helpers.graphs.unplanned_run import run_unplanned
from tests.helpers.ops.gradient_cases import FAMILIES, Case
from tests.helpers.ops.gradient_checks import Problem, check_gradients, gradients_of, output_of

_WITHOUT_RULE = frozenset(
    (
        # of no floats
        *("arange", "arange_count", "arg_max", "arg_min", "bit_shift", "bitwise_and", "bitwise_not", "bitwise_or"),
        *("bitwise_xor", "and", "or", "xor", "not", "equal", "less", "less_or_equal", "greater", "greater_or_equal"),
        *("is_nan", "is_inf", "nonzero", "count_nonzero", "non_max_suppression"),
        *("quantize_linear", "dequantize_linear", "dynamic_quantize_linear"),
        *("bit_cast", "matmul_integer", "qlinear_matmul", "quantised_add", "quantised_mean", "look_up"),
        "random_uniform",
        # their sizes are known only while they run
        *("compress", "unique"),
        # it would divide by elements, which may be 0
        "cum_prod",
        # places decide which elements it reads
        *("grid_sample", "roi_align", "deformed_windows", "tensor_scatter", "tree_ensemble"),
        # its matrices may have no inverse
        "det",
        # operators inside them
        *("if", "loop", "scan", "rnn", "gru", "lstm"),
        # gradients themselves, and what passes make at the end
        *("gather_gradient", "gather_elements_gradient", "gather_nd_gradient", "in_single"),
    )
)
_OTHER_TESTS = frozenset(
    ("norm", "conv", "pool", "lrn", "entropy", "fused", "spread", "sums", "dropout", "assign", "_step")
)
"""Parts of the names of those that have tests of their own."""


@st.composite
def cases(draw: st.DrawFn) -> Case:
    return FAMILIES[draw(st.integers(0, len(FAMILIES) - 1))](lambda n: draw(st.integers(0, n - 1)))


@settings(max_examples=40, deadline=None)
@given(cases())
def test_gradient_rules_agree_with_central_differences(case: Case) -> None:
    check_gradients(case.build, *case.arrays)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 2000, 500))
def test_gradient_rules_agree_with_central_differences_in_many_cases(start: int) -> None:
    for seed in range(start, start + 500):
        case = FAMILIES[seed % len(FAMILIES)](seeded(seed))
        try:
            check_gradients(case.build, *case.arrays)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {case}") from error


def _is_elsewhere(name: str) -> bool:
    return any(part in name for part in _OTHER_TESTS)


def test_operators_without_a_gradient_rule_are_known() -> None:
    missing = {name for name, schema in REGISTRY.items() if schema.gradient is no_gradient}
    assert {name for name in missing if not _is_elsewhere(name)} == _WITHOUT_RULE


def test_every_gradient_rule_is_tried() -> None:
    tried: set[str] = set()
    for seed in range(80 * len(FAMILIES)):
        case = FAMILIES[seed % len(FAMILIES)](seeded(seed))
        graph, _ = Problem(case.build, case.arrays).gradients(["x0"])
        tried.update(operator.schema.name for operator in graph.operators)
    with_rule = {name for name in REGISTRY if name not in _WITHOUT_RULE and not _is_elsewhere(name)}
    assert with_rule - tried == {"copy"}  # which no user adds


def _twice(function: Callable[..., Any]) -> Callable[..., Var]:
    """Returns the gradient of the sum of squares of a function."""

    def build(*inputs: Var) -> Var:
        y = function(*inputs)
        return engine.gradients(ops.reduce_sum(y * y, keepdims=False), [inputs[0]])[0]

    return build


@pytest.mark.parametrize(
    "function",
    [
        *(ops.exp, ops.log, ops.sin, ops.sqrt, ops.reciprocal, ops.tanh, ops.sigmoid, ops.relu, ops.leaky_relu),
        *(ops.softmax, ops.log_softmax, lambda x: ops.clip(x, 0.5, 1.0), lambda x: ops.prelu(x, np.array([0.25]))),
        *(lambda x: ops.pow(x, 3.0), lambda x: x[1:3], lambda x: ops.resize(x, (3, 5), mode="linear")),
    ],
)
def test_second_derivatives_agree_with_central_differences(function: Callable[[Var], Var]) -> None:
    check_gradients(_twice(function), np.array([[0.3, 1.2, 0.7, 0.9], [0.45, 1.6, 0.2, 1.1]]))


def test_second_derivatives_of_a_matrix_product() -> None:
    rng = np.random.default_rng(0)
    check_gradients(_twice(ops.matmul), rng.normal(size=(2, 3)), rng.normal(size=(3, 2)))


_KINKS: list[tuple[str, Callable[..., Any], list[float]]] = [
    ("relu", ops.relu, [-1.0, 0.0, -0.0, 2.0]),
    ("abs", ops.abs, [-1.0, 0.0, 2.0]),
    ("leaky_relu", lambda x: ops.leaky_relu(x, 0.25), [-1.0, 0.0, 2.0]),
    ("prelu", lambda x: ops.prelu(x, np.array([0.25])), [-1.0, 0.0, 2.0]),
    ("elu", ops.elu, [-1.0, 0.0, 2.0]),
    ("selu", ops.selu, [-1.0, 0.0, 2.0]),
    ("celu", lambda x: ops.celu(x, 0.5), [-1.0, 0.0, 2.0]),
    ("clip", lambda x: ops.clip(x, 0.0, 6.0), [-1.0, 0.0, 3.0, 6.0, 7.0]),
    ("hard_sigmoid", lambda x: ops.hard_sigmoid(x, 1 / 6, 0.5), [-3.0, -2.0, 0.0, 3.0, 4.0]),
    ("hard_swish", ops.hard_swish, [-4.0, -3.0, 0.0, 3.0, 4.0]),
    ("softshrink", lambda x: ops.shrink(x, 0.5, 0.5), [-0.75, -0.5, 0.0, 0.5, 2.0]),
    ("maximum", lambda x: ops.max(x, np.array([2.0])), [1.0, 2.0, 3.0]),
    ("minimum", lambda x: ops.min(x, np.array([2.0])), [1.0, 2.0, 3.0]),
]


@pytest.mark.parametrize(("function", "values"), [k[1:] for k in _KINKS], ids=[k[0] for k in _KINKS])
def test_at_a_kink_the_gradient_lies_between_the_slopes_of_both_sides(
    function: Callable[..., Any], values: list[float]
) -> None:
    x, step = np.array(values), 1e-6
    y, *sides = (output_of(function, x + way) for way in (0.0, step, -step))
    slopes = np.array([(side - y) / way for side, way in zip(sides, (step, -step), strict=True)])
    (weighted,) = gradients_of(function, [x])
    gradient = weighted / np.linspace(1, 2, len(x))
    assert (gradient >= slopes.min(0) - 1e-5).all() and (gradient <= slopes.max(0) + 1e-5).all()


@pytest.mark.parametrize(
    "function",
    [
        *(ops.relu, ops.tanh, ops.sigmoid, ops.softplus, ops.elu, ops.selu, ops.celu, ops.softsign, ops.hard_sigmoid),
        *(ops.softmax, ops.log_softmax, ops.exp, ops.sqrt, ops.reciprocal, ops.shrink, ops.thresholded_relu),
        *(ops.leaky_relu, lambda x: ops.clip(x, 0.0, 6.0), lambda x: ops.pow(x, 0.5), lambda x: x * 3.0),
    ],
)
def test_rules_that_do_not_need_the_input_leave_it_to_be_overwritten(function: Callable[[Var], Var]) -> None:
    graph = Graph()
    x = graph.input("x", (4, 6))
    hidden = ops.sin(x)
    y = function(hidden)
    before = len(graph.operators)
    engine.gradients(y, [hidden], seed=graph.constant(np.ones(y.shape, np.float32)))
    assert not any(hidden in set(operator.inputs) for operator in graph.operators[before:])


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(
    "function", [ops.relu, ops.gelu, ops.elu, ops.hard_swish, ops.softmax, lambda x: ops.gather(x, np.array([1, 1]))]
)
def test_other_element_types_agree_with_float64(function: Callable[[Var], Var], dtype: str) -> None:
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(dtype)
    (wanted,) = gradients_of(function, [x.astype("float64")])
    (gradient,) = gradients_of(function, [x])
    assert gradient.dtype == dtype
    eps = float(np.finfo(dtype).eps)
    np.testing.assert_allclose(gradient, wanted, rtol=4 * eps, atol=8 * eps)


def test_unread_outputs_of_several_have_gradients_of_zeros() -> None:
    graph = Graph()
    x = graph.input("x", (2, 3), "float64")
    _, right = ops.split(x, (1, 2), axis=1)
    (dx,) = engine.gradients(ops.reduce_sum(right, keepdims=False), [x])
    graph.output(dx, "dx")
    gradient = run_unplanned(graph, {"x": np.ones((2, 3))})["dx"]
    assert gradient.tolist() == [[0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]


def test_the_gradient_of_an_embedding_adds_rows_of_repeated_indices() -> None:
    graph = Graph()
    table = graph.input("table", (4, 2), "float64")
    words = graph.constant(np.array([3, 1, 3, -1]))
    y = ops.gather(table, words)
    (gradient,) = engine.gradients(y, [table], seed=graph.constant(np.arange(8.0).reshape(4, 2)))
    graph.output(gradient, "d")
    rows = run_unplanned(graph, {"table": np.zeros((4, 2))})["d"]
    assert rows.tolist() == [[0.0, 0.0], [2.0, 3.0], [0.0, 0.0], [10.0, 13.0]]


def test_a_weight_shared_by_a_batch_takes_one_product() -> None:
    graph = Graph()
    x, w = graph.input("x", (8, 5, 4)), graph.input("w", (4, 3))
    y = ops.matmul(x, w)
    before = len(graph.operators)
    engine.gradients(y, [w], seed=graph.constant(np.ones(y.shape, np.float32)))
    added = [(op.schema.name, op.outputs[0].shape) for op in graph.operators[before:]]
    assert [shape for name, shape in added if name == "matmul"] == [(4, 3)]
    assert not any(name == "reduce_sum" for name, _ in added)
