"""Batch normalization with the statistics of the batch, and its gradient (Ioffe and Szegedy 2015, section 3).

What the gradient reads of the forward pass is x and two numbers a channel: the normalized x is computed again, since
to keep it would cost as many bytes as x itself.

numba compiles one pass each; numpy has several over a piece that stays in the cache (`ops.norm.channels`).
"""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import numpy as np

from ops.common.apply import Operand, V, apply
from ops.common.batches import dense_images
from ops.common.costs import flops_per_input_element
from ops.common.thunks import in_turn
from ops.elementwise.cast import cast as to_dtype
from ops.norm.channels import (
    combine_steps,
    flat_channels,
    mean_steps,
    piece_channels,
    piece_spec,
    product_steps,
    scale_shift_steps,
    sum_steps,
    sums_specs,
    variance_steps,
)
from ops.norm.channels_compiled import channel_moments, channel_sums, combine, scale_shift
from ops.schema.attributes import Attribute, number
from ops.schema.backends import NUMBA
from ops.schema.backward import Backward, Tensor, Terms
from ops.schema.schema import (
    Attrs,
    Binding,
    Kernel,
    OpSchema,
    Signature,
    Specs,
    Thunk,
    overwrites_either,
    overwrites_first,
)
from ops.tensor.errors import DtypeError, ShapeError
from ops.tensor.layout import Layout
from ops.tensor.limits import constant
from ops.tensor.spec import Array, TensorSpec

_DTYPES = frozenset(map(np.dtype, ("float32", "float64")))
_EPSILON = Attribute("epsilon", number, 1e-5)


def check_channels(inputs: Specs, data: int) -> None:
    """Raises where the first `data` inputs are not alike (N, C, ...), or one of the others is not one number each."""
    x = inputs[0]
    if x.ndim < 2:
        raise ShapeError(f"data {x.shape} must have 2 dimensions or more: images, channels, ...")
    if x.dtype not in _DTYPES or any(s.dtype != x.dtype for s in inputs):
        shown = ", ".join(s.dtype.name for s in inputs)
        raise DtypeError(f"takes float32 or float64 alone, not {shown}")
    for other in inputs[1:data]:
        if other != x:
            raise ShapeError(f"{other} and {x} must have one shape")
    for other in inputs[data:]:
        if other.shape != x.shape[1:2]:
            raise ShapeError(f"{other.shape} must be one number for each channel, {x.shape[1:2]}")


def _infer(inputs: Specs, _: Attrs) -> Specs:
    check_channels(inputs, 1)
    channels = inputs[0].with_shape(inputs[0].shape[1:2])
    return inputs[0], channels, channels


def _infer_sums(inputs: Specs, _: Attrs) -> Specs:
    check_channels(inputs, 2)
    channels = inputs[0].with_shape(inputs[0].shape[1:2])
    return channels, channels


def _infer_data(inputs: Specs, _: Attrs) -> Specs:
    check_channels(inputs, 2)
    return (inputs[0],)


def _images_or_row(layout: Layout) -> bool:
    """Returns whether a kernel reads or writes a layout that is not dense: only that of dense images."""
    return len(layout.shape) > 1 and dense_images(layout)


def _channel_temporaries(count: int, signature: Signature) -> tuple[TensorSpec, ...]:
    return (signature.x.with_shape(signature.x.shape[1:2]),) * count


def _factor(variance: Array, epsilon: float, factor: Array) -> Iterator[Thunk]:
    """Yields steps that write 1 / sqrt(variance + epsilon)."""
    yield partial(np.add, variance, constant(epsilon, factor.dtype), factor)
    yield partial(np.sqrt, factor, factor)
    yield partial(np.reciprocal, factor, factor)


def _bind(call: Binding) -> Thunk:
    (_, scale, bias), (y, mean, variance) = call.inputs, call.outputs
    factor, shift = call.temporaries
    x = flat_channels(call.x)
    return in_turn(
        channel_moments(x, mean, variance),
        *_factor(variance, call.attrs["epsilon"], factor),
        partial(np.multiply, factor, scale, factor),
        partial(np.multiply, factor, mean, shift),
        partial(np.subtract, bias, shift, shift),
        scale_shift(x, factor, shift, flat_channels(y)),
    )


def _bind_passes(call: Binding) -> Thunk:
    (_, scale, bias), (_, mean, variance) = call.inputs, call.outputs
    factor, shift, *sums, total = call.temporaries
    x, y = flat_channels(call.x), flat_channels(call.y)
    piece, rows, wide = sums
    return in_turn(
        *mean_steps(x, mean, (piece, rows, wide), total),
        *variance_steps(x, mean, variance, (piece, rows, wide), total),
        *_factor(variance, call.attrs["epsilon"], factor),
        partial(np.multiply, factor, scale, factor),
        partial(np.multiply, factor, mean, shift),
        partial(np.subtract, bias, shift, shift),
        *scale_shift_steps(x, factor, shift, y, piece_channels(call.signature.x)),
    )


def _passes_temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    return (*_channel_temporaries(2, signature), *sums_specs(signature.x))


def _bind_sums(call: Binding) -> Thunk:
    dy, x, mean, variance = call.inputs
    (factor,) = call.temporaries
    products, sums = call.outputs
    return in_turn(
        *_factor(variance, call.attrs["epsilon"], factor),
        channel_sums(flat_channels(x), flat_channels(dy), mean, factor, (products, sums)),
    )


def _bind_sums_passes(call: Binding) -> Thunk:
    dy, x, mean, variance = call.inputs
    products, result = call.outputs
    factor, piece, rows, wide, total = call.temporaries
    sums = piece, rows, wide
    return in_turn(
        *_factor(variance, call.attrs["epsilon"], factor),
        *product_steps((flat_channels(x), flat_channels(dy)), mean, products, sums, total),
        partial(np.multiply, products, factor, products),
        *sum_steps(flat_channels(dy), result, sums, total),
    )


def _sums_temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    return (*_channel_temporaries(1, signature), *sums_specs(signature.x))


def _bind_data(call: Binding) -> Thunk:
    """Returns the thunk of the gradient of x.

    With f = 1 / sqrt(variance + epsilon) and n elements a channel,
    dx = f * scale * (dy - sum(dy) / n - (x - mean) * f * sum(dy * (x - mean) * f) / n).
    """
    dy, x, _, mean, *_ = call.inputs
    scratch = call.temporaries
    of_x, of_dy, middle = scratch
    data = flat_channels(x), flat_channels(dy), flat_channels(call.y)
    return in_turn(*_data_factors(call, scratch), combine(data, (mean, of_x), (middle, of_dy)))


def _data_factors(call: Binding, scratch: tuple[Array, ...]) -> Iterator[Thunk]:
    """Yields steps that write the factor of x - mean, the factor of dy - middle, and middle."""
    _, x, scale, _, variance, products, sums = call.inputs
    of_x, of_dy, middle = scratch
    count = constant(max(len(x) * math.prod(x.shape[2:]), 1), x.dtype)
    yield from _factor(variance, call.attrs["epsilon"], of_x)
    yield partial(np.multiply, of_x, scale, of_dy)
    yield partial(np.multiply, of_x, products, of_x)
    yield partial(np.multiply, of_x, of_dy, of_x)
    yield partial(np.divide, of_x, constant(-float(count), x.dtype), of_x)
    yield partial(np.divide, sums, count, middle)


def _bind_data_passes(call: Binding) -> Thunk:
    dy, x, _, mean, *_ = call.inputs
    *scratch, piece = call.temporaries
    of_x, of_dy, middle = scratch
    data = flat_channels(x), flat_channels(dy), flat_channels(call.y)
    return in_turn(*_data_factors(call, tuple(scratch)), *combine_steps(data, (mean, of_x), (middle, of_dy), piece))


def _data_temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    return (*_channel_temporaries(3, signature), piece_spec(signature.x))


def gradient_of_sums(b: Backward, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the gradients of scale and bias; dy is that of the normalized x after scale and bias."""
    products, sums = b.apply(CHANNEL_SUMS, b.dy, b.x, mean, variance, epsilon=b.attrs["epsilon"])
    return products, sums


def _gradient(b: Backward) -> Terms:
    scale, (_, mean, variance) = b.inputs[1], b.outputs
    products, sums = gradient_of_sums(b, mean, variance)

    def data() -> Tensor:
        more = {"epsilon": b.attrs["epsilon"]}
        dx = b.apply1(BATCH_NORM_DATA_GRADIENT, b.dy, b.x, scale, mean, variance, products, sums, **more)
        return _through_statistics(b, dx)

    return b.terms(data, lambda: products, lambda: sums)


def _through_statistics(b: Backward, dx: Tensor) -> Tensor:
    """Returns dx with what flows through mean and variance.

    Each x is 1 / n of the mean, and changes the variance by 2 (x - mean) / n.
    """
    channels = (1, b.x.shape[1], *(1,) * (b.x.ndim - 2))
    count = b.x.spec.size // max(b.x.shape[1], 1)
    if b.grads[1] is not None:
        dx = dx + b.reshape(b.grads[1] / count, channels)
    if b.grads[2] is not None:
        dx = dx + (b.x - b.reshape(b.outputs[1], channels)) * b.reshape(b.grads[2] * (2 / count), channels)
    return dx


_kernel = partial(Kernel, reads=_images_or_row)
BATCH_NORM_TRAINING = OpSchema(
    name="batch_norm_training",
    summary="(x - mean) / sqrt(var + epsilon) * scale + bias; mean and variance of each channel of x are outputs too.",
    infer=_infer,
    kernels=(
        _kernel("fused", _bind, partial(_channel_temporaries, 2), writes=_images_or_row, backend=NUMBA),
        _kernel("passes", _bind_passes, _passes_temporaries, writes=_images_or_row),
    ),
    arity=(3, 3),
    attributes=(_EPSILON,),
    overwrites=overwrites_first,
    cost=flops_per_input_element(7),
    gradient=_gradient,
)
CHANNEL_SUMS = OpSchema(
    name="channel_sums",
    summary="Of dy, x, mean, variance: sums over each channel of dy * (x - mean) / sqrt(var + epsilon), and of dy.",
    infer=_infer_sums,
    kernels=(
        _kernel("fused", _bind_sums, partial(_channel_temporaries, 1), backend=NUMBA),
        _kernel("passes", _bind_sums_passes, _sums_temporaries),
    ),
    arity=(4, 4),
    attributes=(_EPSILON,),
    cost=flops_per_input_element(4),
)
BATCH_NORM_DATA_GRADIENT = OpSchema(
    name="batch_norm_data_gradient",
    summary="The gradient of batch_norm_training by x, of dy, x, scale, mean, variance and both channel_sums.",
    infer=_infer_data,
    kernels=(
        _kernel("fused", _bind_data, partial(_channel_temporaries, 3), writes=_images_or_row, backend=NUMBA),
        _kernel("passes", _bind_data_passes, _data_temporaries, writes=_images_or_row),
    ),
    arity=(7, 7),
    attributes=(_EPSILON,),
    overwrites=overwrites_either,
    cost=flops_per_input_element(5),
)
OPS = (BATCH_NORM_TRAINING, CHANNEL_SUMS, BATCH_NORM_DATA_GRADIENT)


def batch_norm_training(x: V, scale: Operand, bias: Operand, *, epsilon: float = 1e-5) -> tuple[V, V, V]:
    """Normalizes each channel of x, then times scale (C,), plus bias; returns y, and mean and variance of the batch.

    The variance divides by the number of elements, as normalization needs it; see `batch_norm_running`.
    """
    return cast(tuple[V, V, V], apply(BATCH_NORM_TRAINING, (x, scale, bias), epsilon=epsilon))


def batch_norm_running(
    x: V, scale: Operand, bias: Operand, mean: V, variance: V, *, momentum: float = 0.1, epsilon: float = 1e-5
) -> V:
    """Computes `batch_norm_training`, and moves the parameters `mean` and `variance` towards those of the batch.

    At the end of a run, each becomes (1 - momentum) times itself plus momentum times that of the batch, as in torch;
    the variance is that of a sample, divided by one less. Raises ShapeError where a channel has one element.
    """
    if x.spec.ndim < 2 or x.spec.shape[1] == 0:
        raise ShapeError(f"batch_norm_running: {x.spec} has no channels in its second dimension")
    count: Any = x.spec.size // x.spec.shape[1]
    if not x.spec.is_symbolic and count < 2:
        raise ShapeError(f"batch_norm_running: {x.spec} has {count} element(s) a channel, and a variance needs two")
    y, batch_mean, biased = batch_norm_training(x, scale, bias, epsilon=epsilon)
    if x.spec.is_symbolic:  # the number is a constant once shapes are bound
        count = to_dtype(x.graph.constant(count), x.spec.dtype)
    for running, statistic in ((mean, batch_mean), (variance, cast(Any, biased) * (count / (count - 1)))):
        old: Any = running
        x.graph.assign(running, old + (statistic - old) * momentum)
    return y
