"""What events tell of a whole trace: all there is where a file has nothing else, and a test of what it says."""

from collections.abc import Iterable

from attrs import define

from engine.trace.trace import (
    ARRIVALS,
    ESTIMATED,
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
"""The model of a heap that gave addresses, but is not known by name."""
_RESIZES = (GROW, SHRINK)
_ENDS = (FREE, SHRINK)
"""What a tick may begin with, to clear away what the one before left: behind the last one there is no other."""


def info_of(events: Iterable[Event], model: str) -> RunInfo:
    """What is not told stays empty: the strategy, the alignment, constants. Goes through all events."""
    seen = Totals()
    for event in events:
        seen.enter(event)
    return seen.facts(model)


@define(eq=False)
class Totals:
    """What was told so far. Sizes in bytes; `ticks` are those in which something happens that is no end."""

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
        """One event after the other."""
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

    def facts(self, model: str) -> RunInfo:
        """An arena is there before all that lies in it, and ends where the last chunk does; heaps grow, and round up.

        A lower bound is what is alive at once. Whether times were measured is not told; so much is not claimed.
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
