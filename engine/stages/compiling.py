"""From a graph whose sizes are not known beforehand to something that runs it."""

from collections.abc import Mapping

from allocator.problem import NO_CAPACITY
from engine.errors import GraphError, OptionError
from engine.executor.staged import StagedExecutor
from engine.graph import Graph
from engine.planner import Options
from engine.stages.bounded import bounded
from engine.stages.stage import Terms
from engine.stages.template import template
from engine.units import parse_bytes

MOST_PLANS = 2**20


def check_outputs(graph: Graph) -> None:
    """Raises GraphError for a graph of which nobody wants anything."""
    if not graph.outputs:
        raise GraphError(f"graph {graph.name!r} has no outputs; call graph.output(var)")


def parse_budget(budget: int | str) -> int:
    """Bytes; NO_CAPACITY where there is no limit. Raises OptionError."""
    return parse_bytes(budget) if budget != "" else NO_CAPACITY


def staged(
    graph: Graph, options: Options, *, mode: str, budget: int | str, bounds: Mapping[str, tuple[int, int]], cache: int
) -> StagedExecutor:
    """The executor of a graph with dimensions that are no numbers. Raises GraphError, OptionError."""
    check_outputs(graph)
    if not isinstance(cache, int) or isinstance(cache, bool) or not 1 <= cache <= MOST_PLANS:
        raise OptionError(f"cache={cache!r} is no number of plans from 1 to {MOST_PLANS}")
    for name, value in (("parallel", options.parallel), ("bound", options.bound)):
        if value:
            raise OptionError(f"{name}={value!r} needs sizes that are known; give lengths to engine.bind first")
    prepared = template(graph)
    capacity = parse_budget(budget)
    terms = Terms(options, capacity, reserved=prepared.is_staged and capacity != NO_CAPACITY)
    if not bounds:
        return StagedExecutor(prepared, terms, cache, mode=mode)
    return StagedExecutor(prepared, terms, cache, mode=mode, plan_first=bounded(prepared, bounds, terms))
