"""Saved traces: JSON and CSV that `engine.exporters` wrote, read back event by event."""

import re
from pathlib import Path

from engine.readers import csv, json
from engine.text.errors import TraceFormatError
from engine.trace.trace import Trace

_BEGINNING = 1024
"""Bytes of a file that tell what it is."""
_JSON = re.compile(rb'\s*\{\s*"version"\s*:')
_COLUMNS = {"tick", "kind", "live_bytes"}


def read_trace(path: str | Path) -> Trace:
    """A trace from a file, JSON or CSV by its name or by how it begins; events are read and checked each time.

    Raises TraceFormatError with file and line, here or when the events are asked for; OSError.
    """
    path = Path(path)
    if not path.is_file() and path.exists():
        raise TraceFormatError(f"{path}: a trace is read more than once, and this is no regular file")
    is_json = path.suffix.lower() == ".json" or _beginning(path).lstrip()[:1] in (b"{", b"[")
    return json.read(path) if is_json else csv.read(path)


def is_saved_trace(path: Path) -> bool:
    """Whether a file begins as saved traces do."""
    if not path.is_file():
        return False
    beginning = _beginning(path)
    return bool(_JSON.match(beginning)) or _COLUMNS.issubset(csv.header(beginning.decode(errors="replace")))


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_BEGINNING).removeprefix(b"\xef\xbb\xbf")
