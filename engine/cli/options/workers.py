"""The options that say who works: --on and --workers."""

from argparse import ArgumentParser

from engine.cli.options.common import positive
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
