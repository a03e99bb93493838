"""The compiled transposed convolution by phases, by tiles of each shape, against the one through columns."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ops.convolution.nhwc_transpose import NHWC_CONV_TRANSPOSE, TAPS
from ops.convolution.phases import PHASES, phases
from ops.native.emit.tile_shapes import SHAPES
from tests.helpers.ops.compiled_kernel_checks import run_native
from tests.helpers.ops.kernel_checks import run, same, sign
from tests.helpers.ops.sample_arrays import normal

KERNELS = {shape.name: phases(lambda shape=shape: shape) for shape in SHAPES}  # type: ignore[misc]


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(sorted(KERNELS)),
    st.tuples(st.integers(1, 2), st.integers(1, 19), st.integers(1, 19), st.integers(2, 20)),
    st.tuples(st.integers(1, 40), st.integers(1, 5), st.integers(1, 3), st.integers(1, 2), st.integers(0, 2)),
    st.integers(1, 5),
    st.integers(0, 9),
)
def test_phases_equal_columns(
    name: str, x: tuple[int, int, int, int], window: tuple[int, int, int, int, int], parts: int, extra: int
) -> None:
    out, kernel, stride, dilation, pad = window
    attrs = {"strides": (stride,) * 2, "dilations": (dilation,) * 2, "pads": (min(pad, kernel - 1),) * 4}
    arrays = normal(sum(x) + out, x, (x[-1], out, kernel, kernel), (out,))
    assume((min(x[1:3]) - 1) * stride + (kernel - 1) * dilation + 1 > 2 * pad)
    signature = sign(NHWC_CONV_TRANSPOSE, arrays, attrs, (1, 2))
    assume(KERNELS[name].supports(signature))
    (got,) = run_native(KERNELS[name], signature, arrays, parts, extra)
    same(got, run(TAPS, signature, arrays)[0], 1e-4, 1e-4)
    assert run_native(KERNELS[name], signature, arrays, 1)[0].tobytes() == got.tobytes()


@pytest.mark.parametrize(
    ("attrs", "shapes", "why"),
    [
        ({"strides": (3, 3)}, ((1, 4, 4, 8), (8, 8, 2, 2)), "no tap"),
        ({"strides": (2, 2), "dilations": (2, 2)}, ((1, 4, 4, 8), (8, 8, 2, 2)), "no tap"),
        ({"strides": (9, 9)}, ((1, 4, 4, 8), (8, 8, 9, 9)), "phases"),
        ({"group": 8}, ((1, 4, 4, 8), (8, 1, 2, 2)), "one channel"),
    ],
)
def test_phases_leave_these_to_the_kernel_of_numpy(
    attrs: dict[str, object], shapes: tuple[tuple[int, ...], ...], why: str
) -> None:
    signature = sign(NHWC_CONV_TRANSPOSE, normal(0, *shapes), attrs, (1,))
    assert why in PHASES.unsupported(signature)
    assert TAPS.supports(signature)


def test_an_output_of_fewer_places_than_strides_has_empty_phases() -> None:
    arrays = normal(3, (1, 1, 1, 4), (4, 5, 3, 3), (5,))
    signature = sign(NHWC_CONV_TRANSPOSE, arrays, {"strides": (3, 3), "pads": (1, 1, 1, 1)}, (1, 2))
    assert signature.y.shape == (1, 1, 1, 5)
    (got,) = run_native(PHASES, signature, arrays, 2)
    np.testing.assert_allclose(got[0, 0, 0], arrays[0][0, 0, 0] @ arrays[1][:, :, 1, 1] + arrays[2], rtol=1e-5)
