"""What formats show around operators and tensors: cascades and their stripes, and the copies between memories."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from attrs import evolve, field, frozen

from engine.trace.details import Move, StripeRun, Weight
from engine.trace.trace import NOWHERE, Event, RunInfo, Trace


@frozen
class Group:
    """Operators that belong together, in the ticks [begin, end): a cascade, or a stripe of it."""

    name: str
    begin: int
    end: int
    notes: Mapping[str, int | str] = field(factory=dict)


@frozen(eq=False)
class Around:
    """What is around operators: the groups that begin in a tick, outer ones first, and the copies between memories.

    Behind the operator of a tick, `closing[tick]` groups end. `moves` has the copies by tick, `moved` by chunk, and by
    the inverted number of a weight, the ticks of those that read or write it.
    """

    opening: Mapping[int, Sequence[Group]]
    closing: Mapping[int, int]
    moves: Mapping[int, Move]
    moved: Mapping[int, Sequence[int]]
    weights: Sequence[Weight]

    def is_beside(self, tick: int) -> bool:
        """Returns whether a copy engine makes the copy of a tick, beside the calls of others."""
        return tick in self.moves and self.moves[tick].is_beside


def around(trace: Trace) -> Around:
    """Returns what is around the operators of a trace; nothing for one without details."""
    details, opening, closing = trace.details(), defaultdict[int, list[Group]](list), Counter[int]()
    for group in _groups(details.stripes):
        opening[group.begin].append(group)
        closing[group.end - 1] += 1
    moves, moved = {move.tick: move for move in details.moves}, defaultdict[int, list[int]](list)
    for move in details.moves:
        for tensor in (move.chunk, ~move.source if move.is_weight else move.source):
            moved[tensor].append(move.tick)
    return Around(opening, closing, moves, moved, details.weights)


def between_memories(trace: Trace) -> Around:
    """Returns what is around the operators of a trace in several memories, nothing for others: it takes time."""
    return around(trace) if trace.facts.memories else Around({}, {}, {}, {}, ())


def _groups(stripes: Sequence[StripeRun]) -> Iterator[Group]:
    for _, runs in groupby(stripes, key=lambda run: run.number):
        each = list(runs)
        yield Group(f"cascade {each[0].cascade}", each[0].begin, each[-1].end, {"stripes": each[0].count})
        for run in each:
            first, last = run.rows
            notes: dict[str, int | str] = {"cascade": run.cascade}
            line = "column" if run.is_columns else "row"
            notes |= {f"first_{line}": first, f"last_{line}": last - 1} if first < last else {}
            yield Group(f"stripe {run.stripe + 1} of {run.count}", run.begin, run.end, notes)


def in_its_memory(event: Event, facts: RunInfo) -> Event:
    """Returns an event whose offset counts from the first byte of its memory, as those of weights do."""
    memory = facts.memory_at(event.offset)
    return event if memory == NOWHERE else evolve(event, offset=event.offset - facts.memories[memory].start)
