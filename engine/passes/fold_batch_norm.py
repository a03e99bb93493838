"""Batch normalization, and arithmetic with one constant a channel, folded into the weights in front of it.

Glow's rule (Rotem et al. 2018): y = A * x + C with A = W * factor for each output channel, C = bias * factor + shift.
"""

from collections.abc import Callable, Mapping

import numpy as np
from attrs import frozen

from engine.operator import Operator
from engine.passes.affine import Affine, affine, by_channel
from engine.passes.base import RulePass
from engine.passes.edit import Edit
from ops.conv import CONV
from ops.conv_transpose import CONV_TRANSPOSE
from ops.gemm import GEMM
from ops.matmul import MATMUL
from ops.schema import Attrs, OpSchema
from ops.spec import Array


@frozen(eq=False)
class _Layer:
    """An operator whose weights (input 1) and bias (input 2) are constants: `channels` is the axis of its outputs."""

    channels: int
    scale: Callable[[Array, Array, Attrs], Array]


def _scale_conv(weights: Array, factor: Array, _: Attrs) -> Array:
    return weights * factor.reshape((-1,) + (1,) * (weights.ndim - 1))


def _scale_transpose(weights: Array, factor: Array, attrs: Attrs) -> Array:
    """Weights (C, O / group, kernel...): the channels of a group of inputs are read by that group of outputs."""
    group = attrs["group"]
    grouped = weights.reshape((group, -1, *weights.shape[1:]))
    factors = factor.reshape((group, 1, -1) + (1,) * (weights.ndim - 2))
    return (grouped * factors).reshape(weights.shape)


def _scale_gemm(weights: Array, factor: Array, attrs: Attrs) -> Array:
    return weights * (factor[:, None] if attrs["trans_b"] else factor)


def _scale_matmul(weights: Array, factor: Array, _: Attrs) -> Array:
    return weights * factor


_LAYERS: Mapping[OpSchema, _Layer] = {
    CONV: _Layer(1, _scale_conv),
    CONV_TRANSPOSE: _Layer(1, _scale_transpose),
    GEMM: _Layer(-1, _scale_gemm),
    MATMUL: _Layer(-1, _scale_matmul),
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
    plain = x.spec.ndim == weights.spec.ndim == 2 or not found.shifts
    return producer.schema is not MATMUL or (weights.spec.ndim > 1 and plain)


def _bias(edit: Edit, producer: Operator) -> Array | None:
    """What the layer adds to each channel, in float64, if it is one number."""
    y, schema = producer.outputs[0].spec, producer.schema
    if len(producer.inputs) < 3:
        return np.zeros(y.shape[_LAYERS[schema].channels])
    given = edit.constants[producer.inputs[2]]
    if schema is not GEMM:
        return given.astype(np.float64)
    found = by_channel(given, y, -1)
    return None if found is None else found * producer.attrs["beta"]


def _fold(edit: Edit, operator: Operator, producer: Operator, found: Affine) -> None:
    bias, (_, weights, *given) = _bias(edit, producer), producer.inputs
    assert bias is not None, "it was asked for before"
    schema, attrs = producer.schema, dict(producer.attrs)
    scaled = _LAYERS[schema].scale(edit.constants[weights].astype(np.float64), found.factor, producer.attrs)
    inputs = [producer.inputs[0], edit.constant(scaled.astype(weights.dtype), edit.name(weights))]
    if given or found.shifts:
        total = (bias * found.factor + found.shift).astype(weights.dtype)
        inputs.append(edit.constant(total, edit.name(given[0]) if given else ""))
        schema, attrs = (GEMM, {}) if schema is MATMUL else (schema, attrs | {"beta": 1.0} if schema is GEMM else attrs)
    edit.replace(operator.outputs[0], edit.add(schema, inputs, attrs)[0])


FOLD_BATCH_NORM = RulePass("batch normalization folded", fold_batch_norm)
