"""When events happen, for formats that know times and no ticks."""

from engine.trace.trace import END, NOT_RUN, Event

TICK = 1_000_000
"""Nanoseconds that a tick is shown as, where a run has no times: a millisecond."""
_SECOND = 1e9


def nanoseconds(event: Event) -> int:
    """From the start of the run. Where there are no times an operator takes the whole of its tick.

    Events of a trace are in order of it.
    """
    if event.seconds == NOT_RUN:
        return (event.tick + (event.kind == END)) * TICK
    return round(event.seconds * _SECOND)
