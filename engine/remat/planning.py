"""Plans within a budget that the plain plan does not meet: some values are dropped, and computed again where needed."""

from attrs import frozen

from allocator.progress import each
from allocator.recompute.search import as_it_is, cheapest, smallest
from allocator.recompute.sequence import least_bytes
from allocator.recompute.work import RecomputeProblem
from engine.graph.graph import Graph
from engine.lower.calls import Lowered
from engine.lower.work import work_in
from engine.planning.options import Options
from engine.planning.placed import PlacedPlan
from engine.planning.unnested import unnested
from engine.remat.trial import Trial, trial_of

ROUNDS = 8
"""Schedules that are tried, at most: each aims lower by the bytes that the one before had too many."""


def plan_recomputed(graph: Graph, options: Options, budget: int, plain: PlacedPlan) -> PlacedPlan:
    """Returns a plan within the budget in bytes, of the graph with as little work done again as is found.

    Where none is found, the smallest that is, and is found for a budget of as many bytes too. The plain plan where
    nothing helps, where no bytes are reused, and where operators run at once: what is computed again could then run
    long before it is needed.
    """
    if options.parallel or not options.reuse:
        return plain
    return _planning(graph, options, plain).within_or_smallest(budget)


def may_fit(graph: Graph, options: Options, budget: int, plain: PlacedPlan) -> bool:
    """Returns whether running operators again may get a plan within the budget, as `plan_recomputed` searches for it.

    Where it is False, there is no such plan, unless nesting saves a larger part of the bytes than in the plain plan.
    """
    planning = _planning(graph, options, plain)
    return least_bytes(planning.work) <= planning.aim(budget)


def _planning(graph: Graph, options: Options, plain: PlacedPlan) -> "_Planning":
    lowered = unnested(graph, options, plain.lowered)
    work = work_in(lowered, overwrite=options.overwrite, alignment=options.alignment)
    return _Planning(lowered, work, options, plain)


@frozen(eq=False)
class _Planning:
    lowered: Lowered
    work: RecomputeProblem
    options: Options
    plain: PlacedPlan

    def aim(self, budget: int) -> int:
        """Returns the bytes alive at once that a schedule may have: what nesting saves, it may save again."""
        return budget * as_it_is(self.work).peak // self.plain.arena_bytes

    def within_or_smallest(self, budget: int) -> PlacedPlan:
        best, missed = self._within(budget)
        if best.arena_bytes <= budget:
            return best
        trial = trial_of(self.lowered, smallest(self.work), self.options)
        least = self._smaller(trial, budget, self.plain)
        if trial.bound <= budget < least.arena_bytes:  # only its addresses are in the way
            least = self._smaller(trial.searching(self.options.nodes), budget, least)
        if least.arena_bytes <= budget:
            return least
        best = min(best, least, key=lambda plan: plan.arena_bytes)
        for trial in sorted(missed, key=lambda t: t.bound)[:1]:
            best = self._smaller(trial, budget, best)
        if best.arena_bytes < least.arena_bytes and self._within(best.arena_bytes)[0].arena_bytes <= best.arena_bytes:
            return best
        return least  # which every budget that is not met comes to

    def _within(self, budget: int) -> tuple[PlacedPlan, list[Trial]]:
        """Returns a plan within the budget, or the smallest that was made; and the trials that their bounds forbid."""
        best, missed = self.plain, list[Trial]()
        aim = self.aim(budget)
        for _ in each("schedule", range(ROUNDS), lambda _: ""):
            schedule = cheapest(self.work, aim)
            trial = trial_of(self.lowered, schedule, self.options)
            needed = trial.bound
            if needed > budget:
                missed.append(trial)
            else:
                plan = trial.plan(budget, self.plain)
                best, needed = min(best, plan, key=lambda plan: plan.arena_bytes), plan.arena_bytes
            if needed <= budget or schedule.peak > aim:
                break
            aim = schedule.peak - (needed - budget)
        return best, missed

    def _smaller(self, trial: Trial, budget: int, best: PlacedPlan) -> PlacedPlan:
        if trial.bound >= best.arena_bytes:
            return best
        return min(best, trial.plan(budget, self.plain), key=lambda plan: plan.arena_bytes)
