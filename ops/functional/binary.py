"""Arithmetic of two operands, which broadcast together."""

from ops.elementwise.binary import ADD, BIT_SHIFT, BITWISE_AND, BITWISE_OR, BITWISE_XOR, DIV, MOD, MUL, SUB
from ops.functional.apply import V
from ops.functional.operands import Mixed, combine


def add(a: Mixed[V], b: Mixed[V]) -> V:
    """a + b"""
    return combine(ADD, a, b)


def sub(a: Mixed[V], b: Mixed[V]) -> V:
    """a - b"""
    return combine(SUB, a, b)


def mul(a: Mixed[V], b: Mixed[V]) -> V:
    """a * b"""
    return combine(MUL, a, b)


def div(a: Mixed[V], b: Mixed[V]) -> V:
    """a / b; integers are truncated toward zero."""
    return combine(DIV, a, b)


def mod(a: Mixed[V], b: Mixed[V], fmod: bool = False) -> V:
    """Remainder of a / b with the sign of b, or (fmod) with the sign of a."""
    return combine(MOD, a, b, fmod=fmod)


def bit_shift(a: Mixed[V], b: Mixed[V], direction: str) -> V:
    """Integer a shifted by b bits to the LEFT or RIGHT."""
    return combine(BIT_SHIFT, a, b, direction=direction)


def bitwise_and(a: Mixed[V], b: Mixed[V]) -> V:
    """Bits of a that b has too."""
    return combine(BITWISE_AND, a, b)


def bitwise_or(a: Mixed[V], b: Mixed[V]) -> V:
    """Bits of a or b."""
    return combine(BITWISE_OR, a, b)


def bitwise_xor(a: Mixed[V], b: Mixed[V]) -> V:
    """Bits of either a or b."""
    return combine(BITWISE_XOR, a, b)
