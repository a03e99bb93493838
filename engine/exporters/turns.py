"""Operators of a thread one after the other, for formats in which what begins last ends first."""

from collections.abc import Iterable, Iterator

from attrs import evolve

from engine.trace.trace import BEGIN, END, Event


def in_turns(events: Iterable[Event]) -> Iterator[Event]:
    """The same events; where an operator begins in the moment in which the one before it ends, the end comes first.

    What still runs in the end ends there.
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
                continue  # it was told already
            del running[event.thread]
        yield event
    if event is not None:
        yield from (_end(begun, event) for begun in running.values())


def _end(begun: Event, now: Event) -> Event:
    return evolve(begun, kind=END, seconds=now.seconds, live_bytes=now.live_bytes, footprint_bytes=now.footprint_bytes)
