"""The compiled channels-last convolution, by tiles of each shape, against the one in plain numpy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.convolution.nhwc import NHWC_CONV
from ops.convolution.nhwc_gemm import COLUMNS
from ops.convolution.rows import ROWS, by_rows
from ops.convolution.tiled import TILED, tiled
from ops.native.emit.tile_shapes import SHAPES, TileShape
from ops.schema.schema import Kernel
from tests.helpers.ops.compiled_kernel_checks import run_native
from tests.helpers.ops.kernel_checks import run, run_without_allocation, same, sign, strided_copies
from tests.helpers.ops.nhwc_conv_cases import (
    Case,
    case_signature,
    check_native,
    check_same_in_parts,
    draw_case,
    network_layer,
    spaced,
    spread_specials,
)


def by_shape(shape: TileShape) -> tuple[Kernel, ...]:
    """Returns both kernels, by tiles of a shape; that by rows also with copies of a few lines at most."""
    return by_rows(lambda: shape), by_rows(lambda: shape, 500), tiled(lambda: shape)


KERNELS = {shape.name: by_shape(shape) for shape in SHAPES}
kernels = st.sampled_from(sorted(KERNELS)).map(KERNELS.__getitem__)


@st.composite
def convolutions(draw: Any, most_channels: int = 40) -> Case:
    """Draws convolutions in groups or not, perhaps with no channels."""
    group = draw(st.sampled_from([1, 1, 1, 1, 2, 3, 5]))
    channels = group * draw(st.one_of(st.integers(0, most_channels // group), st.integers(1, 3)))
    out = group * draw(st.integers(0, most_channels // group))
    return draw_case(draw, channels, out, group, (11, 5))


def check_all(kernels: tuple[Kernel, ...], case: Case, parts: int, extra: int) -> None:
    """Checks each kernel that takes the case; at least one does."""
    fit = [k for k in kernels if k.supports(case_signature(case))]
    assert fit
    for kernel in fit:
        check_native(kernel, COLUMNS, case, parts, extra, close=1e-4)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(kernels, convolutions(), st.integers(1, 3), st.sampled_from([0, 0, 1, 16]))
def test_tiled_conv_equals_numpy(kernels: tuple[Kernel, ...], case: Case, parts: int, extra: int) -> None:
    check_all(kernels, case, parts, extra)


@pytest.mark.slow
@settings(max_examples=320, deadline=None)
@given(kernels, convolutions(150), st.integers(1, 7), st.integers(0, 20))
def test_tiled_conv_equals_numpy_in_many_shapes(
    kernels: tuple[Kernel, ...], case: Case, parts: int, extra: int
) -> None:
    check_all(kernels, case, parts, extra)


@settings(max_examples=20, deadline=None)
@given(kernels, convolutions(), st.integers(0, 99))
def test_tiled_conv_spreads_nan_and_infinities_as_numpy(kernels: tuple[Kernel, ...], case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for array in (case[0][0], case[0][-1]):
        spread_specials(array, rng, 2)
    signature = case_signature(case)
    (wanted,) = run(COLUMNS, signature, case[0])
    for kernel in kernels:
        if kernel.supports(signature):
            (got,) = run_native(kernel, signature, spaced(case[0], 0), 1)
            same(got, wanted, 1e-4, 1e-4)


LAYERS = {
    "rows that share lines of the cache": network_layer(1024, 7, 64),
    "a panel in chunks": network_layer(520, 5, 40, 3),
    "a block with another behind": network_layer(20, 40, 70, 5),
    "groups": network_layer(240, 14, 60, group=3),
    "few channels": network_layer(3, 30, 64, 7, 2),
    "a stride": network_layer(64, 15, 96, 1, 2),
}


@pytest.mark.parametrize("name", LAYERS)
def test_tiled_conv_of_network_layers_equals_numpy(name: str) -> None:
    check_all((ROWS, TILED), LAYERS[name], 2, 0)


@pytest.mark.parametrize("channels", [2, 3])
def test_tiled_conv_takes_few_channels_of_any_strides(channels: int) -> None:
    (x, *rest), attrs = network_layer(channels, 9, 20, 3)
    signature = case_signature(([x, *rest], attrs))
    wanted = run_native(ROWS, signature, [x, *rest], 1)[0].tobytes()
    for stored in (np.ascontiguousarray(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1), *strided_copies(x)):
        assert run_native(ROWS, signature, [stored, *rest], 2)[0].tobytes() == wanted


def test_tiled_conv_is_the_same_in_any_number_of_parts() -> None:
    check_same_in_parts(TILED, network_layer(64, 9, 100, 3))


def test_tiled_conv_of_an_image_does_not_depend_on_its_batch() -> None:
    (x, w, b), attrs = network_layer(20, 9, 40, 3)
    both = np.concatenate([x, x[:, ::-1]])
    (all_of_it,) = run(TILED, case_signature(([both, w, b], attrs)), [both, w, b])
    (alone,) = run(TILED, case_signature(([both[1:], w, b], attrs)), [both[1:], w, b])
    assert all_of_it[1:].tobytes() == alone.tobytes()


def test_tiled_conv_allocates_nothing() -> None:
    for kernel, case in ((TILED, network_layer(96, 40, 64, 3)), (ROWS, network_layer(3, 120, 64, 3))):
        run_without_allocation(kernel, case_signature(case), case[0])


def test_tiled_conv_leaves_weights_that_are_no_constant_to_numpy() -> None:
    arrays, attrs = network_layer(8, 5, 8)
    assert NHWC_CONV.kernel(case_signature((arrays, attrs))) is TILED
    assert NHWC_CONV.kernel(case_signature(network_layer(8, 5, 8, 3))) is ROWS
    assert NHWC_CONV.kernel(sign(NHWC_CONV, arrays, attrs)).backend == "numpy"
