"""Folds batch normalization, and arithmetic with one constant for each channel, into the weights in front of it.

The rule is Glow's (Rotem et al. 2018): y = A * x + C with A = W * factor for each channel, C = bias * factor + shift.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from attrs import frozen

from engine.graph.deferred import Entry, array_of
from engine.graph.mapped import release
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.base import RulePass
from engine.passes.edit import Edit
from engine.passes.fold.affine import Affine, affine, by_channel
from ops.convolution.conv import CONV
from ops.convolution.transpose import CONV_TRANSPOSE
from ops.products.gemm import GEMM
from ops.products.matmul import MATMUL
from ops.schema.schema import Attrs, OpSchema
from ops.tensor.spec import Array

_SMALL = 1 << 16
"""The largest weights, in bytes, that are copied where others read them too. More folds more and stores more."""


@frozen(eq=False)
class _Layer:
    """A kind of layer with constant weights (input 1) and bias (input 2). `channels` is the channel axis of its output.

    `split` returns a view of the weights in which output channels have axes of their own, and the other axes.
    """

    channels: int
    split: Callable[[Array, Attrs], tuple[Array, tuple[int, ...]]]

    def scale(self, weights: Array, factor: Array, attrs: Attrs) -> Array:
        """Returns the weights with each channel multiplied by its factor, in float64, rounded once."""
        view, others = self.split(weights, attrs)
        shape = tuple(1 if axis in others else n for axis, n in enumerate(view.shape))
        scaled = np.empty(weights.shape, weights.dtype)
        target = self.split(scaled, attrs)[0]
        with np.errstate(all="ignore"):
            np.multiply(view, factor.reshape(shape), out=target, dtype=np.float64, casting="same_kind")
        return scaled

    def peaks(self, weights: Array, attrs: Attrs) -> Array:
        """Returns the largest absolute weight of each channel, in float64."""
        view, others = self.split(weights, attrs)
        highest, lowest = view.max(others, initial=0), view.min(others, initial=0)
        peaks: Array = np.maximum(highest.astype(np.float64), -lowest.astype(np.float64))
        return peaks.reshape(-1)


def _split_conv(weights: Array, _: Attrs) -> tuple[Array, tuple[int, ...]]:
    return weights, tuple(range(1, weights.ndim))


def _split_transpose(weights: Array, attrs: Attrs) -> tuple[Array, tuple[int, ...]]:
    """Splits weights (C, O / group, kernel...): a group of outputs reads the channels of the same group of inputs."""
    view = weights.reshape((attrs["group"], -1, *weights.shape[1:]))
    return view, (1, *range(3, view.ndim))


def _split_gemm(weights: Array, attrs: Attrs) -> tuple[Array, tuple[int, ...]]:
    return weights, (1,) if attrs["trans_b"] else (0,)


def _split_matmul(weights: Array, _: Attrs) -> tuple[Array, tuple[int, ...]]:
    return weights, tuple(range(weights.ndim - 1))


_LAYERS: Mapping[OpSchema, _Layer] = {
    CONV: _Layer(1, _split_conv),
    CONV_TRANSPOSE: _Layer(1, _split_transpose),
    GEMM: _Layer(-1, _split_gemm),
    MATMUL: _Layer(-1, _split_matmul),
}


def fold_batch_norm(edit: Edit, operator: Operator) -> None:
    """Folds an operator that scales and shifts the channels of a layer into the layer.

    affine(layer(x, W, b)) -> layer(x, W * factor, b * factor + shift)
    layer: conv, conv_transpose, gemm, matmul. affine: see `engine.passes.fold.affine`.

    The rule does not apply where something else reads the layer, where its weights or bias are not constant, where
    weights above 64 KiB have another reader, where a matmul is not of two matrices and a shift is needed, or where
    weights would become infinite or subnormal.
    """
    for var in operator.inputs[:2] if edit.is_needed(operator.outputs[0]) else ():
        producer = edit.writer(var)
        if producer is None or producer.schema not in _LAYERS or edit.sole_reader(var) is None:
            continue
        function = affine(edit, operator, _LAYERS[producer.schema].channels)
        if function is not None and function.x is var and _may_change(edit, producer, function):
            _fold(edit, operator, producer, function)
            return


def _may_change(edit: Edit, producer: Operator, function: Affine) -> bool:
    """Returns whether weights and bias are constant, a bias may be added, and the inputs can still be read later."""
    constant = all(v in edit.constants for v in producer.inputs[1:])
    if not constant or any(map(edit.is_overwritten_state, producer.inputs)) or _bias(edit, producer) is None:
        return False
    x, weights = producer.inputs[:2]
    if weights.spec.nbytes > _SMALL and edit.sole_reader(weights) is None:
        return False
    plain = x.spec.ndim == weights.spec.ndim == 2 or not function.shifts
    return producer.schema is not MATMUL or (weights.spec.ndim > 1 and plain)


@np.errstate(invalid="ignore")  # a signalling NaN among weights
def _bias(edit: Edit, producer: Operator) -> Array | None:
    """Returns the bias of each channel, in float64; None where a channel has several."""
    y, schema = producer.outputs[0].spec, producer.schema
    if len(producer.inputs) < 3 or producer.attrs.get("beta") == 0:  # a bias times 0 is no bias, even NaN
        return np.zeros(y.shape[_LAYERS[schema].channels])
    array = edit.constants[producer.inputs[2]]
    if schema is not GEMM:
        return array.astype(np.float64)
    numbers = by_channel(array, y, -1)
    return None if numbers is None else numbers * producer.attrs["beta"]


def _fold(edit: Edit, operator: Operator, producer: Operator, function: Affine) -> None:
    bias, (x, weights, *old_bias) = _bias(edit, producer), producer.inputs
    assert bias is not None, "_may_change has checked it"
    schema, attrs = producer.schema, dict(producer.attrs)
    with np.errstate(all="ignore"):
        total = (bias * function.factor + function.shift).astype(weights.dtype)
    scaled = _scaled_weights(edit, producer, function.factor) if np.isfinite(total).all() else None
    if scaled is None:
        return
    inputs = [x, scaled]
    if old_bias or function.shifts:
        inputs.append(edit.constant(total, edit.name(old_bias[0]) if old_bias else ""))
        schema, attrs = (GEMM, {}) if schema is MATMUL else (schema, attrs | {"beta": 1.0} if schema is GEMM else attrs)
    edit.replace(operator.outputs[0], edit.add(schema, inputs, attrs)[0])


def _scaled_weights(edit: Edit, producer: Operator, factor: Array) -> Var | None:
    """Returns weights times factors, the very weights where all factors are 1; None where they may not be scaled."""
    weights, layer, attrs = producer.inputs[1], _LAYERS[producer.schema], dict(producer.attrs)
    if (factor == 1).all():
        return weights
    array = edit.constants[weights]
    with np.errstate(all="ignore"):
        keeps = _keeps(layer.peaks(array, attrs), factor, weights.dtype)
    release(array)
    scaled = partial(_scaled, layer, edit.constant_entry(weights), factor, attrs)
    return edit.deferred_constant(weights.spec, scaled, edit.name(weights)) if keeps else None


def _scaled(layer: _Layer, weights: Entry, factor: Array, attrs: Attrs) -> Array:
    """Returns the scaled weights, from the stored ones."""
    array = array_of(weights)
    scaled = layer.scale(array, factor, attrs)
    release(array)
    return scaled


def _keeps(peaks: Array, factor: Array, dtype: np.dtype[Any]) -> bool:
    """Returns whether all weights stay finite, and the largest weight of each channel stays a normal number.

    A channel is as exact as its largest weight, so far smaller weights may become 0.
    """
    limits, after = np.finfo(dtype), peaks * abs(factor)
    least = float(limits.smallest_normal)
    small = (after < least) & (peaks >= least) & (factor != 0)
    return bool((after <= float(limits.max)).all()) and not small.any()


FOLD_BATCH_NORM = RulePass("batch normalization folded", fold_batch_norm)
