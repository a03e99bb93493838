"""Memory and time of whole processes that load a network and run it five times, here and in onnxruntime, in turn.

    python -m tools.bench_process [--networks squeezenet relu] [--pairs 3] [-o FILE.json]

All options are the defaults. The most bytes resident are those from the start of the process to its end, with Python
and numpy; the first output is timed from the start of the process (`tools/whole_process.py`). Files have been read
once, and compiled code is cached.
"""

import json
import os
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from allocator.io.files import write_whole
from allocator.progress import each
from engine.cli.progress import add_quiet, progress_shown
from engine.onnx.library import ModelProto
from engine.onnx.seeded import seed_weights
from tools.benchmark_tables import markdown, process_table
from tools.entry import run_script
from tools.networks.transformers import decoder_step
from tools.networks.writer import Writer
from tools.run_networks import NETWORKS, loaded, network_file


def one_relu() -> ModelProto:
    """Builds a model that is one relu of 16 numbers."""
    to = Writer()
    return to.model("relu", (16,), {to.node("Relu", ["x"]): (16,)})


OWN = {"decoder": decoder_step, "relu": one_relu}
"""Models that no other table has; what they need is small, or is mostly inputs and outputs."""
DEFAULT = (
    *("squeezenet", "mobilenet_v2", "resnet50", "densenet121", "vgg19", "vit_tiny", "encoder", "resnet18_int8"),
    *OWN,
)
ENGINES = ("arenaplan", "onnxruntime")
CHILD = Path(__file__).with_name("whole_process.py")

Row = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a table; writes rows as JSON where asked."""
    arguments = _arguments(argv)
    with progress_shown(arguments.quiet), TemporaryDirectory() as folder:
        rows = [_row(name, arguments.pairs, Path(folder)) for name in each("network", arguments.networks)]
    print(markdown(process_table(rows)))
    if arguments.output is not None:
        write_whole(arguments.output, (json.dumps({"rows": rows}, indent=1) + "\n").encode())
    return 0


def _row(name: str, pairs: int, folder: Path) -> Row:
    """Measures a network in processes of both engines in turn. The first two, which fill caches, do not count."""
    model = folder / f"{name}.onnx" if name in OWN else network_file(name)
    if name in OWN:
        write_whole(model, seed_weights(OWN[name]()).SerializeToString())
    _, feeds = loaded(model)
    np.savez(folder / "feeds.npz", **feeds)  # type: ignore[arg-type]
    environment = os.environ | {"PYTHONPATH": str(CHILD.parent.parent)}
    runs = [
        {engine: measured(engine, model, folder / "feeds.npz", environment) for engine in ENGINES}
        for _ in range(pairs + 1)
    ]
    least = {
        f"{engine}_{what}": min(run[engine][what] for run in runs[1:])
        for engine in ENGINES
        for what in ("peak_bytes", "seconds")
    }
    return {"network": name, **least}


def measured(engine: str, model: Path, feeds: Path, environment: Mapping[str, str]) -> Row:
    """Runs a process, and returns its peak and the seconds from its start to its first output."""
    command = [sys.executable, str(CHILD), engine, str(model.absolute()), str(feeds)]
    begin = time.time()
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    report: Row = json.loads(done.stdout)
    return {"peak_bytes": report["peak_bytes"], "seconds": report["output"] - begin}


def _arguments(argv: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", choices=(*NETWORKS, *OWN), default=DEFAULT)
    parser.add_argument("--pairs", type=int, default=2, help="processes of each engine that count (default: 2)")
    parser.add_argument("-o", "--output", type=Path, help="write JSON")
    add_quiet(parser)
    return parser.parse_args(argv)


if __name__ == "__main__":
    run_script(main)
