"""What tools that plan many networks have in common: where their rows go."""

import json
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from allocator.io.files import write_whole
from engine.cli.options.common import count, named_shape
from engine.pictures.matplotlib import to_png


class Row(Protocol):
    """A line of a table."""

    def to_json(self) -> dict[str, Any]:
        """Returns plain data with stable keys."""


R = TypeVar("R", bound=Row)


def add_experiment(parser: ArgumentParser) -> None:
    """Adds the options of the models, and of the files that the rows are written to."""
    parser.add_argument(
        "--shape",
        metavar="NAME=D,D,...",
        type=named_shape,
        action="append",
        default=[],
        help="shape of an input, such as x=1,3,64,64; each batch takes the place of its first dimension; repeatable",
    )
    parser.add_argument("--seed", metavar="N", type=count, default=0, help="of the weights of the zoo (default 0)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all numbers; sizes in bytes, times in seconds")
    parser.add_argument("--chart", metavar="FILE.png", type=_png, help="draw bars; needs matplotlib (extra `charts`)")


def _png(text: str) -> Path:
    """Returns the path of a picture; another name is refused before anything is planned, which can take a while."""
    if Path(text).suffix.lower() != ".png":
        raise ArgumentTypeError(f"{text!r} is no name of a chart, which is a PNG file; write for example chart.png")
    return Path(text)


def write_rows(arguments: Namespace, rows: Sequence[R], draw: Callable[[Sequence[R]], Any]) -> None:
    """Writes the files that were asked for."""
    if arguments.json is not None:
        data = {"rows": [row.to_json() for row in rows]}
        write_whole(arguments.json, (json.dumps(data, indent=1) + "\n").encode())
    if arguments.chart is not None:
        write_whole(arguments.chart, to_png(draw(rows)))
