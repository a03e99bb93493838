"""`arenaplan plan --share`: several models in one arena."""

from argparse import Namespace
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path

from attrs import evolve, frozen

from allocator.problem import NO_CAPACITY
from engine.api import make_plan
from engine.cli.interrupts import interrupt_ends_search
from engine.cli.options.common import plan_options, print_text, stdout_width
from engine.cli.options.embedded import plan_in_file
from engine.cli.options.models import load_graph
from engine.cli.options.values import print_json
from engine.cli.options.workers import workers_share
from engine.execution_plan import ExecutionPlan
from engine.graph.graph import Graph
from engine.models.zoo import is_zoo
from engine.planning.options import parse_budget
from engine.sharing.blocks import Groups, groups_of
from engine.sharing.files import check_suffix, write_shared
from engine.sharing.result import SharedPlan
from engine.sharing.share import share
from engine.sharing.within import bytes_in_two_parts, states_of_others
from engine.text.errors import BudgetError, OptionError
from engine.text.tables import fitted
from engine.text.units import format_bytes


def run(arguments: Namespace) -> int:
    """Plans one arena for the models, and prints the table or JSON. Raises BudgetError, OptionError, ModelError."""
    if arguments.output is not None:
        check_suffix(arguments.output)
    with interrupt_ends_search(), workers_share(arguments):
        plan = _shared(arguments)
    if arguments.output is not None:
        write_shared(plan, arguments.output, arguments.prefix)
    if arguments.json:
        print_json(plan.to_json())
    else:
        print_text(fitted(plan.text(), stdout_width()))
    return 0


def _shared(arguments: Namespace) -> SharedPlan:
    files = [arguments.file, *arguments.others]
    names = _labels(files)
    concurrent = _pairs("--concurrent", arguments.concurrent, files, names)
    same_state = _pairs("--same-state", arguments.same_state, files, names)
    budget = parse_budget(arguments.budget)
    models = [_Model.of(Namespace(**{**vars(arguments), "file": file})) for file in files]
    plans = [model.plan(budget) for model in models]
    if budget < NO_CAPACITY:
        plans = _beside_states(models, plans, budget, groups_of(len(plans), same_state))
    pipeline = [_link(text, plans, files, names) for text in arguments.pipeline]
    plan = share(
        *plans,
        concurrent=[(plans[i], plans[j]) for i, j in concurrent],
        pipeline=pipeline,
        same_state=[(plans[i], plans[j]) for i, j in same_state],
    )
    _check_budget(plan, budget)
    return evolve(plan, models=tuple(evolve(m, name=name) for m, name in zip(plan.models, names, strict=True)))


@frozen(eq=False)
class _Model:
    """One of the models, with the options of the command for it."""

    arguments: Namespace
    graph: Graph

    @classmethod
    def of(cls, arguments: Namespace) -> "_Model":
        """Loads a model. Raises OptionError where data decide sizes of it."""
        graph = load_graph(arguments)
        if graph.is_symbolic:
            raise OptionError(f"--share takes plans of known sizes; data decide some of {arguments.file} while it runs")
        return cls(arguments, graph)

    def plan(self, budget: int, why: str = "") -> ExecutionPlan:
        """Plans the model. Raises BudgetError, with `why` the budget is what it is."""
        embedded, recompute = plan_in_file(self.arguments, self.graph), not self.arguments.no_recompute
        options = plan_options(self.arguments)
        try:
            return make_plan(self.graph, budget=budget, recompute=recompute, embedded=embedded, **options)
        except BudgetError as error:
            sizes = error.required, error.available, error.lower_bound
            text = f"{self.arguments.file}{why}: {error}"
            raise BudgetError(text, *sizes, least=error.least, share=error.share) from error


def _beside_states(
    models: Sequence[_Model], plans: Sequence[ExecutionPlan], budget: int, same_state: Groups
) -> list[ExecutionPlan]:
    """Returns the plans, each within what the state of the others leaves of the budget; those that are, stay.

    Raises BudgetError.
    """
    within = []
    for model, plan, others in zip(models, plans, states_of_others(plans, same_state), strict=True):
        room, text = budget - others, f"{others} bytes ({format_bytes(others)}) of parameters of the other models"
        if room <= 0:
            raise BudgetError(
                f"{model.arguments.file}, beside {text}: available are {budget} bytes ({format_bytes(budget)}) for all",
                others,
                budget,
                others,
            )
        fits = bytes_in_two_parts(plan) <= room
        within.append(plan if fits else model.plan(room, f", beside {text}"))
    return within


def _labels(files: Sequence[Path]) -> list[str]:
    """Returns a name for each model: that of its file without suffix, or what was typed where that is the same."""
    stems = [str(file) if is_zoo(file) else file.stem for file in files]
    names = [stem if stems.count(stem) == 1 else str(file) for stem, file in zip(stems, files, strict=True)]
    twice = next((name for name in names if names.count(name) > 1), "")
    if twice:
        raise OptionError(f"{twice} is given twice; give a copy of the file for a second network")
    return names


def _pairs(
    option: str, groups: Iterable[Sequence[str]], files: Sequence[Path], names: Sequence[str]
) -> list[tuple[int, int]]:
    """Returns all pairs of models of each group of names. Raises OptionError."""
    numbers = ([_number(option, name, files, names) for name in group] for group in groups)
    return [pair for group in numbers for pair in combinations(group, 2)]


def _number(option: str, name: str, files: Sequence[Path], names: Sequence[str]) -> int:
    """Returns the number of the model that a name means. Raises OptionError."""
    meant = [i for i, file in enumerate(files) if name in _aliases(file, names[i])]
    if len(meant) != 1:
        raise OptionError(
            f"{option} {name}: {'no' if not meant else 'more than one'} model is called so; "
            f"there are {', '.join(names)}"
        )
    return meant[0]


def _aliases(file: Path, label: str) -> set[str]:
    """Returns the names by which options may call a model: "squeezenet" is zoo:squeezenet?image=64, too."""
    short = {str(file).removeprefix("zoo:").partition("?")[0]} if is_zoo(file) else set()
    return {label, file.name, str(file), *short}


def _link(
    text: str, plans: Sequence[ExecutionPlan], files: Sequence[Path], names: Sequence[str]
) -> tuple[ExecutionPlan, str, ExecutionPlan, str]:
    """Returns the link that MODEL:OUTPUT=MODEL:INPUT means. Names of tensors may have any of these signs, too.

    Raises OptionError.
    """
    ends: tuple[dict[str, tuple[int, str]], ...] = ({}, {})
    for i, plan in enumerate(plans):
        for by_text, tensors in zip(ends, (plan.lowered.outputs, plan.lowered.inputs), strict=True):
            by_text.update({f"{model}:{name}": (i, name) for model in _aliases(files[i], names[i]) for name in tensors})
    for cut in (i for i, sign in enumerate(text) if sign == "="):
        giver, taker = ends[0].get(text[:cut]), ends[1].get(text[cut + 1 :])
        if giver and taker:
            return plans[giver[0]], giver[1], plans[taker[0]], taker[1]
    choices = [f"{names[i]}:{name}" for by_text in ends for i, name in dict.fromkeys(by_text.values())]
    raise OptionError(
        f"--pipeline {text} is no output of one model and input of another; there are {', '.join(choices)}"
    )


def _check_budget(plan: SharedPlan, budget: int) -> None:
    if plan.arena_bytes > budget:
        raise BudgetError(
            f"the shared arena has {format_bytes(plan.arena_bytes)} ({plan.arena_bytes} B), and no layout less "
            f"than {format_bytes(plan.lower_bound)}; available are {format_bytes(budget)}. Smaller plans of each may "
            "fit: give each its own budget in arenaplan.make_plan, and share them",
            plan.arena_bytes,
            budget,
            plan.lower_bound,
        )
