"""Graphs that compute the same, run in turn in this process: what each costs, and how far apart their outputs are."""

import statistics
from collections.abc import Callable, Mapping
from typing import Any

from engine.api import Executable, compile_graph
from engine.cli.comparison import interleaved
from engine.graph.graph import Graph
from engine.system.arrays import largest_difference
from ops.tensor.spec import Array


def side_by_side(graphs: Mapping[str, Graph], feeds: Mapping[str, Array], runs: int) -> dict[str, Any]:
    """Returns operators, bytes and seconds by graph; "difference" is the largest one from the first graph's outputs."""
    executables = {key: compile_graph(graph, optimise=0) for key, graph in graphs.items()}
    outputs = [executable.run(feeds) for executable in executables.values()]
    times = interleaved(runs, *(_run(executable, feeds) for executable in executables.values()))
    return {
        "difference": max(largest_difference(output, outputs[0]) for output in outputs),
        **{
            key: {
                "operators": len(graphs[key].operators),
                "arena_bytes": executables[key].plan.arena_bytes,
                "median_seconds": statistics.median(seconds),
                "least_seconds": min(seconds),
            }
            for key, seconds in zip(graphs, times, strict=True)
        },
    }


def _run(executable: Executable, feeds: Mapping[str, Array]) -> Callable[[], object]:
    return lambda: executable.run(feeds, copy=False)
