"""Converts a trace into what the allocator takes: a planning problem, the plan that placed it, events of a heap."""

from array import array
from collections.abc import Iterable

import numpy as np
from attrs import define, field

from allocator.heaps.events import EventLog, Events
from allocator.problem import FREE, Bound, Column, Plan, Problem, column
from engine.text.errors import EngineError
from engine.trace.trace import ARRIVALS, NOTHING, OVERWRITE, Event, Trace
from engine.trace.trace import FREE as FREED


def problem_of(trace: Trace) -> tuple[Problem, Plan]:
    """Returns the chunks of a static trace as `allocator.check` takes them. Chunk c of the trace is row c.

    It is the problem that was planned, except for what a trace does not hold: chunks may lie anywhere, and where
    operators may run at once, it describes this run alone. Raises EngineError for a trace of several stages or on a
    heap.
    """
    facts = trace.facts
    if facts.mode != "static" or facts.stages > 1:
        raise EngineError(
            f"a plan has one stage and one arena; this trace is {facts.mode} and has {facts.stages} stages"
        )
    history = _ChunkHistory()
    for event in trace:
        history.enter(event)
    return history.problem(facts.alignment), Plan(
        offset=[e.offset for e in history.chunks()],
        arena_bytes=facts.arena_bytes,
        bound=Bound(facts.lower_bound, facts.bound_reason),
        strategy=facts.strategy,
    )


def heap_events(events: Iterable[Event]) -> tuple[Events, Column]:
    """Returns the requests of a dynamic run to a heap, and the block of each chunk with bytes, in order of begin."""
    log, blocks = EventLog(), array("q")
    for event in events:
        if event.kind == FREED:
            log.end(event.tick, event.chunk)
        elif event.kind in ARRIVALS:
            block = log.begin(event.tick, event.chunk, event.bytes, event.overwrites)
            if event.bytes:
                blocks.append(block)
    return log.events(), column(blocks)


@define(eq=False)
class _ChunkHistory:
    """The event that began each chunk, and the tick in which the chunk ended."""

    born: dict[int, Event] = field(factory=dict)
    end: dict[int, int] = field(factory=dict)

    def enter(self, event: Event) -> None:
        """Takes the next event."""
        if event.kind == FREED:
            self.end[event.chunk] = event.tick
        elif event.overwrites != NOTHING or event.kind == "alloc":
            if event.chunk in self.born:
                raise EngineError(f"chunk {event.chunk} is allocated twice")
            self.born[event.chunk] = event
        if event.kind == OVERWRITE:
            self.end[event.overwrites] = event.tick + 1

    def chunks(self) -> list[Event]:
        """Returns the events that began the chunks, by number. Raises EngineError where a number is missing."""
        missing = next((c for c in range(len(self.born)) if c not in self.born), len(self.born))
        if missing < len(self.born):
            raise EngineError(f"chunk {missing} is missing, but there is a chunk with a larger number")
        return [self.born[c] for c in range(len(self.born))]

    def problem(self, alignment: int) -> Problem:
        """Returns the problem. Overwriters have alignment 1, as the root of their chain decides where they lie."""
        chunks = self.chunks()
        over = [e for e in chunks if e.overwrites != NOTHING]
        return Problem(
            begin=[e.tick for e in chunks],
            end=[self.end[e.chunk] for e in chunks],
            size=[e.bytes for e in chunks],
            alignment=[1 if e.overwrites != NOTHING else alignment for e in chunks],
            pinned=np.full(len(chunks), FREE),
            src=[e.chunk for e in over],
            dest=[e.overwrites for e in over],
            overwrite_offset=[e.offset - self.born[e.overwrites].offset for e in over],
        )
