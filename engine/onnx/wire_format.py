"""Cuts large weights out of an ONNX message before protobuf copies them; they stay where they are in the file.

In protobuf's wire format (https://protobuf.dev/programming-guides/encoding) a message is a row of fields; each begins
with a number, 8 times the field's own plus what follows: 0 a varint, 1 eight bytes, 2 a length and so many bytes, 5
four bytes. The numbers of ONNX's fields are those of onnx.proto: a model has a graph (7), a graph initializers (5), and
these have their bytes in raw_data (9). A tensor that was cut says so as ONNX says it of data in another file:
data_location (14) is EXTERNAL, and external_data (13) has the location, the offset and the length.
"""

from collections.abc import Callable, Iterator
from typing import Any

from attrs import frozen

LEAST_BYTES = 4096
"""The least bytes of data that is cut. Smaller data is copied: an entry for it would cost as much."""
OWN_FILE = "\0"
"""The location of data in the model's own file; no other file can be called so."""
MOST_DEPTH = 100
"""The depth inside a message to which protobuf reads others."""
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
_GRAPH, _INITIALIZER, _RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION = 7, 5, 9, 13, 14
_EXTERNAL, _KEY, _VALUE = 1, 1, 2


class _MalformedError(Exception):
    """An error: these bytes are no message."""


@frozen
class _Field:
    """A field of a message: all its bytes from `begin` to `end`; what it holds begins at `inside`."""

    number: int
    kind: int
    begin: int
    inside: int
    end: int


def cut_weights(data: memoryview) -> bytes:
    """Returns the bytes of a model without the data of large initializers, which name their place in `data` instead.

    Returns all bytes where they are no message, so that protobuf reports what is wrong.
    """
    try:
        return _rebuilt(data, 0, len(data), _GRAPH, _without_initializers)
    except _MalformedError:
        return bytes(data)


def message_depth(data: bytes, kind: Any) -> int:
    """Returns how deep messages lie inside the outermost one; 0 where these bytes are no message.

    `kind` is protobuf's descriptor of the outermost one.
    """
    view, deepest, waiting = memoryview(data), 0, [(0, len(data), kind, 0)]
    try:
        while waiting:
            begin, end, kind, depth = waiting.pop()
            deepest = max(deepest, depth)
            messages = {f.number: f.message_type for f in kind.fields if f.message_type is not None}
            for field in _fields(view, begin, end):
                if field.kind == _BYTES and field.number in messages:
                    waiting.append((field.inside, field.end, messages[field.number], depth + 1))
    except _MalformedError:
        return 0
    return deepest


def _without_initializers(data: memoryview, begin: int, end: int) -> bytes:
    return _rebuilt(data, begin, end, _INITIALIZER, _without_data)


def _rebuilt(
    data: memoryview, begin: int, end: int, number: int, inner: Callable[[memoryview, int, int], bytes]
) -> bytes:
    """Returns a message in which `inner` has rewritten the fields with this number."""
    parts: list[bytes] = []
    for field in _fields(data, begin, end):
        if field.number == number and field.kind == _BYTES:
            parts.append(_with_length(number, inner(data, field.inside, field.end)))
        else:
            parts.append(bytes(data[field.begin : field.end]))
    return b"".join(parts)


def _without_data(data: memoryview, begin: int, end: int) -> bytes:
    """Returns a tensor without its data, if that is large and in the message itself."""
    fields = tuple(_fields(data, begin, end))
    raw = [f for f in fields if f.number == _RAW_DATA and f.kind == _BYTES]
    elsewhere = any(f.number in (_EXTERNAL_DATA, _DATA_LOCATION) for f in fields)
    if elsewhere or len(raw) != 1 or raw[0].end - raw[0].inside < LEAST_BYTES:
        return bytes(data[begin:end])
    kept = b"".join(bytes(data[f.begin : f.end]) for f in fields if f is not raw[0])
    entries_by_key = {"location": OWN_FILE, "offset": str(raw[0].inside), "length": str(raw[0].end - raw[0].inside)}
    entries = b"".join(_with_length(_EXTERNAL_DATA, _entry(key, value)) for key, value in entries_by_key.items())
    return kept + entries + _varint(_DATA_LOCATION << 3 | _VARINT) + _varint(_EXTERNAL)


def _fields(data: memoryview, begin: int, end: int) -> Iterator[_Field]:
    """Yields the fields of the message in these bytes."""
    at = begin
    while at < end:
        key, inside = _number(data, at, end)
        kind = key & 7
        if kind == _BYTES:
            size, inside = _number(data, inside, end)
            after = inside + size
        elif kind == _VARINT:
            after = _number(data, inside, end)[1]
        elif kind in (_EIGHT, _FOUR):
            after = inside + (8 if kind == _EIGHT else 4)
        else:
            raise _MalformedError
        if after > end:
            raise _MalformedError
        yield _Field(key >> 3, kind, at, inside, after)
        at = after


def _number(data: memoryview, at: int, end: int) -> tuple[int, int]:
    """Returns a varint and its end: seven bits in each byte, lowest first; the eighth bit is set where more follow."""
    number = 0
    for place in range(at, min(end, at + 10)):
        number |= (data[place] & 127) << 7 * (place - at)
        if data[place] < 128:
            return number, place + 1
    raise _MalformedError


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    return bytes([*encoded, value])


def _with_length(number: int, inside: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(inside)) + inside


def _entry(key: str, value: str) -> bytes:
    return _with_length(_KEY, key.encode()) + _with_length(_VALUE, value.encode())
