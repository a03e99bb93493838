"""Events as formats need them: in nanoseconds, with the operators of a thread one after the other, with live chunks."""

from collections.abc import Iterable, Iterator, Mapping

from attrs import define, evolve, field

from engine.text.layer_names import layers_around
from engine.trace.trace import ALLOC, BEGIN, END, FREE, NOT_RUN, OVERWRITE, PEAK, Event, Trace

TICK = 1_000_000
"""Nanoseconds that a tick is shown as where a run has no times: a millisecond."""
_SECOND = 1e9


def nanoseconds(event: Event) -> int:
    """Returns the time of an event from the start of the run; events of a trace are in order of it.

    Where a run has no times, an operator takes the whole of its tick.
    """
    if event.seconds == NOT_RUN:
        return (event.tick + (event.kind == END)) * TICK
    return round(event.seconds * _SECOND)


def layer_note(event: Event) -> Mapping[str, str]:
    """Returns the innermost layer of an event's operator as `layer`; nothing where the name of that is no path."""
    layers = layers_around(event.operator)
    return {"layer": layers[-1]} if layers else {}


def without_overlaps(events: Iterable[Event]) -> Iterator[Event]:
    """Yields the same events, where no two operators of a thread overlap; formats that nest slices need that.

    Where an operator begins at the time at which the one before it ends, the end comes first. An operator that still
    runs after the last event ends there.
    """
    running: dict[int, Event] = {}
    event = None
    for event in events:
        before = running.get(event.thread)
        if event.kind == BEGIN:
            if before is not None:
                yield _end(before, event)
            running[event.thread] = event
        elif event.kind == END:
            if before is None or before.tick != event.tick:
                continue  # its end was yielded already
            del running[event.thread]
        yield event
    if event is not None:
        yield from (_end(begun, event) for begun in running.values())


def _end(begun: Event, now: Event) -> Event:
    return evolve(begun, kind=END, seconds=now.seconds, live_bytes=now.live_bytes, footprint_bytes=now.footprint_bytes)


@define(eq=False)
class LiveChunks:
    """The event that began each live chunk, by chunk, and how many of the bytes of all live chunks are padding."""

    born: dict[int, Event] = field(factory=dict)
    padding: int = 0

    def enter(self, event: Event) -> None:
        """Takes the next event."""
        if event.kind == FREE:
            self._leave(event.chunk)
        elif event.kind == OVERWRITE:
            self._leave(event.overwrites)
        if event.kind in {ALLOC, OVERWRITE}:
            self.born[event.chunk] = event
            self.padding += event.padding

    def _leave(self, chunk: int) -> None:
        if chunk in self.born:
            self.padding -= self.born.pop(chunk).padding


def alive_at_peak(trace: Trace) -> tuple[Event, ...]:
    """Returns the events that began the chunks that are alive at the peak, in order; none where nothing ever is."""
    alive = LiveChunks()
    for event in trace:
        if event.kind == PEAK:
            return tuple(alive.born.values())
        alive.enter(event)
    return ()
