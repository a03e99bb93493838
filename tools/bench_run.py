"""Times a model in our static executor and in onnxruntime, in turn, in one process, on one thread each.

Also the engine's own cost of an operator: a long chain of tiny operators against a bare loop over the same functions.
"""

import json
import platform
import statistics
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import ops
from allocator.io.files import write_whole
from engine.cli.comparison import interleaved
from engine.cli.models import light_model, seeded_subject
from engine.cli.oracle import largest_difference, onnxruntime_runner
from engine.cli.progress import add_quiet, progress_shown
from engine.executable import Executable, compile_graph
from engine.executor.static import StaticExecutor
from engine.graph import Graph
from engine.threads import limit_threads

CHAIN, ELEMENTS = 10_000, 16


def main(argv: Sequence[str] | None = None) -> int:
    """Prints both measurements; writes them as JSON where asked."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, help="ONNX file of fixed shapes (default: the onnx package's ResNet-50)")
    parser.add_argument("--runs", type=int, default=20, help="timed runs of each (default 20)")
    parser.add_argument("-o", "--output", type=Path, help="write JSON")
    add_quiet(parser)
    arguments = parser.parse_args(argv)
    with progress_shown(arguments.quiet), limit_threads(1):
        told = time_model(arguments.model or light_model("resnet50"), arguments.runs)
        told |= time_chain(CHAIN, arguments.runs)
    told["machine"] = f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}"
    print(_text(told))
    if arguments.output is not None:
        write_whole(arguments.output, (json.dumps(told, indent=1) + "\n").encode())
    return 0


def time_model(path: Path, runs: int) -> dict[str, Any]:
    """Seconds of a run (least and median) here and in onnxruntime, with seeded random weights."""
    subject = seeded_subject(path)
    ours = compile_graph(subject.graph)
    theirs = onnxruntime_runner(subject.model, subject.feeds, 1)
    difference = largest_difference(ours.run(subject.feeds), theirs())
    own, other = interleaved(runs, lambda: ours.run(subject.feeds, copy=False), theirs)
    return {
        "model": subject.graph.name,
        "runs": runs,
        "threads": 1,
        "arenaplan_seconds": _times(own),
        "onnxruntime_seconds": _times(other),
        "ratio_median": statistics.median(own) / statistics.median(other),
        "ratio_min": min(own) / min(other),
        "largest_difference": difference,
    }


def time_chain(length: int, runs: int) -> dict[str, Any]:
    """Microseconds an operator that a run costs beyond the numpy calls in it (medians of interleaved runs)."""
    executable = compile_graph(_chain(length))
    feeds = {"x": np.linspace(-1, 1, ELEMENTS, dtype=np.float32)}
    bare = _bare_loop(executable)
    bare()
    executable.run(feeds)
    whole, loop = interleaved(runs, lambda: executable.run(feeds, copy=False), bare)
    extra = (statistics.median(whole) - statistics.median(loop)) / length
    return {"chain": length, "chain_seconds": _times(whole), "bare_seconds": _times(loop), "overhead_us": extra * 1e6}


def _chain(length: int) -> Graph:
    """abs, neg, abs, neg ... on a few floats."""
    graph = Graph("chain")
    x = graph.input("x", (ELEMENTS,))
    for i in range(length):
        x = ops.neg(x) if i % 2 else ops.abs(x)
    graph.output(x, "y")
    return graph


def _bare_loop(executable: Executable) -> Callable[[], None]:
    """The chain's numpy functions on the very same arrays, with nothing around them."""
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


def _text(told: dict[str, Any]) -> str:
    lines = [
        f"{told['model']}, one thread, {told['runs']} runs of each in turn",
        f"{'':<12}  {'min':>10}  {'median':>10}",
    ]
    for name in ("arenaplan", "onnxruntime"):
        least, middle = (f"{told[f'{name}_seconds'][key] * 1e3:.2f} ms" for key in ("min", "median"))
        lines.append(f"{name:<12}  {least:>10}  {middle:>10}")
    lines.append(f"{'ratio':<12}  {told['ratio_min']:>10.2f}  {told['ratio_median']:>10.2f}")
    lines.append(f"outputs differ by {told['largest_difference']:.1e} of their largest value")
    lines.append(
        f"chain of {told['chain']} tiny operators: {told['overhead_us']:.3f} us an operator beyond numpy's calls"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
