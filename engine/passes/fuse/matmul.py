"""Fuses a matrix product, a scale, a bias, an addition and an activation into one operator.

The fused kernel finishes each sum while it is in a register. A fused product runs where the operator stood that it took
in: its inputs live longer, and its own result needs no memory any more.
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
from engine.passes.edit import Edit
from engine.passes.fuse.conv import activation_attributes
from engine.passes.permutation import permutation
from engine.passes.recognise.formulas import writers
from ops.common.epilogue import BIAS, RESIDUAL
from ops.elementwise.binary import ADD, DIV, MUL
from ops.elementwise.smooth import GELU, SWISH
from ops.elementwise.variadic import SUM
from ops.movement.views import TRANSPOSE
from ops.products.case import is_mild
from ops.products.fused import FUSED_MATMUL
from ops.products.gemm import GEMM
from ops.products.matmul import MATMUL
from ops.tensor.errors import OpError

_SUMS = (ADD, SUM)
_GELU = {"none": "gelu_erf", "tanh": "gelu_tanh"}
Product = tuple[tuple[Var, ...], Mapping[str, Any]]
"""The inputs and attributes of a fused product."""


def fuse_matmul(edit: Edit, operator: Operator) -> None:
    """Fuses a transpose, a scale, an addition or an activation with a matrix product.

    1. matmul(a, transpose(b)) -> fused_matmul(a, b, transpose_b), where the transpose exchanges the last two axes
    2. matmul(a * n, b), matmul(a, b * n) -> fused_matmul(a, b, alpha * n), n a number
    3. matmul(a, b) * n, matmul(a, b) / n -> fused_matmul(a, b, alpha * n), where nothing is added yet
    4. matmul(a, b) + row -> fused_matmul(a, b, row)
    5. matmul(a, b) + t -> fused_matmul(a, b, row or zeros, t), t of a shape that broadcasts to the product
    6. relu, leaky_relu, clip by constants, gelu or swish, of matmul(...) -> fused_matmul(..., activation)
    The same for fused_matmul, and for gemm without trans_a. Of two products that are added, the later one is fused.

    The rule does not apply where something else reads the product, where it has an activation already, where inputs are
    overwritten state, or for types and shapes that fused_matmul does not take (vectors, integers, float16).
    """
    if len(operator.outputs) > 1 or not edit.is_needed(operator.outputs[0]):
        return
    schema = operator.schema
    if schema in (MATMUL, FUSED_MATMUL):
        candidates: Iterator[Product] = chain(_transpose_before(edit, operator), _scale_before(edit, operator))
    elif schema in _SUMS and len(operator.inputs) == 2:
        candidates = _addition_behind(edit, operator)
    elif schema in (MUL, DIV):
        candidates = _scale_behind(edit, operator)
    else:
        candidates = _activation_behind(edit, operator)
    for inputs, attrs in candidates:
        if _fuse(edit, operator, inputs, attrs):
            return


def _fuse(edit: Edit, operator: Operator, inputs: tuple[Var, ...], attrs: Mapping[str, Any]) -> bool:
    try:
        signature = edit.sign(FUSED_MATMUL, inputs, attrs)
    except OpError:  # vectors, integers, float16
        return False
    if signature.y != operator.outputs[0].spec or any(map(edit.is_overwritten_state, inputs)):
        return False
    edit.replace(operator.outputs[0], edit.add_signed(FUSED_MATMUL, inputs, signature)[0])
    return True


def _products(edit: Edit, var: Var) -> Iterator[Product]:
    """Yields the product that computes a var for one reader and has no activation, in the form of a fused one."""
    product = edit.writer(var)
    if product is None or edit.sole_reader(var) is None:
        return
    if product.schema is MATMUL:
        yield product.inputs, {}
    elif product.schema is FUSED_MATMUL and product.attrs["activation"] == "none":
        yield product.inputs, product.attrs
    elif product.schema is GEMM and not product.attrs["trans_a"]:
        yield from _gemm(edit, product)


def _gemm(edit: Edit, gemm: Operator) -> Iterator[Product]:
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
    yield from ((inputs, attrs) for inputs in _with_addend(edit, factors, addend, gemm.outputs[0]))


def _with_addend(edit: Edit, inputs: tuple[Var, ...], addend: Var, y: Var) -> Iterator[tuple[Var, ...]]:
    """Yields the inputs of a product and an addend: as its bias where it is one row, else as the added tensor."""
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


def _addition_behind(edit: Edit, operator: Operator) -> Iterator[Product]:
    """Yields an addition fused into the later of two products, which then overwrites the result of the earlier one."""
    a, b = operator.inputs
    if a is b:  # fused, the product would be computed twice
        return
    orders = [(producer, v, w) for v, w in ((a, b), (b, a)) if (producer := edit.writer(v)) is not None]
    for _, product, addend in sorted(orders, key=lambda order: edit.position(order[0]), reverse=True):
        for inputs, attrs in _products(edit, product):
            yield from ((more, attrs) for more in _with_addend(edit, inputs, addend, operator.outputs[0]))


def _scale_behind(edit: Edit, operator: Operator) -> Iterator[Product]:
    """Yields a product with the factor behind it in `alpha`, where it has no addend yet."""
    for product, factor in _multiples(edit, operator):
        for inputs, attrs in _products(edit, product):
            if len(inputs) == BIAS:
                yield inputs, {**attrs, "alpha": attrs.get("alpha", 1.0) * factor}


def _scale_before(edit: Edit, operator: Operator) -> Iterator[Product]:
    """Yields a product that reads a factor without its scale, with the scale in `alpha`."""
    for i in range(2):
        writer = edit.writer(operator.inputs[i])
        if writer is None or edit.sole_reader(operator.inputs[i]) is None or operator.inputs[0] is operator.inputs[1]:
            continue
        for factor, number in _multiples(edit, writer):
            inputs = (*operator.inputs[:i], factor, *operator.inputs[i + 1 :])
            if factor.spec == operator.inputs[i].spec:
                yield inputs, {**operator.attrs, "alpha": operator.attrs.get("alpha", 1.0) * number}


def _transpose_before(edit: Edit, operator: Operator) -> Iterator[Product]:
    """Yields a product that reads the second factor without a transpose that makes its rows strided."""
    a, b = operator.inputs[:2]
    for transpose in writers(edit, b, TRANSPOSE):
        x, order = transpose.inputs[0], permutation(transpose)
        if len(order) > 1 and order[-2] == len(order) - 1:
            order = (*order[:-2], order[-1], order[-2])
            rows = x if order == tuple(range(len(order))) else ops.transpose(x, order)
            transpose_b = not operator.attrs.get("transpose_b", False)
            yield (a, rows, *operator.inputs[2:]), {**operator.attrs, "transpose_b": transpose_b}


def _multiples(edit: Edit, operator: Operator) -> Iterator[tuple[Var, float]]:
    """Yields (v, n) where the operator computes v * n for a number n that cannot make another order overflow."""
    if operator.schema not in (MUL, DIV):
        return
    a, b = operator.inputs
    orders = ((a, b), (b, a)) if operator.schema is MUL else ((a, b),)
    for var, other in orders:
        number = edit.uniform_value(other)
        factor = number if number is None or operator.schema is MUL else 1 / (number or math.inf)
        if factor and is_mild(factor):
            yield var, factor


def _activation_behind(edit: Edit, operator: Operator) -> Iterator[Product]:
    activation = _activation(edit, operator)
    for inputs, attrs in _products(edit, operator.inputs[0]) if activation else ():
        yield inputs, {**attrs, **activation}


def _activation(edit: Edit, operator: Operator) -> dict[str, Any]:
    """Returns an activation as attributes of a fused product; {} for any other operator."""
    if operator.schema is GELU:
        return {"activation": _GELU[operator.attrs["approximate"]]}
    if operator.schema is SWISH and operator.attrs["alpha"] == 1:
        return {"activation": "silu"}
    return activation_attributes(edit, operator)


FUSE_MATMUL = RulePass("products fused", fuse_matmul)
