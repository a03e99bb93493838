"""The events of a run whose calls have times: when, and on which thread, operators ran and chunks came and went."""

from collections.abc import Mapping, Sequence

import numpy as np
from attrs import evolve

from allocator.derive.users import Users, users
from allocator.problem import Column
from engine.planning.placed import PlacedPlan
from engine.system.timing import Timing
from engine.trace.buffers import buffers_of
from engine.trace.event_table import EventTable, ranks
from engine.trace.planned import table_of, unordered_rows
from engine.trace.trace import ALLOC, BEGIN, END, FREE, GROW, KINDS, OVERWRITE, VIEW

_RANKS = ranks((GROW, BEGIN, ALLOC, OVERWRITE, VIEW, END, FREE))
"""The order of events at one time: what a call writes is there when it begins, and what it reads until it ends."""
Moments = Mapping[int, Timing]
"""Timings of calls, by tick."""


def timed_events(plan: PlacedPlan, timings: Sequence[Timing], mode: str) -> EventTable:
    """Returns the events of a run with timings.

    A chunk is allocated when the call that writes it begins, and freed when the last call that uses it ends. A view
    begins when its bytes are written; outputs stay to the end of the run. Raises OptionError.
    """
    buffers = buffers_of(plan, mode)
    rows = unordered_rows(buffers)
    moments, used = _moments(timings, len(plan.lowered.instructions) + 1), users(plan.program)
    columns = zip(*(rows[name].tolist() for name in ("kind", "tick", "chunk")), strict=True)
    sources = [_moment(KINDS[kind], tick, chunk, moments, used) for kind, tick, chunk in columns]
    rows["seconds"], rows["thread"] = [m.begin for m in sources], [m.thread for m in sources]
    place = {t.tick: i for i, t in enumerate(timings, 1)} | {0: 0, len(plan.lowered.instructions) + 1: len(timings) + 1}
    turn = np.array([place[m.tick] for m in sources], np.int64)  # a clock may be too coarse to tell two calls apart
    order = np.lexsort((rows["label"], _RANKS[rows["kind"]], turn, rows["seconds"]))
    return table_of(buffers, rows[order])


def _moments(timings: Sequence[Timing], fetch: int) -> Moments:
    """Returns the timings by tick, with the feed before all calls and the fetch after them, on the caller's thread."""
    over = max((t.end for t in timings), default=0.0)
    return {0: Timing(0, 0, 0.0, 0.0), fetch: Timing(fetch, 0, over, over)} | {t.tick: t for t in timings}


def _moment(kind: str, tick: int, chunk: int, moments: Moments, used: Users) -> Timing:
    """Returns the call that causes an event; its `begin` is the time of the event."""
    if kind == GROW:
        return moments[0]
    if kind == END:
        return _at_end(moments[tick])
    if kind == FREE:
        return _at_end(max((moments[t] for t in used.of(chunk).tolist() if t in moments), key=lambda call: call.end))
    if kind == VIEW and tick not in moments:
        return _at_end(_last_before(tick, used.of(chunk), moments))
    return moments[tick]


def _last_before(tick: int, touching: Column, moments: Moments) -> Timing:
    """Returns the last call that touches a chunk before a tick; nothing runs in the tick of a join."""
    at = int(np.searchsorted(touching, tick)) - 1
    while int(touching[at]) not in moments:
        at -= 1
    return moments[int(touching[at])]


def _at_end(timing: Timing) -> Timing:
    return evolve(timing, begin=timing.end)
