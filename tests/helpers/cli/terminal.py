"""A terminal for a process to write to, and what a person would see on it."""

import importlib.util
import os
import re
import subprocess
import sys

import pytest
from attrs import frozen

from tests.helpers.paths import ROOT

needs_terminal = pytest.mark.skipif(importlib.util.find_spec("pty") is None, reason="this system has no pty module")
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


@frozen
class Screen:
    """The lines on an endless screen, without spaces at their ends."""

    text: str

    @classmethod
    def of(cls, written: str) -> "Screen":
        """Returns the screen after carriage returns; styles are not seen."""
        lines = [_overwritten(line) for line in _STYLE.sub("", written).split("\n")]
        return cls("\n".join(lines))


def _overwritten(line: str) -> str:
    shown = ""
    for part in line.split("\r"):
        shown = part + shown[len(part) :]
    return shown.rstrip()


@frozen
class Done:
    """The output of a process on the terminal, stdout and stderr together, and its exit code."""

    written: str
    code: int


def in_terminal(*arguments: str, **environment: str) -> Done:
    """Runs Python with these arguments, in a terminal of 80 columns."""
    pty = importlib.import_module("pty")
    ours, theirs = pty.openpty()
    env = os.environ | {"TERM": "xterm", "NO_COLOR": "1"} | environment
    command = [sys.executable, *arguments]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=env, cwd=ROOT) as process:
        os.close(theirs)
        written = b"".join(iter(lambda: _read(ours), b""))
    os.close(ours)
    return Done(written.decode(), process.returncode)


def _read(descriptor: int) -> bytes:
    """Returns what has come; nothing where the other end is closed, which Linux tells by an error."""
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:
        return b""
