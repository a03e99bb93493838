"""Numbers at equal distances (ONNX Range-11): how many, and which."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ops.common.apply import Operand, apply, is_var, typed
from ops.common.blocks import BLOCK_BYTES
from ops.common.boxes import pieces
from ops.common.counts import SCALAR, check_count, check_found
from ops.common.lengths import length
from ops.common.thunks import in_turn
from ops.schema.attributes import Attribute, integer
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Signature, Specs, Thunk
from ops.tensor.errors import ArityError, DataError, DtypeError, ShapeError
from ops.tensor.limits import constant
from ops.tensor.spec import BFLOAT16, FLOATS, NUMBERS, Array, TensorSpec

_MOST = 2**63 - 1
_FLOATS = FLOATS | {BFLOAT16}


def number_of_steps(start: Array, limit: Array, delta: Array) -> int:
    """Returns max(ceil((limit - start) / delta), 0), given arrays of one element.

    Floats are subtracted and divided in float64, as onnxruntime does; integers are exact. Raises DataError where the
    step is 0, a number is not finite, or the result needs more than 64 bits.
    """
    a, b, step = (number.item() for number in (start, limit, delta))
    if not step or not all(map(math.isfinite, (a, b, step))):
        raise DataError(f"no range runs from {a} to {b} in steps of {step}")
    if start.dtype not in _FLOATS:
        steps = -((a - b) // step)
    else:
        quotient = (b - a) / step
        steps = math.ceil(quotient) if math.isfinite(quotient) else _MOST + 1
    if steps > _MOST:
        raise DataError(f"from {a} to {b} in steps of {step} are more numbers than 64 bits can count")
    return max(int(steps), 0)


def _check(inputs: Specs) -> None:
    start = inputs[0]
    if start.dtype not in NUMBERS | _FLOATS or any(s.dtype != start.dtype for s in inputs):
        raise DtypeError("takes numbers of one dtype")
    if any(s.size != 1 for s in inputs):
        raise ShapeError("start, limit and delta must have one element each")


def _count_infer(inputs: Specs, _: Attrs) -> Specs:
    _check(inputs)
    return (SCALAR,)


def _arange_count(call: Binding) -> Thunk:
    return lambda: call.y.fill(number_of_steps(*call.inputs))


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    _check(inputs)
    return (inputs[0].with_shape((check_count(attrs["count"], _MOST),)),)


def _dtype(signature: Signature) -> np.dtype[Any]:
    """Returns the dtype in which numbers are computed, before they are rounded once."""
    return np.dtype("float64" if signature.y.dtype in _FLOATS else "int64")


def _temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    dtype = _dtype(signature)
    piece = TensorSpec((min(signature.y.size, BLOCK_BYTES // 2 // dtype.itemsize),), dtype)
    return piece, piece, piece.with_shape(()), piece.with_shape(())


def _ramp(y: Array) -> Iterator[Thunk]:
    """Yields steps that write 0, 1, 2, ...: each step doubles what is there already."""
    yield partial(y.fill, 0)
    done = 1
    while done < y.size:
        target = y[done : 2 * done]
        yield partial(np.add, y[: target.size], constant(done, y.dtype), target)
        done *= 2


def _arange(call: Binding) -> Thunk:
    ramp, buffer, start, delta = call.temporaries
    steps: list[Thunk] = [
        lambda: check_found(number_of_steps(*call.inputs), call.y.size),
        partial(np.copyto, start, call.inputs[0].reshape(()), casting="unsafe"),
        partial(np.copyto, delta, call.inputs[2].reshape(()), casting="unsafe"),
        *_ramp(ramp),
    ]
    for a, b in pieces(call.y.size, ramp.size):
        term = buffer[: b - a]
        steps += (
            partial(np.add, ramp[: b - a], constant(a, ramp.dtype), term),
            partial(np.multiply, term, delta, term),
            partial(np.add, term, start, term),
            partial(np.copyto, call.y[a:b], term, casting="unsafe"),
        )
    return in_turn(*steps)


ARANGE_COUNT = OpSchema(
    name="arange_count",
    summary="How many numbers run from start to before limit in steps of delta, as an int64 scalar.",
    infer=_count_infer,
    kernels=(Kernel("python", _arange_count),),
    arity=(3, 3),
)
ARANGE = OpSchema(
    name="arange",
    summary="start + i * delta, rounded once, up to before limit; `count` says how many.",
    infer=_infer,
    kernels=(Kernel("numpy", _arange, _temporaries),),
    arity=(3, 3),
    attributes=(Attribute("count", integer),),
)
OPS = (ARANGE_COUNT, ARANGE)


def arange(start: Operand, limit: Operand, delta: Operand = 1) -> Any:
    """Returns start, start + delta, ... up to before limit. At least one of them must be a var, with one element.

    Numbers take its element type. Raises ArityError where there is no var: numpy makes such an array.
    """
    like = next((v for v in (start, limit, delta) if is_var(v)), None)
    if like is None:
        raise ArityError("arange: one of start, limit and delta must be a var; numpy makes a range of numbers")
    bounds = [typed(v, like.spec.dtype) for v in (start, limit, delta)]
    (count,) = apply(ARANGE_COUNT, bounds)
    return apply(ARANGE, bounds, count=length(count))[0]
