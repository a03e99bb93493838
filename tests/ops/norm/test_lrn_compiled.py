"""The compiled local response normalization of channels-last tensors against the one in plain numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.norm.args import MOST_CHANNELS
from ops.norm.lrn_compiled import LRN_NATIVE
from ops.norm.nhwc_lrn import LRN_PIECES, NHWC_LRN
from ops.tensor.spec import Array
from tests.helpers.ops.compiled_kernel_checks import placed, run_native
from tests.helpers.ops.kernel_checks import run, run_without_allocation, same, sign

SHAPES = st.one_of(
    st.tuples(st.integers(0, 2), st.integers(0, 5), st.integers(1, 4), st.integers(0, 40)),
    st.tuples(st.integers(1, 2), st.integers(1, 7), st.sampled_from([1, 16, 33])),
)


def check_lrn(x: Array, size: int, beta: float, parts: int, extra: int) -> None:
    """Checks results in an output of its own, and over x."""
    attrs = {"size": size, "alpha": 0.5, "beta": beta, "bias": 1.5}
    signature = sign(NHWC_LRN, [x], attrs)
    (wanted,) = run(LRN_PIECES, signature, [x])
    (got,) = run_native(LRN_NATIVE, signature, [placed(x, extra)], parts, extra)
    same(got, wanted, 1e-5, 1e-7)
    (over,) = run_native(LRN_NATIVE, signature, [placed(x, extra)], parts, extra, over=0)
    same(over, got)


@settings(max_examples=20, deadline=None)
@given(SHAPES, st.integers(1, 9), st.sampled_from([0.75, 0.5, 1.0, 0.6]), st.integers(1, 3), st.sampled_from([0, 3]))
def test_compiled_lrn_equals_numpy(shape: tuple[int, ...], size: int, beta: float, parts: int, extra: int) -> None:
    check_lrn(np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32), size, beta, parts, extra)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("beta", [0.75, 0.5, 1.0, 0.6])
def test_compiled_lrn_spreads_nan_and_infinities_as_numpy(special: float, beta: float) -> None:
    x = np.random.default_rng(0).standard_normal((1, 3, 3, 20)).astype(np.float32)
    x[0, 1, 1, [0, 7]] = special
    check_lrn(x, 5, beta, 1, 0)


def test_compiled_lrn_allocates_nothing() -> None:
    x = np.ones((1, 40, 40, 64), np.float32)
    signature = sign(NHWC_LRN, [x], {"size": 5})
    run_without_allocation(LRN_NATIVE, signature, [x])


def test_compiled_lrn_leaves_pixels_too_long_for_the_stack_to_numpy() -> None:
    for channels, kernel in ((MOST_CHANNELS, LRN_NATIVE), (MOST_CHANNELS + 1, LRN_PIECES)):
        assert NHWC_LRN.kernel(sign(NHWC_LRN, [np.ones((1, 1, channels), np.float32)], {"size": 5})) is kernel


@pytest.mark.parametrize("size", [2**40, 2**40 + 1, 2**64])
def test_compiled_lrn_takes_more_neighbours_than_channels(size: int) -> None:
    x = np.random.default_rng(0).standard_normal((1, 2, 2, 9)).astype(np.float32)
    signature = sign(NHWC_LRN, [x], {"size": size, "alpha": float(size), "beta": 0.75, "bias": 1.5})
    wanted = x / (1.5 + (x**2).sum(-1, keepdims=True)) ** 0.75
    for kernel in (LRN_NATIVE, LRN_PIECES):
        same(run(kernel, signature, [x])[0], wanted.astype(np.float32), 1e-5)
