from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.elementwise.variadic import MAX, MEAN, MIN, OPS, SUM
from ops.schema.schema import Binding, OpSchema, evaluate
from ops.tensor.errors import ArityError, DtypeError
from ops.tensor.spec import Array, broadcast_shapes
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation, garbage_for, same, sign

SHAPES = ((3, 4), (4,), (3, 1), (), (1, 4))


def column(arrays: list[Array]) -> Array:
    """Returns all arrays, broadcast, in float64, stacked."""
    shape = broadcast_shapes(*(a.shape for a in arrays))
    return np.stack([np.broadcast_to(a, shape).astype(np.float64) for a in arrays])


@pytest.mark.slow
@given(shapes=st.lists(st.sampled_from(SHAPES), min_size=1, max_size=5), dtype=st.sampled_from(["float16", "float32"]))
def test_variadic_operators_fold_any_number_of_inputs(shapes: list[tuple[int, ...]], dtype: str) -> None:
    rng = np.random.default_rng(len(shapes))
    arrays: list[Array] = [np.asarray(rng.integers(-8, 9, s)).astype(dtype) for s in shapes]
    full = column(arrays)
    tolerance = float(np.finfo(dtype).eps)
    check_kernels(SUM, arrays, [full.sum(0).astype(dtype)])
    check_kernels(MEAN, arrays, [full.mean(0).astype(dtype)], rtol=tolerance)
    check_kernels(MIN, arrays, [full.min(0).astype(dtype)])
    check_kernels(MAX, arrays, [full.max(0).astype(dtype)])


def test_variadic_operators_fold_integers_in_their_own_dtype() -> None:
    arrays = [np.array([[100, -100]], np.int8), np.array([[27, 5]], np.int8), np.array([[0, 1]], np.int8)]
    check_kernels(SUM, arrays, [reduce(np.add, arrays)])
    check_kernels(MAX, arrays, [np.array([[100, 5]], np.int8)])
    with pytest.raises(DtypeError, match="mean"):
        evaluate(MEAN, *arrays)


def test_variadic_max_and_min_keep_nan() -> None:
    a, b = np.array([np.nan, 1.0]), np.array([1.0, np.nan])
    for schema in (MIN, MAX):
        for arrays in ([a, b], [a, b, np.zeros(2)]):
            assert np.isnan(evaluate(schema, *arrays)[0]).all()


@pytest.mark.parametrize("schema", OPS, ids=lambda s: s.name)
def test_an_input_that_is_given_twice_may_be_overwritten(schema: OpSchema) -> None:
    a, b = np.array([1.0, -2.0, 5.0]), np.array([3.0, 4.0, -6.0])
    (wanted,) = evaluate(schema, a, b, a)
    shared = a.copy()
    signature = sign(schema, [a, b, a], {})
    kernel = schema.kernel(signature)
    kernel.bind(Binding(signature, (shared, b, shared), (shared,), garbage_for(kernel, signature)))()
    same(shared, wanted)


def test_variadic_operators_refuse_no_input() -> None:
    with pytest.raises(ArityError):
        evaluate(SUM)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("schema", OPS, ids=lambda s: s.name)
def test_variadic_kernels_allocate_nothing(schema: OpSchema, count: int) -> None:
    x = np.random.default_rng(0).standard_normal((300, 200)).astype(np.float32)
    check_no_allocation(schema, [x] * count)
    check_no_allocation(schema, [x, x[:1], x[:, :1], x[0]][:count])
