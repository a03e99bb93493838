"""Addresses for chunks that have none: first fit, so that a picture by address can be drawn of reference counting."""

from array import array

import numpy as np
from attrs import define, field, frozen

from allocator.heaps import simulate
from allocator.heaps.events import ALLOC, Events
from allocator.heaps.events import FREE as GIVEN_BACK
from allocator.heaps.growing import Growing
from allocator.problem import Column, column
from engine.trace.trace import ARRIVALS, FREE, OVERWRITE, Event, Trace

_TIGHT = Growing("first fit", is_first=True, rounding=1)
"""Sizes have their padding already."""


@frozen(eq=False)
class LaidOut:
    """The address of each chunk that has bytes, in the order in which they come, and the bytes that hold all."""

    offset: Column = field(converter=column)
    bytes: int


def laid_out(trace: Trace) -> LaidOut:
    """The chunks of a trace, at the lowest gap that is large enough. It keeps three numbers an event."""
    asked = _Asked()
    for event in trace:
        asked.meet(event)
    found = simulate(_TIGHT, asked.events())
    return LaidOut(found.offset, found.peak_reserved)


@define(eq=False)
class _Asked:
    """What a heap is asked for; `alive` has the number of each chunk that is there."""

    number: "array[int]" = field(factory=lambda: array("q"))
    sign: "array[int]" = field(factory=lambda: array("q"))
    size: "array[int]" = field(factory=lambda: array("q"))
    alive: dict[int, int] = field(factory=dict)

    def meet(self, event: Event) -> None:
        """One event after the other."""
        if event.kind in {FREE, OVERWRITE}:
            gone = self.alive.pop(event.chunk if event.kind == FREE else event.overwrites, None)
            if gone is not None:
                self._ask(gone, GIVEN_BACK)
        if event.kind in ARRIVALS and event.bytes:
            self.alive[event.chunk] = len(self.size)
            self._ask(len(self.size), ALLOC)
            self.size.append(event.bytes)

    def _ask(self, number: int, sign: int) -> None:
        self.number.append(number)
        self.sign.append(sign)

    def events(self) -> Events:
        """As columns."""
        return Events(np.arange(len(self.number)), self.number, self.sign, self.size)
