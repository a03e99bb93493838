"""Data as the text of one JSON object, as commands print it."""

import json
import math
from collections.abc import Mapping
from typing import Any


def json_text(data: Mapping[str, Any]) -> str:
    """Returns one JSON object, with its last newline; an infinity or a NaN becomes null."""
    return json.dumps({key: _finite(value) for key, value in data.items()}, indent=1, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    """Returns None for an infinity or a NaN, which JSON does not have."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
