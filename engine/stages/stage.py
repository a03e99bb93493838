"""One stage of a run: a plan of everything whose sizes are known, with all live tensors pinned where they are."""

from collections.abc import Callable, Mapping
from functools import cached_property

from attrs import evolve, field, frozen

from allocator.problem import NO_CAPACITY
from engine.check import check_handover
from engine.graph.bindings import Bindings
from engine.lower.calls import Lowered
from engine.planning.options import Options
from engine.planning.placed import Optimisation, PlacedPlan
from engine.planning.planner import lower_graph, plan_in_order
from engine.planning.reserved import BOUNDARY_BYTES, Reserved
from engine.report.report import check_budget
from engine.stages.compaction import plan_compacted
from engine.stages.live_out import LiveOut, live_out
from engine.stages.partial_graph import PartialGraph, stage_graph
from engine.stages.state import NOWHERE, LiveTensor, RunState, initial_state
from engine.stages.task import Template
from engine.text.names import few
from ops.tensor.spec import Array, TensorSpec


@frozen(eq=False, slots=False)
class Stage:
    """A planned stage. `reads` names the tensors whose elements fix the sizes of the next stage, by key.

    `before` and `after` are the states of the run; `after` lacks the data that only the run has. `make_plan` gives the
    plan, `planned_bytes` its arena, `ticks` its ticks, `outputs` the specs of what it computes; they are known before
    the plan is asked for.
    """

    number: int
    make_plan: Callable[[], PlacedPlan] = field(repr=False)
    reads: Mapping[str, str]
    before: RunState
    after: RunState
    planned_bytes: int
    ticks: int
    outputs: Mapping[str, TensorSpec]

    def __repr__(self) -> str:
        """Returns one line; the states of a run fill many screens."""
        return f"<stage {self.number}: {self.ticks} ticks, arena {self.planned_bytes} B, reads {few(self.reads)}>"

    @cached_property
    def plan(self) -> PlacedPlan:
        """The plan."""
        return self.make_plan()

    @property
    def arena_bytes(self) -> int:
        """Bytes of the arena after this stage, without boundaries."""
        return self.planned_bytes - BOUNDARY_BYTES * len(self.after.boundaries)

    @property
    def is_last(self) -> bool:
        """True if the network is complete after this stage."""
        return not self.after.tasks


def planned_stage(number: int, plan: PlacedPlan, reads: Mapping[str, str], before: RunState, after: RunState) -> Stage:
    """Returns the stage of a plan."""
    lowered = plan.lowered
    outputs = {name: lowered.values[value].spec for name, value in lowered.outputs.items()}
    return Stage(number, lambda: plan, reads, before, after, plan.arena_bytes, len(lowered.instructions) + 2, outputs)


@frozen(eq=False)
class Terms:
    """The terms of planning stages: into at most `capacity` bytes, in one block of memory or in segments.

    In segments, the arena grows by at least the bytes that it has, and no chunk lies across a boundary. `optimisation`
    says what passes did to the template before, as in plans.
    """

    options: Options
    capacity: int = NO_CAPACITY
    in_one_block: bool = False
    optimisation: tuple[Optimisation, ...] = ()


def first_stage(template: Template, bindings: Bindings, terms: Terms) -> Stage:
    """Plans everything whose sizes are known from the start. Raises as `next_stage`."""
    return _stage(template, initial_state(template, bindings), 1, terms)


def next_stage(template: Template, stage: Stage, data: Mapping[str, Array], terms: Terms) -> Stage:
    """Plans everything whose sizes the data that `stage` computed make known; live tensors stay where they are.

    The checkers of the plan, of its data flow and of the handover run. Raises BudgetError where the stage does not fit
    into the capacity, OpError where lengths do not fit.
    """
    state = evolve(stage.after, bindings=stage.after.bindings.after(data))
    following = _stage(template, state, stage.number + 1, terms)
    check_handover(stage.plan, following.plan)
    return following


def _stage(template: Template, state: RunState, number: int, terms: Terms) -> Stage:
    part = stage_graph(template, state, f"{template.graph.name}:{number}")
    lowered = lower_graph(part.graph, terms.options)
    left = live_out(template.graph, part, lowered, state)
    if part.rest:
        lowered = _with_live_outputs(lowered, left)
    pinned = {lowered.inputs[v.name]: tensor.offset for v, tensor in state.alive.items() if tensor.offset != NOWHERE}
    boundaries = state.boundaries + ((state.top,) if state.top and not terms.in_one_block else ())
    last_use = {lowered.outputs[v.name]: last for v, last in left.vars.items()}
    reserved = Reserved(pinned, boundaries)

    def plan_calls(calls: Lowered, options: Options) -> PlacedPlan:
        return plan_compacted(calls, options, terms.capacity, reserved, last_use)

    plan = evolve(plan_in_order(lowered, terms.options, plan_calls), optimisation=terms.optimisation)
    first = part.graph.operators[0].name if part.graph.operators else "its end"
    check_budget(plan, f"stage {number} of {template.graph.name!r}, before {first!r} runs: ")
    reads = {key: var.name for key, var in left.reads.items()}
    return planned_stage(number, plan, reads, state, _state_after(part, plan, left, state, terms.in_one_block))


def rounded_top(arena_bytes: int) -> int:
    """Returns the end of the addresses of an arena, a multiple of the bytes of a boundary."""
    return -(-arena_bytes // BOUNDARY_BYTES) * BOUNDARY_BYTES


def _with_live_outputs(lowered: Lowered, left: LiveOut) -> Lowered:
    """Returns the stage with outputs: the tensors that later stages use, and those whose data they need."""
    names = list(dict.fromkeys(v.name for v in (*left.vars, *left.reads.values())))
    values = {v.name: v.id for v in lowered.values}
    graph, outputs = lowered.graph.with_outputs(names), {name: values[name] for name in names}
    return evolve(lowered, graph=graph, outputs=outputs, hands_over=True)


def _state_after(part: PartialGraph, plan: PlacedPlan, left: LiveOut, state: RunState, in_one_block: bool) -> RunState:
    alive = {}
    for var in left.vars:
        place = plan.places[plan.lowered.outputs[var.name]]
        alive[var] = LiveTensor(place.layout.offset, place.layout.shape)
    top, boundaries = state.top, state.boundaries
    if plan.arena_bytes > top:
        boundaries = boundaries if in_one_block or not top else (*boundaries, top)
        least = 0 if in_one_block else 2 * top  # many small segments, into which no chunk fits, would waste memory
        top = max(rounded_top(plan.arena_bytes), least)
    return RunState(part.rest, part.bindings, alive, left.views, part.keyed, top, boundaries)
