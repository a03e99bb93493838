"""Gradient operators that compute in float32 or float64 alone; rules give them float16 through copies in float32."""

from typing import Any

import numpy as np

from ops.schema.backward import Backward, Tensor
from ops.schema.schema import OpSchema, Specs
from ops.tensor.errors import DtypeError

_HALF, _SINGLE = np.dtype("float16"), np.dtype("float32")
WIDE = frozenset((_SINGLE, np.dtype("float64")))


def require_wide(inputs: Specs) -> None:
    """Raises DtypeError where inputs are not all float32, or all float64."""
    dtypes = {s.dtype for s in inputs}
    if len(dtypes) != 1 or not dtypes <= WIDE:
        raise DtypeError(f"takes float32 or float64 alone, not {', '.join(s.dtype.name for s in inputs)}")


def widened(b: Backward, schema: OpSchema, *operands: Tensor, **attrs: Any) -> tuple[Tensor, ...]:
    """Adds an operator whose operands are all of one type, and returns its outputs.

    float16 is copied to float32 before, and the outputs are copied back.
    """
    dtype = operands[0].dtype
    if dtype != _HALF:
        return b.apply(schema, *operands, **attrs)
    outputs = b.apply(schema, *(b.cast(o, _SINGLE) for o in operands), **attrs)
    return tuple(b.cast(o, dtype) for o in outputs)
