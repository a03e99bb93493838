"""What recognising a formula saves: each one in pieces, its pieces fused, and as one operator.

    python -m tools.bench_recognition [--rows 128] [--columns 1536] [--runs 200] [-o recognition.json]

All graphs of a formula run in turn, in this process, on one thread.
"""

import json
import math
import platform
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import ops
from allocator.io.files import write_whole
from allocator.progress import each
from engine.cli.progress import add_quiet, progress_shown
from engine.graph.graph import Graph
from engine.graph.var import Var
from engine.passes.pipeline import CLEANUP, FUSION, RECOGNITION, until_unchanged
from engine.system.threads import limit_threads
from engine.text.tables import in_columns
from tools.entry import run_script
from tools.side_by_side import side_by_side

_SLOPE = math.sqrt(2 / math.pi)


def _normal(x: Var) -> Var:
    centred = x - ops.reduce_mean(x, (-1,))
    return centred / ops.sqrt(ops.reduce_mean(ops.pow(centred, 2.0), (-1,)) + 1e-5)


def _layer_norm(x: Var) -> Var:
    row = np.linspace(0.5, 1.5, x.shape[-1], dtype=np.float32)
    return _normal(x) * row + row


def _rms_norm(x: Var) -> Var:
    row = np.linspace(0.5, 1.5, x.shape[-1], dtype=np.float32)
    return x * ops.reciprocal(ops.sqrt(ops.reduce_mean(ops.pow(x, 2.0), (-1,)) + 1e-6)) * row


def _softmax(x: Var) -> Var:
    power = ops.exp(x - ops.reduce_max(x, (-1,)))
    return power / ops.reduce_sum(power, (-1,))


def _log_softmax(x: Var) -> Var:
    shifted = x - ops.reduce_max(x, (-1,))
    return shifted - ops.log(ops.reduce_sum(ops.exp(shifted), (-1,)))


FORMULAS: Mapping[str, Callable[[Var], Var]] = {
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "gelu": lambda x: x * 0.5 * (ops.erf(x / math.sqrt(2)) + 1.0),
    "gelu, tanh": lambda x: 0.5 * x * (1.0 + ops.tanh(_SLOPE * (x + 0.044715 * ops.pow(x, 3.0)))),
    "swish": lambda x: x * ops.sigmoid(x),
    "hard_swish": lambda x: x * ops.clip(x + 3.0, 0.0, 6.0) / 6.0,
    "mish": lambda x: x * ops.tanh(ops.softplus(x)),
}
"""The formulas as exporters write them."""


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a table; writes what was measured as JSON where asked."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=128, help="of the matrix (default 128)")
    parser.add_argument("--columns", type=int, default=1536, help="of the matrix (default 1536)")
    parser.add_argument("--runs", type=int, default=200, help="timed runs of each graph (default 200)")
    parser.add_argument("-o", "--output", type=Path, help="write JSON")
    add_quiet(parser)
    arguments = parser.parse_args(argv)
    shape = (arguments.rows, arguments.columns)
    with progress_shown(arguments.quiet), limit_threads(1):
        rows = [measure(name, shape, arguments.runs) for name in each("formula", tuple(FORMULAS))]
    print(text(rows))
    machine = f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}"
    if arguments.output is not None:
        data = {"machine": machine, "threads": 1, "shape": shape, "runs": arguments.runs, "rows": rows}
        write_whole(arguments.output, (json.dumps(data, indent=1) + "\n").encode())
    return 0


def measure(name: str, shape: tuple[int, int], runs: int) -> dict[str, Any]:
    """Measures the seconds and bytes of the three graphs of a formula, and how far apart their outputs are."""
    pieces = _graph(name, shape)
    graphs = {
        "pieces": pieces,
        "fused": _passed(pieces, FUSION),
        "recognised": _passed(pieces, (*CLEANUP, *RECOGNITION)),
    }
    feeds = {"x": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
    return {"formula": name, **side_by_side(graphs, feeds, runs)}


def _graph(name: str, shape: tuple[int, int]) -> Graph:
    graph = Graph(name)
    graph.output(FORMULAS[name](graph.input("x", shape)), "y")
    return graph


def _passed(graph: Graph, passes: Sequence[Any]) -> Graph:
    for applied in until_unchanged(graph, passes):
        graph = applied.after
    return graph


def text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Returns the table, a line for each formula."""
    head = ["formula", "operators", "pieces, us", "fused, us", "one operator, us", "arena, bytes", "was", "difference"]
    return "\n".join(in_columns([head, *map(_line, rows)], right=range(1, 8)))


def _line(row: Mapping[str, Any]) -> list[str]:
    before, after = row["pieces"], row["recognised"]
    times = (f"{1e6 * row[key]['least_seconds']:.0f}" for key in ("pieces", "fused", "recognised"))
    counts = f"{before['operators']} -> {after['operators']}"
    sizes = (f"{side['arena_bytes']:,}" for side in (after, before))
    return [row["formula"], counts, *times, *sizes, f"{row['difference']:.1e}"]


if __name__ == "__main__":
    run_script(main)
