"""The facts of a whole run: those that its events determine, and checks of what a file claims."""

from collections.abc import Iterable, Iterator

from attrs import define

from engine.readers.values import MOST_THREADS, MOST_TICKS, Location, shown
from engine.trace.trace import (
    ARRIVALS,
    ESTIMATED,
    EVICT,
    FREE,
    GROW,
    NOT_RUN,
    NOWHERE,
    PEAK,
    SHRINK,
    STAGE,
    UNTIMED,
    Event,
    RunInfo,
)

UNNAMED = "unnamed"
"""The name of a heap model that gave addresses, where the file does not name it."""
_RESIZES = (GROW, SHRINK)
_ENDS = (FREE, SHRINK)
"""Kinds of events that may begin a tick without counting as one: they end what the tick before it left."""


def info_of(events: Iterable[Event], model: str) -> RunInfo:
    """Returns the facts that events determine; strategy, alignment and constants stay empty. Reads all events."""
    totals = Totals()
    for event in events:
        totals.enter(event)
    return totals.info(model)


@define(eq=False)
class Totals:
    """Totals of the events so far. Sizes in bytes; `ticks` ends behind the last event that is not of _ENDS."""

    is_empty: bool = True
    is_one: bool = True
    has_grown: bool = False
    before: str = STAGE
    has_places: bool = False
    has_no_places: bool = False
    highest: int = 0
    footprint: int = 0
    ticks: int = 0
    stages: int = 1
    threads: int = 1
    is_timed: bool = False
    peak: tuple[int, int, str] = (0, 0, "")

    def enter(self, event: Event) -> None:
        """Takes the next event."""
        kind = event.kind
        if kind in ARRIVALS and event.bytes:
            self.has_places |= event.offset != NOWHERE
            self.has_no_places |= event.offset == NOWHERE
            self.highest = max(self.highest, event.offset + event.bytes)
        elif kind == PEAK:
            self.peak = event.bytes, event.tick, event.operator
        elif kind in _RESIZES:
            self.is_one &= kind == GROW and self.before == STAGE
            self.has_grown |= kind == GROW
        elif kind == EVICT:
            self.is_one = False  # a plan evicts nothing
        self.footprint = max(self.footprint, event.footprint_bytes)
        if event.tick >= self.ticks:
            self.ticks = event.tick + (kind not in _ENDS)
        self._enter_run(event)
        self.before, self.is_empty = kind, False

    def _enter_run(self, event: Event) -> None:
        self.stages = max(self.stages, event.stage)
        if event.thread >= self.threads:
            self.threads = event.thread + 1
        self.is_timed = event.seconds != NOT_RUN

    def info(self, model: str) -> RunInfo:
        """Returns the facts of the events.

        A run is static if its memory grows once, before all chunks, and to just their end; a heap grows more often and
        rounds up. The lower bound is the peak. Times count as estimated, as events do not say that they were measured.
        """
        is_static = self.has_grown and self.is_one and self.highest == self.footprint
        most, tick, operator = self.peak
        return RunInfo(
            model=model,
            mode="static" if is_static else "dynamic",
            heap=UNNAMED if self.has_places and not is_static else "",
            arena_bytes=self.footprint if is_static else 0,
            lower_bound=most if is_static else 0,
            footprint_bytes=self.footprint,
            peak_bytes=most,
            peak_tick=tick,
            peak_operator=operator,
            possible_peak_bytes=most,
            ticks=self.ticks,
            stages=self.stages,
            clock=ESTIMATED if self.is_timed else UNTIMED,
            threads=self.threads,
        )


_Fault = tuple[str, str]
"""The name of a fact, and the fault in it."""


def check_alone(facts: RunInfo, location: Location) -> None:
    """Checks facts against each other, before any event is read. Raises TraceFormatError."""
    for name, what in _odd(facts):
        raise location.wrong(what, f"facts.{name}")


def check_facts(facts: RunInfo, totals: Totals, location: Location) -> None:
    """Checks facts against all events. Raises TraceFormatError.

    The number of ticks has a lower bound only: a tick that makes views of constants has no events.
    """
    for name, what in (*_unequal(facts, totals), *_too_small(facts, totals), *_of_another_kind(facts, totals)):
        raise location.wrong(what, f"facts.{name}")


def _odd(facts: RunInfo) -> Iterator[_Fault]:
    if facts.alignment & (facts.alignment - 1):
        yield "alignment", f"{facts.alignment} is not a power of two"
    if facts.lower_bound > facts.arena_bytes:
        yield "lower_bound", f"{facts.lower_bound}, above the arena of {facts.arena_bytes}"
    if facts.possible_peak_bytes < facts.peak_bytes:
        yield "possible_peak_bytes", f"{facts.possible_peak_bytes}, below the peak of {facts.peak_bytes}"
    if facts.heap and facts.mode == "static":
        yield "heap", "a static run has one arena, and no heap"
    if facts.mode == "static" and facts.arena_bytes != facts.footprint_bytes:
        yield "arena_bytes", f"{facts.arena_bytes}, but the memory of this static run has {facts.footprint_bytes}"
    yield from _odd_memories(facts)
    for name, most in (("ticks", MOST_TICKS), ("threads", MOST_THREADS if facts.is_timed else 1)):
        if getattr(facts, name) > most:
            yield name, f"{getattr(facts, name)}, where {most} is the most"


def _odd_memories(facts: RunInfo) -> Iterator[_Fault]:
    end = 0
    for part in facts.memories:
        if part.start < end:
            yield "memories", f"{shown(part.name)} begins at {part.start}, inside the one before, which ends at {end}"
        if part.used_bytes > part.capacity or part.seconds < 0:
            yield "memories", f"{shown(part.name)} has {part.used_bytes} of {part.capacity} bytes, {part.seconds} s"
        end = part.start + part.arena_bytes
    if end > facts.arena_bytes:
        yield "memories", f"they end at {end}, behind the arena of {facts.arena_bytes}"
    if facts.memories and facts.mode != "static":
        yield "memories", f"a {facts.mode} run has one memory"


def _unequal(facts: RunInfo, totals: Totals) -> Iterator[_Fault]:
    most, tick, operator = totals.peak
    expected = {"peak_bytes": most, "peak_tick": tick, "peak_operator": operator}
    expected |= {"footprint_bytes": totals.footprint, "stages": totals.stages}
    for name, value in expected.items():
        if getattr(facts, name) != value:
            yield name, f"{shown(getattr(facts, name))}, but the events say {shown(value)}"


def _too_small(facts: RunInfo, totals: Totals) -> Iterator[_Fault]:
    for name in ("ticks", "threads"):
        if getattr(facts, name) < getattr(totals, name):
            yield name, f"{getattr(facts, name)}, but the events have {getattr(totals, name)}"


def _of_another_kind(facts: RunInfo, totals: Totals) -> Iterator[_Fault]:
    if not totals.is_empty and facts.is_timed != totals.is_timed:
        yield "clock", f"{facts.clock!r}, but the events have {'times' if totals.is_timed else 'no times'}"
    if totals.has_places and facts.mode == "dynamic" and not facts.heap:
        yield "mode", "a dynamic run without a heap, but the events have addresses"
    if totals.has_no_places and facts.mode == "static":
        yield "mode", "a static run, but events are without addresses"
