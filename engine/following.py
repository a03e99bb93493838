"""Plans that are not made but read: a carried plan is followed where it is one of the very same calls.

Nothing of it is believed but offsets, order and strategy: calls, lifetimes and overwrites are derived from the graph
as ever, the digests say whether they are those that the offsets were found for, and all judges run on the result.
"""

from collections.abc import Callable

from attrs import evolve

from allocator.bounds import lower_bound
from allocator.check import check
from allocator.problem import NO_CAPACITY, Plan, Problem, column
from allocator.solvers import BEST
from allocator.solvers.base import arena_bytes
from engine.calls import Lowered
from engine.carried import Carried, carried, shaping
from engine.errors import JudgeError, OtherPlanError, PlanRefusedError
from engine.graph import Graph
from engine.identity import Identity, digest_of_problem, identity_of
from engine.ordering import in_order
from engine.placed import FOLLOWED
from engine.plan import ExecutionPlan
from engine.plan_options import Options
from engine.planner import lower_graph, nestings, place_lowered

ANEW = "made anew"
"""What the origin of a plan begins with that was made because the one in the file is another's."""


def carry(plan: ExecutionPlan) -> Carried:
    """The plan as data that can be followed. Raises OtherPlanError where it cannot be carried."""
    if plan.recomputed:
        raise OtherPlanError("a plan that computes values again to keep within a budget cannot be carried by a model")
    given = lower_graph(plan.lowered.graph, plan.options)
    made = carried(plan, _order_in(given, plan.lowered))
    follow(plan.lowered.graph, made, plan.options)
    return made


def follow(graph: Graph, known: Carried, options: Options, budget: int = NO_CAPACITY) -> ExecutionPlan:
    """The plan that is carried; no solver runs, and no order is searched for.

    Raises OtherPlanError where it is a plan of other calls or larger than the budget in bytes, PlanRefusedError where a
    judge finds fault with it.
    """
    _check_asked(known, options, budget)
    way = _lowered(graph, known, options)
    try:
        made = place_lowered(way, options, lambda problem: _plan(problem, known, budget))
    except JudgeError as error:
        raise PlanRefusedError(f"{known.source} breaks a rule: {error}") from error
    return evolve(made, origin=FOLLOWED)


def followed_or(
    graph: Graph, known: Carried, options: Options, budget: int, make: Callable[[], ExecutionPlan]
) -> ExecutionPlan:
    """The plan that is carried, or one that is made, which then tells why.

    Raises PlanRefusedError for a wrong plan, and OtherPlanError for one of other calls that is required.
    """
    try:
        return follow(graph, known, options, budget)
    except OtherPlanError as error:
        if known.required:
            raise
        return evolve(make(), origin=f"{ANEW}: {error}")


def _order_in(given: Lowered, chosen: Lowered) -> tuple[int, ...]:
    """The ticks that calls have in a lowering, in the order of another; nothing where that is the same."""
    place = {(call.name, bool(call.operators)): call.tick for call in given.calls}
    keys = ((stage.name, bool(stage.operators)) for stage in chosen.stages)
    ticks = tuple(place[key] for key in keys if key in place)
    return () if list(ticks) == sorted(ticks) else ticks


def _check_asked(known: Carried, options: Options, budget: int) -> None:
    made = dict(known.options)
    for name, asked in shaping(options):
        if made[name] != asked:
            raise OtherPlanError(f"{known.source} was made with {name}={made[name]!r}, not {asked!r}")
    if options.strategy not in (BEST, known.strategy):
        raise OtherPlanError(f"{known.source} was made by strategy {known.strategy!r}, not {options.strategy!r}")
    if known.arena_bytes > budget:
        raise OtherPlanError(f"{known.source} needs {known.arena_bytes} bytes, and {budget} are available")


def _lowered(graph: Graph, known: Carried, options: Options) -> Lowered:
    """The graph in the order that the plan has, with values nested as it has them. Raises OtherPlanError."""
    lowered = lower_graph(graph, options)
    if known.order:
        if sorted(known.order) != [call.tick for call in lowered.calls]:
            raise OtherPlanError(f"{known.source} orders {len(known.order)} calls; here are {len(lowered.calls)}")
        lowered = in_order(lowered, known.order)
    for way in nestings(lowered, options):
        found = identity_of(way)
        if found == known.identity:
            return way
    raise OtherPlanError(f"{known.source} is for {_difference(known.identity, found)}")


def _difference(known: Identity, found: Identity) -> str:
    """What the carried plan is for, in place of what there is."""
    for there, here in ((known.feeds, found.feeds), (known.fetches, found.fetches)):
        if there != here:
            return f"{_told(there)}, and here is {_told(here)}"
    if known.operators != found.operators:
        return "other operators: another model, or other passes over it"
    if known.kernels != found.kernels:
        return "other kernels: another machine, or another version of this program"
    return "other views and copies: another version of this program"


def _told(tensors: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{name!r} {spec}" for name, spec in tensors)


def _plan(problem: Problem, known: Carried, budget: int) -> Plan:
    """The offsets as a plan. Raises OtherPlanError for another problem, PlanRefusedError for a wrong plan."""
    if digest_of_problem(problem) != known.memory:
        raise OtherPlanError(f"{known.source} is for other lifetimes: another version of this program")
    if len(known.offsets) != len(problem):
        raise PlanRefusedError(f"{known.source} has {len(known.offsets)} offsets for {len(problem)} chunks")
    offset = column([at for _, at in known.offsets])
    fault = check(problem, offset, known.arena_bytes)
    if fault is not None:
        names = " and ".join(repr(known.offsets[chunk][0]) for chunk in fault.chunks)
        raise PlanRefusedError(f"{known.source} is wrong ({fault.kind}, {names}): {fault.message}")
    least = arena_bytes(problem, offset)
    if known.arena_bytes != least:
        raise PlanRefusedError(f"{known.source} wants an arena of {known.arena_bytes} bytes, where {least} hold all")
    return Plan(offset, least, lower_bound(problem), known.strategy, budget)
