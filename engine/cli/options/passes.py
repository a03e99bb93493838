"""The option --optimise: passes over the graph before it is planned."""

from argparse import ArgumentParser, Namespace

from allocator.progress import Activity
from engine.graph.graph import Graph
from engine.passes.pipeline import LEVELS, optimise
from engine.passes.storage import NAMES, cast_storage
from engine.text.errors import OptionError


def add_optimise(parser: ArgumentParser) -> None:
    """Adds the options of the passes over the graph before it is planned."""
    parser.add_argument(
        "--optimise",
        metavar="LEVEL",
        type=int,
        choices=LEVELS,
        default=None,
        help="passes over the graph before it is planned: 0 none (default), 1 those that leave every formula as it is, "
        "2 also those that fuse and may change last bits, 3 also channels last around convolutions",
    )
    parser.add_argument(
        "--store",
        metavar="TYPE",
        choices=NAMES,
        default="",
        help="keep float32 tensors in 16 bits: float16 or bfloat16",
    )


def optimised(graph: Graph, arguments: Namespace) -> Graph:
    """Returns the graph after the passes of --optimise, where the command has that. Raises OptionError."""
    level = vars(arguments).get("optimise") or 0
    if level and graph.is_symbolic:
        raise OptionError(f"--optimise needs sizes that are known before a run; data decide some of {arguments.file}")
    store = vars(arguments).get("store") or ""
    if store and graph.is_symbolic:
        raise OptionError(f"--store needs sizes that are known before a run; data decide some of {arguments.file}")
    with Activity("optimising", graph.name):
        rewritten = optimise(graph, level)
    return cast_storage(rewritten, store) if store else rewritten
