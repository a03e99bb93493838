"""Power with a base and an exponent of possibly different element types (ONNX Pow-15)."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ops.common.apply import Mixed, V, combine, is_var
from ops.common.blocks import BLOCK_BYTES, blocks
from ops.common.costs import flops_per_element
from ops.common.elementwise import require_dtype
from ops.common.thunks import in_turn
from ops.schema.backward import Backward, Tensor, Terms
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Signature, Specs, Thunk, overwrites_from, unless
from ops.tensor.limits import constant
from ops.tensor.spec import BOOL, FLOATS, INTEGERS, NUMBERS, SIGNED, Array, TensorSpec, broadcast_shapes
from ops.vector.bytecode import Script
from ops.vector.kernel import NoOpcodeError, is_single, vector_kernel

_DOUBLE = np.dtype("float64")
_OPCODES = {0.5: "sqrt", 1.0: "copy", 2.0: "square", 3.0: "cube", -1.0: "reciprocal"}
_SHORTCUTS = {0.5: np.sqrt, 1.0: np.positive, 2.0: np.square, -1.0: np.reciprocal}
Buffers = tuple[Array, ...]


def _infer(inputs: Specs, _: Attrs) -> Specs:
    for spec in inputs:
        require_dtype(spec, NUMBERS)
    base, exponent = inputs
    return (base.with_shape(broadcast_shapes(base.shape, exponent.shape)),)


def _is_direct(signature: Signature) -> bool:
    base, exponent = signature.inputs
    return base.dtype in FLOATS and exponent.dtype == base.dtype


_not_direct = unless(_is_direct, "not floating-point numbers of one type")


def _is_whole(signature: Signature) -> bool:
    return all(s.dtype in INTEGERS for s in signature.inputs)


def _keep_exponent(signature: Signature, constants: Mapping[int, Array]) -> tuple[Array, ...]:
    return tuple(constants[1].copy() for _ in _exponent_specs(signature))


def _exponent_specs(signature: Signature) -> Specs:
    exponent = signature.inputs[1]
    return (exponent,) if 1 in signature.constants and exponent.size == 1 else ()


def _direct(call: Binding) -> Thunk:
    """Returns the call of np.power, or of a simpler function where the exponent is a constant that has one."""
    shortcut = _SHORTCUTS.get(float(call.packed[0].item())) if call.packed else None
    return partial(shortcut, call.x, call.y) if shortcut else partial(np.power, *call.inputs, call.y)


def _encode(script: Script, signature: Signature, values: Sequence[int], packed: tuple[Array, ...]) -> int:
    """Appends one instruction for a constant exponent that has one.

    Before constants are packed, their numbers are unknown: then the instruction of a square stands for any of them.
    """
    exponent = float(packed[0].item()) if packed else 2.0 if _is_known(signature) else math.nan
    if exponent not in _OPCODES:
        raise NoOpcodeError
    return script.append(_OPCODES[exponent], values[0])


def _is_known(signature: Signature) -> bool:
    exponent = signature.inputs[1]
    return is_single(signature) and _is_direct(signature) and 1 in signature.constants and exponent.size == 1


_not_known = unless(_is_known, "not float32, or an exponent that is not one constant number")


def _working(signature: Signature) -> np.dtype[Any]:
    return signature.y.dtype if _is_whole(signature) else _DOUBLE


def _buffers(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of base and exponent in the working dtype, and of two masks."""
    dtype = _working(signature)
    size = max(1, min(signature.y.size, BLOCK_BYTES // (2 * dtype.itemsize + 2)))
    return (TensorSpec((size,), dtype),) * 2 + (TensorSpec((size,), BOOL),) * 2


def _mixed(call: Binding) -> Thunk:
    """Returns the call that computes in the base's integers, or in float64 where a float takes part, block by block."""
    specs = _buffers(call.signature)
    steps: list[Thunk] = []
    scratch = call.temporaries
    base, exponent = (np.broadcast_to(a, call.y.shape) for a in call.inputs)
    passes = _whole_power if _is_whole(call.signature) else _float_power
    for index in blocks(call.y.shape, specs[0].size):
        y = call.y[index]
        fitted = tuple(r[: y.size].reshape(y.shape) for r in scratch)
        steps += passes(base[index], exponent[index], y, fitted)
    return in_turn(*steps)


def _float_power(base: Array, exponent: Array, y: Array, scratch: Buffers) -> tuple[Thunk, ...]:
    b, e = scratch[:2]
    return (
        partial(np.copyto, b, base),
        partial(np.copyto, e, exponent, casting="unsafe"),
        partial(np.power, b, e, b),
        partial(np.copyto, y, b, casting="unsafe"),
    )


def _whole_power(base: Array, exponent: Array, y: Array, scratch: Buffers) -> tuple[Thunk, ...]:
    b, e, negative, far = scratch
    load = (partial(np.copyto, b, base), partial(np.copyto, e, exponent, casting="unsafe"))
    store = partial(np.copyto, y, b)
    if exponent.dtype not in SIGNED:
        return (*load, partial(np.power, b, e, b), store)
    one, zero = constant(1, b.dtype), constant(0, b.dtype)
    return (
        *load,
        partial(np.less, exponent, constant(0, exponent.dtype), negative),
        partial(np.absolute, e, e),
        partial(np.power, b, e, b),
        partial(np.absolute, b, e),
        partial(np.not_equal, e, one, far),
        partial(np.logical_and, negative, far, negative),
        partial(np.copyto, b, zero, where=negative),
        store,
    )


def _gradient(b: Backward) -> Terms:
    """Returns the gradients of base and exponent.

    Where the base is 0, the exponent gets 0; where it is below 0, NaN, as in PyTorch.
    """
    exponent = b.known(1)
    if exponent is not None and exponent.size == 1:
        return b.terms(lambda: _of_base(b, float(exponent.item())))

    def of_exponent() -> Tensor:
        one = b.constant(1.0, b.signature.x)
        logarithm = b.log(b.where(b.equal(b.x, b.constant(0.0, b.signature.x)), one, b.x))
        return b.cast(logarithm * b.y * b.dy, b.signature.inputs[1].dtype)

    return b.terms(lambda: _of_any_base(b), of_exponent)


def _of_any_base(b: Backward) -> Tensor:
    """Returns e * x ** (e - 1) * dy, and 0 where e is 0, whatever x is."""
    exponent = b.cast(b.inputs[1], b.signature.x.dtype)
    zero = b.constant(0.0, b.signature.x)
    slope = b.apply1(POW, b.x, exponent - 1.0) * exponent
    return b.where(b.equal(exponent, zero), zero, slope) * b.dy


def _of_base(b: Backward, exponent: float) -> Tensor:
    """Returns the gradient for a constant exponent: a square reads x, a root and a reciprocal read y."""
    if exponent == 0:
        return b.zeros(b.signature.y)
    if exponent == 1:
        return b.dy
    if exponent == 2:
        return b.dy * b.x * 2.0
    if exponent == 0.5:
        return b.dy / b.y * 0.5
    if exponent == -1:
        return -(b.dy * b.y) * b.y
    return b.apply1(POW, b.x, exponent - 1) * exponent * b.dy


POW = OpSchema(
    "pow",
    _infer,
    (
        vector_kernel(
            _encode, otherwise=_direct, unsupported=_not_known, pack=_keep_exponent, packed_specs=_exponent_specs
        ),
        Kernel("numpy", _direct, pack=_keep_exponent, packed_specs=_exponent_specs, unsupported=_not_direct),
        Kernel("blocks", _mixed, _buffers),
    ),
    (2, 2),
    overwrites=overwrites_from(0),
    cost=flops_per_element(10),
    gradient=_gradient,
    summary="Base to the power of the exponent, in the base's dtype; integers to negative powers are truncated.",
    elementwise=True,
)
OPS = (POW,)


def pow(base: Mixed[V], exponent: Mixed[V]) -> V:
    """Returns base ** exponent in the base's dtype; a float exponent stays a float where the base is integer."""
    if isinstance(exponent, float) and _is_integer(base):
        return combine(POW, base, np.asarray(exponent))
    return combine(POW, base, exponent)


def _is_integer(operand: Any) -> bool:
    return is_var(operand) and operand.spec.dtype in INTEGERS
