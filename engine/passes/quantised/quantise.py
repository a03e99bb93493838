"""Quantised networks run on codes: what lies between a dequantisation and a quantisation becomes integer arithmetic.

Exporters write each quantised operator as one on real numbers between `dequantize_linear` and `quantize_linear` (QDQ).
Convolutions and products with constant weights, sums and means are computed on the codes, exactly but for one rounding;
what only moves elements or picks the largest moves codes. int8 becomes uint8, since processors multiply that by int8.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf, nan
from typing import Any

import numpy as np
from attrs import frozen

import ops
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.base import RulePass
from engine.passes.edit import Edit
from engine.passes.quantised.lookup import join_tables, look_up
from engine.passes.quantised.quant_params import Codes, Grid, bias_of, codes_of, grid_of, weights_of
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
from ops.tensor.spec import Array, normalize_axes

_MOVES = (RESHAPE, TRANSPOSE, SLICE, SPLIT, MAX_POOL)
"""What gives some of the elements of its one input, or the largest of them."""
_MOST_CODE = 255
"""Between a code and a zero point."""


@frozen(eq=False)
class _Target:
    """What codes are wanted of a result: their grid, and the bounds of an activation in front of it, in codes.

    With no grid, the result is wanted as float32, between bounds that are real numbers.
    """

    grid: Grid | None
    low: float = -inf
    high: float = inf

    @property
    def scale(self) -> np.float32:
        """Of the result."""
        return np.float32(1) if self.grid is None else self.grid.scale

    @property
    def attrs(self) -> dict[str, Any]:
        """As attributes."""
        grid = self.grid
        known = {"to": "float32"} if grid is None else {"to": grid.dtype, "y_zero": grid.zero}
        return {**known, "low": self.low, "high": self.high}


def quantise(edit: Edit, operator: Operator) -> None:
    """Lets codes take the place of real numbers around one operator."""
    if operator.schema is QUANTIZE_LINEAR:
        _quantisation(edit, operator)
    elif operator.schema in _MOVES:
        _sink(edit, operator)
    elif operator.schema in (CONV, GEMM, MATMUL):
        _to_real(edit, operator)
    elif operator.schema is LOOK_UP:
        join_tables(edit, operator)


def _quantisation(edit: Edit, operator: Operator) -> None:
    grid = grid_of(edit, operator)
    if grid is None or _as_unsigned(edit, operator, grid):
        return
    source, low, high = _activation(edit, operator.inputs[0])
    target = _Target(grid, _code(grid, low), _code(grid, high))
    codes = codes_of(edit, source)
    found = _held(codes.var, target) if codes is not None and codes.grid.same(grid) else look_up(edit, operator, grid)
    if found is not None:
        edit.replace(operator.outputs[0], found)
        return
    producer = edit.writer(source)
    rule = _RULES.get(producer.schema) if producer is not None else None
    if rule is None or producer is None or edit.sole_reader(source) is None:
        return
    made = rule(edit, producer, target)
    if made is not None:
        edit.replace(operator.outputs[0], made)


def _code(grid: Grid, real: float) -> float:
    """The bound as a code; none stays none."""
    return real if real in (-inf, inf) else grid.code(real)


def _held(codes: Var, target: _Target) -> Var:
    """Codes between the bounds of an activation."""
    least, most = ends(codes.dtype)
    low, high = max(target.low, least), min(target.high, most)
    return codes if (low, high) == (least, most) else ops.clip(codes, int(low), int(high))


def _as_unsigned(edit: Edit, operator: Operator, grid: Grid) -> bool:
    """Whether int8 was turned into uint8: where all readers dequantise."""
    (y,) = operator.outputs
    readers = edit.readers(y)
    if grid.dtype == np.dtype("uint8") or edit.is_fetched(y) or not readers:
        return False
    grids = [grid_of(edit, r) if r.schema is DEQUANTIZE_LINEAR and r.inputs[0] is y else None for r in readers]
    if any(g is None for g in grids):
        return False
    codes = ops.quantize_linear(operator.inputs[0], *grid.unsigned.parameters())
    for reader, own in zip(readers, grids, strict=True):
        if own is not None:
            edit.replace(reader.outputs[0], ops.dequantize_linear(codes, *own.unsigned.parameters()))
    return True


def _activation(edit: Edit, var: Var) -> tuple[Var, float, float]:
    """What an activation is applied to that is read here alone, and its bounds."""
    operator = edit.writer(var)
    if operator is None or edit.sole_reader(var) is None:
        return var, -inf, inf
    if operator.schema is RELU:
        return operator.inputs[0], 0.0, inf
    if operator.schema is CLIP:
        low, high = (n if n is not None else nan for n in map(edit.number, operator.inputs[1:]))
        if low <= high:
            return operator.inputs[0], low, high
    return var, -inf, inf


def _sink(edit: Edit, operator: Operator) -> None:
    """Lets an operator that moves elements move codes: they are dequantised behind it."""
    codes = codes_of(edit, operator.inputs[0])
    if codes is None or len(operator.inputs) > 1 or operator.attrs.get("with_indices"):
        return
    made: tuple[Var, ...] = (_pooled(edit, operator, codes.var),) if operator.schema is MAX_POOL else ()
    made = made or edit.add(operator.schema, (codes.var,), operator.attrs)
    for old, new in zip(operator.outputs, made, strict=True):
        edit.replace(old, ops.dequantize_linear(new, *codes.grid.parameters()))


def _pooled(edit: Edit, operator: Operator, codes: Var) -> Var:
    """The largest codes of windows, with channels last."""
    attrs = {n: v for n, v in operator.attrs.items() if n not in ("storage_order", "with_indices")}
    return _turned_back(edit.add(NHWC_MAX_POOL, (_turned(codes),), attrs)[0])


def _turned(codes: Var) -> Var:
    """With channels last."""
    return ops.transpose(codes, (0, *range(2, codes.ndim), 1))


def _turned_back(codes: Var) -> Var:
    """With channels in front of spatial axes."""
    return ops.transpose(codes, (0, codes.ndim - 1, *range(1, codes.ndim - 1)))


def _to_real(edit: Edit, operator: Operator) -> None:
    """Computes on codes what is wanted as real numbers; what is quantised again is left to its quantisation."""
    (y,) = operator.outputs
    reader = edit.sole_reader(y)
    if reader is not None and reader.schema in (RELU, CLIP):
        reader = edit.sole_reader(reader.outputs[0])
    if y.dtype != np.dtype("float32") or (reader is not None and reader.schema is QUANTIZE_LINEAR):
        return
    made = _RULES[operator.schema](edit, operator, _Target(None))
    if made is not None:
        edit.replace(y, made)


def _convolution(edit: Edit, operator: Operator, target: _Target) -> Var | None:
    x, w, *bias = operator.inputs
    codes, weights = codes_of(edit, x), weights_of(edit, w)
    if codes is None or weights is None or weights.axis != 0:
        return None
    made = _product(edit, (codes, weights.codes, weights.scale), bias, target)
    if made is None:
        return None
    inputs, attrs = made
    (y,) = edit.add(NHWC_QUANTISED_CONV, (_turned(codes.var), *inputs), {**operator.attrs, **attrs})
    return _turned_back(y)


def _product(
    edit: Edit, factors: tuple[Codes, Array, Array], bias: Sequence[Var], target: _Target
) -> tuple[tuple[Var, ...], dict[str, Any]] | None:
    """All inputs but the first, and the attributes, of a convolution of codes with weights (outputs, ...)."""
    codes, weights, scale = factors
    with np.errstate(all="ignore"):
        unit = np.broadcast_to(scale * codes.grid.scale, (len(weights),))
        factor = (unit / target.scale).astype(np.float32)
    if not (_is_scale(unit) and _is_scale(factor)):
        return None
    whole = bias_of(edit, bias[0], unit, exactly=target.grid is None) if bias else np.zeros(len(weights), np.int32)
    if whole is None or not _fits(weights, whole):
        return None
    constants = (weights, factor, whole)
    return tuple(map(edit.constant, constants)), {"x_zero": codes.grid.zero, **target.attrs}


def _is_scale(factors: Array) -> bool:
    """Whether something can be multiplied by these and divided by them."""
    return bool((np.isfinite(factors) & (factors > 0)).all())


def _fits(weights: Array, bias: Array) -> bool:
    """Whether sums of any codes with these weights (outputs, ...) are int32."""
    most = np.abs(weights, dtype=np.int16).sum(axis=tuple(range(1, weights.ndim)), dtype=np.int64) * _MOST_CODE
    return bool((most + np.abs(bias, dtype=np.int64) < 2**31).all())


def _matrices(edit: Edit, operator: Operator, target: _Target) -> Var | None:
    """The product with a constant matrix, as a convolution of one tap over as many pixels as there are rows."""
    a, b, *bias = operator.inputs
    codes, weights = codes_of(edit, a), weights_of(edit, b)
    if codes is None or weights is None or not _plain(operator) or weights.codes.ndim != 2:
        return None
    outputs = 0 if operator.attrs.get("trans_b") else 1
    if weights.scale.size > 1 and weights.axis != outputs:
        return None
    matrix = weights.codes if outputs == 0 else weights.codes.T
    made = _product(edit, (codes, np.ascontiguousarray(matrix)[..., None], weights.scale), bias, target)
    if made is None:
        return None
    inputs, attrs = made
    rows = ops.reshape(codes.var, (1, a.spec.size // max(a.shape[-1], 1), a.shape[-1]))
    (y,) = edit.add(NHWC_QUANTISED_CONV, (rows, *inputs), attrs)
    return ops.reshape(y, operator.outputs[0].shape)


def _plain(operator: Operator) -> bool:
    """Whether nothing is scaled or turned but the second factor."""
    attrs = operator.attrs
    scaled = attrs.get("trans_a") or attrs.get("alpha", 1.0) != 1 or (len(operator.inputs) > 2 and attrs["beta"] != 1)
    return not scaled and operator.inputs[0].spec.size > 0 and operator.inputs[0].ndim > 1


def _sum(edit: Edit, operator: Operator, target: _Target) -> Var | None:
    found = [codes_of(edit, v) for v in operator.inputs]
    known = [c for c in found if c is not None]
    if len(found) != 2 or len(known) != 2:
        return None
    factors = {f"{n}_factor": float(c.grid.scale / target.scale) for n, c in zip("ab", known, strict=True)}
    zeros = {f"{n}_zero": c.grid.zero for n, c in zip("ab", known, strict=True)}
    return edit.add(QUANTISED_ADD, [c.var for c in known], {**factors, **zeros, **target.attrs})[0]


def _mean(edit: Edit, operator: Operator, target: _Target) -> Var | None:
    (x,), (y,) = operator.inputs, operator.outputs
    codes = codes_of(edit, x)
    every = tuple(range(2, x.ndim))
    axes = every if operator.schema is GLOBAL_AVERAGE_POOL else operator.attrs["axes"]
    if codes is None or not axes or not x.spec.size:
        return None
    axes, source = normalize_axes(axes, x.ndim), codes.var
    count = np.float32(np.prod([x.shape[a] for a in axes]))
    attrs = {"axes": axes, "x_zero": codes.grid.zero, "factor": float(codes.grid.scale / (target.scale * count))}
    if set(axes) == set(every):
        source, attrs["axes"] = _turned(source), tuple(range(1, x.ndim - 1))
    return ops.reshape(edit.add(QUANTISED_MEAN, (source,), {**attrs, **target.attrs})[0], y.shape)


def _joined(edit: Edit, operator: Operator, target: _Target) -> Var | None:
    """Quantises what is put together, each by itself: what was on that grid already is not touched."""
    found = [codes_of(edit, v) for v in operator.inputs]
    if target.grid is None or not any(c is not None and c.grid.same(target.grid) for c in found):
        return None
    grid = target.grid
    parts = [ops.quantize_linear(v, *grid.parameters()) for v in operator.inputs]
    if operator.inputs[0].ndim > 2 and operator.attrs["axis"] == 1:
        whole = _turned_back(edit.add(CONCAT, [_turned(v) for v in parts], {"axis": -1})[0])
    else:
        (whole,) = edit.add(CONCAT, parts, operator.attrs)
    return _held(whole, target)


_RULES: Mapping[OpSchema, Callable[[Edit, Operator, _Target], Var | None]] = {
    CONV: _convolution,
    GEMM: _matrices,
    MATMUL: _matrices,
    ADD: _sum,
    SUM: _sum,
    GLOBAL_AVERAGE_POOL: _mean,
    REDUCE_MEAN: _mean,
    CONCAT: _joined,
}
QUANTISE = RulePass("quantised operators", quantise)
