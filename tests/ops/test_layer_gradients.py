"""Gradients of losses, convolutions, pooling and normalization: central differences, all modes, and torch."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from ops.common.apply import apply
from ops.common.indices import IndexRangeError
from ops.convolution.conv import CONV
from ops.convolution.gradient import CONV_INPUT_GRADIENT, CONV_WEIGHT_GRADIENT
from ops.convolution.transpose import CONV_TRANSPOSE
from ops.norm.batch_norm_training import BATCH_NORM_DATA_GRADIENT, BATCH_NORM_TRAINING, CHANNEL_SUMS
from ops.norm.gradient import NORM_DATA_GRADIENT, NORM_SCALE_GRADIENT
from ops.norm.lrn_gradient import LRN_GRADIENT
from ops.norm.norm import LAYER_NORM
from ops.pool.gradient import MAX_POOL_GRADIENT, SPREAD_WINDOWS
from ops.reduce.losses import SOFTMAX_CROSS_ENTROPY, SOFTMAX_CROSS_ENTROPY_GRADIENT
from ops.schema.schema import evaluate
from ops.tensor.errors import DtypeError, GradientError, ShapeError
from ops.tensor.spec import Array
from tests.helpers.ops.kernel_checks import (
    check_no_allocation,
    check_overwrites,
    check_strides,
    kernels,
    run,
    same,
    sign,
)
from tests.helpers.ops.layer_gradient_checks import (
    backward,
    check_gradient_modes,
    check_gradients,
    distinct,
    float_positions,
    floats,
)
from tests.helpers.ops.window_cases import conv_cases

FEW = settings(max_examples=12, deadline=None)
SIDES = st.integers(1, 4)


def labels(seed: int, shape: tuple[int, ...], classes: int, ignored: int = 0) -> Array:
    """Returns labels of which every `ignored`-th is -100."""
    drawn = np.random.default_rng(seed).integers(0, classes, shape)
    if ignored:
        drawn.reshape(-1)[::ignored] = -100
    return drawn


@FEW
@given(
    st.tuples(SIDES, st.integers(2, 5), *[SIDES] * 2) | st.tuples(SIDES, st.integers(2, 5)),
    st.sampled_from(["mean", "sum", "none"]),
    st.sampled_from([0.0, 0.2]),
    st.sampled_from([0, 3]),
)
def test_cross_entropy_gradient_agrees_with_central_differences(
    shape: tuple[int, ...], reduction: str, smoothing: float, ignored: int
) -> None:
    targets = labels(2, (shape[0], *shape[2:]), shape[1], ignored)
    targets.reshape(-1)[-1] = 0

    def loss(logits: Any) -> Any:
        return ops.softmax_cross_entropy(logits, targets, reduction, label_smoothing=smoothing)

    check_gradients(loss, floats(1, shape))


@pytest.mark.parametrize("wrong", [-1, 4])
def test_a_label_that_is_no_class_is_named(wrong: int) -> None:
    with pytest.raises(IndexRangeError, match=f"label {wrong} is none of the 4 classes"):
        evaluate(SOFTMAX_CROSS_ENTROPY, np.zeros((2, 4)), np.array([0, wrong]))


def test_labels_must_have_the_shape_of_the_logits_without_classes() -> None:
    with pytest.raises(ShapeError, match="the classes"):
        evaluate(SOFTMAX_CROSS_ENTROPY, np.zeros((2, 4, 3)), np.zeros((2, 4), np.int64))


@pytest.mark.slow
@FEW
@given(conv_cases(), st.integers(1, 2), st.integers(1, 2), st.booleans())
def test_convolution_gradient_agrees_with_central_differences(
    case: tuple[Any, ...], channels: int, filters: int, biased: bool
) -> None:
    sizes, kernel, strides, pads, dilations, group = case
    shapes = [(2, group * channels, *sizes), (group * filters, channels, *kernel), (group * filters,)]
    more = {"strides": strides, "pads": pads, "dilations": dilations, "group": group}
    check_gradients(lambda *arrays: ops.conv(*arrays, **more), floats(3, *shapes[: 2 + biased]))


@pytest.mark.slow
@FEW
@given(conv_cases(), st.integers(1, 2), st.integers(0, 1), st.booleans())
def test_transposed_convolution_gradient_agrees_with_central_differences(
    case: tuple[Any, ...], filters: int, more: int, biased: bool
) -> None:
    sizes, kernel, strides, pads, dilations, group = case
    pads = tuple(min(p, 1) for p in pads)
    shapes = [(2, group, *sizes), (group, filters, *kernel), (group * filters,)]
    rest = tuple(more if s > 1 else 0 for s in strides)
    attrs = {"strides": strides, "pads": pads, "dilations": dilations, "group": group, "output_padding": rest}
    check_gradients(lambda *arrays: ops.conv_transpose(*arrays, **attrs), floats(4, *shapes[: 2 + biased]))


def test_an_output_that_no_window_reaches_gives_no_further_pixels() -> None:
    x, w = floats(0, (1, 2, 3), (2, 2, 2))
    check_gradients(lambda x, w: ops.conv_transpose(x, w, strides=2, output_shape=(9,)), [x, w])


@FEW
@given(st.tuples(st.integers(2, 4), SIDES, SIDES, SIDES) | st.tuples(st.integers(2, 5), SIDES))
def test_batch_norm_training_gradient_agrees_with_central_differences(shape: tuple[int, ...]) -> None:
    def build(x: Any, scale: Any, bias: Any) -> Any:
        y, mean, variance = ops.batch_norm_training(x, scale, bias, epsilon=0.1)
        return y * 2.0, mean, variance

    check_gradients(build, floats(5, shape, shape[1:2], shape[1:2]), rtol=1e-5)


@pytest.mark.parametrize("which", [1, 2])
def test_statistics_of_the_batch_are_differentiated_too(which: int) -> None:
    def build(x: Any, scale: Any, bias: Any) -> Any:
        outputs = ops.batch_norm_training(x, scale, bias)
        channels = (1, 3, 1, 1)
        return outputs[0] * ops.reshape(outputs[which], channels)

    check_gradients(build, floats(6, (3, 3, 2, 4), (3,), (3,)), rtol=1e-5)


def pools(n: int) -> st.SearchStrategy[dict[str, Any]]:
    """Draws attributes of windows over n dimensions; pads are smaller than the kernel, as pooling requires."""

    def attrs(kernel: tuple[int, ...]) -> st.SearchStrategy[dict[str, Any]]:
        pads = st.tuples(*(st.integers(0, k - 1) for k in (*kernel, *kernel)))
        each = st.tuples(*[st.integers(1, 3)] * n)
        few = st.tuples(*[st.integers(1, 2)] * n)
        named = {"kernel_shape": st.just(kernel), "strides": each, "pads": pads, "dilations": few}
        return st.fixed_dictionaries({**named, "ceil_mode": st.booleans()})

    return st.tuples(*[st.integers(1, 3)] * n).flatmap(attrs)


@pytest.mark.slow
@FEW
@given(st.integers(1, 3).flatmap(pools), st.integers(5, 7))
def test_maximum_pooling_gradient_agrees_with_central_differences(attrs: dict[str, Any], size: int) -> None:
    shape = (2, 2, *range(size, size + len(attrs["kernel_shape"])))
    check_gradients(lambda x: ops.max_pool(x, **attrs), [distinct(1, shape)])


@FEW
@given(st.integers(1, 3).flatmap(pools), st.integers(5, 7), st.booleans())
def test_average_pooling_gradient_agrees_with_central_differences(
    attrs: dict[str, Any], size: int, outer: bool
) -> None:
    shape = (2, 2, *range(size, size + len(attrs["kernel_shape"])))
    check_gradients(lambda x: ops.average_pool(x, **attrs, count_include_pad=outer), [distinct(2, shape)])


@FEW
@given(st.integers(1, 2).flatmap(pools), st.integers(1, 4))
def test_lp_pooling_gradient_agrees_with_central_differences(attrs: dict[str, Any], p: int) -> None:
    shape = (2, 2, *(6 for _ in attrs["kernel_shape"]))
    check_gradients(lambda x: ops.lp_pool(x, **attrs, p=p), [distinct(3, shape)], rtol=1e-5)


@pytest.mark.parametrize("p", [1, 2, 3, 4])
def test_global_pooling_gradient_agrees_with_central_differences(p: int) -> None:
    x = distinct(4, (2, 3, 4, 3))
    check_gradients(lambda x: ops.global_lp_pool(x, p), [x], rtol=1e-5)
    check_gradients(ops.global_average_pool, [x])
    check_gradients(ops.global_max_pool, [x])


def test_the_first_of_several_maxima_gets_all_of_the_gradient() -> None:
    graph, feeds = backward(lambda x: ops.max_pool(x, 2), [np.ones((1, 1, 3, 2))], [0])
    gradient = engine.compile(graph, optimise=0).run(feeds)["d0"]
    np.testing.assert_array_equal(
        gradient[0, 0], [[-feeds["dy"][0, 0, 0, 0], 0], [-feeds["dy"][0, 0, 1, 0], 0], [0, 0]]
    )


def test_a_channel_that_is_zero_has_no_lp_gradient() -> None:
    gradients = check_gradient_modes(lambda x: ops.global_lp_pool(x, 2), [np.zeros((1, 2, 3))])
    np.testing.assert_array_equal(gradients["d0"], np.zeros((1, 2, 3)))


def arrays_of(seed: int, *shapes: tuple[int, ...]) -> list[Array]:
    return floats(seed, *shapes, dtype="float32")


def small_calls() -> list[Any]:
    """Returns operators of the backward pass (and of training) with small inputs."""
    x, dy, scale, mean = arrays_of(0, (3, 4, 5, 2), (3, 4, 5, 2), (4,), (4,))
    targets, variance = labels(0, (3, 5, 2), 4, 5), np.abs(scale) + 1
    windows = {"kernel_shape": (3, 2), "strides": (2, 1), "pads": (1, 0, 1, 1)}
    image, grads, w = arrays_of(1, (2, 4, 6, 5), (2, 6, 3, 5), (6, 2, 3, 2))
    sums = {"reduction": "none", "label_smoothing": 0.1}
    return [
        (SOFTMAX_CROSS_ENTROPY, [x, targets], {}),
        (SOFTMAX_CROSS_ENTROPY_GRADIENT, [x, targets, np.float32(0.7)], {}),
        (SOFTMAX_CROSS_ENTROPY_GRADIENT, [x, targets, dy[:, 0]], sums),
        (BATCH_NORM_TRAINING, [x, scale, mean], {}),
        (CHANNEL_SUMS, [dy, x, mean, variance], {}),
        (BATCH_NORM_DATA_GRADIENT, [dy, x, scale, mean, variance, mean, scale], {}),
        (CONV_INPUT_GRADIENT, [grads, w], {**windows_without_kernel(windows), "group": 2}),
        (CONV_INPUT_GRADIENT, [grads, w[..., :1, :1]], {"group": 2}),
        (CONV_WEIGHT_GRADIENT, [image, grads], {**windows, "group": 2}),
        (CONV_WEIGHT_GRADIENT, [image, image[:, ::-1]], {"kernel_shape": (1, 1)}),
        (MAX_POOL_GRADIENT, [grads, image.repeat(2, 1)[:, :6]], windows),
        (NORM_DATA_GRADIENT, [dy, x, x[0]], {"axis": 1}),
        (NORM_DATA_GRADIENT, [dy, x, scale], {"num_groups": 2}),
        (NORM_SCALE_GRADIENT, [dy, x], {"axis": 1, "centred": False}),
        (NORM_SCALE_GRADIENT, [dy, x], {"num_groups": 2}),
        (LRN_GRADIENT, [dy, x], {"size": 3}),
        (SPREAD_WINDOWS, [grads], {**windows, "sizes": (6, 5)}),
    ]


def windows_without_kernel(attrs: dict[str, Any]) -> dict[str, Any]:
    return {n: v for n, v in attrs.items() if n != "kernel_shape"}


@pytest.mark.parametrize("number", range(len(small_calls())))
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_layer_gradients_take_any_strides_and_overwrites(number: int, dtype: str) -> None:
    schema, arrays, attrs = small_calls()[number]
    wide = [a.astype(dtype) if a.dtype.kind == "f" else a for a in map(np.asarray, arrays)]
    if dtype == "float16" and schema in ONLY_WIDE:
        with pytest.raises(DtypeError, match="float32 or float64 alone"):
            evaluate(schema, *wide, **attrs)
        return
    check_strides(schema, wide, rtol=1e-5 if dtype == "float32" else 1e-13, atol=1e-6, **attrs)
    check_overwrites(schema, wide, **attrs)


ONLY_WIDE = (BATCH_NORM_TRAINING, CHANNEL_SUMS, BATCH_NORM_DATA_GRADIENT, MAX_POOL_GRADIENT)


def large_calls() -> list[Any]:
    """Returns the same with tensors of more than 128 KiB."""
    x, dy, scale, mean = arrays_of(0, (4, 16, 32, 32), (4, 16, 32, 32), (16,), (16,))
    variance, targets = np.abs(scale) + 1, labels(0, (4, 32, 32), 16, 7)
    (w,) = arrays_of(1, (16, 16, 3, 3))
    windows = {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1)}
    return [
        (SOFTMAX_CROSS_ENTROPY, [x, targets], {"label_smoothing": 0.1}),
        (SOFTMAX_CROSS_ENTROPY_GRADIENT, [x, targets, np.float32(0.7)], {"label_smoothing": 0.1}),
        (BATCH_NORM_TRAINING, [x, scale, mean], {}),
        (CHANNEL_SUMS, [dy, x, mean, variance], {}),
        (BATCH_NORM_DATA_GRADIENT, [dy, x, scale, mean, variance, mean, scale], {}),
        (CONV_INPUT_GRADIENT, [dy, w], {"pads": (1, 1, 1, 1)}),
        (CONV_INPUT_GRADIENT, [dy, w[..., :1, :1]], {}),
        (CONV_WEIGHT_GRADIENT, [x, dy], windows),
        (CONV_WEIGHT_GRADIENT, [x, dy], {"kernel_shape": (1, 1)}),
        (MAX_POOL_GRADIENT, [dy, x], windows),
        (NORM_DATA_GRADIENT, [dy, x, x[0]], {"axis": 1}),
        (NORM_DATA_GRADIENT, [dy, x, scale], {"num_groups": 2}),
        (NORM_SCALE_GRADIENT, [dy, x], {"axis": 2}),
        (NORM_SCALE_GRADIENT, [dy, x], {"num_groups": 2}),
        (LRN_GRADIENT, [dy, x], {"size": 3}),
        (SPREAD_WINDOWS, [dy], {**windows, "sizes": (32, 32)}),
    ]


@pytest.mark.parametrize("number", range(len(large_calls())))
def test_layer_gradients_allocate_nothing(number: int) -> None:
    schema, arrays, attrs = large_calls()[number]
    check_no_allocation(schema, [np.array(a, order="C") for a in arrays], **attrs)


@FEW
@given(st.lists(SIDES, min_size=1, max_size=3), st.integers(0, 2), st.integers(0, 3), st.booleans())
def test_layer_and_rms_norm_gradients_agree_with_central_differences(
    shape: list[int], axis: int, cut: int, biased: bool
) -> None:
    shape[-1] += 1
    axis = axis % len(shape)
    tail = tuple(shape[axis:])
    x, scale, bias = floats(7, tuple(shape), tail[min(cut, len(tail) - 1) :], tail)
    given_bias = [bias] if biased else []
    check_gradients(partial(ops.layer_norm, axis=axis, epsilon=0.1), [x, scale, *given_bias], rtol=1e-5)
    check_gradients(partial(ops.rms_norm, axis=axis, epsilon=0.1), [x, scale], rtol=1e-5)


@FEW
@given(SIDES, st.integers(1, 3), SIDES, st.lists(SIDES, min_size=1, max_size=3))
def test_group_and_instance_norm_gradients_agree_with_central_differences(
    batch: int, groups: int, each: int, sizes: list[int]
) -> None:
    channels = groups * each
    arrays = floats(8, (batch, channels, *sizes), (channels,), (channels,))
    check_gradients(partial(ops.group_norm, num_groups=groups, epsilon=0.1), arrays, rtol=1e-5)
    check_gradients(partial(ops.instance_norm, epsilon=0.1), arrays, rtol=1e-5)


@FEW
@given(st.tuples(SIDES, st.integers(1, 7), SIDES, SIDES), st.integers(1, 6), st.sampled_from([0.5, 0.75, 1.0]))
def test_local_response_normalization_gradient_agrees_with_central_differences(
    shape: tuple[int, ...], size: int, beta: float
) -> None:
    check_gradients(lambda x: ops.lrn(x, size, alpha=0.5, beta=beta, bias=1.5), floats(9, shape), rtol=1e-5)


@FEW
@given(st.tuples(SIDES, SIDES, SIDES) | st.tuples(SIDES, SIDES))
def test_batch_norm_gradient_with_given_statistics_agrees_with_central_differences(shape: tuple[int, ...]) -> None:
    x, scale, bias, mean, variance = floats(10, shape, *[shape[1:2]] * 4)
    check_gradients(ops.batch_norm, [x, scale, bias, mean, np.abs(variance) + 0.5])


def test_statistics_of_layer_norm_let_no_gradient_through() -> None:
    x, scale = floats(0, (2, 3), (3,))
    with pytest.raises(GradientError, match="statistics"):
        backward(lambda x, s: apply(LAYER_NORM, (x, s), with_stats=True)[1], [x.astype("f4"), scale.astype("f4")], [0])


@FEW
@given(st.integers(1, 2), st.integers(2, 3), st.integers(1, 2), conv_cases())
def test_kernels_of_depthwise_gradients_agree(batch: int, channels: int, each: int, case: tuple[Any, ...]) -> None:
    sizes, kernel, strides, pads, dilations, _ = case
    window = {"strides": strides, "pads": pads, "dilations": dilations, "group": channels}
    x, w = floats(11, (batch, channels, *sizes), (channels * each, 1, *kernel))
    (y,) = evaluate(CONV, x, w, **window)
    (dy,) = floats(12, y.shape)
    for schema, arrays, attrs in (
        (CONV_WEIGHT_GRADIENT, [x, dy], {"kernel_shape": kernel, **window}),
        (CONV_INPUT_GRADIENT, [dy, w], window),
        (CONV_TRANSPOSE, [dy, w, x[0].reshape(channels, -1)[:, 0]], window),
    ):
        signature = sign(schema, arrays, attrs)
        first, *others = kernels(schema, signature)
        for kernel_of_others in others:
            same(run(kernel_of_others, signature, arrays)[0], run(first, signature, arrays)[0], 1e-9, 1e-9)


HALVES: list[Any] = [
    (lambda x, w: ops.conv(x, w, pads=1, strides=2), [(2, 4, 6, 5), (3, 4, 3, 3)]),
    (lambda x, w: ops.conv_transpose(x, w, pads=1, strides=2), [(2, 4, 6, 5), (4, 3, 3, 3)]),
    (lambda x, w: ops.conv(x, w, group=4), [(2, 4, 6, 5), (4, 1, 3, 3)]),
    (lambda x: ops.max_pool(x, 3, 2), [(2, 4, 7, 5)]),
    (lambda x: ops.average_pool(x, 3, 2, 1), [(2, 4, 7, 5)]),
    (lambda x: ops.global_average_pool(x) * ops.global_lp_pool(x), [(2, 4, 7, 5)]),
    (ops.layer_norm, [(4, 9), (9,), (9,)]),
    (ops.rms_norm, [(4, 9), (9,)]),
    (lambda x, s, b: ops.group_norm(x, s, b, 2), [(3, 4, 5), (4,), (4,)]),
    (lambda x, s, b: ops.batch_norm(x, s, b, np.zeros(4, x.dtype), np.ones(4, x.dtype)), [(3, 4, 5), (4,), (4,)]),
    (lambda x: ops.lrn(x, 3, 0.5), [(2, 5, 3, 3)]),
    (lambda x: ops.softmax_cross_entropy(x, np.array([1, 0, 2])), [(3, 4)]),
]


@pytest.mark.parametrize("number", range(len(HALVES)))
def test_layer_gradients_in_half_precision_are_single_precision_rounded(number: int) -> None:
    build, shapes = HALVES[number]
    halves = floats(13, *shapes, dtype="float16")
    outputs = check_gradient_modes(build, halves)
    wanted = check_gradient_modes(build, [a.astype("float32") for a in halves])
    for name, array in outputs.items():
        same(array, wanted[name].astype("float16"), rtol=0.02, atol=0.02)


OVER_DY: list[Any] = [
    (lambda x, s, b: ops.batch_norm_training(x, s, b)[0], [(8, 4, 6, 6), (4,), (4,)], "batch_norm_data_gradient"),
    (ops.layer_norm, [(32, 36), (36,), (36,)], "norm_data_gradient"),
    (lambda x: ops.lrn(x, 3), [(8, 4, 6, 6)], "lrn_gradient"),
    (lambda x: ops.dropout_training(x, x.graph.constant(np.array(0)), seed=0), [(32, 36)], "dropout_training"),
]


@pytest.mark.parametrize("number", range(len(OVER_DY)))
def test_the_gradient_by_x_overwrites_the_incoming_gradient(number: int) -> None:
    build, shapes, name = OVER_DY[number]
    arrays = floats(14, *shapes)
    graph, _ = backward(build, arrays, float_positions(arrays))
    plan = engine.compile(graph, optimise=0).plan
    call = next(c for c in reversed(plan.lowered.calls) if any(op.schema.name == name for op in c.operators))
    read, written = plan.places[call.inputs[0]], plan.places[call.outputs[0]]
    assert read.layout.offset == written.layout.offset
