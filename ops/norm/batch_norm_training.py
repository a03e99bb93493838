"""Batch normalization with the statistics of the batch, and its gradient (Ioffe and Szegedy 2015, section 3).

What the gradient reads of the forward pass is x and two numbers a channel: the normalized x is computed again, since
to keep it would cost as many bytes as x itself.

numba compiles the kernels, which belong to the back-end that is always there: numpy has no calls for them.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from ops.common.batches import by_image, dense_images, flat_images
from ops.common.thunks import in_turn
from ops.norm.jit_channels import channel_moments, channel_sums, combine_rows
from ops.norm.jit_scale import scale_shift
from ops.schema.attributes import Attribute, number
from ops.schema.backward import Backward, Tensor, Terms
from ops.schema.schema import (
    Attrs,
    Binding,
    Cost,
    Kernel,
    OpSchema,
    Overwrite,
    Signature,
    Specs,
    Thunk,
    overwrites_first,
)
from ops.schema.workspace import carve, dense_bytes
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
    for given in inputs[1:data]:
        if given != x:
            raise ShapeError(f"{given} and {x} must have one shape")
    for given in inputs[data:]:
        if given.shape != x.shape[1:2]:
            raise ShapeError(f"{given.shape} must be one number for each channel, {x.shape[1:2]}")


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


def _images(array: Array) -> Array:
    """(N, C, elements)"""
    return array.reshape((*array.shape[:2], math.prod(array.shape[2:])))


def _elements(call: Binding) -> int:
    """Of a channel of an image."""
    return math.prod(call.signature.x.shape[2:])


def _images_or_row(layout: Layout) -> bool:
    """Of data, dense images; of what has one number a channel, a dense row."""
    return len(layout.shape) > 1 and dense_images(layout)


def _rooms(count: int, signature: Signature) -> tuple[TensorSpec, ...]:
    return (signature.x.with_shape(signature.x.shape[1:2]),) * count


def _two_rooms(signature: Signature) -> int:
    return dense_bytes(*_rooms(2, signature))


def _one_room(signature: Signature) -> int:
    return dense_bytes(*_rooms(1, signature))


def _factor(variance: Array, epsilon: float, factor: Array) -> Iterator[Thunk]:
    """Steps that write 1 / sqrt(variance + epsilon)."""
    yield partial(np.add, variance, constant(epsilon, factor.dtype), factor)
    yield partial(np.sqrt, factor, factor)
    yield partial(np.reciprocal, factor, factor)


def _bind(call: Binding) -> Thunk:
    (_, scale, bias), (y, mean, variance) = call.inputs, call.outputs
    factor, shift = carve(call.workspace, *_rooms(2, call.signature))
    (flat, pitch), dtype = flat_images(call.x), call.x.dtype
    moments = partial(channel_moments(dtype), flat, mean, variance, (len(call.x), _elements(call), pitch))
    scale_it = scale_shift(dtype)
    return in_turn(
        moments,
        *_factor(variance, call.attrs["epsilon"], factor),
        partial(np.multiply, factor, scale, factor),
        partial(np.multiply, factor, mean, shift),
        partial(np.subtract, bias, shift, shift),
        by_image(lambda x, y: partial(scale_it, x, factor, shift, y), _images(call.x), _images(y)),
    )


def _bind_sums(call: Binding) -> Thunk:
    dy, x, mean, variance = call.inputs
    (factor,) = carve(call.workspace, *_rooms(1, call.signature))
    (flat, pitch), (grads, other) = flat_images(x), flat_images(dy)
    geometry = (len(x), _elements(call), pitch, other)
    run = partial(channel_sums(x.dtype), flat, grads, mean, factor, *call.outputs, geometry)
    return in_turn(*_factor(variance, call.attrs["epsilon"], factor), run)


def _bind_data(call: Binding) -> Thunk:
    """dx = f * scale * (dy - sum(dy) / n - (x - mean) * f * sum(dy (x - mean) f) / n), f = 1 / sqrt(variance + e)."""
    dy, x, scale, mean, variance, products, sums = call.inputs
    of_x, of_dy, middle = carve(call.workspace, *_rooms(3, call.signature))
    count = constant(max(len(x) * math.prod(x.shape[2:]), 1), x.dtype)
    minus = constant(-float(count), x.dtype)
    combine = combine_rows(x.dtype)

    def bind(x: Array, dy: Array, y: Array) -> Thunk:
        return partial(combine, x, dy, mean, of_x, middle, of_dy, y)

    run = by_image(bind, *map(_images, (x, dy, call.y)))
    return in_turn(
        *_factor(variance, call.attrs["epsilon"], of_x),
        partial(np.multiply, of_x, scale, of_dy),
        partial(np.multiply, of_x, products, of_x),
        partial(np.multiply, of_x, of_dy, of_x),
        partial(np.divide, of_x, minus, of_x),
        partial(np.divide, sums, count, middle),
        run,
    )


def _three_rooms(signature: Signature) -> int:
    return dense_bytes(*_rooms(3, signature))


def _over_both(_: Signature) -> tuple[Overwrite, ...]:
    return Overwrite(0, 0), Overwrite(0, 1)


def _passes(count: int) -> Callable[[Signature], Cost]:
    def cost(signature: Signature) -> Cost:
        touched = sum(s.nbytes for s in signature.inputs + signature.outputs)
        return Cost(count * signature.x.size, touched)

    return cost


def gradient_of_sums(b: Backward, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of scale and bias, where dy is that of the normalized x, scaled and shifted."""
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
    """Adds what flows through the mean, which is 1 / n of each x, and through the variance, 2 (x - mean) / n."""
    channels = (1, b.x.shape[1], *(1,) * (b.x.ndim - 2))
    count = b.x.spec.size // max(b.x.shape[1], 1)
    if b.grads[1] is not None:
        dx = dx + b.reshape(b.grads[1] / count, channels)
    if b.grads[2] is not None:
        dx = dx + (b.x - b.reshape(b.outputs[1], channels)) * b.reshape(b.grads[2] * (2 / count), channels)
    return dx


BATCH_NORM_TRAINING = OpSchema(
    name="batch_norm_training",
    summary="(x - mean) / sqrt(var + epsilon) * scale + bias; mean and variance of each channel of x are outputs too.",
    infer=_infer,
    kernels=(Kernel("fused", _bind, _two_rooms, reads=_images_or_row, writes=_images_or_row),),
    arity=(3, 3),
    attributes=(_EPSILON,),
    overwrites=overwrites_first,
    cost=_passes(7),
    gradient=_gradient,
)
CHANNEL_SUMS = OpSchema(
    name="channel_sums",
    summary="Of dy, x, mean, variance: sums over each channel of dy * (x - mean) / sqrt(var + epsilon), and of dy.",
    infer=_infer_sums,
    kernels=(Kernel("fused", _bind_sums, _one_room, reads=_images_or_row),),
    arity=(4, 4),
    attributes=(_EPSILON,),
    cost=_passes(4),
)
BATCH_NORM_DATA_GRADIENT = OpSchema(
    name="batch_norm_data_gradient",
    summary="The gradient of batch_norm_training by x, of dy, x, scale, mean, variance and both channel_sums.",
    infer=_infer_data,
    kernels=(Kernel("fused", _bind_data, _three_rooms, reads=_images_or_row, writes=_images_or_row),),
    arity=(7, 7),
    attributes=(_EPSILON,),
    overwrites=_over_both,
    cost=_passes(5),
)
OPS = (BATCH_NORM_TRAINING, CHANNEL_SUMS, BATCH_NORM_DATA_GRADIENT)
