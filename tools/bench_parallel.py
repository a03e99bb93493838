"""What it costs and gains to let operators run at once: bytes of each policy, time of planning, time of running.

python -m tools.bench_parallel [--only costs planning running] [-o rows.json]
"""

import json
import statistics
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve

import ops
from allocator.errors import TooManyError
from allocator.io.files import write_whole
from allocator.policies import POLICIES
from allocator.progress import each
from engine.api import Executable, compile_graph, make_plan
from engine.cli.comparison import equal_outputs, interleaved
from engine.cli.options.models import light_model, random_feeds, seeded_subject
from engine.cli.progress import add_quiet, progress_shown, say
from engine.executor.arenas import new_arena
from engine.executor.parallel import ParallelExecutor
from engine.executor.static import StaticExecutor
from engine.graph.graph import Graph
from engine.graph.var import Var
from engine.onnx.load import load_onnx
from engine.report.parallelism import parallelism
from engine.system.threads import cpus, limit_threads
from engine.zoo import encoder
from tools.benchmark_tables import TABLES, Row, markdown
from tools.entry import run_script

NETWORKS = ("squeezenet", "shufflenet", "inception_v1", "inception_v2", "densenet121", "resnet50")
COLOURS = ("colour:1", "colour:4")
PLANNED = ((2_000, 8), (2_000, 32), (20_000, 8), (20_000, 32))
"""Operators and width of the random networks whose planning is timed."""
BRANCHES, RUNS = 8, 40


def measure_costs() -> list[Row]:
    """Measures the bytes of each policy, and how many calls may run at once."""
    graphs = {name: load_onnx(light_model(name)) for name in NETWORKS}
    graphs["encoder"] = encoder(seed=0)
    return [_cost(name, graph, policy) for name, graph in graphs.items() for policy in ("", *COLOURS, *POLICIES)]


def _cost(name: str, graph: Graph, policy: str) -> Row:
    plan = make_plan(graph, parallel=policy, optimise=0)
    at_once = parallelism(plan)
    return {
        "network": name,
        "policy": policy or "sequence",
        "arena_bytes": plan.arena_bytes,
        "lower_bound": plan.plan.lower_bound,
        "status": str(plan.plan.status),
        "by_count": at_once.by_count,
        "by_cost": at_once.by_cost,
    }


def measure_planning() -> list[Row]:
    """Measures the seconds of whole plans, both judges of execution plans included."""
    rows: list[Row] = []
    for operators, width in PLANNED:
        graph = random_network(operators, width)
        make_plan(
            random_network(1_000, width), parallel="exact", optimise=0
        )  # compiles and loads what there is to compile
        for policy in ("", *POLICIES):
            rows.append({"operators": operators, "width": width, **_planned(graph, policy)})
    return rows


def _planned(graph: Graph, policy: str) -> Row:
    begin = time.perf_counter()
    try:
        plan = make_plan(graph, parallel=policy, optimise=0)
    except TooManyError as error:
        return {"policy": policy, "note": str(error)}
    taken = time.perf_counter() - begin
    numbers = {"arena_bytes": plan.arena_bytes, "lower_bound": plan.plan.lower_bound}
    return {"policy": policy or "sequence", "seconds": taken, **numbers}


def measure_running() -> list[Row]:
    """Measures the seconds of runs in sequence and at once, in turn."""
    wide = wide_network(BRANCHES)
    subject = seeded_subject(light_model("resnet50"))
    with limit_threads(1):
        one = _ran(f"{BRANCHES} equal branches of 3x3 convolutions", wide, random_feeds(wide, 0, {}), 1)
    default = _ran("resnet50", subject.graph, subject.feeds, cpus())
    return [one, default]


def _ran(name: str, graph: Graph, feeds: Mapping[str, Any], blas: int) -> Row:
    """Times a plan on all processors, and the same plan in sequence on one thread, with `blas` threads of BLAS."""
    exe = compile_graph(graph, parallel="exact", threads=cpus(), optimise=0)
    alone = StaticExecutor(exe.plan, new_arena(exe.plan))
    sequence = evolve(exe, executor=alone) if blas == 1 else compile_graph(graph, optimise=0)
    same = equal_outputs(exe.run(feeds), sequence.run(feeds))
    ours, theirs = interleaved(RUNS, lambda: exe.run(feeds, copy=False), lambda: sequence.run(feeds, copy=False))
    return {
        "network": name,
        "threads": _threads(exe),
        "equal": same,
        "sequence_s": {"min": min(theirs), "median": statistics.median(theirs)},
        "at_once_s": {"min": min(ours), "median": statistics.median(ours)},
    }


def _threads(exe: Executable) -> int:
    return exe.executor.threads if isinstance(exe.executor, ParallelExecutor) else 1


def wide_network(branches: int) -> Graph:
    """Builds a network of `branches` equal convolutions side by side, concatenated; weights are seeded."""
    rng, graph = np.random.default_rng(0), Graph("wide")
    x = graph.input("x", (1, 64, 56, 56))
    outputs = []
    for _ in range(branches):
        weight = graph.constant(rng.standard_normal((64, 64, 3, 3)).astype(np.float32) / 24)
        outputs.append(ops.conv2d(x, weight, pads=(1, 1, 1, 1)))
    graph.output(ops.concat(outputs, axis=1), "y")
    return graph


def random_network(operators: int, width: int, seed: int = 0) -> Graph:
    """Builds a random network: values fork, join, grow and shrink, and at most `width` of them are in use at a time."""
    rng, graph = np.random.default_rng(seed), Graph(f"random_{operators}_{width}")
    live = [graph.input("x", (64,))]
    while len(graph.operators) < operators:
        _grow(live, int(rng.integers(len(live))), float(rng.random()), rng, width)
    for i, var in enumerate(live):
        graph.output(var, f"y{i}")
    return graph


def _grow(live: list[Var], i: int, chance: float, rng: np.random.Generator, width: int) -> None:
    var = live[i]
    (length,) = var.shape
    others = [j for j, other in enumerate(live) if j != i and other.shape == var.shape]
    if chance < 0.25 and len(live) < width:
        live.append(ops.tanh(var))
    elif chance < 0.5 and others:
        j = others[int(rng.integers(len(others)))]
        live[i] = ops.add(var, live[j])
        live.pop(j)
    elif chance < 0.6 and length < 4096:
        live[i] = ops.concat([var, var], axis=0)
    elif chance < 0.8 and length > 64:
        live[i] = ops.reduce_max(ops.reshape(var, (-1, 64)), axes=(0,), keepdims=False)
    else:
        live[i] = ops.neg(var)


MEASURES: Mapping[str, Callable[[], list[Row]]] = {
    "costs": measure_costs,
    "planning": measure_planning,
    "running": measure_running,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Prints tables; writes the rows as JSON where asked."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=tuple(MEASURES), nargs="*", default=tuple(MEASURES))
    parser.add_argument("-o", "--output", type=Path, help="write JSON")
    add_quiet(parser)
    arguments = parser.parse_args(argv)
    data: dict[str, list[Row]] = {}
    with progress_shown(arguments.quiet):
        for section in each("section", arguments.only):
            data[section] = MEASURES[section]()
            say(markdown(TABLES[section](data[section])) + "\n")
    if arguments.output is not None:
        write_whole(arguments.output, (json.dumps(data, indent=1) + "\n").encode())
    return 0


if __name__ == "__main__":
    run_script(main)
