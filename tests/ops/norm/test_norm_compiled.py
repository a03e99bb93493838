"""Compiled normalizations equal numpy, for any layout of rows and number of parts."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.norm.batch_norm import BATCH_NORM
from ops.norm.norm import GROUP_NORM, INSTANCE_NORM, LAYER_NORM, RMS_NORM
from ops.schema.backends import NUMBA, NUMPY
from ops.tensor.spec import Shape
from tests.helpers.ops.compiled_kernel_checks import placed, run_native
from tests.helpers.ops.kernel_checks import check_overwrites, run, sign
from tests.helpers.ops.row_kernel_checks import PARTS, SHAPES, check_against_numpy, check_allocates_nothing, row_numbers


@settings(max_examples=20)
@given(st.data(), st.sampled_from(SHAPES[1:]), PARTS, st.integers(0, 99), st.booleans())
def test_compiled_layer_and_rms_norm_equal_numpy(
    data: st.DataObject, shape: Shape, parts: int, seed: int, with_stats: bool
) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    tail = shape[axis % len(shape) :]
    x, scale, bias = row_numbers(seed, shape), row_numbers(seed + 1, tail), row_numbers(seed + 2, tail)
    check_against_numpy(LAYER_NORM, [x, scale, bias], parts, axis=axis, with_stats=with_stats)
    check_against_numpy(LAYER_NORM, [x, scale], parts, axis=axis, epsilon=0.1)
    check_against_numpy(RMS_NORM, [x, scale], parts, axis=axis)


@settings(max_examples=20)
@given(st.sampled_from([(1, 4, 9), (2, 6, 5, 4), (3, 2, 1), (1, 8, 40, 30)]), PARTS, st.integers(0, 99))
def test_compiled_instance_and_group_norm_equal_numpy(shape: Shape, parts: int, seed: int) -> None:
    arrays = [row_numbers(seed, shape), row_numbers(seed + 1, shape[1:2]), row_numbers(seed + 2, shape[1:2])]
    check_against_numpy(INSTANCE_NORM, arrays, parts, rtol=1e-4)
    check_against_numpy(GROUP_NORM, arrays, parts, rtol=1e-4, num_groups=2)


def test_norms_may_lie_over_their_input() -> None:
    x, row, channel = row_numbers(0, (3, 4, 50)), row_numbers(1, (50,)), row_numbers(2, (4,))
    assert check_overwrites(LAYER_NORM, [x, row, row]) == check_overwrites(RMS_NORM, [x, row]) == 1
    assert check_overwrites(INSTANCE_NORM, [x, channel, channel]) == 1
    assert check_overwrites(GROUP_NORM, [x, channel, channel], num_groups=2) == 1


def test_batch_norm_with_known_statistics_is_a_program() -> None:
    x = row_numbers(0, (2, 5, 7, 3))
    arrays = [x, *(row_numbers(i, (5,)) for i in (1, 2, 3)), np.abs(row_numbers(4, (5,)))]
    signature = sign(BATCH_NORM, arrays, {}, {1, 2, 3, 4})
    kernel = BATCH_NORM.kernel(signature)
    assert kernel.backend == NUMBA
    for parts, extra in ((1, 0), (3, 2)):
        (got,) = run_native(kernel, signature, [placed(x, extra), *arrays[1:]], parts, extra)
        (wanted,) = run(BATCH_NORM.kernel(signature, (NUMPY,)), signature, arrays)
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6)


def test_compiled_layer_norm_allocates_nothing() -> None:
    check_allocates_nothing(LAYER_NORM, [row_numbers(0, (64, 30, 64)), *[row_numbers(1, (64,))] * 2])
