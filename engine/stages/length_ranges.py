"""One plan for a range of lengths: made for the greatest lengths, it serves smaller ones without a search."""

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any, Self

from attrs import evolve, frozen

from allocator.progress import each
from engine.check import check_data_flow
from engine.graph.bindings import Bindings
from engine.graph.graph import Graph
from engine.lower.backends import backends_of
from engine.lower.calls import Lowered, Storage
from engine.lower.lowering import LoweringChoices, lower, lowering_choices
from engine.lower.order import in_order_of
from engine.lower.steps import to_program
from engine.planning.options import Options
from engine.planning.placed import Place, PlacedPlan
from engine.planning.planner import plan_graph
from engine.report.report import check_budget
from engine.stages.bind import as_length, bind
from engine.stages.partial_graph import stage_graph
from engine.stages.stage import Stage, Terms, first_stage, planned_stage
from engine.stages.state import RunState, initial_state
from engine.stages.task import Template
from engine.text.errors import DataFlowError, FeedError, OptionError
from ops.tensor.errors import OpError

MOST_COSTS = 81
"""Choices of lengths whose exact plans are compared with the bounded plan; it limits the time of the comparison."""
_NEAR = 8
"""Largest distance from the middle to a length that the graph allows."""
LengthRanges = Mapping[str, tuple[int, int]]
"""The least and the greatest length of each name."""


@frozen(eq=False)
class LengthRangePlanner:
    """Gives stages whose arena is the one of `plan`, which was made for the greatest lengths.

    Where the calls of smaller lengths do not fit into it (another kernel needs more workspace, a tensor grows where a
    length shrinks), they are planned by themselves.
    """

    length_ranges: LengthRanges
    options: Options
    plan: PlacedPlan
    pattern: LoweringChoices

    def __call__(self, template: Template, bindings: Bindings, terms: Terms) -> Stage:
        """Returns the stage for some lengths. Raises FeedError where they are out of range."""
        self.check(bindings.lengths)
        state = initial_state(template, bindings)
        part = stage_graph(template, state, f"{template.graph.name}:1")
        options = terms.options
        backends = backends_of(options.backend)
        views, prepack, threads = options.views, options.prepack, options.threads
        lowered = lower(
            part.graph, views=views, prepack=prepack, backends=backends, like=(self.pattern,), threads=threads
        )
        after = RunState((), part.bindings, {}, {}, {}, self.plan.arena_bytes, ())
        plan = self._placed(in_order_of(lowered, self.plan.lowered))
        return planned_stage(1, plan[0], {}, state, after) if plan else first_stage(template, bindings, terms)

    def check(self, lengths: Mapping[str, int]) -> None:
        """Raises FeedError where a length is out of its range."""
        for name, (low, high) in self.length_ranges.items():
            if not low <= lengths[name] <= high:
                raise FeedError(f"{name}={lengths[name]} is out of its range {low} to {high}")

    def _placed(self, lowered: Lowered) -> tuple[PlacedPlan, ...]:
        """Returns the calls at the places of the plan for the greatest lengths; () where they do not fit there."""
        if not _is_alike(lowered, self.plan.lowered):
            return ()
        places = []
        for value, greatest, place in zip(lowered.values, self.plan.lowered.values, self.plan.places, strict=True):
            layout = value.layout
            if value.storage is Storage.ARENA:
                owner = self.plan.places[greatest.owner].layout.offset
                layout = layout.starting_at(layout.extent[0] + owner)
                if layout.extent[1] - owner > self.plan.lowered.values[greatest.owner].spec.nbytes:
                    return ()
            places.append(Place(value.storage, place.owner, layout))
        program = to_program(lowered, self.plan.ids)
        placed = evolve(self.plan, lowered=lowered, program=program, places=tuple(places))
        try:
            check_data_flow(placed)
        except DataFlowError:  # for example an overwrite whose offset differs for smaller lengths
            return ()
        return (placed,)


def plan_length_ranges(template: Template, length_ranges: LengthRanges, terms: Terms) -> LengthRangePlanner:
    """Plans for the greatest lengths. Raises OptionError for ranges that make no sense, BudgetError."""
    length_ranges = _checked(template, length_ranges)
    graph = bind(template.graph, {name: high for name, (_, high) in length_ranges.items()})
    flat = evolve(terms.options, nest=False)  # offsets inside other tensors change with the lengths
    plan = evolve(plan_graph(graph, flat, terms.capacity), optimisation=terms.optimisation)
    check_budget(plan)
    return LengthRangePlanner(length_ranges, terms.options, plan, lowering_choices(plan.lowered))


def _checked(template: Template, length_ranges: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    names = template.graph.symbols
    for name in names:
        if name not in length_ranges:
            listed = ", ".join(names)
            raise OptionError(
                f"length_ranges needs a range for each dimension that is a name ({listed}); {name!r} has none"
            )
    for name in length_ranges:
        if name not in names:
            raise OptionError(
                f"length_ranges has {name!r}, which is no dimension; there are: {', '.join(names) or 'none'}"
            )
    ranges = {name: _range(name, pair) for name, pair in length_ranges.items()}
    if template.data:
        deciding = ", ".join(map(repr, sorted(template.data)))
        raise OptionError(
            f"length_ranges needs sizes that follow from lengths; here the data of {deciding} decide some"
        )
    return ranges


def _range(name: str, pair: Any) -> tuple[int, int]:
    try:
        low, high = map(as_length, pair)
    except (TypeError, ValueError):
        low, high = 1, 0
    if low > high:
        raise OptionError(f"the range of {name!r} must be a least and a greatest length such as (1, 8), not {pair!r}")
    return low, high


def _is_alike(one: Lowered, other: Lowered) -> bool:
    """Returns whether the calls are the same, but for lengths."""
    shapes = [
        (
            [(v.name, v.owner, v.storage, v.role) for v in lowered.values],
            [(type(s), s.name, s.inputs, s.outputs) for s in lowered.instructions],
        )
        for lowered in (one, other)
    ]
    return shapes[0] == shapes[1]


@frozen
class LengthRangeCost:
    """Arena bytes for some lengths: of an exact plan, and of the bounded plan."""

    lengths: Mapping[str, int]
    exact_bytes: int
    bounded_bytes: int

    @property
    def factor(self) -> float:
        """The bounded arena over the exact one."""
        return self.bounded_bytes / self.exact_bytes if self.exact_bytes else 1.0


class LengthRangeCosts(tuple[LengthRangeCost, ...]):
    """The costs of each choice of lengths. `left_out` counts choices that the graph does not allow."""

    left_out: int

    def __new__(cls, costs: Iterable[LengthRangeCost], left_out: int) -> Self:
        """Makes the tuple."""
        self = super().__new__(cls, costs)
        self.left_out = left_out
        return self


def length_range_costs(graph: Graph, planner: LengthRangePlanner) -> LengthRangeCosts:
    """Compares plans at the least, the middle (geometric mean) and the greatest length of each name.

    Where the graph does not allow the middle, the nearest length that it allows is taken.
    """
    steps = {n: sorted({low, _middle(graph, planner, n), high}) for n, (low, high) in planner.length_ranges.items()}
    costs, left_out = [], 0
    choices = [
        dict(zip(steps, c, strict=True)) for c in itertools.islice(itertools.product(*steps.values()), MOST_COSTS)
    ]
    for lengths in each("exact plan", choices, lambda lengths: ", ".join(f"{n}={v}" for n, v in lengths.items())):
        try:
            numbered = bind(graph, lengths)
        except OpError:  # a guard or an operator refuses these lengths
            left_out += 1
            continue
        exact = plan_graph(numbered, planner.options)
        costs.append(LengthRangeCost(lengths, exact.arena_bytes, planner.plan.arena_bytes))
    return LengthRangeCosts(costs, left_out)


def _middle(graph: Graph, planner: LengthRangePlanner, name: str) -> int:
    low, high = planner.length_ranges[name]
    mean = math.isqrt(max(low, 1) * high)
    near = range(max(low, mean - _NEAR), min(high, mean + _NEAR) + 1)
    greatest = {n: most for n, (_, most) in planner.length_ranges.items()}
    for length in sorted(near, key=lambda n: abs(n - mean)):
        if _is_allowed(graph, greatest | {name: length}):
            return length
    return mean


def _is_allowed(graph: Graph, lengths: Mapping[str, int]) -> bool:
    try:
        bind(graph, lengths)
    except OpError:
        return False
    return True
