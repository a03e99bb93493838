import operator
from collections.abc import Callable

import numpy as np
import pytest

from ops.elementwise.comparison import AND, EQUAL, GREATER, GREATER_OR_EQUAL, LESS, LESS_OR_EQUAL, OPS, OR, XOR
from ops.schema.schema import OpSchema, evaluate
from ops.tensor.errors import DtypeError
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation, check_overwrites, same

NUMERIC = [
    (EQUAL, operator.eq),
    (LESS, operator.lt),
    (LESS_OR_EQUAL, operator.le),
    (GREATER, operator.gt),
    (GREATER_OR_EQUAL, operator.ge),
]
LOGICAL = [(AND, operator.and_), (OR, operator.or_), (XOR, operator.xor), (EQUAL, operator.eq)]
Relation = Callable[[object, object], bool]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8", "int64", "uint64"])
@pytest.mark.parametrize(("schema", "relation"), NUMERIC, ids=lambda v: getattr(v, "name", ""))
def test_numbers_are_compared_in_pairs(schema: OpSchema, relation: Relation, dtype: str) -> None:
    a, b = np.array([[1, 2, 3], [3, 2, 1]], dtype), np.array([2, 2, 2], dtype)
    wanted = np.array([[relation(x, 2) for x in row] for row in a.tolist()])
    check_kernels(schema, [a, b], [wanted])
    check_kernels(schema, [a, np.array(2, dtype)], [wanted])


@pytest.mark.parametrize(("schema", "relation"), LOGICAL, ids=lambda v: getattr(v, "name", ""))
def test_bools_are_combined_in_pairs(schema: OpSchema, relation: Relation) -> None:
    a, b = np.array([[False, False, True, True]]), np.array([[False, True, False, True]])
    wanted = np.array([[relation(x, y) for x, y in zip(a[0].tolist(), b[0].tolist(), strict=True)]])
    check_kernels(schema, [a, b], [wanted])
    assert check_overwrites(schema, [a, b]) == 2


def test_nan_equals_nothing_and_is_in_no_order() -> None:
    nan, one = np.array([np.nan], np.float32), np.array([1.0], np.float32)
    for schema, _ in NUMERIC:
        assert evaluate(schema, nan, one)[0].tolist() == [False]
        assert evaluate(schema, nan, nan)[0].tolist() == [False]


def test_the_bytes_of_numbers_are_not_overwritten_with_bools() -> None:
    assert check_overwrites(LESS, [np.ones(4, np.float32)] * 2) == 0
    assert check_overwrites(LESS, [np.ones(4, np.uint8)] * 2) == 0


def test_comparisons_of_nothing_are_nothing() -> None:
    (y,) = evaluate(LESS, np.zeros((0, 3)), np.zeros((1, 3)))
    same(y, np.zeros((0, 3), bool))


@pytest.mark.parametrize("schema", OPS, ids=lambda s: s.name)
def test_comparison_kernels_allocate_nothing(schema: OpSchema) -> None:
    kind = "bool" if schema in (AND, OR, XOR) else "float32"
    x = np.random.default_rng(0).integers(0, 2, (600, 400)).astype(kind)
    for operands in ([x, x], [x, x[:1]], [x[:, ::-1], x]):
        check_no_allocation(schema, operands)


def test_comparison_refuses_operands_of_two_dtypes() -> None:
    with pytest.raises(DtypeError, match="int8, float64"):
        evaluate(LESS, np.zeros(2, np.int8), np.zeros(2))
    with pytest.raises(DtypeError, match=r"and.*int8"):
        evaluate(AND, np.zeros(2, np.int8), np.zeros(2, np.int8))
