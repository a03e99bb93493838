"""The option --store: tensors kept in 16 bits."""

from argparse import ArgumentParser, Namespace

from engine.graph.graph import Graph
from engine.passes.automatic import optimised
from engine.passes.storage import NAMES, cast_storage
from engine.planning.options import Options
from engine.text.errors import OptionError


def add_store(parser: ArgumentParser) -> None:
    """Adds the option that says in which type tensors are kept."""
    parser.add_argument(
        "--store",
        metavar="TYPE",
        choices=NAMES,
        default="",
        help="keep float32 tensors in 16 bits: float16 or bfloat16",
    )


def stored(graph: Graph, arguments: Namespace) -> Graph:
    """Returns the graph with its tensors in the type of --store, where the command has that. Raises OptionError.

    Passes run first: they do not see through the casts around each operator.
    """
    store = vars(arguments).get("store") or ""
    if not store:
        return graph
    if graph.is_symbolic:
        raise OptionError(f"--store needs sizes that are known before a run; data decide some of {arguments.file}")
    return cast_storage(optimised(graph, Options(optimise=arguments.optimise)).graph, store)
