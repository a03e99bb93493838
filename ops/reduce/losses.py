"""Softmax and cross entropy in one (ONNX SoftmaxCrossEntropyLoss-13, less its weights), and its gradient.

The gradient computes the softmax again, over the logits, which nothing else reads by then. To keep probabilities would
save one exp an element and no byte: they would take the place of the logits from the loss to the gradient, which
follow each other; and a loss that nobody differentiates would have written them for nothing.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import numpy as np

from ops.common.apply import Operand, V, apply1
from ops.common.costs import flops_per_input_element
from ops.common.indices import check_index_dtype
from ops.common.thunks import in_turn
from ops.reduce.loss_boxes import LossCase, LossPart, loss_parts
from ops.reduce.reduce import reduce_mean
from ops.schema.attributes import Attribute, integer, number, one_of
from ops.schema.backward import Backward, Terms
from ops.schema.schema import (
    Attrs,
    Binding,
    Kernel,
    OpSchema,
    Signature,
    Specs,
    Thunk,
    all_contiguous,
    overwrites_first,
)
from ops.tensor.errors import AttributeValueError, DtypeError, ShapeError
from ops.tensor.limits import constant
from ops.tensor.spec import FLOATS, Array, Shape, TensorSpec

_ATTRIBUTES = (
    Attribute("reduction", one_of("mean", "sum", "none"), "mean"),
    Attribute("ignore_index", integer, -100),
    Attribute("label_smoothing", number, 0.0),
)


def _loss_shape(labels: TensorSpec, attrs: Attrs) -> Shape:
    return labels.shape if attrs["reduction"] == "none" else ()


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    logits, labels = inputs
    if logits.dtype not in FLOATS:
        raise DtypeError(f"takes floating-point numbers, not {logits.dtype}")
    check_index_dtype(labels)
    if logits.ndim < 2 or labels.shape != logits.shape[:1] + logits.shape[2:]:
        raise ShapeError(f"labels {labels.shape} must be {logits.shape} without its second dimension, the classes")
    if logits.shape[1] == 0:
        raise ShapeError(f"logits {logits.shape} have no classes")
    if not 0 <= attrs["label_smoothing"] < 1:
        raise AttributeValueError(f"label_smoothing is {attrs['label_smoothing']}; at least 0 and below 1 is wanted")
    return (logits.with_shape(_loss_shape(labels, attrs)),)


def _infer_gradient(inputs: Specs, attrs: Attrs) -> Specs:
    (loss,) = _infer(inputs[:2], attrs)
    if inputs[2] != loss:
        raise ShapeError(f"the gradient of the loss is {inputs[2]}, not {loss}")
    return (inputs[0],)


def _temporaries(signature: Signature) -> Specs:
    return LossCase.of(signature).temporaries


def _losses(part: LossPart, attrs: Attrs) -> Iterator[Thunk]:
    """Yields steps that write the loss of each pixel into `picked`.

    It is log(sum(exp(t))) - t[label], where t is x minus the greatest of its pixel.
    """
    smoothing, dtype = attrs["label_smoothing"], part.buffer.dtype
    yield from part.find_labels(attrs["ignore_index"])
    yield from part.exponents()
    yield part.pick()
    if smoothing:
        yield partial(np.add.reduce, part.buffer, axis=1, out=part.row)
        yield partial(np.multiply, part.row, constant(smoothing / part.x.shape[1], dtype), part.row)
        yield partial(np.multiply, part.picked, constant(1 - smoothing, dtype), part.picked)
        yield partial(np.add, part.picked, part.row, part.picked)
    yield partial(np.exp, part.buffer, part.buffer)
    yield partial(np.add.reduce, part.buffer, axis=1, out=part.row)
    yield partial(np.log, part.row, part.row)
    yield partial(np.subtract, part.row, part.picked, part.picked)
    yield partial(np.copyto, part.picked, constant(0, dtype), where=part.ignored)


def _count(part: LossPart, attrs: Attrs, count: Array, one: Array) -> Iterator[Thunk]:
    """Yields steps that add the number of pixels that are not ignored to `count`."""
    yield partial(np.not_equal, part.target, constant(attrs["ignore_index"], part.target.dtype), part.ignored)
    yield partial(np.add.reduce, part.ignored, axis=None, dtype=count.dtype, out=one)
    yield partial(np.add, count, one, count)


def _bind(call: Binding) -> Thunk:
    case, reduction = LossCase.of(call.signature), call.attrs["reduction"]
    total, count, one = (v.reshape(()) for v in np.split(call.temporaries[-1], 3))
    y = call.y.reshape((case.shape[0], case.shape[2])) if reduction == "none" else call.y
    steps: list[Thunk] = [partial(total.fill, 0), partial(count.fill, 0)]
    for part in loss_parts(call, case):
        steps += _losses(part, call.attrs)
        if reduction == "none":
            steps.append(partial(np.copyto, y[part.index], part.picked, casting="same_kind"))
            continue
        steps.append(partial(np.add.reduce, part.picked, axis=None, out=one))
        steps.append(partial(np.add, total, one, total))
        if reduction == "mean":
            steps += _count(part, call.attrs, count, one)
    if reduction == "mean":
        steps.append(partial(np.divide, total, count, total))
    if reduction != "none":
        steps.append(partial(np.copyto, y, total, casting="same_kind"))
    return in_turn(*steps)


def _weights(call: Binding, part: LossPart, count: Array, one: Array) -> Iterator[Thunk]:
    """Yields steps that write the weight of each pixel's gradient into `picked`; it is 0 for ignored pixels."""
    weights = call.inputs[2]
    if call.attrs["reduction"] == "none":
        images, pixels = part.index
        weights = weights.reshape((len(call.x), -1))[images, pixels]
    yield partial(np.copyto, part.picked, weights)
    if call.attrs["reduction"] == "mean":
        yield partial(np.divide, part.picked, count, part.picked)
    yield partial(np.copyto, part.picked, constant(0, one.dtype), where=part.ignored)


def _subtract_labels(part: LossPart, smoothing: float) -> Iterator[Thunk]:
    """Yields steps that subtract from the softmax the probabilities that the labels stand for."""
    flat, dtype = part.buffer.reshape(-1), part.buffer.dtype
    if smoothing:
        yield partial(np.subtract, part.buffer, constant(smoothing / part.x.shape[1], dtype), part.buffer)
    yield part.pick()
    yield partial(np.subtract, part.picked, constant(1 - smoothing, dtype), part.picked)
    yield partial(flat.__setitem__, part.labels.reshape(-1), part.picked.reshape(-1))


def _bind_gradient(call: Binding) -> Thunk:
    case = LossCase.of(call.signature)
    _, count, one = (v.reshape(()) for v in np.split(call.temporaries[-1], 3))
    y, parts = call.y.reshape(case.shape), list(loss_parts(call, case))
    steps: list[Thunk] = [partial(count.fill, 0)]
    if call.attrs["reduction"] == "mean":
        steps += (step for part in parts for step in _count(part, call.attrs, count, one))
    for part in parts:
        images, pixels = part.index
        column = part.row[:, np.newaxis]
        steps += part.find_labels(call.attrs["ignore_index"])
        steps += part.exponents()
        steps.append(partial(np.exp, part.buffer, part.buffer))
        steps.append(partial(np.add.reduce, part.buffer, axis=1, keepdims=True, out=column))
        steps.append(partial(np.divide, part.buffer, column, part.buffer))
        steps += _subtract_labels(part, call.attrs["label_smoothing"])
        steps += _weights(call, part, count, one)
        steps.append(partial(np.multiply, part.buffer, part.picked[:, np.newaxis], part.buffer))
        steps.append(partial(np.copyto, y[images, :, pixels], part.buffer, casting="same_kind"))
    return in_turn(*steps)


def _gradient(b: Backward) -> Terms:
    return b.terms(lambda: b.apply1(SOFTMAX_CROSS_ENTROPY_GRADIENT, b.x, b.inputs[1], b.dy, **b.attrs))


SOFTMAX_CROSS_ENTROPY = OpSchema(
    name="softmax_cross_entropy",
    summary="-log(softmax(logits)) of the class of each label; logits (N, C, ...), labels (N, ...).",
    infer=_infer,
    kernels=(Kernel("boxes", _bind, _temporaries, contiguous=all_contiguous),),
    arity=(2, 2),
    attributes=_ATTRIBUTES,
    cost=flops_per_input_element(5),
    gradient=_gradient,
)
SOFTMAX_CROSS_ENTROPY_GRADIENT = OpSchema(
    name="softmax_cross_entropy_gradient",
    summary="The gradient of softmax_cross_entropy by the logits, of logits, labels and the gradient of the loss.",
    infer=_infer_gradient,
    kernels=(Kernel("boxes", _bind_gradient, _temporaries, contiguous=all_contiguous),),
    arity=(3, 3),
    attributes=_ATTRIBUTES,
    overwrites=overwrites_first,
    cost=flops_per_input_element(7),
)
OPS = (SOFTMAX_CROSS_ENTROPY, SOFTMAX_CROSS_ENTROPY_GRADIENT)


def softmax_cross_entropy(
    logits: V, labels: Operand, reduction: str = "mean", *, ignore_index: int = -100, label_smoothing: float = 0.0
) -> V:
    """Returns -log(softmax(logits)) of the class that a label names; logits (N, C, ...), labels (N, ...) integers.

    The mean over all labels but `ignore_index`, their sum, or ("none") one loss a label. With `label_smoothing` s, the
    target is 1 - s at the label, and s spread over all classes. Raises IndexRangeError, as it runs, for other labels.
    """
    more = {"reduction": reduction, "ignore_index": ignore_index, "label_smoothing": label_smoothing}
    return apply1(SOFTMAX_CROSS_ENTROPY, logits, labels, **more)


def mse_loss(prediction: V, target: Operand) -> V:
    """Returns the mean of the squares of prediction - target, which has its shape."""
    difference: Any = cast(Any, prediction) - target
    return cast(V, reduce_mean(difference * difference, None, keepdims=False))
