"""Elementwise functions and reductions, on a graph that computes each operator at once."""

import numpy as np
import pytest

from ops import (
    add,
    arg_max,
    bit_shift,
    cast,
    clip,
    div,
    gelu,
    is_inf,
    leaky_relu,
    less,
    logical_or,
    max,
    mean,
    neg,
    pow,
    prelu,
    reduce_max,
    reduce_sum,
    relu,
    sigmoid,
    sub,
    where,
)
from ops.tensor.errors import ArityError
from tests.helpers.ops.eager_graph import EagerVar

X = EagerVar(np.array([[-2.0, 0.5], [1.0, 3.0]], np.float32))


def test_numbers_take_the_dtype_of_the_var_on_either_side() -> None:
    assert add(X, 1).array.tolist() == [[-1.0, 1.5], [2.0, 4.0]]
    assert sub(1, X).array.tolist() == [[3.0, 0.5], [0.0, -2.0]]
    assert div(X, np.array([2.0, 4.0], np.float32)).array.tolist() == [[-1.0, 0.125], [0.5, 0.75]]
    assert bit_shift(EagerVar(np.array([1, 2], np.uint8)), 2, "LEFT").array.tolist() == [4, 8]


def test_a_call_without_a_var_is_refused() -> None:
    with pytest.raises(ArityError, match="var"):
        add(1.0, 2.0)


def test_unary_functions_and_activations_pass_their_attributes() -> None:
    assert neg(X).array.tolist() == [[2.0, -0.5], [-1.0, -3.0]]
    assert relu(X).array.tolist() == [[0.0, 0.5], [1.0, 3.0]]
    assert leaky_relu(X, alpha=0.5).array.tolist() == [[-1.0, 0.5], [1.0, 3.0]]
    assert prelu(X, 0.25).array.tolist() == [[-0.5, 0.5], [1.0, 3.0]]
    assert is_inf(X, detect_positive=False).array.tolist() == [[False, False], [False, False]]
    assert sigmoid(EagerVar(np.zeros(1))).array.tolist() == [0.5]
    assert gelu(X, approximate="tanh").array[1, 1] != gelu(X).array[1, 1]


def test_a_missing_bound_of_clip_is_the_limit_of_the_dtype() -> None:
    assert clip(X, lo=0.0).array.tolist() == [[0.0, 0.5], [1.0, 3.0]]
    assert clip(X, hi=1.0).array.tolist() == [[-2.0, 0.5], [1.0, 1.0]]
    small = EagerVar(np.array([-128, 127], np.int8))
    assert clip(small).array.tolist() == [-128, 127]


def test_the_numbers_of_where_take_the_dtype_of_the_other_side() -> None:
    chosen = where(less(X, 1), X, 0)
    assert chosen.array.tolist() == [[-2.0, 0.5], [0.0, 0.0]]
    assert where(less(X, 1), 7, X).spec.dtype == np.float32
    assert logical_or(less(X, 1), less(2, X)).array.tolist() == [[True, True], [False, True]]


def test_a_fraction_stays_one_as_the_exponent_of_integers() -> None:
    assert pow(EagerVar(np.array([4, 9])), 0.5).array.tolist() == [2, 3]
    assert pow(X, 2).array.tolist() == [[4.0, 0.25], [1.0, 9.0]]
    assert pow(2.0, X).array.tolist() == [[0.25, np.float32(2**0.5)], [2.0, 8.0]]


def test_variadic_functions_take_vars_arrays_and_numbers() -> None:
    assert max(X, 0, np.array([1, 2], np.float32)).array.tolist() == [[1.0, 2.0], [1.0, 3.0]]
    assert mean(X, X).array.tolist() == X.array.tolist()


def test_reductions_and_casts_pass_their_attributes() -> None:
    assert reduce_sum(X, (1,), keepdims=False).array.tolist() == [-1.5, 4.0]
    assert reduce_max(X).array.tolist() == [[3.0]]
    assert arg_max(X, axis=1, keepdims=False).array.tolist() == [1, 1]
    assert cast(X, "int64").array.tolist() == [[-2, 0], [1, 3]]
