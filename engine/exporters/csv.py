"""Trace events as CSV with a header."""

import csv
import io
from typing import BinaryIO

from attrs import astuple, fields

from engine.trace import Event, Trace

COLUMNS = tuple(f.name for f in fields(Event))


def write(trace: Trace, out: BinaryIO) -> None:
    """RFC 4180 in UTF-8 with plain newlines; columns as in `Event`."""
    text = io.TextIOWrapper(out, "utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(astuple(e) for e in trace)
    text.detach()
