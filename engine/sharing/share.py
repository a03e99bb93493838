"""Several networks in one arena: what never runs at the same time shares bytes."""

from collections.abc import Iterable, Sequence
from itertools import count

from engine.api import Executable, make_plan
from engine.check import Asked, check_data_flow, check_placement, check_races
from engine.check.shared import Member, check_shared
from engine.execution_plan import ExecutionPlan
from engine.graph.graph import Graph
from engine.sharing.blocks import Pairs, arrange
from engine.sharing.parts import split
from engine.sharing.result import SharedModel, SharedPlan
from engine.text.errors import OptionError
from engine.text.faults import behind_door

Model = ExecutionPlan | Graph


@behind_door("planning")
def share(*models: Model, concurrent: Iterable[tuple[Model, Model]] = ()) -> SharedPlan:
    """Plans one arena for several networks, given as plans, or as graphs, which are planned with default options.

    Networks that never run at the same time share all bytes that only one run needs. Parameters have bytes of their own
    there, because their values must survive the runs of others. `concurrent` has pairs of networks, of those that are
    given, which may run at the same time: they share no byte. Addresses inside a network stay as its plan has them, but
    for parameters, which move together. Raises OptionError, GraphError for a graph with lengths that are not known.
    """
    pairs = _pairs(models, concurrent)
    plans = [_planned(model) for model in models]
    parts = [split(plan) for plan in plans]
    layout = arrange(parts, pairs)
    members = []
    for name, part, state, scratch in zip(_names(plans), parts, layout.state, layout.scratch, strict=True):
        first, plan = part.at(state, scratch)
        if plan is not part.plan:
            _check(plan)
        members.append(
            SharedModel(name, plan, first, state, part.state_bytes, scratch, part.scratch_bytes, part.plan.arena_bytes)
        )
    check_shared([Member(m.name, m.plan, m.first) for m in members], pairs, layout.arena_bytes)
    return SharedPlan(tuple(members), tuple(sorted(pairs)), layout.arena_bytes, layout.bound)


def _planned(model: Model) -> ExecutionPlan:
    return make_plan(model) if isinstance(model, Graph) else model


def _pairs(models: Sequence[Model], concurrent: Iterable[tuple[Model, Model]]) -> Pairs:
    """Returns the pairs by number. Raises OptionError."""
    for model in models:
        if isinstance(model, Executable):
            raise OptionError(f"share takes plans and graphs: give the plan of {model!r}")
        if not isinstance(model, (ExecutionPlan, Graph)):
            raise OptionError(f"share takes plans and graphs, not a {type(model).__name__}")
        if isinstance(model, ExecutionPlan) and model.is_stage:
            raise OptionError(f"{model.lowered.graph.name!r} runs in stages, whose arena grows: nothing can share it")
    number = {id(model): i for i, model in enumerate(models)}
    if len(models) < 2 or len(number) < len(models):
        raise OptionError("share takes two networks or more, each once; a network that stands twice needs two plans")
    pairs = set()
    for pair in concurrent if isinstance(concurrent, Iterable) else [concurrent]:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or any(id(model) not in number for model in pair):
            raise OptionError("concurrent takes pairs of the networks that are given, such as [(a, c)]")
        one, other = sorted(number[id(model)] for model in pair)
        if one == other:
            raise OptionError("concurrent has a network with itself: one network runs once at a time")
        pairs.add((one, other))
    return frozenset(pairs)


def _names(plans: Sequence[ExecutionPlan]) -> list[str]:
    """Returns the names of the graphs; later ones of the same name get a number behind."""
    names: list[str] = []
    for plan in plans:
        name = plan.lowered.graph.name
        others = (f"{name}#{turn}" for turn in count(2))
        names.append(name if name not in names else next(other for other in others if other not in names))
    return names


def _check(plan: ExecutionPlan) -> None:
    """Lets the judges of one plan look at it again, as its parameters have moved."""
    check_placement(plan, Asked(plan.options.alignment, plan.options.padding))
    check_data_flow(plan)
    if plan.schedule.policy:
        check_races(plan)
