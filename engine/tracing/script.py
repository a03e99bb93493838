"""A trace as a table of numbers, and how events are made of it, block by block."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import evolve, field, frozen

from allocator.problem import Column, column
from engine.calls import Value
from engine.trace import ALLOC, FREE, GROW, KINDS, NOT_RUN, NOTHING, NOWHERE, OVERWRITE, PEAK, SHRINK, Event

CODE = {kind: code for code, kind in enumerate(KINDS)}
"""Of a kind of event."""
ROW = np.dtype(
    [(name, np.int64) for name in ("kind", "tick", "operator", "subject", "chunk", "inside", "bytes", "overwrites")]
    + [("stage", np.int64), ("seconds", np.float64), ("thread", np.int64)]
)
"""An event without what follows from others: `kind` is a code; `operator` and `subject` count in the tables of a
`Script`, and `inside` is where a view begins in its chunk."""
Rows = npt.NDArray[np.void]
NOBODY = 0
"""The subject of what is about no tensor."""
_EMPTY: dict[str, Any] = {
    "subject": NOBODY, "chunk": NOTHING, "overwrites": NOTHING, "stage": 1, "seconds": NOT_RUN, "thread": NOT_RUN,
}  # fmt: skip
_BLOCK = 4096
"""Rows that are made events at once."""


@frozen(eq=False)
class Subject:
    """A tensor that events are about."""

    name: str = ""
    shape: str = ""
    dtype: str = ""
    role: str = ""


def subject_of(value: Value) -> Subject:
    """A value, for people."""
    return Subject(value.name, "x".join(map(str, value.spec.shape)), value.spec.dtype.name, value.role.value)


def rows_of(count: int, **columns: npt.ArrayLike) -> Rows:
    """So many rows; what is not given is of no tensor, and did not run."""
    rows = np.zeros(count, ROW)
    for name, values in (_EMPTY | columns).items():
        rows[name] = values
    return rows


@frozen(eq=False)
class Script:
    """A whole run, in order. Chunk c has `padding[c]` bytes of padding and lies at `place[c]`, or NOWHERE.

    `operators` are their names, with those of the schemas. `floats` says that there is no memory but what is alive.
    """

    rows: Rows
    operators: tuple[tuple[str, str], ...]
    subjects: tuple[Subject, ...]
    place: Column = field(converter=column)
    padding: Column = field(converter=column)
    floats: bool = False

    def live(self) -> Column:
        """Bytes that are alive after each row."""
        return column(np.cumsum(_live_change(self.rows, len(self.place))))

    def footprint(self, live: Column) -> Column:
        """Bytes that the memory behind it has after each row."""
        if self.floats:
            return live
        kind, size = self.rows["kind"], self.rows["bytes"]
        return column(np.cumsum(size * (kind == CODE[GROW]) - size * (kind == CODE[SHRINK])))

    def tell(self) -> Iterator[Event]:
        """The events."""
        script = _with_peak(self)
        live = script.live()
        footprint = script.footprint(live)
        for start in range(0, len(live), _BLOCK):
            part = slice(start, start + _BLOCK)
            yield from _events(script, script.rows[part], live[part], footprint[part])


def _events(script: Script, rows: Rows, live: Column, footprint: Column) -> Iterator[Event]:
    place, padding = (np.append(known, empty) for known, empty in ((script.place, NOWHERE), (script.padding, 0)))
    at, inside = place[rows["chunk"]], rows["inside"]
    offset = np.where(at == NOWHERE, NOWHERE, at + inside).tolist()
    padded = (padding[rows["chunk"]] * np.isin(rows["kind"], [CODE[k] for k in (ALLOC, OVERWRITE, FREE)])).tolist()
    more = zip(rows.tolist(), offset, padded, live.tolist(), footprint.tolist(), strict=True)
    for (kind, tick, operator, subject, chunk, _, size, over, stage, seconds, thread), at, pad, alive, held in more:
        name, schema = script.operators[operator]
        s = script.subjects[subject]
        yield Event(
            tick, KINDS[kind], name, schema, s.name, s.shape, s.dtype, s.role, chunk, at, size, pad, over, alive, held,
            stage, seconds, thread,
        )  # fmt: skip


def _live_change(rows: Rows, chunks: int) -> Column:
    """By how many bytes each row changes what is alive."""
    kind, size = rows["kind"], rows["bytes"]
    takes = kind == CODE[OVERWRITE]
    comes = takes | (kind == CODE[ALLOC])
    size_of = np.zeros(chunks + 1, np.int64)  # the last one is that of NOTHING
    size_of[rows["chunk"][comes]] = size[comes]
    return column(size * comes - size * (kind == CODE[FREE]) - size_of[rows["overwrites"]] * takes)


def _with_peak(script: Script) -> Script:
    """With the event that tells the peak, behind the first row at which it is reached."""
    live = script.live()
    if not live.max(initial=0):
        return script
    at = int(live.argmax())
    row = script.rows[at]
    when = {name: row[name] for name in ("tick", "operator", "stage", "seconds", "thread")}
    told = rows_of(1, kind=CODE[PEAK], bytes=live[at], **when)
    return evolve(script, rows=np.concatenate((script.rows[: at + 1], told, script.rows[at + 1 :])))
