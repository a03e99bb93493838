"""Measures what workers cost: until the first is there, for each message, and the throughput of a sweep.

    python -m tools.bench_workers [--tasks 30] [--turns 2] [-o FILE.json]

Each kind of place runs the same tasks with one and with two workers, one directly after the other, in turn: other work
on the machine then slows both. Beside the seconds stand those of processors, which other work changes little. A model
(tools/cluster_model.py) is given what messages cost and how long tasks took, its time is compared with that of the
sweep, and it is drawn to many workers.
"""

import json
import os
import pickle
import time
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from statistics import mean, median
from typing import Any

from attrs import asdict, frozen

from allocator.io.files import write_whole
from allocator.progress import each
from engine.cli.options.values import positive
from engine.cli.progress import add_quiet, progress_shown
from engine.models.named import NamedModel
from engine.sweeps.rows import carry_out
from engine.sweeps.sweep import make_tasks
from engine.sweeps.task import Task
from engine.text.tables import in_columns, joined
from engine.text.units import format_bytes
from engine.workers.flow import as_they_come
from engine.workers.place import Place
from engine.workers.places import opened
from engine.workers.processes import Processes
from tools.benchmark_tables import markdown
from tools.cluster_model import IMAGE_BYTES, LENGTHS, Costs, chart, curves, makespan, table
from tools.entry import run_script

MODEL = "zoo:squeezenet?image=64"
TASKS, TURNS = 30, 2
AIM = 0.9
"""The share of twice the work that two workers should do."""
_MESSAGES, _ALONE, _LARGE = 200, 20, 2**22
Row = dict[str, Any]


@frozen
class Stamp:
    """When a task ended: in which process, after how many of its processor seconds, and what it took itself."""

    process: int
    at: float
    seconds: float = 0.0
    processor: float = 0.0


@frozen
class Turn:
    """One turn of a kind of place: what messages cost, and the seconds of a sweep and of each of its tasks."""

    start: float
    costs: Costs
    sweep: float
    stamps: tuple[Stamp, ...]


def stamped(_: object) -> Stamp:
    """Does nothing, in a worker."""
    return Stamp(os.getpid(), time.process_time())


def timed(task: Task) -> Stamp:
    """Carries out a task of a sweep, in a worker. Raises RuntimeError where it failed."""
    begin, before = time.perf_counter(), time.process_time()
    row = carry_out(task)
    if row["error"]:
        raise RuntimeError(row["error"])
    now = time.process_time()
    return Stamp(os.getpid(), now, time.perf_counter() - begin, now - before)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the tables; writes them as JSON where asked."""
    arguments = _arguments(argv)
    with progress_shown(arguments.quiet):
        data = measured(arguments.tasks, arguments.turns, arguments.places)
    print(text(data), end="")
    if arguments.output is not None:
        write_whole(arguments.output, (json.dumps(data, indent=1) + "\n").encode())
    return 0


def measured(tasks: int = TASKS, turns: int = TURNS, places: Sequence[str] = ()) -> Row:
    """Measures each kind of place with one and two workers, and draws the model of the last one to many."""
    load = os.getloadavg()[0]
    rows = [_row(kind, tasks, turns) for kind in each("place", tuple(places) or tuple(PLACES))]
    last, nbytes = rows[-1], _message_bytes()
    lengths = (last["processor_1"], *LENGTHS)
    return {
        "tasks": tasks,
        "turns": turns,
        "processors": os.cpu_count(),
        "load": load,
        "message_bytes": nbytes,
        "rows": rows,
        "simulated": list(curves(Costs(**last["costs"]), lengths, (nbytes, IMAGE_BYTES))),
    }


def _message_bytes() -> int:
    """Returns the bytes of a task and of its row, as they are sent."""
    task, *_ = _tasks(1)
    return len(pickle.dumps(task)) + len(pickle.dumps(carry_out(task)))


def _row(kind: str, count: int, turns: int) -> Row:
    """Measures a kind of place: of each cost the least counts, as other work only adds to it; of ratios the median."""
    work = _tasks(count)
    pairs = [tuple(_turn(kind, workers, work) for workers in (1, 2)) for _ in each("turn", range(turns))]
    costs = _least([turn.costs for pair in pairs for turn in pair])
    ratios = [one.sweep / two.sweep for one, two in pairs]
    row: Row = {"place": kind, "start_seconds": min(one.start for one, _ in pairs), "costs": asdict(costs)}
    for workers, turned in enumerate(zip(*pairs, strict=True), 1):
        stamps = [stamp for turn in turned for stamp in turn.stamps]
        row[f"task_{workers}"] = mean(stamp.seconds for stamp in stamps)
        row[f"processor_{workers}"] = mean(stamp.processor for stamp in stamps)
        row[f"off_{workers}"] = median(_modelled(costs, turn, workers) / turn.sweep - 1 for turn in turned)
    free = [makespan(costs, [row[f"processor_{n}"]] * count, n, _message_bytes()) for n in (1, 2)]
    return {**row, "times_2": median(ratios), "range_2": [min(ratios), max(ratios)], "free_2": free[0] / free[1]}


def _modelled(costs: Costs, turn: Turn, workers: int) -> float:
    """Returns the seconds of a sweep by the model, with the lengths that tasks had."""
    return makespan(costs, [stamp.seconds for stamp in turn.stamps], workers, _message_bytes())


def _least(costs: Sequence[Costs]) -> Costs:
    return Costs(
        min(one.sender for one in costs),
        min(one.worker for one in costs),
        min(one.latency for one in costs),
        max(one.bandwidth for one in costs),
    )


def _turn(kind: str, workers: int, work: Sequence[Task]) -> Turn:
    begin = time.perf_counter()
    with PLACES[kind](workers) as place:
        _ended(place, stamped, range(2 * workers))  # all workers are there
        start = time.perf_counter() - begin
        _ended(place, timed, work[: 2 * workers])  # they have loaded what they need
        costs = _costs(place)
        begin = time.perf_counter()
        stamps = _ended(place, timed, work)
        return Turn(start, costs, time.perf_counter() - begin, tuple(stamps))


def _costs(place: Place) -> Costs:
    """Measures empty tasks: many at once, one alone, and one with a large message."""
    before = time.process_time()
    stamps = _ended(place, stamped, range(_MESSAGES))
    sender = (time.process_time() - before) / _MESSAGES
    spans = defaultdict[int, list[float]](list)
    for stamp in stamps:
        spans[stamp.process].append(stamp.at)
    worker = sum(max(at) - min(at) for at in spans.values()) / max(1, _MESSAGES - len(spans))
    alone = min(_waited(place, b"") for _ in range(_ALONE))
    large = min(_waited(place, bytes(_LARGE)) for _ in range(4))
    return Costs(sender, worker, max(0.0, alone - sender - worker) / 2, _LARGE / max(large - alone, 1e-9))


def _waited(place: Place, message: bytes) -> float:
    """Returns the seconds of one task with a message."""
    begin = time.perf_counter()
    place.submit(stamped, message).result()
    return time.perf_counter() - begin


def _ended(place: Place, function: Callable[[Any], Stamp], tasks: Iterable[Any]) -> list[Stamp]:
    """Returns what tasks gave, in the order of the tasks. Raises what one raised."""
    ends = sorted(as_they_come(place, function, tasks), key=lambda end: end.number)
    for end in ends:
        if end.error is not None:
            raise end.error
    return [end.value for end in ends if end.value is not None]


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
NAMES = {"processes": "processes", "dask": "Dask, one machine"}


def text(data: Row) -> str:
    """Returns the tables as lines of text."""
    columns = in_columns([_HEAD, *map(_cells, data["rows"])], set(range(1, len(_HEAD))))
    return joined([*columns, *said(data), *_lines(table(data["simulated"]))])


def _lines(markdown_table: str) -> Sequence[str]:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in markdown_table.splitlines()]
    return in_columns([rows[0], *rows[2:]], set(range(len(rows[0]))))


def measured_table(data: Row) -> str:
    """Returns a line for each kind of place in Markdown, and what was measured how."""
    return markdown([_HEAD, *map(_cells, data["rows"])]) + "\n\n" + "\n".join(said(data))


def simulated_table(data: Row) -> str:
    """Returns what many workers do by the model, in Markdown."""
    return table(data["simulated"])


def simulated_chart(data: Row) -> bytes:
    """Draws what many workers do by the model, with the measurement."""
    last = data["rows"][-1]
    return chart(data["simulated"], NAMES[last["place"]], {1: 1.0, 2: last["times_2"]})


def said(data: Row) -> Iterator[str]:
    """Yields sentences on what was measured, and whether two workers did as much as they should."""
    yield (
        f"{data['tasks']} tasks in {data['turns']} turns on {data['processors']} processors, with a load of "
        f"{data['load']:.1f} by other work when it began."
    )
    for row in data["rows"]:
        what = "at least" if row["times_2"] >= 2 * AIM else "less than"
        yield (
            f"{NAMES[row['place']]}: two workers did {row['times_2']:.2f} times the work of one, {what} the aim of "
            f"{2 * AIM} ({AIM} for each)."
        )


_HEAD = (
    *("place", "start", "sender, a task", "worker, a task", "one way", "bytes a second"),
    *(
        "a task, 1 worker",
        "2 workers",
        "2 workers do, times one",
        "on free processors",
        "model is off, 1 worker",
        "2 workers",
    ),
)


def _cells(row: Row) -> Sequence[str]:
    costs, (low, high) = Costs(**row["costs"]), row["range_2"]
    return [
        NAMES[row["place"]],
        f"{row['start_seconds']:.1f} s",
        *(f"{cost * 1e3:.2f} ms" for cost in (costs.sender, costs.worker, costs.latency)),
        format_bytes(int(costs.bandwidth)),
        *(f"{row[f'task_{n}'] * 1e3:.0f} ms ({row[f'processor_{n}'] * 1e3:.0f} ms)" for n in (1, 2)),
        f"{row['times_2']:.2f} ({low:.2f} to {high:.2f})",
        f"{row['free_2']:.2f}",
        *(f"{row[f'off_{n}']:+.1%}" for n in (1, 2)),
    ]


def _arguments(argv: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=positive, default=TASKS, help=f"tasks of the sweep (default {TASKS})")
    parser.add_argument("--turns", type=positive, default=TURNS, help=f"pairs of sweeps (default {TURNS})")
    parser.add_argument("--places", nargs="+", choices=tuple(PLACES), default=tuple(PLACES))
    parser.add_argument("-o", "--output", type=Path, help="write JSON")
    add_quiet(parser)
    return parser.parse_args(argv)


if __name__ == "__main__":
    run_script(main)
