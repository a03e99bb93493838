"""Reads saved traces, JSON and CSV of `engine.exporters`, event by event."""

import re
from pathlib import Path

from engine.readers import csv, json
from engine.text.errors import TraceFormatError
from engine.trace.trace import Trace

_BEGINNING = 1024
"""Bytes at the begin of a file that decide its format."""
_JSON = re.compile(rb'\s*\{\s*"version"\s*:')
_COLUMNS = {"tick", "kind", "live_bytes"}


def read_trace(path: str | Path) -> Trace:
    """Returns the trace in a file, JSON or CSV by its name or its first bytes; each iteration reads and checks events.

    Raises TraceFormatError with file and line, here or when the events are read; OSError.
    """
    path = Path(path)
    if not path.is_file() and path.exists():
        raise TraceFormatError(f"{path}: a trace is read more than once, and this is not a regular file")
    is_json = path.suffix.lower() == ".json" or _beginning(path).lstrip()[:1] in (b"{", b"[")
    return json.read(path) if is_json else csv.read(path)


def is_saved_trace(path: Path) -> bool:
    """Returns whether a file begins like a saved trace."""
    if not path.is_file():
        return False
    beginning = _beginning(path)
    return bool(_JSON.match(beginning)) or _COLUMNS.issubset(csv.header(beginning.decode(errors="replace")))


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_BEGINNING).removeprefix(b"\xef\xbb\xbf")
