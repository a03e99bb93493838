"""Product of matrices, scale, bias, an addition and an activation as one operator, which finishes its sums while near.

A product moves down to what it takes in; what it reads lives longer, and what it computed needs no place any more.
"""

import math
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np

import ops
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.base import RulePass
from engine.passes.cleanup.movement import permutation
from engine.passes.edit import Edit
from engine.passes.recognise.formulas import writers
from ops.elementwise.activation import CLIP, LEAKY_RELU, RELU
from ops.elementwise.binary import ADD, DIV, MUL
from ops.elementwise.smooth import GELU, SWISH
from ops.elementwise.variadic import SUM
from ops.movement.views import TRANSPOSE
from ops.products.case import BIAS, RESIDUAL, is_mild
from ops.products.fused import FUSED_MATMUL
from ops.products.gemm import GEMM
from ops.products.matmul import MATMUL
from ops.schema.schema import OpSchema
from ops.tensor.errors import OpError

_SUMS = (ADD, SUM)
_GELU = {"none": "gelu_erf", "tanh": "gelu_tanh"}
Parts = tuple[tuple[Var, ...], Mapping[str, Any]]
"""Inputs and attributes of a fused product."""


def fuse_matmul(edit: Edit, operator: Operator) -> None:
    """Takes a transpose, a scale, an addition or an activation into the product that it alone reads."""
    if len(operator.outputs) > 1 or not edit.is_needed(operator.outputs[0]):
        return
    schema = operator.schema
    if schema in (MATMUL, FUSED_MATMUL):
        candidates: Iterator[Parts] = chain(_transposed_before(edit, operator), _scaled_before(edit, operator))
    elif schema in _SUMS and len(operator.inputs) == 2:
        candidates = _added(edit, operator)
    elif schema in (MUL, DIV):
        candidates = _scaled(edit, operator)
    else:
        candidates = _activated(edit, operator)
    for inputs, attrs in candidates:
        if _fuse(edit, operator, inputs, attrs):
            return


def _fuse(edit: Edit, operator: Operator, inputs: tuple[Var, ...], attrs: Mapping[str, Any]) -> bool:
    try:
        signature = FUSED_MATMUL.sign([v.spec for v in inputs], attrs)
    except OpError:  # vectors, integers, float16
        return False
    if signature.y != operator.outputs[0].spec or any(map(edit.is_old_state, inputs)):
        return False
    edit.replace(operator.outputs[0], edit.add(FUSED_MATMUL, inputs, attrs)[0])
    return True


def _products(edit: Edit, var: Var) -> Iterator[Parts]:
    """The product that computes a var for one reader alone, and has no activation yet; as a fused one."""
    found = edit.writer(var)
    if found is None or edit.sole_reader(var) is None:
        return
    if found.schema is MATMUL:
        yield found.inputs, {}
    elif found.schema is FUSED_MATMUL and found.attrs["activation"] == "none":
        yield found.inputs, found.attrs
    elif found.schema is GEMM and not found.attrs["trans_a"]:
        yield from _gemm(edit, found)


def _gemm(edit: Edit, gemm: Operator) -> Iterator[Parts]:
    factors, attrs = gemm.inputs[:2], {"transpose_b": gemm.attrs["trans_b"], "alpha": gemm.attrs["alpha"]}
    if len(gemm.inputs) == BIAS or gemm.attrs["beta"] == 0:
        yield factors, attrs
        return
    addend, beta = gemm.inputs[BIAS], gemm.attrs["beta"]
    if beta != 1:
        if addend not in edit.constants:
            return
        array = edit.constants[addend]
        addend = edit.constant(array * array.dtype.type(beta), edit.name(addend))
    yield from ((inputs, attrs) for inputs in _with(edit, factors, addend, gemm.outputs[0]))


def _with(edit: Edit, inputs: tuple[Var, ...], addend: Var, y: Var) -> Iterator[tuple[Var, ...]]:
    """The inputs of a product and one more, which is its bias if it may be, else the tensor that is added."""
    lead, width = addend.shape[:-1], y.shape[-1:]
    if addend.dtype != y.dtype or addend.shape[-1:] != width or len(inputs) > RESIDUAL:
        return
    if len(inputs) == BIAS and all(n == 1 for n in lead):
        yield (*inputs, _as_row(edit, addend))
        return
    row = np.zeros(width, y.dtype) if len(inputs) == BIAS else None
    yield (*inputs, *(() if row is None else (edit.constant(row),)), addend)


def _as_row(edit: Edit, addend: Var) -> Var:
    if addend.ndim == 1:
        return addend
    if addend in edit.constants:
        return edit.constant(edit.constants[addend].reshape(-1), edit.name(addend))
    return ops.reshape(addend, addend.shape[-1:])


def _added(edit: Edit, operator: Operator) -> Iterator[Parts]:
    """Into the later of two products, if one can: what the earlier one gives is then written over."""
    a, b = operator.inputs
    if a is b:  # added to itself it would be computed twice
        return
    found = [(producer, v, w) for v, w in ((a, b), (b, a)) if (producer := edit.writer(v)) is not None]
    for _, product, addend in sorted(found, key=lambda f: edit.place(f[0]), reverse=True):
        for inputs, attrs in _products(edit, product):
            yield from ((more, attrs) for more in _with(edit, inputs, addend, operator.outputs[0]))


def _scaled(edit: Edit, operator: Operator) -> Iterator[Parts]:
    """alpha * n, where nothing was added yet."""
    for product, factor in _multiples(edit, operator):
        for inputs, attrs in _products(edit, product):
            if len(inputs) == BIAS:
                yield inputs, {**attrs, "alpha": attrs.get("alpha", 1.0) * factor}


def _scaled_before(edit: Edit, operator: Operator) -> Iterator[Parts]:
    """A factor that was multiplied by a number: the number as alpha, and one tensor less."""
    for i in range(2):
        writer = edit.writer(operator.inputs[i])
        if writer is None or edit.sole_reader(operator.inputs[i]) is None or operator.inputs[0] is operator.inputs[1]:
            continue
        for factor, number in _multiples(edit, writer):
            inputs = (*operator.inputs[:i], factor, *operator.inputs[i + 1 :])
            if factor.spec == operator.inputs[i].spec:
                yield inputs, {**operator.attrs, "alpha": operator.attrs.get("alpha", 1.0) * number}


def _transposed_before(edit: Edit, operator: Operator) -> Iterator[Parts]:
    """A transpose of the second factor that parts the elements of its rows: the product reads columns instead."""
    a, b = operator.inputs[:2]
    for transpose in writers(edit, b, TRANSPOSE):
        x, order = transpose.inputs[0], permutation(transpose)
        if len(order) > 1 and order[-2] == len(order) - 1:
            order = (*order[:-2], order[-1], order[-2])
            rows = x if order == tuple(range(len(order))) else ops.transpose(x, order)
            turned = not operator.attrs.get("transpose_b", False)
            yield (a, rows, *operator.inputs[2:]), {**operator.attrs, "transpose_b": turned}


def _multiples(edit: Edit, operator: Operator) -> Iterator[tuple[Var, float]]:
    """(v, n) where the operator computes v * n for a number n that makes nothing overflow elsewhere."""
    if operator.schema not in (MUL, DIV):
        return
    a, b = operator.inputs
    ways = ((a, b), (b, a)) if operator.schema is MUL else ((a, b),)
    for var, other in ways:
        number = edit.number(other)
        factor = number if number is None or operator.schema is MUL else 1 / (number or math.inf)
        if factor and is_mild(factor):
            yield var, factor


def _activated(edit: Edit, operator: Operator) -> Iterator[Parts]:
    found = _activation(edit, operator)
    for inputs, attrs in _products(edit, operator.inputs[0]) if found else ():
        yield inputs, {**attrs, **found}


def _activation(edit: Edit, operator: Operator) -> dict[str, Any]:
    """The activation as attributes of a fused product; nothing where it is none, or none that is known."""
    schema: OpSchema = operator.schema
    if schema is RELU:
        return {"activation": "clip", "low": 0.0}
    if schema is LEAKY_RELU:
        return {"activation": "leaky_relu", "slope": operator.attrs["alpha"]}
    if schema is GELU:
        return {"activation": _GELU[operator.attrs["approximate"]]}
    if schema is SWISH and operator.attrs["alpha"] == 1:
        return {"activation": "silu"}
    bounds = [edit.number(v) for v in operator.inputs[1:]] if schema is CLIP else []
    if bounds and all(b is not None and not math.isnan(b) for b in bounds):
        return {"activation": "clip", "low": bounds[0], "high": bounds[1]}
    return {}


FUSE_MATMUL = RulePass("products fused", fuse_matmul)
