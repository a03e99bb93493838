"""Sizes as people write and read them."""

import re

from engine.errors import OptionError

_FACTORS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")


def parse_bytes(text: int | str) -> int:
    """Bytes meant by a number or by a text such as "8 MiB", "512kb", "1.5 GiB". Raises OptionError."""
    if isinstance(text, int) and not isinstance(text, bool):
        return _positive(text, text)
    match = _SIZE.fullmatch(text) if isinstance(text, str) else None
    if match is None or match[2].lower() not in _FACTORS:
        raise OptionError(f"{text!r} is no size in bytes; write for example 8388608, 8MiB or 8 MB")
    return _positive(_whole(match[1], _FACTORS[match[2].lower()]), text)


def format_bytes(size: int) -> str:
    """A size with a binary unit and two decimals; below 1 KiB in plain bytes."""
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{size} B" if unit == "B" else f"{value:.2f} {unit}"


def _whole(number: str, factor: int) -> int:
    """A decimal number times a factor, to the byte below."""
    before, _, behind = number.partition(".")
    scale: int = 10 ** len(behind)
    return int(before + behind) * factor // scale


def _positive(size: int, given: object) -> int:
    if not 0 <= size < 2**63:
        raise OptionError(f"{str(given)[:40]!r} is no size of 0 to 2**63 - 1 bytes")
    return size
