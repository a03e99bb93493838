"""Compiled reductions equal numpy, for any layout of rows and number of parts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.registry import find
from ops.schema.backends import NUMBA, NUMPY
from ops.tensor.spec import Shape, spec_of
from tests.helpers.ops.kernel_checks import run, sign
from tests.helpers.ops.row_kernel_checks import PARTS, SHAPES, check_against_numpy, check_allocates_nothing, row_numbers

REDUCTIONS = ("sum", "mean", "max", "min", "l1", "l2", "sum_square")


@settings(max_examples=40)
@given(st.data(), st.sampled_from(SHAPES), st.sampled_from(REDUCTIONS), PARTS, st.integers(0, 99))
def test_compiled_reductions_equal_numpy(data: st.DataObject, shape: Shape, name: str, parts: int, seed: int) -> None:
    axes = data.draw(st.sets(st.integers(0, len(shape) - 1))) if shape else ()
    x = row_numbers(seed, shape, data.draw(st.sampled_from([0.0, 0.02])))
    extra = data.draw(st.sampled_from([0, 3]))
    with np.errstate(all="ignore"):
        check_against_numpy(
            find(f"reduce_{name}"), [x], parts, extra, axes=tuple(axes), keepdims=data.draw(st.booleans())
        )


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_compiled_sums_of_many_numbers_lose_little(axes: tuple[int, ...]) -> None:
    x = np.full((3000, 1000), 0.1, np.float32)
    schema = find("reduce_mean")
    signature = sign(schema, [x], {"axes": axes})
    (y,) = run(schema.kernel(signature, (NUMBA,)), signature, [x])
    np.testing.assert_allclose(y, np.float32(0.1), rtol=3e-6)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_compiled_reductions_leave_empty_rows_to_numpy(name: str) -> None:
    schema = find(f"reduce_{name}")
    signature = schema.sign([spec_of(np.ones((3, 0), np.float32))], {"axes": (1,)})
    assert schema.kernel(signature).backend == NUMPY


def test_compiled_reductions_allocate_nothing() -> None:
    check_allocates_nothing(find("reduce_mean"), [row_numbers(0, (64, 30, 64))], axes=(1,))
