"""Trace events as JSON."""

import json
from typing import BinaryIO

from attrs import asdict

from engine.trace import Trace

VERSION = 2


def write(trace: Trace, out: BinaryIO) -> None:
    """{"version": 2, "facts": {...}, "events": [{...}, ...]}, an event a line; names as in `Facts` and `Event`."""
    out.write(f'{{"version": {VERSION}, "facts": {json.dumps(asdict(trace.facts))}, "events": [\n'.encode())
    between = ""
    for event in trace:
        out.write(f"{between}{json.dumps(asdict(event))}".encode())
        between = ",\n"
    out.write(b"\n]}\n")
