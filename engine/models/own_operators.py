"""Files of operators of the user's own: Python that registers them before a model is read."""

from collections.abc import Sequence
from pathlib import Path
from runpy import run_path
from traceback import walk_tb

from engine.onnx.registered import registrations
from engine.text.errors import EngineError


class OperatorFileError(EngineError):
    """A file of operators that fails when it is run, or registers none; the message has the file and the line."""


def run_operator_files(paths: Sequence[Path]) -> None:
    """Runs files that register operators. Raises OperatorFileError, and OSError for a file that cannot be read."""
    for path in paths:
        path.open("rb").close()
        before = registrations()
        _run(path)
        if registrations() == before:
            wanted = "arenaplan.register_operator(domain, name, schema)"
            raise OperatorFileError(f"--ops {path} registers no operator; {wanted} in it does")


def _run(path: Path) -> None:
    try:
        run_path(str(path), run_name=f"operators_in_{path.stem}")
    except (Exception, SystemExit) as error:
        raise OperatorFileError(f"--ops {path}{_line(error, path)}: {type(error).__name__}: {error}") from error


def _line(error: BaseException, path: Path) -> str:
    """Returns at which line of the file an exception happened, as far as it tells."""
    lines = [line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == str(path)]
    number = error.lineno if isinstance(error, SyntaxError) else next(reversed(lines), None)
    return f", line {number}" if number else ""
