"""`arenaplan view`: one HTML page that shows a plan, or two of them side by side."""

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from allocator.heaps import HEAPS
from allocator.io.files import open_whole
from engine.cli.options.common import STRATEGY_CHOICES, add_model
from engine.cli.trace import add_making
from engine.cli.viewed import viewed
from engine.lower.order import ORDERS
from engine.passes.pipeline import LEVELS
from engine.text.errors import OptionError
from engine.viewer.page import write_page

NAME, HELP = "view", "make a page to look at a plan, or at two side by side: zoom, search, who is alive and why"

_BESIDE: Mapping[str, tuple[str, tuple[str, ...]]] = MappingProxyType(
    {
        "strategy": ("NAME", STRATEGY_CHOICES),
        "order": ("NAME", tuple(ORDERS)),
        "heap": ("NAME", tuple(HEAPS)),
        "optimise": ("LEVEL", tuple(map(str, LEVELS))),
        "parallel": ("POLICY", ()),
    }
)
"""What the second plan may have differently: what its value is called, and which there are (any, if none stand)."""
DYNAMIC = "dynamic"


def add_arguments(parser: ArgumentParser) -> None:
    """Options of this subcommand."""
    add_model(parser)
    parser.add_argument(
        "other",
        metavar="OTHER",
        type=Path,
        nargs="?",
        help="a second plan, beside the first; both may be models, buffers in a file as `arenaplan solve` reads them, "
        "or traces saved as JSON or CSV",
    )
    wanted = ", ".join(f"{key}={value}" for key, (value, _) in _BESIDE.items())
    parser.add_argument(
        "--beside",
        metavar="CHANGE",
        type=change,
        help=f"show the same model beside itself, with one thing changed: {DYNAMIC} (reference counting), {wanted}",
    )
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="the page (default: stdout, if no terminal)")
    parser.set_defaults(anew=False, told="")
    add_making(parser)


def run(arguments: Namespace) -> int:
    """Writes the page."""
    if arguments.other is not None and arguments.beside is not None:
        raise OptionError("OTHER and --beside are both the second plan; leave out one of them")
    if arguments.output is None and sys.stdout.isatty():
        raise OptionError("a page is not for terminals: write it to a file, with -o FILE")
    shown = [viewed(asked) for asked in _asked(arguments)]
    title = f"{' beside '.join(view.title for view in shown)} · arenaplan"
    payloads = [view.payload for view in shown]
    if arguments.output is None:
        write_page(title, payloads, sys.stdout.buffer)
    else:
        with open_whole(arguments.output) as out:
            write_page(title, payloads, out)
    return 0


def _asked(arguments: Namespace) -> list[Namespace]:
    """A command line for each plan."""
    if arguments.other is not None:
        return [arguments, Namespace(**vars(arguments) | {"file": arguments.other})]
    if arguments.beside is not None:
        return [arguments, Namespace(**vars(arguments) | arguments.beside)]
    return [arguments]


def change(text: str) -> dict[str, Any]:
    """What --beside says, as options that take the place of those of the first plan."""
    key, equals, value = text.partition("=")
    if text == DYNAMIC:
        return {"mode": DYNAMIC}
    if key not in _BESIDE or not equals:
        forms = ", ".join((DYNAMIC, *(f"{k}={v}" for k, (v, _) in _BESIDE.items())))
        raise ArgumentTypeError(f"{text[:40]!r} is none of {forms}")
    known = _BESIDE[key][1]
    if known and value not in known:
        raise ArgumentTypeError(f"{key} {value[:40]!r} is unknown; one of: {', '.join(known)}")
    if key == "heap":
        return {"mode": DYNAMIC, "heap": value}
    if key == "strategy":
        return {"strategy": value, "anew": True}
    if key == "parallel":
        return {"parallel": value}
    return {key: int(value) if key == "optimise" else value, "told": f"{key} {value}"}
