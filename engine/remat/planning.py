"""Plans within a budget that the plain plan does not meet: some values are dropped, and computed again where needed."""

from attrs import evolve

from allocator.recompute.search import Found, as_it_is, cheapest, smallest
from engine.calls import Lowered
from engine.graph import Graph
from engine.ordering import GIVEN, in_order
from engine.plan import ExecutionPlan
from engine.planner import Options, lower_graph, plan_graph
from engine.recomputed import Recomputed
from engine.remat.check import check_again
from engine.remat.work import work_in
from engine.remat.writing import write_again

ROUNDS = 5
"""Plans that are made, at most: each aims lower by the bytes that the one before had too many."""
NODES = 1_000
"""Steps of a search for addresses: what a longer one saves, a few more operators that run again save sooner."""


def plan_recomputed(graph: Graph, options: Options, budget: int, plain: ExecutionPlan) -> ExecutionPlan:
    """A plan within the budget in bytes, of the graph with as little work done again as is found.

    Where none is found, the smallest that is. The plain plan where nothing helps, where no bytes are reused, and where
    operators run at once: what is computed again could then run long before it is needed.
    """
    if options.parallel or not options.reuse:
        return plain
    lowered = _in_order_of(lower_graph(graph, options), plain.lowered)
    work = work_in(lowered, overwrite=options.overwrite, alignment=options.alignment)
    start = as_it_is(work).peak
    aim = budget + max(start - plain.arena_bytes, 0)  # what nesting saves, it may save again
    for _ in range(ROUNDS):
        found = cheapest(work, aim)
        if found.peak > aim:
            break
        made = _plan(lowered, found, options, budget, plain) if found.peak < start else plain
        if made.arena_bytes <= budget:
            return made
        aim = min(aim, found.peak) - max(made.arena_bytes - budget, 1)
    made = _plan(lowered, smallest(work), options, budget, plain)  # the same for every budget that is not met
    return made if made.arena_bytes < plain.arena_bytes else plain


def _plan(lowered: Lowered, found: Found, options: Options, budget: int, plain: ExecutionPlan) -> ExecutionPlan:
    quick = evolve(options, order=GIVEN, nodes=min(options.nodes, NODES))
    graph = write_again(lowered, found.sequence)
    check_again(lowered.graph, graph)
    made = plan_graph(graph, quick, budget)
    return evolve(made, recomputed=(_recomputed(lowered.graph, made, plain),))


def _recomputed(before: Graph, made: ExecutionPlan, plain: ExecutionPlan) -> Recomputed:
    first = {op.name for op in before.operators}
    again = tuple(c.name for c in made.lowered.calls if c.operators and c.name not in first)
    once, all_runs = _flops(before), _flops(made.lowered.graph)
    return Recomputed(again, all_runs - once, (all_runs - once) / max(once, 1), plain.arena_bytes)


def _flops(graph: Graph) -> int:
    return sum(op.schema.cost(op.signature).flops for op in graph.operators)


def _in_order_of(lowered: Lowered, other: Lowered) -> Lowered:
    """The calls in the order of the same calls in another lowering, in which some may be nested."""
    place = {stage.name: stage.tick for stage in other.stages}
    if any(call.name not in place for call in lowered.calls):
        return lowered
    ticks = [c.tick for c in sorted(lowered.calls, key=lambda call: place[call.name])]
    return lowered if ticks == sorted(ticks) else in_order(lowered, ticks)
