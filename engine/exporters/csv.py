"""Trace events as CSV with a header."""

import csv
import io
from collections.abc import Sequence

from attrs import astuple

from engine.exporters.table import COLUMNS
from engine.trace import Event


def to_csv(events: Sequence[Event]) -> str:
    """RFC 4180 with plain newlines; columns as in `Event`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(astuple(e) for e in events)
    return text.getvalue()
