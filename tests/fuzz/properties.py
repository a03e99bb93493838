"""Runs the property tests with seeds that no run had before, one file after the other until the time is over."""

import random
import re
import subprocess
import sys
import time
from pathlib import Path

from attrs import frozen

from tests.helpers.paths import ROOT, TESTS

_PROPERTY = re.compile(r"^@given\(", re.MULTILINE)
_NO_TESTS = 5
"""pytest's exit code where all tests of a file are slow ones."""


@frozen
class FileRun:
    """One run of the properties in a file."""

    command: str
    has_passed: bool
    printed: str


def run_properties(seed: int, seconds: float) -> list[FileRun]:
    """Runs files in the order of the seed; the last one may end late, as long as it likes to."""
    end, runs, files = time.monotonic() + seconds, [], property_files()
    random.Random(seed).shuffle(files)
    for number, path in enumerate(files):
        if time.monotonic() > end:
            break
        runs.append(run_file(path, seed + number))
    return runs


def property_files() -> list[Path]:
    """Returns all files with property tests."""
    return sorted(path for path in TESTS.rglob("test_*.py") if _PROPERTY.search(path.read_text()))


def run_file(path: Path, seed: int) -> FileRun:
    """Runs the property tests of a file with examples of that seed."""
    name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
    options = ["-m", "hypothesis and not slow", "--hypothesis-profile", "fresh", "--hypothesis-seed", str(seed)]
    command = ["-m", "pytest", name, *options]
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    shown = " ".join(f"'{word}'" if " " in word else word for word in command)
    return FileRun(f"python {shown}", done.returncode in (0, _NO_TESTS), (done.stdout + done.stderr)[-3000:])
