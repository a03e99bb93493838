"""How scripts begin and end: an error that was foreseen is one line, as that of the command is, and an exit code."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from engine.cli.main import guarded


def run_script(main: Callable[[], int | None]) -> NoReturn:
    """Ends the process with what the main function of a script returns, or with the exit code of its error."""
    sys.exit(guarded(lambda: main() or 0, Path(sys.argv[0]).stem))
