"""Values at the places of a grid, against onnxruntime and against what follows from the definition."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.schema.schema import evaluate
from ops.spatial.grid_sample import GRID_SAMPLE
from ops.tensor.errors import OpError
from ops.tensor.spec import Array
from tests.helpers.onnx.small_models import model, node, run_onnxruntime, run_ours, value
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation

MODES, PADDINGS = ("nearest", "linear", "cubic"), ("zeros", "border", "reflection")


def _operands(shape: tuple[int, ...], places: tuple[int, ...], reach: float = 1.5) -> tuple[Array, Array]:
    random = np.random.default_rng(len(shape) + sum(shape) + sum(places))
    grid = random.uniform(-reach, reach, (shape[0], *places, len(shape) - 2))
    return random.standard_normal(shape).astype(np.float32), grid.astype(np.float32)


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(MODES), st.sampled_from(PADDINGS), st.booleans(),
    st.tuples(*[st.integers(1, 3)] * 2, *[st.integers(2, 6)] * 2), st.tuples(*[st.integers(1, 5)] * 2),
)  # fmt: skip
def test_values_of_images_are_those_of_onnxruntime(
    mode: str, padding: str, aligned: bool, shape: tuple[int, ...], places: tuple[int, ...]
) -> None:
    x, grid = _operands(shape, places)
    attrs: dict[str, Any] = {"mode": mode, "padding_mode": padding, "align_corners": int(aligned)}
    inputs = [value("x", x.shape), value("g", grid.shape)]
    proto = model([node("GridSample", ["x", "g"], **attrs)], inputs, opset=20)
    feeds = {"x": x, "g": grid}
    (ours,), (theirs,) = run_ours(proto, feeds), run_onnxruntime(proto, feeds)
    assert np.allclose(ours, theirs, atol=2e-4)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_the_names_of_operator_set_16_mean_the_same(mode: str) -> None:
    x, grid = _operands((2, 3, 5, 4), (3, 6), reach=0.8)
    inputs = [value("x", x.shape), value("g", grid.shape)]
    proto = model([node("GridSample", ["x", "g"], mode=mode)], inputs, opset=16)
    feeds = {"x": x, "g": grid}
    assert np.allclose(run_ours(proto, feeds)[0], run_onnxruntime(proto, feeds)[0], atol=2e-4)


@given(st.lists(st.integers(2, 5), min_size=1, max_size=3), st.sampled_from(MODES), st.sampled_from(PADDINGS))
@settings(max_examples=20, deadline=None)
def test_the_grid_of_all_elements_gives_the_elements(lengths: list[int], mode: str, padding: str) -> None:
    x = np.random.default_rng(1).standard_normal((2, 3, *lengths))
    axes = np.meshgrid(*(np.linspace(-1, 1, n) for n in lengths), indexing="ij")
    grid = np.broadcast_to(np.stack(axes[::-1], -1), (2, *lengths, len(lengths)))
    check_kernels(GRID_SAMPLE, [x, grid.copy()], [x], 1e-12, mode=mode, padding_mode=padding, align_corners=True)


@pytest.mark.parametrize(("padding", "wanted"), [("zeros", 0.0), ("border", 2.0), ("reflection", 1.0)])
def test_what_is_outside_is_zero_the_border_or_reflected(padding: str, wanted: float) -> None:
    x = np.array([[[0.0, 1.0, 2.0]]])
    grid = np.array([[[2.0]]])  # element 3, with the corners aligned
    (y,) = evaluate(GRID_SAMPLE, x, grid, padding_mode=padding, align_corners=True)
    assert y.item() == wanted


def test_an_axis_of_one_element_and_no_places() -> None:
    x = np.full((1, 2, 1, 1), 3.0, np.float32)
    for padding in ("border", "reflection"):
        for aligned in (False, True):
            (y,) = evaluate(
                GRID_SAMPLE, x, np.full((1, 2, 2, 2), 5, np.float32), padding_mode=padding, align_corners=aligned
            )
            assert (y == 3).all()
    for shape, places, wanted in (
        ((1, 2, 1, 1), (1, 0, 4), (1, 2, 0, 4)),
        ((1, 0, 4, 4), (1, 3, 3), (1, 0, 3, 3)),
        ((0, 1, 4, 4), (0, 3, 3), (0, 1, 3, 3)),
    ):
        (y,) = evaluate(GRID_SAMPLE, np.ones(shape, np.float32), np.zeros((*places, 2), np.float32))
        assert y.shape == wanted


def test_no_mode_allocates_anything() -> None:
    x, grid = _operands((2, 8, 40, 40), (50, 50))
    for mode in MODES:
        for padding in PADDINGS:
            check_no_allocation(GRID_SAMPLE, [x, grid], mode=mode, padding_mode=padding)


@pytest.mark.parametrize(
    ("x", "grid", "message"),
    [
        (np.zeros((1, 1, 2, 2), np.float16), np.zeros((1, 1, 1, 2), np.float16), "takes float32 or float64"),
        (np.zeros((1, 1, 2, 2)), np.zeros((1, 1, 1, 2), np.float32), "for both, not float64 and float32"),
        (np.zeros((1, 1, 2, 2)), np.zeros((2, 1, 1, 2)), "a grid for"),
        (np.zeros((1, 1, 2, 2)), np.zeros((1, 1, 1, 3)), "then 2 numbers"),
        (np.zeros((1, 1)), np.zeros((1, 0)), "a grid for"),
        (np.zeros((1, 1, 0, 2)), np.zeros((1, 1, 1, 2)), "nothing to sample"),
    ],
)
def test_operands_that_do_not_fit_are_refused(x: Array, grid: Array, message: str) -> None:
    with pytest.raises(OpError, match=message):
        evaluate(GRID_SAMPLE, x, grid)
