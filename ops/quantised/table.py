"""Functions of one quantised tensor as a table: a byte has only 256 values, and each has one result."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from allocator.machine_code.door import address
from ops.common.elementwise import require_dtype
from ops.common.thunks import in_turn
from ops.native.call import native_call
from ops.quantised.args import LOOK_UP_ARGS
from ops.quantised.params import BYTES, PIECE, ends, pieces
from ops.schema.attributes import Attribute, element_type, integers
from ops.schema.backends import NUMBA
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Signature, Specs, Thunk, overwrites_from
from ops.schema.workspace import prefix
from ops.tensor.errors import AttributeValueError
from ops.tensor.spec import Array, TensorSpec
from ops.windows.pixels import dense_pixels, pitch

ENTRIES = 256
"""Entries of a table: the first is for value 0; for int8, those of 1 to 127 and of -128 to -1 follow."""


def every_value(dtype: np.dtype[Any]) -> Array:
    """Returns all values of a type, in the order of a table."""
    return np.arange(ENTRIES, dtype=np.uint8).view(dtype)


def _entries(values: Iterable[Any]) -> tuple[int, ...]:
    table = integers(values)
    if len(table) != ENTRIES:
        raise ValueError(f"a table has {ENTRIES} numbers")
    return table


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    require_dtype(inputs[0], BYTES)
    if attrs["to"] not in BYTES:
        raise AttributeValueError(f"gives int8 or uint8, not {attrs['to']}")
    least, most = ends(attrs["to"])
    if not least <= min(attrs["table"]) <= max(attrs["table"]) <= most:
        raise AttributeValueError(f"a table of {attrs['to']} has {min(attrs['table'])} to {max(attrs['table'])}")
    return (inputs[0].with_dtype(attrs["to"]),)


def _table(signature: Signature) -> Array:
    return np.array(signature.attrs["table"], signature.attrs["to"])


def _places(signature: Signature) -> TensorSpec:
    return TensorSpec((min(PIECE, signature.x.size),), np.dtype(np.intp))


def _temporaries(signature: Signature) -> Specs:
    return (_places(signature),)


def _bind(call: Binding) -> Thunk:
    (buffer,) = call.temporaries
    steps: list[Thunk] = []
    table, source = _table(call.signature), call.x.reshape(call.y.shape).view(np.uint8)  # blocks of one may be 0-d
    for y, x in pieces(call.y, source) if call.y.ndim else [(call.y.reshape(1), source.reshape(1))]:
        places = prefix(buffer, x.shape)
        steps += (partial(np.copyto, places, x), partial(np.take, table, places, None, y, "wrap"))
    return in_turn(*steps)


def _bind_native(call: Binding) -> Thunk:
    table = _table(call.signature)
    dense = call.x.flags.c_contiguous and call.y.flags.c_contiguous
    channels = call.x.size if dense else call.x.shape[-1]
    lines = call.x.size // max(channels, 1)
    return native_call(
        address("ops.quantised.elementwise_code", "look_up"),
        LOOK_UP_ARGS,
        x=call.x,
        y=call.y,
        table=table,
        lines=lines,
        length=channels,
        x_hop=channels if dense else pitch(call.x),
        y_hop=channels if dense else pitch(call.y),
    )


LOOK_UP = OpSchema(
    name="look_up",
    summary="The entry of a table of 256 values for each value of x.",
    infer=_infer,
    kernels=(
        Kernel("native", _bind_native, reads=dense_pixels, writes=dense_pixels, backend=NUMBA),
        Kernel("numpy", _bind, _temporaries),
    ),
    attributes=(Attribute("table", _entries), Attribute("to", element_type, np.dtype("uint8"))),
    overwrites=overwrites_from(0),
    elementwise=True,
)
OPS = (LOOK_UP,)
