"""Measures what workers cost: until the first is there, for each message, and the throughput of a sweep.

    python -m tools.bench_workers [--tasks 40] [--turns 3] [-o FILE.json]

Each kind of place runs the same tasks with one and with two workers, in turn. `busy` is the share of the time of two
workers in which they had work: it holds on a machine that does other things, too, and the throughput does not. A model
of task length and message time is compared with the measurement, and drawn to many workers.
"""

import json
import time
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from allocator.io.files import write_whole
from allocator.progress import each
from engine.cli.options.common import positive
from engine.cli.progress import add_quiet, progress_shown
from engine.models.named import NamedModel
from engine.sweeps.rows import carry_out
from engine.sweeps.sweep import make_tasks
from engine.sweeps.task import Task
from engine.text.tables import in_columns, joined
from engine.workers.flow import as_they_come
from engine.workers.place import Place
from engine.workers.places import opened
from engine.workers.processes import Processes
from tools.entry import run_script

MODEL = "zoo:squeezenet?image=64"
SCALES = (1, 2, 4, 8, 16, 64, 256, 1000)
_MESSAGES = 500
Row = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the tables; writes them as JSON where asked."""
    arguments = _arguments(argv)
    with progress_shown(arguments.quiet):
        data = measured(arguments.tasks, arguments.turns, arguments.places)
    print(text(data), end="")
    if arguments.output is not None:
        write_whole(arguments.output, (json.dumps(data, indent=1) + "\n").encode())
    return 0


def measured(tasks: int, turns: int, places: Sequence[str]) -> Row:
    """Measures each kind of place with one and two workers, and draws the model to many."""
    rows = [_row(kind, tasks, turns) for kind in each("place", places)]
    return {"tasks": tasks, "turns": turns, "rows": rows}


def _row(kind: str, count: int, turns: int) -> Row:
    """Measures a kind of place: the best of several turns counts, as other processes only take time."""
    work = _tasks(count)
    best: dict[str, float] = {}
    for _ in each("turn", range(turns)):
        for workers in (1, 2):
            for name, seconds in _once(kind, workers, work).items():
                key = f"{name}_{workers}"
                best[key] = min(best.get(key, seconds), seconds)
    task, message = best["sweep_1"] / count, best["message_2"]
    return {
        "place": kind,
        "start_seconds": best["start_1"],
        "message_seconds": message,
        "task_seconds": task,
        "busy_2": 1 - best["idle_2"],
        "throughput_2": best["sweep_1"] / best["sweep_2"],
        "model_2": throughput(2, task, message),
        "model": {n: throughput(n, task, message) for n in SCALES},
    }


def _once(kind: str, workers: int, work: Sequence[Task]) -> dict[str, float]:
    begin = time.perf_counter()
    with PLACES[kind](workers) as place:
        list(as_they_come(place, abs, range(2 * workers)))  # all workers are there
        start = time.perf_counter() - begin
        list(as_they_come(place, carry_out, work[: 2 * workers]))  # they have loaded what they need
        message, _ = _seconds(place, abs, range(_MESSAGES))
        sweep, rows = _seconds(place, carry_out, work)
        idle = 1 - sum(row["task_seconds"] for row in rows) / (workers * sweep)
        return {"start": start, "message": message / _MESSAGES, "sweep": sweep, "idle": idle}


def _seconds(place: Place, function: Callable[[Any], Any], tasks: Sequence[Any]) -> tuple[float, list[Any]]:
    """Returns how long tasks take, and their results."""
    begin = time.perf_counter()
    ends = list(as_they_come(place, function, tasks))
    seconds = time.perf_counter() - begin
    errors = [str(end.error) for end in ends if end.error is not None]
    if errors:
        raise RuntimeError(f"{len(errors)} tasks failed: {errors[0]}")
    return seconds, [end.value for end in ends]


def throughput(workers: int, task: float, message: float) -> float:
    """Returns how many times as much as one worker so many do, where one process sends all messages in turn.

    `task` are the seconds of a task on one worker with its message, `message` those that a message takes the sender.
    """
    return min(workers, max(task / message, 1.0))


def _tasks(count: int) -> tuple[Task, ...]:
    """Returns tasks of much the same length."""
    return make_tasks([MODEL], {"seed": range(count)}, Task("", NamedModel(Path()), (), (), {}))


@contextmanager
def _processes(workers: int) -> Iterator[Place]:
    place = Processes(workers)
    try:
        yield place
    finally:
        place.close()


@contextmanager
def _dask(workers: int) -> Iterator[Place]:
    """Starts a scheduler with worker processes, and connects to it as a command does."""
    cluster = import_module("distributed").LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    )
    try:
        with opened(cluster.scheduler_address.replace("tcp://", "dask://")) as place:
            yield place
    finally:
        cluster.close()


PLACES: Mapping[str, Callable[[int], Any]] = {"processes": _processes, "dask": _dask}


def text(data: Row) -> str:
    """Returns a line for each kind of place."""
    head = [
        "place",
        "start",
        "a message",
        "a task",
        "busy",
        "2 workers",
        "model",
        *(f"{n} workers" for n in SCALES[2:]),
    ]
    lines = [[*_cells(row), *(f"{value:.1f}" for value in list(row["model"].values())[2:])] for row in data["rows"]]
    return joined(in_columns([head, *lines], set(range(1, len(head)))))


def _cells(row: Row) -> list[str]:
    return [
        row["place"],
        f"{row['start_seconds']:.2f} s",
        f"{row['message_seconds'] * 1e3:.2f} ms",
        f"{row['task_seconds'] * 1e3:.1f} ms",
        f"{row['busy_2']:.1%}",
        f"{row['throughput_2']:.2f} x",
        f"{row['model_2']:.2f} x",
    ]


def _arguments(argv: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=positive, default=40, help="tasks of the sweep (default 40)")
    parser.add_argument("--turns", type=positive, default=3, help="turns, of which the best counts (default 3)")
    parser.add_argument("--places", nargs="+", choices=tuple(PLACES), default=tuple(PLACES))
    parser.add_argument("-o", "--output", type=Path, help="write JSON")
    add_quiet(parser)
    return parser.parse_args(argv)


if __name__ == "__main__":
    run_script(main)
