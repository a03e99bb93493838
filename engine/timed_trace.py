"""The life of every byte in a run that was timed: when, and on which thread, operators ran and chunks came and went."""

from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve

from allocator.users import Users, users
from engine.placed import PlacedPlan
from engine.steps import to_program
from engine.timing import Timing
from engine.trace import NOTHING, NOWHERE, Change, Event, changes, tenants

_RANKS: Mapping[str, int] = {kind: rank for rank, kind in enumerate(("begin", "alloc", "overwrite", "end", "free"))}
"""Which of several events of one call comes first."""


def timed_trace(plan: PlacedPlan, timings: Sequence[Timing], mode: str = "static") -> tuple[Event, ...]:
    """All events of a run, by time, with the begin and the end of each operator; see `Executable.timed`.

    A chunk is allocated when the call that writes it begins, and free when the last call that uses it ends; outputs
    live to the end of the run. Raises OptionError.
    """
    found, made, live = tenants(plan, mode), list[Event](), 0
    moments = _moments(timings, len(plan.lowered.stages) + 1)
    happened = [*_calls(timings), *_chunks(changes(found.chunks), moments, users(to_program(plan.lowered, plan.ids)))]
    for moment, change in sorted(happened, key=_order):
        live += change.delta
        if change.chunk == NOTHING:
            name = plan.lowered.tick_name(moment.tick)
            event = Event(moment.tick, name, change.kind, "", NOTHING, NOWHERE, 0, live, NOTHING)
        else:
            event = found.event(change, moment.tick, live)
        made.append(evolve(event, seconds=moment.begin, thread=moment.thread))
    return tuple(made)


Happened = tuple[Timing, Change]
"""A change, and the call that brought it about; the `begin` of that one is when."""


def _order(happened: Happened) -> tuple[float, int, int, int]:
    """By time; a clock may be too coarse to tell calls apart that wait for each other."""
    moment, change = happened
    return moment.begin, moment.tick, _RANKS[change.kind], change.chunk


def _moments(timings: Sequence[Timing], fetch: int) -> dict[int, Timing]:
    """By tick. Feeding comes before all calls, fetching after them, on the caller's thread."""
    over = max((t.end for t in timings), default=0.0)
    return {0: Timing(0, 0, 0.0, 0.0), fetch: Timing(fetch, 0, over, over)} | {t.tick: t for t in timings}


def _calls(timings: Sequence[Timing]) -> Iterator[Happened]:
    for timing in timings:
        yield timing, Change(timing.tick, 0, "begin", NOTHING, 0)
        yield evolve(timing, begin=timing.end), Change(timing.tick, 0, "end", NOTHING, 0)


def _chunks(found: Iterator[Change], moments: Mapping[int, Timing], touched: Users) -> Iterator[Happened]:
    for change in found:
        ticks = touched.of(change.chunk).tolist()
        calls = [moments[tick] for tick in ticks if tick in moments]  # at a join nothing runs
        last = max(calls, key=lambda timing: timing.end)
        yield (evolve(last, begin=last.end) if change.kind == "free" else calls[0]), change
