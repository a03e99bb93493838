"""Runs the command `arenaplan` in this process, and reads its exit code."""

import contextlib
import io
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path

from engine.cli.main import OK, OWN_FAULT, build_parser, guarded
from engine.text.errors import InternalError
from tests.fuzz.base import Tried, WrongError

_MOST_TEXT = 5000
"""Characters on stderr, most of all a line; messages quote what they are about, but not all of it."""


def run_command(*arguments: str, folder: Path) -> Tried:
    """Returns what the exit code says. Raises InternalError for the code of a fault, WrongError for a long message."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.chdir(folder):
        code = guarded(partial(_work, arguments))
    said = err.getvalue().strip()
    if code == OWN_FAULT:
        frames = [line.strip() for line in said.splitlines() if line.strip().startswith("File ")]
        raise InternalError(f"exit code {code}: {said[-300:]} at {frames[-1:]}")
    if len(said) > _MOST_TEXT:
        raise WrongError(f"{len(said)} characters on stderr: {said[:200]!r}")
    if code == OK:
        return Tried()
    return Tried(f"exit code {code}")


def _work(arguments: Sequence[str]) -> int:
    parsed = _parser().parse_args(arguments)
    code: int = parsed.run(parsed)
    return code


_parser = cache(build_parser)
"""It takes longer to make than most inputs take."""
