"""Who is alive while a trace is told."""

from attrs import define, field

from engine.trace.trace import ALLOC, FREE, OVERWRITE, PEAK, Event, Trace


@define(eq=False)
class LiveChunks:
    """The event that brought each chunk, by chunk, and how many of the bytes of all are padding."""

    born: dict[int, Event] = field(factory=dict)
    padding: int = 0

    def meet(self, event: Event) -> None:
        """One event after the other."""
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
    """The events that brought the chunks that are alive when most is, in order; none where nothing ever is."""
    alive = LiveChunks()
    for event in trace:
        if event.kind == PEAK:
            return tuple(alive.born.values())
        alive.meet(event)
    return ()
