"""Gradients of losses, convolutions, pooling and normalization: central differences, all modes, and torch."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from ops.batch_norm_training import BATCH_NORM_DATA_GRADIENT, BATCH_NORM_TRAINING, CHANNEL_SUMS
from ops.conv_gradient import CONV_INPUT_GRADIENT, CONV_WEIGHT_GRADIENT
from ops.errors import DtypeError, ShapeError
from ops.indices import IndexRangeError
from ops.losses import SOFTMAX_CROSS_ENTROPY, SOFTMAX_CROSS_ENTROPY_GRADIENT
from ops.schema import evaluate
from ops.spec import Array
from tests.gradient_checks_nn import backward, check_gradients, check_modes, float_positions, floats
from tests.kernel_checks import check_no_allocation, check_overwrites, check_strides

FEW = settings(max_examples=12, deadline=None)
SIDES = st.integers(1, 4)


def labels(seed: int, shape: tuple[int, ...], classes: int, ignored: int = 0) -> Array:
    """Labels of which every `ignored`-th is -100."""
    found = np.random.default_rng(seed).integers(0, classes, shape)
    if ignored:
        found.reshape(-1)[::ignored] = -100
    return found


@FEW
@given(
    st.tuples(SIDES, st.integers(2, 5), *[SIDES] * 2) | st.tuples(SIDES, st.integers(2, 5)),
    st.sampled_from(["mean", "sum", "none"]),
    st.sampled_from([0.0, 0.2]),
    st.sampled_from([0, 3]),
)
def test_cross_entropy(shape: tuple[int, ...], reduction: str, smoothing: float, ignored: int) -> None:
    known = labels(2, (shape[0], *shape[2:]), shape[1], ignored)
    known.reshape(-1)[-1] = 0

    def loss(logits: Any) -> Any:
        return ops.softmax_cross_entropy(logits, known, reduction, label_smoothing=smoothing)

    check_gradients(loss, floats(1, shape))


def conv_cases() -> st.SearchStrategy[tuple[Any, ...]]:
    """Spatial dimensions, sizes, kernel, strides, pads (begins and ends), dilations, group, channels of a group."""

    def lengths(n: int) -> st.SearchStrategy[tuple[Any, ...]]:
        def each(low: int, high: int, count: int = n) -> st.SearchStrategy[tuple[int, ...]]:
            return st.tuples(*[st.integers(low, high)] * count)

        return st.tuples(each(5, 7), each(1, 3), each(1, 3), each(0, 2, 2 * n), each(1, 2), st.integers(1, 2))

    return st.integers(1, 3).flatmap(lengths)


@FEW
@given(conv_cases(), st.integers(1, 2), st.integers(1, 2), st.booleans())
def test_convolution(case: tuple[Any, ...], channels: int, filters: int, biased: bool) -> None:
    sizes, kernel, strides, pads, dilations, group = case
    shapes = [(2, group * channels, *sizes), (group * filters, channels, *kernel), (group * filters,)]
    more = {"strides": strides, "pads": pads, "dilations": dilations, "group": group}
    check_gradients(lambda *given: ops.conv(*given, **more), floats(3, *shapes[: 2 + biased]))


@FEW
@given(conv_cases(), st.integers(1, 2), st.integers(0, 1), st.booleans())
def test_transposed_convolution(case: tuple[Any, ...], filters: int, more: int, biased: bool) -> None:
    sizes, kernel, strides, pads, dilations, group = case
    pads = tuple(min(p, 1) for p in pads)
    shapes = [(2, group, *sizes), (group, filters, *kernel), (group * filters,)]
    rest = tuple(more if s > 1 else 0 for s in strides)
    attrs = {"strides": strides, "pads": pads, "dilations": dilations, "group": group, "output_padding": rest}
    check_gradients(lambda *given: ops.conv_transpose(*given, **attrs), floats(4, *shapes[: 2 + biased]))


def test_an_output_that_no_window_reaches_gives_no_further_pixels() -> None:
    x, w = floats(0, (1, 2, 3), (2, 2, 2))
    check_gradients(lambda x, w: ops.conv_transpose(x, w, strides=2, output_shape=(9,)), [x, w])


@FEW
@given(st.tuples(st.integers(2, 4), SIDES, SIDES, SIDES) | st.tuples(st.integers(2, 5), SIDES))
def test_batch_norm_of_the_batch(shape: tuple[int, ...]) -> None:
    def build(x: Any, scale: Any, bias: Any) -> Any:
        y, mean, variance = ops.batch_norm_training(x, scale, bias, epsilon=0.1)
        return y * 2.0, mean, variance

    check_gradients(build, floats(5, shape, shape[1:2], shape[1:2]), rtol=1e-5)


@pytest.mark.parametrize("which", [1, 2])
def test_statistics_of_the_batch_are_differentiated_too(which: int) -> None:
    def build(x: Any, scale: Any, bias: Any) -> Any:
        found = ops.batch_norm_training(x, scale, bias)
        channels = (1, 3, 1, 1)
        return found[0] * ops.reshape(found[which], channels)

    check_gradients(build, floats(6, (3, 3, 2, 4), (3,), (3,)), rtol=1e-5)
