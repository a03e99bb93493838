"""`arenaplan plan`: what a model would need."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from importlib import import_module
from pathlib import Path
from typing import Any

from engine.api import make_plan
from engine.cli.interrupts import interrupt_ends_search
from engine.cli.length_ranges import plan_length_ranges
from engine.cli.options.common import add_parallel, add_planning, plan_options, print_text, stdout_width
from engine.cli.options.dims import named_length_ranges
from engine.cli.options.embedded import REQUIRED, add_plan_from_file, plan_in_file
from engine.cli.options.model_flags import add_model
from engine.cli.options.models import load_graph, load_open
from engine.cli.options.plan_output import add_plan_output, asked_output, check_one_plan, write_planned
from engine.cli.options.values import add_json, count, print_json
from engine.cli.options.workers import add_workers, workers_share
from engine.cli.stages import plan_first, stage_data, stage_text
from engine.execution_plan import ExecutionPlan, execution_plan
from engine.report.data import plan_data
from engine.report.kernels import kernel_table
from engine.text.errors import OptionError
from engine.workers.names import HERE

HELP = "plan a model and say what it needs"


def add_arguments(parser: ArgumentParser) -> None:
    """Adds the options of this subcommand."""
    add_options(parser)
    _add_sharing(parser)
    add_plan_output(parser)
    add_workers(parser, default=HERE)


def add_options(parser: ArgumentParser) -> None:
    """Adds the options that say what is planned, and how."""
    add_model(parser)
    add_planning(parser)
    add_parallel(parser)
    add_plan_from_file(parser)
    parser.add_argument(
        "--length-ranges",
        metavar="NAME=LEAST:GREATEST,...",
        type=named_length_ranges,
        action="extend",
        default=[],
        help="one plan for all lengths of dimensions that are names, such as batch=1:8,seq=1:512; repeatable",
    )
    parser.add_argument("--kernels", action="store_true", help="also show which kernel computes each operator")
    parser.add_argument("--top", metavar="N", type=count, default=10, help="tensors shown at the peak (default 10)")
    add_json(parser)


def run(arguments: Namespace) -> int:
    """Prints the report of the plan; of its first stage alone where data decide the sizes of the rest.

    With --share, prints the table of all models.
    """
    _check_sharing(arguments)
    if arguments.share:
        code: int = import_module("engine.cli.shared").run(arguments)
        return code
    path = asked_output(arguments)
    with interrupt_ends_search(), workers_share(arguments):
        plan, data, more = planned(arguments, path)
    report = plan.report()
    resident = plan.resident_set() if plan.lowered.target.is_host else None
    printed = plan_data(plan, report, resident) | data
    if path is not None:
        write_planned(plan, printed, path, arguments)
    if arguments.json:
        print_json(printed)
    else:
        width = stdout_width()
        table = kernel_table(plan, width) if arguments.kernels else ""
        print_text(report.text(arguments.top, width) + (resident.text() if resident else "") + table + more)
    return 0


Told = tuple[ExecutionPlan, dict[str, Any], str]
"""A plan, and what there is to tell beside its report: as data and as text."""


def planned(arguments: Namespace, output: Path | None = None) -> Told:
    """Plans as the options of this subcommand say. Raises OptionError, also where `output` cannot hold that.

    Raises BudgetError, ModelError.
    """
    if arguments.length_ranges:
        check_one_plan(output, "give --dim in place of --length-ranges")
    if arguments.length_ranges and arguments.plan_from_file == REQUIRED:
        raise OptionError(
            "--plan-from-file required follows a plan for one choice of lengths; leave out --length-ranges"
        )
    if arguments.length_ranges and arguments.target:
        raise OptionError("--target plans for one choice of lengths; give --dim in place of --length-ranges")
    return _length_ranges(arguments) if arguments.length_ranges else _exact(arguments, output)


def _exact(arguments: Namespace, output: Path | None) -> Told:
    graph = load_graph(arguments)
    if not graph.is_symbolic:
        recompute = not arguments.no_recompute
        embedded = plan_in_file(arguments, graph)
        plan = make_plan(
            graph, budget=arguments.budget, recompute=recompute, embedded=embedded, **plan_options(arguments)
        )
        return plan, {}, _uncut_text(plan)
    check_one_plan(output, f"data decide some sizes of {arguments.file} while it runs")
    if arguments.target:
        raise OptionError(f"--target takes one plan, and data decide some sizes of {arguments.file} while it runs")
    stage = plan_first(graph, dict(arguments.dim), arguments)
    data = stage_data(stage)
    return execution_plan(stage.plan), data, stage_text(data)


def _uncut_text(plan: ExecutionPlan) -> str:
    """Returns a line where cascades were asked for, and there are none."""
    percent, is_cut = plan.options.cascade, any(done.cascades for done in plan.optimisation)
    if not percent or is_cut:
        return ""
    why = f"none saves bytes for at most {percent} % more work"
    at_once = "stripes that run at once would be in memory at once; --parallel edges has cascades"
    return f"no cascades: {why if plan.options.may_cut else at_once}\n"


def _length_ranges(arguments: Namespace) -> Told:
    planned = plan_length_ranges(load_open(arguments), arguments)
    return planned.plan, planned.to_json(), planned.text()


def _add_sharing(parser: ArgumentParser) -> None:
    """Adds the options of several models in one arena."""
    parser.add_argument(
        "others", metavar="MODEL", nargs="*", type=Path, help="with --share: further models, right behind the first"
    )
    parser.add_argument(
        "--share",
        action="store_true",
        help="plan one arena for all models, of which only one runs at a time; other options hold for each model",
    )
    for flag, which in (
        ("--concurrent", "models that may run at the same time, by file name or without its suffix"),
        ("--same-state", "models with the same parameters, which lie at the same bytes"),
    ):
        parser.add_argument(
            flag,
            metavar="NAME,NAME,...",
            type=_names,
            action="append",
            default=[],
            help=f"with --share: {which}; repeatable",
        )
    parser.add_argument(
        "--pipeline",
        metavar="MODEL:OUTPUT=MODEL:INPUT",
        action="append",
        default=[],
        help="with --share: an output that is the input of another model, at the same bytes; repeatable",
    )


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if len(set(names)) < max(len(names), 2) or not all(names):
        raise ArgumentTypeError(f"{text!r} names no two models, such as a,b")
    return names


def _check_sharing(arguments: Namespace) -> None:
    """Raises OptionError where options of sharing do not fit each other, or others."""
    if not arguments.share:
        if arguments.others:
            raise OptionError(f"{1 + len(arguments.others)} models are given: --share plans one arena for all of them")
        if arguments.concurrent:
            raise OptionError("--concurrent says which models of --share may run at the same time")
        if arguments.same_state:
            raise OptionError("--same-state says which models of --share have the same parameters")
        if arguments.pipeline:
            raise OptionError("--pipeline says which output of --share is which input")
        return
    if not arguments.others:
        raise OptionError("--share takes two models or more, and one is given")
    for flag, value in (("--length-ranges", arguments.length_ranges), ("--kernels", arguments.kernels)):
        if value:
            raise OptionError(f"--share plans several models, and tells of their arena alone: leave out {flag}")
