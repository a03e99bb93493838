"""`arenaplan plan`: what a model would need."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from engine.api import make_plan
from engine.cli.interrupts import interrupt_ends_search
from engine.cli.length_ranges import plan_length_ranges
from engine.cli.options.common import (
    add_json,
    add_parallel,
    add_planning,
    count,
    plan_options,
    print_json,
    print_text,
    stdout_width,
)
from engine.cli.options.dims import named_length_ranges
from engine.cli.options.embedded import REQUIRED, add_plan_from_file, plan_in_file
from engine.cli.options.model_flags import add_model
from engine.cli.options.models import load_graph, load_open
from engine.cli.options.plan_output import add_plan_output, asked_output, check_one_plan, write_planned
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
    """Prints the report of the plan; of its first stage alone where data decide the sizes of the rest."""
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
        return plan, {}, ""
    check_one_plan(output, f"data decide some sizes of {arguments.file} while it runs")
    if arguments.target:
        raise OptionError(f"--target takes one plan, and data decide some sizes of {arguments.file} while it runs")
    stage = plan_first(graph, dict(arguments.dim), arguments)
    data = stage_data(stage)
    return execution_plan(stage.plan), data, stage_text(data)


def _length_ranges(arguments: Namespace) -> Told:
    planned = plan_length_ranges(load_open(arguments), arguments)
    return planned.plan, planned.to_json(), planned.text()
