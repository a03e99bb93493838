"""Arguments of compiled kernels as records: one declaration names the fields for the writer and for the reader.

    LRN = record("x y pixels channels: int64", "bias beta: float64", "strides[3]: int64")

    native_call(address("ops.norm.lrn_code", "normalise"), LRN, x=x, pixels=pixels, ...)    # the kernel that binds

    args = record_at(address, LRN)                                                          # the compiled code
    args.pixels, args.strides[0]

Each field is of 64 bits, and a record has no gaps. An address is an int64. What a call has a varying number of follows
its record, as records or numbers of its own: `join_args` puts them behind each other.
"""

import math
import re
import struct
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from attrs import frozen

from ops.tensor.spec import Array

Number = int | float
Layout = np.dtype[Any]
"""The names, types and offsets of the fields of a record."""
_FIELD = re.compile(r"(\w+)(?:\[(\d+)\])?")
_CODES = {"int64": "q", "float64": "d"}
"""Types of fields, and what `struct` calls them."""


def record(*declarations: str) -> Layout:
    """Returns the layout of a record with fields `"name other[count]: type"`; the type is int64 or float64."""
    return np.dtype([field for declaration in declarations for field in _fields(declaration)], align=True)


def _fields(declaration: str) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """Yields the name, type and shape of each field. Raises TypeError where it is no declaration of fields."""
    names, _, kind = (part.strip() for part in declaration.partition(":"))
    matches = [_FIELD.fullmatch(name) for name in names.split()]
    for match in matches:
        if match is None or kind not in _CODES:
            raise TypeError(f"fields are declared as 'name other[count]: int64' (or float64), not {declaration!r}")
        yield match[1], kind, (int(match[2]),) if match[2] else ()


def pack_args(layout: Layout, **values: Number | Sequence[Number]) -> Array:
    """Returns the words of a record. Raises TypeError for a field that is missing, unknown or of another type."""
    packing = _packing(layout)
    if packing.names != values.keys():
        names, passed = set(packing.names), set(values)
        raise TypeError(f"arguments are missing {sorted(names - passed)}, and do not have {sorted(passed - names)}")
    try:
        words = packing.scalars.pack(*[values[name] for name in packing.order])
    except struct.error:  # a field has several numbers, or a wrong one
        words = b"".join(_pack_field(name, code, count, values[name]) for name, code, count in packing.fields)
    return np.frombuffer(bytearray(words), np.int64)


def _pack_field(name: str, code: str, count: int, value: Number | Sequence[Number]) -> bytes:
    numbers = value if isinstance(value, Sequence) else (value,)
    try:
        return struct.pack(f"={count}{code}", *numbers)
    except struct.error as error:
        raise TypeError(f"argument {name} is {count} of type {code!r}, not {value!r}") from error


@frozen(eq=False)
class _Packing:
    """The name, the code for `struct` and the count of each field; `scalars` packs a record whose counts are all 1."""

    fields: tuple[tuple[str, str, int], ...]
    order: tuple[str, ...]
    names: frozenset[str]
    scalars: struct.Struct


@cache
def _packing(layout: Layout) -> _Packing:
    fields: Any = layout.fields
    kinds = [(name, fields[name][0]) for name in layout.names or ()]
    packed = tuple((name, _CODES[kind.base.name], math.prod(kind.shape)) for name, kind in kinds)
    scalars = struct.Struct("=" + "".join(code for _, code, _ in packed))
    return _Packing(packed, tuple(name for name, _, _ in packed), frozenset(name for name, _, _ in packed), scalars)


def join_args(*parts: Array | Sequence[int]) -> Array:
    """Returns the words of records, and of lists of integers, one behind the other."""
    return np.concatenate([np.asarray(part, np.int64) for part in parts])


def offset(layout: Layout, name: str) -> int:
    """Returns the bytes from the start of a record to a field, for emitters of LLVM code."""
    fields: Any = layout.fields
    return int(fields[name][1])
