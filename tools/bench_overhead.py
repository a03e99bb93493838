"""Times the engine's own cost of an operator: a chain of tiny operators against a bare loop over the same functions."""

import json
import statistics
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import ops
from allocator.io.files import write_whole
from engine.api import Executable, compile_graph
from engine.cli.comparison import interleaved
from engine.cli.progress import add_quiet, progress_shown
from engine.executor.static import StaticExecutor
from engine.graph.graph import Graph
from tools.entry import run_script

CHAIN, ELEMENTS = 10_000, 16


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the measurement; writes it as JSON where asked."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="timed runs of each (default 20)")
    parser.add_argument("-o", "--output", type=Path, help="write JSON")
    add_quiet(parser)
    arguments = parser.parse_args(argv)
    with progress_shown(arguments.quiet):
        data = time_chain(CHAIN, arguments.runs)
    print(f"chain of {CHAIN} tiny operators: {data['overhead_us']:.3f} us an operator beyond numpy's calls")
    if arguments.output is not None:
        write_whole(arguments.output, (json.dumps(data, indent=1) + "\n").encode())
    return 0


def time_chain(length: int, runs: int) -> dict[str, Any]:
    """Times a chain. Returns the microseconds that a run adds to each numpy call (medians of interleaved runs)."""
    executable = compile_graph(_chain(length), optimise=0)
    feeds = {"x": np.linspace(-1, 1, ELEMENTS, dtype=np.float32)}
    bare = _bare_loop(executable)
    bare()
    executable.run(feeds)
    whole, loop = interleaved(runs, lambda: executable.run(feeds, copy=False), bare)
    extra = (statistics.median(whole) - statistics.median(loop)) / length
    return {"chain": length, "chain_seconds": _times(whole), "bare_seconds": _times(loop), "overhead_us": extra * 1e6}


def _chain(length: int) -> Graph:
    """Builds a chain of abs, neg, abs, neg ... on a few floats."""
    graph = Graph("chain")
    x = graph.input("x", (ELEMENTS,))
    for i in range(length):
        x = ops.neg(x) if i % 2 else ops.abs(x)
    graph.output(x, "y")
    return graph


def _bare_loop(executable: Executable) -> Callable[[], None]:
    """Returns a loop that calls the chain's numpy functions on the very same arrays, and does nothing else."""
    executor = executable.executor
    assert isinstance(executor, StaticExecutor), "a chain is run statically"
    functions = (np.absolute, np.negative)
    places = [(executor.array(c.inputs[0]), executor.array(c.outputs[0])) for c in executor.calls]
    calls = [(functions[i % 2], x, y) for i, (x, y) in enumerate(places)]

    def run() -> None:
        for function, x, y in calls:
            function(x, y)

    return run


def _times(times: tuple[float, ...]) -> dict[str, float]:
    return {"min": min(times), "median": statistics.median(times)}


if __name__ == "__main__":
    run_script(main)
