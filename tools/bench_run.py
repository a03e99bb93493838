"""Times networks here and in onnxruntime, in turn, in one process: batch 1, on the same number of threads each.

    python -m tools.bench_run [--networks resnet50 encoder] [--threads 1 2] [-o FILE.json]

What is measured is the default of `engine.compile`, unless --optimise or --backend ask for something else.
Both engines take turns in small groups of runs, so that both see the same clock and the same neighbours. The first run
of a group is not counted: it finds the other's weights in the caches. Threads of onnxruntime and of BLAS wait for work
in a loop for up to a tenth of a second after a run: each group begins when no thread of the process is busy.
Outputs are compared before anything is timed. Nothing is bound to processors.
"""

import gc
import json
import statistics
import time
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from allocator.io.files import write_whole
from allocator.progress import each
from engine.api import Executable, compile_graph
from engine.cli.comparison import seconds
from engine.cli.options.common import add_instructions
from engine.cli.oracle import onnxruntime_runner
from engine.cli.progress import add_quiet, progress_shown
from engine.planning.options import LEVELS, PlanOptions
from engine.system.arrays import largest_difference
from engine.system.instructions import limit_instructions
from engine.system.threads import limit_threads
from ops.tensor.spec import Array
from tools.benchmark_tables import markdown, runs_table
from tools.entry import run_script
from tools.onnxruntime_arena import onnxruntime_activations
from tools.run_networks import NETWORKS, loaded, network_file

DEFAULT = "default"
"""In place of a back-end or a level: the option is left out."""
BACKENDS = (DEFAULT, "numba", "onednn", "numpy", "auto")
GROUP = 4
"""Counted runs of one engine in a row."""
_PAUSE, _LONGEST_PAUSE = 0.01, 1.0
"""Seconds in which no thread may be busy before a group begins, and seconds after which it begins anyhow."""
TOLERANCE = 1e-3
"""The largest difference between outputs that is accepted, over their largest value."""

Row = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a table; writes rows as JSON where asked."""
    arguments = _arguments(argv)
    if arguments.instructions:
        limit_instructions(arguments.instructions)
    rows: list[Row] = []
    with progress_shown(arguments.quiet):
        for network in each("network", _files(arguments)):
            rows += time_network(network, arguments)
            if arguments.output is not None:
                write_whole(arguments.output, (json.dumps({"rows": rows}, indent=1) + "\n").encode())
    print(markdown(runs_table(rows)))
    return 0


def time_network(path: Path, arguments: Namespace) -> Iterator[Row]:
    """Times a network. Yields a row for each back-end and number of threads."""
    graph, feeds = loaded(path)
    arena = onnxruntime_activations(path)
    theirs_of = {threads: onnxruntime_runner(path, feeds, threads) for threads in arguments.threads}
    for backend in arguments.backend:
        for threads in arguments.threads:
            with limit_threads(threads):
                options = PlanOptions() if backend == DEFAULT else PlanOptions(backend=backend)
                if arguments.optimise != DEFAULT:
                    options["optimise"] = arguments.optimise
                ours = compile_graph(graph, threads=threads, **options)
                times = _timed(ours, feeds, theirs_of[threads], arguments.runs)
            yield {
                "network": path.stem,
                "backend": backend,
                "threads": threads,
                "optimise": arguments.optimise,
                "arena_bytes": ours.arena_bytes,
                "prepacked_bytes": ours.prepacked_bytes,
                "onnxruntime_planned_bytes": arena.planned,
                "onnxruntime_besides_bytes": arena.besides,
                **times,
            }
            del ours
            gc.collect()


def _timed(ours: Executable, feeds: Mapping[str, Array], theirs: Callable[[], Mapping[str, Array]], runs: int) -> Row:
    """Times both, least and median, and compares their outputs. Raises SystemExit where these differ too much."""
    apart = largest_difference(ours.run(feeds), theirs())
    if apart > TOLERANCE:
        raise SystemExit(f"{ours.graph.name}: outputs differ by {apart:.1e} of their largest value")
    own, other = in_groups(runs, lambda: ours.run(feeds, copy=False), theirs)
    return {
        "runs": len(own),
        "arenaplan_seconds": _times(own),
        "onnxruntime_seconds": _times(other),
        "ratio_min": min(own) / min(other),
        "ratio_median": statistics.median(own) / statistics.median(other),
        "largest_difference": apart,
    }


def in_groups(runs: int, *functions: Callable[[], object]) -> list[list[float]]:
    """Returns the seconds of at least `runs` runs of each function; the last group is always complete."""
    times: list[list[float]] = [[] for _ in functions]
    while len(times[0]) < runs:
        for function, samples in zip(functions, times, strict=True):
            _wait_until_idle()
            function()
            samples.extend(seconds(function) for _ in range(GROUP))
    return times


def _wait_until_idle() -> None:
    end, busy = time.perf_counter() + _LONGEST_PAUSE, 1.0
    while busy > _PAUSE / 10 and time.perf_counter() < end:
        before = time.process_time()
        time.sleep(_PAUSE)
        busy = time.process_time() - before


def _times(times: Sequence[float]) -> Mapping[str, float]:
    return {"min": min(times), "median": statistics.median(times)}


def _files(arguments: Namespace) -> Sequence[Path]:
    return arguments.model or [network_file(name) for name in arguments.networks]


def _arguments(argv: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", choices=tuple(NETWORKS), default=tuple(NETWORKS), metavar="NAME")
    parser.add_argument("--model", nargs="+", type=Path, help="ONNX files of fixed shapes instead")
    parser.add_argument("--backend", nargs="+", choices=BACKENDS, default=(DEFAULT,), help="of ours")
    parser.add_argument("--threads", nargs="+", type=int, default=(1, 2), help="of both (default 1 2)")
    parser.add_argument("--optimise", choices=(DEFAULT, *map(str, LEVELS)), default=DEFAULT, help="of ours")
    parser.add_argument("--runs", type=int, default=24, help="counted runs of each (default 24)")
    add_instructions(parser)
    parser.add_argument("-o", "--output", type=Path, help="write JSON")
    add_quiet(parser)
    return parser.parse_args(argv)


if __name__ == "__main__":
    run_script(main)
