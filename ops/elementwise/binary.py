"""Arithmetic of two broadcast inputs (ONNX Add, Sub, Mul, Div, Mod, BitShift, BitwiseAnd, BitwiseOr, BitwiseXor)."""

from functools import partial

import numpy as np

from ops.common.apply import Mixed, V, combine
from ops.common.blocks import Block, blocked
from ops.common.elementwise import binary, broadcast, ufunc_kernel
from ops.schema.attributes import Attribute, flag, one_of
from ops.schema.backward import Backward, Terms
from ops.schema.schema import Binding, Kernel, OpSchema, Signature, Thunk, overwrites_from, unless
from ops.tensor.spec import FLOATS, INTEGERS, NUMBERS, SIGNED, UNSIGNED
from ops.vector.kernel import opcode

_TRUE_DIVIDE = ufunc_kernel(np.divide)
_FLOOR_DIVIDE = ufunc_kernel(np.floor_divide)


def _truncated(block: Block) -> tuple[Thunk, ...]:
    """Divides a minus its C remainder, which is exact, so the quotient is the truncated one, as in C."""
    (a, b), (whole,) = block.inputs, block.temporaries
    return (
        partial(np.fmod, a, b, whole),
        partial(np.subtract, a, whole, whole),
        partial(np.floor_divide, whole, b, block.y),
    )


def _is_signed(signature: Signature) -> bool:
    return signature.y.dtype in SIGNED


_not_signed = unless(_is_signed, "not signed integers")


def _is_unsigned(signature: Signature) -> bool:
    return signature.y.dtype in UNSIGNED


_not_unsigned = unless(_is_unsigned, "not unsigned integers")


def _is_float(signature: Signature) -> bool:
    return signature.y.dtype in FLOATS


_not_float = unless(_is_float, "not floating-point numbers")


def _mod(call: Binding) -> Thunk:
    return partial(np.fmod if call.attrs["fmod"] else np.remainder, *call.inputs, call.y)


def _bit_shift(call: Binding) -> Thunk:
    shift = np.left_shift if call.attrs["direction"] == "LEFT" else np.right_shift
    return partial(shift, *call.inputs, call.y)


def _add_gradient(b: Backward) -> Terms:
    return b.terms(lambda: b.dy, lambda: b.dy)


def _sub_gradient(b: Backward) -> Terms:
    return b.terms(lambda: b.dy, lambda: -b.dy)


def _mul_gradient(b: Backward) -> Terms:
    return b.terms(lambda: b.dy * b.inputs[1], lambda: b.dy * b.x)


def _div_gradient(b: Backward) -> Terms:
    return b.terms(lambda: b.dy / b.inputs[1], lambda: -(b.dy * b.y) / b.inputs[1])


def _mod_gradient(b: Backward) -> Terms:
    """Returns the gradients of y = a - b * n, where n is a whole number, constant almost everywhere."""
    return b.terms(lambda: b.dy, lambda: (b.y - b.x) / b.inputs[1] * b.dy)


_TRUNCATE = blocked(_truncated, temporaries=1, name="truncate")
ADD = binary("add", NUMBERS, ufunc_kernel(np.add), "a + b", gradient=_add_gradient, code="add")
SUB = binary("sub", NUMBERS, ufunc_kernel(np.subtract), "a - b", gradient=_sub_gradient, code="sub")
MUL = binary("mul", NUMBERS, ufunc_kernel(np.multiply), "a * b", gradient=_mul_gradient, code="mul")
DIV = OpSchema(
    "div",
    broadcast(NUMBERS),
    (
        opcode("div"),
        Kernel("truncate", _TRUNCATE.bind, _TRUNCATE.temporaries, unsupported=_not_signed),
        Kernel("floor", _FLOOR_DIVIDE.bind, unsupported=_not_unsigned),
        Kernel("numpy", _TRUE_DIVIDE.bind, unsupported=_not_float),
    ),
    (2, 2),
    overwrites=overwrites_from(0),
    gradient=_div_gradient,
    summary="a / b; integers are truncated toward zero, and give 0 where b is 0.",
    elementwise=True,
)
MOD = OpSchema(
    "mod",
    broadcast(NUMBERS),
    (Kernel("numpy", _mod),),
    (2, 2),
    (Attribute("fmod", flag, False),),
    overwrites=overwrites_from(0),
    gradient=_mod_gradient,
    summary="Remainder of a / b with the sign of b, or (fmod) with the sign of a, as in C.",
    elementwise=True,
)
BIT_SHIFT = OpSchema(
    "bit_shift",
    broadcast(INTEGERS),
    (Kernel("numpy", _bit_shift),),
    (2, 2),
    (Attribute("direction", one_of("LEFT", "RIGHT")),),
    overwrites=overwrites_from(0),
    summary="a shifted by b bits; zeros come in, or copies of the sign from the left.",
    elementwise=True,
)
BITWISE_AND = binary("bitwise_and", INTEGERS, ufunc_kernel(np.bitwise_and), "Bits of a that b has too.")
BITWISE_OR = binary("bitwise_or", INTEGERS, ufunc_kernel(np.bitwise_or), "Bits of a or b.")
BITWISE_XOR = binary("bitwise_xor", INTEGERS, ufunc_kernel(np.bitwise_xor), "Bits of either a or b.")
OPS = (ADD, SUB, MUL, DIV, MOD, BIT_SHIFT, BITWISE_AND, BITWISE_OR, BITWISE_XOR)


def add(a: Mixed[V], b: Mixed[V]) -> V:
    """Returns a + b."""
    return combine(ADD, a, b)


def sub(a: Mixed[V], b: Mixed[V]) -> V:
    """Returns a - b."""
    return combine(SUB, a, b)


def mul(a: Mixed[V], b: Mixed[V]) -> V:
    """Returns a * b."""
    return combine(MUL, a, b)


def div(a: Mixed[V], b: Mixed[V]) -> V:
    """Returns a / b; integers are truncated toward zero."""
    return combine(DIV, a, b)


def mod(a: Mixed[V], b: Mixed[V], fmod: bool = False) -> V:
    """Returns the remainder of a / b with the sign of b, or (fmod) with the sign of a."""
    return combine(MOD, a, b, fmod=fmod)


def bit_shift(a: Mixed[V], b: Mixed[V], direction: str) -> V:
    """Returns the integer a shifted by b bits to the LEFT or RIGHT."""
    return combine(BIT_SHIFT, a, b, direction=direction)


def bitwise_and(a: Mixed[V], b: Mixed[V]) -> V:
    """Returns the bits that both a and b have."""
    return combine(BITWISE_AND, a, b)


def bitwise_or(a: Mixed[V], b: Mixed[V]) -> V:
    """Returns the bits that a or b has."""
    return combine(BITWISE_OR, a, b)


def bitwise_xor(a: Mixed[V], b: Mixed[V]) -> V:
    """Returns the bits that exactly one of a and b has."""
    return combine(BITWISE_XOR, a, b)
