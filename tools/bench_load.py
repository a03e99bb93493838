"""Memory and time of whole processes that load a network and run it three times: here and in onnxruntime.

    python -m tools.bench_load [--networks resnet50 vgg19] [--engine numba onnxruntime] [-o FILE.json]

Each is a process of its own on one thread. The most bytes resident (VmHWM) are told of a plain process from its start
to its end, and of loading alone in one that has run a small network before (SqueezeNet): what is resident beyond that
is the network's, and no library or compiled code. Both kinds of file are loaded: one that holds its weights, and one
whose weights lie beside it (external data). Files have been read once, so that time is not the disk's, and compiled
code is cached. The first output is timed from the start of the process.
"""

import json
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import engine
from allocator.io.files import write_whole
from allocator.progress import each
from engine.cli.progress import add_quiet, progress_shown
from engine.onnx.library import onnx
from engine.planning.options import AUTO, LEVELS
from engine.system.process_memory import give_back, peak_bytes, reset_peak, resident_bytes
from ops.schema.backends import BACKENDS
from tools.benchmark_tables import loading_table, markdown
from tools.entry import run_script
from tools.run_networks import NETWORKS, network_file

ONNXRUNTIME = "onnxruntime"
ENGINES = (*BACKENDS, ONNXRUNTIME)
INSIDE, BESIDE = PLACES = ("the file", "files beside it")
RUNS = 3
SMALL = "squeezenet"
REPEATED = 3
"""Processes of each kind: the first one fills caches, the least time and the least peak of the others count."""
CHECKOUT = Path(__file__).parent.parent

Row = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a table; writes rows as JSON where asked."""
    arguments = _arguments(argv)
    if arguments.child:
        data = measure(Path(arguments.child), arguments.engine[0], arguments.optimise, arguments.rehearsed)
        print(json.dumps(data))
        return 0
    with progress_shown(arguments.quiet):
        cases = list(product(arguments.networks, PLACES, arguments.engine))
        rows = [_row(*case, arguments.optimise) for case in each("process", cases)]
    print(markdown(loading_table(rows)))
    if arguments.output is not None:
        write_whole(arguments.output, (json.dumps({"rows": rows}, indent=1) + "\n").encode())
    return 0


def measure(path: Path, kind: str, level: str, rehearsed: bool) -> Row:
    """Measures what this process needs to load and run one network. Times are those of the clock."""
    run = _onnxruntime if kind == ONNXRUNTIME else _ours
    if rehearsed:
        run(network_file(SMALL), kind, level)()
        give_back()
    before, begin = resident_bytes(), time.time()
    reset_peak()
    ready = run(path, kind, level)
    loading, loaded = peak_bytes(), time.time()
    ready()
    output = time.time()
    for _ in range(RUNS - 1):
        ready()
    return {
        "before": before,
        "loading": loading,
        "whole": peak_bytes(),
        "loading_s": loaded - begin,
        "output": output,
    }


def _ours(path: Path, kind: str, level: str) -> Callable[[], object]:
    executable = engine.compile(engine.load_onnx(path), optimise=level, backend=kind, threads=1)
    rng = np.random.default_rng(0)
    feeds = {n: rng.standard_normal(v.shape).astype(v.dtype) for n, v in executable.graph.inputs.items()}
    return lambda: executable.run(feeds, copy=False)


def _onnxruntime(path: Path, _: str, __: str) -> Callable[[], object]:
    import onnxruntime  # noqa: PLC0415 (heavy, optional)

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(0)
    feeds = {i.name: rng.standard_normal(i.shape).astype(np.float32) for i in session.get_inputs()}
    return lambda: session.run(None, feeds)


def _row(network: str, place: str, kind: str, level: str) -> Row:
    path = network_file(network) if place == INSIDE else external_file(network)
    plain = [_measured(path, kind, level) for _ in range(REPEATED)][1:]
    rehearsed = _measured(path, kind, level, "--rehearsed")
    return {
        "network": network,
        "weights_in": place,
        "engine": kind,
        "weights_bytes": weight_bytes(network),
        "before_bytes": rehearsed["before"],
        "loading_bytes": rehearsed["loading"],
        "whole_bytes": min(t["whole"] for t in plain),
        "loading_seconds": min(t["loading_s"] for t in plain),
        "output_seconds": min(t["output_s"] for t in plain),
    }


def _measured(path: Path, kind: str, level: str, *more: str) -> Row:
    command = [sys.executable, "-m", "tools.bench_load", "--child", str(path.absolute()), "--engine", kind, *more]
    begin = time.time()
    done = subprocess.run(
        [*command, "--optimise", str(level)],
        check=True,
        capture_output=True,
        text=True,
        cwd=CHECKOUT,
    )
    row: Row = json.loads(done.stdout)
    return row | {"output_s": row["output"] - begin}


def external_file(network: str) -> Path:
    """Makes a file of the same network whose weights lie in one file beside it, each aligned to pages."""
    source = network_file(network)
    path = source.with_name(f"{network}_external.onnx")
    if not path.exists():
        path.with_suffix(".data").unlink(missing_ok=True)
        model = onnx().load(source)
        onnx().save_model(
            model, path, save_as_external_data=True, location=path.with_suffix(".data").name, size_threshold=1024
        )
    return path


def weight_bytes(network: str) -> int:
    """Returns the bytes of all initializers."""
    return int(sum(entry.nbytes for entry in engine.load_onnx(network_file(network)).constants.entries.values()))


def _arguments(argv: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", choices=tuple(NETWORKS), default=("resnet50", "vgg19", "encoder"))
    parser.add_argument("--engine", nargs="+", choices=ENGINES, default=("numba", "onednn", ONNXRUNTIME))
    parser.add_argument("--optimise", choices=(AUTO, *map(str, LEVELS)), default=AUTO, help="of ours (default: auto)")
    parser.add_argument("--child", default="", help="measure this very process on a file, with one --engine")
    parser.add_argument("--rehearsed", action="store_true", help="run a small network first; with --child")
    parser.add_argument("-o", "--output", type=Path, help="write JSON")
    add_quiet(parser)
    return parser.parse_args(argv)


if __name__ == "__main__":
    run_script(main)
