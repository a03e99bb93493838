"""Compiled maximum pooling of channels-last bytes against the kernel in plain numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.pool.nhwc import MAX_TAPS, NHWC_MAX_POOL
from ops.quantised.max_pool import QUANTISED_MAX_POOL
from tests.helpers.ops.compiled_kernel_checks import placed, run_native
from tests.helpers.ops.kernel_checks import run, same, sign
from tests.ops.pool.test_nhwc_compiled import Case, pools


def check(case: Case, dtype: str, parts: int, extra: int) -> None:
    """Checks one case with bytes in place of its floats."""
    rng, ends = np.random.default_rng(case[0].size), np.iinfo(dtype)
    x = rng.integers(ends.min, ends.max + 1, case[0].shape).astype(dtype)
    signature = sign(NHWC_MAX_POOL, [x], case[1])
    if QUANTISED_MAX_POOL.supports(signature):
        (wanted,) = run(MAX_TAPS, signature, [x])
        (got,) = run_native(QUANTISED_MAX_POOL, signature, [placed(x, extra)], parts, extra)
        same(got, wanted)


@settings(max_examples=20, deadline=None)
@given(pools(), st.sampled_from(["uint8", "int8"]), st.integers(1, 3), st.sampled_from([0, 0, 1, 16]))
def test_quantised_max_pool_equals_numpy(case: Case, dtype: str, parts: int, extra: int) -> None:
    check(case, dtype, parts, extra)


@pytest.mark.slow
@settings(max_examples=160, deadline=None)
@given(pools(150), st.sampled_from(["uint8", "int8"]), st.integers(1, 5), st.integers(0, 20))
def test_quantised_max_pool_equals_numpy_in_many_shapes(case: Case, dtype: str, parts: int, extra: int) -> None:
    check(case, dtype, parts, extra)
