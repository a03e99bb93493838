"""Options that several subcommands have, and what they share: JSON output, lists in help texts, unused options."""

import os
import shutil
import sys
import textwrap
from argparse import ArgumentError, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from allocator.machine_code.instructions import NAMES
from allocator.problem import NO_CAPACITY
from engine.cli.options.values import add_limits, count, duration, named_path, positive, size
from engine.lower.target import Target
from engine.planning.options import AT_ONCE, CALLS, EVICTIONS, FIELDS, LIMITS, SEARCH, PlanOptions, about, flag
from engine.system.threads import AS_THEY_ARE
from engine.text.errors import OptionError
from engine.text.screen import screen_of
from engine.text.tables import fitted

AddOptions = Callable[[ArgumentParser], None]
_BUDGET = "budget"


def add_planning(parser: ArgumentParser) -> None:
    """Adds the options that say how to plan, but for --parallel."""
    _add_group(parser, CALLS)
    add_solving(parser)
    parser.add_argument(
        "--no-recompute", action="store_true", help="compute nothing twice, even where the budget is not met otherwise"
    )


def add_planning_without_budget(parser: ArgumentParser) -> None:
    """Adds the options that say how to plan, where sizes of another kind limit the plan; but for --parallel."""
    for group in (CALLS, SEARCH, LIMITS):
        _add_group(parser, group)


def add_parallel(parser: ArgumentParser) -> None:
    """Adds the option that says whether operators may run at once."""
    _add_group(parser, AT_ONCE)


def add_solving(parser: ArgumentParser) -> None:
    """Adds the options of the search for addresses, and the budget."""
    _add_group(parser, SEARCH)
    add_limits(parser)
    _add_budget(parser)


def _add_budget(parser: ArgumentParser) -> None:
    parser.add_argument(
        f"--{_BUDGET}", metavar="SIZE", type=size, default=NO_CAPACITY, help='most bytes of the arena, such as "8 MiB"'
    )


def _add_group(parser: ArgumentParser, group: str) -> None:
    """Adds the flags of a group of the planner's options, in the order of `Options`."""
    for name in _flagged():
        if about(name).group == group:
            _add_flag(parser, name)


def _add_flag(parser: ArgumentParser, name: str) -> None:
    """Adds the flag of one of the planner's options; the name in the namespace is `_dest(name)`."""
    option, text = FIELDS[name], about(name)
    if option.type is bool:
        parser.add_argument(flag(name), action="store_true", help=text.help)
        return
    if isinstance(option.default, tuple):
        parser.add_argument(flag(name), action="append", default=[], metavar=text.metavar, help=text.help)
        return
    read: Callable[[str], Any] = str
    if option.type is int:
        read = positive if text.least else count
    elif option.type is float:
        read = duration
    metavar, choices = text.metavar or None, text.choices or None
    usual = option.default.text if isinstance(option.default, Target) else option.default
    parser.add_argument(flag(name), type=read, default=usual, metavar=metavar, choices=choices, help=text.help)


def _flagged() -> Iterator[str]:
    """Yields the planner's options that have flags."""
    return (name for name in FIELDS if about(name).help)


def _dest(name: str) -> str:
    return flag(name).removeprefix("--").replace("-", "_")


def add_running(parser: ArgumentParser) -> None:
    """Adds the options of a run: weights, inputs, threads, instructions."""
    parser.add_argument(
        "--weights",
        choices=("file", "random"),
        default="file",
        help="the file's own, or seeded random ones for models that ship without (default file)",
    )
    parser.add_argument(
        "--input",
        metavar="NAME=FILE.npy",
        type=named_path,
        action="append",
        default=[],
        help="an array for an input; inputs without one are drawn at random; `run` takes a pattern, 'x=data/*.npy', "
        "a run for each file; repeatable",
    )
    parser.add_argument(
        "--threads",
        metavar="N",
        type=positive,
        default=AS_THEY_ARE,
        help="threads that compute, BLAS through threadpoolctl; with --parallel, operators at once (default: all)",
    )
    add_instructions(parser)


def add_instructions(parser: ArgumentParser) -> None:
    """Adds the option for the instructions that compiled code may use, which `limit_instructions` takes."""
    parser.add_argument(
        "--instructions",
        choices=NAMES,
        default="",
        metavar="SET",
        help=f"instructions that compiled code may use: {', '.join(NAMES)} (default: all that the processor has)",
    )


def add_evict(parser: ArgumentParser) -> None:
    """Adds the option for reference counting within the budget."""
    parser.add_argument(
        "--evict",
        choices=EVICTIONS,
        default="",
        help="reference counting keeps within --budget: a heap without room drops what this heuristic chooses, to be "
        "computed again",
    )


def plan_options(arguments: Namespace) -> PlanOptions:
    """Returns the planner's options that the command line gives."""
    values = {name: getattr(arguments, _dest(name)) for name in _flagged()}
    return cast(PlanOptions, {name: not v if FIELDS[name].default is True else v for name, v in values.items()})


def is_planning_option(name: str) -> bool:
    """Returns whether a name is that of an option of planning that has a flag, or the budget."""
    return name == _BUDGET or (name in FIELDS and bool(about(name).help))


def planning_option(name: str, text: str) -> tuple[str, Any]:
    """Returns the name of a planning option in the namespace, and its value there, from a text as its flag takes it.

    A flag without a value takes "true" and "false"; an option that may be left out, "none". Raises OptionError.
    """
    parser = ArgumentParser(exit_on_error=False)
    if name == _BUDGET:
        _add_budget(parser)
    elif FIELDS[name].type is bool:
        return _dest(name), _truth(name, text) != FIELDS[name].default
    elif text == "none" and FIELDS[name].default == "":
        return _dest(name), ""
    else:
        _add_flag(parser, name)
    try:
        (pair,) = vars(parser.parse_args([f"{flag(name) if name in FIELDS else f'--{name}'}={text}"])).items()
    except ArgumentError as error:
        raise OptionError(f"{name}: {error.message}") from error
    return pair


def planning_keyword(name: str, text: str) -> Any:
    """Returns the value of a planning option as the planner takes it, from a text as its flag takes it."""
    _, value = planning_option(name, text)
    return not value if FIELDS[name].default is True else value


def _truth(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise OptionError(f"{name} is true or false, not {text[:40]!r}")
    return text.lower() == "true"


def defaults(adders: Collection[AddOptions], file: Path) -> dict[str, Any]:
    """Returns the options that some functions add, with their defaults, by name in the namespace; `file` is MODEL."""
    parser = ArgumentParser()
    for add in adders:
        add(parser)
    return vars(parser.parse_args(["--", str(file)]))


def stdout_width() -> int:
    """Returns the columns of the terminal that stdout is; UNBOUNDED for a file or a pipe."""
    return screen_of(sys.stdout, os.environ).width


def print_text(text: str) -> None:
    """Prints a text on stdout; on a terminal, lines that are too long go on below their last column."""
    print(fitted(text, stdout_width()), end="")


_MARGIN = 2
"""Columns that argparse leaves free at the right."""


def add_list(parser: ArgumentParser, title: str, entries: Mapping[str, str]) -> None:
    """Adds a list of choices to the help text; the rest of the text is laid out as before."""
    width = shutil.get_terminal_size().columns - _MARGIN
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.description = textwrap.fill(parser.description or "", width)
    rest = textwrap.fill(parser.epilog or "", width)
    column = max(map(len, entries), default=0) + 4
    lines = [_entry(name, text, column, width) for name, text in entries.items()]
    parser.epilog = "\n".join([f"{title}:", *lines, "", rest])


def _entry(name: str, text: str, column: int, width: int) -> str:
    """Returns the lines of a choice; argparse takes %(prog)s of an epilog for a name, so each % is doubled."""
    first = f"  {name}".ljust(column)
    return textwrap.fill(
        text.replace("%", "%%"), max(width, column + 20), initial_indent=first, subsequent_indent=" " * column
    )
