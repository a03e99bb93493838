"""Exports traces in memory."""

import io

from engine import Trace
from engine.exporters import FORMATS


def exported(name: str, trace: Trace) -> bytes:
    """Returns the bytes of a file."""
    out = io.BytesIO()
    FORMATS[name].write(trace, out)
    return out.getvalue()


def written(name: str, trace: Trace) -> str:
    """Returns the text of a file in a text format."""
    return exported(name, trace).decode()
