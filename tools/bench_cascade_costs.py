"""What a call and a byte take beside an operation, which the search for cascades counts with.

    python -m tools.bench_cascade_costs [--runs 200] [-o costs.json]

A chain of convolutions of single pixels is computed whole and in stripes: no row is needed twice, so stripes add calls,
and read the weights again. A chain of narrow layers has hardly any weights, so its slope of time over calls is what a
call takes; that of a chain of wide layers is mostly what reading weights takes. Chains of copies of two sizes say what
a copied byte takes. All on one thread; times are the least processor times of some runs. `CALL` and `BYTE` of
engine/passes/cascade/choices.py are compared with the last three columns, for both kinds of numbers.
"""

import argparse
import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np
from attrs import asdict, frozen

import engine
import ops
from allocator.io.files import write_whole
from allocator.progress import each
from engine import Graph, Var
from engine.cli.progress import add_quiet, progress_shown
from engine.lower.costs import graph_cost
from engine.passes.cascade import with_cascades
from engine.planning.placed import Cascade
from engine.text.tables import in_columns
from ops.movement.copy import COPY
from ops.tensor.spec import Array
from tools.bench_cascades import processor_ms
from tools.entry import run_script

KINDS = ("float32", "codes")
LAYERS = 8
NARROW, WIDE = (32, 56, 56), (512, 8, 14)
"""Channels, rows and columns. 14 columns are one tile of compiled kernels with AVX-512."""
COPIES, SMALL, LARGE = 16, 1 << 14, 1 << 18
"""The copies of a chain, and their bytes: both sizes stay in a cache of the processor."""


@frozen
class Costs:
    """What takes how long: operations a nanosecond, nanoseconds of a call, of a copied byte, and of one of weights.

    Operations are those of the chain of narrow layers, such as the first ones of a network, which cascades cut.
    """

    kind: str
    operations: float
    call: float
    copied: float
    weights: float


def chain(kind: str, channels: int, rows: int, columns: int) -> Graph:
    """Returns a chain of convolutions of single pixels after passes, in floats or in codes of 8 bits."""
    rng = np.random.default_rng(0)
    graph = Graph(kind)
    x: Var = graph.input("x", (1, channels, rows, columns), "float32" if kind == "float32" else "uint8")
    grid = np.float32(0.05), np.uint8(128)
    x = x if kind == "float32" else ops.dequantize_linear(x, *grid)
    for _ in range(LAYERS):
        x = ops.relu(ops.conv2d(x, _weights(kind, graph, rng, channels)))
        x = x if kind == "float32" else ops.dequantize_linear(ops.quantize_linear(x, *grid), *grid)
    graph.output(ops.reduce_mean(x, axes=(2, 3)), "y")
    return engine.optimise(graph)


def _weights(kind: str, graph: Graph, rng: np.random.Generator, channels: int) -> Var:
    shape = channels, channels, 1, 1
    if kind == "float32":
        return graph.constant((rng.standard_normal(shape) / np.sqrt(channels)).astype(np.float32))
    codes = graph.constant(rng.integers(-100, 100, shape).astype(np.int8))
    return ops.dequantize_linear(codes, np.full(channels, 0.02 / np.sqrt(channels), np.float32), axis=0)


def run_ns(graphs: Iterable[Graph], runs: int) -> list[tuple[float, int]]:
    """Returns the least nanoseconds of a run of graphs as they are, in turn, and their numbers of calls."""
    each = [engine.compile(graph, optimise=0, overwrite=False, threads=1, nodes=100) for graph in graphs]
    works = [partial(e.run, {name: _some(var) for name, var in e.graph.inputs.items()}) for e in each]
    times = [[processor_ms(work) for work in works] for _ in range(runs + 1)]
    return [
        (min(column) * 1e6, len(e.plan.lowered.calls)) for e, column in zip(each, zip(*times, strict=True), strict=True)
    ]


def _some(var: Var) -> Array:
    return np.random.default_rng(0).uniform(0, 255 if var.dtype == np.uint8 else 1, var.shape).astype(var.dtype)


def a_call(graph: Graph, runs: int) -> tuple[float, float]:
    """Returns the nanoseconds of the whole chain, and those that a call more takes, in stripes of one row.

    Both in stripes, so that no image is larger than a cache: two of them, and as many as there are rows.
    """
    convs = [position for position, operator in enumerate(graph.operators) if "conv" in operator.schema.name]
    rows = graph.operators[convs[0]].outputs[0].shape[1]
    cut = [with_cascades(graph, [Cascade(convs[0], convs[-1] + 1, height)]) for height in (rows // 2, 1)]
    (whole, _), (few, fewer), (many, more) = run_ns([graph, *cut], runs)
    return whole, (many - few) / (more - fewer)


def copied_byte(runs: int) -> float:
    """Returns the nanoseconds of a copied byte."""
    (small, _), (large, _) = run_ns(map(_copies, (SMALL, LARGE)), runs)
    return (large - small) / (COPIES * (LARGE - SMALL))


def _copies(nbytes: int) -> Graph:
    graph = Graph("copies")
    x: Var = graph.input("x", (nbytes // 4,))
    for _ in range(COPIES):
        (x,) = graph.add(COPY, [x], {})
    graph.output(x, "y")
    return graph


def measure(kind: str, runs: int) -> Costs:
    """Measures the costs of one kind of numbers."""
    narrow, wide = (chain(kind, *sizes) for sizes in (NARROW, WIDE))
    whole, call = a_call(narrow, runs)
    weights = max(v.spec.nbytes for v in wide.constants)
    again = (a_call(wide, runs)[1] - call) / weights
    return Costs(kind, graph_cost(narrow).flops / whole, call, copied_byte(runs), again)


def show(rows: Iterable[Costs]) -> str:
    """Returns the costs as a table: as time, and as operations that take as long."""
    names = ("numbers", "operations a ns", "ns of a call", "of a copied byte", "of one of weights")
    texts = [
        (
            row.kind,
            f"{row.operations:.0f}",
            f"{row.call:.0f}",
            *(f"{ns:.3f}" for ns in (row.copied, row.weights)),
            f"{row.call * row.operations:,.0f}",
            *(f"{ns * row.operations:.1f}" for ns in (row.copied, row.weights)),
        )
        for row in rows
    ]
    head = (*names, "operations of a call", "of a copied byte", "of one of weights")
    return "\n".join(in_columns([head, *texts], right=range(1, len(head))))


def main() -> None:
    """Prints the table; writes it as JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    add_quiet(parser)
    args = parser.parse_args()
    with progress_shown(args.quiet):
        rows = [measure(kind, args.runs) for kind in each("kind of numbers", KINDS)]
    print(show(rows))
    if args.output:
        write_whole(args.output, (json.dumps({"rows": [asdict(row) for row in rows]}, indent=1) + "\n").encode())


if __name__ == "__main__":
    run_script(main)
