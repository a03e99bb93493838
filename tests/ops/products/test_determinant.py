"""Determinants, against exact ones of fractions."""

from fractions import Fraction
from itertools import permutations
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.products.determinant import DET
from ops.schema.schema import evaluate
from ops.tensor.errors import OpError
from ops.tensor.spec import Array
from tests.helpers.onnx.onnxruntime_node import onnxruntime_node
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation, check_results
from tests.helpers.ops.sample_arrays import SEEDS


def _sign(order: tuple[int, ...]) -> int:
    return 1 - 2 * (sum(a > b for i, a in enumerate(order) for b in order[i + 1 :]) % 2)


def _exact(matrix: Array) -> float:
    """Returns the sum of Leibniz over all permutations."""
    rows = [[Fraction(float(n)) for n in row] for row in matrix]
    orders = permutations(range(len(rows)))
    return float(sum((_sign(o) * prod(rows[i][j] for i, j in enumerate(o)) for o in orders), Fraction(0)))


@given(st.integers(0, 4), st.lists(st.integers(0, 3), max_size=2), st.sampled_from(["f4", "f8"]), SEEDS)
def test_determinants_are_the_exact_ones(n: int, lead: list[int], dtype: str, seed: int) -> None:
    x = np.random.default_rng(seed).integers(-3, 4, (*lead, n, n)).astype(dtype)
    wanted = np.array([_exact(x[i]) for i in np.ndindex(*lead)], dtype).reshape(lead)
    check_kernels(DET, [x], [wanted], 1e-4, 1e-4)


@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_determinants_are_those_of_onnxruntime(n: int) -> None:
    x = (np.random.default_rng(n).standard_normal((3, n, n)) / np.sqrt(n)).astype(np.float32)
    check_results(DET, [x], onnxruntime_node("Det", [x], opset=11), 1e-3, 1e-6)


def test_rows_are_swapped_and_singular_matrices_have_0() -> None:
    x = np.array([[[0.0, 2], [3, 4]], [[1, 2], [2, 4]], [[0, 0], [0, 0]], [[1e-20, 1], [1, 1]]])
    assert evaluate(DET, x)[0].tolist() == [-6, 0, 0, -1]


def test_nothing_is_allocated() -> None:
    check_no_allocation(DET, [np.random.default_rng(0).standard_normal((50, 30, 30))])


@pytest.mark.parametrize("x", [np.zeros((2, 3)), np.zeros(3), np.zeros((2, 2), "f2"), np.zeros((2, 2), "i4")])
def test_what_is_no_square_matrix_of_floats_is_refused(x: Array) -> None:
    with pytest.raises(OpError, match=r"takes (square matrices|float32 or float64)"):
        evaluate(DET, x)
