"""`arenaplan run --stream`: images stripe after stripe, from .npy files to .npy files, never whole in memory."""

import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Mapping
from typing import Any

from allocator.problem import NO_CAPACITY
from engine.cli.options.common import plan_options, print_text
from engine.cli.options.embedded import REQUIRED
from engine.cli.options.files import check_stream_path, open_arrays
from engine.cli.options.models import load_graph
from engine.cli.options.values import positive, print_json
from engine.graph.opaque import check_runs
from engine.streams.compile import stream
from engine.streams.stream import Stream
from engine.system.arrays import read_array
from engine.system.threads import limit_threads
from engine.text.errors import OptionError

WHOLE = -1
"""The height of stripes where images are not cut."""
_AUTO, _WITHIN_BUDGET = "auto", 0


def add_stream(parser: ArgumentParser) -> None:
    """Adds the option that cuts images into stripes."""
    parser.add_argument(
        "--stream",
        metavar="ROWS",
        type=_height,
        default=WHOLE,
        help="compute images stripe after stripe of so many rows of the outputs, from .npy files to .npy files that "
        "may be larger than memory; auto: the highest stripes within --budget",
    )


def run_stream(arguments: Namespace) -> int:
    """Computes all stripes, writes the outputs, and prints what the stream is."""
    _check(arguments)
    graph = load_graph(arguments)
    check_runs(graph)
    check_stream_path(arguments.output, len(graph.outputs))
    feeds = {name: read_array(path, mapped=True) for name, path in arguments.input}
    budget = "" if arguments.budget == NO_CAPACITY else arguments.budget
    with limit_threads(arguments.threads):
        cut = stream(graph, rows=arguments.stream, budget=budget, threads=arguments.threads, **plan_options(arguments))
        specs = {name: var.spec for name, var in graph.outputs.items()}
        begin = time.perf_counter()
        with open_arrays(arguments.output, specs) as outs:
            cut.run(feeds, out=outs)
    if arguments.json:
        print_json(_data(cut, time.perf_counter() - begin))
    else:
        print_text(f"{cut.text}\n")
    return 0


def _height(text: str) -> int:
    try:
        return _WITHIN_BUDGET if text == _AUTO else positive(text)
    except ArgumentTypeError as error:
        raise ArgumentTypeError(f"{text!r} is neither a number of rows nor {_AUTO}") from error


def _check(arguments: Namespace) -> None:
    """Raises OptionError for what does not go with stripes."""
    if arguments.output is None:
        raise OptionError("--stream writes the outputs to files: give --output, a folder or a .npy file")
    if arguments.mode != "static" or arguments.evict or arguments.runs != 1:
        raise OptionError("--stream is one run in one arena; leave out --mode, --evict and --runs")
    if arguments.weights != "file" or arguments.plan_from_file == REQUIRED:
        raise OptionError("--stream makes its own plans, with the weights of the file; leave out --weights and a plan")
    if (arguments.stream == _WITHIN_BUDGET) == (arguments.budget == NO_CAPACITY):
        raise OptionError("--stream takes either the rows of a stripe, or auto with --budget, the bytes of the arena")


def _data(cut: Stream, seconds: float) -> Mapping[str, Any]:
    return {
        "model": cut.graph.name,
        "arena_bytes": cut.arena_bytes,
        "kept_bytes": cut.kept_bytes,
        "whole_bytes": cut.whole_bytes,
        "stripes": len(cut.stripes),
        "rows": cut.height,
        "plans": len(cut.plans),
        "share": cut.share,
        "rows_read": dict(cut.rows_read),
        "seconds": seconds,
        "outputs": [
            {"name": name, "shape": list(var.shape), "dtype": var.dtype.name} for name, var in cut.graph.outputs.items()
        ],
    }
