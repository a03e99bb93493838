"""Files as exporters write them, in memory."""

import io

from engine import Trace
from engine.exporters import FORMATS


def exported(name: str, trace: Trace) -> bytes:
    """The bytes of a file."""
    out = io.BytesIO()
    FORMATS[name].write(trace, out)
    return out.getvalue()


def written(name: str, trace: Trace) -> str:
    """The text of one that is a text."""
    return exported(name, trace).decode()
