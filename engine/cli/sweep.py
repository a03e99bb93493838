"""`arenaplan sweep`: many models and many options, a row for each."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from allocator.io.files import check_folder, write_whole
from engine.cli.options.common import add_parallel, add_planning, plan_options, planning_keyword
from engine.cli.options.model_flags import add_import
from engine.cli.options.models import named_model
from engine.cli.options.values import add_json, count, positive, print_json
from engine.cli.options.vary import Vary, add_vary, check_names
from engine.cli.options.workers import add_workers
from engine.pictures.matplotlib import PICTURES, picture
from engine.planning.options import FIELDS
from engine.sweeps.chart import sweep_chart
from engine.sweeps.files import SUFFIXES
from engine.sweeps.measures import PRESETS
from engine.sweeps.rows import ERROR
from engine.sweeps.sweep import make_tasks, swept
from engine.sweeps.table import TABLES, Table
from engine.sweeps.task import Task
from engine.text.errors import EngineError
from engine.text.units import counted

HELP = "plan many models with many options, on several processors or machines"
RUNS = 5


def add_arguments(parser: ArgumentParser) -> None:
    """Adds the options of this subcommand."""
    parser.add_argument(
        "models", metavar="MODEL", nargs="*", help="ONNX files, and networks of the zoo such as zoo:resnet50"
    )
    parser.add_argument(
        "--preset",
        choices=PRESETS,
        default="",
        help="placements: beside no reuse, dynamic allocators and TensorFlow Lite; without MODEL, of the networks of "
        "MegEngine's article at batch 1 and 128. tricks: what overwriting and sharing save, in training and forward "
        "only; without MODEL, of Inception-BN at batch 32",
    )
    add_vary(parser, "plan with each of these values of an option or a dimension, in all combinations")
    add_import(parser)
    add_planning(parser)
    add_parallel(parser)
    parser.add_argument("--run", dest="also_run", action="store_true", help="also run each plan, on random inputs")
    parser.add_argument(
        "--runs", metavar="N", type=positive, default=RUNS, help=f"with --run: timed runs of each (default {RUNS})"
    )
    parser.add_argument(
        "--threads", metavar="N", type=positive, default=1, help="threads that compute, of each worker (default 1)"
    )
    add_workers(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        help=f"append each row to a file as it comes, and make none that it has already: {', '.join(SUFFIXES)}",
    )
    parser.add_argument("--table", metavar="FILE", type=_table_path, help=f"write the table: {', '.join(TABLES)}")
    parser.add_argument(
        "--chart",
        metavar="FILE",
        type=chart_path,
        help=f"draw arenas by option, and bytes against time: {', '.join(PICTURES)}; needs matplotlib (extra `charts`)",
    )
    parser.add_argument("--top", metavar="N", type=count, default=20, help="best rows shown (default 20)")
    add_json(parser)


def run(arguments: Namespace) -> int:
    """Carries out the tasks and prints what they say.

    An error in a row is no error of the command, unless all rows have one. Raises EngineError then.
    """
    check_names(arguments.vary)
    for path in (arguments.table, arguments.chart):
        if path is not None:
            check_folder(path)
    vary = {one.name: _values(one) for one in arguments.vary}
    tasks = make_tasks(arguments.models, vary, _base(arguments), arguments.preset)
    table = swept(tasks, arguments.output, on=arguments.on, workers=arguments.workers)
    _print(arguments, table)
    if not table.good:
        raise EngineError(f"{counted(len(table.rows), 'row')}, each with an error, the first: {table.rows[0][ERROR]}")
    if arguments.table is not None:
        write_whole(arguments.table, table.written(arguments.table.suffix.lower()).encode())
    if arguments.chart is not None:
        write_whole(arguments.chart, picture(sweep_chart(table), arguments.chart.suffix.lower()))
    return 0


def _print(arguments: Namespace, table: Table) -> None:
    """Prints the rows where no file has them, and the summary."""
    if arguments.json:
        print_json(table.to_json())
    else:
        print((table.text() if arguments.output is None else "") + table.summary(arguments.top), end="")


def _base(arguments: Namespace) -> Task:
    """Returns what all tasks have in common."""
    return Task(
        title="",
        named=named_model(Namespace(**vars(arguments), file=Path())),
        settings=(),
        lengths=(),
        options=plan_options(arguments),
        budget=arguments.budget,
        recompute=not arguments.no_recompute,
        runs=arguments.runs if arguments.also_run else 0,
        threads=arguments.threads,
        operators=tuple(path.absolute() for path in arguments.ops),
    )


def _values(one: Vary) -> Sequence[Any]:
    """Returns the values of an option of planning as the planner takes them, others as texts."""
    return [planning_keyword(one.name, text) for text in one.each] if one.name in FIELDS else one.each


def _table_path(text: str) -> Path:
    return _with_suffix(text, TABLES, "table.tex")


def chart_path(text: str) -> Path:
    """Returns the path of a chart; another name is refused before anything is planned."""
    return _with_suffix(text, PICTURES, "chart.svg")


def _with_suffix(text: str, suffixes: Sequence[str], example: str) -> Path:
    """Returns a path; another name is refused before anything is planned, which can take a while."""
    if Path(text).suffix.lower() not in suffixes:
        raise ArgumentTypeError(f"{text[:60]!r} does not end with {', '.join(suffixes)}; write for example {example}")
    return Path(text)
