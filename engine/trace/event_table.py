"""A trace as a table of numbers, from which events are made block by block to save memory."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from allocator.problem import Column, column
from engine.lower.calls import Value
from engine.trace.details import FindDetails, no_details
from engine.trace.trace import (
    ALLOC,
    ARRIVALS,
    FREE,
    GROW,
    KINDS,
    NOT_RUN,
    NOTHING,
    NOWHERE,
    OVERWRITE,
    PEAK,
    SHRINK,
    Event,
)

CODE = {kind: code for code, kind in enumerate(KINDS)}
"""The number of each kind of event."""
ROW = np.dtype(
    [(name, np.int64) for name in ("kind", "tick", "operator", "label", "chunk", "inside", "bytes", "overwrites")]
    + [("stage", np.int64), ("seconds", np.float64), ("thread", np.int64)]
)
"""An event without the columns that follow from others. `kind` is a number of CODE, `operator` and `label` are indices
into the tables of an `EventTable`, and `inside` is the byte of its chunk in which a view begins."""
Rows = npt.NDArray[np.void]
NO_TENSOR = 0
"""The label of an event that concerns no tensor."""
_EMPTY: dict[str, Any] = {
    "label": NO_TENSOR, "chunk": NOTHING, "overwrites": NOTHING, "stage": 1, "seconds": NOT_RUN, "thread": NOT_RUN,
}  # fmt: skip
_COMES = frozenset(CODE[kind] for kind in ARRIVALS)
NO_PEAK = -1
"""The row of the peak of a run in which nothing is ever alive."""
_BLOCK = 4096
"""Rows that become events together. More rows take more memory and fewer calls of numpy; see tools/bench_trace.py."""


@frozen(eq=False)
class TensorLabel:
    """The tensor of an event. `maker` is an operator and its schema, where that is not the operator that writes it."""

    name: str = ""
    shape: str = ""
    dtype: str = ""
    role: str = ""
    maker: tuple[str, str] | tuple[()] = ()


def ranks(order: Sequence[str]) -> Column:
    """Returns the rank of each kind of event among those of one time, by CODE; kinds not in the order come first."""
    return column([order.index(kind) if kind in order else 0 for kind in KINDS])


def label_of(value: Value, role: str, maker: tuple[str, str] | tuple[()] = ()) -> TensorLabel:
    """Returns the label of a value."""
    return TensorLabel(value.name, "x".join(map(str, value.spec.shape)), value.spec.dtype.name, role, maker)


def rows_of(count: int, **columns: npt.ArrayLike) -> Rows:
    """Returns `count` rows; columns that are not passed get the defaults of _EMPTY."""
    rows = np.zeros(count, ROW)
    for name, values in (_EMPTY | columns).items():
        rows[name] = values
    return rows


@frozen(eq=False)
class EventTable:
    """All events of a run, in order. Chunk c has `padding[c]` bytes of padding and lies at `place[c]`, or NOWHERE.

    `operators` are pairs of an operator's name and its schema's. With `floats`, the memory is always as large as the
    bytes that are alive.
    """

    rows: Rows
    operators: tuple[tuple[str, str], ...]
    labels: tuple[TensorLabel, ...]
    place: Column = field(converter=column)
    padding: Column = field(converter=column)
    floats: bool = False
    find_details: FindDetails = no_details

    def live(self) -> Column:
        """Returns the bytes that are alive after each row."""
        return column(np.cumsum(self._live_change(self.rows, self._sizes())))

    def footprint(self, live: Column) -> Column:
        """Returns the bytes of the memory after each row."""
        return live if self.floats else column(np.cumsum(_footprint_change(self.rows)))

    def events(self, peak: int) -> Iterator[Event]:
        """Yields the events, with the event of the peak behind row `peak`; without one for NO_PEAK.

        Besides the columns, memory holds one block of events and the sizes of chunks.
        """
        sizes = self._sizes()
        columns = np.append(self.place, NOWHERE), np.append(self.padding, 0)
        live = held = 0
        for start in range(0, len(self.rows), _BLOCK):
            rows = self.rows[start : start + _BLOCK]
            alive = live + np.cumsum(self._live_change(rows, sizes))
            if start <= peak < start + _BLOCK:
                rows, alive = _with_peak(rows, alive, peak - start)
            footprint = alive if self.floats else held + np.cumsum(_footprint_change(rows))
            live, held = int(alive[-1]), int(footprint[-1])
            yield from _events(self, rows, columns, alive, footprint)

    def _sizes(self) -> Column:
        """Returns the bytes of each chunk, and behind them 0 for NOTHING."""
        sizes = np.zeros(len(self.place) + 1, np.int64)
        for rows in _blocks(self.rows):
            comes = (rows["kind"] == CODE[ALLOC]) | (rows["kind"] == CODE[OVERWRITE])
            sizes[rows["chunk"][comes]] = rows["bytes"][comes]
        return sizes

    @staticmethod
    def _live_change(rows: Rows, sizes: Column) -> Column:
        """Returns the change of the live bytes in each row."""
        kind, size = rows["kind"], rows["bytes"]
        takes = kind == CODE[OVERWRITE]
        comes = takes | (kind == CODE[ALLOC])
        change: Column = size * comes - size * (kind == CODE[FREE]) - sizes[rows["overwrites"]] * takes
        return change


def _blocks(rows: Rows) -> Iterator[Rows]:
    for start in range(0, len(rows), _BLOCK):
        yield rows[start : start + _BLOCK]


def _footprint_change(rows: Rows) -> Column:
    kind, size = rows["kind"], rows["bytes"]
    change: Column = size * (kind == CODE[GROW]) - size * (kind == CODE[SHRINK])
    return change


def _events(
    table: EventTable, rows: Rows, columns: tuple[Column, Column], live: Column, held: Column
) -> Iterator[Event]:
    """Yields the events of a block of rows. `columns` are places and paddings by chunk, with those of NOTHING."""
    kind, place = rows["kind"], columns[0][rows["chunk"]]
    offset = np.where(place == NOWHERE, NOWHERE, place + rows["inside"]).tolist()
    padding = (columns[1][rows["chunk"]] * np.isin(kind, [CODE[k] for k in (ALLOC, OVERWRITE, FREE)])).tolist()
    more = zip(rows.tolist(), offset, padding, live.tolist(), held.tolist(), strict=True)
    for (
        code,
        tick,
        operator,
        label,
        chunk,
        _,
        size,
        over,
        stage,
        seconds,
        thread,
    ), at, pad, alive, footprint in more:
        s = table.labels[label]
        name, schema = s.maker if s.maker and code in _COMES else table.operators[operator]
        yield Event(
            tick, KINDS[code], name, schema, s.name, s.shape, s.dtype, s.role, chunk, at, size, pad, over, alive,
            footprint, stage, seconds, thread,
        )  # fmt: skip


def _with_peak(rows: Rows, live: Column, at: int) -> tuple[Rows, Column]:
    """Returns the rows and live bytes with the event of the peak inserted behind a row."""
    when = {name: rows[name][at] for name in ("tick", "operator", "stage", "seconds", "thread")}
    event = rows_of(1, kind=CODE[PEAK], bytes=live[at], **when)
    return np.concatenate((rows[: at + 1], event, rows[at + 1 :])), np.insert(live, at + 1, live[at])
