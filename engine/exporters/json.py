"""Trace events as JSON."""

import json
from collections.abc import Sequence

from attrs import asdict

from engine.trace import Event


def to_json(events: Sequence[Event]) -> str:
    """{"version": 1, "events": [{tick, operator, kind, tensor, chunk, offset, bytes, live_bytes}, ...]}."""
    return json.dumps({"version": 1, "events": [asdict(e) for e in events]}, indent=1) + "\n"
