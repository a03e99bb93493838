"""What is done when a node of a schedule runs, from the edges of the schedule and nothing else."""

from collections.abc import Iterator

import numpy as np

from engine.check.plans import BARRIER, ScheduleLike
from engine.lower.calls import Lowered
from engine.text.errors import ScheduleError

FEED = 1
"""The past of a node that waits for nothing: all inputs are fed before."""


def pasts(schedule: ScheduleLike) -> Iterator[int]:
    """Yields what is done when each node in turn runs, itself included: bit 0 is the feed, bit i + 1 is node i.

    Takes O((nodes + edges) * nodes / 64). A set goes when the last node that waits for it has come by, so that memory
    is the frontier times nodes / 8 bytes.
    """
    count, order = len(schedule.tick), np.argsort(schedule.after, kind="stable")
    first = np.searchsorted(schedule.after[order], np.arange(count + 1)).tolist()
    sources = schedule.before[order].tolist()
    waiting = np.bincount(schedule.before, minlength=count).tolist()
    past_of: dict[int, int] = {}
    for node in range(count):
        past = FEED
        for source in sources[first[node] : first[node + 1]]:
            past |= past_of[source]
            waiting[source] -= 1
            if not waiting[source]:
                del past_of[source]
        past |= 2 << node
        if waiting[node]:
            past_of[node] = past
        yield past


def check_schedule(schedule: ScheduleLike, lowered: Lowered) -> None:
    """Raises ScheduleError unless edges go forward, and the nodes that are no barriers are the calls, in order."""
    _check_edges(schedule)
    ticks = schedule.tick[schedule.tick != BARRIER]
    calls = np.array([call.tick for call in lowered.calls], np.int64)
    for where, sequence in (("node", ticks), ("call", calls)):
        wrong = np.flatnonzero(np.diff(sequence) <= 0)
        if wrong.size:
            one, other = sequence[wrong[0] : wrong[0] + 2].tolist()
            raise ScheduleError(f"the {where} of tick {other} stands behind that of tick {one}; ticks must ascend")
    strangers, missed = np.setdiff1d(ticks, calls), np.setdiff1d(calls, ticks)
    if strangers.size:
        raise ScheduleError(f"there is a node of tick {strangers[0]}, at which nothing is called")
    if missed.size:
        raise ScheduleError(f"no node calls {lowered.tick_name(int(missed[0]))} of tick {missed[0]}")


def _check_edges(schedule: ScheduleLike) -> None:
    before, after, count = schedule.before, schedule.after, len(schedule.tick)
    if len(before) != len(after):
        raise ScheduleError(f"{len(before)} nodes to wait for, but {len(after)} that wait")
    wrong = np.flatnonzero((before < 0) | (before >= after) | (after >= count))
    if wrong.size:
        edge = int(wrong[0])
        raise ScheduleError(
            f"edge {edge} goes from node {before[edge]} to node {after[edge]} of {count}; edges go to later nodes"
        )
