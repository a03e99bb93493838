"""Times the compiled calls of networks on one thread and on several, and estimates what more threads would give.

    python -m tools.bench_threads [--networks squeezenet ...] [--threads 2] [--worst 5] [-o FILE.json]

Each call stands several times in one program, as it does among others in a run: no Python runs in between, and threads
only wait for each other. What a call loses on T threads is its time there beyond a T-th of its time on one thread; a
barrier is what a step costs whose work is nothing. The estimate for more threads is a model, not a measurement: a call
takes a share of its time on one thread, and a barrier of which each further thread adds the cost that the second one
has here. It leaves out that parts may be uneven, and that threads share caches and memory.
"""

import json
import statistics
import time
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

import ops
from allocator.io.files import write_whole
from allocator.progress import each
from engine.api import compile_graph
from engine.cli.progress import add_quiet, progress_shown, say
from engine.executor.static import StaticExecutor
from engine.executor.team import ALONE, Runner, team
from engine.graph.graph import Graph
from engine.lower.calls import Call
from engine.passes.pipeline import optimise
from engine.planning.options import LEVELS
from engine.system.threads import cpus
from ops.native.call import Native
from ops.tensor.spec import Array
from tools.benchmark_tables import Row, markdown, threads_table
from tools.entry import run_script
from tools.run_networks import NETWORKS, loaded, network_file

REPEATS, TURNS = 10, 10
"""How often a call stands in its program, and runs of a program of which the fastest counts."""
MODELLED = (4, 8, 16)
_EMPTY_STEPS, _EMPTY_TIMES = 200, 50
"""Calls without work, and how often they stand in one program: a helper that wakes late must not miss all of it."""


@frozen(eq=False)
class TimedCall:
    """A call with its seconds on one thread and on several; `text` has its operator and the first shapes."""

    text: str
    alone: float
    together: float

    def lost(self, threads: int) -> float:
        """Returns the seconds beyond an equal share of the work for each thread."""
        return self.together - self.alone / threads


def _text(call: Call) -> str:
    operator = call.operators[-1]
    shapes = ("x".join(map(str, spec.shape)) or "1" for spec in operator.signature.inputs[:2])
    return " ".join((operator.schema.name, *shapes))


def _seconds(table: Array, runners: Sequence[Runner], times: int) -> list[list[float]]:
    """Returns the seconds of one of `times` equal parts of a program in each turn, for each runner, in turn."""
    taken: list[list[float]] = [[] for _ in runners]
    for _ in range(TURNS):
        for row, runner in zip(taken, runners, strict=True):
            begin = time.perf_counter()
            runner.run(table, False)
            row.append((time.perf_counter() - begin) / times)
    return taken


def measure_barrier(runner: Runner) -> float:
    """Returns the seconds that a step costs on several threads beyond those on one, where there is next to no work.

    It is the median, since the fastest run is one that the helpers came too late for.
    """
    graph = Graph("steps")
    x = graph.input("x", (1,))
    for _ in range(_EMPTY_STEPS):
        x = ops.neg(x)
    graph.output(x, "y")
    natives = _natives(graph)
    table = np.concatenate([native.table for _, native in natives] * _EMPTY_TIMES)
    alone, together = map(statistics.median, _seconds(table, (ALONE, runner), len(table)))
    return max(together - alone, 0.0)


def _natives(graph: Graph) -> list[tuple[Call, Native]]:
    """Returns the compiled calls of a network that is ready to run; calls of libraries are left out."""
    executor = compile_graph(graph, optimise=0, backend="numba", threads=1).executor
    assert isinstance(executor, StaticExecutor)
    pairs = zip(executor.calls, executor.thunks, strict=True)
    return [(call, thunk) for call, thunk in pairs if isinstance(thunk, Native)]


def measure_network(path: Path, level: int, runner: Runner) -> list[TimedCall]:
    """Returns the times of all compiled calls of a network."""
    rows: list[TimedCall] = []
    for call, native in each("call", _natives(optimise(loaded(path)[0], level))):
        alone, together = map(min, _seconds(np.concatenate([native.table] * REPEATS), (ALONE, runner), REPEATS))
        rows.append(TimedCall(_text(call), alone, together))
    return rows


def estimate(calls: Iterable[TimedCall], barrier: float, threads: int) -> float:
    """Returns the modelled seconds of all calls on so many threads."""
    return sum(call.alone / threads + barrier * (threads - 1) for call in calls)


def _row(path: Path, calls: Sequence[TimedCall], barrier: float, arguments: Namespace) -> Row:
    alone, together = sum(c.alone for c in calls), sum(c.together for c in calls)
    worst = sorted(calls, key=lambda c: c.lost(arguments.threads), reverse=True)[: arguments.worst]
    return {
        "network": path.stem,
        "calls": len(calls),
        "threads": arguments.threads,
        "alone_s": alone,
        "together_s": together,
        "barriers_s": barrier * len(calls),
        "lost_s": together - alone / arguments.threads,
        "estimates_s": {str(threads): estimate(calls, barrier, threads) for threads in MODELLED},
        "worst": [{"call": c.text, "alone_s": c.alone, "together_s": c.together} for c in worst],
    }


def _worst_table(rows: Iterable[Row]) -> Iterable[Sequence[str]]:
    yield ["network", "call that loses most", "1 thread, us", "together, us"]
    for row in rows:
        for call in row["worst"]:
            yield [row["network"], call["call"], f"{1e6 * call['alone_s']:.0f}", f"{1e6 * call['together_s']:.0f}"]


def main(argv: Sequence[str] | None = None) -> int:
    """Prints two tables; writes rows as JSON where asked."""
    arguments = _arguments(argv)
    runner, rows = team(arguments.threads), list[dict[str, Any]]()
    with progress_shown(arguments.quiet):
        barrier = measure_barrier(runner)
        for name in each("network", arguments.networks):
            path = network_file(name)
            rows.append(dict(_row(path, measure_network(path, arguments.optimise, runner), barrier, arguments)))
    say(f"a barrier of {arguments.threads} threads: {1e6 * barrier:.2f} us\n")
    print(markdown(threads_table(rows)))
    if arguments.worst:
        print("\n" + markdown(_worst_table(rows)))
    if arguments.output is not None:
        data = {"barrier_s": barrier, "threads": arguments.threads, "rows": rows}
        write_whole(arguments.output, (json.dumps(data, indent=1) + "\n").encode())
    return 0


def _arguments(argv: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", choices=tuple(NETWORKS), default=("squeezenet", "mobilenet_v2"))
    parser.add_argument("--threads", type=int, choices=range(2, cpus() + 1), default=2, help="threads together")
    parser.add_argument("--optimise", type=int, choices=LEVELS, default=max(LEVELS), help="of the networks")
    parser.add_argument("--worst", type=int, default=5, metavar="N", help="calls to show of each network (default 5)")
    parser.add_argument("-o", "--output", type=Path, help="write JSON")
    add_quiet(parser)
    return parser.parse_args(argv)


if __name__ == "__main__":
    run_script(main)
