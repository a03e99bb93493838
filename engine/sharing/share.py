"""Several networks in one arena: what never runs at the same time shares bytes."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import count

from engine.api import Executable, make_plan
from engine.check import Asked, check_data_flow, check_placement, check_races
from engine.check.shared import Link, Member, check_shared
from engine.execution_plan import ExecutionPlan
from engine.graph.graph import Graph
from engine.planning.options import check_one_arena
from engine.sharing.blocks import Pairs, arrange, groups_of
from engine.sharing.parts import split, with_state_of
from engine.sharing.pipelines import joined_parts
from engine.sharing.result import SharedModel, SharedPlan
from engine.text.errors import OptionError
from engine.text.faults import behind_door
from engine.text.options import close_to

Model = ExecutionPlan | Graph


@behind_door("planning")
def share(
    *models: Model,
    concurrent: Iterable[tuple[Model, Model]] = (),
    pipeline: Iterable[tuple[Model, str, Model, str]] = (),
    same_state: Iterable[tuple[Model, Model]] = (),
) -> SharedPlan:
    """Plans one arena for several networks, given as plans, or as graphs, which are planned with default options.

    Networks that never run at the same time share all bytes that only one run needs. Parameters have bytes of their own
    there, because their values must survive the runs of others. `concurrent` has pairs of networks, of those that are
    given, which may run at the same time: they share no byte. `pipeline` has outputs that are inputs of others, such
    as (a, "y", b, "x"): both lie at the same bytes, so that a run of b right behind one of a copies nothing if it is
    fed with the view of y. Each network takes from one other at most, and gives to one. `same_state` has pairs of
    networks with the same parameters, such as the prompt and the single step of a decoder: what one writes there, the
    other reads. Addresses inside a network stay as its plan has them, but for parameters, which move together, and
    networks of a pipeline. Raises OptionError, GraphError for a graph with lengths that are not known.
    """
    number = _numbers(models)
    pairs = _pairs(number, "concurrent", concurrent)
    same = groups_of(len(models), _pairs(number, "same_state", same_state))
    plans = [_planned(model) for model in models]
    links = _links(number, plans, pipeline)
    groups = groups_of(len(plans), ((link.giver, link.taker) for link in links))
    for pair in sorted(pairs):
        if any({*pair} <= {*group} for group in (*groups, *same)):
            one, other = (plans[i].lowered.graph.name for i in pair)
            why = "stand in one pipeline or have the same state"
            raise OptionError(f"{one!r} and {other!r} {why}, so they cannot run at the same time")
    parts = joined_parts([split(plan) for plan in plans], links, groups)
    for group in same:
        leader = max(group, key=lambda number: plans[number].alignment)
        for i in group:
            if i != leader:
                parts[i] = with_state_of(parts[i], parts[leader])
    layout = arrange(parts, pairs, groups, same)
    members = []
    for name, part, state, scratch in zip(_names(plans), parts, layout.state, layout.scratch, strict=True):
        first, plan = part.at(state, scratch)
        if plan is not part.plan:
            _check(plan)
        members.append(
            SharedModel(name, plan, first, state, part.state_bytes, scratch, part.scratch_bytes, part.plan.arena_bytes)
        )
    check_shared([Member(m.name, m.plan, m.first) for m in members], pairs, layout.arena_bytes, links, same)
    return SharedPlan(tuple(members), tuple(sorted(pairs)), layout.arena_bytes, layout.bound, links, same)


def _planned(model: Model) -> ExecutionPlan:
    return make_plan(model) if isinstance(model, Graph) else model


def _numbers(models: Sequence[Model]) -> dict[int, int]:
    """Returns the number of each model, by its identity. Raises OptionError."""
    for model in models:
        if isinstance(model, Executable):
            raise OptionError(f"share takes plans and graphs: give the plan of {model!r}")
        if not isinstance(model, (ExecutionPlan, Graph)):
            raise OptionError(f"share takes plans and graphs, not a {type(model).__name__}")
        if isinstance(model, ExecutionPlan) and model.is_stage:
            raise OptionError(f"{model.lowered.graph.name!r} runs in stages, whose arena grows: nothing can share it")
        if isinstance(model, ExecutionPlan):
            check_one_arena(model.options, f"a shared plan, with {model.lowered.graph.name!r} in it,")
    number = {id(model): i for i, model in enumerate(models)}
    if len(models) < 2 or len(number) < len(models):
        raise OptionError("share takes two networks or more, each once; a network that stands twice needs two plans")
    return number


def _pairs(number: Mapping[int, int], option: str, asked: Iterable[tuple[Model, Model]]) -> Pairs:
    """Returns the pairs of an option by number. Raises OptionError."""
    pairs = set()
    for pair in asked if isinstance(asked, Iterable) else [asked]:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or any(id(model) not in number for model in pair):
            raise OptionError(f"{option} takes pairs of the networks that are given, such as [(a, c)]")
        one, other = sorted(number[id(model)] for model in pair)
        if one == other:
            raise OptionError(f"{option} has a network with itself: give two networks")
        pairs.add((one, other))
    return frozenset(pairs)


def _links(
    number: Mapping[int, int], plans: Sequence[ExecutionPlan], pipeline: Iterable[tuple[Model, str, Model, str]]
) -> tuple[Link, ...]:
    """Returns the links by number. Raises OptionError."""
    links = list[Link]()
    for row in pipeline if isinstance(pipeline, Iterable) else [pipeline]:
        if not _is_link(row, number):
            raise OptionError('pipeline takes rows of the networks that are given, such as [(a, "y", b, "x")]')
        link = Link(number[id(row[0])], row[1], number[id(row[2])], row[3])
        if link.giver == link.taker:
            raise OptionError("pipeline has a network whose output is its own input: that is copied")
        giver, taker = plans[link.giver].lowered, plans[link.taker].lowered
        for kind, name, names, graph in (
            ("output", link.output, giver.outputs, giver.graph),
            ("input", link.input, taker.inputs, taker.graph),
        ):
            if name not in names:
                raise OptionError(f"pipeline: {graph.name!r} has no {kind} {name!r}; {close_to(name, names)}")
        if any((link.taker, link.input) == (other.taker, other.input) for other in links):
            raise OptionError(f"pipeline: input {link.input!r} of {taker.graph.name!r} stands twice")
        for other in links:
            if (other.giver == link.giver) != (other.taker == link.taker):
                raise OptionError(
                    f"pipeline: {giver.graph.name!r} and {taker.graph.name!r} stand in it with a third network, whose "
                    "run would overwrite what one gives to the other: each network has one before it and one behind it"
                )
        links.append(link)
    return tuple(links)


def _is_link(row: object, number: Mapping[int, int]) -> bool:
    if not isinstance(row, (tuple, list)) or len(row) != 4:
        return False
    return all(id(model) in number for model in row[::2]) and all(isinstance(name, str) for name in row[1::2])


def _names(plans: Sequence[ExecutionPlan]) -> list[str]:
    """Returns the names of the graphs; later ones of the same name get a number behind."""
    names: list[str] = []
    for plan in plans:
        name = plan.lowered.graph.name
        others = (f"{name}#{turn}" for turn in count(2))
        names.append(name if name not in names else next(other for other in others if other not in names))
    return names


def _check(plan: ExecutionPlan) -> None:
    """Lets the judges of one plan look at it again, as some of its chunks have moved."""
    check_placement(plan, Asked(plan.options.alignment, plan.options.padding))
    check_data_flow(plan)
    if plan.schedule.policy:
        check_races(plan)
