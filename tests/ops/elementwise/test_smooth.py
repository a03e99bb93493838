import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ops.common.blocks import BLOCK_BYTES
from ops.elementwise.smooth import CELU, ELU, GELU, MISH, OPS, SELU, SIGMOID, SOFTPLUS, SWISH
from ops.schema.backends import NUMBA, NUMPY
from ops.schema.schema import OpSchema, evaluate
from ops.tensor.spec import Array, TensorSpec, spec_of
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation, check_overwrites, run, same

X = np.array([[-30.0, -3.0, -1.0, -0.5, -0.1, -0.0], [0.0, 0.2, 0.5, 1.0, 3.5, 30.0]])
ALPHA, GAMMA = 1.67326319217681884765625, 1.05070102214813232421875


def logistic(v: float) -> float:
    """Returns 1 / (1 + exp(-v)) without overflow."""
    return 1 / (1 + math.exp(-v)) if v >= 0 else math.exp(v) / (1 + math.exp(v))


def softplus(v: float) -> float:
    """Returns log(1 + exp(v)) without overflow."""
    return max(v, 0.0) + math.log1p(math.exp(-abs(v)))


def gelu_tanh(v: float) -> float:
    """Returns the approximation of gelu by tanh."""
    return 0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))


CASES: list[tuple[OpSchema, dict[str, Any], Callable[[float], float]]] = [
    (SIGMOID, {}, logistic),
    (SWISH, {}, lambda v: v * logistic(v)),
    (SWISH, {"alpha": 2.0}, lambda v: v * logistic(2 * v)),
    (GELU, {}, lambda v: 0.5 * v * math.erfc(-v / math.sqrt(2))),
    (GELU, {"approximate": "tanh"}, gelu_tanh),
    (ELU, {"alpha": 2.0}, lambda v: v if v > 0 else 2 * math.expm1(v)),
    (SELU, {}, lambda v: GAMMA * (v if v > 0 else ALPHA * math.expm1(v))),
    (CELU, {"alpha": 2.0}, lambda v: max(v, 0) + min(0, 2 * math.expm1(v / 2))),
    (SOFTPLUS, {}, softplus),
    (MISH, {}, lambda v: v * math.tanh(softplus(v))),
]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("case", range(len(CASES)))
def test_smooth_activations_follow_their_formulas(case: int, dtype: str) -> None:
    schema, attrs, formula = CASES[case]
    x = X.astype(dtype)
    wanted = np.vectorize(formula)(x.astype(np.float64)).astype(dtype)
    eps = float(np.finfo(dtype).eps)
    check_kernels(schema, [x], [wanted], rtol=8 * eps, atol=eps, **attrs)
    assert check_overwrites(schema, [x], **attrs) == 1


@pytest.mark.parametrize("backends", [(NUMPY,), (NUMBA, NUMPY)])
def test_the_tail_of_gelu_is_as_precise_as_its_middle_in_float16(backends: tuple[str, ...]) -> None:
    x = np.linspace(-5, 5, 401).astype(np.float16)
    wanted = np.array([0.5 * v * math.erfc(-v / math.sqrt(2)) for v in x.tolist()])
    signature = GELU.sign([spec_of(x)], {})
    (y,) = run(GELU.kernel(signature, backends), signature, [x])
    np.testing.assert_allclose(y.astype(np.float64), wanted, rtol=2.0**-11, atol=2.0**-25)


@given(x=hnp.arrays(np.float32, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0), elements=st.floats(width=32)))
def test_the_sigmoid_of_every_number_lies_between_0_and_1(x: Array) -> None:
    with np.errstate(all="ignore"):
        (y,) = evaluate(SIGMOID, x)
    same(np.isnan(y), np.isnan(x))
    assert ((y >= 0) & (y <= 1) | np.isnan(x)).all()


@pytest.mark.parametrize("schema", OPS, ids=lambda s: s.name)
def test_smooth_activations_do_not_overflow_far_from_zero(schema: OpSchema) -> None:
    with np.errstate(all="ignore"):
        (y,) = evaluate(schema, np.array([-1e4, 1e4], np.float32))
    assert np.isfinite(y).all()
    assert abs(y[0]) < 2


@pytest.mark.parametrize("schema", OPS, ids=lambda s: s.name)
def test_the_workspace_of_a_large_tensor_is_one_block(schema: OpSchema) -> None:
    for dtype in (np.float16, np.float32, np.float64):
        signature = schema.sign([TensorSpec((1000, 1000), np.dtype(dtype))], {})
        assert schema.kernel(signature).workspace(signature) <= BLOCK_BYTES


@pytest.mark.parametrize("schema", OPS, ids=lambda s: s.name)
def test_smooth_activations_of_many_blocks_equal_small_ones(schema: OpSchema) -> None:
    x = np.random.default_rng(1).standard_normal((37, 2011)).astype(np.float32)
    (whole,) = evaluate(schema, x)
    (strided,) = evaluate(schema, np.array(x.T, order="C").T)
    rows = np.stack([evaluate(schema, row)[0] for row in x])
    same(whole, rows, rtol=1e-6)
    same(strided, rows, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("schema", OPS, ids=lambda s: s.name)
def test_smooth_activations_allocate_nothing(schema: OpSchema, dtype: str) -> None:
    x = np.random.default_rng(0).standard_normal((400, 300)).astype(dtype)
    check_no_allocation(schema, [x])
    check_no_allocation(schema, [x.T])
