"""What a budget costs: training graphs planned within less and less, and one small network trained within it.

    python tools/bench_remat.py [NETWORK ...] [--batch 32] [--budgets 90,80,70,60,50,40] [-o remat.json]

A row tells the arena, which operators run again, and how many operations more that is; bytes are shown without those
of parameters as well, as no schedule saves these. `chain` is a perceptron of equal layers, of which the number of
layers grows: Chen et al. 2016 have 2 sqrt(n) values for one more forward pass. `--steps` times steps of training.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from attrs import asdict, frozen

import engine
import ops
from allocator.io.files import write_whole
from allocator.progress import each
from engine import Graph
from engine.api import make_plan
from engine.cli.progress import add_quiet, progress_shown
from engine.execution_plan import ExecutionPlan
from engine.text.errors import BudgetError
from engine.text.tables import in_columns
from engine.zoo import NETWORKS
from tools.entry import run_script

MIB = 2**20
DEFAULT = ("resnet50", "inception_bn", "mobilenet_v2", "minilm")
BUDGETS = (90, 80, 70, 60, 50, 40, 30)
LAYERS = (16, 64, 256)
NODES = 1_000
TIMED = (100, 70, 50, 35)
"""Budgets in percent of the plain arena."""


@frozen
class Row:
    """One plan: bytes of the arena and of parameters in it; `share` is what runs again, of all operations."""

    network: str
    operators: int
    percent: int
    budget: int
    arena: int
    plain: int
    parameters: int
    again: int
    share: float
    seconds: float
    reached: bool
    step_s: float = 0.0

    @property
    def kept(self) -> float:
        """Bytes beside the parameters, as a share of those of the plain plan."""
        return (self.arena - self.parameters) / (self.plain - self.parameters)


def trained(name: str, batch: int, **sizes: int) -> Graph:
    """Builds a network of the zoo, of such sizes, as a step of gradient descent with momentum."""
    graph = NETWORKS[name](batch=batch, training=True, **sizes)
    return engine.train_step(graph, graph.outputs["loss"], engine.SGD(0.01, 0.9)).graph


def chain(layers: int, width: int = 128, rows: int = 1024) -> Graph:
    """Builds a step of training a chain of equal layers, whose activations are larger than their weights."""
    graph, rng = Graph(f"chain{layers}"), np.random.default_rng(0)
    x = graph.input("x", (rows, width))
    for i in range(layers):
        weight = rng.normal(0, width**-0.5, (width, width)).astype(np.float32)
        x = ops.tanh(x @ graph.parameter(weight, f"w{i}"))
    loss = ops.reduce_mean(x * x, axes=None, keepdims=False)
    return engine.train_step(graph, loss, engine.SGD(0.1)).graph


def rows_of(name: str, graph: Graph, percents: Sequence[int]) -> Iterator[Row]:
    """Yields a row for each budget that is reached, and for the first that is not: it has the smallest arena."""
    plain = make_plan(graph, nodes=NODES, optimise=0)
    for percent in each("budget", percents, lambda percent: f"{percent} %"):
        row = _row(name, graph, plain, percent)
        yield row
        if not row.reached:
            return


def _row(name: str, graph: Graph, plain: ExecutionPlan, percent: int) -> Row:
    held = sum(p.initial.nbytes for p in graph.parameters.values())
    budget, start = plain.arena_bytes * percent // 100, time.perf_counter()
    again, reached = 0, True
    try:
        plan = make_plan(graph, budget=budget, nodes=NODES, optimise=0)
        arena, share = plan.arena_bytes, sum(r.share for r in plan.recomputed)
        again = sum(len(r.operators) for r in plan.recomputed)
    except BudgetError as error:
        arena, share, reached = error.least, error.share, False
    seconds = time.perf_counter() - start
    count, before = len(graph.operators), plain.arena_bytes
    return Row(name, count, percent, budget, arena, before, held, again, share, seconds, reached)


def timed_rows(layers: int, steps: int) -> Iterator[Row]:
    """Trains a chain within budgets, in turn. Yields a row for each, with the seconds of its fastest step."""
    graph = chain(layers)
    plain = make_plan(graph, nodes=NODES, optimise=0)
    rows = [_row(graph.name, graph, plain, percent) for percent in TIMED]
    rows = [row for row in rows if row.reached]
    exes = [engine.compile(graph, budget=row.budget, nodes=NODES, optimise=0) for row in rows]
    feeds = {"x": np.random.default_rng(1).normal(size=graph.inputs["x"].shape).astype(np.float32)}
    best = [float("inf")] * len(exes)
    for _ in range(steps):
        for i, exe in enumerate(exes):
            start = time.perf_counter()
            exe.run(feeds, copy=False)
            best[i] = min(best[i], time.perf_counter() - start)
    for row, step_s in zip(rows, best, strict=True):
        yield Row(**asdict(row) | {"step_s": step_s})


def table(rows: Sequence[Row]) -> str:
    """Returns the table, a line for each row."""
    head = ("network", "operators", "budget", "arena MiB", "beside parameters", "again", "more operations", "planned s")
    lines = [(*head, "step ms")]
    for r in rows:
        budget = f"{r.percent} %" if r.reached else f"{r.percent} %: not reached"
        shown = f"{r.arena / MIB:.1f}", f"{r.kept:.1%}", str(r.again) if r.reached else "-", f"{r.share:.2%}"
        step = f"{r.step_s * 1e3:.1f}" if r.step_s else "-"
        lines.append((r.network, str(r.operators), budget, *shown, f"{r.seconds:.1f}", step))
    return "\n".join(in_columns(lines))


def main() -> None:
    """Prints the tables; writes the rows as JSON where asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("networks", nargs="*", default=DEFAULT, help="of the zoo; 'chain' for chains (default: some)")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--budgets", default=",".join(map(str, BUDGETS)), help="percent of the plain arena")
    parser.add_argument("--steps", type=int, default=0, help="steps of training to time, of a chain")
    parser.add_argument("-o", "--output", type=Path)
    add_quiet(parser)
    arguments = parser.parse_args()
    percents = [int(p) for p in arguments.budgets.split(",")]
    rows: list[Row] = []
    with progress_shown(arguments.quiet):
        for name in each("network", arguments.networks):
            graphs = [chain(n) for n in LAYERS] if name == "chain" else [trained(name, arguments.batch)]
            for graph in graphs:
                rows += rows_of(graph.name, graph, percents)
        if arguments.steps:
            rows += timed_rows(32, arguments.steps)
    print(table(rows))
    if arguments.output is not None:
        write_whole(arguments.output, json.dumps([asdict(row) for row in rows], indent=1).encode())


if __name__ == "__main__":
    run_script(main)
