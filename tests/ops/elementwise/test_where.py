import numpy as np
import pytest

from ops.common.blocks import BLOCK_BYTES
from ops.elementwise.where import WHERE
from ops.schema.schema import evaluate
from ops.tensor.errors import DtypeError, ShapeError
from ops.tensor.spec import BOOL, TensorSpec
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation, check_overwrites, same


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "uint64", "bool"])
@pytest.mark.parametrize(
    "shapes",
    [
        ((3, 4), (3, 4), (3, 4)),
        ((4,), (3, 4), ()),
        ((3, 1), (1, 4), (3, 4)),
        ((), (2,), (2,)),
        ((), (), ()),
        ((0, 2),) * 3,
    ],
)
def test_where_chooses_element_by_element(shapes: tuple[tuple[int, ...], ...], dtype: str) -> None:
    rng = np.random.default_rng(0)
    condition = np.asarray(rng.random(shapes[0]) < 0.5)
    x, y = (np.asarray(rng.integers(0, 9, s)).astype(dtype) for s in shapes[1:])
    check_kernels(WHERE, [condition, x, y], [np.where(condition, x, y)])


def test_where_overwrites_both_sides_but_no_bools() -> None:
    condition = np.array([True, False, True])
    assert check_overwrites(WHERE, [condition, np.arange(3), np.arange(3) + 9]) == 2
    assert check_overwrites(WHERE, [condition, condition, ~condition]) == 0
    assert check_overwrites(WHERE, [condition, np.arange(3), np.array(9)]) == 1


def test_where_of_large_tensors_goes_through_blocks() -> None:
    rng = np.random.default_rng(0)
    condition, x, y = rng.random((70, 3000)) < 0.5, rng.random((70, 3000)), rng.random((70, 3000))
    same(evaluate(WHERE, condition, x, y)[0], np.where(condition, x, y))
    assert check_overwrites(WHERE, [condition, x, y]) == 2
    signature = WHERE.sign([TensorSpec((9999, 99), d) for d in (BOOL, np.dtype("f4"), np.dtype("f4"))], {})
    assert WHERE.kernel(signature).workspace(signature) <= BLOCK_BYTES


def test_where_allocates_nothing() -> None:
    x = np.random.default_rng(0).standard_normal((300, 200)).astype(np.float32)
    check_no_allocation(WHERE, [x > 0, x, x])
    check_no_allocation(WHERE, [x[:1] > 0, x, x[:, :1]])
    check_no_allocation(WHERE, [x > 0, x[:, ::-1], x])


def test_where_refuses_operands_that_do_not_fit() -> None:
    with pytest.raises(DtypeError, match="condition"):
        evaluate(WHERE, np.zeros(2), np.zeros(2), np.zeros(2))
    with pytest.raises(DtypeError, match="int64"):
        evaluate(WHERE, np.array([True]), np.zeros(1), np.zeros(1, np.int64))
    with pytest.raises(ShapeError):
        evaluate(WHERE, np.array([True]), np.zeros(2), np.zeros(3))
