"""What stripes of columns save where images are wide and low: bytes of the arena, and the time of runs.

    python -m tools.bench_columns [--seeds 1 2 3 4] [--percent 25] [--runs 3] [-o columns.json]

Each seed draws a network of convolutions on a wide image, such as a spectrogram or the picture of a line camera. It is
planned on whole images, with stripes of rows alone, and with columns, too. All run in turn in one process, with the
same threads; the outputs are compared to the bit.
"""

import json
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from attrs import asdict, frozen

import engine
import ops
from allocator.io.files import write_whole
from allocator.progress import each
from engine import Executable, Graph
from engine.cli.options.values import positive
from engine.cli.progress import add_quiet, progress_shown
from engine.graph.var import Var
from engine.passes.cascade import CascadeSearch, with_cascades
from engine.planning.options import Options
from engine.text.tables import in_columns
from ops.common.tiling import ROWS
from ops.tensor.spec import Array
from tools.bench_nest import least
from tools.benchmark_tables import columns_table
from tools.entry import run_script

SEEDS = (1, 2, 3, 4)
PERCENT = 25
_STEPS = 20_000
"""Steps of the search for addresses, as many as plans with cascades take by default."""


@frozen
class Row:
    """One network. `rows_bytes` is the arena with stripes of rows alone, `arena_bytes` that with columns, too.

    `least_bytes` is the lower bound of all cascades, `share` what columns add to all operations.
    """

    seed: int
    height: int
    width: int
    operators: int
    plain_bytes: int
    rows_bytes: int
    arena_bytes: int
    least_bytes: int
    share: float
    plain_run_ms: float
    rows_run_ms: float
    run_ms: float


def drawn(seed: int) -> Graph:
    """Returns a network of four to seven layers on an image of 16 to 96 rows, and 1,000 to 4,000 columns."""
    rng = np.random.default_rng(seed)
    graph = Graph(f"wide{seed}")
    x: Var = graph.input("x", (1, int(rng.choice([1, 3])), int(rng.integers(16, 97)), int(rng.integers(1000, 4001))))
    for _ in range(int(rng.integers(4, 8))):
        x = _layer(rng, x)
    x = ops.max_pool(x, (2, 2), strides=(2, 2))
    graph.output(ops.conv2d(x, _weights(rng, 4, x.shape[1], 1)), "y")
    return graph


def _layer(rng: np.random.Generator, x: Var) -> Var:
    """Returns a convolution, or a depthwise one in front of one of 1 x 1, with an activation."""
    channels, kernel = int(rng.integers(2, 7)) * 8, int(rng.choice([3, 5]))
    pads = (kernel // 2,) * 4
    if x.shape[1] > 3 and rng.integers(2):
        x = ops.relu(ops.conv2d(x, _weights(rng, x.shape[1], 1, kernel), group=x.shape[1], pads=pads))
        return ops.relu(ops.conv2d(x, _weights(rng, channels, x.shape[1], 1)))
    return ops.relu(ops.conv2d(x, _weights(rng, channels, x.shape[1], kernel), pads=pads))


def _weights(rng: np.random.Generator, outputs: int, inputs: int, kernel: int) -> Array:
    return rng.standard_normal((outputs, inputs, kernel, kernel), np.float32) / np.float32(kernel * np.sqrt(inputs))


def _rows_alone(graph: Graph, percent: int) -> Graph:
    """Returns an optimised graph with the cascades of rows that save most bytes; itself without any."""
    cascaded = CascadeSearch(graph, axes=(ROWS,)).within(Options(cascade=percent))
    return with_cascades(graph, cascaded[0].cascades) if cascaded else graph


def measure(seed: int, percent: int, runs: int) -> Row:
    """Returns the row of a network. Raises SystemExit where a bit of the outputs differs."""
    graph = engine.optimise(drawn(seed))
    cut_in_rows = _rows_alone(graph, percent)
    compiled = partial(engine.compile, optimise=0, nodes=_STEPS)
    plain, rows, cut = compiled(graph), compiled(cut_in_rows), compiled(graph, cascade=percent)
    plain_ms, rows_ms, cut_ms = _run_times((plain, rows, cut), runs)
    cascades = [cascaded for done in cut.plan.optimisation for cascaded in done.cascades]
    height, width = graph.inputs["x"].shape[2:]
    return Row(
        seed,
        height,
        width,
        len(graph.operators),
        plain.plan.arena_bytes,
        rows.plan.arena_bytes,
        cut.plan.arena_bytes,
        CascadeSearch(graph).bound,
        sum(done.share for done in cascades),
        plain_ms,
        rows_ms,
        cut_ms,
    )


def _run_times(all_of_them: Sequence[Executable], runs: int) -> list[float]:
    """Returns the least milliseconds of each, which run in turn. Raises SystemExit where a bit of outputs differs."""
    feeds = {"x": np.random.default_rng(0).standard_normal(all_of_them[0].graph.inputs["x"].shape, np.float32)}
    first, *others = ({name: y.copy() for name, y in one.run(feeds).items()} for one in all_of_them)
    if not all(np.array_equal(first["y"], other["y"]) for other in others):
        raise SystemExit(f"{all_of_them[0].graph.name}: outputs differ")
    turns = [[least(partial(one.run, feeds), 1) for one in all_of_them] for _ in range(runs)]
    return [min(times) for times in zip(*turns, strict=True)]


def main() -> None:
    """Prints the table; writes it as JSON where asked."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--percent", type=int, default=PERCENT)
    parser.add_argument("--runs", type=positive, default=3)
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    add_quiet(parser)
    args = parser.parse_args()
    with progress_shown(args.quiet):
        rows = [asdict(measure(seed, args.percent, args.runs)) for seed in each("network", tuple(args.seeds))]
    print("\n".join(in_columns(list(columns_table(rows)), right=range(1, 10))))
    if args.output:
        write_whole(args.output, (json.dumps({"rows": rows}, indent=1) + "\n").encode())


if __name__ == "__main__":
    run_script(main)
