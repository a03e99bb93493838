"""oneDNN's channels-last convolution against the one in plain numpy."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.convolution import onednn
from ops.convolution.nhwc import NHWC_CONV
from ops.convolution.onednn import CONVOLUTION
from ops.onednn.library import objection
from ops.schema.backends import NUMPY
from ops.schema.schema import Signature
from ops.tensor.spec import Array, TensorSpec
from tests.helpers.ops.activations import PIECEWISE_LINEAR
from tests.helpers.ops.compiled_kernel_checks import placed
from tests.helpers.ops.kernel_checks import bind, garbage, run, run_over, run_without_allocation, same, sign
from tests.helpers.ops.sample_arrays import normal
from tests.helpers.ops.window_cases import extents, lengths, window_attrs

pytestmark = pytest.mark.skipif(bool(objection()), reason=objection() or "oneDNN is there")
Case = tuple[list[Array], dict[str, Any]]
IS_THIN = onednn._is_thin
ACTIVATIONS = [*PIECEWISE_LINEAR, {"activation": "leaky_relu", "slope": 0.0}]


@pytest.fixture(autouse=True)
def _all_sizes() -> Iterator[None]:
    """Makes the library take few pixels too, which it leaves to faster compiled kernels otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(onednn, "_is_thin", lambda _: False)
        yield


def signed(arrays: list[Array], attrs: dict[str, Any], threads: int = 1) -> Signature:
    """Returns the signature with constant weights and bias."""
    return sign(NHWC_CONV, arrays, attrs, (1, 2), threads)


def reference(arrays: list[Array], attrs: dict[str, Any]) -> Array:
    """Computes with a kernel in plain numpy."""
    signature = sign(NHWC_CONV, arrays, attrs)
    return run(NHWC_CONV.kernel(signature, (NUMPY,)), signature, arrays)[0]


@st.composite
def convolutions(draw: Any) -> Case:
    """Draws one to three dimensions, groups, depthwise, windows in the padding, single pixels, several images."""
    ndim, group = draw(st.integers(1, 3)), draw(st.sampled_from([1, 1, 1, 2, 8]))
    channels, out = (group * draw(st.integers(1, n)) for n in (40 // group, 40 // group))
    kernel, attrs = lengths(draw, ndim, 3), window_attrs(draw, ndim, 2, 2, 2) | {"group": group}
    sizes = [draw(st.integers(n, n + 5)) for n in extents(kernel, attrs["dilations"])]
    shapes = [(draw(st.integers(1, 2)), *sizes, channels), (out, channels // group, *kernel), (out,)]
    arrays = normal(draw(st.integers(0, 99)), *shapes[: draw(st.integers(2, 3))])
    attrs |= draw(st.sampled_from(ACTIVATIONS))
    if len(arrays) > 2 and draw(st.booleans()):
        arrays += normal(7, signed(arrays, attrs).y.shape)
    return arrays, attrs


@settings(max_examples=30, deadline=None)
@given(convolutions(), st.integers(0, 15), st.integers(1, 3))
def test_onednn_conv_equals_numpy_in_any_place_on_any_threads(case: Case, place: int, threads: int) -> None:
    arrays, attrs = case
    signature, wanted = signed(arrays, attrs, threads), reference(arrays, attrs)
    if not CONVOLUTION.supports(signature):
        return
    atol = 1e-5 * float(np.abs(wanted).max(initial=1))
    y = placed(garbage(signature.y), first=place)
    thunk = bind(CONVOLUTION, signature, [placed(a, first=place) for a in arrays], [y])
    thunk()
    same(y, wanted, rtol=1e-4, atol=atol)
    before = y.tobytes()
    if len(arrays) > 3:
        (over,) = run_over(CONVOLUTION, signature, arrays, 3, placed(arrays[3], first=place))
        assert over.tobytes() == before
    y.fill(np.nan)
    thunk()
    assert y.tobytes() == before


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(ACTIVATIONS), st.sampled_from([(1, 1), (1, 3), (16, 3)]), st.integers(1, 2), st.data())
def test_onednn_conv_spreads_nan_and_infinities_as_numpy(
    finish: dict[str, Any], form: tuple[int, int], threads: int, data: st.DataObject
) -> None:
    group, width = form
    arrays = normal(3, (1, 6, 6, 16), (16, 16 // group, width, width), (16,))
    arrays[1] = np.abs(arrays[1]) + 1
    places = data.draw(st.lists(st.integers(0, arrays[0].size - 1), max_size=3))
    for place, number in zip(places, (np.nan, np.inf, -np.inf), strict=False):
        arrays[0].reshape(-1)[place] = number
    attrs = finish | {"group": group, "pads": (width // 2,) * 4}
    signature = signed(arrays, attrs, threads)
    if CONVOLUTION.supports(signature):
        same(run(CONVOLUTION, signature, arrays)[0], reference(arrays, attrs), rtol=1e-4, atol=1e-3)


def test_onednn_conv_carries_no_nan_to_the_next_run() -> None:
    x, w = normal(5, (1, 9, 9, 32), (32, 32, 3, 3))
    attrs = {"activation": "clip", "low": 0.0}
    signature = signed([x, w], attrs)
    y, (wanted,) = garbage(signature.y), run(CONVOLUTION, signature, [x, w])
    thunk = bind(CONVOLUTION, signature, [x, w], [y])
    x[0, 4, 4, 4] = np.nan
    thunk()
    assert np.isnan(y).sum() == 9 * 32
    x[...] = normal(5, x.shape)[0]
    thunk()
    assert y.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(
    ("shapes", "attrs"),
    [
        ([(1, 28, 28, 64), (64, 64, 3, 3), (64,)], {"pads": (1, 1, 1, 1), "activation": "clip", "low": 0.0}),
        ([(1, 28, 28, 64), (128, 64, 1, 1), (128,), (1, 28, 28, 128)], {}),
        ([(1, 28, 28, 96), (96, 1, 3, 3), (96,)], {"pads": (1, 1, 1, 1), "group": 96}),
    ],
)
def test_onednn_conv_of_network_layers_takes_the_scratchpad_alone(
    shapes: list[tuple[int, ...]], attrs: dict[str, Any]
) -> None:
    arrays = normal(1, *shapes)
    signature = signed(arrays, attrs)
    assert CONVOLUTION.supports(signature)
    y = run_without_allocation(CONVOLUTION, signature, arrays)
    same(y, reference(arrays, attrs), rtol=1e-4, atol=1e-3)
    assert CONVOLUTION.workspace(signature) < signature.y.nbytes // 4


def test_onednn_conv_leaves_unsupported_cases_to_other_kernels() -> None:
    x, w = (TensorSpec(s, np.dtype("float32")) for s in ((1, 9, 9, 16), (32, 16, 3, 3)))
    constant = frozenset({1})
    assert CONVOLUTION.supports(NHWC_CONV.sign([x, w], {}, constant))
    assert not CONVOLUTION.supports(NHWC_CONV.sign([x, w], {}))
    assert not CONVOLUTION.supports(NHWC_CONV.sign([x.with_shape((0, 9, 9, 16)), w], {}, constant))
    doubles = [s.with_dtype("float64") for s in (x, w)]
    assert not CONVOLUTION.supports(NHWC_CONV.sign(doubles, {}, constant))


@pytest.mark.parametrize(
    ("x", "weights", "group", "thin"),
    [
        ((1, 7, 7, 160), (960, 160, 1, 1), 1, True),
        ((1, 14, 14, 960), (128, 960, 1, 1), 1, True),
        ((1, 14, 14, 96), (576, 96, 1, 1), 1, False),
        ((1, 7, 7, 512), (512, 512, 3, 3), 1, False),
        ((1, 7, 7, 960), (960, 1, 1, 1), 960, False),
    ],
)
def test_onednn_conv_leaves_many_weights_for_few_pixels_to_compiled_kernels(
    x: tuple[int, ...], weights: tuple[int, ...], group: int, thin: bool
) -> None:
    specs = [TensorSpec(s, np.dtype("float32")) for s in (x, weights)]
    assert IS_THIN(NHWC_CONV.sign(specs, {"group": group}, frozenset({1}))) == thin
