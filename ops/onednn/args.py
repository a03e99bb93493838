"""Arguments of the compiled calls of primitives."""

from collections.abc import Mapping

from ops.native.records import Number, pack_args, record
from ops.tensor.spec import Array

CALL = record(
    "set_threads threads execute primitive stream count arguments parallel region seen: int64",
    "bare_primitive bare_arguments target elements algorithm: int64",
    "low high: float64",
    "otherwise: int64",
)
"""Call of a primitive: addresses of functions and objects of the library, and numbers.

The fields from set_threads to arguments run the primitive. `nan_safe` uses those to `high` where a NaN may be lost:
parallel and region collect the flags of all threads in `seen`; bare_primitive computes sums without an activation,
which is then applied to `elements` floats at `target`. `guard` uses otherwise: a mark that another kernel shall
compute.
"""
COPY = record("source target count: int64")
"""Copy of `count` floats: addresses."""
ADD_ROW = record("row target length count: int64")
"""Addition of a row of `length` floats to each of `count` rows: addresses."""
SEARCH = record("mark values count bits: int64")
"""Search in `count` floats, at an address, for these bits; a hit sets the mark."""
FALLBACK = record("mark function args: int64")
"""Step of another kernel, which runs if its mark is set."""


def call_args(fields: Mapping[str, Number], **more: Number) -> Array:
    """Returns a CALL record; fields that are not named are 0."""
    return pack_args(CALL, **(dict.fromkeys(CALL.names or (), 0) | dict(fields) | more))
