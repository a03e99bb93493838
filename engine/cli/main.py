"""The command `arenaplan`: data on stdout, one line on stderr for what went wrong, and an exit code that says what."""

import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from importlib.metadata import version
from typing import NoReturn

from allocator.errors import AllocatorError, PlanError
from engine.cli import compare, plan, run, solve, trace
from engine.errors import BudgetError, EngineError, JudgeError, OptionError
from ops.errors import OpError

OK, ERROR, USAGE, NO_FIT, REFUSED, INTERRUPTED = 0, 1, 2, 3, 5, 130
"""Done; failed; asked wrongly; larger than the budget; a judge refused or outputs differ; stopped by the user."""

_EPILOG = "exit codes: 0 done, 1 failed, 2 asked wrongly, 3 larger than the budget, 5 a judge refused or outputs differ"
_CODES: tuple[tuple[tuple[type[BaseException], ...], int], ...] = (
    ((OptionError,), USAGE),
    ((BudgetError,), NO_FIT),
    ((JudgeError, PlanError), REFUSED),
)


class UsageError(Exception):
    """A command line that cannot be understood."""


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


def build_parser() -> ArgumentParser:
    """The parser of the whole command line; the chosen subcommand's function is in `run`."""
    parser = _Parser(prog="arenaplan", description="Plans every byte of a neural network.", epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=f"arenaplan {version('arenaplan')}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for module in (plan, run, compare, trace, solve):
        command = commands.add_parser(module.NAME, help=module.HELP, description=module.HELP, epilog=_EPILOG)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns its exit code. Arguments are the process's own where none are given."""
    try:
        arguments = build_parser().parse_args(argv)
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except UsageError as error:
        return _fail(str(error), USAGE)
    except BrokenPipeError:
        return _close_stdout()
    except (EngineError, OpError, AllocatorError) as error:
        return _fail(_one_line(error), next((code for kinds, code in _CODES if isinstance(error, kinds)), ERROR))
    except OSError as error:
        return _fail(_os_text(error), ERROR)
    except MemoryError as error:
        return _fail(f"not enough memory: {error}" if str(error) else "not enough memory", ERROR)
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    return code


def _fail(message: str, code: int) -> int:
    print(f"arenaplan: error: {message}", file=sys.stderr)
    return code


def _one_line(error: Exception) -> str:
    """A BudgetError keeps its table of tensors below its first line; all others are one line."""
    text = str(error).strip() or type(error).__name__
    return text if isinstance(error, BudgetError) else " ".join(text.split())


def _os_text(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    return f"{error.filename}: {reason}" if error.filename is not None else reason


def _close_stdout() -> int:
    """Nobody reads any more: what is still buffered goes nowhere, so that the interpreter's last flush is quiet."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ERROR
