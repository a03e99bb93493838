"""The planner: from a graph to an arena in which every value has its place. The phases, in the order of the data:

1. lower: operators become calls of kernels, aliases and joins (`lower_graph`; engine/lower)
2. order: calls are put into the order that the options ask for (`plan_in_order`; allocator/ordering)
3. nest: values are computed inside other values where that saves bytes (`nestings`; engine/nesting)
4. derive: calls become steps, steps chunks with lifetimes, chunks a problem (`_plan_calls`; allocator/derive)
5. solve: every chunk gets an offset (`solve_problem`; allocator/solvers, or allocator/policies for parallel calls), and
   a memory where there are several (`assign_memories`; allocator/memories)
6. place: every value gets a layout inside the arena (`place_values`)
7. check: independent checkers compare the places with the options, follow the data through the plan, and look for
   races (engine/check)
"""

import math
from collections.abc import Callable, Collection, Iterable
from functools import partial

from attrs import evolve

from allocator import policies
from allocator.bounds import lower_bound
from allocator.derive import chunks as memory
from allocator.ordering.result import Limits
from allocator.problem import NO_CAPACITY, Plan, Problem
from allocator.progress import Activity
from allocator.solvers.base import NO_NODES
from engine.check import Asked, check_data_flow, check_placement, check_races
from engine.graph.graph import Graph
from engine.lower.backends import backends_of
from engine.lower.calls import Lowered, arena_ids
from engine.lower.donated import over_donated
from engine.lower.lowering import lower
from engine.lower.order import GIVEN, MEMORY, Ordering, arrange
from engine.lower.schedule import in_levels
from engine.lower.steps import to_program
from engine.nesting.choose import ROUNDS, nested_and_plain
from engine.nesting.search import may_nest
from engine.planning import memories as several
from engine.planning.concurrency import Concurrency, concurrency_of
from engine.planning.deadline import Deadline
from engine.planning.options import Options
from engine.planning.placed import PlacedPlan, place_values
from engine.planning.reserved import BOUNDARY_BYTES, NOTHING_RESERVED, Reserved, solve_with_boundaries, with_pins
from engine.planning.solving import problem_of, solve_problem
from engine.text.errors import BudgetError, GraphError, OptionError, UndecidedError

Search = Callable[[Problem, Concurrency], Plan]
"""Finds the offsets of a problem."""
AssignMemories = Callable[["several.Contents", Problem, Concurrency, Lowered, Options], "several.InMemories"]
"""Finds memories and offsets for the contents of memories, whose chunks have that problem."""


def plan_graph(graph: Graph, options: Options, budget: int = NO_CAPACITY, *, recompute: bool = True) -> PlacedPlan:
    """Plans a graph: all phases. All checkers run: of the plan inside the solvers, of data flow and races at the end.

    The arena may be larger than the budget in bytes; `plan.plan.status` says whether a smaller one is possible.
    In several memories calls may run again, unless `recompute` is off.
    """
    deadline = Deadline.of(options)
    lowered = lower_graph(graph, options)
    limited = deadline.within(options)
    try:
        plan = plan_in_order(lowered, limited, lambda calls, within: _plan_nested(calls, within, budget))
    except (BudgetError, UndecidedError):
        plain = over_donated(lowered, _given(options))
        fitting = several.plan_with_copies(plain, options, plan_lowered, deadline.until, recompute=recompute)
        if fitting is None:
            raise
        return fitting
    plan = evolve(plan, options=options)
    if not options.board:
        return plan
    return several.with_moves(plan, options, plan_lowered, deadline.until, recompute=recompute)


def lower_graph(graph: Graph, options: Options) -> Lowered:
    """Lowers a graph as the options ask, with its operators in the given order. Raises OptionError."""
    _check_caller_buffers(graph, options)
    lowered = lower(
        graph,
        views=options.views,
        prepack=options.prepack,
        caller_buffers=options.caller_buffers,
        backends=backends_of(options.backend),
        threads=options.threads,
        target=options.target,
    )
    return _in_policy_order(lowered, options)


def plan_in_order(lowered: Lowered, options: Options, plan: Callable[[Lowered, Options], PlacedPlan]) -> PlacedPlan:
    """Plans calls, by `plan`, in the order that the options ask for.

    With the order "memory", the given order is planned too, and its plan is taken where it needs fewer bytes. The
    search for an order has half of the time at most; plans share what it leaves.
    """
    if options.order == GIVEN:
        return plan(lowered, options)
    deadline = Deadline.of(options)
    until = deadline.until - options.timeout / 2 if math.isfinite(options.timeout) else math.inf
    limits = Limits(0 if options.nodes == NO_NODES else options.nodes, until)
    arranged = arrange(lowered, options.order, overwrite=options.overwrite, limits=limits)
    ordering = evolve(arranged.ordering, before=_uncounted(lowered, options))
    ways = [(_in_policy_order(arranged.lowered, options), ordering)]
    if options.order == MEMORY and arranged.lowered is not lowered:
        ways.append((lowered, ordering.as_given()))

    def planned(way: Lowered, cost: Ordering, left: int) -> PlacedPlan:
        return evolve(plan(way, deadline.within(options, left)), orderings=(cost,), options=options)

    return cheapest(partial(planned, way, cost, len(ways) - k) for k, (way, cost) in enumerate(ways))


def _plan_nested(plain: Lowered, options: Options, budget: int) -> PlacedPlan:
    """Plans calls with values nested, and without where that may need fewer bytes; returns the smaller plan."""
    deadline = Deadline.of(options)
    ways = nestings(plain, options)

    def planned(way: Lowered, left: int) -> PlacedPlan:
        return evolve(plan_lowered(way, deadline.within(options, left), budget), options=options)

    if options.board:
        return cheapest(partial(planned, way, len(ways) - k) for k, way in enumerate(ways))
    first, *others = ways
    smallest = planned(first, len(ways))
    for k, other in enumerate(others):
        if least_bytes(other, options) < smallest.arena_bytes:
            smallest = min(smallest, planned(other, len(others) - k), key=lambda plan: plan.arena_bytes)
    return smallest


def cheapest(ways: Iterable[Callable[[], PlacedPlan]]) -> PlacedPlan:
    """Returns the plan whose transfers take least time, then the smallest; ways that do not fit are passed over.

    Raises BudgetError or UndecidedError, of the last way, where none fits.
    """
    plans, errors = list[PlacedPlan](), list[BudgetError | UndecidedError]()
    for way in ways:
        try:
            plans.append(way())
        except (BudgetError, UndecidedError) as error:
            errors.append(error)
    if not plans:
        raise errors[-1]
    return min(plans, key=lambda plan: (sum(m.assigned.cost for m in plan.memories), plan.arena_bytes))


def nestings(plain: Lowered, options: Options, rounds: int = ROUNDS) -> tuple[Lowered, ...]:
    """Returns the calls with values nested, where that may save bytes, and the calls as they are.

    In all of them values are written over the inputs that are donated. `rounds` is the most nestings that are measured.
    """
    ways: tuple[Lowered, ...] = (plain,)
    if _is_nesting(options):
        with Activity("nesting"):
            ways = nested_and_plain(plain, options.overwrite, options.reuse, options.alignment, rounds)
    return tuple(over_donated(way, _given(options)) for way in ways)


def plan_lowered(
    lowered: Lowered, options: Options, budget: int = NO_CAPACITY, reserved: Reserved = NOTHING_RESERVED
) -> PlacedPlan:
    """Plans calls in their order: phases 4 to 7. Where addresses are reserved, calls run one after the other."""
    search = _parallel_search(options, budget) if options.parallel else _sequential_search(options, budget, reserved)
    return _plan_calls(lowered, options, search, reserved)


def _assigned(
    contents: "several.Contents", problem: Problem, concurrency: Concurrency, lowered: Lowered, options: Options
) -> "several.InMemories":
    """Returns memories and offsets that are safe for calls that run at the same time."""
    solved = list[tuple[Plan, "several.InMemories"]]()

    def solve(part: Problem) -> Plan:
        assigned = several.assign_memories(contents, part, lowered, options)
        solved.append((assigned.arena, assigned))
        return solved[-1][0]

    plan = concurrency.solve(problem, solve) if options.reuse else solve(problem)
    return next(assigned for arena, assigned in solved if arena is plan)


def place_lowered(
    lowered: Lowered, options: Options, saved: Callable[[Problem], Plan], in_memories: AssignMemories = _assigned
) -> PlacedPlan:
    """Plans calls at addresses that were saved: `saved` returns the plan of a problem, which it must have checked.

    `in_memories` does so where the options have memories. The checkers of data flow and of races run. Raises
    JudgeError.
    """
    return _plan_calls(lowered, options, lambda problem, _: saved(problem), in_memories=in_memories)


def _plan_calls(
    lowered: Lowered,
    options: Options,
    search: Search,
    reserved: Reserved = NOTHING_RESERVED,
    *,
    in_memories: AssignMemories = _assigned,
) -> PlacedPlan:
    ids = arena_ids(lowered)
    program = to_program(lowered, ids)
    concurrency = concurrency_of(lowered, program, options.parallel)
    permit = concurrency.may_overwrite
    chunks = memory.derive(program, overwrite=options.overwrite, reuse=options.reuse, permit=permit)
    problem = problem_of(chunks, lowered, ids, options)
    problem = with_pins(problem, lambda value: int(chunks.chunk_of[ids[value]]), chunks.size, reserved)
    memories: tuple[several.InMemories, ...] = ()
    if options.board:
        contents = several.contents_of(lowered, ids, chunks, options)
        memories = (in_memories(contents, problem, concurrency, lowered, options),)
    plan = memories[0].arena if memories else search(problem, concurrency)
    copies = several.engine_ticks(lowered, memories) if lowered.engine_copies else ()
    schedule = concurrency.schedule(problem, plan, copies)
    places = place_values(lowered, ids, chunks, plan)
    placed = PlacedPlan(
        lowered, ids, program, chunks, problem, plan, places, options.alignment, schedule, options, memories
    )
    _check(placed, reserved)
    return placed


def _sequential_search(options: Options, budget: int, reserved: Reserved) -> Search:
    def search(problem: Problem, concurrency: Concurrency) -> Plan:
        def solve(part: Problem) -> Plan:
            return solve_problem(part, options, budget)

        return solve_with_boundaries(problem, reserved.boundaries, lambda whole: concurrency.solve(whole, solve))

    return search


def _parallel_search(options: Options, budget: int) -> Search:
    """Returns the search of a policy, which may solve several problems: each has the time that is left."""
    deadline = Deadline.of(options)

    def solve(part: Problem) -> Plan:
        return solve_problem(part, deadline.within(options), budget)

    def search(problem: Problem, concurrency: Concurrency) -> Plan:
        plan = concurrency.solve(problem, solve) if options.reuse else solve(problem)
        return evolve(plan, capacity=budget)

    return search


def _check(placed: PlacedPlan, reserved: Reserved) -> None:
    free = tuple((first, first + BOUNDARY_BYTES) for first in reserved.boundaries)
    asked = Asked(placed.options.alignment, placed.options.padding, reserved.pinned, free)
    with Activity("judging"):
        check_placement(placed, asked)
        for memories in placed.memories:
            several.check_memories(placed, memories.rooms, placed.options.place)
        check_data_flow(placed)
        if placed.options.parallel or placed.lowered.engine_copies:
            check_races(placed)


def least_bytes(lowered: Lowered, options: Options) -> int:
    """Returns a lower bound of the arena of calls that run one after the other, in bytes; searches no addresses."""
    ids = arena_ids(lowered)
    chunks = memory.derive(to_program(lowered, ids), overwrite=options.overwrite, reuse=options.reuse)
    return lower_bound(problem_of(chunks, lowered, ids, options))


def _is_nesting(options: Options) -> bool:
    return options.nest and options.views and not options.parallel


def _in_policy_order(lowered: Lowered, options: Options) -> Lowered:
    """Returns the calls level after level, where the policy runs them in levels."""
    return in_levels(lowered) if options.parallel == policies.LEVELS else lowered


def _uncounted(lowered: Lowered, options: Options) -> str:
    """Returns, in words, what a plan may do that the byte count of an order leaves out; "" where it does nothing."""
    effects = {
        "anything is nested": _is_nesting(options) and may_nest(lowered),
        "anything is padded": options.padding > 0,
        "bytes are kept to the end": not options.reuse,
        "operators run at once": bool(options.parallel),
    }
    return " or ".join(effect for effect, happens in effects.items() if happens)


def check_outputs(graph: Graph) -> None:
    """Raises GraphError for a graph without outputs."""
    if not graph.outputs:
        raise GraphError(f"graph {graph.name!r} has no outputs; call graph.output(var)")


def _given(options: Options) -> Collection[str]:
    """Returns the names of the inputs that values may be written over."""
    return options.donated if options.overwrite and options.reuse else ()


def _check_caller_buffers(graph: Graph, options: Options) -> None:
    unknown = sorted(set(options.caller_buffers) - set(graph.inputs) - set(graph.outputs))
    if unknown:
        raise OptionError(f"graph {graph.name!r} has no input or output {unknown[0]!r} to bind")
    no_inputs = sorted(set(options.donated) - set(graph.inputs))
    if no_inputs:
        raise OptionError(f"graph {graph.name!r} has no input {no_inputs[0]!r} to donate")
