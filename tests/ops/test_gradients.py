"""Gradient rules of operators against central differences, and against PyTorch where there is no one gradient."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import Graph, Var
from ops.registry import REGISTRY
from ops.schema.schema import no_gradient
from ops.tensor.spec import Array
from tests.helpers.graphs.random_graphs import seeded
from tests.helpers.graphs.unplanned_run import run_unplanned
from tests.helpers.ops.gradient_cases import FAMILIES, Case
from tests.helpers.ops.gradient_checks import Problem, check_gradients

_WITHOUT_RULE = frozenset(
    (
        # of no floats
        *("arange", "arange_count", "arg_max", "arg_min", "bit_shift", "bitwise_and", "bitwise_not", "bitwise_or"),
        *("bitwise_xor", "and", "or", "xor", "not", "equal", "less", "less_or_equal", "greater", "greater_or_equal"),
        *("is_nan", "is_inf", "nonzero", "count_nonzero", "non_max_suppression"),
        *("quantize_linear", "dequantize_linear", "dynamic_quantize_linear"),
        *("matmul_integer", "qlinear_matmul", "quantised_add", "quantised_mean", "look_up"),
        # their sizes are known only while they run
        *("compress", "unique"),
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


@settings(max_examples=80, deadline=None)
@given(cases())
def test_gradient_rules_agree_with_central_differences(case: Case) -> None:
    check_gradients(case.build, *case.arrays)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 6000, 1000))
def test_gradient_rules_agree_with_central_differences_in_many_cases(start: int) -> None:
    for seed in range(start, start + 1000):
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


_T = torch.nn.functional
_KINKS: list[tuple[str, Callable[..., Any], Callable[..., Any], list[Any]]] = [
    ("relu", ops.relu, torch.relu, [[-1.0, 0.0, -0.0, 2.0]]),
    ("relu of NaN", ops.relu, torch.relu, [[float("nan"), float("inf"), -float("inf")]]),
    ("abs", ops.abs, torch.abs, [[-1.0, 0.0, 2.0]]),
    ("leaky_relu", lambda x: ops.leaky_relu(x, 0.25), lambda x: _T.leaky_relu(x, 0.25), [[-1.0, 0.0, 2.0]]),
    ("prelu", ops.prelu, _T.prelu, [[-1.0, 0.0, 2.0], [0.25]]),
    ("elu", ops.elu, _T.elu, [[-1.0, 0.0, 2.0]]),
    ("selu", ops.selu, _T.selu, [[-1.0, 0.0, 2.0]]),
    ("celu", lambda x: ops.celu(x, 0.5), lambda x: _T.celu(x, 0.5), [[-1.0, 0.0, 2.0]]),
    ("relu6", lambda x: ops.clip(x, 0.0, 6.0), _T.relu6, [[-1.0, 0.0, 3.0, 6.0, 7.0]]),
    ("hard_sigmoid", lambda x: ops.hard_sigmoid(x, 1 / 6, 0.5), _T.hardsigmoid, [[-3.0, -2.0, 0.0, 3.0, 4.0]]),
    ("hard_swish", ops.hard_swish, _T.hardswish, [[-4.0, -2.0, 0.0, 2.0, 3.0, 4.0]]),
    ("softshrink", lambda x: ops.shrink(x, 0.5, 0.5), _T.softshrink, [[-0.75, -0.5, 0.0, 0.5, 2.0]]),
    ("hardshrink", lambda x: ops.shrink(x, 0.0, 0.5), _T.hardshrink, [[-0.75, -0.5, 0.0, 0.5, 2.0]]),
    ("threshold", lambda x: ops.thresholded_relu(x, 0.5), lambda x: _T.threshold(x, 0.5, 0.0), [[0.0, 0.5, 0.75]]),
    ("maximum", ops.max, torch.maximum, [[1.0, 2.0, 3.0], [2.0, 2.0, 2.0]]),
    ("minimum", ops.min, torch.minimum, [[1.0, 2.0, 3.0], [2.0, 2.0, 2.0]]),
    ("amax", lambda x: ops.reduce_max(x, (1,)), lambda x: torch.amax(x, 1), [[[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]]]),
    ("amin", lambda x: ops.reduce_min(x, (1,)), lambda x: torch.amin(x, 1), [[[1.0, 1.0, 3.0], [2.0, 2.0, 2.0]]]),
    ("prod", lambda x: ops.reduce_prod(x, (1,)), lambda x: torch.prod(x, 1), [[[1.0, 0.0, 3.0], [0.0, 2.0, 0.0]]]),
    ("l2", lambda x: ops.reduce_l2(x, (1,)), lambda x: torch.linalg.norm(x, dim=1), [[[0.0, 0.0], [3.0, 4.0]]]),
    ("l1", lambda x: ops.reduce_l1(x, (1,)), lambda x: torch.linalg.norm(x, 1, dim=1), [[[0.0, 2.0], [-3.0, 4.0]]]),
    ("pow 0", ops.pow, torch.pow, [[0.0, 0.0, 0.0, 2.0], [0.0, 1.0, 2.0, 0.0]]),
    ("pow below 0", ops.pow, torch.pow, [[-2.0, -2.0, -0.5], [2.0, 3.0, -1.0]]),
    ("softplus far out", ops.softplus, _T.softplus, [[-40.0, -3.0, 0.0, 5.0, 90.0]]),
    ("mish far out", ops.mish, _T.mish, [[-60.0, -3.0, 0.0, 5.0, 90.0]]),
    ("swish far out", ops.swish, _T.silu, [[-60.0, -3.0, 0.0, 5.0, 90.0]]),
    ("gelu far out", ops.gelu, _T.gelu, [[-40.0, -3.0, 0.0, 5.0, 90.0]]),
    ("gelu, tanh", lambda x: ops.gelu(x, "tanh"), lambda x: _T.gelu(x, approximate="tanh"), [[-9.0, -1.0, 0.0, 8.0]]),
    ("softmax far out", ops.softmax, lambda x: torch.softmax(x, -1), [[[-200.0, 3.0, 200.0], [1.0, 1.0, 1.0]]]),
]


def _gradients(function: Callable[..., Any], arrays: list[Array]) -> list[Array]:
    graph = Graph()
    inputs = [graph.input(f"x{i}", a.shape, a.dtype.name) for i, a in enumerate(arrays)]
    y = function(*inputs)
    seed = graph.constant(np.linspace(1, 2, y.spec.size, dtype=y.dtype).reshape(y.shape))
    for i, gradient in enumerate(engine.gradients(y, inputs, seed=seed)):
        graph.output(gradient, f"d{i}")
    return list(run_unplanned(graph, {f"x{i}": a for i, a in enumerate(arrays)}).values())


@pytest.mark.parametrize(("function", "theirs", "values"), [k[1:] for k in _KINKS], ids=[k[0] for k in _KINKS])
def test_where_pytorch_has_chosen_a_gradient_it_is_the_same(
    function: Callable[..., Any], theirs: Callable[..., Any], values: list[Any]
) -> None:
    arrays = [np.array(v) for v in values]
    tensors = [torch.tensor(a, requires_grad=True) for a in arrays]
    y = theirs(*tensors)
    y.backward(torch.linspace(1, 2, y.numel(), dtype=torch.float64).reshape(y.shape))
    gradients = _gradients(function, arrays)
    for got, tensor in zip(gradients, tensors, strict=True):
        assert tensor.grad is not None
        np.testing.assert_allclose(got, tensor.grad.numpy(), rtol=1e-7, atol=1e-14)


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
    assert not any(hidden in operator.inputs for operator in graph.operators[before:])


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(
    "function", [ops.relu, ops.gelu, ops.elu, ops.hard_swish, ops.softmax, lambda x: ops.gather(x, np.array([1, 1]))]
)
def test_other_element_types_agree_with_float64(function: Callable[[Var], Var], dtype: str) -> None:
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(dtype)
    (wanted,) = _gradients(function, [x.astype("float64")])
    (gradient,) = _gradients(function, [x])
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
