"""One stage: a plan of what is known so far, with everything that is alive pinned where it is."""

from collections.abc import Mapping

from attrs import evolve, frozen

from allocator.problem import NO_CAPACITY
from engine.calls import Lowered, Storage
from engine.check import check_handover
from engine.errors import BudgetError
from engine.facts import Facts
from engine.plan import ExecutionPlan
from engine.planner import Options, lower_graph
from engine.report import budget_message
from engine.room import SEAM, Room
from engine.stages.draft import Draft, draft_stage
from engine.stages.heirs import Heirs, heirs
from engine.stages.progress import NOWHERE, Progress
from engine.stages.survivors import plan_with_survivors
from engine.stages.template import Template
from ops.spec import Array


@frozen(eq=False)
class Stage:
    """A planned stage. `reads` are the tensors whose elements fix the sizes of what comes next.

    `before` and `after` tell what is alive and known (`after` without the data that only the run has).
    """

    number: int
    plan: ExecutionPlan
    reads: tuple[str, ...]
    before: Progress
    after: Progress

    @property
    def is_last(self) -> bool:
        """Whether the network is through after it."""
        return not self.after.tasks


@frozen(eq=False)
class Terms:
    """How stages are planned: into at most `capacity` bytes, which are one block where they are `reserved`.

    Where they are not, the arena grows by a segment above what it has, and no chunk lies across the seam.
    """

    options: Options
    capacity: int = NO_CAPACITY
    reserved: bool = False


def first_stage(template: Template, facts: Facts, terms: Terms) -> Stage:
    """Plans everything that is known from the start. Raises as `next_stage`."""
    alive = dict.fromkeys(template.graph.inputs, NOWHERE)
    return _stage(template, Progress(template.tasks, facts, alive, {}, 0, ()), 1, terms)


def next_stage(template: Template, stage: Stage, data: Mapping[str, Array], terms: Terms) -> Stage:
    """Plans what the data that `stage` computed make known; what is alive stays where it is.

    Judges run: of the plan, of its data flow, of what was handed over. Raises BudgetError where the stage does not fit
    into the capacity, OpError where lengths do not fit.
    """
    progress = evolve(stage.after, facts=stage.after.facts.after({}, data))
    made = _stage(template, progress, stage.number + 1, terms)
    check_handover(stage.plan, made.plan)
    return made


def _stage(template: Template, progress: Progress, number: int, terms: Terms) -> Stage:
    draft = draft_stage(template, progress, f"{template.graph.name}:{number}")
    lowered = lower_graph(draft.graph, terms.options)
    left = heirs(template, draft, lowered)
    if draft.rest:
        lowered = _handing_over(lowered, left)
    pinned = {lowered.inputs[name]: at for name, at in progress.alive.items() if at != NOWHERE}
    seams = progress.seams + ((progress.top,) if progress.top and not terms.reserved else ())
    survivors = [lowered.outputs[name] for name in left.tensors]
    plan = plan_with_survivors(lowered, terms.options, terms.capacity, Room(pinned, seams), survivors)
    needed, capacity = plan.arena_bytes, terms.capacity
    if needed > capacity:
        where = f"stage {number} of {template.graph.name!r}, before {draft.tasks[0].operator.name!r} runs: "
        raise BudgetError(where + budget_message(plan), needed, capacity, plan.plan.lower_bound)
    return Stage(number, plan, left.reads, progress, _after(draft, plan, left, progress, seams))


def _handing_over(lowered: Lowered, left: Heirs) -> Lowered:
    """The stage with outputs: what others need later, and what they must know."""
    graph, values = lowered.graph, {v.name: v.id for v in lowered.values}
    names = dict.fromkeys((*left.tensors, *left.reads))
    for name in names:
        graph.output(graph.vars[name], name)
    return evolve(lowered, outputs={name: values[name] for name in names})


def _after(draft: Draft, plan: ExecutionPlan, left: Heirs, progress: Progress, seams: tuple[int, ...]) -> Progress:
    places = {name: plan.places[plan.lowered.outputs[name]] for name in left.tensors}
    alive = {name: place.layout.offset for name, place in places.items() if place.storage is Storage.ARENA}
    grown = plan.arena_bytes > progress.top
    top = -(-plan.arena_bytes // SEAM) * SEAM if grown else progress.top
    return Progress(draft.rest, draft.facts, alive, left.views, top, seams if grown else progress.seams)
