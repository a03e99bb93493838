"""Gradients of network operators against torch's, in float32 to 1e-5 of the largest."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from ops.tensor.spec import Array
from tests.helpers.ops.layer_gradient_checks import backward, float_positions, floats
from tests.helpers.torch import REASON

torch = pytest.importorskip("torch", reason=REASON)
functional = torch.nn.functional
FEW = settings(max_examples=8, deadline=None)
_SPATIAL = {1: "1d", 2: "2d", 3: "3d"}


def check(ours: Callable[..., Any], theirs: Callable[..., Any], arrays: Sequence[Array]) -> None:
    """Checks each gradient against torch's."""
    graph, feeds = backward(ours, arrays, float_positions(arrays))
    outputs = engine.compile(graph, optimise=0).run(feeds)
    tensors = [torch.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    theirs(*tensors).backward(torch.tensor(-feeds["dy"]))
    for i in float_positions(arrays):
        wanted = tensors[i].grad.numpy()
        close = 1e-5 * max(float(np.abs(wanted).max(initial=0)), 1.0)
        np.testing.assert_allclose(outputs[f"d{i}"], wanted, rtol=0, atol=close)


def singles(seed: int, *shapes: tuple[int, ...]) -> list[Array]:
    return floats(seed, *shapes, dtype="float32")


@FEW
@given(
    st.integers(1, 3).flatmap(lambda n: st.tuples(*[st.integers(5, 9)] * n)),
    st.integers(1, 3),
    st.tuples(st.integers(1, 2), st.integers(0, 2), st.integers(1, 2)),
    st.sampled_from([(1, 3, 4), (2, 1, 3), (4, 1, 1), (3, 1, 2)]),
)
def test_convolution_gradient_equals_torch(
    sizes: tuple[int, ...], k: int, steps: tuple[int, int, int], groups: tuple[int, int, int]
) -> None:
    stride, pad, dilation = steps
    group, channels, filters = groups
    name = "conv" + _SPATIAL[len(sizes)]
    kernel = (k,) * len(sizes)
    arrays = singles(1, (3, group * channels, *sizes), (group * filters, channels, *kernel), (group * filters,))
    check(
        lambda x, w, b: ops.conv(x, w, b, strides=stride, pads=pad, dilations=dilation, group=group),
        lambda x, w, b: getattr(functional, name)(x, w, b, stride, pad, dilation, group),
        arrays,
    )
    arrays = singles(2, (3, group * channels, *sizes), (group * channels, filters, *kernel), (group * filters,))
    check(
        lambda x, w, b: ops.conv_transpose(x, w, b, strides=stride, dilations=dilation, group=group),
        lambda x, w, b: getattr(functional, f"conv_transpose{_SPATIAL[len(sizes)]}")(
            x, w, b, stride, 0, 0, group, dilation
        ),
        arrays,
    )


@pytest.mark.parametrize("shape", [(4, 64, 14, 14), (6, 96, 7, 7), (2, 32, 40, 41)])
@pytest.mark.parametrize(("k", "stride"), [(1, 1), (1, 2), (3, 1), (3, 2), (5, 1)])
def test_convolution_gradient_in_blocks_equals_torch(shape: tuple[int, ...], k: int, stride: int) -> None:
    arrays = singles(3, shape, (48, shape[1], k, k))
    check(
        lambda x, w: ops.conv2d(x, w, strides=stride, pads=k // 2),
        lambda x, w: functional.conv2d(x, w, None, stride, k // 2),
        arrays,
    )


@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize(("k", "stride", "pad"), [(2, 2, 0), (3, 2, 1), (3, 1, 1), (5, 3, 2)])
def test_pooling_gradient_equals_torch(k: int, stride: int, pad: int, ceil: bool) -> None:
    arrays = singles(4, (2, 3, 11, 14))
    check(
        lambda x: ops.max_pool(x, k, stride, pad, ceil_mode=ceil),
        lambda x: functional.max_pool2d(x, k, stride, pad, ceil_mode=ceil),
        arrays,
    )
    for outer in (False, True):
        check(
            lambda x, outer=outer: ops.average_pool(x, k, stride, pad, ceil_mode=ceil, count_include_pad=outer),
            lambda x, outer=outer: functional.avg_pool2d(x, k, stride, pad, ceil, outer),
            arrays,
        )


def test_global_pooling_gradient_equals_torch() -> None:
    arrays = singles(5, (2, 3, 5, 4))
    check(ops.global_average_pool, lambda x: functional.adaptive_avg_pool2d(x, 1), arrays)
    check(ops.global_max_pool, lambda x: functional.adaptive_max_pool2d(x, 1), arrays)


def test_row_normalization_gradient_equals_torch() -> None:
    x, scale, bias = singles(6, (6, 50, 37), (37,), (37,))
    check(ops.layer_norm, lambda x, s, b: functional.layer_norm(x, (37,), s, b), [x, scale, bias])
    check(ops.rms_norm, lambda x, s: functional.rms_norm(x, (37,), s, 1e-5), [x, scale])


def test_channel_normalization_gradient_equals_torch() -> None:
    x, scale, bias = singles(7, (4, 6, 9, 8), (6,), (6,))
    check(
        lambda x, s, b: ops.group_norm(x, s, b, 3), lambda x, s, b: functional.group_norm(x, 3, s, b), [x, scale, bias]
    )
    check(ops.instance_norm, lambda x, s, b: functional.instance_norm(x, None, None, s, b), [x, scale, bias])
    check(lambda x: ops.lrn(x, 5, 0.1, 0.75, 2.0), lambda x: functional.local_response_norm(x, 5, 0.1, 0.75, 2.0), [x])


@pytest.mark.parametrize("shape", [(4, 6, 9, 8), (32, 5), (7, 300, 3, 3)])
def test_batch_norm_gradient_equals_torch(shape: tuple[int, ...]) -> None:
    arrays = singles(8, shape, shape[1:2], shape[1:2])
    check(ops.batch_norm_training, lambda x, s, b: functional.batch_norm(x, None, None, s, b, True), arrays)


def test_running_statistics_move_as_those_of_torch() -> None:
    graph = engine.Graph()
    x = graph.input("x", (4, 3, 5, 6))
    statistics = {"mean": np.zeros(3, "f4"), "variance": np.ones(3, "f4")}
    held = [graph.parameter(a, n, trainable=False) for n, a in statistics.items()]
    y = ops.batch_norm_running(x, np.ones(3, "f4"), np.zeros(3, "f4"), *held, momentum=0.2)
    graph.output(y, "y")
    for name, var in zip(statistics, held, strict=True):
        graph.output(graph.updates[var], f"next_{name}")
    layer = torch.nn.BatchNorm2d(3, momentum=0.2)
    compiled = engine.compile(graph, optimise=0)
    for turn in range(3):
        (data,) = singles(turn, (4, 3, 5, 6))
        outputs = compiled.run({"x": data})
        wanted = layer(torch.tensor(data))
        np.testing.assert_allclose(outputs["y"], wanted.detach().numpy(), rtol=0, atol=1e-5)
        np.testing.assert_allclose(outputs["next_mean"], layer.running_mean.numpy(), rtol=0, atol=1e-6)
        np.testing.assert_allclose(outputs["next_variance"], layer.running_var.numpy(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("shape", [(7, 5), (3, 4, 6, 5), (2, 300, 12, 12), (3, 70000)])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy_gradient_equals_torch(shape: tuple[int, ...], reduction: str) -> None:
    (logits,) = singles(9, shape)
    targets = np.random.default_rng(9).integers(0, shape[1], (shape[0], *shape[2:]))
    targets.reshape(-1)[::3] = -100
    check(
        lambda x, t: ops.softmax_cross_entropy(x, t, reduction, label_smoothing=0.1),
        lambda x, t: functional.cross_entropy(x, t, reduction=reduction, label_smoothing=0.1),
        [logits, targets],
    )


def test_mean_squared_error_gradient_equals_torch() -> None:
    arrays = singles(10, (4, 6), (4, 6))
    check(ops.mse_loss, functional.mse_loss, arrays)


def test_a_maximum_that_is_nan_or_minus_infinity_gets_the_gradient_where_torch_sends_it() -> None:
    for rows in ([[1, np.nan], [3, 2]], [[-np.inf, -np.inf], [-np.inf, -np.inf]], [[np.nan, 1], [np.nan, np.inf]]):
        x = np.array(rows, np.float32).reshape(1, 1, 2, 2)
        tensor = torch.tensor(x, requires_grad=True)
        functional.max_pool2d(tensor, 2).sum().backward()
        graph = engine.Graph()
        var = graph.input("x", x.shape)
        graph.output(engine.gradients(ops.reduce_sum(ops.max_pool(var, 2), None, keepdims=False), [var])[0], "dx")
        assert tensor.grad is not None
        assert engine.compile(graph, optimise=0)(x=x)["dx"].tolist() == tensor.grad.tolist(), rows
