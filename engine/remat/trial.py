"""A schedule in which steps run again, as calls: what their arena needs at least, and a plan of them."""

from collections.abc import Sequence

from attrs import evolve, frozen

from allocator.recompute.search import RecomputeSchedule
from engine.graph.graph import Graph
from engine.lower.calls import Lowered
from engine.lower.costs import graph_cost
from engine.lower.order import GIVEN
from engine.planning.options import Options
from engine.planning.placed import PlacedPlan, Recomputed
from engine.planning.planner import least_bytes, lower_graph, nestings, plan_lowered
from engine.remat.check import check_again
from engine.remat.writing import write_again

NODES = 1_000
"""Steps of a search for addresses. More steps take longer and let fewer operators run again; tools/bench_remat.py shows
both."""


@frozen(eq=False)
class Trial:
    """A schedule as calls, with values nested where that may save bytes, and plain; each with its lower bound."""

    before: Lowered
    sequence: Sequence[int]
    ways: tuple[tuple[int, Lowered], ...]
    options: Options

    @property
    def bound(self) -> int:
        """Returns the bytes that no arena is smaller than."""
        return min(bound for bound, _ in self.ways)

    def searching(self, nodes: int) -> "Trial":
        """Returns the same trial with `nodes` steps of the search for addresses."""
        return evolve(self, options=evolve(self.options, nodes=nodes))

    def plan(self, budget: int, plain: PlacedPlan) -> PlacedPlan:
        """Returns the first plan within the budget, or the smallest. No other way is tried where one may fit."""
        plans = list[PlacedPlan]()
        for bound, lowered in self.ways:
            if bound <= max(budget, self.bound):
                plans.append(plan_lowered(lowered, self.options, budget))
                if plans[-1].arena_bytes <= budget:
                    break
        best = min(plans, key=lambda plan: plan.arena_bytes)
        instructions = self.before.instructions
        names = tuple(instructions[tick - 1].name for tick in self.sequence if 0 < tick <= len(instructions))
        return evolve(best, recomputed=(recomputed(self.before.graph, best, plain.arena_bytes, names),))


def trial_of(lowered: Lowered, schedule: RecomputeSchedule, options: Options) -> Trial:
    """Returns the schedule written as a graph, judged, and lowered; no addresses are searched for. Raises PassError."""
    quick = evolve(options, order=GIVEN, nodes=min(options.nodes, NODES))
    graph = write_again(lowered, schedule.sequence)
    check_again(lowered.graph, graph)
    ways = nestings(lower_graph(graph, quick), quick)
    return Trial(lowered, schedule.sequence, tuple((least_bytes(way, quick), way) for way in ways), quick)


def recomputed(before: Graph, plan: PlacedPlan, plain_bytes: int, sequence: tuple[str, ...]) -> Recomputed:
    """Returns the operators that run again in a plan, compared with a graph in which none does."""
    first = {op.name for op in before.operators}
    again = tuple(c.name for c in plan.lowered.calls if c.operators and c.name not in first)
    once, all_runs = (graph_cost(graph).flops for graph in (before, plan.lowered.graph))
    return Recomputed(again, all_runs - once, (all_runs - once) / max(once, 1), plain_bytes, before, sequence)
