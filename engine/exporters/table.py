"""Trace events as a table for people: what comes, goes and is written over in each tick, and what is alive then.

Operators are a column and not lines of their own; where a run has times, the line at which one ends tells how long it
took. On a terminal names are shortened, and numbers in groups of three; elsewhere they are as they are.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import BinaryIO

from attrs import define, field, frozen

from engine.exporters.words import foot, head
from engine.text.screen import BOLD, DIM, FILE, Screen, padded, printed, shortened, visible_width
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
_TIMES = ("ms", "thread")
_LEFT = ("operator", "event", "tensor")
_NARROWEST = 6
_BAR = 12
"""Columns of the bar that shows what is alive."""
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def write(trace: Trace, out: BinaryIO) -> None:
    """To a file."""
    show(trace, out, FILE)


def show(trace: Trace, out: BinaryIO, screen: Screen) -> None:
    """Goes through the trace twice: how wide columns are is known in the end only."""
    for line in head(trace.facts):
        screen.put(screen.styled(line, BOLD), out)
    screen.put("", out)
    sheet = _Sheet.of(trace, screen)
    screen.put(screen.styled(sheet.title(), DIM), out)
    for line in sheet.lines(trace):
        screen.put(line, out)
    screen.put("", out)
    for line in foot(trace.facts):
        screen.put(screen.styled(line, BOLD), out)


@frozen(eq=False)
class _Row:
    """A line: the texts of the columns, and what it is, to be drawn as such."""

    cells: tuple[str, ...]
    kind: str
    live: int
    is_peak: bool = False
    is_first: bool = False


@define(eq=False)
class _Teller:
    """Events to rows. It keeps the names of what is alive, and when what runs began."""

    facts: RunInfo
    has_groups: bool
    names: dict[int, str] = field(factory=dict)
    begun: dict[int, float] = field(factory=dict)

    def rows(self, events: Iterable[Event]) -> Iterator[_Row]:
        """One an event, without those that say nothing new; the row of the peak is marked."""
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
        """Where there are no times, an operator that nothing else is told of begins; else it ends."""
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
        offset = "" if event.offset == NOWHERE else self._number(event.offset)
        size = "" if event.kind == END else self._number(event.bytes)
        told = printed(event.operator), self._told(event), printed(event.tensor), offset, size
        return (str(event.tick), *told, self._number(event.live_bytes), *self._times(event))

    def _told(self, event: Event) -> str:
        """What happens, in words; names of chunks are those of the tensors that have their bytes."""
        match event.kind:
            case "overwrite":
                told = f"over {self.names.pop(event.overwrites, f'chunk {event.overwrites}')}"
            case "view":
                told = f"in {self.names.get(event.chunk, f'chunk {event.chunk}')}"
            case "free":
                self.names.pop(event.chunk, "")
                told = FREE
            case "grow" | "shrink":
                told = "arena" if self.facts.mode == "static" else f"heap {event.kind}s"
            case "end":
                took = event.seconds - self.begun.pop(event.tick, event.seconds)
                told = f"ran {1e3 * took:.3f} ms" if self.facts.is_timed else "runs"
            case _:
                told = event.kind
        if event.kind in ARRIVALS:
            self.names[event.chunk] = printed(event.tensor) or f"chunk {event.chunk}"
        return told

    def _times(self, event: Event) -> tuple[str, ...]:
        return (f"{1e3 * event.seconds:.3f}", str(event.thread)) if self.facts.is_timed else ()

    def _number(self, number: int) -> str:
        return f"{number:,}" if self.has_groups else str(number)


@frozen(eq=False)
class _Sheet:
    """Columns of a trace on a screen."""

    facts: RunInfo
    screen: Screen
    names: tuple[str, ...]
    widths: tuple[int, ...]

    @classmethod
    def of(cls, trace: Trace, screen: Screen) -> "_Sheet":
        """With columns as wide as what will stand in them, as far as the screen allows."""
        names = _NAMES + (_TIMES if trace.facts.is_timed else ())
        widths = list(map(len, names))
        for row in _Teller(trace.facts, screen.is_terminal).rows(trace):
            widths = [max(w, visible_width(c)) for w, c in zip(widths, row.cells, strict=True)]
        return cls(trace.facts, screen, names, tuple(_fitted(names, widths, screen.width)))

    def title(self) -> str:
        """The line of names."""
        return self._line(self.names).rstrip()

    def lines(self, trace: Trace) -> Iterator[str]:
        """All others."""
        for row in _Teller(self.facts, self.screen.is_terminal).rows(trace):
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
        """Cells of the columns from that number on."""
        dots = "…" if self.screen.has_blocks else "..."
        return _GAP.join(
            padded(shortened(c, w, dots), w, right=name not in _LEFT)
            for c, w, name in zip(cells, self.widths[start:], self.names[start:], strict=False)
        )

    def _bar(self, live: int) -> str:
        """What is alive, beside the most that ever is; where there is room for it."""
        used = sum(self.widths) + len(_GAP) * len(self.widths)
        most = self.facts.peak_bytes
        if self.screen.width < used + _BAR + len(_MARK) or not self.screen.has_blocks or not most:
            return ""
        eighths = min(-(-live * _BAR * 8 // most), _BAR * 8)
        return _GAP + padded("█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip(), _BAR)


_STYLES = {FREE: DIM, OVERWRITE: "35", VIEW: "36", GROW: "33", SHRINK: "33", STAGE: BOLD, END: DIM}


def _fitted(names: Sequence[str], widths: list[int], width: int) -> list[int]:
    """Columns of names give way, the widest first, until a line fits a terminal of so many columns."""
    if not width:
        return widths
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) + len(_MARK) - width
    texts = [i for i, name in enumerate(names) if name in _LEFT]
    while excess > 0 and any(widths[i] > _NARROWEST for i in texts):
        widest = max(texts, key=lambda i: widths[i])
        widths[widest] -= 1
        excess -= 1
    return widths
