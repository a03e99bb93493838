"""Choice between two inputs, element by element (ONNX Where)."""

from functools import partial
from typing import Any

import numpy as np

from ops.common.apply import Mixed, V, combine, is_var
from ops.common.blocks import Block, blocked
from ops.schema.backward import Backward, Terms
from ops.schema.schema import Attrs, OpSchema, Overwrite, Signature, Specs, Thunk
from ops.tensor.errors import DtypeError
from ops.tensor.spec import BOOL, TensorSpec, broadcast_shapes
from ops.vector.kernel import opcode


def _infer(inputs: Specs, _: Attrs) -> Specs:
    condition, x, y = inputs
    if condition.dtype != BOOL:
        raise DtypeError(f"the condition must be bool, not {condition.dtype}")
    if x.dtype != y.dtype:
        raise DtypeError(f"x is {x.dtype}, but y is {y.dtype}")
    return (TensorSpec(broadcast_shapes(condition.shape, x.shape, y.shape), x.dtype),)


def _choose(block: Block) -> tuple[Thunk, ...]:
    """Returns the steps that copy y, and then x where the condition holds.

    Where the output lies over x, only y is copied, where the condition does not hold.
    """
    condition, x, y = block.inputs
    if not np.may_share_memory(x, block.y):
        return (partial(np.copyto, block.y, y), partial(np.copyto, block.y, x, where=condition))
    (gaps,) = block.masks
    return (partial(np.logical_not, condition, gaps), partial(np.copyto, block.y, y, where=gaps))


def _overwrites(signature: Signature) -> tuple[Overwrite, ...]:
    """Permits x or y, but no bool: it might be the condition itself."""
    if signature.y.dtype == BOOL:
        return ()
    return tuple(Overwrite(0, i) for i in (1, 2) if signature.inputs[i] == signature.y)


def _gradient(b: Backward) -> Terms:
    zero = b.constant(0.0, b.signature.y)
    return b.terms(None, lambda: b.where(b.inputs[0], b.dy, zero), lambda: b.where(b.inputs[0], zero, b.dy))


WHERE = OpSchema(
    "where",
    _infer,
    (opcode("where"), blocked(_choose, masks=1, widen=False)),
    (3, 3),
    overwrites=_overwrites,
    gradient=_gradient,
    summary="x where the condition holds, else y; all three broadcast.",
    elementwise=True,
)
OPS = (WHERE,)


def where(condition: Mixed[V], x: Mixed[V], y: Mixed[V]) -> V:
    """Returns x where the condition holds, else y; all three broadcast. A number takes the dtype of the other side."""
    sides: tuple[Mixed[V], Mixed[V]] = (_like(x, y), _like(y, x))
    return combine(WHERE, condition, *sides)


def _like(value: Any, other: Any) -> Any:
    if not isinstance(value, (bool, int, float)):
        return value
    return np.asarray(value, dtype=other.spec.dtype if is_var(other) else np.asarray(other).dtype)
