"""Stages for new lengths, made from a stage that was planned, judged and bound: only what lengths decide is new.

`docs/internals/stages.md` says why a structure that was judged once need not be judged again.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from weakref import WeakKeyDictionary

import numpy as np
from attrs import define, evolve, field, frozen
from numpy.lib.array_utils import byte_bounds

from allocator.bounds import proved_bound
from allocator.check.offsets import check
from allocator.errors import PlanError
from allocator.problem import NO_CAPACITY, Column, Plan, Problem
from allocator.solvers.base import arena_bytes
from engine.check.overlaps import OverlapRules, check_overlaps, overlap_rules
from engine.executor.binding import PackCache, run_in_turn
from engine.executor.programs import step_table
from engine.executor.team import ALONE, Runner
from engine.graph.bindings import Bindings
from engine.lower.calls import Call
from engine.lower.order import GIVEN
from engine.planning.options import Options
from engine.planning.placed import PlacedPlan
from engine.planning.planner import lower_graph, place_lowered
from engine.planning.solving import solve_problem
from engine.stages.bound_calls import CallBinder, CallOperands, Placement, call_operands, placed_value
from engine.stages.geometry import OtherChoiceError
from engine.stages.length_ranges import LengthRangePlanner
from engine.stages.partial_graph import stage_graph
from engine.stages.pattern import Fit, Pattern, make_pattern
from engine.stages.restacking import Restacking, restacking
from engine.stages.segments import Memory
from engine.stages.stage import Stage, Terms, rounded_top
from engine.stages.stage_runner import Arounds, StageRunner
from engine.stages.state import RunState, initial_state
from engine.stages.task import Template
from engine.system.arrays import view_array
from engine.text.errors import DataFlowError, PlacementError
from ops.common.thunks import nothing
from ops.native.call import Native
from ops.schema.schema import Thunk
from ops.tensor.errors import OpError
from ops.tensor.layout import Layout, address_of
from ops.tensor.spec import Array

Planner = Callable[[Template, Bindings, Terms], Stage]
"""Plans the first stage from the lengths of the inputs."""
_BYTE = np.dtype(np.uint8)
_FIRST_BYTE = Layout(0, (1,), (1,), 1)


@frozen(eq=False, slots=False)
class ReusedStage(Stage):
    """A stage that `reuse` made, whose plan is written down when it is asked for.

    `start` is the first byte of each value's owner.
    """

    reuse: "PlanReuse" = field(kw_only=True, repr=False)
    start: Column = field(kw_only=True, repr=False)


@frozen(eq=False)
class Stacking:
    """The addresses of new lengths: stacked in the order of the plan."""

    order: Restacking
    owner: Column

    def start(self, low: Column, high: Column, terms: Terms) -> tuple[Column, int]:
        """Returns the first byte of the owner of each value, and the arena. Raises OtherChoiceError.

        [low, high) are the bytes of each value, from the first byte of its owner.
        """
        if not self.order.decides_alike(low, high):
            raise OtherChoiceError
        size = self.order.sizes(low, high)
        offset = self.order.offsets(size, lambda problem: solve_problem(problem, terms.options, terms.capacity))
        arena = int((offset + size).max(initial=0))
        if arena > terms.capacity:
            raise OtherChoiceError
        start = np.zeros(len(self.owner), np.int64)
        start[self.order.value] = offset
        return start[self.owner], arena

    def top(self, arena_bytes: int) -> int:
        """Returns the end of the addresses of the arena."""
        return rounded_top(arena_bytes)

    def plan(self, template: Template, bindings: Bindings, terms: Terms, start: Column) -> PlacedPlan:
        """Writes down the plan of a stage; all checkers run."""
        offset, planned = start[self.order.value], self.order.plan.plan
        part = stage_graph(template, initial_state(template, bindings), f"{template.graph.name}:1")

        def saved(problem: Problem) -> Plan:
            arena, bound = arena_bytes(problem, offset), proved_bound(problem)
            fault = check(problem, offset, arena)
            if fault is not None:
                raise PlanError(f"addresses in the order of another plan are wrong ({fault.kind}): {fault.message}")
            return Plan(offset, arena, bound, planned.strategy, terms.capacity)

        placed = place_lowered(lower_graph(part.graph, terms.options), terms.options, saved)
        return evolve(placed, optimisation=terms.optimisation)


@frozen(eq=False)
class Bounded:
    """The addresses of the greatest lengths, which serve all smaller ones; `greatest` are the bytes of owners there."""

    planner: LengthRangePlanner
    planned: Column
    greatest: Column

    def top(self, arena_bytes: int) -> int:
        """Returns the end of the addresses of the arena."""
        return arena_bytes

    def plan(self, template: Template, bindings: Bindings, terms: Terms, _: Column) -> PlacedPlan:
        """Writes down the plan of a stage; all checkers run."""
        return self.planner(template, bindings, terms).plan

    def start(self, _: Column, high: Column, __: Terms) -> tuple[Column, int]:
        """Returns the same as Stacking. Raises OtherChoiceError where a value is larger than for the greatest."""
        if (high > self.greatest).any():
            raise OtherChoiceError
        return self.planned, self.planner.plan.arena_bytes


@frozen(eq=False)
class ConstantAddresses:
    """The addresses of the constants that are read, by value, each that of its owner; 0 for all others.

    `packed` has the first byte, the end and the first element of all that is packed, in the order of the calls.
    """

    origin: Column
    packed: Array


@define(eq=False)
class PlanReuse:
    """Makes stages for new lengths like one that was planned, and their runners.

    `model` is the runner of that stage. `in_arena` says which values lie in the arena.
    """

    template: Template
    terms: Terms
    packs: PackCache
    pattern: Pattern
    rules: OverlapRules
    addresses: Stacking | Bounded
    model: StageRunner
    binder: CallBinder
    in_arena: Array
    constants: ConstantAddresses
    _fits: WeakKeyDictionary[Stage, Fit] = field(factory=WeakKeyDictionary)

    def stage(self, bindings: Bindings) -> ReusedStage:
        """Returns the stage for some lengths; `bindings` are those of the inputs.

        Raises OtherChoiceError where lowering must decide again, OpError for lengths that do not fit, DataFlowError or
        PlacementError where the judge refuses the addresses.
        """
        fit = self._fit(bindings)
        low, high = (np.where(self.in_arena, column, 0) for column in fit.spans.T[:2])
        start, arena = self.addresses.start(low, high, self.terms)
        try:
            check_overlaps(self.rules, low + start, high + start, arena)
        except (DataFlowError, PlacementError) as error:
            if isinstance(self.addresses, Bounded):  # for example an overwrite whose offset differs for smaller lengths
                raise OtherChoiceError from error
            raise
        after = RunState((), bindings, {}, {}, {}, self.addresses.top(arena), ())
        outputs = {name: fit.value(value).spec for name, value in self.pattern.lowered.outputs.items()}
        plan = partial(self.addresses.plan, self.template, bindings, self.terms, start)
        ticks = len(self.pattern.lowered.instructions) + 2
        stage = ReusedStage(
            1, plan, {}, initial_state(self.template, bindings), after, arena, ticks, outputs, reuse=self, start=start
        )
        self._fits.clear()
        self._fits[stage] = fit
        return stage

    def _fit(self, bindings: Bindings) -> Fit:
        return self.pattern.fit(bindings.lengths, bindings.shapes, bindings.data)

    def runner(self, stage: ReusedStage, memory: Memory, runner: Runner) -> "ReusedRunner":
        """Binds the calls of a stage of `stage` to the bytes of the arena."""
        fit = self._fits.pop(stage, None) or self._fit(stage.before.bindings)
        return ReusedRunner(self, stage, fit, memory, runner)

    def tried(self) -> "tuple[PlanReuse, ...]":
        """Returns the same, with the calls that may be moved; () where the pattern is not that of the model."""
        stage, values = self.model.stage, self.pattern.lowered.values
        try:
            fit = self._fit(stage.before.bindings)
        except (OtherChoiceError, OpError):
            return ()
        pairs = zip(values, fit.values, strict=True)
        if any(value.spec != geometry.spec or value.layout != geometry.layout for value, geometry in pairs):
            return ()
        placement = self.placement(fit, _starts(stage.plan), self.model.memory)
        return (evolve(self, binder=self.binder.try_moves(fit, placement, self.model.thunks)),)

    def placement(self, fit: Fit, start: Column, memory: Memory) -> Placement:
        """Returns the addresses of all values, and of what is packed."""
        origin = self.constants.origin.copy()
        low, high, _ = fit.spans[self.in_arena].T
        if (high > low).any():
            origin[self.in_arena] = start[self.in_arena] + address_of(memory.view(_FIRST_BYTE, _BYTE))
        for value, derived in fit.derived.items():
            origin[value] = address_of(derived)
        spans = np.concatenate((origin[:, np.newaxis] + fit.spans, self.constants.packed))
        constants, values = self.pattern.lowered.constants, self.pattern.lowered.values

        def array(value: int) -> Array:
            geometry, owner = fit.value(value), values[value].owner
            if self.in_arena[value]:
                return memory.view(placed_value(geometry, int(start[value])), geometry.spec.dtype)
            whole = fit.derived[owner] if owner in fit.derived else constants[owner]
            return view_array(whole, geometry.layout, geometry.spec.dtype)

        return Placement(spans, array)


class ReusedRunner:
    """The calls of a stage, bound. They are valid as long as the arena is not relocated."""

    def __init__(self, reuse: PlanReuse, stage: ReusedStage, fit: Fit, memory: Memory, runner: Runner) -> None:
        self.stage = stage
        self._memory, self._runner, self._packs = memory, runner, reuse.packs
        placement = reuse.placement(fit, stage.start, memory)
        lowered = reuse.pattern.lowered
        self._thunks = list(_programs(reuse.binder, fit, placement, runner))
        self._fed = {name: placement.array(value) for name, value in lowered.inputs.items()}
        self._left = {name: placement.array(value) for name, value in lowered.outputs.items()}

    def run(self, inputs: Mapping[str, Array], around: Arounds) -> dict[str, Array]:
        """Copies the feeds into the arena, calls the kernels, and returns the outputs as views of the arena."""
        if around:  # each call has a clock of its own
            return StageRunner(self.stage, self._memory, self._packs, self._runner).run(inputs, around)
        for name, array in self._fed.items():
            np.copyto(array, inputs[name])
        run_in_turn([call for call, _ in self._thunks], [thunk for _, thunk in self._thunks])
        return self._left


def _programs(binder: CallBinder, fit: Fit, placement: Placement, runner: Runner) -> Iterator[tuple[Call, Thunk]]:
    """Yields the thunks of a run, each with a call that an error names: calls of compiled code that follow each other
    are one thunk.
    """
    bound, calls = binder.bind(fit, placement), binder.calls
    costs = [0] * len(calls) if runner is ALONE else [fit.by_call[number].cost for number in binder.classes.tolist()]
    kept = bound.buffer, bound.kept
    tables, fallible, rows, cost, at = list[Array](), list[tuple[int, Call, Native]](), 0, 0, 0
    moved = 0
    for index in (*bound.thunks, len(calls)):
        ends = bound.rows[moved : moved + index - at + 1]
        table, shift = bound.steps[ends[0] : ends[-1]], rows - ends[0]
        failing = ((i, native) for i, native in bound.fallible.items() if at <= i < index)
        fallible += [(shift + ends[i - at], binder.call(i, fit), native) for i, native in failing]
        tables, rows, cost = [*tables, table], rows + len(table), cost + sum(costs[at:index])
        moved, at = moved + index - at, index + 1
        thunk = bound.thunks.get(index)
        if isinstance(thunk, Native):
            fallible.append((rows, binder.call(index, fit), thunk))
            tables.append(thunk.table)
            rows, cost = rows + len(thunk.table), cost + costs[index]
            continue
        if rows:
            yield calls[max(index - 1, 0)], step_table(runner, tables, cost, fallible, kept)
        if thunk is not None and thunk is not nothing:
            yield binder.call(index, fit), thunk
        tables, fallible, rows, cost = [], [], 0, 0


def plan_reuse(
    template: Template, terms: Terms, model: StageRunner, packs: PackCache, planner: Planner
) -> tuple[PlanReuse, ...]:
    """Returns what makes stages like the one that `model` runs; () where each length must be planned by itself.

    `planner` planned that stage.
    """
    plan, lowered, options = model.stage.plan, model.stage.plan.lowered, terms.options
    like = (planner.pattern,) if isinstance(planner, LengthRangePlanner) else ()
    pattern = make_pattern(template, lowered, options, like)
    in_arena = np.array([v.id in plan.ids for v in lowered.values])
    addresses = _addresses(plan, options, planner, in_arena)
    if not pattern or not addresses:
        return ()
    packed = model.packed
    are_calls = [isinstance(instruction, Call) for instruction in lowered.instructions]
    operands = call_operands(lowered, packed)
    binder = CallBinder(pattern[0], packed, operands, lowered.calls, pattern[0].classes.calls[are_calls])
    constants = _constants(model, operands, in_arena, pattern[0])
    rules = overlap_rules(lowered, options.alignment, options.padding)
    reuse = PlanReuse(template, terms, packs, pattern[0], rules, addresses[0], model, binder, in_arena, constants)
    return reuse.tried()


def _addresses(
    plan: PlacedPlan, options: Options, planner: Planner, in_arena: Array
) -> "tuple[Stacking | Bounded, ...]":
    """Returns how addresses follow from a plan; () where they must be searched for."""
    values = plan.lowered.values
    if isinstance(planner, LengthRangePlanner):
        if plan.plan is not planner.plan.plan:  # calls that did not fit the places of the greatest lengths
            return ()
        greatest = planner.plan.lowered.values
        sizes = np.array([greatest[v.owner].spec.nbytes for v in values], np.int64)
        return (Bounded(planner, _starts(plan), np.where(in_arena, sizes, NO_CAPACITY)),)
    if options.order != GIVEN:
        return ()
    owner = np.array([v.owner for v in values], np.int64)
    return tuple(Stacking(order, owner) for order in restacking(plan))


def _starts(plan: PlacedPlan) -> Column:
    """Returns the first byte of the owner of each value; 0 outside of the arena."""
    places = plan.places
    starts = [places[v.owner].layout.offset if v.id in plan.ids else 0 for v in plan.lowered.values]
    return np.array(starts, np.int64)


def _constants(model: StageRunner, operands: CallOperands, in_arena: Array, pattern: Pattern) -> ConstantAddresses:
    """Returns the addresses of the constants that calls read, and of what is packed."""
    lowered = pattern.lowered
    origin = np.zeros(len(lowered.values), np.int64)
    for value in {v for columns in operands.columns for v in columns.tolist() if v < len(origin) and not in_arena[v]}:
        owner = lowered.values[value].owner
        if owner not in pattern.derived:
            origin[value] = address_of(lowered.constants[owner])
    bounds = [byte_bounds(array) for call in lowered.calls for array in model.packed.arrays[call.tick]]
    spans = np.array([(low, high, low) for low, high in bounds], np.int64).reshape(-1, 3)
    return ConstantAddresses(origin, spans)
