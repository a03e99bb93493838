"""Plans within a budget that the plain plan does not meet, the cheapest change first; outputs keep every bit."""

from collections.abc import Callable, Iterator

from attrs import evolve

from engine.graph.graph import Graph
from engine.passes.automatic import Passed, limited
from engine.planning.options import CASCADE_PERCENTS, Options
from engine.planning.placed import PlacedPlan
from engine.planning.planner import plan_graph
from engine.remat.planning import may_fit, plan_recomputed
from ops.schema.backends import NUMBA


def plans_within(
    graph: Graph,
    plain: PlacedPlan,
    options: Options,
    passes: Callable[[tuple[str, ...]], Passed],
    *,
    any_budget: bool = False,
) -> Iterator[PlacedPlan]:
    """Yields plans that may meet the capacity of the plain plan: the first one that does costs least.

    Values are computed again; else images are computed in stripes of rows; else both. Cascades are left out where the
    options have some, and where kernels of other back-ends than numba compute, which may sum fewer rows in another
    order. `graph` is the graph as it was given, `options` are those of the plain plan; `passes` returns the graph after
    the passes of their level, without some groups.

    Values of whole images are computed again at last where a single operator needs more than the capacity: that takes
    long, and only the smallest plan is wanted of it then. With `any_budget`, plans are in the order of their cost.
    """
    is_cutting = may_cascade(graph, options)
    is_first = any_budget or not is_cutting or may_fit(plain.graph, options, plain.plan.capacity, plain)
    if is_first:
        yield _recomputed(plain, options)
    if is_cutting:
        yield from _cut(passes, plain, options)
    if not is_first:
        yield _recomputed(plain, options)


def _cut(passes: Callable[[tuple[str, ...]], Passed], plain: PlacedPlan, options: Options) -> Iterator[PlacedPlan]:
    """Yields plans with cascades, and at last the smallest of them in which operators run again."""
    left_out = tuple(name for done in plain.optimisation for name in done.left_out)
    whole = passes(left_out)
    cut = plain
    for percent in CASCADE_PERCENTS:
        asked = evolve(options, cascade=percent)
        prepared = whole.finished(asked)
        if any(done.cascades for done in prepared.done):
            quick = limited(asked, prepared.done)
            cut = evolve(plan_graph(prepared.graph, quick, plain.plan.capacity), optimisation=prepared.done)
            yield cut
    if cut is not plain:
        yield _recomputed(cut, evolve(cut.options, nodes=options.nodes))


def may_cascade(graph: Graph, options: Options) -> bool:
    """Returns whether a budget may lead to cascades that the options do not ask for."""
    return options.may_cut and not (options.cascade or options.backend != NUMBA or graph.parameters)


def _recomputed(plain: PlacedPlan, options: Options) -> PlacedPlan:
    """Returns a plan of the same graph in which operators run again; the plain plan where that saves nothing."""
    plan = plan_recomputed(plain.graph, options, plain.plan.capacity, plain)
    return plan if plan is plain else evolve(plan, options=options, optimisation=plain.optimisation)
