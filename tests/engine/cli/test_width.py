"""Tables on a terminal keep within its width; in a pipe every line is whole."""

import errno
import os
import pty
import subprocess
import sys

import pytest

from engine.cli.main import main
from tests.helpers.cli.cli_checks import Capture
from tests.helpers.paths import ROOT

COMMAND = [sys.executable, "-c", "import sys; from engine.cli.main import main; sys.exit(main())"]
MODEL = "zoo:squeezenet?image=32"


def _on_terminal(words: list[str], width: int) -> list[str]:
    """Returns the lines that a command prints on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"COLUMNS": str(width), "TERM": "dumb"}
    with subprocess.Popen([*COMMAND, *words, "-q"], stdout=theirs, stderr=theirs, env=environment, cwd=ROOT) as process:
        os.close(theirs)
        printed = bytearray()
        try:
            while read := os.read(ours, 65536):
                printed += read
        except OSError as error:  # how Linux tells that nobody writes to it any more
            assert error.errno == errno.EIO
        os.close(ours)
    assert process.returncode == 0, printed.decode()
    return printed.decode().splitlines()


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [["plan", MODEL, "--kernels"], ["heaps", MODEL, "--capacity", "100KiB"]], ids=" ".join
)
def test_tables_fit_the_terminal(words: list[str], capsys: Capture) -> None:
    lines = _on_terminal([*words, "--backend", "numpy"], 72)
    assert max(map(len, lines)) <= 72
    assert main([*words, "--backend", "numpy"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) > 72


@pytest.mark.slow
def test_tables_of_compare_fit_the_terminal() -> None:
    lines = _on_terminal(["compare", MODEL, "--runs", "1", "--backend", "numpy"], 64)
    assert max(map(len, lines)) <= 64
