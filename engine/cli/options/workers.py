"""The options that say who works: --on and --workers."""

from argparse import ArgumentParser

from engine.cli.options.common import positive
from engine.workers.places import AS_MANY_AS_PROCESSORS, ON, PROCESSES


def add_workers(parser: ArgumentParser) -> None:
    """Adds the options that say where tasks run, and how many at once."""
    parser.add_argument("--on", metavar="PLACE", default=PROCESSES, help=f"where tasks run: {ON} (default {PROCESSES})")
    parser.add_argument(
        "--workers",
        metavar="N",
        type=positive,
        default=AS_MANY_AS_PROCESSORS,
        help="processes that work at once (default: as many as processors)",
    )
