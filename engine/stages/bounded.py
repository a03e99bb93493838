"""One plan for all lengths up to a bound: made for the greatest ones, it serves smaller ones with no search at all."""

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any, Self

from attrs import evolve, field, frozen

from allocator.progress import each
from engine.check import check_data_flow
from engine.graph.bindings import Facts
from engine.graph.graph import Graph
from engine.lower.backends import backends_of
from engine.lower.calls import Lowered, Storage
from engine.lower.lowering import Pattern, lower, pattern_of
from engine.lower.order import in_order_of
from engine.lower.steps import to_program
from engine.planning.options import Options
from engine.planning.placed import Place, PlacedPlan
from engine.planning.planner import plan_graph
from engine.report.report import check_budget
from engine.stages.bind import as_length, bind
from engine.stages.partial_graph import draft_stage
from engine.stages.progress import Progress, at_the_start
from engine.stages.stage import Stage, Terms, first_stage
from engine.stages.task import Template
from engine.text.errors import DataFlowError, FeedError, OptionError
from ops.tensor.errors import OpError

MOST_COSTS = 81
"""Choices of lengths whose exact plans are made to tell what a bounded one costs."""
_NEAR = 8
"""Steps up or down from the middle to a length that the graph allows."""
Bounds = Mapping[str, tuple[int, int]]
"""Least and greatest length of each name."""


@frozen(eq=False)
class BoundedPlanner:
    """Gives stages whose arena is the one of `plan`, which was made for the greatest lengths.

    Where the calls of smaller lengths do not fit into it (another kernel needs more workspace, a tensor grows where a
    length shrinks), they are planned by themselves; `replanned` counts that.
    """

    bounds: Bounds
    options: Options
    plan: PlacedPlan
    pattern: Pattern
    replanned: list[dict[str, int]] = field(factory=list)

    def __call__(self, template: Template, facts: Facts, terms: Terms) -> Stage:
        """The stage for some lengths. Raises FeedError where they are out of bounds."""
        for name, (low, high) in self.bounds.items():
            if not low <= facts.lengths[name] <= high:
                raise FeedError(f"{name}={facts.lengths[name]} is out of its bounds {low} to {high}")
        progress = at_the_start(template, facts)
        draft = draft_stage(template, progress, f"{template.graph.name}:1")
        options = terms.options
        backends = backends_of(options.backend)
        views, pack, threads = options.views, options.pack, options.threads
        lowered = lower(draft.graph, views=views, pack=pack, backends=backends, like=(self.pattern,), threads=threads)
        after = Progress((), draft.facts, {}, {}, {}, self.plan.arena_bytes, ())
        plan = self._placed(in_order_of(lowered, self.plan.lowered))
        if plan:
            return Stage(1, plan[0], {}, progress, after)
        self.replanned.append(dict(facts.lengths))
        return first_stage(template, facts, terms)

    def _placed(self, lowered: Lowered) -> tuple[PlacedPlan, ...]:
        """The calls at the places of the greatest ones; () where they do not fit there."""
        if not _is_alike(lowered, self.plan.lowered):
            return ()
        places = []
        for value, like, place in zip(lowered.values, self.plan.lowered.values, self.plan.places, strict=True):
            layout = value.layout
            if value.storage is Storage.ARENA:
                owner = self.plan.places[like.owner].layout.offset
                layout = layout.starting_at(layout.extent[0] + owner)
                if layout.extent[1] - owner > self.plan.lowered.values[like.owner].spec.nbytes:
                    return ()
            places.append(Place(value.storage, place.owner, layout))
        program = to_program(lowered, self.plan.ids)
        made = evolve(self.plan, lowered=lowered, program=program, places=tuple(places))
        try:
            check_data_flow(made)
        except DataFlowError:  # such as an overwrite at an offset that is another one for smaller lengths
            return ()
        return (made,)


def bounded(template: Template, bounds: Bounds, terms: Terms) -> BoundedPlanner:
    """Plans for the greatest lengths. Raises OptionError for bounds that make no sense, BudgetError."""
    bounds = _checked(template, bounds)
    graph = bind(template.graph, {name: high for name, (_, high) in bounds.items()})
    flat = evolve(terms.options, nest=False)  # places inside others move where lengths shrink
    plan = plan_graph(graph, flat, terms.capacity)
    check_budget(plan)
    return BoundedPlanner(bounds, terms.options, plan, pattern_of(plan.lowered))


def _checked(template: Template, bounds: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    names = template.graph.symbols
    for name in names:
        if name not in bounds:
            known = ", ".join(names)
            raise OptionError(f"bounds are wanted for all dimensions that are names: {known}; {name!r} has none")
    for name in bounds:
        if name not in names:
            raise OptionError(f"bounds name {name!r}, which is no dimension; there are: {', '.join(names) or 'none'}")
    found = {name: _range(name, pair) for name, pair in bounds.items()}
    if template.data:
        told = ", ".join(map(repr, sorted(template.data)))
        raise OptionError(f"bounds need sizes that follow from lengths; here the data of {told} decide some")
    return found


def _range(name: str, pair: Any) -> tuple[int, int]:
    try:
        low, high = map(as_length, pair)
    except (TypeError, ValueError):
        low, high = 1, 0
    if low > high:
        raise OptionError(f"bounds of {name!r} must be a least and a greatest length such as (1, 8), not {pair!r}")
    return low, high


def _is_alike(one: Lowered, other: Lowered) -> bool:
    """Whether the calls are the same, but for lengths."""
    shapes = [
        (
            [(v.name, v.owner, v.storage, v.role) for v in lowered.values],
            [(type(s), s.name, s.inputs, s.outputs) for s in lowered.stages],
        )
        for lowered in (one, other)
    ]
    return shapes[0] == shapes[1]


@frozen
class BoundCost:
    """Bytes of an arena for some lengths: planned exactly, and as the bounded plan has it."""

    lengths: Mapping[str, int]
    exact_bytes: int
    bounded_bytes: int

    @property
    def factor(self) -> float:
        """How many times as large the bounded arena is."""
        return self.bounded_bytes / self.exact_bytes if self.exact_bytes else 1.0


class BoundCosts(tuple[BoundCost, ...]):
    """One for each choice of lengths. `left_out` counts further choices, which the graph does not allow."""

    left_out: int

    def __new__(cls, costs: Iterable[BoundCost], left_out: int) -> Self:
        """Like any tuple."""
        made = super().__new__(cls, costs)
        made.left_out = left_out
        return made


def bound_costs(graph: Graph, planner: BoundedPlanner) -> BoundCosts:
    """What the bounded plan costs at the least, the middle (geometric mean) and the greatest length of each name.

    Where the graph does not allow the middle, the nearest that it allows beside the greatest lengths is taken.
    """
    steps = {n: sorted({low, _middle(graph, planner, n), high}) for n, (low, high) in planner.bounds.items()}
    found, left_out = [], 0
    choices = [
        dict(zip(steps, c, strict=True)) for c in itertools.islice(itertools.product(*steps.values()), MOST_COSTS)
    ]
    for lengths in each("exact plan", choices, lambda lengths: ", ".join(f"{n}={v}" for n, v in lengths.items())):
        try:
            numbered = bind(graph, lengths)
        except OpError:  # a guard or an operator that takes other lengths only
            left_out += 1
            continue
        exact = plan_graph(numbered, planner.options)
        found.append(BoundCost(lengths, exact.arena_bytes, planner.plan.arena_bytes))
    return BoundCosts(found, left_out)


def _middle(graph: Graph, planner: BoundedPlanner, name: str) -> int:
    low, high = planner.bounds[name]
    mean = math.isqrt(max(low, 1) * high)
    near = range(max(low, mean - _NEAR), min(high, mean + _NEAR) + 1)
    greatest = {n: most for n, (_, most) in planner.bounds.items()}
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
