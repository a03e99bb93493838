"""Processes that are killed while they write: what has a name is whole, and the next one goes on."""

import os
import subprocess
import sys

import pytest

from tests.helpers.killed_writers import WRITERS

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")


def _kill(kind: str, times: int) -> None:
    command = [sys.executable, "-W", "ignore", "-m", "tests.helpers.killed_writers", kind, str(times), "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", WRITERS)
def test_a_killed_writer_leaves_nothing_half_written(kind: str) -> None:
    _kill(kind, 12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", WRITERS)
def test_a_thousand_killed_writers_leave_nothing_half_written(kind: str) -> None:
    _kill(kind, 1 + 1000 // len(WRITERS))
