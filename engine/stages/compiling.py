"""Makes the executor of a graph whose sizes are not known beforehand."""

import math
from collections.abc import Mapping

from attrs import evolve

from allocator import solvers
from allocator.problem import NO_CAPACITY
from allocator.solvers.base import NO_NODES
from engine.graph.graph import Graph
from engine.passes.automatic import optimised
from engine.planning.options import Options, check_one_arena, parse_budget
from engine.planning.planner import check_outputs
from engine.stages.cache import PlanCache
from engine.stages.length_ranges import plan_length_ranges
from engine.stages.reuse import Planner
from engine.stages.run import StagedExecutor
from engine.stages.segments import ReservedMemory, new_memory
from engine.stages.stage import Terms, first_stage
from engine.stages.template import template
from engine.text.errors import OptionError

MOST_PLANS = 2**20
REPLAN_NODES = 1000
"""Steps of the search for each plan, where no option sets them: new lengths should cost milliseconds.

`tools/bench_stages.py` times a run with new lengths.
"""


def staged(
    graph: Graph,
    options: Options,
    *,
    mode: str,
    budget: int | str,
    length_ranges: Mapping[str, tuple[int, int]],
    plan_cache_size: int,
    threads: int = 1,
) -> StagedExecutor:
    """Returns the executor of a graph with symbolic dimensions, after the passes that the options ask for.

    Raises GraphError, OptionError.
    """
    check_outputs(graph)
    if (
        not isinstance(plan_cache_size, int)
        or isinstance(plan_cache_size, bool)
        or not 1 <= plan_cache_size <= MOST_PLANS
    ):
        raise OptionError(f"plan_cache_size={plan_cache_size!r} is no number of plans from 1 to {MOST_PLANS}")
    for name in ("parallel", "donated", "caller_buffers", "store"):
        value = getattr(options, name)
        if value:
            raise OptionError(f"{name}={value!r} needs sizes that are known; give lengths to arenaplan.bind first")
    check_one_arena(options, "a network whose sizes are not all known")
    after = optimised(graph, options)
    prepared, solver = template(after.graph), solvers.find_strategy(options.strategy)
    if prepared.is_staged and not solver.traits.pinned:
        raise OptionError(f"strategy {options.strategy!r} cannot keep live tensors in place; give 'best'")
    capacity = parse_budget(budget)
    if options.nodes == NO_NODES and math.isinf(options.timeout):
        options = evolve(options, nodes=REPLAN_NODES)
    limit = 0 if capacity == NO_CAPACITY else capacity
    memory = new_memory(limit, options.alignment)
    in_one_block = bool(limit) or isinstance(memory, ReservedMemory)
    terms = Terms(options, capacity, in_one_block, after.done)
    plan_first: Planner = first_stage
    if length_ranges:
        plan_first = plan_length_ranges(prepared, length_ranges, terms)
        memory.start(plan_first.plan.arena_bytes)
    return StagedExecutor(
        prepared, terms, memory, PlanCache(plan_cache_size), mode=mode, plan_first=plan_first, threads=threads
    )
