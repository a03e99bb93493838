"""The functions on vars, through a graph that only evaluates."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from attrs import field, frozen

from ops.functional.activation import clip, leaky_relu, prelu, relu
from ops.functional.arg import arg_max
from ops.functional.binary import add, bit_shift, div, sub
from ops.functional.cast import cast
from ops.functional.comparison import less, logical_or
from ops.functional.power import pow
from ops.functional.reduce import reduce_max, reduce_sum
from ops.functional.smooth import gelu, sigmoid
from ops.functional.unary import is_inf, neg
from ops.functional.variadic import max, mean
from ops.functional.where import where
from ops.schema.schema import OpSchema, evaluate
from ops.tensor.errors import ArityError
from ops.tensor.spec import Array, TensorSpec, spec_of


@frozen(eq=False)
class Known:
    """A var whose value is known at once."""

    value: Array
    graph: "Eager" = field(factory=lambda: Eager())  # noqa: PLW0108 - Eager is defined below

    @property
    def spec(self) -> TensorSpec:
        """Its shape and dtype."""
        return spec_of(self.value)


@frozen
class Eager:
    """A graph that runs each operator when it is added."""

    def add(self, schema: OpSchema, inputs: Sequence[Known], attrs: Mapping[str, Any]) -> tuple[Known, ...]:
        """The outputs."""
        return tuple(Known(y) for y in evaluate(schema, *(i.value for i in inputs), **attrs))

    def constant(self, array: Array) -> Known:
        """A known var."""
        return Known(array)


X = Known(np.array([[-2.0, 0.5], [1.0, 3.0]], np.float32))


def test_numbers_take_the_dtype_of_the_var_on_either_side() -> None:
    assert add(X, 1).value.tolist() == [[-1.0, 1.5], [2.0, 4.0]]
    assert sub(1, X).value.tolist() == [[3.0, 0.5], [0.0, -2.0]]
    assert div(X, np.array([2.0, 4.0], np.float32)).value.tolist() == [[-1.0, 0.125], [0.5, 0.75]]
    assert bit_shift(Known(np.array([1, 2], np.uint8)), 2, "LEFT").value.tolist() == [4, 8]


def test_a_call_without_a_var_is_refused() -> None:
    with pytest.raises(ArityError, match="var"):
        add(1.0, 2.0)


def test_unary_functions_and_activations_pass_their_attributes() -> None:
    assert neg(X).value.tolist() == [[2.0, -0.5], [-1.0, -3.0]]
    assert relu(X).value.tolist() == [[0.0, 0.5], [1.0, 3.0]]
    assert leaky_relu(X, alpha=0.5).value.tolist() == [[-1.0, 0.5], [1.0, 3.0]]
    assert prelu(X, 0.25).value.tolist() == [[-0.5, 0.5], [1.0, 3.0]]
    assert is_inf(X, detect_positive=False).value.tolist() == [[False, False], [False, False]]
    assert sigmoid(Known(np.zeros(1))).value.tolist() == [0.5]
    assert gelu(X, approximate="tanh").value[1, 1] != gelu(X).value[1, 1]


def test_a_missing_bound_of_clip_is_the_limit_of_the_dtype() -> None:
    assert clip(X, lo=0.0).value.tolist() == [[0.0, 0.5], [1.0, 3.0]]
    assert clip(X, hi=1.0).value.tolist() == [[-2.0, 0.5], [1.0, 1.0]]
    small = Known(np.array([-128, 127], np.int8))
    assert clip(small).value.tolist() == [-128, 127]


def test_the_numbers_of_where_take_the_dtype_of_the_other_side() -> None:
    chosen = where(less(X, 1), X, 0)
    assert chosen.value.tolist() == [[-2.0, 0.5], [0.0, 0.0]]
    assert where(less(X, 1), 7, X).spec.dtype == np.float32
    assert logical_or(less(X, 1), less(2, X)).value.tolist() == [[True, True], [False, True]]


def test_a_fraction_stays_one_as_the_exponent_of_integers() -> None:
    assert pow(Known(np.array([4, 9])), 0.5).value.tolist() == [2, 3]
    assert pow(X, 2).value.tolist() == [[4.0, 0.25], [1.0, 9.0]]
    assert pow(2.0, X).value.tolist() == [[0.25, np.float32(2**0.5)], [2.0, 8.0]]


def test_variadic_functions_take_vars_arrays_and_numbers() -> None:
    assert max(X, 0, np.array([1, 2], np.float32)).value.tolist() == [[1.0, 2.0], [1.0, 3.0]]
    assert mean(X, X).value.tolist() == X.value.tolist()


def test_reductions_and_casts_pass_their_attributes() -> None:
    assert reduce_sum(X, (1,), keepdims=False).value.tolist() == [-1.5, 4.0]
    assert reduce_max(X).value.tolist() == [[3.0]]
    assert arg_max(X, axis=1, keepdims=False).value.tolist() == [1, 1]
    assert cast(X, "int64").value.tolist() == [[-2, 0], [1, 3]]
