"""Batch normalization with given statistics (ONNX BatchNormalization-15, training_mode 0)."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from ops.attributes import Attribute, number
from ops.boxes import CACHE_BYTES, pieces
from ops.conv_shapes import compute_dtype
from ops.errors import DtypeError, ShapeError
from ops.limits import constant
from ops.schema import Attrs, Binding, Cost, Kernel, OpSchema, Overwrite, Signature, Specs, Thunk
from ops.spec import FLOATS, Array, TensorSpec
from ops.thunks import in_turn
from ops.workspace import carve, dense_bytes


def _infer(inputs: Specs, _: Attrs) -> Specs:
    x = inputs[0]
    if x.ndim < 2:
        raise ShapeError(f"data {x.shape} must have 2 dimensions or more: images, channels, ...")
    if any(s.dtype not in FLOATS for s in inputs):
        raise DtypeError(f"takes floating-point numbers, not {', '.join(s.dtype.name for s in inputs)}")
    for name, given in zip(("scale", "bias", "mean", "var"), inputs[1:], strict=True):
        if given.shape != x.shape[1:2]:
            raise ShapeError(f"{name} has shape {given.shape}, not {x.shape[1:2]}")
    return (x,)


def _packed(signature: Signature) -> bool:
    return {1, 2, 3, 4} <= signature.constants


def _few(signature: Signature) -> int:
    """Channels of one piece."""
    width = math.prod(signature.x.shape[2:]) * compute_dtype(signature.x.dtype).itemsize
    return max(1, min(signature.x.shape[1], CACHE_BYTES // 2 // max(width, 1)))


def _temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    """Factors, shifts and one more number a channel; for float16 also a piece of the data in float32."""
    dtype, channels = compute_dtype(signature.x.dtype), signature.x.shape[1]
    wide = _few(signature) if dtype != signature.x.dtype else 0
    numbers = TensorSpec((0 if _packed(signature) else channels,), dtype)
    return numbers, numbers, numbers, TensorSpec((wide, *signature.x.shape[2:]), dtype)


def _workspace(signature: Signature) -> int:
    return dense_bytes(*_temporaries(signature))


def _fold(given: Sequence[Array], epsilon: float, rooms: Sequence[Array]) -> Iterator[Thunk]:
    """Steps that write factor = scale / sqrt(var + epsilon) and shift = bias - mean * factor (a room more is used)."""
    scale, bias, mean, var = given
    factor, shift, room = rooms
    yield partial(np.copyto, room, var, casting="same_kind")
    yield partial(np.add, room, constant(epsilon, room.dtype), room)
    yield partial(np.sqrt, room, room)
    yield partial(np.copyto, factor, scale, casting="same_kind")
    yield partial(np.divide, factor, room, factor)
    yield partial(np.copyto, room, mean, casting="same_kind")
    yield partial(np.multiply, room, factor, room)
    yield partial(np.copyto, shift, bias, casting="same_kind")
    yield partial(np.subtract, shift, room, shift)


def _pack(signature: Signature, constants: Mapping[int, Array]) -> tuple[Array, ...]:
    if not _packed(signature):
        return ()
    rooms = np.empty((3, signature.x.shape[1]), compute_dtype(signature.x.dtype))
    with np.errstate(all="ignore"):
        in_turn(*_fold([constants[i] for i in (1, 2, 3, 4)], signature.attrs["epsilon"], tuple(rooms)))()
    return rooms[0], rooms[1]


def _piece(x: Array, y: Array, wide: Array, factor: Array, shift: Array) -> Iterator[Thunk]:
    """Steps for a few channels of one image."""
    column = (-1,) + (1,) * (x.ndim - 1)
    out = y
    if wide.size:
        out = wide[: len(x)]
        yield partial(np.copyto, out, x)
        x = out
    yield partial(np.multiply, x, factor.reshape(column), out)
    yield partial(np.add, out, shift.reshape(column), out)
    if out is not y:
        yield partial(np.copyto, y, out, casting="same_kind")


def _bind(call: Binding) -> Thunk:
    *rooms, wide = carve(call.workspace, *_temporaries(call.signature))
    steps: list[Thunk] = []
    if not call.packed:
        steps += _fold(call.inputs[1:], call.attrs["epsilon"], rooms)
    factor, shift = call.packed or rooms[:2]
    for x, y in zip(call.x, call.y, strict=True):
        for a, b in pieces(len(x), _few(call.signature)):
            steps += _piece(x[a:b], y[a:b], wide, factor[a:b], shift[a:b])
    return in_turn(*steps)


def _overwrites(_: Signature) -> tuple[Overwrite, ...]:
    return (Overwrite(0, 0),)


def _cost(signature: Signature) -> Cost:
    return Cost(2 * signature.x.size, signature.x.nbytes + signature.y.nbytes)


BATCH_NORM = OpSchema(
    name="batch_norm",
    summary="(x - mean) / sqrt(var + epsilon) * scale + bias, one of each a channel; x (N, C, ...).",
    infer=_infer,
    kernels=(Kernel("pieces", _bind, _workspace, pack=_pack),),
    arity=(5, 5),
    attributes=(Attribute("epsilon", number, 1e-5),),
    overwrites=_overwrites,
    cost=_cost,
)
OPS = (BATCH_NORM,)
