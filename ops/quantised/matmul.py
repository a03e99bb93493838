"""Products of int8 and uint8 matrices (ONNX MatMulInteger-10, QLinearMatMul-21), exact in int32, by tiles and BLAS."""

from functools import partial

import numpy as np

from ops.common.apply import Operand, V, apply1
from ops.common.thunks import in_turn
from ops.products.matmul import matmul_cost
from ops.quantised.matmul_compiled import TILED
from ops.quantised.params import (
    BYTES,
    SINGLE,
    check_scale,
    quantised_type,
    scale_and_zero_point,
    to_quantised,
    zero_point_operand,
)
from ops.quantised.product import INT32, Product, Tiles, scratch_specs
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Signature, Specs, Thunk
from ops.schema.workspace import prefix
from ops.tensor.errors import DtypeError
from ops.tensor.spec import Array, TensorSpec, broadcast_shapes


def _integer_infer(inputs: Specs, _: Attrs) -> Specs:
    case = Product.of(*inputs[:2])
    _zero_specs(case, inputs)
    for zero, factor in zip(inputs[2:], inputs, strict=False):
        if zero.dtype != factor.dtype:
            raise DtypeError(f"a zero point of {zero.dtype} for {factor.dtype}")
    return (TensorSpec(case.y, INT32),)


def _zero_specs(case: Product, inputs: Specs) -> tuple[TensorSpec, TensorSpec]:
    none = TensorSpec((), SINGLE)
    a, b, *_ = (*inputs[2:], none, none)
    return case.by_row(a), case.by_column(b)


def _integer_temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    case = Product.of(*signature.inputs[:2])
    return *_zero_specs(case, signature.inputs), *scratch_specs(case, with_sums=False)


def _loads(sources: tuple[Array, ...], targets: tuple[Array, ...]) -> list[Thunk]:
    """Returns the steps that copy parameters into their temporaries of float32."""
    return [partial(np.copyto, t, s.reshape(t.shape)) for s, t in zip(sources, targets, strict=True)]


def _matrices(y: Array, case: Product) -> Array:
    return y.reshape(*case.batch, case.rows, case.columns)


def _matmul_integer(call: Binding) -> Thunk:
    a, b, *parameters = call.inputs
    case = Product.of(*call.signature.inputs[:2])
    a_zero, b_zero, *scratch = call.temporaries
    tiles, zeros, y = Tiles.of(case, (a, b), (a_zero, b_zero), scratch), (a_zero, b_zero), _matrices(call.y, case)
    steps = _loads(tuple(parameters), zeros[: len(parameters)]) + [partial(z.fill, 0) for z in zeros[len(parameters) :]]
    for index in case.tiles():
        steps += tiles.sums(index, y[index])
    return in_turn(*steps)


def _linear_infer(inputs: Specs, _: Attrs) -> Specs:
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = inputs
    case = Product.of(a, b)
    for scale, zero, fit in ((a_scale, a_zero, case.by_row), (b_scale, b_zero, case.by_column)):
        check_scale(scale)
        fit(scale)
        fit(zero)
    check_scale(y_scale)
    case.by_row(y_scale)
    case.by_row(y_zero)
    if (a_zero.dtype, b_zero.dtype) != (a.dtype, b.dtype):
        raise DtypeError(f"zero points of {a_zero.dtype} and {b_zero.dtype} for {a.dtype} and {b.dtype}")
    return (TensorSpec(case.y, quantised_type(y_zero, BYTES)),)


def _linear_temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of the six parameters, the factors from sums to outputs, and a tile's scratch arrays."""
    _, *left, _, b_scale, b_zero, y_scale, y_zero = signature.inputs
    case = Product.of(signature.inputs[0], signature.inputs[3])
    rows, columns = (*left, y_scale, y_zero), (b_scale, b_zero)
    scales = [case.by_row(s) for s in rows] + [case.by_column(s) for s in columns]
    factor = TensorSpec(broadcast_shapes(scales[0].shape, scales[2].shape, scales[4].shape), SINGLE)
    return *scales, factor, *scratch_specs(case, with_sums=True)


def _qlinear_matmul(call: Binding) -> Thunk:
    case = Product.of(call.signature.inputs[0], call.signature.inputs[3])
    *scales, factor, left, right, product, addend, buffer = call.temporaries
    a_scale, a_zero, y_scale, y_zero, b_scale, b_zero = scales
    steps = _loads(tuple(call.inputs[i] for i in (1, 2, 6, 7, 4, 5)), tuple(scales))
    steps += (partial(np.multiply, a_scale, b_scale, factor), partial(np.divide, factor, y_scale, factor))
    factors, scratch = (call.inputs[0], call.inputs[3]), (left, right, product, addend)
    tiles, y = Tiles.of(case, factors, (a_zero, b_zero), scratch), _matrices(call.y, case)
    slopes, shifts = (np.broadcast_to(p, y.shape) for p in (factor, y_zero))
    for index in case.tiles():
        sums, real = (prefix(r, y[index].shape) for r in (buffer, product))
        steps += tiles.sums(index, sums)
        steps.append(partial(np.copyto, real, sums, casting="same_kind"))
        steps.append(partial(np.multiply, real, slopes[index], real))
        steps += to_quantised(real, shifts[index], y[index])
    return in_turn(*steps)


def _parameters_dense(signature: Signature) -> tuple[int, ...]:
    """Returns the positions of parameters. Vectors become rows or columns; numpy would copy them if they had gaps."""
    return (1, 2, 4, 5, 6, 7) if len(signature.inputs) > 4 else (2, 3)


MATMUL_INTEGER = OpSchema(
    name="matmul_integer",
    summary="int32 products (a - a_zero) @ (b - b_zero); one zero point for all, each row of a, or each column of b.",
    infer=_integer_infer,
    kernels=(TILED, Kernel("tiles", _matmul_integer, _integer_temporaries, _parameters_dense)),
    arity=(2, 4),
    cost=matmul_cost,
)
QLINEAR_MATMUL = OpSchema(
    name="qlinear_matmul",
    summary="The quantised product of two quantised matrices, each followed by its scale and zero point.",
    infer=_linear_infer,
    kernels=(Kernel("tiles", _qlinear_matmul, _linear_temporaries, _parameters_dense),),
    arity=(8, 8),
    cost=matmul_cost,
)
OPS = (MATMUL_INTEGER, QLINEAR_MATMUL)


def matmul_integer(a: V, b: Operand, a_zero_point: Operand = 0, b_zero_point: Operand = 0) -> V:
    """Returns (a - a_zero_point) @ (b - b_zero_point) for int8 or uint8, exactly, in int32."""
    return apply1(MATMUL_INTEGER, a, b, zero_point_operand(a_zero_point, a), zero_point_operand(b_zero_point, b))


def qlinear_matmul(
    a: V,
    b: Operand,
    *,
    a_scale: Operand,
    b_scale: Operand,
    y_scale: Operand,
    a_zero_point: Operand = 0,
    b_zero_point: Operand = 0,
    y_zero_point: Operand = 0,
) -> V:
    """Multiplies two quantised matrices, and quantises the product."""
    left = scale_and_zero_point(a_scale, a_zero_point, a)
    right = scale_and_zero_point(b_scale, b_zero_point, b)
    out = scale_and_zero_point(y_scale, y_zero_point, a)
    return apply1(QLINEAR_MATMUL, a, *left, b, *right, *out)
