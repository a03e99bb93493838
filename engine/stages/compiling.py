"""From a graph whose sizes are not known beforehand to something that runs it."""

import math
from collections.abc import Mapping

from attrs import evolve

from allocator import solvers
from allocator.problem import NO_CAPACITY
from allocator.solvers.base import NO_NODES
from engine.graph.graph import Graph
from engine.planning.options import Options
from engine.stages.bounded import bounded
from engine.stages.cache import PlanCache
from engine.stages.run import Planner, StagedExecutor
from engine.stages.segments import Reserved, new_memory
from engine.stages.stage import Terms, first_stage
from engine.stages.template import template
from engine.text.errors import GraphError, OptionError
from engine.text.units import parse_bytes

MOST_PLANS = 2**20
REPLAN_NODES = 1000
"""Steps of a search for each plan, unless told: a new choice of lengths should cost milliseconds."""


def check_outputs(graph: Graph) -> None:
    """Raises GraphError for a graph of which nobody wants anything."""
    if not graph.outputs:
        raise GraphError(f"graph {graph.name!r} has no outputs; call graph.output(var)")


def parse_budget(budget: int | str) -> int:
    """Bytes; NO_CAPACITY where there is no limit. Raises OptionError."""
    return parse_bytes(budget) if budget != "" else NO_CAPACITY


def staged(
    graph: Graph,
    options: Options,
    *,
    mode: str,
    budget: int | str,
    bounds: Mapping[str, tuple[int, int]],
    cache: int,
    threads: int = 1,
) -> StagedExecutor:
    """The executor of a graph with dimensions that are no numbers. Raises GraphError, OptionError."""
    check_outputs(graph)
    if not isinstance(cache, int) or isinstance(cache, bool) or not 1 <= cache <= MOST_PLANS:
        raise OptionError(f"cache={cache!r} is no number of plans from 1 to {MOST_PLANS}")
    for name, value in (("parallel", options.parallel), ("bound", options.bound)):
        if value:
            raise OptionError(f"{name}={value!r} needs sizes that are known; give lengths to engine.bind first")
    prepared, solver = template(graph), solvers.find_strategy(options.strategy)
    if prepared.is_staged and not solver.traits.pinned:
        raise OptionError(f"strategy {options.strategy!r} cannot leave alone what is alive between stages; give 'best'")
    capacity = parse_budget(budget)
    if options.nodes == NO_NODES and math.isinf(options.timeout):
        options = evolve(options, nodes=REPLAN_NODES)
    given = 0 if capacity == NO_CAPACITY else capacity
    memory = new_memory(given, options.alignment)
    terms = Terms(options, capacity, in_one_block=bool(given) or isinstance(memory, Reserved))
    plan_first: Planner = first_stage
    if bounds:
        plan_first = bounded(prepared, bounds, terms)
        memory.start(plan_first.plan.arena_bytes)
    return StagedExecutor(prepared, terms, memory, PlanCache(cache), mode=mode, plan_first=plan_first, threads=threads)
