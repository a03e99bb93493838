"""Measures the memory of workers that share weights: these count once, the arena once for each worker.

    python -m tools.bench_map [--network resnet50] [--workers 1 2 4] [--parts 1 2 4] [-o FILE.json]

The parts of a pipeline are measured, too: a file of matrix products is cut, and each part is in a process of its own.
Resident sets are those that Linux tells when all workers have run: RSS counts shared pages in each process, PSS shares
them out (man 5 proc, smaps_rollup).
"""

import json
import os
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from allocator.cuts.problem import THROUGHPUT
from allocator.io.files import write_whole
from allocator.progress import each
from engine.api import make_plan
from engine.batch_runs.map import Batch, planned_contents, run_batch
from engine.cli.options.values import positive
from engine.cli.progress import add_quiet, progress_shown
from engine.models.named import NamedModel
from engine.models.zoo import PREFIX
from engine.onnx.load import load_onnx
from engine.partitions.partition import partition
from engine.partitions.pipeline import pipeline
from engine.spool import Contents, spooled
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
_PRODUCTS, _WIDTH = 24, 1024
Row = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table; writes it as JSON where asked."""
    arguments = _arguments(argv)
    with progress_shown(arguments.quiet):
        data = measured(arguments.network, arguments.workers)
        with TemporaryDirectory() as folder:
            data["products_bytes"], data["parts"] = measured_parts(Path(folder), arguments.parts)
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
        return {"workers": workers, **_sums(_children())}


def measured_parts(folder: Path, parts: Sequence[int]) -> tuple[int, list[Row]]:
    """Measures a chain of matrix products from a file, in so many parts; returns also the bytes of its weights."""
    path = folder / "products.onnx"
    _save_products(path)
    graph = load_onnx(path)
    nbytes = sum(entry.nbytes for entry in graph.constants.entries.values())
    feeds = random_arrays({name: var.spec for name, var in graph.inputs.items()}, 0)
    rows = list[Row]()
    for number in each("parts", tuple(parts)):
        with pipeline(partition(graph, [2 * nbytes] * number, THROUGHPUT), threads=1) as pipe:
            for _ in pipe.map([feeds] * 4):
                pass
            rows.append({"parts": number, **_sums(_children())})
    return nbytes, rows


def _save_products(path: Path) -> None:
    """Writes a chain of matrix products with random weights."""
    helper, save = import_module("onnx.helper"), import_module("onnx").save
    draw, names = np.random.default_rng(0), [f"h{i}" for i in range(_PRODUCTS + 1)]
    nodes = [helper.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]]) for i in range(_PRODUCTS)]
    ends = [helper.make_tensor_value_info(name, 1, [4, _WIDTH]) for name in (names[0], names[-1])]
    arrays = (draw.standard_normal((_WIDTH, _WIDTH), np.float32) / _WIDTH for _ in range(_PRODUCTS))
    weights = [import_module("onnx.numpy_helper").from_array(array, f"w{i}") for i, array in enumerate(arrays)]
    graph = helper.make_graph(nodes, "products", ends[:1], ends[1:], weights)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def _sums(processes: Sequence[int]) -> dict[str, int]:
    sizes = [read for process in processes if (read := _memory(process)) is not None]
    return {name: sum(one[name] for one in sizes) for name in _FIELDS}


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
    lines_of_parts = [[str(row["parts"]), *(format_bytes(row[name]) for name in _FIELDS)] for row in data["parts"]]
    return joined(
        [
            *in_columns([head, *lines], set(range(6))),
            *notes,
            *in_columns([["parts", *head[1:]], *lines_of_parts], set(range(6))),
            f"{_PRODUCTS} matrix products from a file: weights {format_bytes(data['products_bytes'])}",
        ]
    )


def _arguments(argv: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="resnet50", help="a network of the zoo (default resnet50)")
    parser.add_argument("--workers", type=positive, nargs="+", default=[1, 2, 4], help="default: 1 2 4")
    parser.add_argument("--parts", type=positive, nargs="+", default=[1, 2, 4], help="of a pipeline; default: 1 2 4")
    parser.add_argument("-o", "--output", type=Path, help="write JSON")
    add_quiet(parser)
    return parser.parse_args(argv)


if __name__ == "__main__":
    run_script(main)
