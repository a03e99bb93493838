"""Checks each event of a trace that is read against the chunks that are alive and their total bytes."""

from collections.abc import Callable, Mapping

from attrs import define, field

from engine.readers.values import Location
from engine.trace.trace import (
    ALLOC,
    BEGIN,
    END,
    EVICT,
    FREE,
    GROW,
    NOT_RUN,
    NOTHING,
    NOWHERE,
    OVERWRITE,
    PEAK,
    SHRINK,
    STAGE,
    VIEW,
    Event,
)


@define(eq=False)
class Ledger:
    """The state of a run after the events so far; an impossible event raises TraceFormatError. Sizes in bytes."""

    location: Location
    alive: dict[int, Event] = field(factory=dict)
    begun: set[int] = field(factory=set)
    live: int = 0
    held: int = 0
    has_grown: bool = False
    tick: int = 0
    seconds: float = NOT_RUN
    is_empty: bool = True
    most_live: int = 0
    peaks: list[Event] = field(factory=list)

    def enter(self, event: Event) -> None:
        """Checks an event and updates the state. Raises TraceFormatError."""
        self._check_time(event)
        if event.overwrites != NOTHING and event.kind != OVERWRITE:
            raise self.location.wrong(f"{event.overwrites}, but this event overwrites nothing", "overwrites")
        _ENTRIES[event.kind](self, event)
        self._check_sums(event)

    def close(self) -> None:
        """Checks the end of the file: nothing is alive, and the peak was there. Raises TraceFormatError."""
        if self.begun:
            raise self.location.wrong(
                f"the file ends while the operator of tick {min(self.begun)} runs: it is cut short"
            )
        if self.alive:
            raise self.location.wrong(f"the file ends while {len(self.alive)} chunks are alive: it is cut short")
        if self.most_live and not self.peaks:
            raise self.location.wrong(f"the peak, of {self.most_live} bytes, has no event")
        if self.peaks and self.peaks[0].bytes != self.most_live:
            raise self.location.wrong(f"{self.most_live} bytes were alive at once, more than at the event of the peak")

    def _check_time(self, event: Event) -> None:
        if event.seconds == NOT_RUN and event.tick < self.tick:
            raise self.location.wrong(f"{event.tick} comes after {self.tick}", "tick")
        is_first_time = event.seconds != NOT_RUN == self.seconds and not self.is_empty
        if event.seconds < self.seconds or is_first_time:
            raise self.location.wrong(f"{event.seconds!r} comes after {self.seconds!r}", "seconds")
        self.tick, self.seconds, self.is_empty = event.tick, event.seconds, False

    def _check_sums(self, event: Event) -> None:
        if event.live_bytes != self.live:
            raise self.location.wrong(f"{event.live_bytes}, but {self.live} bytes are alive", "live_bytes")
        held = self.held if self.has_grown else event.footprint_bytes  # without a memory of its own, the live bytes
        if event.footprint_bytes != held or not (self.has_grown or held in (0, self.live)):
            raise self.location.wrong(f"{event.footprint_bytes}, but the memory has {self.held}", "footprint_bytes")
        self.most_live = max(self.most_live, self.live)

    def _allocate(self, event: Event) -> None:
        if event.chunk == NOTHING:
            raise self.location.wrong("no chunk is allocated", "chunk")
        if event.chunk in self.alive:
            raise self.location.wrong(f"chunk {event.chunk} is alive already", "chunk")
        if event.padding > event.bytes:
            raise self.location.wrong(f"{event.padding} of {event.bytes} bytes", "padding")
        self.alive[event.chunk] = event
        self.live += event.bytes

    def _overwrite(self, event: Event) -> None:
        taken = self._alive(event.overwrites, "overwrites")
        if not _is_inside(event, taken):
            raise self.location.wrong(f"these bytes are not all in those of chunk {taken.chunk}", "offset")
        self._allocate(event)
        self.live -= self.alive.pop(taken.chunk).bytes

    def _free(self, event: Event) -> None:
        self._evict(event)
        self.live -= self.alive.pop(event.chunk).bytes

    def _evict(self, event: Event) -> None:
        """Checks that a chunk leaves as it came; of one that is evicted, the `free` follows."""
        freed = self._alive(event.chunk, "chunk")
        for name in ("bytes", "offset", "padding"):
            if getattr(freed, name) != getattr(event, name):
                raise self.location.wrong(f"chunk {event.chunk} was allocated with {getattr(freed, name)}", name)

    def _view(self, event: Event) -> None:
        """Checks a view; a view that is never read may be of a chunk that has ended."""
        if event.chunk == NOTHING:
            raise self.location.wrong("a view of no chunk", "chunk")
        if event.chunk in self.alive and not _is_inside(event, self.alive[event.chunk]):
            raise self.location.wrong(f"these bytes are not all in those of chunk {event.chunk}", "offset")

    def _begin(self, event: Event) -> None:
        if event.tick in self.begun:
            raise self.location.wrong("its operator has begun already", "tick")
        self.begun.add(event.tick)

    def _end(self, event: Event) -> None:
        if event.tick not in self.begun:
            raise self.location.wrong("its operator has not begun", "tick")
        self.begun.remove(event.tick)

    def _resize(self, event: Event) -> None:
        self.has_grown = True
        self.held += event.bytes if event.kind == GROW else -event.bytes
        if self.held < 0:
            raise self.location.wrong("more than there is", "bytes")

    def _peak(self, event: Event) -> None:
        if self.peaks:
            raise self.location.wrong("the peak is there twice", "kind")
        if event.bytes != self.live:
            raise self.location.wrong(f"{event.bytes}, but {self.live} bytes are alive at this peak", "bytes")
        self.peaks.append(event)

    def _stage(self, event: Event) -> None:
        """Accepts the begin of a stage, which changes no bytes."""

    def _alive(self, chunk: int, name: str) -> Event:
        if chunk not in self.alive:
            raise self.location.wrong(f"chunk {chunk} is not alive", name)
        return self.alive[chunk]


_ENTRIES: Mapping[str, Callable[[Ledger, Event], None]] = {
    STAGE: Ledger._stage,
    GROW: Ledger._resize,
    SHRINK: Ledger._resize,
    FREE: Ledger._free,
    BEGIN: Ledger._begin,
    ALLOC: Ledger._allocate,
    OVERWRITE: Ledger._overwrite,
    VIEW: Ledger._view,
    PEAK: Ledger._peak,
    END: Ledger._end,
    EVICT: Ledger._evict,
}


def _is_inside(event: Event, chunk: Event) -> bool:
    """Returns whether the bytes of an event lie in a chunk; only sizes count where there are no addresses."""
    if not event.bytes or NOWHERE in (event.offset, chunk.offset):
        return event.bytes <= chunk.bytes
    return chunk.offset <= event.offset and event.offset + event.bytes <= chunk.offset + chunk.bytes
