"""Writes trace events as a table for people: allocations, frees and overwrites of each tick, and the live bytes.

Operators are a column and have no lines of their own; where a run has times, the line of their end has their duration.
Of several memories, a column has that of each tensor, whose offset counts from its first byte.
On a terminal names are shortened, and digits stand in groups of three; in files they are as they are.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import BinaryIO

from attrs import define, field, frozen

from engine.exporters.groups import Around, between_memories, in_its_memory
from engine.exporters.summary import foot, head
from engine.text.names import escaped
from engine.text.screen import BOLD, DIM, FILE, Screen, padded, shortened, visible_width
from engine.trace.details import COPY_ENGINE
from engine.trace.trace import (
    ARRIVALS,
    BEGIN,
    END,
    FREE,
    GROW,
    NOWHERE,
    OVERWRITE,
    PEAK,
    SHRINK,
    STAGE,
    VIEW,
    Event,
    RunInfo,
    Trace,
)

_GAP, _MARK = "  ", " < peak"
_NAMES = ("tick", "operator", "event", "tensor", "offset", "bytes", "live_bytes")
_MEMORY = "memory"
_TIMES = ("ms", "thread")
_LEFT = ("operator", "event", "tensor", _MEMORY)
_NARROWEST = 6
_BAR = 12
"""Columns of the bar of live bytes."""
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def write(trace: Trace, out: BinaryIO) -> None:
    """Writes the table to a file."""
    show(trace, out, FILE)


def show(trace: Trace, out: BinaryIO, screen: Screen) -> None:
    """Writes the table for a screen. It reads the trace twice: first to measure the columns."""
    for line in head(trace.facts):
        _put_bold(line, out, screen)
    screen.put("", out)
    table = _Table.of(trace, screen)
    screen.put(screen.styled(table.title(), DIM), out)
    for line in table.lines(trace):
        screen.put(line, out)
    screen.put("", out)
    for line in foot(trace.facts):
        _put_bold(line, out, screen)


def _put_bold(line: str, out: BinaryIO, screen: Screen) -> None:
    """Writes a line about the whole run, shortened to the width of a terminal."""
    fitting = shortened(line, screen.width, screen.dots) if screen.is_terminal else line
    screen.put(screen.styled(fitting, BOLD), out)


@frozen(eq=False)
class _Row:
    """A line: the texts of its columns, and the kind of its event, which decides its style."""

    cells: tuple[str, ...]
    kind: str
    live: int
    is_peak: bool = False
    is_first: bool = False


@define(eq=False)
class _RowBuilder:
    """Makes rows of events. It keeps names and memories of live chunks, and the begins of running operators."""

    facts: RunInfo
    around: Around
    has_groups: bool
    names: dict[int, str] = field(factory=dict)
    memories: dict[int, str] = field(factory=dict)
    begun: dict[int, float] = field(factory=dict)

    def rows(self, events: Iterable[Event]) -> Iterator[_Row]:
        """Yields a row for each event that adds information; the row of the peak is marked."""
        waiting: deque[_Row] = deque()
        tick = NOWHERE
        for event in self._shown(events):
            if event.kind == PEAK and waiting:
                row = waiting.pop()
                waiting.append(_Row(row.cells, row.kind, row.live, is_peak=True, is_first=row.is_first))
                continue
            yield from waiting
            waiting.clear()
            waiting.append(_Row(self._cells(event), event.kind, event.live_bytes, is_first=event.tick != tick))
            tick = event.tick
        yield from waiting

    def _shown(self, events: Iterable[Event]) -> Iterator[Event]:
        """Yields the events with rows: no begins in a timed run, else an operator only if nothing else happens."""
        if self.facts.is_timed:
            yield from (e for e in events if not self._begins(e))
            return
        for _, group in groupby(events, key=lambda e: e.tick):
            lone: list[Event] = []
            is_alone = True
            for event in group:
                if event.kind in (BEGIN, END):
                    lone = [event]
                else:
                    is_alone = False
                    yield event
            if is_alone:
                yield from lone

    def _begins(self, event: Event) -> bool:
        if event.kind == BEGIN:
            self.begun[event.tick] = event.seconds
        return event.kind == BEGIN

    def _cells(self, event: Event) -> tuple[str, ...]:
        offset = "" if event.offset == NOWHERE else self._number(in_its_memory(event, self.facts).offset)
        size = "" if event.kind == END else self._number(event.bytes)
        memory = (escaped(self.facts.memory_name(event.offset)),) if self.facts.memories else ()
        texts = escaped(event.operator), self._description(event), escaped(event.tensor), *memory, offset, size
        return (str(event.tick), *texts, self._number(event.live_bytes), *self._times(event))

    def _description(self, event: Event) -> str:
        """Returns the event in words; a chunk has the name of the tensor that owns it."""
        match event.kind:
            case "overwrite":
                text = f"over {self.names.pop(event.overwrites, f'chunk {event.overwrites}')}"
            case "view":
                text = f"in {self.names.get(event.chunk, f'chunk {event.chunk}')}"
            case "free":
                self.names.pop(event.chunk, "")
                text = FREE
            case "grow" | "shrink":
                text = "arena" if self.facts.mode == "static" else f"heap {event.kind}s"
            case "end":
                took = event.seconds - self.begun.pop(event.tick, event.seconds)
                text = f"ran {1e3 * took:.3f} ms" if self.facts.is_timed else "runs"
            case _:
                text = self._copied(event) or event.kind
        if event.kind in ARRIVALS:
            self.names[event.chunk] = escaped(event.tensor) or f"chunk {event.chunk}"
            self.memories[event.chunk] = escaped(self.facts.memory_name(event.offset))
        return text

    def _copied(self, event: Event) -> str:
        """Returns from which memory a chunk is copied that begins, "" if it is from none."""
        move = self.around.moves.get(event.tick)
        if move is None or event.kind not in ARRIVALS or event.chunk != move.chunk:
            return ""
        if not move.is_weight:
            return f"copy from {self.memories[move.source]}"
        return f"copy from {escaped(self.facts.memories[self.around.weights[move.source].memory].name)}"

    def _times(self, event: Event) -> tuple[str, ...]:
        if not self.facts.is_timed:
            return ()
        is_beside = event.kind in (END, *ARRIVALS) and self.around.is_beside(event.tick)
        return f"{1e3 * event.seconds:.3f}", COPY_ENGINE if is_beside else str(event.thread)

    def _number(self, number: int) -> str:
        return f"{number:,}" if self.has_groups else str(number)


@frozen(eq=False)
class _Table:
    """The columns of a trace on a screen."""

    facts: RunInfo
    around: Around
    screen: Screen
    names: tuple[str, ...]
    widths: tuple[int, ...]

    @classmethod
    def of(cls, trace: Trace, screen: Screen) -> "_Table":
        """Returns a table whose columns are as wide as their texts, as far as the screen allows."""
        memory = (_MEMORY,) if trace.facts.memories else ()
        names = _NAMES[:4] + memory + _NAMES[4:] + (_TIMES if trace.facts.is_timed else ())
        widths, around = list(map(len, names)), between_memories(trace)
        for row in _RowBuilder(trace.facts, around, screen.is_terminal).rows(trace):
            widths = [max(w, visible_width(c)) for w, c in zip(widths, row.cells, strict=True)]
        return cls(trace.facts, around, screen, names, tuple(_fitted(names, widths, screen.width)))

    def title(self) -> str:
        """Returns the line of column names."""
        return self._line(self.names).rstrip()

    def lines(self, trace: Trace) -> Iterator[str]:
        """Yields the lines of events."""
        for row in _RowBuilder(self.facts, self.around, self.screen.is_terminal).rows(trace):
            yield self._drawn(row)

    def _drawn(self, row: _Row) -> str:
        cells = row.cells
        if self.screen.is_terminal and not row.is_first:
            cells = ("", "", *cells[2:])
        place, line = self._line(cells[:2]), self._line(cells[2:], start=2) + self._bar(row.live)
        if row.is_peak:
            return self.screen.styled(f"{place}{_GAP}{line}{_MARK}", "1;33")
        return f"{place}{_GAP}{self.screen.styled(line.rstrip(), _STYLES.get(row.kind, ''))}".rstrip()

    def _line(self, cells: Sequence[str], start: int = 0) -> str:
        """Returns the cells of the columns from number `start` on, joined."""
        return _GAP.join(
            padded(shortened(c, w, self.screen.dots), w, right=name not in _LEFT)
            for c, w, name in zip(cells, self.widths[start:], self.names[start:], strict=False)
        )

    def _bar(self, live: int) -> str:
        """Returns the bar of live bytes relative to the peak; empty where there is no space for it."""
        used = sum(self.widths) + len(_GAP) * len(self.widths)
        most = self.facts.peak_bytes
        if self.screen.width < used + _BAR + len(_MARK) or not self.screen.has_blocks or not most:
            return ""
        eighths = min(-(-live * _BAR * 8 // most), _BAR * 8)
        return _GAP + padded("█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip(), _BAR)


_STYLES = {FREE: DIM, OVERWRITE: "35", VIEW: "36", GROW: "33", SHRINK: "33", STAGE: BOLD, END: DIM}


def _fitted(names: Sequence[str], widths: list[int], width: int) -> list[int]:
    """Returns the widths of columns: those of texts shrink, the widest first, until a line fits the terminal."""
    if not width:
        return widths
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) + len(_MARK) - width
    texts = [i for i, name in enumerate(names) if name in _LEFT]
    while excess > 0 and any(widths[i] > _NARROWEST for i in texts):
        widest = max(texts, key=lambda i: widths[i])
        widths[widest] -= 1
        excess -= 1
    return widths
