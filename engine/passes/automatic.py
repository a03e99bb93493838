"""From a graph as it was given to the graph that is planned: the passes that an option asks for."""

from collections import Counter

from attrs import evolve, frozen

from allocator.problem import NO_CAPACITY
from allocator.progress import Activity
from engine.graph.graph import Graph
from engine.passes.pipeline import applied_passes
from engine.planning.options import Options
from engine.planning.placed import Optimisation, PlacedPlan
from engine.planning.planner import plan_graph


@frozen(eq=False)
class Optimised:
    """A graph after passes; `done` says what they did, and is empty where none ran."""

    graph: Graph
    done: tuple[Optimisation, ...] = ()


def optimised(graph: Graph, options: Options) -> Optimised:
    """Returns the graph after the passes of the option `optimise`."""
    if not options.level:
        return Optimised(graph)
    count, after, changes = len(graph.operators), graph, Counter[str]()
    with Activity("optimising", graph.name):
        for applied in applied_passes(graph, options.level):
            after = applied.after
            changes[applied.by] += len(after.operators) - len(applied.before.operators)
    return Optimised(after, (Optimisation(options.level, count, len(after.operators), tuple(changes.items())),))


def plan_optimised(graph: Graph, options: Options, budget: int = NO_CAPACITY) -> PlacedPlan:
    """Returns the plan of a graph after the passes of the option `optimise`; see `plan_graph`."""
    prepared = optimised(graph, options)
    return evolve(plan_graph(prepared.graph, options, budget), optimisation=prepared.done)
