"""Operators of a thread one after the other, for formats in which what begins last ends first."""

from collections.abc import Iterable, Iterator

from attrs import evolve

from engine.trace import BEGIN, END, Event


def in_turns(events: Iterable[Event]) -> Iterator[Event]:
    """The same events; where an operator begins in the moment in which the one before it ends, the end comes first."""
    running: dict[int, Event] = {}
    for event in events:
        before = running.get(event.thread)
        if event.kind == BEGIN:
            if before is not None:
                yield evolve(event, kind=END, tick=before.tick, operator=before.operator, schema=before.schema)
            running[event.thread] = event
        elif event.kind == END:
            if before is None or before.tick != event.tick:
                continue  # it was told already
            del running[event.thread]
        yield event
