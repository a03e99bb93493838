"""`arenaplan view`: one HTML page that shows a plan, or two of them side by side."""

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from attrs import frozen

from allocator import solvers
from allocator.errors import ProblemError
from allocator.heaps import HEAPS
from allocator.io import formats
from allocator.io.files import is_special, open_whole
from allocator.io.instance import Instance, in_names
from allocator.problem import FREE, NO_CAPACITY, Plan
from engine.cli.options.model_flags import add_model, refuse_unused
from engine.cli.options.values import STRATEGY_CHOICES
from engine.cli.trace import add_making, traced
from engine.cli.validation import check_one_memory, validated
from engine.exporters.html import titled
from engine.lower.order import ORDERS
from engine.models.zoo import is_zoo
from engine.planning.options import about
from engine.readers import is_saved_trace
from engine.text.errors import OptionError
from engine.trace.rectangles import Rectangles, rectangles_of
from engine.viewer.buffers import buffer_rectangles
from engine.viewer.page import write_page
from engine.viewer.payload import pack

HELP = "make a page to look at a plan, or at two side by side: zoom, search, what is alive and why"

_BESIDE: Mapping[str, tuple[str, tuple[str, ...]]] = MappingProxyType(
    {
        "strategy": ("NAME", STRATEGY_CHOICES),
        "order": ("NAME", tuple(ORDERS)),
        "heap": ("NAME", tuple(HEAPS)),
        "optimise": ("LEVEL", about("optimise").choices),
        "parallel": ("POLICY", ()),
    }
)
"""The options in which the second plan may differ: the name of their value, and its choices (any value, if empty)."""
DYNAMIC = "dynamic"
_PAGES = (".html", ".htm")
"""The suffixes of pages."""


def add_arguments(parser: ArgumentParser) -> None:
    """Adds the options of this subcommand."""
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
    _check_output(arguments.output)
    shown = [viewed(asked) for asked in _asked(arguments)]
    title = f"{' beside '.join(view.title for view in shown)} · arenaplan"
    payloads = [view.payload for view in shown]
    if arguments.output is None:
        write_page(title, payloads, sys.stdout.buffer)
    else:
        with open_whole(arguments.output) as out:
            write_page(title, payloads, out)
    return 0


def _check_output(path: Path | None) -> None:
    """Raises OptionError for a name that is none of a page."""
    if path is not None and path.suffix.lower() not in _PAGES and not is_special(path):
        raise OptionError(f"{path}: a page is a file whose name ends in {' or '.join(_PAGES)}")


def _asked(arguments: Namespace) -> list[Namespace]:
    """Returns a command line for each plan."""
    if arguments.other is not None:
        return [arguments, Namespace(**vars(arguments) | {"file": arguments.other})]
    if arguments.beside is not None:
        return [arguments, Namespace(**vars(arguments) | arguments.beside)]
    return [arguments]


def change(text: str) -> dict[str, Any]:
    """Reads --beside: options that take the place of those of the first plan."""
    key, equals, value = text.partition("=")
    if text == DYNAMIC:
        return {"mode": DYNAMIC}
    if key not in _BESIDE or not equals:
        forms = ", ".join((DYNAMIC, *(f"{k}={v}" for k, (v, _) in _BESIDE.items())))
        raise ArgumentTypeError(f"{text[:40]!r} is none of {forms}")
    choices = _BESIDE[key][1]
    if choices and value not in choices:
        raise ArgumentTypeError(f"{key} {value[:40]!r} is unknown; one of: {', '.join(choices)}")
    if key == "heap":
        return {"mode": DYNAMIC, "heap": value}
    if key == "strategy":
        return {"strategy": value, "anew": True}
    if key == "parallel":
        return {"parallel": value}
    return {key: value, "told": f"{key} {value}"}


_BUFFERS = frozenset((".csv", ".txt", ".json", ".plc"))
"""The suffixes of files of buffers; models have others."""
_OF_BUFFERS = frozenset(("strategy", "timeout", "nodes", "seed"))
"""Options that hold for buffers too: the rest says how buffers are made of a model, and how that is run."""


@frozen(eq=False)
class View:
    """A plan on a page: a line about it, and its data."""

    title: str
    payload: bytes


def viewed(arguments: Namespace) -> View:
    """Returns the plan that a command line asks for. Raises the errors of readers and of the planner."""
    rectangles = _found(arguments)
    title = " · ".join(filter(None, (titled(rectangles.facts), arguments.told)))
    return View(title, pack(rectangles, title))


def _found(arguments: Namespace) -> Rectangles:
    file = arguments.file
    is_saved = is_saved_trace(file)
    if is_saved and arguments.beside is not None:
        raise OptionError(f"{file} is a saved trace, of one plan: name another file beside it, and leave out --beside")
    if not is_saved and not is_zoo(file) and file.suffix.lower() in _BUFFERS:
        return _buffers(arguments)
    return rectangles_of(traced(arguments))


def _buffers(arguments: Namespace) -> Rectangles:
    if arguments.mode != "static":
        raise OptionError(f"{arguments.file} holds buffers, of which there is no dynamic run to show")
    why = f"{arguments.file} holds buffers, which are only placed"
    refuse_unused(arguments, why, (add_making,), _OF_BUFFERS)
    instance = formats.read(arguments.file)
    is_kept = arguments.strategy == solvers.BEST and not arguments.anew and _is_placed(instance)
    if not is_kept:
        check_one_memory(instance, arguments.file, "leave out --strategy and --anew")
    plan = _as_placed(instance, arguments) if is_kept else _placed(instance, arguments)
    return buffer_rectangles(arguments.file.name, instance, plan)


def _is_placed(instance: Instance) -> bool:
    has_place = instance.offset != FREE
    return bool((has_place | (instance.problem.size == 0)).all() and has_place.any())


def _as_placed(instance: Instance, arguments: Namespace) -> Plan:
    """Returns the plan with the offsets of the file. Raises PlanError where two buffers share bytes there."""
    return validated(instance, instance.problem, instance.offset, arguments.file, NO_CAPACITY)


def _placed(instance: Instance, arguments: Namespace) -> Plan:
    limits = {"seconds": arguments.timeout, "nodes": arguments.nodes}
    try:
        return solvers.solve(instance.problem, arguments.strategy, arguments.seed, **limits)
    except ProblemError as error:
        raise type(error)(f"{arguments.file}: {in_names(str(error), instance.ids)}") from error
