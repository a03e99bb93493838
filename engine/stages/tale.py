"""The life of every byte in a run of several stages, as one stream: what is alive across a cut comes and goes once."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from attrs import define, evolve, field

from engine.stages.stage import Stage
from engine.timed_trace import timed_trace
from engine.timing import Timing
from engine.trace import MARK, NOT_RUN, NOTHING, NOWHERE, Event, Tenants, tenants, trace


def trace_stages(stages: Sequence[Stage], mode: str = "static") -> tuple[Event, ...]:
    """All events of the stages of a run, in order; ticks go on from stage to stage. Raises OptionError.

    A stage begins with an event of the kind "stage": `bytes` is the arena that it needs, `tensor` names what decided
    its sizes. What it takes over is not allocated again, and what it leaves to the next one is not freed.
    """
    tale = _Tale(mode)
    for stage, after in _in_pairs(stages):
        tale.tell(stage, after, trace(stage.plan, mode), NOT_RUN)
    return tale.finished()


def timed_trace_stages(stages: Sequence[Stage], timings: Sequence[Timing], mode: str = "static") -> tuple[Event, ...]:
    """The same of a run that was timed, with the begin and the end of each operator; see `Executable.timed`."""
    tale, begin = _Tale(mode), 0.0
    for stage, after in _in_pairs(stages):
        ticks = _ticks(stage)
        ran = [evolve(t, tick=t.tick - tale.tick) for t in timings if tale.tick <= t.tick < tale.tick + ticks]
        tale.tell(stage, after, timed_trace(stage.plan, ran, mode), begin)
        begin = max((t.end for t in ran), default=begin)
    return tale.finished()


@define(eq=False)
class _Tale:
    """What was told so far. Chunks are numbered anew; `handed` are those that the next stage takes over, by tensor.

    `sizes` by chunk, in bytes: of several stages the last one counts, as what lies fixed has no padding any more.
    """

    mode: str
    tick: int = 0
    events: list[Event] = field(factory=list)
    sizes: list[int] = field(factory=list)
    handed: Mapping[str, int] = field(factory=dict)
    decided: tuple[str, ...] = ()
    arena_bytes: int = 0

    def tell(self, stage: Stage, after: Sequence[str], events: Sequence[Event], begin: float) -> None:
        """Adds a stage, which began after so many seconds, and `after` which some tensors are still alive."""
        found, lowered = tenants(stage.plan, self.mode), stage.plan.lowered
        taken = _chunks(stage, found, {name: lowered.inputs[name] for name in self.handed})
        numbers = self._numbers(found, {chunk: self.handed[name] for name, chunk in taken.items()})
        left = _chunks(stage, found, {name: lowered.outputs[name] for name in after})
        self._mark(stage, begin)
        kept, inherited = set(left.values()), set(taken.values())
        for event in events:
            if (event.kind == "alloc" and event.chunk in inherited) or (event.kind == "free" and event.chunk in kept):
                continue
            self.events.append(self._continued(event, numbers, begin))
        self.handed = {name: numbers[chunk] for name, chunk in left.items()}
        self.tick, self.decided = self.tick + _ticks(stage), tuple(stage.reads.values())

    def finished(self) -> tuple[Event, ...]:
        """All events, with what is live after each."""
        live, told = 0, list[Event]()
        for event in self.events:
            size = self.sizes[event.chunk] if event.chunk != NOTHING else event.bytes
            live += self._delta(event)
            told.append(evolve(event, bytes=size, live_bytes=live))
        return tuple(told)

    def _delta(self, event: Event) -> int:
        if event.chunk == NOTHING:
            return 0
        if event.kind == "free":
            return -self.sizes[event.chunk]
        return self.sizes[event.chunk] - (self.sizes[event.overwrites] if event.overwrites != NOTHING else 0)

    def _numbers(self, found: Tenants, known: Mapping[int, int]) -> list[int]:
        """The number of each chunk of a stage; `known` were there before."""
        numbers = []
        for chunk, size in enumerate(found.chunks.size.tolist()):
            if chunk in known:
                self.sizes[known[chunk]] = size
            else:
                self.sizes.append(size)
            numbers.append(known.get(chunk, len(self.sizes) - 1))
        return numbers

    def _mark(self, stage: Stage, begin: float) -> None:
        if self.mode == "static":
            self.arena_bytes = max(self.arena_bytes, stage.arena_bytes)
        decided, thread = ", ".join(self.decided), NOT_RUN if begin == NOT_RUN else 0
        name, size = f"{MARK} {stage.number}", self.arena_bytes
        self.events.append(Event(self.tick, name, MARK, decided, NOTHING, NOWHERE, size, 0, NOTHING, begin, thread))

    def _continued(self, event: Event, numbers: Sequence[int], begin: float) -> Event:
        """As part of the whole. Nothing happens before its stage begins, though it may have no call that says when."""
        return evolve(
            event,
            tick=event.tick + self.tick,
            chunk=NOTHING if event.chunk == NOTHING else numbers[event.chunk],
            overwrites=NOTHING if event.overwrites == NOTHING else numbers[event.overwrites],
            seconds=max(event.seconds, begin),
        )


def _ticks(stage: Stage) -> int:
    """Its calls, feeding and fetching."""
    return len(stage.plan.lowered.stages) + 2


def _in_pairs(stages: Sequence[Stage]) -> Iterator[tuple[Stage, tuple[str, ...]]]:
    """Each stage with the tensors that the next one takes over."""
    for stage, after in zip_longest(stages, stages[1:]):
        yield stage, tuple(after.plan.lowered.inputs) if after else ()


def _chunks(stage: Stage, found: Tenants, values: Mapping[str, int]) -> dict[str, int]:
    """The chunks of some tensors."""
    return {name: int(found.chunks.chunk_of[stage.plan.ids[value]]) for name, value in values.items()}
