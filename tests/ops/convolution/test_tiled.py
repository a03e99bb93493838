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
from ops.schema.schema import Kernel, Signature
from ops.tensor.spec import Array, spec_of
from tests.helpers.ops.compiled_kernel_checks import placed, run_native
from tests.helpers.ops.kernel_checks import MOST_SCRATCH, bind, garbage, run, same, scratch_bytes, strided_copies

Case = tuple[list[Array], dict[str, Any]]
ACTIVATIONS: list[dict[str, Any]] = [
    {},
    {"activation": "clip", "low": 0.0},
    {"activation": "clip", "low": -0.5, "high": 0.75},
    {"activation": "leaky_relu", "slope": 0.1},
    {"activation": "leaky_relu", "slope": 1.5},
]


def by_shape(shape: TileShape) -> tuple[Kernel, ...]:
    """Both kernels, by tiles of a shape; that by rows also with room for a few lines."""
    return by_rows(lambda: shape), by_rows(lambda: shape, 500), tiled(lambda: shape)


KERNELS = {shape.name: by_shape(shape) for shape in SHAPES}
kernels = st.sampled_from(sorted(KERNELS)).map(KERNELS.__getitem__)


@st.composite
def convolutions(draw: Any, most_channels: int = 40) -> Case:
    """One to three dimensions, groups, strides, dilations, paddings wider than windows, empty batches, no channels."""
    ndim, group = draw(st.integers(1, 3)), draw(st.sampled_from([1, 1, 1, 1, 2, 3, 5]))
    channels = group * draw(st.one_of(st.integers(0, most_channels // group), st.integers(1, 3)))
    out = group * draw(st.integers(0, most_channels // group))
    several = st.lists(st.integers(1, 3 if ndim < 3 else 2), min_size=ndim, max_size=ndim).map(tuple)
    attrs: dict[str, Any] = {"strides": draw(several), "dilations": draw(several), "group": group}
    attrs["pads"] = tuple(draw(st.lists(st.integers(0, 3), min_size=2 * ndim, max_size=2 * ndim)))
    window = draw(several)
    least = [d * (k - 1) + 1 for d, k in zip(attrs["dilations"], window, strict=True)]
    pads = zip(attrs["pads"][:ndim], attrs["pads"][ndim:], strict=True)
    sizes = [draw(st.integers(max(1, n - sum(p)), 11 if ndim < 3 else 5)) for n, p in zip(least, pads, strict=True)]
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    batch, operands = draw(st.integers(0, 2)), draw(st.integers(2, 4))
    shapes = [(batch, *sizes, channels), (out, channels // group, *window), (out,)]
    arrays = [rng.standard_normal(s).astype(np.float32) for s in shapes[:operands]]
    attrs |= draw(st.sampled_from(ACTIVATIONS))
    if operands == 4:
        (y,) = NHWC_CONV.sign([spec_of(a) for a in arrays], attrs).outputs
        arrays.append(rng.standard_normal(y.shape).astype(np.float32))
    return arrays, attrs


def sign(case: Case) -> Signature:
    return NHWC_CONV.sign([spec_of(a) for a in case[0]], case[1], frozenset({1}))


def spaced(arrays: list[Array], extra: int) -> list[Array]:
    """The data and what is added with gaps between pixels, weights and bias without."""
    return [placed(a, 0 if i in (1, 2) else extra) for i, a in enumerate(arrays)]


def check(kernel: Kernel, case: Case, parts: int, extra: int) -> None:
    """Results, into an output of its own and into the bytes of what is added."""
    signature = sign(case)
    (wanted,) = run(COLUMNS, signature, case[0])
    (got,) = run_native(kernel, signature, spaced(case[0], extra), parts, extra)
    same(got, wanted, 1e-4, 1e-4)
    if len(case[0]) == 4:
        (over,) = run_native(kernel, signature, spaced(case[0], extra), parts, extra, over=3)
        same(over, got)


def check_all(kernels: tuple[Kernel, ...], case: Case, parts: int, extra: int) -> None:
    """Each kernel that takes the case; at least one does."""
    fit = [k for k in kernels if k.supports(sign(case))]
    assert fit
    for kernel in fit:
        check(kernel, case, parts, extra)


@settings(max_examples=80, deadline=None)
@given(kernels, convolutions(), st.integers(1, 3), st.sampled_from([0, 0, 1, 16]))
def test_tiled_conv_equals_numpy(kernels: tuple[Kernel, ...], case: Case, parts: int, extra: int) -> None:
    check_all(kernels, case, parts, extra)


@pytest.mark.slow
@settings(max_examples=800, deadline=None)
@given(kernels, convolutions(150), st.integers(1, 7), st.integers(0, 20))
def test_tiled_conv_equals_numpy_in_many_shapes(
    kernels: tuple[Kernel, ...], case: Case, parts: int, extra: int
) -> None:
    check_all(kernels, case, parts, extra)


@settings(max_examples=40, deadline=None)
@given(kernels, convolutions(), st.integers(0, 99))
def test_tiled_conv_spreads_nan_and_infinities_as_numpy(kernels: tuple[Kernel, ...], case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for array in (case[0][0], case[0][-1]):
        for special in (np.nan, np.inf, -np.inf):
            flat = array.reshape(-1)
            flat[rng.integers(0, max(flat.size, 1), min(2, flat.size))] = special
    signature = sign(case)
    (wanted,) = run(COLUMNS, signature, case[0])
    for kernel in kernels:
        if kernel.supports(signature):
            (got,) = run_native(kernel, signature, spaced(case[0], 0), 1)
            same(got, wanted, 1e-4, 1e-4)


def layer(channels: int, size: int, out: int, window: int = 1, stride: int = 1, **more: Any) -> Case:
    rng = np.random.default_rng(0)
    shapes = (1, size, size, channels), (out, channels // more.get("group", 1), window, window), (out,)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    arrays[1] /= np.float32(np.sqrt(arrays[1][0].size))
    pads = (window // 2,) * 4
    return arrays, {"strides": (stride, stride), "pads": pads, "activation": "clip", "low": 0.0} | more


LAYERS = {
    "rows that share lines of the cache": layer(1024, 7, 64),
    "a panel in chunks": layer(520, 5, 40, 3),
    "a block with another behind": layer(20, 40, 70, 5),
    "groups": layer(240, 14, 60, group=3),
    "few channels": layer(3, 30, 64, 7, 2),
    "a stride": layer(64, 15, 96, 1, 2),
}


@pytest.mark.parametrize("name", LAYERS)
def test_tiled_conv_of_network_layers_equals_numpy(name: str) -> None:
    check_all((ROWS, TILED), LAYERS[name], 2, 0)


@pytest.mark.parametrize("channels", [2, 3])
def test_tiled_conv_takes_few_channels_of_any_strides(channels: int) -> None:
    (x, *rest), attrs = layer(channels, 9, 20, 3)
    signature = sign(([x, *rest], attrs))
    wanted = run_native(ROWS, signature, [x, *rest], 1)[0].tobytes()
    for stored in (np.ascontiguousarray(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1), *strided_copies(x)):
        assert run_native(ROWS, signature, [stored, *rest], 2)[0].tobytes() == wanted


def test_tiled_conv_is_the_same_in_any_number_of_parts() -> None:
    case = layer(64, 9, 100, 3)
    results = [run_native(TILED, sign(case), case[0], n)[0].tobytes() for n in (1, 2, 3, 4, 7)]
    assert len(set(results)) == 1


def test_tiled_conv_of_an_image_does_not_depend_on_its_batch() -> None:
    (x, w, b), attrs = layer(20, 9, 40, 3)
    both = np.concatenate([x, x[:, ::-1]])
    (all_of_it,) = run(TILED, sign(([both, w, b], attrs)), [both, w, b])
    (alone,) = run(TILED, sign(([both[1:], w, b], attrs)), [both[1:], w, b])
    assert all_of_it[1:].tobytes() == alone.tobytes()


def test_tiled_conv_allocates_nothing() -> None:
    for kernel, case in ((TILED, layer(96, 40, 64, 3)), (ROWS, layer(3, 120, 64, 3))):
        thunk = bind(kernel, sign(case), case[0], [garbage(sign(case).y)])
        assert scratch_bytes(thunk) <= MOST_SCRATCH


def test_tiled_conv_leaves_weights_that_are_no_constant_to_numpy() -> None:
    arrays, attrs = layer(8, 5, 8)
    assert NHWC_CONV.kernel(sign((arrays, attrs))) is TILED
    assert NHWC_CONV.kernel(sign(layer(8, 5, 8, 3))) is ROWS
    assert NHWC_CONV.kernel(NHWC_CONV.sign([spec_of(a) for a in arrays], attrs)).backend == "numpy"
