"""Power of two operands."""

from typing import Any

import numpy as np

from ops.elementwise.power import POW
from ops.functional.apply import V, is_var
from ops.functional.operands import Mixed, combine
from ops.tensor.spec import INTEGERS


def pow(base: Mixed[V], exponent: Mixed[V]) -> V:
    """Base to the power of the exponent, in the base's dtype; a float exponent stays one where the base is integer."""
    if isinstance(exponent, float) and _is_integer(base):
        return combine(POW, base, np.asarray(exponent))
    return combine(POW, base, exponent)


def _is_integer(operand: Any) -> bool:
    return is_var(operand) and operand.spec.dtype in INTEGERS
