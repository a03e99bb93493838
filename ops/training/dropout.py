"""Dropout in training (Srivastava et al. 2014), whose mask takes no bytes: it is drawn again in the backward pass.

numba compiles its one kernel, which belongs to the back-end that is always there: numpy has no call for it.
"""

from functools import partial

import numpy as np

from ops.common.widened import WIDE
from ops.schema.attributes import Attribute, integer, number
from ops.schema.backward import Backward, Terms
from ops.schema.schema import (
    Attrs,
    Binding,
    Cost,
    Kernel,
    OpSchema,
    Signature,
    Specs,
    Thunk,
    all_contiguous,
    overwrites_first,
)
from ops.schema.workspace import carve, dense_bytes
from ops.tensor.errors import AttributeValueError, DtypeError, ShapeError
from ops.tensor.spec import TensorSpec
from ops.training.jit_philox import drop

_ROOM = TensorSpec((1024,), np.dtype("uint64"))
"""Random words that are drawn at a time."""


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    x, step = inputs
    if x.dtype not in WIDE or step.dtype != np.dtype("int64"):
        raise DtypeError(f"takes float32 or float64 and a step of int64, not {x.dtype} and {step.dtype}")
    if step.size != 1:
        raise ShapeError(f"the step is one number, not {step}")
    if not 0 <= attrs["rate"] < 1:
        raise AttributeValueError(f"rate is {attrs['rate']}; at least 0 and below 1 is wanted")
    if not 0 <= attrs["seed"] < 2**64:
        raise AttributeValueError(f"seed is {attrs['seed']}; at least 0 and below 2 ** 64 is wanted")
    return (x,)


def _bind(call: Binding) -> Thunk:
    (room,), dtype, rate = carve(call.workspace, _ROOM), call.x.dtype, call.attrs["rate"]
    seed, threshold = np.uint64(call.attrs["seed"]), np.uint64(round(rate * 2**32))
    x, step, y = (a.reshape(-1) for a in (*call.inputs, call.y))
    return partial(drop(dtype), x, step, y, room, seed, threshold, dtype.type(1 / (1 - rate)))


def _workspace(_: Signature) -> int:
    return dense_bytes(_ROOM)


def _cost(signature: Signature) -> Cost:
    return Cost(30 * signature.x.size, signature.x.nbytes + signature.y.nbytes)


def _gradient(b: Backward) -> Terms:
    """What was dropped is dropped of dy, and what was scaled is scaled: the very operator."""
    return b.terms(lambda: b.apply1(DROPOUT, b.dy, b.inputs[1], **b.attrs))


DROPOUT = OpSchema(
    name="dropout_training",
    summary="x / (1 - rate), but 0 with probability `rate`: as place, `step` (a number) and `seed` say.",
    infer=_infer,
    kernels=(Kernel("philox", _bind, _workspace, contiguous=all_contiguous),),
    arity=(2, 2),
    attributes=(Attribute("rate", number, 0.5), Attribute("seed", integer, 0)),
    overwrites=overwrites_first,
    cost=_cost,
    gradient=_gradient,
)
OPS = (DROPOUT,)
