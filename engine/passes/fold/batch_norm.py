"""Batch normalization, and arithmetic with one constant a channel, folded into the weights in front of it.

Glow's rule (Rotem et al. 2018): y = A * x + C with A = W * factor for each output channel, C = bias * factor + shift.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from attrs import frozen

from engine.graph.deferred import Entry, array_of
from engine.graph.mapped import release
from engine.graph.operator import Operator
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
"""Bytes of weights that are copied although others read them too."""


@frozen(eq=False)
class _Layer:
    """An operator whose weights (input 1) and bias (input 2) are constants: `channels` is the axis of its outputs.

    `split` shows the weights with the channels on some axes of their own; what is told are the other axes.
    """

    channels: int
    split: Callable[[Array, Attrs], tuple[Array, tuple[int, ...]]]

    def scale(self, weights: Array, factor: Array, attrs: Attrs) -> Array:
        """Weights with a factor for each channel, multiplied in float64."""
        shown, others = self.split(weights, attrs)
        shape = tuple(1 if axis in others else n for axis, n in enumerate(shown.shape))
        scaled = np.empty(weights.shape, weights.dtype)
        room = self.split(scaled, attrs)[0]
        with np.errstate(all="ignore"):
            np.multiply(shown, factor.reshape(shape), out=room, dtype=np.float64, casting="same_kind")
        return scaled

    def peaks(self, weights: Array, attrs: Attrs) -> Array:
        """The largest weight of each channel, without its sign, in float64."""
        shown, others = self.split(weights, attrs)
        highest, lowest = shown.max(others, initial=0), shown.min(others, initial=0)
        found: Array = np.maximum(highest.astype(np.float64), -lowest.astype(np.float64))
        return found.reshape(-1)


def _split_conv(weights: Array, _: Attrs) -> tuple[Array, tuple[int, ...]]:
    return weights, tuple(range(1, weights.ndim))


def _split_transpose(weights: Array, attrs: Attrs) -> tuple[Array, tuple[int, ...]]:
    """Weights (C, O / group, kernel...): the channels of a group of inputs are read by that group of outputs."""
    shown = weights.reshape((attrs["group"], -1, *weights.shape[1:]))
    return shown, (1, *range(3, shown.ndim))


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
    """Where one operator alone reads a layer, and does nothing but scale and shift its channels, the layer does it."""
    for var in operator.inputs[:2] if edit.is_needed(operator.outputs[0]) else ():
        producer = edit.writer(var)
        if producer is None or producer.schema not in _LAYERS or edit.sole_reader(var) is None:
            continue
        found = affine(edit, operator, _LAYERS[producer.schema].channels)
        if found is not None and found.x is var and _may_change(edit, producer, found):
            _fold(edit, operator, producer, found)
            return


def _may_change(edit: Edit, producer: Operator, found: Affine) -> bool:
    """Whether weights and bias are constants, there may be a bias, and what is read can still be read later."""
    constant = all(v in edit.constants for v in producer.inputs[1:])
    if not constant or any(map(edit.is_old_state, producer.inputs)) or _bias(edit, producer) is None:
        return False
    x, weights = producer.inputs[:2]
    if weights.spec.nbytes > _SMALL and edit.sole_reader(weights) is None:
        return False
    plain = x.spec.ndim == weights.spec.ndim == 2 or not found.shifts
    return producer.schema is not MATMUL or (weights.spec.ndim > 1 and plain)


def _bias(edit: Edit, producer: Operator) -> Array | None:
    """What the layer adds to each channel, in float64, if it is one number."""
    y, schema = producer.outputs[0].spec, producer.schema
    if len(producer.inputs) < 3 or producer.attrs.get("beta") == 0:  # what counts 0 times may even be NaN
        return np.zeros(y.shape[_LAYERS[schema].channels])
    given = edit.constants[producer.inputs[2]]
    if schema is not GEMM:
        return given.astype(np.float64)
    found = by_channel(given, y, -1)
    return None if found is None else found * producer.attrs["beta"]


def _fold(edit: Edit, operator: Operator, producer: Operator, found: Affine) -> None:
    bias, (x, weights, *given) = _bias(edit, producer), producer.inputs
    assert bias is not None, "it was asked for before"
    schema, attrs, layer = producer.schema, dict(producer.attrs), _LAYERS[producer.schema]
    array = edit.constants[weights]
    with np.errstate(all="ignore"):
        total = (bias * found.factor + found.shift).astype(weights.dtype)
        if not np.isfinite(total).all() or not _keeps(layer.peaks(array, attrs), found.factor, weights.dtype):
            return
    scaled = partial(_scaled, layer, edit.entry(weights), found.factor, attrs)
    release(array)
    inputs = [x, edit.deferred(weights.spec, scaled, edit.name(weights))]
    if given or found.shifts:
        inputs.append(edit.constant(total, edit.name(given[0]) if given else ""))
        schema, attrs = (GEMM, {}) if schema is MATMUL else (schema, attrs | {"beta": 1.0} if schema is GEMM else attrs)
    edit.replace(operator.outputs[0], edit.add(schema, inputs, attrs)[0])


def _scaled(layer: _Layer, weights: Entry, factor: Array, attrs: Attrs) -> Array:
    array = array_of(weights)
    found = layer.scale(array, factor, attrs)
    release(array)
    return found


def _keeps(peaks: Array, factor: Array, dtype: np.dtype[Any]) -> bool:
    """Whether weights stay finite, and the largest of each channel a normal number, if it is one.

    A channel is as exact as its largest weight: what is far smaller may vanish.
    """
    limits, after = np.finfo(dtype), peaks * abs(factor)
    least = float(limits.smallest_normal)
    small = (after < least) & (peaks >= least) & (factor != 0)
    return bool((after <= float(limits.max)).all()) and not small.any()


FOLD_BATCH_NORM = RulePass("batch normalization folded", fold_batch_norm)
