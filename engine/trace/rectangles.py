"""The chunks of a trace as pictures need them: one rectangle of time and addresses each, and curves of live bytes."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import Factory, define, evolve, field, frozen

from allocator.problem import Column, column
from engine.trace.details import Details, Move, StripeRun, Weight
from engine.trace.trace import NOTHING, NOWHERE, Event, RunInfo, Trace

Seconds = npt.NDArray[np.float64]


def seconds(values: Any) -> Seconds:
    """Returns times as a read-only column."""
    times = np.array(values, np.float64).reshape(-1)
    times.flags.writeable = False
    return times


@frozen
class TensorView:
    """A tensor in bytes of the chunk of row `rectangle`, at the address `offset`; it begins in `tick`."""

    name: str
    operator: str
    rectangle: int
    offset: int
    bytes: int
    shape: str
    dtype: str
    tick: int


@frozen
class OperatorRun:
    """A run of an operator: its tick and, where the run has times, its begin and end in seconds and its thread."""

    name: str
    schema: str
    tick: int
    begin: float
    end: float
    thread: int
    stage: int
    attributes: str = ""


@frozen(eq=False)
class Rectangles:
    """Columns with one row a chunk. Sizes and offsets in bytes; see `Event` for the names.

    A chunk is alive in the ticks [begin, end), and from `born` to `died` in seconds (-1 where the run has no times).
    `size` includes `padding`. The chunk of row `overwrites`, or NOTHING, ends where this one takes its bytes: its last
    tick is the first of this one. `operator` writes the chunk, on `thread`, in `stage`.

    `at_peak` has the rows that are alive at the peak, in order; together they have its bytes. Where operators ran at
    once, no tick has them all. `tick`, `time`, `live` and `footprint` are the curves: a point after each change, in
    order. In the tick `read_tick[i]`, the row `read_row[i]` is read. These, `attributes` of operators, `weights`, and
    what memories and cascades need (`reason`, a text a row; `moves`, whose chunks are rows; `stripes`) are empty for a
    trace without details.
    """

    facts: RunInfo
    begin: Column = field(converter=column)
    end: Column = field(converter=column)
    born: Seconds = field(converter=seconds)
    died: Seconds = field(converter=seconds)
    offset: Column = field(converter=column)
    size: Column = field(converter=column)
    padding: Column = field(converter=column)
    overwrites: Column = field(converter=column)
    stage: Column = field(converter=column)
    thread: Column = field(converter=column)
    name: tuple[str, ...]
    operator: tuple[str, ...]
    schema: tuple[str, ...]
    shape: tuple[str, ...]
    dtype: tuple[str, ...]
    role: tuple[str, ...]
    views: tuple[TensorView, ...]
    operators: tuple[OperatorRun, ...]
    stages: tuple[Event, ...]
    tick: Column = field(converter=column)
    time: Seconds = field(converter=seconds)
    live: Column = field(converter=column)
    footprint: Column = field(converter=column)
    at_peak: Column = field(converter=column)
    read_tick: Column = field(converter=column, default=())
    read_row: Column = field(converter=column, default=())
    weights: tuple[Weight, ...] = ()
    reason: tuple[str, ...] = field(default=Factory(lambda self: ("",) * len(self.size), takes_self=True))
    moves: tuple[Move, ...] = ()
    stripes: tuple[StripeRun, ...] = ()

    def __len__(self) -> int:
        return len(self.size)

    @property
    def has_places(self) -> bool:
        """True if chunks lie at known addresses; reference counting without a heap model has none."""
        if self.facts.mode == "static":
            return True
        return bool(self.facts.heap) and bool((self.offset[self.size > 0] != NOWHERE).all())


def rectangles_of(trace: Trace) -> Rectangles:
    """Returns the chunks of a trace, in the order in which they begin. What is not freed stays to the end."""
    builder = _RectangleBuilder()
    for event in trace:
        builder.enter(event)
    return builder.closed(trace.facts, trace.details())


@define(eq=False)
class _RectangleBuilder:
    """The chunks, views, operators and curves of the events so far; `row` is the row of each chunk that is alive."""

    born: list[Event] = field(factory=list)
    died: dict[int, tuple[int, float]] = field(factory=dict)
    row: dict[int, int] = field(factory=dict)
    views: list[TensorView] = field(factory=list)
    begun: dict[int, Event] = field(factory=dict)
    operators: list[OperatorRun] = field(factory=list)
    stages: list[Event] = field(factory=list)
    curve: list[tuple[int, float, int, int]] = field(factory=list)
    overwritten: list[int] = field(factory=list)
    last: tuple[int, float] = (0, 0.0)
    at_peak: list[int] = field(factory=list)

    def enter(self, event: Event) -> None:
        """Takes the next event."""
        match event.kind:
            case "alloc" | "overwrite":
                self._arrive(event)
            case "free":
                self._leave(event.chunk, event.tick, event.seconds)
            case "view" if event.chunk in self.row:
                place = event.offset, event.bytes, event.shape, event.dtype, event.tick
                self.views.append(TensorView(event.tensor, event.operator, self.row[event.chunk], *place))
            case "stage":
                self.stages.append(event)
            case "peak":
                self.at_peak = sorted(self.row.values())
            case "begin":
                self.begun[event.tick] = event
            case "end":
                began = self.begun.pop(event.tick)
                when = event.tick, began.seconds, event.seconds, event.thread, event.stage
                self.operators.append(OperatorRun(event.operator, event.schema, *when))
        self._mark(event)

    def _arrive(self, event: Event) -> None:
        taken = NOTHING if event.overwrites == NOTHING else self.row[event.overwrites]
        if taken != NOTHING:
            self._leave(event.overwrites, event.tick + 1, event.seconds)
        self.row[event.chunk] = len(self.born)
        self.born.append(event)
        self.overwritten.append(taken)

    def _leave(self, chunk: int, tick: int, time: float) -> None:
        self.died[self.row.pop(chunk)] = tick, time

    def _mark(self, event: Event) -> None:
        point = event.tick, event.seconds, event.live_bytes, event.footprint_bytes
        if not self.curve or self.curve[-1][2:] != point[2:]:
            self.curve.append(point)
        self.last = max(self.last[0], event.tick + 1), max(self.last[1], event.seconds)

    def closed(self, facts: RunInfo, details: Details) -> Rectangles:
        """Returns the rectangles. What was not freed stays to the end."""
        row = {event.chunk: i for i, event in enumerate(self.born)}
        reads = [
            (t, row[c])
            for t, c in zip(details.read_tick.tolist(), details.read_chunk.tolist(), strict=True)
            if c in row
        ]
        born, ends = self.born, [self.died.get(i, self.last) for i in range(len(self.born))]
        return Rectangles(
            facts=facts,
            begin=[e.tick for e in born],
            end=[tick for tick, _ in ends],
            born=[e.seconds for e in born],
            died=[time for _, time in ends],
            overwrites=self.overwritten,
            offset=[e.offset for e in born],
            size=[e.bytes for e in born],
            padding=[e.padding for e in born],
            stage=[e.stage for e in born],
            thread=[e.thread for e in born],
            name=tuple(e.tensor for e in born),
            operator=tuple(e.operator for e in born),
            schema=tuple(e.schema for e in born),
            shape=tuple(e.shape for e in born),
            dtype=tuple(e.dtype for e in born),
            role=tuple(e.role for e in born),
            views=tuple(self.views),
            operators=tuple(evolve(o, attributes=details.attributes.get(o.tick, "")) for o in self.operators),
            stages=tuple(self.stages),
            tick=[p[0] for p in self.curve],
            time=[p[1] for p in self.curve],
            live=[p[2] for p in self.curve],
            footprint=[p[3] for p in self.curve],
            at_peak=self.at_peak,
            read_tick=[tick for tick, _ in reads],
            read_row=[i for _, i in reads],
            weights=details.weights,
            reason=tuple(details.reasons.get(e.chunk, "") for e in born),
            moves=tuple(_in_rows(details.moves, row)),
            stripes=details.stripes,
        )


def _in_rows(moves: Iterable[Move], row: Mapping[int, int]) -> Iterator[Move]:
    """Yields the moves between chunks that have rows, with rows in place of their numbers."""
    for move in moves:
        if move.chunk in row and (move.is_weight or move.source in row):
            yield evolve(move, chunk=row[move.chunk], source=move.source if move.is_weight else row[move.source])
