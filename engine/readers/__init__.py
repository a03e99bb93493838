"""Saved traces: JSON and CSV that `engine.exporters` wrote, read back event by event."""

from pathlib import Path

from engine.errors import TraceFormatError
from engine.readers import csv, json
from engine.trace import Trace

_BEGINNING = 256
"""Bytes of a file that tell what it is."""
_SUFFIXES = (".json", ".csv")


def read_trace(path: str | Path) -> Trace:
    """A trace from a file, JSON or CSV by its name or by what it begins with. Its events are read and checked each time.

    Raises TraceFormatError with file and line, here or when the events are asked for; OSError.
    """
    path = Path(path)
    if not path.is_file() and path.exists():
        raise TraceFormatError(f"{path}: a trace is read more than once, and this is no regular file")
    is_json = path.suffix.lower() == ".json" or _begins_with(path, b"{", b"[")
    return json.read(path) if is_json else csv.read(path)


def is_saved_trace(path: Path) -> bool:
    """Whether a file is to be read as a trace, judged by its name, or by what it begins with."""
    if not path.is_file():
        return False
    return path.suffix.lower() in _SUFFIXES or _begins_with(path, b"{", b"tick,")


def _begins_with(path: Path, *signs: bytes) -> bool:
    with path.open("rb") as file:
        beginning = file.read(_BEGINNING)
    return beginning.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(signs)
