"""Who is alive at the peak."""

from engine.trace import ALLOC, FREE, OVERWRITE, PEAK, Event, Trace


def alive_at_peak(trace: Trace) -> tuple[Event, ...]:
    """The event that brought each chunk that is alive when most is, in order; nobody where nothing ever is."""
    alive: dict[int, Event] = {}
    for event in trace:
        if event.kind == PEAK:
            return tuple(alive.values())
        track(alive, event)
    return ()


def track(alive: dict[int, Event], event: Event) -> None:
    """Keeps who is alive, by chunk, up to date."""
    if event.kind in {FREE, OVERWRITE}:
        alive.pop(event.overwrites if event.kind == OVERWRITE else event.chunk, None)
    if event.kind in {ALLOC, OVERWRITE}:
        alive[event.chunk] = event
