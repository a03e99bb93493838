"""The compiled depthwise convolution on channels-last tensors against the one in plain numpy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.convolution.depthwise_tiled import DEPTHWISE_NATIVE
from ops.convolution.nhwc import NHWC_CONV
from ops.convolution.nhwc_depthwise import DEPTHWISE
from ops.schema.schema import Signature
from ops.tensor.spec import Array, spec_of
from tests.helpers.ops.compiled_kernel_checks import placed, run_native
from tests.helpers.ops.kernel_checks import MOST_SCRATCH, bind, garbage, run, same, scratch_bytes

Case = tuple[list[Array], dict[str, Any]]
ACTIVATIONS: list[dict[str, Any]] = [
    {},
    {"activation": "clip", "low": 0.0, "high": 0.75},
    {"activation": "leaky_relu", "slope": 0.1},
]


@st.composite
def depthwise(draw: Any, most_channels: int = 70) -> Case:
    """One to three dimensions, multipliers, strides, dilations, paddings wider than windows, empty batches."""
    ndim, multiplier = draw(st.integers(1, 3)), draw(st.sampled_from([1, 1, 1, 2, 3]))
    channels = draw(st.one_of(st.integers(2, most_channels), st.sampled_from([16, 32, 48])))
    several = st.lists(st.integers(1, 3 if ndim < 3 else 2), min_size=ndim, max_size=ndim).map(tuple)
    attrs: dict[str, Any] = {"strides": draw(several), "dilations": draw(several), "group": channels}
    attrs["pads"] = tuple(draw(st.lists(st.integers(0, 3), min_size=2 * ndim, max_size=2 * ndim)))
    kernel = draw(several)
    least = [d * (k - 1) + 1 for d, k in zip(attrs["dilations"], kernel, strict=True)]
    pads = zip(attrs["pads"][:ndim], attrs["pads"][ndim:], strict=True)
    sizes = [draw(st.integers(max(1, n - sum(p)), 14 if ndim < 3 else 5)) for n, p in zip(least, pads, strict=True)]
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    batch, operands = draw(st.integers(0, 2)), draw(st.integers(2, 4))
    shapes = [(batch, *sizes, channels), (channels * multiplier, 1, *kernel), (channels * multiplier,)]
    arrays = [rng.standard_normal(s).astype(np.float32) for s in shapes[:operands]]
    attrs |= draw(st.sampled_from(ACTIVATIONS))
    if operands == 4:
        (y,) = NHWC_CONV.sign([spec_of(a) for a in arrays], attrs).outputs
        arrays.append(rng.standard_normal(y.shape).astype(np.float32))
    return arrays, attrs


def _sign(case: Case) -> Signature:
    return NHWC_CONV.sign([spec_of(a) for a in case[0]], case[1], frozenset({1}))


def _placed(arrays: list[Array], extra: int) -> list[Array]:
    """The data and what is added with gaps between pixels, weights and bias without."""
    return [placed(a, 0 if i in (1, 2) else extra) for i, a in enumerate(arrays)]


def check_depthwise(case: Case, parts: int, extra: int) -> None:
    """Results, into an output of its own and into the bytes of what is added."""
    signature = _sign(case)
    (wanted,) = run(DEPTHWISE, signature, case[0])
    (got,) = run_native(DEPTHWISE_NATIVE, signature, _placed(case[0], extra), parts, extra)
    same(got, wanted, 1e-5, 1e-5)
    if len(case[0]) == 4:
        (over,) = run_native(DEPTHWISE_NATIVE, signature, _placed(case[0], extra), parts, extra, over=3)
        same(over, got)


@settings(max_examples=40, deadline=None)
@given(depthwise(), st.integers(1, 3), st.sampled_from([0, 0, 1, 16]))
def test_tiled_depthwise_conv_equals_numpy(case: Case, parts: int, extra: int) -> None:
    check_depthwise(case, parts, extra)


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(depthwise(300), st.integers(1, 5), st.integers(0, 20))
def test_tiled_depthwise_conv_equals_numpy_in_many_shapes(case: Case, parts: int, extra: int) -> None:
    check_depthwise(case, parts, extra)


@settings(max_examples=20, deadline=None)
@given(depthwise(40), st.integers(0, 99))
def test_tiled_depthwise_conv_spreads_nan_and_infinities_as_numpy(case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for special in (np.nan, np.inf, -np.inf):
        flat = case[0][0].reshape(-1)
        flat[rng.integers(0, max(flat.size, 1), min(3, flat.size))] = special
    signature = _sign(case)
    (wanted,) = run(DEPTHWISE, signature, case[0])
    (got,) = run_native(DEPTHWISE_NATIVE, signature, _placed(case[0], 0), 1)
    same(got, wanted, 1e-5, 1e-5)


def _mobile(channels: int, size: int, stride: int, kernel: int = 3) -> Case:
    rng = np.random.default_rng(0)
    shapes = (1, size, size, channels), (channels, 1, kernel, kernel), (channels,)
    pad = kernel // 2
    attrs = {"group": channels, "strides": (stride, stride), "pads": (pad,) * 4, "activation": "clip", "low": 0.0}
    return [rng.standard_normal(s).astype(np.float32) for s in shapes], attrs


@pytest.mark.parametrize(
    "case",
    [_mobile(96, 28, 2), _mobile(528, 14, 1), _mobile(100, 30, 1, 5), _mobile(24, 7, 2, 5), _mobile(40, 23, 2, 5)],
)
def test_tiled_depthwise_conv_of_network_layers_equals_numpy(case: Case) -> None:
    check_depthwise(case, 2, 0)


def test_tiled_depthwise_conv_is_the_same_in_any_number_of_parts() -> None:
    case = _mobile(300, 15, 1)
    results = [run_native(DEPTHWISE_NATIVE, _sign(case), case[0], n)[0].tobytes() for n in (1, 2, 3, 7)]
    assert len(set(results)) == 1


def test_tiled_depthwise_conv_allocates_nothing() -> None:
    case = _mobile(96, 40, 1)
    signature = _sign(case)
    thunk = bind(DEPTHWISE_NATIVE, signature, case[0], [garbage(signature.y)])
    assert scratch_bytes(thunk) <= MOST_SCRATCH


def test_tiled_depthwise_conv_leaves_weights_that_are_no_constant_to_numpy() -> None:
    signature = NHWC_CONV.sign([spec_of(a) for a in _mobile(8, 5, 1)[0]], _mobile(8, 5, 1)[1])
    assert NHWC_CONV.kernel(signature) is DEPTHWISE
