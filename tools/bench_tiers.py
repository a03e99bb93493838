"""Networks that need more RAM than there is: a memory on a disk beside recomputation, and weights in files.

    python -m tools.bench_tiers [--network resnet50] [--batch 8] [--image 224] [--steps 1] [--folder /var/tmp] [-o FILE]

Training: a step of gradient descent with all of the RAM that its plan needs, with half of it and a memory on a disk,
and with half of it and operators that run again. Inference: a model under a limit of anonymous memory (RLIMIT_DATA)
that leaves room for its tensors and a third of its packed weights, with weights in RAM and in files. Each way is a
process of its own (`tools/tier_process.py`). Seconds are those of the fastest step. The file system of the folder
should not be one in RAM.
"""

import json
import os
import subprocess
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from allocator.io.files import write_whole
from allocator.progress import each
from engine.cli.options.values import positive
from engine.cli.progress import add_quiet, progress_shown
from tools.benchmark_tables import markdown, tiers_table
from tools.entry import run_script
from tools.run_networks import NETWORKS, network_file

Row = dict[str, Any]
WHOLE, DISK, RECOMPUTE = "all in RAM", "disk", "recompute"
_ROOM = 3
"""The part of packed weights that the limit leaves room for."""


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a table; writes rows as JSON where asked. Returns 1 where results differ."""
    arguments = _arguments(argv)
    with progress_shown(arguments.quiet):
        rows = [*_trained(arguments), *_inferred(arguments)]
    print(markdown(tiers_table(rows)))
    if arguments.output is not None:
        write_whole(arguments.output, (json.dumps({"rows": rows}, indent=1) + "\n").encode())
    return 0 if all(row["same"] for row in rows) else 1


def _trained(arguments: Namespace) -> list[Row]:
    """Returns a row for each way to train; `same`: it has the losses of training all in RAM, to the bit."""
    rows, ram = list[Row](), 0
    sizes = {name: getattr(arguments, name) for name in ("network", "batch", "image", "steps")}
    measured(sizes | {"what": "prepare"})
    for way in each("way to train", (WHOLE, DISK, RECOMPUTE)):
        task = sizes | {"what": "train", "way": way, "ram": ram, "folder": str(arguments.folder)}
        row = measured(task)
        ram = ram or row["ram_bytes"] // 2
        rows.append(task | row | {"same": row["losses"] == (rows[0] if rows else row)["losses"]})
    return rows


def _inferred(arguments: Namespace) -> list[Row]:
    """Returns a row for each way to run a model; `same`: it has the outputs of the run without a limit, or none."""
    model, rows = network_file(arguments.model), list[Row]()
    task = {"what": "infer", "network": arguments.model, "model": str(model), "folder": str(arguments.folder)}
    free = measured(task | {"way": WHOLE, "room": 2**40})
    room = free["weights_bytes"] // _ROOM
    for way in each("way to run", (WHOLE, DISK)):
        row = measured(task | {"way": way, "room": room})
        rows.append(task | {"way": way} | row | {"same": bool(row["failed"]) or row["digest"] == free["digest"]})
    return [task | {"way": WHOLE, "same": True} | free, *rows]


def measured(task: Row) -> Row:
    """Runs a task in a new process, in which no page is huge: bytes would grow in steps of 2 MiB."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent), "NUMPY_MADVISE_HUGEPAGE": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "tools.tier_process"],
        input=json.dumps(task),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    row: Row = json.loads(done.stdout.splitlines()[-1])
    return row


def _arguments(argv: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="resnet50", help="of the zoo, to train (default: resnet50)")
    parser.add_argument("--batch", type=positive, default=8)
    parser.add_argument("--image", type=positive, default=224)
    parser.add_argument("--steps", type=positive, default=1, help="steps to time, after a first one (default: 1)")
    parser.add_argument("--model", choices=NETWORKS, default="resnet50", help="to run (default: resnet50)")
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"), help="of the files (default: /var/tmp)")
    parser.add_argument("-o", "--output", type=Path, help="write JSON")
    add_quiet(parser)
    return parser.parse_args(argv)


if __name__ == "__main__":
    run_script(main)
