"""`arenaplan partition`: a model in parts for several machines."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path

from allocator.cuts.problem import OBJECTIVES, TRAFFIC
from allocator.io.files import is_special, write_whole
from engine.cli.options.common import add_planning_without_budget, plan_options
from engine.cli.options.model_flags import add_model
from engine.cli.options.models import load_graph
from engine.cli.options.values import add_json, print_json, size
from engine.exporters.svg import to_svg
from engine.partitions.drawing import draw
from engine.partitions.partition import BANDWIDTH, partition
from engine.text.errors import OptionError

HELP = "cut a model into parts for several machines, each with its weights and its arena"
_SVG = ".svg"


def add_arguments(parser: ArgumentParser) -> None:
    """Adds the options of this subcommand."""
    add_model(parser)
    parser.add_argument(
        "--capacity",
        metavar="SIZE,...",
        type=_sizes,
        default=(),
        help="most bytes of weights and arena of each part, such as 24GiB,24GiB; 8x24GiB is eight parts",
    )
    parser.add_argument(
        "--objective",
        choices=OBJECTIVES,
        default=TRAFFIC,
        help=f"fewest bytes sent between parts, or the shortest time of the slowest part (default {TRAFFIC})",
    )
    parser.add_argument(
        "--bandwidth",
        metavar="SIZE",
        type=size,
        default=BANDWIDTH,
        help=f'bytes that are sent in a second, for the times of parts (default "{BANDWIDTH}")',
    )
    add_planning_without_budget(parser)
    parser.set_defaults(parallel="")
    parser.add_argument("-o", "--output", metavar=f"FILE{_SVG}", type=Path, help="write a picture of the parts")
    add_json(parser)


def run(arguments: Namespace) -> int:
    """Prints the parts, and draws them where a file is asked for."""
    if not arguments.capacity:
        raise OptionError("--capacity has to say how many bytes each part may have, such as --capacity 24GiB,24GiB")
    path: Path | None = arguments.output
    if path is not None and path.suffix.lower() != _SVG and not is_special(path):
        raise OptionError(f"{path}: the name of a picture's file ends in {_SVG}")
    parts = partition(
        load_graph(arguments),
        arguments.capacity,
        arguments.objective,
        bandwidth=arguments.bandwidth,
        **plan_options(arguments),
    )
    if path is not None:
        write_whole(path, to_svg(draw(parts)).encode())
    if arguments.json:
        print_json(parts.to_json())
    else:
        print(parts.text(), end="")
    return 0


_MOST = 1024
"""Parts that a model may have."""


def _sizes(text: str) -> tuple[int, ...]:
    """Reads sizes with commas between them; 8x24GiB is eight of them."""
    sizes = list[int]()
    for word in text.split(","):
        number, times, each = word.partition("x")
        if times and not (number.strip().isdecimal() and len(number) < 5):
            raise ArgumentTypeError(f"{word!r} is no number of parts of one size; write for example 8x24GiB")
        sizes += [size(each if times else word)] * (int(number) if times else 1)
    if not 1 <= len(sizes) <= _MOST:
        raise ArgumentTypeError(f"{text[:40]!r} is {len(sizes)} parts; there may be 1 to {_MOST}")
    return tuple(sizes)
