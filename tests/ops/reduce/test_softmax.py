"""Softmax and log softmax in compiled code: equal to numpy, over their input, without allocation."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.reduce.softmax import LOG_SOFTMAX, SOFTMAX
from ops.schema.backends import NUMBA
from ops.schema.schema import OpSchema
from ops.tensor.spec import Shape
from tests.helpers.ops.kernel_checks import check_overwrites, run, sign
from tests.helpers.ops.row_kernel_checks import PARTS, SHAPES, check_against_numpy, check_allocates_nothing, row_numbers


@settings(max_examples=30)
@given(st.data(), st.sampled_from(SHAPES[1:]), PARTS, st.integers(0, 99), st.sampled_from([0, 3]))
def test_compiled_softmax_equals_numpy(data: st.DataObject, shape: Shape, parts: int, seed: int, extra: int) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = row_numbers(seed, shape, data.draw(st.sampled_from([0.0, 0.02])))
    for schema in (SOFTMAX, LOG_SOFTMAX):
        check_against_numpy(schema, [x], parts, extra, axis=axis)


@pytest.mark.parametrize("schema", [SOFTMAX, LOG_SOFTMAX])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_softmax_may_lie_over_its_input(schema: OpSchema, axis: int) -> None:
    assert check_overwrites(schema, [row_numbers(0, (5, 17, 40))], axis=axis) == 1


def test_compiled_softmax_is_zero_far_below_the_largest() -> None:
    x = np.array([[0, -1e9, -np.inf, -200], [-np.inf] * 4, [np.inf, 0, 0, 0]], np.float32)
    signature = sign(SOFTMAX, [x], {})
    (y,) = run(SOFTMAX.kernel(signature, (NUMBA,)), signature, [x])
    assert y[0].tolist() == [1, 0, 0, 0]
    assert np.isnan(y[1:]).all()


@pytest.mark.parametrize("attrs", [{"axis": 1}, {}])
def test_compiled_softmax_allocates_nothing(attrs: dict[str, Any]) -> None:
    check_allocates_nothing(SOFTMAX, [row_numbers(0, (64, 30, 64))], **attrs)
