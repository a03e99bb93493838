"""The suffixes of files that plans are written to."""

import os
from pathlib import Path

from engine.text.errors import OptionError

ONNX, JSON, RECORD = ".onnx", ".json", ".megengine.json"
SUFFIXES = (".h", ".c", ".bin", ".csv", ".txt", ".plc", RECORD, JSON, ONNX)
"""The suffixes of files that plans are written to."""

ONE_ARENA = (".c", ".bin")
"""The suffixes of formats whose offsets are those in one memory, which a program takes as they are."""


def suffix_of(path: Path) -> str:
    """Returns the one of SUFFIXES that a file name ends with. Raises OptionError, which lists them all."""
    for suffix in SUFFIXES:
        if path.name.lower().endswith(suffix):
            return suffix
    raise OptionError(f"{os.fspath(path)}: the name of a plan's file ends in one of {', '.join(SUFFIXES)}")
