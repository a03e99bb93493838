"""Plans that are not made but read: a carried plan is followed where it is one of the very same calls.

Nothing of it is believed but offsets, order, strategy, and how large the arena was in which nothing runs again: calls,
lifetimes and overwrites are derived from the graph as ever, the digests say whether they are those that the offsets
were found for, and all judges run on the result.
"""

from collections.abc import Callable, Sequence

from attrs import evolve

from allocator.bounds import proved_bound
from allocator.check.offsets import check
from allocator.io.instance import shown
from allocator.problem import NO_CAPACITY, Plan, Problem, column
from allocator.solvers import BEST
from allocator.solvers.base import arena_bytes
from engine.graph.graph import Graph
from engine.lower.calls import Lowered
from engine.lower.order import in_order
from engine.planning.options import Options
from engine.planning.placed import FOLLOWED, PlacedPlan
from engine.planning.planner import lower_graph, nestings, place_lowered
from engine.remat.check import check_again
from engine.remat.trial import recomputed
from engine.remat.writing import write_again
from engine.saved.embedded import EmbeddedPlan, embedded_plan, shaping
from engine.saved.fingerprint import Identity, digest_of_problem, identity_of
from engine.text.errors import GraphError, JudgeError, OptionError, OtherPlanError, PlanRefusedError

ANEW = "made anew"
"""What the origin of a plan begins with that was made because the one in the file is another's."""


def embed(plan: PlacedPlan) -> EmbeddedPlan:
    """The plan as data, which have been followed to see that they can be. Raises OtherPlanError where they cannot."""
    graph = next((again.before for again in plan.recomputed), plan.lowered.graph)
    order = () if plan.recomputed else _order_in(lower_graph(graph, plan.options), plan.lowered)
    made = embedded_plan(plan, order)
    follow(graph, made, plan.options)
    return made


def follow(graph: Graph, known: EmbeddedPlan, options: Options, budget: int = NO_CAPACITY) -> PlacedPlan:
    """The plan that is carried; no solver runs, and no order is searched for.

    Raises OtherPlanError where it is a plan of other calls or larger than the budget in bytes, PlanRefusedError where a
    judge finds fault with it.
    """
    _check_asked(known, options, budget)
    try:
        way = _lowered(graph, known, options)
        made = place_lowered(way, options, lambda problem: _plan(problem, known, budget))
    except JudgeError as error:
        raise PlanRefusedError(f"{known.source} breaks a rule: {error}") from error
    told = tuple(recomputed(graph, made, plain_bytes, names) for names, plain_bytes in known.again)
    return evolve(made, recomputed=told, origin=FOLLOWED)


def followed_or(
    graph: Graph,
    known: EmbeddedPlan,
    options: Options,
    budget: int,
    make: Callable[[], PlacedPlan],
    *,
    recompute: bool = True,
) -> PlacedPlan:
    """The plan that is carried, or one that is made, which then tells why.

    Raises PlanRefusedError for a wrong plan, OtherPlanError for one of other calls that is required, OptionError for
    what is no plan.
    """
    if not isinstance(known, EmbeddedPlan):
        raise OptionError(f"embedded must be what engine.load_plan returns, not a {type(known).__name__}")
    try:
        if known.again and not recompute:
            raise OtherPlanError(f"{known.source} computes values again, and recompute is off")
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


def _check_asked(known: EmbeddedPlan, options: Options, budget: int) -> None:
    made = dict(known.options)
    for name, asked in shaping(options):
        if made[name] != asked:
            raise OtherPlanError(f"{known.source} was made with {name}={_short(made[name])}, not {_short(asked)}")
    if options.strategy not in (BEST, known.strategy):
        raise OtherPlanError(f"{known.source} was made by strategy {shown(known.strategy)}, not {options.strategy!r}")
    if known.arena_bytes > budget:
        raise OtherPlanError(f"{known.source} needs {known.arena_bytes} bytes, and {budget} are available")


def _lowered(graph: Graph, known: EmbeddedPlan, options: Options) -> Lowered:
    """The graph in the order that the plan has, with values nested as it has them. Raises OtherPlanError."""
    lowered = lower_graph(graph, options)
    if known.order:
        if sorted(known.order) != [call.tick for call in lowered.calls]:
            raise OtherPlanError(f"{known.source} orders {len(known.order)} calls; here are {len(lowered.calls)}")
        lowered = in_order(lowered, known.order)
    for names, _ in known.again:
        lowered = _lowered_again(_again(lowered, names, known.source), known.source, options)
    for way in nestings(lowered, options):
        found = identity_of(way)
        if found == known.identity:
            return way
    raise OtherPlanError(f"{known.source} is for {_difference(known.identity, found)}")


def _again(lowered: Lowered, names: Sequence[str], source: str) -> Graph:
    """The graph in which operators run as the names say. Raises OtherPlanError for others, and JudgeError."""
    ticks = {stage.name: stage.tick for stage in lowered.stages}
    missing = [name for name in names if name not in ticks]
    if missing:
        raise OtherPlanError(f"{source} runs {shown(missing[0])}, which is not there: it is for other operators")
    try:
        graph = write_again(lowered, [ticks[name] for name in names])
    except (LookupError, GraphError) as error:
        raise PlanRefusedError(f"{source} runs operators before what they read is there") from error
    check_again(lowered.graph, graph)
    return graph


def _lowered_again(graph: Graph, source: str, options: Options) -> Lowered:
    try:
        return lower_graph(graph, options)
    except GraphError as error:
        raise PlanRefusedError(f"{source} cannot run: {error}") from error


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


def _short(value: object) -> str:
    return shown(value) if isinstance(value, str) else shown(repr(value))[1:-1]


def _told(tensors: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{shown(name)} {shown(spec)[1:-1]}" for name, spec in tensors)


def _plan(problem: Problem, known: EmbeddedPlan, budget: int) -> Plan:
    """The offsets as a plan. Raises OtherPlanError for another problem, PlanRefusedError for a wrong plan."""
    if digest_of_problem(problem) != known.memory:
        raise OtherPlanError(f"{known.source} is for other lifetimes: another version of this program")
    if len(known.offsets) != len(problem):
        raise PlanRefusedError(f"{known.source} has {len(known.offsets)} offsets for {len(problem)} chunks")
    offset = column([at for _, at in known.offsets])
    fault = check(problem, offset, known.arena_bytes)
    if fault is not None:
        names = " and ".join(shown(known.offsets[chunk][0]) for chunk in fault.chunks)
        raise PlanRefusedError(f"{known.source} is wrong ({fault.kind}, {names}): {fault.message}")
    least = arena_bytes(problem, offset)
    if known.arena_bytes != least:
        raise PlanRefusedError(f"{known.source} wants an arena of {known.arena_bytes} bytes, where {least} hold all")
    bound = proved_bound(problem)
    return Plan(offset, least, bound.nbytes, known.strategy, budget, bound.reason)
