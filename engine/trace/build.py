"""Builds the trace of a plan, with the facts of the whole run."""

from collections.abc import Sequence
from functools import partial

from attrs import evolve

from allocator.problem import NO_CAPACITY
from engine import trace as tracing
from engine.planning.placed import PlacedPlan
from engine.report.memories import transfers_of
from engine.report.parallelism import estimated_timings
from engine.report.peak import peak_of
from engine.system.threads import check_threads
from engine.system.timing import Timing
from engine.text.errors import OptionError
from engine.trace.event_table import NO_PEAK, EventTable
from engine.trace.planned import planned_events
from engine.trace.timed import timed_events
from engine.trace.trace import ESTIMATED, MEASURED, UNTIMED, MemoryPart, RunInfo, Trace

IN_TICKS = 0
"""A number of threads that means: in ticks, with no estimated times."""


def trace(
    plan: PlacedPlan, mode: str = "static", *, heap: str = "", threads: int = IN_TICKS, timings: Sequence[Timing] = ()
) -> Trace:
    """Returns all memory events of a "static" (one arena) or "dynamic" (reference counting) run.

    `heap` names a model of `allocator.heaps` that serves a dynamic run. `timings` are those of a real run
    (`Executable.timed`). Without them, `threads` > 0 estimates when calls would run on that many threads. With neither,
    calls run one after the other and have ticks, but no times. Raises OptionError, UnknownHeapError.
    """
    check(mode, heap, threads, plan.schedule.policy)
    check_timings(timings, [call.tick for call in plan.lowered.calls])
    clock = MEASURED if timings else ESTIMATED if threads else UNTIMED
    if clock == ESTIMATED:
        timings = estimated_timings(plan, threads)
    table = timed_events(plan, timings, mode) if clock else planned_events(plan, mode)
    used = max((t.thread + 1 for t in timings), default=1)
    return build_trace(table, evolve(run_info(plan, mode), heap=heap, clock=clock, threads=used))


def check(mode: str, heap: str, threads: int, policy: str) -> None:
    """Raises OptionError for options that do not exist or that contradict each other."""
    if not isinstance(heap, str):
        raise OptionError(f"heap {heap!r} is not the name of a heap model")
    check_threads(threads, IN_TICKS, "no times")
    if heap and mode != "dynamic":
        raise OptionError(f"heap={heap!r} is for mode 'dynamic'; a {mode} run has one arena")
    if threads > 1 and not policy:
        raise OptionError(f"threads={threads} needs a plan whose operators may run at once; give parallel='edges' too")
    if threads > 1 and mode == "dynamic":
        raise OptionError(f"threads={threads}: a dynamic run has one thread")


def check_timings(timings: Sequence[Timing], ticks: Sequence[int]) -> None:
    """Raises OptionError where there are timings, but not one for each of these calls."""
    if timings and sorted(t.tick for t in timings) != list(ticks):
        raise OptionError(
            f"these timings are of another run: they have {len(timings)} calls, the plan has {len(ticks)}"
        )


def run_info(plan: PlacedPlan, mode: str) -> RunInfo:
    """Returns the facts that the plan alone determines."""
    possible = sum(t.bytes for t in peak_of(plan)[1]) if plan.schedule.policy and mode == "static" else 0
    memory = plan.weight_memory
    return RunInfo(
        model=plan.lowered.graph.name,
        mode=mode,
        policy=plan.schedule.policy,
        optimise=str(plan.options.optimise),
        left_out=", ".join(name for done in plan.optimisation for name in done.left_out),
        strategy=plan.plan.strategy,
        status=str(plan.plan.status),
        alignment=plan.alignment,
        arena_bytes=plan.arena_bytes,
        lower_bound=plan.plan.lower_bound,
        bound_reason=plan.plan.bound.reason,
        budget_bytes=plan.plan.capacity if plan.plan.capacity < NO_CAPACITY else 0,
        possible_peak_bytes=possible,
        weights_bytes=memory.weights_bytes,
        prepacked_bytes=memory.prepacked_bytes,
        resident_weights_bytes=memory.resident_weights_bytes,
        ticks=len(plan.lowered.instructions) + 2,
        memories=_memories(plan) if mode == "static" else (),
    )


def _memories(plan: PlacedPlan) -> tuple[MemoryPart, ...]:
    return tuple(
        MemoryPart(
            share.name,
            share.capacity,
            share.start,
            share.arena_bytes,
            share.weights_bytes,
            share.used_bytes,
            share.seconds,
        )
        for transfers in transfers_of(plan)
        for share in transfers.memories
    )


def build_trace(table: EventTable, facts: RunInfo) -> Trace:
    """Returns the trace of a table of events; its peak and its footprint are added to `facts`."""
    if facts.heap:
        table = tracing.events_on_heap(table, facts.heap)
    live = table.live()
    peak, footprint = int(live.max(initial=0)), int(table.footprint(live).max(initial=0))
    info = evolve(facts, footprint_bytes=footprint, possible_peak_bytes=max(facts.possible_peak_bytes, peak))
    at = int(live.argmax()) if peak else NO_PEAK
    if peak:
        name, _ = table.operators[table.rows["operator"][at]]
        info = evolve(info, peak_bytes=peak, peak_tick=int(table.rows["tick"][at]), peak_operator=name)
    return Trace(info, partial(table.events, at), table.find_details)
