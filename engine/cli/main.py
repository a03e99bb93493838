"""The command `arenaplan`: data on stdout, one line on stderr for what went wrong, and an exit code that says what."""

import io
import os
import re
import sys
from argparse import Action, ArgumentParser
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from difflib import get_close_matches
from importlib import import_module
from traceback import print_exception
from typing import Any, NoReturn

from allocator.errors import AllocatorError, PlanError
from engine.cli.entry import INTERRUPTED, modules_loaded
from engine.cli.progress import add_quiet, progress_shown, warn
from engine.system.instructions import limit_instructions
from engine.text.deprecated import with_new_flags
from engine.text.errors import (
    BudgetError,
    EngineError,
    InternalError,
    JudgeError,
    OptionError,
    PlanRefusedError,
    UndecidedError,
)
from engine.text.faults import Door
from ops.tensor.errors import OpError

OK, ERROR, USAGE, NO_FIT, UNDECIDED, REFUSED, OWN_FAULT = 0, 1, 2, 3, 4, 5, 6
"""Done; failed; asked wrongly; larger than the budget; no plan within the capacity, and no proof that there is none; a
checker refused or outputs differ; a fault of this program. INTERRUPTED comes beside them."""


class UsageError(EngineError):
    """A command line that cannot be understood."""


_EPILOG = (
    "exit codes: 0 done, 1 failed, 2 asked wrongly, 3 larger than the budget or the capacity, 4 no plan within the "
    "capacity found and no proof that there is none, 5 a checker refused a plan or outputs differ, 6 a fault of this "
    "program"
)
COMMANDS = ("plan", "explain", "fit", "run", "compare", "heaps", "trace", "view", "solve", "sweep", "partition")
"""The subcommands in the order in which they are shown; each is a module of this package."""
_FORESEEN = (EngineError, OpError, AllocatorError, OSError, MemoryError, KeyboardInterrupt)
_CODES: tuple[tuple[tuple[type[BaseException], ...], int], ...] = (
    ((UsageError, OptionError), USAGE),
    ((BudgetError,), NO_FIT),
    ((UndecidedError,), UNDECIDED),
    ((JudgeError, PlanError, PlanRefusedError), REFUSED),
    ((InternalError,), OWN_FAULT),
    ((KeyboardInterrupt,), INTERRUPTED),
)


_WRONG_CHOICE = re.compile(r"invalid choice: '(.*)' \(choose from (.*)\)", re.S)
_FLAG = re.compile(r"--[a-z][a-z-]*")
_ALIKE = 0.65
"""How alike two words are at least of which one is taken for the other, from 0 to 1."""
_LONG = 100
"""Characters of a word beyond which nothing is like it."""


def _meant(word: str, names: Sequence[str]) -> str:
    """Returns the end of a message, with the name that was probably meant by a word; "" where there is none."""
    plain = {name.removeprefix("--"): name for name in names}
    typed = word.removeprefix("--")
    close = [name for name in plain if typed and name.startswith(typed)][:1]
    if not close and len(typed) <= _LONG:
        close = get_close_matches(typed, plain, 1, _ALIKE)
    return "".join(f"; did you mean {plain[name]}?" for name in close)


class Parser(ArgumentParser):
    """Raises UsageError where argparse would end the process."""

    def error(self, message: str) -> NoReturn:
        """Raises UsageError with one line that names the help option, and the choice that was probably meant."""
        wrong = _WRONG_CHOICE.search(message)
        if wrong:
            choices = [choice.strip(" '") for choice in wrong[2].split(",")]
            message += _meant(wrong[1], choices)
        raise UsageError(f"{message} (see {self.prog} --help)")

    def refuse(self, words: Sequence[str]) -> NoReturn:
        """Raises UsageError for words that are no arguments, with the flag that was probably meant by the first."""
        flag = words[0].partition("=")[0]
        close = _meant(flag, _FLAG.findall(self.format_help())) if flag.startswith("--") else ""
        self.error(f"unrecognized arguments: {' '.join(words)}{close}")


class _Version(Action):
    """Prints the version; the package that tells it takes as long to load as a command."""

    def __call__(self, parser: ArgumentParser, *_: Any) -> NoReturn:
        print(f"arenaplan {import_module('importlib.metadata').version('arenaplan')}")
        parser.exit()


def build_parser(names: Sequence[str] = COMMANDS) -> ArgumentParser:
    """Returns the parser of these subcommands, whose modules it imports; the chosen one's function is in `run`."""
    parser = Parser(prog="arenaplan", description="Plans every byte of a neural network.", epilog=_EPILOG)
    parser.add_argument("--version", action=_Version, nargs=0, help="show program's version number and exit")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name in names:
        module = import_module(f"engine.cli.{name}")
        command = commands.add_parser(name, help=module.HELP, description=module.HELP, epilog=_EPILOG)
        module.add_arguments(command)
        add_quiet(command)
        command.set_defaults(run=module.run, parser=command)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns its exit code. Arguments are the process's own where none are given."""

    def work() -> int:
        words = with_new_flags(sys.argv[1:] if argv is None else argv, warn)
        asked = [name for name in words[:1] if name in COMMANDS]
        with modules_loaded() if argv is None else nullcontext():
            parser = build_parser(asked or COMMANDS)
        arguments, unread = parser.parse_known_args(words)
        if unread:
            arguments.parser.refuse(unread)
        arguments.words = tuple(words)
        del arguments.parser  # what is left can be copied and written down
        if getattr(arguments, "instructions", ""):
            limit_instructions(arguments.instructions)
        if files := getattr(arguments, "ops", ()):
            import_module("engine.models.own_operators").run_operator_files(files)
        with progress_shown(arguments.quiet):
            code: int = arguments.run(arguments)
        return code

    return guarded(work)


def guarded(work: Callable[[], int], program: str = "arenaplan") -> int:
    """Returns the exit code of `work`, or that of an error, which is written in a line on stderr."""
    try:
        _open_stdout()
        with Door("running the command"):
            code = work()
        sys.stdout.flush()
    except BrokenPipeError:
        return _close_stdout()
    except _FORESEEN as error:
        if sys.stderr is not None:
            if isinstance(error, InternalError):
                print_exception(error)
            print(f"{program}: error: {_text(error)}", file=sys.stderr)
        _drop_unwritten()
        return next((code for kinds, code in _CODES if isinstance(error, kinds)), ERROR)
    return code


def _open_stdout() -> None:
    """Makes stdout escape names that a terminal cannot show. Raises UsageError where stdout is closed."""
    if sys.stdout is None:
        raise UsageError("stdout is closed: there is nowhere to print")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _text(error: BaseException) -> str:
    """Returns an error as one line; only a BudgetError keeps its table of tensors below its first line."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    text = str(error).strip()
    if isinstance(error, BudgetError):
        return text
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    return " ".join(text.split()) or type(error).__name__


def _drop_unwritten() -> None:
    """Flushes stdout; drops what it cannot take (a full disk), so that the interpreter's last flush is quiet."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError:
        _close_stdout()


def _close_stdout() -> int:
    """Drops what is still buffered where nobody reads any more, so that the interpreter's last flush is quiet."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ERROR
