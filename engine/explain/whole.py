"""Finds why the arena of a plan is as large as it is, and asks for other ways to plan."""

from engine.explain.accesses import Accesses, accesses_of
from engine.explain.alive import AliveTensor, alive_at
from engine.explain.counterfactual import measured
from engine.explain.explanation import Explanation
from engine.explain.other_peak import other_peak
from engine.explain.parts import parts
from engine.explain.refusals import TAKEN, Forward, forwards_into
from engine.explain.what_if import FindAlternatives
from engine.planning.placed import PlacedPlan
from engine.report.peak import peak_chunks
from engine.report.report import Report, report


def explain(plan: PlacedPlan, advisor: FindAlternatives) -> Explanation:
    """Looks at a plan, and asks for other ways to plan."""
    told, found = report(plan), accesses_of(plan)
    tick, chunks = peak_chunks(plan)
    alive = tuple(alive_at(found, chunk, tick) for chunk in chunks.tolist())
    return Explanation(
        model=told.model,
        arena_bytes=told.arena_bytes,
        lower_bound=told.lower_bound,
        status=told.status,
        strategy=told.strategy,
        parallel=told.parallel,
        reuse=plan.options.reuse,
        last_tick=found.last_tick,
        peak_tick=tick,
        peak_operator=told.peak_operator,
        peak_kind=told.peak_kind,
        peak_bytes=told.peak_bytes,
        arena_without_workspace=_without_workspace(told, alive),
        parts=parts(told, alive),
        alive=alive,
        other_peak=other_peak(plan, chunks),
        refused=_refused(found, tuple(a.chunk for a in alive)),
        recomputed=plan.recomputed,
        advised=advisor(plan),
    )


def _without_workspace(told: Report, alive: tuple[AliveTensor, ...]) -> int:
    """The arena where it is, if no workspace is alive at the peak."""
    return told.arena_without_workspace if any(a.role == "workspace" for a in alive) else told.arena_bytes


def _refused(found: Accesses, chunks: tuple[int, ...]) -> tuple[Forward, ...]:
    """Of tensors at the peak that are written over nothing: what they may have been written over."""
    declared = [f for f in forwards_into(found, chunks) if f.output_bytes]
    free = {f.output for f in declared if f.reason == TAKEN}
    own = {v.name for v in found.values if not v.is_view}
    return measured(found.plan, [f for f in declared if f.output not in free and f.output in own])
