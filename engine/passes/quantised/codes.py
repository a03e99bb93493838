"""Layers of quantised tensors are written as the quantisation pass reads them.

onnxruntime's quantiser has two forms: operators on real numbers between dequantisation and quantisation (QDQ),
and operators on quantised tensors (QOperator). The rules of `engine.passes.quantised.quantise` then serve both.
"""

from collections.abc import Sequence

import numpy as np

import ops
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.base import RulePass
from engine.passes.edit import Edit
from engine.passes.quantised.quant_params import quant_params_of
from engine.passes.quantised.quantise import is_taken
from ops.convolution.conv import CONV
from ops.pool.pool import MAX_POOL
from ops.products.matmul import MATMUL
from ops.quantised.conv import QLINEAR_CONV
from ops.quantised.linear import QUANTIZE_LINEAR
from ops.quantised.matmul import QLINEAR_MATMUL
from ops.tensor.spec import Array


def as_real(edit: Edit, operator: Operator) -> None:
    """Writes a layer of quantised tensors as one of real numbers between dequantisation and quantisation.

    1. qlinear_conv(x, w, bias) -> quantize(conv(dequantize(x), dequantize(w), dequantize(bias)))
    2. qlinear_matmul(a, b) -> quantize(matmul(dequantize(a), dequantize(b)))
    3. max_pool(quantize(x)) -> quantize(max_pool(dequantize(quantize(x))))

    1 and 2 apply where the quantisation pass computes the result on quantised values again: with constant weights and
    parameters, and sums within int32. 3 needs constant parameters. So no bit changes.
    """
    if operator.schema in (QLINEAR_CONV, QLINEAR_MATMUL):
        _product(edit, operator)
    elif operator.schema is MAX_POOL:
        _max_pool(edit, operator)


def _product(edit: Edit, operator: Operator) -> None:
    x, _, _, w, *_ = operator.inputs
    numbers = [edit.constants.get(v) for v in (*operator.inputs[1:3], *operator.inputs[4:])]
    constants = [n for n in numbers if n is not None]
    if len(constants) < len(numbers) or w not in edit.constants or any(n.ndim > 1 and n.size > 1 for n in constants):
        return
    x_scale, x_zero, w_scale, w_zero, y_scale, y_zero, *bias = constants
    schema, axis = (CONV, 0) if operator.schema is QLINEAR_CONV else (MATMUL, -1)
    inputs = [
        ops.dequantize_linear(x, *_shared(x_scale, x_zero)),
        ops.dequantize_linear(w, *_shared(w_scale, w_zero), axis=axis),
        *_bias(edit, bias, x_scale, w_scale),
    ]
    (y,) = edit.add(schema, inputs, operator.attrs)
    result = ops.quantize_linear(y, *_shared(y_scale, y_zero))
    if is_taken(edit, y, result):
        edit.replace(operator.outputs[0], result)


def _shared(scale: Array, zero: Array) -> tuple[Array, Array]:
    """Returns a scale and a zero point of one shape: scalars, or one number for each channel."""
    if scale.size == zero.size == 1:
        return scale.reshape(()), zero.reshape(())
    scale, zero = np.broadcast_arrays(scale.reshape(-1), zero.reshape(-1))
    return scale, zero


def _bias(edit: Edit, bias: Sequence[Array], x_scale: Array, w_scale: Array) -> list[Var]:
    """Returns the dequantised bias, if there is one; its scale is that of the products."""
    with np.errstate(all="ignore"):
        scale = w_scale.reshape(-1) * x_scale.reshape(())
    return [
        ops.dequantize_linear(edit.constant(b), scale.reshape(()) if scale.size == 1 else scale, axis=0) for b in bias
    ]


def _max_pool(edit: Edit, operator: Operator) -> None:
    (x,), (y,) = operator.inputs, operator.outputs[:1]
    source = edit.writer(x)
    params = quant_params_of(edit, source) if source is not None and source.schema is QUANTIZE_LINEAR else None
    if params is None or len(operator.outputs) > 1:
        return
    (pooled,) = edit.add(MAX_POOL, (ops.dequantize_linear(x, *params.parameters()),), operator.attrs)
    edit.replace(y, ops.quantize_linear(pooled, *params.parameters()))


CODES = RulePass("quantised tensors", as_real)
