"""Addresses for chunks that have none: first fit, so that reference counting can be drawn by address."""

from attrs import field, frozen

from allocator.heaps import simulate
from allocator.heaps.growing import Growing
from allocator.problem import Column, column
from engine.trace.to_problem import heap_events
from engine.trace.trace import Trace

_TIGHT = Growing("first fit", is_first=True, rounding=1)
"""Sizes have their padding already."""


@frozen(eq=False)
class LaidOut:
    """The address of each chunk that has bytes, in the order in which they begin, and the bytes that hold all."""

    offset: Column = field(converter=column)
    bytes: int


def laid_out(trace: Trace) -> LaidOut:
    """Returns the chunks of a trace by first fit; a chunk that overwrites another lies where that one does.

    It keeps a few numbers an event.
    """
    events, blocks = heap_events(trace)
    run = simulate(_TIGHT, events)
    return LaidOut(run.offset[blocks], run.peak_reserved)
