"""`arenaplan plan --share`: several models in one arena."""

from argparse import Namespace
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path

from attrs import evolve

from engine.api import make_plan
from engine.cli.interrupts import interrupt_ends_search
from engine.cli.options.common import plan_options, print_text, stdout_width
from engine.cli.options.embedded import plan_in_file
from engine.cli.options.models import load_graph
from engine.cli.options.values import print_json
from engine.cli.options.workers import workers_share
from engine.execution_plan import ExecutionPlan
from engine.models.zoo import is_zoo
from engine.planning.options import parse_budget
from engine.sharing.files import check_suffix, write_shared
from engine.sharing.result import SharedPlan
from engine.sharing.share import share
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
    plans = [_plan(Namespace(**{**vars(arguments), "file": file})) for file in files]
    pipeline = [_link(text, plans, files, names) for text in arguments.pipeline]
    plan = share(
        *plans,
        concurrent=[(plans[i], plans[j]) for i, j in concurrent],
        pipeline=pipeline,
        same_state=[(plans[i], plans[j]) for i, j in same_state],
    )
    models = tuple(evolve(model, name=name) for model, name in zip(plan.models, names, strict=True))
    _check_budget(plan, parse_budget(arguments.budget))
    return evolve(plan, models=models)


def _plan(arguments: Namespace) -> ExecutionPlan:
    graph = load_graph(arguments)
    if graph.is_symbolic:
        raise OptionError(f"--share takes plans of known sizes; data decide some of {arguments.file} while it runs")
    embedded, recompute = plan_in_file(arguments, graph), not arguments.no_recompute
    options = plan_options(arguments)
    try:
        return make_plan(graph, budget=arguments.budget, recompute=recompute, embedded=embedded, **options)
    except BudgetError as error:
        sizes = error.required, error.available, error.lower_bound
        raise BudgetError(f"{arguments.file}: {error}", *sizes, least=error.least, share=error.share) from error


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
