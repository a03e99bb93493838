"""From a graph and capacities to parts, each planned: `arenaplan.partition`."""

import math
from collections.abc import Sequence
from typing import Unpack

from attrs import evolve, field, frozen

from allocator.cuts.in_order import shortage
from allocator.cuts.judge import Need
from allocator.cuts.problem import OBJECTIVES, TRAFFIC, Cut, CutProblem
from allocator.cuts.solve import Solution, solve
from allocator.cuts.worth import worths
from allocator.progress import Activity
from engine.graph.graph import Graph
from engine.lower.order import GIVEN
from engine.partitions.numbers import cut_problem, likely_bytes, operators_in_order
from engine.partitions.parts import PartGraph, part_graph
from engine.partitions.result import Part, Partition
from engine.passes.automatic import optimised, plan_optimised
from engine.planning.options import Options, PlanOptions, check_one_arena
from engine.planning.placed import PlacedPlan
from engine.planning.planner import check_outputs, plan_graph
from engine.text.errors import BudgetError, GraphError, OptionError, UndecidedError
from engine.text.faults import behind_door
from engine.text.options import check_option_names
from engine.text.units import counted, format_bytes, parse_bytes
from ops.schema.body import bodies

BANDWIDTH = "1 GB"
"""Bytes that are sent in a second where nothing is said."""
_OWN = ("capacities", "objective", "bandwidth")


@behind_door("partitioning")
def partition(
    graph: Graph,
    capacities: Sequence[int | str],
    objective: str = TRAFFIC,
    *,
    bandwidth: int | str = BANDWIDTH,
    **options: Unpack[PlanOptions],
) -> Partition:
    """Cuts the operators of a graph into as many parts as there are capacities, and plans each part.

    Parts are in order: none reads what a later one computes. The weights that stay in memory for a part, and its arena,
    fit its capacity, a number of bytes or a text such as "24 GiB". The objective is "traffic", the fewest bytes sent
    between parts, or "throughput", the shortest time of the slowest part, by the costs of operators and a `bandwidth`
    in bytes a second. Other options are those of `make_plan`; passes run once, before the graph is cut.

    Raises OptionError, GraphError for a graph that cannot be cut, BudgetError where capacities cannot hold it, and
    UndecidedError where no partition was found that fits, and none proved to be impossible.
    """
    check_option_names("arenaplan.partition", options, (*_OWN, *PlanOptions.__annotations__))
    sizes, rate = _capacities(capacities), parse_bytes(bandwidth)
    _check_asked(objective, rate, options)
    _check_graph(graph)
    with Activity("partitioning", graph.name):
        asked = Options(**options)
        check_one_arena(asked, "each part of a partition")
        whole = plan_optimised(optimised(graph, asked), asked)
        if len(operators_in_order(whole)) < len(sizes):
            few = counted(len(operators_in_order(whole)), "operator")
            raise OptionError(f"graph {graph.name!r} has {few}, too few for {len(sizes)} parts")
        return _Planner(whole, asked).partition(cut_problem(whole, sizes, objective, rate), rate)


def _capacities(capacities: Sequence[int | str]) -> tuple[int, ...]:
    if isinstance(capacities, (str, bytes)) or not isinstance(capacities, Sequence) or not capacities:
        raise OptionError(f"capacities are a list of sizes, one for each part, not {capacities!r}")
    return tuple(map(parse_bytes, capacities))


def _check_asked(objective: str, bandwidth: int, options: PlanOptions) -> None:
    if objective not in OBJECTIVES:
        raise OptionError(f"objective {objective!r} is unknown; there are {', '.join(OBJECTIVES)}")
    if not bandwidth:
        raise OptionError("the bandwidth is 0 bytes a second, which sends nothing")
    if options.get("caller_buffers"):
        raise OptionError("parts have no arrays of the caller: leave out caller_buffers")


def _check_graph(graph: Graph) -> None:
    check_outputs(graph)
    if graph.is_symbolic:
        names = ", ".join(graph.symbols) or "sizes that data decide"
        raise GraphError(f"graph {graph.name!r} has no parts before lengths are given for: {names}; see arenaplan.bind")
    inside = next((op for op in graph.operators if bodies(op.schema, op.attrs)), None)
    if inside is not None:
        raise GraphError(f"graph {graph.name!r} cannot be cut: {inside.name!r} has operators inside it (control flow)")
    if any(graph.parameters[v].trainable for v in graph.updates):
        raise GraphError(
            f"graph {graph.name!r} trains: its updates need what all its operators compute, so it cannot be cut; "
            "arenaplan.train_parallel shares out the batch"
        )


@frozen(eq=False)
class _Planner:
    """Plans parts of a planned graph, each set of operators once for each capacity."""

    whole: PlacedPlan
    options: Options
    planned: dict[tuple[tuple[int, ...], int], tuple[PartGraph, PlacedPlan]] = field(factory=dict)

    def partition(self, problem: CutProblem, bandwidth: int) -> Partition:
        solution = solve(problem, likely_bytes(self.whole), self.need)
        for cut in solution.cuts:
            parts = tuple(self._part(problem, cut, number) for number in range(problem.parts))
            bound = min(solution.bound, cut.objective)
            return Partition(self.whole.lowered.graph, parts, problem.objective, cut.objective, bound, bandwidth)
        raise _too_large(problem, solution, self)

    def need(self, operators: tuple[int, ...], capacity: int) -> Need:
        """Returns what a part with these operators needs."""
        _, plan = self._plan(operators, capacity)
        weights = plan.resident_weights_bytes
        return Need(weights + plan.arena_bytes, weights + plan.plan.lower_bound)

    def _plan(self, operators: tuple[int, ...], capacity: int) -> tuple[PartGraph, PlacedPlan]:
        """Returns the plan of a part: the first that fits, or the smallest that was found."""
        if (operators, capacity) not in self.planned:
            whole, everything = self.whole.lowered.graph, operators_in_order(self.whole)
            chosen, is_last = [everything[i] for i in operators], len(everything) - 1 in operators
            part = part_graph(whole, chosen, f"{whole.name}/part", is_last=is_last)
            options = evolve(self.options, optimise=0, store="", order=GIVEN)
            plan = plan_graph(part.graph, options)
            room = capacity - plan.resident_weights_bytes
            if plan.arena_bytes > room >= plan.plan.lower_bound:
                plan = plan_graph(part.graph, options, room)
            self.planned[operators, capacity] = part, plan
        return self.planned[operators, capacity]

    def _part(self, problem: CutProblem, cut: Cut, number: int) -> Part:
        operators = cut.operators(number)
        part, plan = self._plan(operators, problem.capacities[number])
        part.graph.name = f"{self.whole.lowered.graph.name}, part {number + 1} of {problem.parts}"
        worth = worths(problem, cut.part_of)[number]
        everything = operators_in_order(self.whole)
        names = tuple(everything[i].name for i in operators)
        return Part(part, plan, problem.capacities[number], names, worth.received, worth.seconds)


def _too_large(problem: CutProblem, solution: Solution, planner: _Planner) -> BudgetError | UndecidedError:
    """Returns the error of capacities that hold no partition that was found."""
    lack, name = shortage(problem), planner.whole.lowered.graph.name
    capacity = problem.capacities[lack.part]
    need = planner.need(tuple(lack.operators), capacity)
    least = max(lack.nbytes, need.least)
    part, is_proved = f"part {lack.part + 1} of {problem.parts}", least > capacity
    needed = least if is_proved else need.nbytes
    text = (
        f"{part} needs {'at least ' if is_proved else ''}{format_bytes(needed)}, {format_bytes(needed - capacity)} "
        f"more than its capacity of {format_bytes(capacity)}"
    )
    text += ", though the parts before it hold as many operators as they can" if lack.part else ""
    if needed <= capacity:
        text = "weights and operators fit where each part is filled in turn, but the plan of some part does not"
    if math.isinf(solution.bound):
        return BudgetError(f"the capacities cannot hold graph {name!r}: {text}", needed, capacity, least)
    return UndecidedError(
        f"no partition of graph {name!r} was found that fits, and none proved to be impossible: {text}"
    )
