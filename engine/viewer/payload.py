"""Packs the data of a plan for the page: each text once, and numbers as columns that JavaScript reads in place."""

import gzip
import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import asdict, define, field

from engine.text.layer_names import depth_of, layer_of
from engine.trace.rectangles import Rectangles

VERSION = 2
_NUMBERS = ("begin", "end", "offset", "size", "padding", "overwrites", "stage", "thread", "born", "died")
_TEXTS = ("name", "operator", "schema", "shape", "dtype", "role", "reason")
_ALIGNMENT = 8
"""Alignment of columns in bytes: a Float64Array needs it."""

Numbers = npt.NDArray[Any]


def pack(rectangles: Rectangles, title: str) -> bytes:
    """Returns a gzip file: the length of a JSON header (4 bytes), the header, and columns from a multiple of 8 on.

    All numbers are little-endian. The header has the type ("i4" or "f8"), the start and the length of each column. A
    column of texts holds indices into the list `strings`.
    """
    table = _Strings()
    places, body = _layout(_columns(rectangles, table))
    header = {
        "version": VERSION,
        "title": title,
        "facts": asdict(rectangles.facts) | {"timed": rectangles.facts.is_timed},
        "count": len(rectangles),
        "columns": places,
        "strings": list(table.place),
    }
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode("ascii")
    start = (len(text).to_bytes(4, "little") + text).ljust(_aligned(4 + len(text)), b"\0")
    return gzip.compress(start + body, compresslevel=6, mtime=0)


@define(eq=False)
class _Strings:
    """The texts, each once, with its index."""

    place: dict[str, int] = field(factory=dict)

    def column(self, texts: Iterable[str]) -> Numbers:
        return np.array([self.place.setdefault(text, len(self.place)) for text in texts], np.int32)


def _columns(rectangles: Rectangles, table: _Strings) -> dict[str, Numbers]:
    """Returns the columns by the names that engine/viewer/js uses."""
    columns: dict[str, Any] = {name: getattr(rectangles, name) for name in _NUMBERS}
    columns |= {name: table.column(getattr(rectangles, name)) for name in _TEXTS}
    depth = depth_of([o.name for o in rectangles.operators])
    columns["layer"] = table.column(layer_of(operator, depth) if depth else "" for operator in rectangles.operator)
    columns |= _columns_of_weights(rectangles, table, depth)
    columns |= {
        "view_chunk": [v.rectangle for v in rectangles.views],
        "view_name": table.column(v.name for v in rectangles.views),
        "view_tick": [v.tick for v in rectangles.views],
        "view_bytes": [v.bytes for v in rectangles.views],
        "op_tick": [o.tick for o in rectangles.operators],
        "op_name": table.column(o.name for o in rectangles.operators),
        "op_schema": table.column(o.schema for o in rectangles.operators),
        "op_attributes": table.column(o.attributes for o in rectangles.operators),
        "op_begin": [o.begin for o in rectangles.operators],
        "op_end": [o.end for o in rectangles.operators],
        "op_thread": [o.thread for o in rectangles.operators],
        "stage_tick": [s.tick for s in rectangles.stages],
        "stage_seconds": [s.seconds for s in rectangles.stages],
        "curve_tick": rectangles.tick,
        "curve_seconds": rectangles.time,
        "curve_live": rectangles.live,
        "curve_footprint": rectangles.footprint,
        "at_peak": rectangles.at_peak,
        "read_tick": rectangles.read_tick,
        "read_chunk": rectangles.read_row,
        "move_tick": [m.tick for m in rectangles.moves],
        "move_chunk": [m.chunk for m in rectangles.moves],
        "move_source": [m.source + len(rectangles) * m.is_weight for m in rectangles.moves],
        "move_beside": [m.is_beside for m in rectangles.moves],
        "stripe_cascade": [s.number for s in rectangles.stripes],
        "stripe_name": table.column(s.cascade for s in rectangles.stripes),
        "stripe_number": [s.stripe for s in rectangles.stripes],
        "stripe_count": [s.count for s in rectangles.stripes],
        "stripe_first": [s.rows[0] for s in rectangles.stripes],
        "stripe_last": [s.rows[1] for s in rectangles.stripes],
        "stripe_columns": [int(s.is_columns) for s in rectangles.stripes],
        "stripe_begin": [s.begin for s in rectangles.stripes],
        "stripe_end": [s.end for s in rectangles.stripes],
    }
    return {name: _narrow(np.asarray(values)) for name, values in columns.items()}


def _columns_of_weights(rectangles: Rectangles, table: _Strings, depth: int) -> dict[str, Any]:
    """Returns the weights, each in the layer of its first reader, and who reads them, as pairs of tick and weight."""
    weights, names = rectangles.weights, {o.tick: o.name for o in rectangles.operators}
    readers = (names.get(min(weight.ticks, default=-1), "") for weight in weights)
    reads = [(tick, i) for i, weight in enumerate(weights) for tick in weight.ticks]
    return {
        "weight_name": table.column(weight.name for weight in weights),
        "weight_shape": table.column(weight.shape for weight in weights),
        "weight_dtype": table.column(weight.dtype for weight in weights),
        "weight_layer": table.column(layer_of(reader, depth) if depth else "" for reader in readers),
        "weight_reason": table.column(weight.reason for weight in weights),
        "weight_bytes": np.array([weight.bytes for weight in weights], np.int64),
        "weight_memory": np.array([weight.memory for weight in weights], np.int64),
        "weight_offset": np.array([weight.offset for weight in weights], np.int64),
        "weight_read_tick": np.array([tick for tick, _ in reads], np.int64),
        "weight_read": np.array([i for _, i in reads], np.int64),
    }


def _narrow(values: Numbers) -> Numbers:
    """Returns numbers as int32 if that loses nothing, else as float64, which is exact to 2**53."""
    limits = np.iinfo(np.int32)
    is_whole = values.dtype.kind in "iu" and (
        not len(values) or limits.min <= values.min() <= values.max() <= limits.max
    )
    return values.astype("<i4" if is_whole else "<f8")


def _layout(columns: Mapping[str, Numbers]) -> tuple[dict[str, tuple[str, int, int]], bytes]:
    """Returns the type, start and length of each column by name, and the bytes of all columns."""
    places, parts, at = dict[str, tuple[str, int, int]](), list[bytes](), 0
    for name, values in columns.items():
        places[name] = values.dtype.str.lstrip("<"), at, len(values)
        part = values.tobytes()
        parts.append(part.ljust(_aligned(len(part)), b"\0"))
        at += len(parts[-1])
    return places, b"".join(parts)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
