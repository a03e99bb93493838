"""Regions of images, against onnxruntime and against what follows from the definition."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from ops.schema.schema import OpSchema, evaluate
from ops.spatial.regions import MAX_ROI_POOL, ROI_ALIGN
from ops.tensor.errors import OpError
from ops.tensor.spec import Array
from tests.helpers.onnx.small_models import model, node, run_onnxruntime, run_ours, value
from tests.helpers.ops.kernel_checks import check_strides, kernels, run, sign
from tests.helpers.ops.sample_arrays import SEEDS

SIZES = st.tuples(*[st.integers(1, 3)] * 2, *[st.integers(1, 9)] * 2)
SCALES = st.sampled_from([1.0, 0.5, 0.3])
ATTRS = st.fixed_dictionaries(
    {
        "output_height": st.integers(1, 4),
        "output_width": st.integers(1, 4),
        "sampling_ratio": st.integers(0, 3),
        "spatial_scale": SCALES,
        "mode": st.sampled_from(["avg", "max"]),
    }
)


def _regions(seed: int, shape: tuple[int, ...], count: int, scale: float) -> tuple[Array, Array, Array]:
    random = np.random.default_rng(seed)
    reach = np.array([shape[3], shape[2]] * 2, np.float32) / scale
    regions = random.uniform(-0.4, 1.4, (count, 4)) * reach
    regions[:, 2:] = np.maximum(regions[:, 2:], regions[:, :2])
    images = random.integers(0, shape[0], count)
    return random.standard_normal(shape).astype(np.float32), regions.astype(np.float32), images


@settings(max_examples=40, deadline=None)
@given(
    SIZES, st.integers(0, 4), ATTRS, st.sampled_from(["half_pixel", "output_half_pixel", ""]), SEEDS,
)  # fmt: skip
def test_samples_of_regions_are_those_of_onnxruntime(
    shape: tuple[int, ...], count: int, attrs: dict[str, Any], coordinates: str, seed: int
) -> None:
    x, regions, images = _regions(seed, shape, count, attrs["spatial_scale"])
    if coordinates:
        attrs["coordinate_transformation_mode"] = coordinates
    inputs = [value("x", x.shape), value("r", regions.shape), value("i", images.shape, np.int64)]
    proto = model([node("RoiAlign", ["x", "r", "i"], **attrs)], inputs, opset=16 if coordinates else 10)
    feeds = {"x": x, "r": regions, "i": images}
    (ours,), (theirs,) = run_ours(proto, feeds), run_onnxruntime(proto, feeds)
    assert ours.shape == theirs.shape
    assert np.allclose(ours, theirs, atol=1e-5)


@settings(max_examples=30, deadline=None)
@given(SIZES, st.integers(0, 4), st.tuples(*[st.integers(1, 4)] * 2), SCALES, SEEDS)
def test_largest_elements_of_regions_are_those_of_onnxruntime(
    shape: tuple[int, ...], count: int, pooled: tuple[int, int], scale: float, seed: int
) -> None:
    x, regions, images = _regions(seed, shape, count, scale)
    rows = np.concatenate([images[:, None].astype(np.float32), regions], 1)
    inputs = [value("x", x.shape), value("r", rows.shape)]
    proto = model([node("MaxRoiPool", ["x", "r"], pooled_shape=pooled, spatial_scale=scale)], inputs)
    (ours,), (theirs,) = (run(proto, {"x": x, "r": rows}) for run in (run_ours, run_onnxruntime))
    assert ours.tobytes() == theirs.tobytes()


def test_a_region_of_a_whole_constant_image_is_that_constant() -> None:
    x = np.full((1, 2, 6, 8), 3.0)
    region = np.array([[0.5, 0.5, 7.5, 5.5]])
    (y,) = evaluate(ROI_ALIGN, x, region, np.zeros(1, np.int64), output_height=3, output_width=2, sampling_ratio=8)
    assert np.allclose(y, 3)
    rows = np.array([[0, 0, 0, 7, 5.0]])
    assert (evaluate(MAX_ROI_POOL, x, rows, pooled_shape=(3, 4))[0] == 3).all()


def test_bits_of_regions_do_not_depend_on_strides() -> None:
    x, regions, images = _regions(3, (2, 3, 7, 6), 5, 1.0)
    for mode in ("avg", "max"):
        check_strides(ROI_ALIGN, [x, regions, images], mode=mode, output_height=3, output_width=2)
    rows = np.concatenate([images[:, None].astype(np.float32), regions], 1)
    check_strides(MAX_ROI_POOL, [x, rows], pooled_shape=(2, 3))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("schema", [ROI_ALIGN, MAX_ROI_POOL], ids=lambda schema: schema.name)
def test_compiled_regions_have_the_numbers_of_those_of_numpy(schema: OpSchema, dtype: str) -> None:
    for seed in range(20):
        x, regions, images = (
            a.astype(dtype if a.dtype == np.float32 else a.dtype) for a in _regions(seed, (2, 3, 6, 7), 4, 1.0)
        )
        x[0, 0, seed % 6, 3] = (np.nan, np.inf, -0.0)[seed % 3]
        attrs: dict[str, Any] = {"pooled_shape": (3, 2)}
        operands = [x, np.concatenate([images[:, None].astype(dtype), regions], 1)]
        if schema is ROI_ALIGN:
            attrs = {
                "output_height": 3,
                "output_width": 2,
                "sampling_ratio": seed % 4,
                "mode": ("avg", "max")[seed % 2],
            }
            operands = [x, regions, images]
        signature = sign(schema, operands, attrs)
        (compiled,), (plain,) = (run(kernel, signature, operands) for kernel in kernels(schema, signature))
        np.testing.assert_array_equal(compiled, plain)


def test_images_of_open_lengths_and_open_numbers_of_regions() -> None:
    attrs: dict[str, Any] = {"output_height": 2, "output_width": 3, "sampling_ratio": 2}
    inputs = [value("x", ("n", 2, "h", "w")), value("r", ("k", 4)), value("i", ("k",), np.int64)]
    proto = model([node("RoiAlign", ["x", "r", "i"], **attrs)], inputs, opset=16)
    executable = engine.compile(engine.load_onnx(proto))
    for shape, count in (((2, 2, 5, 7), 3), ((1, 2, 9, 4), 0), ((3, 2, 4, 4), 6)):
        feeds = dict(zip("xri", _regions(1, shape, count, 1.0), strict=True))
        (theirs,) = run_onnxruntime(proto, feeds)
        assert np.allclose(executable.run(feeds)["y"], theirs, atol=1e-5)


X, R, N = np.zeros((1, 2, 4, 4)), np.array([[0.0, 0, 2, 2]]), np.zeros(1, np.int64)
P = np.array([[0.0, 0, 0, 2, 2]])


@pytest.mark.parametrize(
    ("schema", "operands", "attrs", "message"),
    [
        (ROI_ALIGN, [X, R, N + 1], {}, "a region lies in image 1, and there are 1"),
        (ROI_ALIGN, [X, R, N - 1], {}, "a region lies in image -1"),
        (ROI_ALIGN, [X, R * np.nan, N], {}, "regions must be finite numbers"),
        (ROI_ALIGN, [X, R * 1e9, N], {}, "needs more than 262144 samples; give a sampling_ratio"),
        (ROI_ALIGN, [X, R * 1e300, N], {"spatial_scale": 1e300}, "an edge of a region is inf"),
        (ROI_ALIGN, [X, np.array([[-1.5e308, 0, 1.5e308, 2]]), N], {}, "from -1.5e.308 to 1.5e.308 is too large"),
        (ROI_ALIGN, [X, np.array([[0, 9, 1e300, 0]]), N], {}, "needs more than 262144 samples; give a sampling_ratio"),
        (ROI_ALIGN, [X, R, N], {"sampling_ratio": 2**40}, "it must be from 0 to 512"),
        (ROI_ALIGN, [X, R, N], {"sampling_ratio": -1}, "it must be from 0 to 512"),
        (ROI_ALIGN, [X, R, N], {"output_height": 0}, "a height and a width of 1 or more"),
        (ROI_ALIGN, [X, R, np.zeros(2, np.int64)], {}, "does not name an image for each"),
        (ROI_ALIGN, [X, P, N], {}, r"regions \(n, 4\)"),
        (ROI_ALIGN, [X.astype("f4"), R, N], {}, "takes float32 or float64 for both"),
        (ROI_ALIGN, [X[:, :, :0], R, N], {}, "nothing to pool"),
        (MAX_ROI_POOL, [X, P + 1], {"pooled_shape": (1, 1)}, "a region lies in image 1"),
        (MAX_ROI_POOL, [X, P], {"pooled_shape": (1,)}, "a height and a width of 1 or more"),
        (MAX_ROI_POOL, [X, P * np.nan], {"pooled_shape": (1, 1)}, "a region lies in image nan"),
        (MAX_ROI_POOL, [X, P * [1, 1, 1, np.inf, 1]], {"pooled_shape": (1, 1)}, "regions must be finite numbers"),
        (
            MAX_ROI_POOL,
            [X, P * [1, 1, 1, 1e300, 1]],
            {"pooled_shape": (1, 1)},
            "a region from 0 to 2e.300 is too large",
        ),
        (MAX_ROI_POOL, [X, P], {"pooled_shape": (1, 1), "spatial_scale": np.inf}, "a finite number is wanted"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_regions_that_do_not_fit_are_refused(
    schema: OpSchema, operands: list[Array], attrs: dict[str, Any], message: str
) -> None:
    with pytest.raises(OpError, match=message):
        evaluate(schema, *operands, **attrs)
