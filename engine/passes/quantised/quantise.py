"""Quantised networks run on integers: operators between a dequantisation and a quantisation become integer arithmetic.

Exporters write each quantised operator as one on real numbers between `dequantize_linear` and `quantize_linear` (QDQ).
Convolutions and products with constant weights, sums and means are computed on the quantised values, exactly but for
one rounding. Operators that only move elements, or select the largest, work on quantised values. int8 tensors become
uint8, because processors multiply uint8 by int8.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf, nan
from typing import Any

import numpy as np
from attrs import frozen

import ops
from engine.graph.deferred import SMALL
from engine.graph.mapped import release
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.base import RulePass
from engine.passes.edit import Edit
from engine.passes.quantised.lookup import join_tables, look_up
from engine.passes.quantised.quant_params import (
    QuantisedVar,
    QuantParams,
    quant_params_of,
    quantised_bias,
    quantised_source,
    quantised_weights,
)
from ops.convolution.conv import CONV
from ops.elementwise.activation import CLIP, RELU
from ops.elementwise.binary import ADD
from ops.elementwise.variadic import SUM
from ops.movement.concat import CONCAT
from ops.movement.reshape import RESHAPE
from ops.movement.slicing import SLICE
from ops.movement.views import SPLIT, TRANSPOSE
from ops.pool.global_pooling import GLOBAL_AVERAGE_POOL
from ops.pool.nhwc import NHWC_MAX_POOL
from ops.pool.pool import MAX_POOL
from ops.products.gemm import GEMM
from ops.products.matmul import MATMUL
from ops.quantised.linear import DEQUANTIZE_LINEAR, QUANTIZE_LINEAR
from ops.quantised.nhwc_conv import NHWC_QUANTISED_CONV
from ops.quantised.params import ends
from ops.quantised.sum import QUANTISED_ADD, QUANTISED_MEAN
from ops.quantised.table import LOOK_UP
from ops.reduce.reduce import REDUCE_MEAN
from ops.schema.schema import OpSchema
from ops.tensor.spec import Array, normalize_axes, spec_of

_BIT_COPIES = (RESHAPE, TRANSPOSE, SLICE, SPLIT, MAX_POOL)
"""Operators whose result has elements of their one input only."""
_MOST_DIFFERENCE = 255
"""The largest difference of an 8-bit value and its zero point."""
_MOST_WEIGHT = 128
"""The largest magnitude of an int8 weight."""


@frozen(eq=False)
class _Target:
    """The form that a result shall have: quantised with `params`, between the bounds of an activation.

    The bounds are quantised values. Without `params` the result shall be float32, and the bounds are real numbers.
    """

    params: QuantParams | None
    low: float = -inf
    high: float = inf

    @property
    def scale(self) -> np.float32:
        """Returns the scale of the result."""
        return np.float32(1) if self.params is None else self.params.scale

    @property
    def attrs(self) -> dict[str, Any]:
        """Returns the attributes of a quantised operator that gives this form."""
        params = self.params
        quantisation = {"to": "float32"} if params is None else {"to": params.dtype, "y_zero": params.zero}
        return {**quantisation, "low": self.low, "high": self.high}


def quantise(edit: Edit, operator: Operator) -> None:
    """Replaces real numbers by quantised values around one operator.

    Here q is a dequantised tensor, and w is dequantised constant weights.

    1. quantize(conv(q, w, bias)), also gemm and matmul -> nhwc_quantised_conv; without quantize: with a float32 result
    2. quantize(q1 + q2) -> quantised_add(q1, q2)
    3. quantize(mean(q)), quantize(global_average_pool(q)) -> quantised_mean(q)
    4. quantize(concat(...)), one input with the same parameters -> concat(quantize(...), ...)
    5. quantize(f(q)), f elementwise -> look_up(q, table)
    6. look_up(look_up(q)) -> look_up(q)
    7. move(q) -> dequantize(move(quantised q)) for reshape, transpose, slice, split, max_pool
    8. quantize to int8, all readers dequantize -> quantize to uint8
    In 1 to 4 a relu or clip in front of the quantize becomes bounds of the operator.

    A case does not apply where the parameters are not constant or not per tensor (weights may have one scale for each
    channel), where something else reads the real numbers, or where sums might exceed int32.
    """
    if operator.schema is QUANTIZE_LINEAR:
        _quantisation(edit, operator)
    elif operator.schema in _BIT_COPIES:
        _sink_dequantisation(edit, operator)
    elif operator.schema in (CONV, GEMM, MATMUL):
        _to_real(edit, operator)
    elif operator.schema is LOOK_UP:
        join_tables(edit, operator)


def _quantisation(edit: Edit, operator: Operator) -> None:
    """Applies the cases that end in a quantize_linear."""
    params = quant_params_of(edit, operator)
    if params is None or _as_unsigned(edit, operator, params):
        return
    source, low, high = _activation(edit, operator.inputs[0])
    target = _Target(params, _bound(params, low), _bound(params, high))
    same = quantised_source(edit, source)
    if same is not None and same.params.same(params):
        result: Var | None = _clipped(same.var, target)
    else:
        result = look_up(edit, operator, params)
    if result is not None:
        edit.replace(operator.outputs[0], result)
        return
    producer = edit.writer(source)
    rule = _RULES.get(producer.schema) if producer is not None else None
    if rule is None or producer is None or edit.sole_reader(source) is None:
        return
    result = rule(edit, producer, target)
    if result is not None:
        edit.replace(operator.outputs[0], result)


def _bound(params: QuantParams, real: float) -> float:
    """Returns a bound as a quantised value; an infinite one stays infinite."""
    return real if real in (-inf, inf) else params.quantised(real)


def _clipped(quantised: Var, target: _Target) -> Var:
    """Returns a quantised tensor between the bounds of an activation."""
    least, most = ends(quantised.dtype)
    low, high = max(target.low, least), min(target.high, most)
    return quantised if (low, high) == (least, most) else ops.clip(quantised, int(low), int(high))


def _as_unsigned(edit: Edit, operator: Operator, params: QuantParams) -> bool:
    """Replaces int8 by uint8 where all readers dequantise; returns whether it did."""
    (y,) = operator.outputs
    readers = edit.readers(y)
    if params.dtype == np.dtype("uint8") or edit.is_fetched(y) or not readers:
        return False
    all_params = [
        quant_params_of(edit, r) if r.schema is DEQUANTIZE_LINEAR and r.inputs[0] is y else None for r in readers
    ]
    if any(g is None for g in all_params):
        return False
    unsigned = ops.quantize_linear(operator.inputs[0], *params.unsigned.parameters())
    edit.inherit_name(y, unsigned)
    for reader, own in zip(readers, all_params, strict=True):
        if own is not None:
            edit.replace(reader.outputs[0], ops.dequantize_linear(unsigned, *own.unsigned.parameters()))
    return True


def _activation(edit: Edit, var: Var) -> tuple[Var, float, float]:
    """Returns the input of a relu or clip with one reader, and its bounds; else the var itself and infinite bounds."""
    operator = edit.writer(var)
    if operator is None or edit.sole_reader(var) is None:
        return var, -inf, inf
    if operator.schema is RELU:
        return operator.inputs[0], 0.0, inf
    if operator.schema is CLIP:
        low, high = (n if n is not None else nan for n in map(edit.uniform_value, operator.inputs[1:]))
        if low <= high:
            return operator.inputs[0], low, high
    return var, -inf, inf


def _sink_dequantisation(edit: Edit, operator: Operator) -> None:
    """Makes an operator that copies elements work on quantised values, and dequantises its results."""
    source = quantised_source(edit, operator.inputs[0])
    if source is None or len(operator.inputs) > 1 or operator.attrs.get("with_indices"):
        return
    results: tuple[Var, ...] = (_pooled(edit, operator, source.var),) if operator.schema is MAX_POOL else ()
    results = results or edit.add(operator.schema, (source.var,), operator.attrs)
    for old, new in zip(operator.outputs, results, strict=True):
        edit.replace(old, ops.dequantize_linear(new, *source.params.parameters()))


def _pooled(edit: Edit, operator: Operator, quantised: Var) -> Var:
    """Returns the max pooling of a quantised tensor, computed with channels last."""
    attrs = {n: v for n, v in operator.attrs.items() if n not in ("storage_order", "with_indices")}
    return _to_nchw(edit.add(NHWC_MAX_POOL, (_to_nhwc(quantised),), attrs)[0])


def _to_nhwc(quantised: Var) -> Var:
    """Adds the transpose to channels last."""
    return ops.transpose(quantised, (0, *range(2, quantised.ndim), 1))


def _to_nchw(quantised: Var) -> Var:
    """Adds the transpose back to channels first."""
    return ops.transpose(quantised, (0, quantised.ndim - 1, *range(1, quantised.ndim - 1)))


def _to_real(edit: Edit, operator: Operator) -> None:
    """Computes a product on quantised values with a float32 result, unless a quantize_linear reads it (case 1)."""
    (y,) = operator.outputs
    reader = edit.sole_reader(y)
    if reader is not None and reader.schema in (RELU, CLIP):
        reader = edit.sole_reader(reader.outputs[0])
    if y.dtype != np.dtype("float32") or (reader is not None and reader.schema is QUANTIZE_LINEAR):
        return
    result = _RULES[operator.schema](edit, operator, _Target(None))
    if result is not None:
        edit.replace(y, result)


def _convolution(edit: Edit, operator: Operator, target: _Target) -> Var | None:
    """Returns the convolution of a quantised tensor with quantised weights, computed with channels last."""
    x, w, *bias = operator.inputs
    source, weights = quantised_source(edit, x), quantised_weights(edit, w)
    if source is None or weights is None or weights.axis != 0:
        return None
    product = _product(edit, (source, weights.values, weights.scale), bias, target)
    if product is None:
        return None
    inputs, attrs = product
    (y,) = edit.add(NHWC_QUANTISED_CONV, (_to_nhwc(source.var), *inputs), {**operator.attrs, **attrs})
    return _to_nchw(y)


def _product(
    edit: Edit, factors: tuple[QuantisedVar, Array, Array], bias: Sequence[Var], target: _Target
) -> tuple[tuple[Var, ...], dict[str, Any]] | None:
    """Returns the inputs but the first, and the attributes, of a quantised convolution with weights (outputs, ...).

    `factors` are the quantised tensor, the values of the weights and their scales.
    """
    source, weights, scale = factors
    with np.errstate(all="ignore"):
        unit = np.broadcast_to(scale * source.params.scale, (len(weights),))
        factor = (unit / target.scale).astype(np.float32)
    if not (_is_scale(unit) and _is_scale(factor)):
        return None
    whole = (
        quantised_bias(edit, bias[0], unit, exactly=target.params is None) if bias else np.zeros(len(weights), np.int32)
    )
    if whole is None or not _fits(weights, whole):
        return None
    constants = (_constant_weights(edit, weights), edit.constant(factor), edit.constant(whole))
    return constants, {"x_zero": source.params.zero, **target.attrs}


def _is_scale(factors: Array) -> bool:
    """Returns whether all factors are finite and above 0."""
    return bool((np.isfinite(factors) & (factors > 0)).all())


def _fits(weights: Array, bias: Array) -> bool:
    """Returns whether sums of any 8-bit values times these int8 weights (outputs, ...), plus the bias, fit into int32.

    Weights are read only where so many terms do not fit whatever the weights are.
    """
    terms = weights[:1].size
    if terms * _MOST_WEIGHT * _MOST_DIFFERENCE + int(np.abs(bias, dtype=np.int64).max(initial=0)) < 2**31:
        return True
    most = np.abs(weights, dtype=np.int16).sum(axis=tuple(range(1, weights.ndim)), dtype=np.int64) * _MOST_DIFFERENCE
    return bool((most + np.abs(bias, dtype=np.int64) < 2**31).all())


def _constant_weights(edit: Edit, weights: Array) -> Var:
    """Adds weights; large ones that are stored in another order are arranged when they are read."""
    if weights.flags.c_contiguous or weights.nbytes <= SMALL:
        return edit.constant(weights)
    return edit.deferred_constant(spec_of(weights), partial(_arranged, weights))


def _arranged(weights: Array) -> Array:
    dense = np.ascontiguousarray(weights)
    release(weights)
    return dense


def _matrix_product(edit: Edit, operator: Operator, target: _Target) -> Var | None:
    """Returns a product with a constant matrix, as a 1x1 convolution with one pixel for each row."""
    a, b, *bias = operator.inputs
    source, weights = quantised_source(edit, a), quantised_weights(edit, b)
    if source is None or weights is None or not _is_unscaled(operator) or weights.values.ndim != 2:
        return None
    outputs = 0 if operator.attrs.get("trans_b") else 1
    if weights.scale.size > 1 and weights.axis != outputs:
        return None
    matrix = weights.values if outputs == 0 else weights.values.T
    product = _product(edit, (source, matrix[..., None], weights.scale), bias, target)
    if product is None:
        return None
    inputs, attrs = product
    rows = ops.reshape(source.var, (1, a.spec.size // max(a.shape[-1], 1), a.shape[-1]))
    (y,) = edit.add(NHWC_QUANTISED_CONV, (rows, *inputs), attrs)
    return ops.reshape(y, operator.outputs[0].shape)


def _is_unscaled(operator: Operator) -> bool:
    """Returns whether a product scales nothing and transposes at most its second factor."""
    attrs = operator.attrs
    scaled = attrs.get("trans_a") or attrs.get("alpha", 1.0) != 1 or (len(operator.inputs) > 2 and attrs["beta"] != 1)
    return not scaled and operator.inputs[0].spec.size > 0 and operator.inputs[0].ndim > 1


def _sum(edit: Edit, operator: Operator, target: _Target) -> Var | None:
    """Returns the sum of two quantised tensors."""
    sources = [source for v in operator.inputs if (source := quantised_source(edit, v)) is not None]
    if len(operator.inputs) != 2 or len(sources) != 2:
        return None
    factors = {f"{n}_factor": float(q.params.scale / target.scale) for n, q in zip("ab", sources, strict=True)}
    zeros = {f"{n}_zero": q.params.zero for n, q in zip("ab", sources, strict=True)}
    return edit.add(QUANTISED_ADD, [q.var for q in sources], {**factors, **zeros, **target.attrs})[0]


def _mean(edit: Edit, operator: Operator, target: _Target) -> Var | None:
    """Returns the mean of a quantised tensor; over all spatial axes it is computed with channels last."""
    (x,), (y,) = operator.inputs, operator.outputs
    source = quantised_source(edit, x)
    every = tuple(range(2, x.ndim))
    axes = every if operator.schema is GLOBAL_AVERAGE_POOL else operator.attrs["axes"]
    if source is None or not axes or not x.spec.size:
        return None
    axes, quantised = normalize_axes(axes, x.ndim), source.var
    count = np.float32(np.prod([x.shape[a] for a in axes]))
    attrs = {"axes": axes, "x_zero": source.params.zero, "factor": float(source.params.scale / (target.scale * count))}
    if set(axes) == set(every):
        quantised, attrs["axes"] = _to_nhwc(quantised), tuple(range(1, x.ndim - 1))
    return ops.reshape(edit.add(QUANTISED_MEAN, (quantised,), {**attrs, **target.attrs})[0], y.shape)


def _concatenation(edit: Edit, operator: Operator, target: _Target) -> Var | None:
    """Returns the concatenation of the inputs, each quantised; one that has the target parameters needs no work."""
    sources = [quantised_source(edit, v) for v in operator.inputs]
    if target.params is None or not any(q is not None and q.params.same(target.params) for q in sources):
        return None
    params = target.params
    parts = [ops.quantize_linear(v, *params.parameters()) for v in operator.inputs]
    if operator.inputs[0].ndim > 2 and operator.attrs["axis"] == 1:
        whole = _to_nchw(edit.add(CONCAT, [_to_nhwc(v) for v in parts], {"axis": -1})[0])
    else:
        (whole,) = edit.add(CONCAT, parts, operator.attrs)
    return _clipped(whole, target)


def is_taken(edit: Edit, real: Var, quantised: Var) -> bool:
    """Returns whether the product `real`, which is quantised as `quantised`, is computed on quantised values."""
    producer, quantisation = edit.writer(real), edit.writer(quantised)
    if producer is None or quantisation is None:
        return False
    params = quant_params_of(edit, quantisation)
    return params is not None and _RULES[producer.schema](edit, producer, _Target(params)) is not None


_RULES: Mapping[OpSchema, Callable[[Edit, Operator, _Target], Var | None]] = {
    CONV: _convolution,
    GEMM: _matrix_product,
    MATMUL: _matrix_product,
    ADD: _sum,
    SUM: _sum,
    GLOBAL_AVERAGE_POOL: _mean,
    REDUCE_MEAN: _mean,
    CONCAT: _concatenation,
}
QUANTISE = RulePass("quantised operators", quantise)
