"""The options that say who works: --on and --workers."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager

from allocator.solvers import BEST
from engine import searches
from engine.cli.options.values import positive
from engine.text.errors import OptionError
from engine.workers.names import AS_MANY_AS_PROCESSORS, HERE, ON, PROCESSES


def add_workers(parser: ArgumentParser, default: str = PROCESSES) -> None:
    """Adds the options that say where tasks run, and how many at once."""
    usual = default if default != HERE else f"{HERE}, and with --workers {PROCESSES}"
    parser.add_argument("--on", metavar="PLACE", default=default, help=f"where tasks run: {ON} (default {usual})")
    parser.add_argument(
        "--workers",
        metavar="N",
        type=positive,
        default=AS_MANY_AS_PROCESSORS,
        help="processes that work at once (default: as many as processors)",
    )


def is_shared(arguments: Namespace) -> bool:
    """Returns whether workers share a search that is `here` by default. Raises OptionError for a single strategy.

    Workers without a place are processes: `arguments.on` says so afterwards.
    """
    if not arguments.workers and arguments.on == HERE:
        return False
    if arguments.on == HERE:
        arguments.on = PROCESSES
    if arguments.strategy != BEST:
        raise OptionError("--workers and --on share a search by all strategies; leave out --strategy")
    return True


@contextmanager
def workers_share(arguments: Namespace) -> Iterator[None]:
    """Makes workers share the searches of the block, where the options ask for it. Raises OptionError, EngineError."""
    if not is_shared(arguments):
        yield
        return
    with searches.shared_search(arguments.on, arguments.workers):
        yield
