"""`arenaplan run`: run a model and show or keep its outputs."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from allocator.progress import Activity
from engine.api import Executable
from engine.cli.comparison import interleaved
from engine.cli.many_runs import has_patterns, run_many
from engine.cli.options.common import add_evict, add_parallel, add_planning, add_running
from engine.cli.options.compile import blas_threads, compile_subject
from engine.cli.options.embedded import add_plan_from_file, plan_in_file, tell_origin
from engine.cli.options.files import check_arrays_path, write_arrays
from engine.cli.options.model_flags import add_model
from engine.cli.options.models import Subject, load_subject
from engine.cli.options.values import add_json, positive, print_json
from engine.cli.options.workers import add_workers
from engine.cli.streamed import WHOLE, add_stream, run_stream
from engine.system.threads import limit_threads
from engine.text.errors import OptionError
from engine.text.tables import in_columns, joined
from engine.workers.names import PROCESSES
from ops.tensor.spec import Array

HELP = "run a model on given or random inputs"
MODES = ("static", "dynamic", "poison")
_STATISTICS: Mapping[str, Callable[[Array], Any]] = {"min": np.min, "mean": np.mean, "max": np.max}


def add_arguments(parser: ArgumentParser) -> None:
    """Adds the options of this subcommand."""
    add_model(parser)
    add_planning(parser)
    add_parallel(parser)
    add_running(parser)
    add_plan_from_file(parser)
    parser.add_argument(
        "--mode",
        choices=MODES,
        default="static",
        help="static: one arena; dynamic: reference counting; poison: every byte is watched",
    )
    parser.add_argument(
        "--runs", metavar="N", type=positive, default=1, help="timed runs, after a first one (default 1 with --json)"
    )
    parser.add_argument("-o", "--output", metavar="PATH", type=Path, help="write outputs to a folder or a .npz file")
    add_stream(parser)
    add_evict(parser)
    add_workers(parser)
    add_json(parser)


def run(arguments: Namespace) -> int:
    """Prints or writes the outputs, and the report of the stages where data decided sizes."""
    if has_patterns(arguments):
        return run_many(arguments, _statistics)
    if arguments.workers or arguments.on != PROCESSES:
        raise OptionError("--workers and --on share out the runs of a pattern, such as --input 'x=data/*.npy'")
    if arguments.stream != WHOLE:
        return run_stream(arguments)
    if arguments.output is not None:
        check_arrays_path(arguments.output)
    subject = load_subject(arguments)
    with limit_threads(blas_threads(arguments)):
        executable = compile_subject(
            subject, arguments, arguments.mode, plan_in_file(arguments, subject.graph), arguments.evict
        )
        if not subject.graph.is_symbolic:
            tell_origin(executable.plan, arguments)
        with Activity("running", subject.graph.name):
            outputs = executable.run(subject.feeds)
        again = arguments.json or arguments.runs > 1
        times = _times(executable, subject, arguments.runs) if again else ()
    if arguments.output is not None:
        write_arrays(arguments.output, outputs)
    if arguments.json:
        data = {"mode": arguments.mode, "runs": arguments.runs, f"{arguments.mode}_seconds": float(np.median(times))}
        print_json(_plan_data(executable) | data | {"outputs": _statistics(outputs)})
    elif arguments.output is None:
        story = f"\n{executable.stage_report()}" if executable.stages else ""
        print(_table(outputs) + story, end="")
    return 0


def _plan_data(executable: Executable) -> dict[str, Any]:
    """Returns the report, or the report of the stages where there were some."""
    if executable.stages:
        return {"model": executable.graph.name, "story": executable.stage_report().to_json()}
    return executable.report().to_json()


def _times(executable: Executable, subject: Subject, runs: int) -> tuple[float, ...]:
    """Returns the seconds of each of some more runs."""
    (times,) = interleaved(runs, lambda: executable.run(subject.feeds, copy=False))
    return times


def _statistics(outputs: Mapping[str, Array]) -> list[dict[str, Any]]:
    """Returns name, shape, dtype, and least, mean and greatest element (None where there is no finite one)."""
    rows = []
    with np.errstate(all="ignore"):
        for name, array in outputs.items():
            numbers = array.astype(np.float64)
            numbers_of = {key: _number(function, numbers) for key, function in _STATISTICS.items()}
            rows.append({"name": name, "shape": list(array.shape), "dtype": array.dtype.name} | numbers_of)
    return rows


def _number(function: Callable[[Array], Any], numbers: Array) -> float | None:
    value = float(function(numbers)) if numbers.size else np.nan
    return value if np.isfinite(value) else None


def _table(outputs: Mapping[str, Array]) -> str:
    rows = [("output", "shape", "dtype", "min", "mean", "max")]
    for row in _statistics(outputs):
        numbers = ("-" if row[key] is None else f"{row[key]:.6g}" for key in _STATISTICS)
        rows.append((row["name"], "x".join(map(str, row["shape"])) or "scalar", row["dtype"], *numbers))
    return joined(in_columns(rows))
