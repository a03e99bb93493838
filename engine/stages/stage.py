"""One stage: a plan of what is known so far, with everything that is alive pinned where it is."""

from collections.abc import Mapping

from attrs import evolve, frozen

from allocator.problem import NO_CAPACITY
from engine.check import check_handover
from engine.graph.bindings import Facts
from engine.lower.calls import Lowered
from engine.planning.options import Options
from engine.planning.placed import PlacedPlan
from engine.planning.planner import lower_graph, plan_in_order
from engine.planning.reserved import SEAM, Room
from engine.report.report import check_budget
from engine.stages.compaction import plan_with_survivors
from engine.stages.live_out import Heirs, heirs
from engine.stages.partial_graph import Draft, draft_stage
from engine.stages.progress import NOWHERE, Held, Progress, at_the_start
from engine.stages.task import Template
from ops.tensor.spec import Array


@frozen(eq=False)
class Stage:
    """A planned stage. `reads` are the tensors whose elements fix the sizes of what comes next, by the key of the fact.

    `before` and `after` tell what is alive and known (`after` without the data that only the run has).
    """

    number: int
    plan: PlacedPlan
    reads: Mapping[str, str]
    before: Progress
    after: Progress

    @property
    def arena_bytes(self) -> int:
        """Bytes of the arena that it ends with; seams have none."""
        return self.plan.arena_bytes - SEAM * len(self.after.seams)

    @property
    def is_last(self) -> bool:
        """Whether the network is through after it."""
        return not self.after.tasks


@frozen(eq=False)
class Terms:
    """How stages are planned: into at most `capacity` bytes, and into one block or not.

    If not, the arena grows by segments as large as what it has, or larger, and no chunk lies across a seam.
    """

    options: Options
    capacity: int = NO_CAPACITY
    in_one_block: bool = False


def first_stage(template: Template, facts: Facts, terms: Terms) -> Stage:
    """Plans everything that is known from the start. Raises as `next_stage`."""
    return _stage(template, at_the_start(template, facts), 1, terms)


def next_stage(template: Template, stage: Stage, data: Mapping[str, Array], terms: Terms) -> Stage:
    """Plans what the data that `stage` computed make known; what is alive stays where it is.

    Judges run: of the plan, of its data flow, of what was handed over. Raises BudgetError where the stage does not fit
    into the capacity, OpError where lengths do not fit.
    """
    progress = evolve(stage.after, facts=stage.after.facts.after(data))
    made = _stage(template, progress, stage.number + 1, terms)
    check_handover(stage.plan, made.plan)
    return made


def _stage(template: Template, progress: Progress, number: int, terms: Terms) -> Stage:
    draft = draft_stage(template, progress, f"{template.graph.name}:{number}")
    lowered = lower_graph(draft.graph, terms.options)
    left = heirs(template.graph, draft, lowered, progress)
    if draft.rest:
        lowered = _handing_over(lowered, left)
    pinned = {lowered.inputs[v.name]: held.offset for v, held in progress.alive.items() if held.offset != NOWHERE}
    seams = progress.seams + ((progress.top,) if progress.top and not terms.in_one_block else ())
    survivors = {lowered.outputs[v.name]: last for v, last in left.vars.items()}
    room = Room(pinned, seams)

    def plan_calls(calls: Lowered) -> PlacedPlan:
        return plan_with_survivors(calls, terms.options, terms.capacity, room, survivors)

    plan = plan_in_order(lowered, terms.options, plan_calls)
    first = draft.graph.operators[0].name if draft.graph.operators else "its end"
    check_budget(plan, f"stage {number} of {template.graph.name!r}, before {first!r} runs: ")
    reads = {key: var.name for key, var in left.reads.items()}
    return Stage(number, plan, reads, progress, _after(draft, plan, left, progress, terms.in_one_block))


def _handing_over(lowered: Lowered, left: Heirs) -> Lowered:
    """The stage with outputs: what others need later, and what they must know."""
    graph, values = lowered.graph, {v.name: v.id for v in lowered.values}
    names = list(dict.fromkeys(v.name for v in (*left.vars, *left.reads.values())))
    for name in names:
        graph.output(graph.vars[name], name)
    return evolve(lowered, outputs={name: values[name] for name in names}, hands_over=True)


def _after(draft: Draft, plan: PlacedPlan, left: Heirs, progress: Progress, in_one_block: bool) -> Progress:
    alive = {}
    for var in left.vars:
        place = plan.places[plan.lowered.outputs[var.name]]
        alive[var] = Held(place.layout.offset, place.layout.shape)
    top, seams = progress.top, progress.seams
    if plan.arena_bytes > top:
        seams = seams if in_one_block or not top else (*seams, top)
        least = 0 if in_one_block else 2 * top  # small segments that nothing fits into would add up
        top = max(-(-plan.arena_bytes // SEAM) * SEAM, least)
    return Progress(draft.rest, draft.facts, alive, left.views, draft.keyed, top, seams)
