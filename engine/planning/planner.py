"""The whole flow on one page: graph -> calls -> steps -> lifetimes -> chunks -> problem -> plan -> execution plan."""

import time
from collections.abc import Callable, Collection, Mapping

from attrs import evolve, frozen

from allocator import policies, solvers
from allocator.bounds import lower_bound
from allocator.derive import chunks as memory
from allocator.derive.users import Users, users
from allocator.ordering.result import Limits
from allocator.policies.base import Policy
from allocator.problem import NO_CAPACITY, Column, Plan, Problem
from allocator.progress import Activity
from allocator.solvers.base import NO_NODES
from allocator.steps import Program
from engine.check import check_data_flow, check_races
from engine.graph.graph import Graph
from engine.lower.backends import backends_of
from engine.lower.calls import Lowered, Role, Storage, arena_ids
from engine.lower.lowering import lower
from engine.lower.order import GIVEN, MEMORY, arrange
from engine.lower.schedule import Schedule, by_data, dependences, in_levels, in_sequence
from engine.lower.steps import to_program
from engine.nesting.choose import nested_and_plain
from engine.nesting.search import may_nest
from engine.planning.options import Options
from engine.planning.placed import Place, PlacedPlan
from engine.planning.reserved import NOTHING_RESERVED, Reserved, solve_with_boundaries, with_pins
from engine.text.errors import OptionError
from ops.schema.workspace import STEP
from ops.tensor.layout import Layout


def plan_graph(graph: Graph, options: Options, budget: int = NO_CAPACITY) -> PlacedPlan:
    """Plans a graph. All judges run: `allocator.check` inside `solve`, data flow and races on the result.

    The arena may be larger than the budget in bytes; `plan.plan.status` tells whether a smaller one is possible.
    """
    return plan_in_order(lower_graph(graph, options), options, lambda calls: _plan_nested(calls, options, budget))


def plan_in_order(lowered: Lowered, options: Options, plan: Callable[[Lowered], PlacedPlan]) -> PlacedPlan:
    """What `plan` makes of calls in the order that the options want; as they are where "memory" needs more bytes."""
    if options.order == GIVEN:
        return plan(lowered)
    until = time.monotonic() + options.timeout / 2
    limits = Limits(0 if options.nodes == NO_NODES else options.nodes, until)
    arranged = arrange(lowered, options.order, overwrite=options.overwrite, limits=limits)
    found, ordering = _at_levels(arranged.lowered, options), evolve(arranged.ordering, before=_before(lowered, options))
    made = plan(found)
    if options.order == MEMORY and arranged.lowered is not lowered:
        given = plan(lowered)
        if given.arena_bytes < made.arena_bytes:
            made, ordering = given, ordering.as_given()
    return evolve(made, orderings=(ordering,))


def _before(lowered: Lowered, options: Options) -> str:
    """What the plan of an order may do that the bytes of an order say nothing of; nothing where it does none of it."""
    done = {
        "anything is nested": _is_nesting(options) and may_nest(lowered),
        "anything is padded": options.padding > 0,
        "bytes are kept to the end": not options.reuse,
        "operators run at once": bool(options.parallel),
    }
    return " or ".join(what for what, is_done in done.items() if is_done)


def _is_nesting(options: Options) -> bool:
    return options.nest and options.views and not options.parallel


def _plan_nested(plain: Lowered, options: Options, budget: int) -> PlacedPlan:
    """The plan of calls, with values nested where that makes it no larger."""
    first, *others = nestings(plain, options)
    made = plan_lowered(first, options, budget)
    for other in others:
        if least_bytes(other, options) < made.arena_bytes:
            made = min(made, plan_lowered(other, options, budget), key=lambda plan: plan.arena_bytes)
    return made


def nestings(plain: Lowered, options: Options) -> tuple[Lowered, ...]:
    """The calls with values nested, where that may save bytes, and as they are."""
    if not _is_nesting(options):
        return (plain,)
    with Activity("nesting"):
        return nested_and_plain(plain, options.overwrite, options.reuse)


def least_bytes(lowered: Lowered, options: Options) -> int:
    """No arena for the calls, one after the other, is smaller; no addresses are searched for."""
    ids = arena_ids(lowered)
    chunks = memory.derive(to_program(lowered, ids), overwrite=options.overwrite, reuse=options.reuse)
    return lower_bound(_problem(chunks, lowered, ids, options))


def lower_graph(graph: Graph, options: Options) -> Lowered:
    """Lowers a graph as the options want it, in the given order."""
    _check_caller_buffers(graph, options.caller_buffers)
    lowered = lower(
        graph,
        views=options.views,
        prepack=options.prepack,
        caller_buffers=options.caller_buffers,
        backends=backends_of(options.backend),
        threads=options.threads,
    )
    return _at_levels(lowered, options)


def _at_levels(lowered: Lowered, options: Options) -> Lowered:
    return in_levels(lowered) if options.parallel == policies.LEVELS else lowered


def plan_lowered(
    lowered: Lowered, options: Options, budget: int = NO_CAPACITY, reserved: Reserved = NOTHING_RESERVED
) -> PlacedPlan:
    """Plans what a graph was lowered to. Where part of the reserved is taken, calls run one after the other."""
    ids = arena_ids(lowered)
    if options.parallel:
        return _judged(lowered, ids, options, _at_once(lowered, ids, options, _placing(options, budget)))

    def search(problem: Problem) -> Plan:
        return solve_with_boundaries(problem, reserved.boundaries, lambda p: solve_problem(p, options, budget))

    return _judged(lowered, ids, options, _in_sequence(lowered, ids, options, search, reserved))


def place_lowered(lowered: Lowered, options: Options, known: Callable[[Problem], Plan]) -> PlacedPlan:
    """A plan of what a graph was lowered to, at addresses that are known already: nothing is searched for.

    The judge of plans has yet to see these; those of data flow and races see what comes of them. Raises JudgeError.
    """
    ids = arena_ids(lowered)
    if options.parallel:
        return _judged(lowered, ids, options, _at_once(lowered, ids, options, lambda _, problem, __: known(problem)))
    return _judged(lowered, ids, options, _in_sequence(lowered, ids, options, known, NOTHING_RESERVED))


def _judged(lowered: Lowered, ids: Mapping[int, int], options: Options, arranged: "_Arranged") -> PlacedPlan:
    """The execution plan that follows, which the judges let pass."""
    places = place_values(lowered, ids, arranged.chunks, arranged.plan)
    made = PlacedPlan(
        lowered,
        ids,
        arranged.program,
        arranged.chunks,
        arranged.problem,
        arranged.plan,
        places,
        options.alignment,
        arranged.schedule,
        options,
    )
    with Activity("judging"):
        check_data_flow(made)
        if options.parallel:
            check_races(made)
    return made


@frozen(eq=False)
class _Arranged:
    """What is decided of chunks. `problem` has lifetimes in the ticks of the calls, whatever the plan was made from."""

    program: Program
    chunks: memory.Chunks
    problem: Problem
    plan: Plan
    schedule: Schedule


def _in_sequence(
    lowered: Lowered, ids: Mapping[int, int], options: Options, find: Callable[[Problem], Plan], reserved: Reserved
) -> _Arranged:
    """Chunks for one call after the other."""
    program = to_program(lowered, ids)
    chunks = memory.derive(program, overwrite=options.overwrite, reuse=options.reuse)
    problem = _problem(chunks, lowered, ids, options)
    problem = with_pins(problem, lambda value: int(chunks.chunk_of[ids[value]]), chunks.size, reserved)
    return _Arranged(program, chunks, problem, find(problem), in_sequence(lowered))


_FindAtOnce = Callable[[Policy, Problem, Users], Plan]
"""Finds addresses that are safe where calls run at once."""


def _at_once(lowered: Lowered, ids: Mapping[int, int], options: Options, find: _FindAtOnce) -> _Arranged:
    """Chunks that are safe where calls run at once, and what the calls must wait for."""
    program = to_program(lowered, ids)
    policy, touched = policies.policy(options.parallel, dependences(lowered)), users(program)

    def permit(chunk: int, tick: int) -> bool:
        return policy.may_overwrite(touched.others(chunk, tick), tick)

    chunks = memory.derive(program, overwrite=options.overwrite, reuse=options.reuse, permit=permit)
    problem = _problem(chunks, lowered, ids, options)
    plan = find(policy, problem, touched)
    return _Arranged(
        program, chunks, problem, plan, by_data(lowered, policy.name, policy.waits(problem, touched, plan))
    )


def _placing(options: Options, budget: int) -> _FindAtOnce:
    """The policy's own way, by solvers; of several parts, each has the time that is left."""
    until = time.monotonic() + options.timeout

    def solve(part: Problem) -> Plan:
        return solve_problem(part, evolve(options, timeout=max(until - time.monotonic(), 0.0)), budget)

    def place(policy: Policy, problem: Problem, touched: Users) -> Plan:
        found = policy.place(problem, touched, solve) if options.reuse else solve(problem)
        return evolve(found, capacity=budget)

    return place


def _problem(chunks: memory.Chunks, lowered: Lowered, ids: Mapping[int, int], options: Options) -> Problem:
    found = memory.to_problem(chunks, options.alignment, options.padding)
    return align_items(found, lowered, ids, chunks.chunk_of)


def _check_caller_buffers(graph: Graph, names: Collection[str]) -> None:
    unknown = sorted(set(names) - set(graph.inputs) - set(graph.outputs))
    if unknown:
        raise OptionError(f"graph {graph.name!r} has no input or output {unknown[0]!r} to bind")


def solve_problem(problem: Problem, options: Options, budget: int) -> Plan:
    """The smallest arena that is found, with a budget as without one.

    Only where that is too large, and no bound says that all are, the budget becomes the goal of a second search of as
    many nodes, in what is left of the time: a plan that fits is easier to find than a smallest one.
    """
    until = time.monotonic() + options.timeout
    plan = _solve(problem, options, NO_CAPACITY, options.timeout)
    left = until - time.monotonic()
    if plan.lower_bound <= budget < plan.arena_bytes and left > 0:
        aimed = _solve(problem, options, budget, left)
        proof = max(plan, aimed, key=lambda p: p.lower_bound)
        smallest = min(plan, aimed, key=lambda p: p.arena_bytes)
        plan = evolve(smallest, lower_bound=proof.lower_bound, bound_reason=proof.bound_reason)
    return evolve(plan, capacity=budget)


def _solve(problem: Problem, options: Options, capacity: int, seconds: float) -> Plan:
    return solvers.solve(
        problem, options.strategy, options.seed, capacity=capacity, seconds=seconds, nodes=options.nodes
    )


def align_items(problem: Problem, lowered: Lowered, ids: Mapping[int, int], chunk_of: Column) -> Problem:
    """No chain is aligned below the elements of any value in it, and no workspace below what kernels carve it by."""
    alignment, root = problem.alignment.tolist(), problem.chains.root[chunk_of].tolist()
    for value in lowered.values:
        if value.id in ids:
            chunk = root[ids[value.id]]
            wanted = STEP if value.role is Role.WORKSPACE else value.spec.dtype.itemsize
            alignment[chunk] = max(alignment[chunk], wanted)
    return evolve(problem, alignment=alignment)


def place_values(lowered: Lowered, ids: Mapping[int, int], chunks: memory.Chunks, plan: Plan) -> tuple[Place, ...]:
    """The place of each value: what the allocator decided, as layouts from the start of each storage."""
    starts = (plan.offset[chunks.chunk_of] + chunks.offset_in_chunk).tolist() if ids else []
    made = []
    for value in lowered.values:
        layout: Layout = value.layout
        if value.storage is Storage.ARENA:
            layout = layout.starting_at(starts[ids[value.id]])
        made.append(Place(value.storage, value.owner, layout))
    return tuple(made)
