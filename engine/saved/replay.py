"""Saved plans are replayed instead of planned anew, where they are for exactly these calls.

Only the offsets, the order, the strategy, the arena bytes without recomputation, and a lower bound whose witness adds
up to it are taken from the file. Calls, lifetimes and overwrites are derived from the graph; digests say whether the
offsets were found for them, and all checkers run on the result.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from attrs import evolve

from allocator.bounds import proved_bound
from allocator.check.bound import check_bound
from allocator.check.offsets import check
from allocator.errors import shown
from allocator.memories.judge import check_plan
from allocator.problem import NO_CAPACITY, Plan, Problem, column
from allocator.solvers import BEST
from allocator.solvers.base import arena_bytes
from engine.graph.graph import Graph
from engine.lower.calls import Lowered
from engine.lower.copied import Copied, with_copies
from engine.lower.order import in_order
from engine.passes.automatic import Passed
from engine.planning.concurrency import Concurrency
from engine.planning.memories import Contents, InMemories, Moved, placed_as
from engine.planning.options import CASCADE_PERCENTS, Options
from engine.planning.placed import FOLLOWED, PlacedPlan
from engine.planning.planner import lower_graph, nestings, place_lowered
from engine.remat.check import check_again
from engine.remat.trial import recomputed
from engine.remat.within import may_cascade
from engine.remat.writing import write_again
from engine.saved.embedded import EmbeddedPlan, embedded_plan, shaping
from engine.saved.fingerprint import Identity, digest_of_problem, identity_of
from engine.text.errors import GraphError, JudgeError, OptionError, OtherPlanError, PlanRefusedError

_Moves = tuple[tuple[Copied, ...], tuple[int, ...]]
ANEW = "made anew"
"""The first words of the origin of a plan that was made because the saved one was for other calls."""


def embed(plan: PlacedPlan) -> EmbeddedPlan:
    """Returns the plan as data, which have been replayed as a test. Raises OtherPlanError where that fails."""
    order = () if plan.recomputed else _order_in(lower_graph(plan.graph, plan.options), plan.lowered)
    saved = embedded_plan(plan, order)
    follow(plan.graph, saved, plan.options)
    return saved


def follow(graph: Graph, saved: EmbeddedPlan, options: Options, budget: int = NO_CAPACITY) -> PlacedPlan:
    """Replays a saved plan; no solver runs, and no order is searched.

    Raises OtherPlanError where it is for other calls or larger than the budget in bytes, PlanRefusedError where a
    checker finds a fault.
    """
    _check_asked(saved, options, budget)
    try:
        way, moves = _lowered(graph, saved, options)
        in_memories = partial(_in_memories, saved)
        placed = place_lowered(way, options, lambda problem: _plan(problem, saved, budget), in_memories)
    except JudgeError as error:
        raise PlanRefusedError(f"{saved.source} breaks a rule: {error}") from error
    moved = tuple(Moved(copies, values, saved.unmoved_seconds) for copies, values in moves)
    runs_again = tuple(recomputed(graph, placed, plain_bytes, names) for names, plain_bytes in saved.again)
    return evolve(placed, recomputed=runs_again, moved=moved, origin=FOLLOWED)


def followed_or(
    graph: Graph,
    passes: Callable[[tuple[str, ...]], Passed],
    saved: EmbeddedPlan,
    options: Options,
    budget: int,
    *,
    make: Callable[[], PlacedPlan],
    recompute: bool = True,
) -> PlacedPlan:
    """Replays a saved plan, or makes a plan whose origin says why.

    `passes` runs all passes over the graph but for some groups: those that the saved plan leaves out. Cascades that a
    budget led to are kept, as operators that run again are. Raises PlanRefusedError for a wrong plan, OtherPlanError
    for a required plan of other calls, OptionError for an object that is no plan.
    """
    if not isinstance(saved, EmbeddedPlan):
        raise OptionError(f"embedded must be what arenaplan.load_plan returns, not a {type(saved).__name__}")
    try:
        if (saved.again or saved.computed) and not recompute:
            raise OtherPlanError(f"{saved.source} computes values again, and recompute is off")
        percent = dict(saved.options)["cascade"]
        if recompute and percent in CASCADE_PERCENTS and may_cascade(graph, options):
            options = evolve(options, cascade=percent)
        _check_asked(saved, options, budget)
        prepared = passes(saved.left_out).finished(options)
        return evolve(follow(prepared.graph, saved, options, budget), optimisation=prepared.done)
    except OtherPlanError as error:
        if saved.required:
            raise
        return evolve(make(), origin=f"{ANEW}: {error}")


def _order_in(lowered: Lowered, chosen: Lowered) -> tuple[int, ...]:
    """Returns the ticks in one lowering of the calls of another, in its order; () where the order is the same."""
    place = {(call.name, bool(call.operators)): call.tick for call in lowered.calls}
    keys = ((instruction.name, bool(instruction.operators)) for instruction in chosen.instructions)
    ticks = tuple(place[key] for key in keys if key in place)
    return () if list(ticks) == sorted(ticks) else ticks


def _check_asked(saved: EmbeddedPlan, options: Options, budget: int) -> None:
    saved_options = dict(saved.options)
    for name, asked in shaping(options):
        if saved_options[name] != asked:
            if name == "target" and not asked:
                of = shown(str(saved_options[name]).partition("; ")[0])
                raise OtherPlanError(f"{saved.source} is for target {of}, not for this processor")
            raise OtherPlanError(
                f"{saved.source} was made with {name}={_short(saved_options[name])}, not {_short(asked)}"
            )
    if options.strategy not in (BEST, saved.strategy):
        raise OtherPlanError(f"{saved.source} was made by strategy {shown(saved.strategy)}, not {options.strategy!r}")
    if saved.arena_bytes > budget:
        raise OtherPlanError(f"{saved.source} needs {saved.arena_bytes} bytes, and {budget} are available")


def _lowered(graph: Graph, saved: EmbeddedPlan, options: Options) -> tuple[Lowered, tuple[_Moves, ...]]:
    """Lowers the graph in the order, with the nesting and with the moves of the plan. Raises OtherPlanError.

    Returns the moves, too: copies, and the value of each; nothing where there are none.
    """
    lowered = lower_graph(graph, options)
    if saved.order:
        if sorted(saved.order) != [call.tick for call in lowered.calls]:
            raise OtherPlanError(f"{saved.source} orders {len(saved.order)} calls; here are {len(lowered.calls)}")
        lowered = in_order(lowered, saved.order)
    for names, _ in saved.again:
        lowered = _lowered_again(_again(lowered, names, saved.source), saved.source, options)
    for way in nestings(lowered, options):
        moved, moves = _moved(way, saved)
        identity = identity_of(moved)
        if identity == saved.identity:
            return moved, moves
    raise OtherPlanError(f"{saved.source} is for {_difference(saved.identity, identity)}")


def _moved(way: Lowered, saved: EmbeddedPlan) -> tuple[Lowered, tuple[_Moves, ...]]:
    """Returns the calls with the copies of the plan; without, where these are calls in which they cannot be made."""
    pairs = enumerate(zip(saved.moves, saved.read_until, strict=True))
    copies = tuple(Copied(*move, read_until=tick, again=k in saved.computed) for k, (move, tick) in pairs)
    try:
        moved, values = with_copies(way, copies)
    except OtherPlanError:
        return way, ()
    return (moved, ((copies, values),)) if copies else (way, ())


def _again(lowered: Lowered, names: Sequence[str], source: str) -> Graph:
    """Returns the graph in which operators run as the names say.

    Raises OtherPlanError for unknown names, JudgeError.
    """
    ticks = {instruction.name: instruction.tick for instruction in lowered.instructions}
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


def _difference(saved: Identity, current: Identity) -> str:
    """Returns the first difference between the calls of the plan and those of the graph, in words."""
    for there, here in ((saved.feeds, current.feeds), (saved.fetches, current.fetches)):
        if there != here:
            return f"{_specs_text(there)}, and here is {_specs_text(here)}"
    if saved.operators != current.operators:
        return "other operators: another model, or other passes over it"
    if saved.kernels != current.kernels:
        return "other kernels: another machine, or another version of this program"
    return "other views and copies: another version of this program"


def _short(value: object) -> str:
    return shown(value) if isinstance(value, str) else shown(repr(value))[1:-1]


def _specs_text(tensors: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{shown(name)} {shown(spec)[1:-1]}" for name, spec in tensors)


def _in_memories(
    saved: EmbeddedPlan, contents: Contents, problem: Problem, _: Concurrency, lowered: Lowered, options: Options
) -> InMemories:
    """Returns chunks and constants in their memories. Raises OtherPlanError, PlanRefusedError."""
    arena, memory = _plan(problem, saved, NO_CAPACITY), column(saved.memories)
    counts = len(memory), len(saved.weights)
    if counts != (contents.count, len(contents.constants)) or (memory >= len(options.board)).any():
        count = f"{contents.count} chunks and weights of {lowered.graph.name!r}"
        raise PlanRefusedError(f"{saved.source} does not say for each of {count} where it lies in which memory")
    whole = contents.problem(problem, options.board)
    placed = placed_as(whole, memory, arena, column(saved.weights), contents)
    fault = check_plan(whole, placed.assigned)
    if fault is not None:
        raise PlanRefusedError(f"{saved.source} is wrong ({fault.kind}): {fault.message}")
    if not np.array_equal(placed.arena.offset, arena.offset):
        raise PlanRefusedError(f"{saved.source} is wrong: its memories do not lie behind each other")
    return placed


def _plan(problem: Problem, saved: EmbeddedPlan, budget: int) -> Plan:
    """Returns the offsets as a plan. Raises OtherPlanError for another problem, PlanRefusedError for a wrong plan."""
    if digest_of_problem(problem) != saved.memory:
        raise OtherPlanError(f"{saved.source} is for other lifetimes: another version of this program")
    if len(saved.offsets) != len(problem):
        raise PlanRefusedError(f"{saved.source} has {len(saved.offsets)} offsets for {len(problem)} chunks")
    offset = column([at for _, at in saved.offsets])
    fault = check(problem, offset, saved.arena_bytes)
    if fault is not None:
        names = " and ".join(shown(saved.offsets[chunk][0]) for chunk in fault.chunks)
        raise PlanRefusedError(f"{saved.source} is wrong ({fault.kind}, {names}): {fault.message}")
    least = arena_bytes(problem, offset)
    if saved.arena_bytes != least:
        raise PlanRefusedError(f"{saved.source} wants an arena of {saved.arena_bytes} bytes, where {least} hold all")
    fault = check_bound(problem, saved.bound)
    if fault is not None:
        raise PlanRefusedError(f"{saved.source} has a wrong lower bound ({fault.kind}): {fault.message}")
    return Plan(offset, least, saved.bound if saved.bound.witness else proved_bound(problem), saved.strategy, budget)
