"""Measures the memory of map workers: the weights count once, the arena once for each worker.

    python -m tools.bench_map [--network resnet50] [--workers 1 2 4] [-o FILE.json]

Resident sets are those that Linux tells when all workers have run: RSS counts shared pages in each process, PSS shares
them out (man 5 proc, smaps_rollup).
"""

import json
import os
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from allocator.io.files import write_whole
from allocator.progress import each
from engine.api import make_plan
from engine.batch_runs.map import Batch, planned_contents, run_batch
from engine.batch_runs.spool import Contents, spooled
from engine.cli.options.common import positive
from engine.cli.progress import add_quiet, progress_shown
from engine.models.named import NamedModel
from engine.models.zoo import PREFIX
from engine.system.arrays import random_arrays
from engine.text.tables import in_columns, joined
from engine.text.units import format_bytes
from engine.workers.flow import as_they_come
from engine.workers.names import PROCESSES
from engine.workers.places import opened
from tools.entry import run_script

_FIELDS = ("Rss", "Pss", "Pss_Anon", "Pss_File", "Pss_Shmem")
_RUNS = 6
"""Runs for each worker, so that all of them have some."""
Row = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table; writes it as JSON where asked."""
    arguments = _arguments(argv)
    with progress_shown(arguments.quiet):
        data = measured(arguments.network, arguments.workers)
    print(text(data), end="")
    if arguments.output is not None:
        write_whole(arguments.output, (json.dumps(data, indent=1) + "\n").encode())
    return 0


def measured(network: str, workers: Sequence[int]) -> Row:
    """Measures a network of the zoo with these numbers of workers."""
    graph = NamedModel(Path(PREFIX + network)).load()
    report = make_plan(graph, threads=1).report()
    contents = planned_contents(graph, {"threads": 1})
    return {
        "network": network,
        "arena_bytes": report.arena_bytes,
        "resident_weights_bytes": report.resident_weights_bytes,
        "prepacked_bytes": report.prepacked_bytes,
        "rows": [_row(contents, number) for number in each("workers", tuple(workers))],
    }


def _row(contents: Contents, workers: int) -> Row:
    feeds = random_arrays({name: var.spec for name, var in contents.graph.inputs.items()}, 0)
    with opened(PROCESSES, workers) as place, spooled(contents) as spool:
        batches = [Batch(spool, feeds)] * (_RUNS * workers)
        errors = [end.error for end in as_they_come(place, run_batch, batches) if end.error is not None]
        if errors:
            raise errors[0]
        sizes = [read for process in _children() if (read := _memory(process)) is not None]
    return {"workers": workers, **{name: sum(one[name] for one in sizes) for name in _FIELDS}}


def _children() -> list[int]:
    """Returns the worker processes of this process."""
    mine = os.getpid()
    ids = [int(one) for one in Path(f"/proc/{mine}/task/{mine}/children").read_text().split()]
    return [one for one in ids if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]


def _memory(process: int) -> dict[str, int] | None:
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    values = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.endswith("kB")}
    return {name: values.get(name, 0) for name in _FIELDS}


def text(data: Row) -> str:
    """Returns a line for each number of workers, and what one worker more takes."""
    head = ["workers", "RSS", "PSS", "of it own", "files", "shared memory"]
    lines = [[str(row["workers"]), *(format_bytes(row[name]) for name in _FIELDS)] for row in data["rows"]]
    notes = [
        f"{data['network']}: arena {format_bytes(data['arena_bytes'])}, packed {format_bytes(data['prepacked_bytes'])}"
    ]
    first, last = data["rows"][0], data["rows"][-1]
    if last["workers"] > first["workers"]:
        more = (last["Pss"] - first["Pss"]) // (last["workers"] - first["workers"])
        notes.append(f"one worker more takes {format_bytes(more)} of PSS")
    return joined([*in_columns([head, *lines], set(range(6))), *notes])


def _arguments(argv: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="resnet50", help="a network of the zoo (default resnet50)")
    parser.add_argument("--workers", type=positive, nargs="+", default=[1, 2, 4], help="default: 1 2 4")
    parser.add_argument("-o", "--output", type=Path, help="write JSON")
    add_quiet(parser)
    return parser.parse_args(argv)


if __name__ == "__main__":
    run_script(main)
