"""`arenaplan run` with patterns for inputs: a run for each file, by workers that share the weights."""

import glob
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from allocator.progress import Activity
from engine.batch_runs.map import mapped_batches, planned_contents
from engine.cli.options.common import plan_options
from engine.cli.options.embedded import plan_in_file
from engine.cli.options.files import check_arrays_path, write_arrays
from engine.cli.options.models import Subject, load_subject
from engine.cli.options.values import print_json
from engine.cli.streamed import WHOLE
from engine.text.errors import EngineError, OptionError
from engine.text.tables import in_columns, joined
from ops.tensor.spec import Array

Statistics = Callable[[Mapping[str, Array]], list[dict[str, Any]]]
Feeds = Mapping[str, Array | Path]


def has_patterns(arguments: Namespace) -> bool:
    """Returns whether some input is given by a pattern, such as data/*.npy, and not by the name of a file."""
    return any(_is_pattern(path) for _, path in arguments.input)


def run_many(arguments: Namespace, statistics: Statistics) -> int:
    """Runs a model once for each file of the patterns, in the order of names; prints or writes the outputs."""
    _check(arguments)
    names, files = _files(arguments.input)
    first = {name: paths[0] for name, paths in files.items()}
    subject = load_subject(Namespace(**vars(arguments) | {"input": list(first.items())}))
    rows, begin = [], time.perf_counter()
    for name, outputs in zip(names, _outputs(arguments, subject, names, files), strict=True):
        if arguments.output is not None:
            write_arrays(arguments.output / name, outputs)
        rows.append({"run": name, "outputs": statistics(outputs)})
    seconds = time.perf_counter() - begin
    if arguments.json:
        print_json({"model": subject.graph.name, "seconds": seconds, "runs": rows})
    elif arguments.output is None:
        print(_table(rows), end="")
    return 0


def _outputs(
    arguments: Namespace, subject: Subject, names: Sequence[str], files: Mapping[str, Sequence[Path]]
) -> Iterator[Mapping[str, Array]]:
    """Yields the outputs of each run in turn. Raises the error of a run, with its name."""
    options = dict(plan_options(arguments)) | {
        "budget": arguments.budget,
        "recompute": not arguments.no_recompute,
        "threads": arguments.threads or 1,
        "embedded": plan_in_file(arguments, subject.graph),
    }
    contents = planned_contents(subject.graph, options)
    drawn = {name: array for name, array in subject.feeds.items() if name not in files}
    feeds = ({**drawn, **{key: paths[i] for key, paths in files.items()}} for i in range(len(names)))
    if arguments.output is not None:
        arguments.output.mkdir(exist_ok=True)
    with Activity("running", subject.graph.name, total=len(names), unit="runs") as activity:
        for outcome in mapped_batches(contents, feeds, workers=arguments.workers, on=arguments.on):
            if outcome.error is not None:
                raise EngineError(f"run {names[outcome.number]!r}: {outcome.error}") from outcome.error
            activity.done += 1
            yield outcome.value or {}


def _files(inputs: Sequence[tuple[str, Path]]) -> tuple[list[str], dict[str, list[Path]]]:
    """Returns the names of the runs, those of the files of the first pattern, and the files of each input, one a run.

    Raises OptionError where a pattern has no files, or another number of them.
    """
    several = {name: _matches(path) for name, path in dict(inputs).items() if _is_pattern(path)}
    (first, paths), *others = several.items()
    for name, more in others:
        if len(more) != len(paths):
            raise OptionError(f"--input {first} has {len(paths)} files, and --input {name} has {len(more)}")
    alone = {name: [path.absolute()] * len(paths) for name, path in dict(inputs).items() if name not in several}
    names = [path.stem for path in paths]
    if twice := [name for name in names if names.count(name) > 1]:
        raise OptionError(f"--input {first} has two files of the name {twice[0]!r}, in several folders")
    return names, several | alone


def _matches(pattern: Path) -> list[Path]:
    paths = sorted(Path(path).absolute() for path in glob.glob(str(pattern)))  # noqa: PTH207 (it takes absolute ones)
    if not paths:
        raise OptionError(f"no file fits the pattern {pattern}")
    return paths


def _is_pattern(path: Path) -> bool:
    return glob.has_magic(str(path)) and not path.exists()


def _check(arguments: Namespace) -> None:
    """Raises OptionError for what goes with a single run alone."""
    if arguments.mode != "static" or arguments.parallel or arguments.evict:
        raise OptionError("patterns for inputs are for runs in one arena; leave out --mode, --evict and --parallel")
    if arguments.runs != 1 or arguments.stream != WHOLE:
        raise OptionError("a pattern is one run for each file; leave out --runs and --stream")
    if arguments.output is not None:
        if arguments.output.suffix or arguments.output.is_file():
            raise OptionError(
                f"{arguments.output}: the outputs of several runs go to a folder, whose name has no suffix"
            )
        check_arrays_path(arguments.output)


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [["run", "output", "shape", "min", "mean", "max"]]
    for row in rows:
        for output in row["outputs"]:
            numbers = ("-" if output[key] is None else f"{output[key]:.6g}" for key in ("min", "mean", "max"))
            lines.append([row["run"], output["name"], "x".join(map(str, output["shape"])) or "scalar", *numbers])
    return joined(in_columns(lines, {3, 4, 5}))
