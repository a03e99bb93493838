"""Sizes, durations and counts as people write and read them."""

import math
import re
from numbers import Integral

from allocator.errors import shown
from engine.text.errors import OptionError

_FACTORS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_SIZE = re.compile(r"\s*(\d{1,1000}(?:\.\d{1,1000})?)\s*([a-zA-Z]*)\s*")
_NUMBER = r"(\d{1,18}(?:\.\d{1,24})?(?:[eE][+-]?\d{1,3})?)"
"""A number as `repr` writes one, too: 8e-08."""
_RATE = re.compile(rf"\s*{_NUMBER}\s*([a-zA-Z]*)\s*/\s*s\s*", re.ASCII)
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(rf"\s*{_NUMBER}\s*(ns|us|ms|s|m|h|)\s*", re.ASCII)


def parse_bytes(text: int | str) -> int:
    """Returns the bytes of a number or of a text such as "8 MiB", "512kb", "1.5 GiB". Raises OptionError."""
    if isinstance(text, Integral) and not isinstance(text, bool):
        return _positive(int(text), text)
    match = _SIZE.fullmatch(text) if isinstance(text, str) else None
    if match is None or match[2].lower() not in _FACTORS:
        raise OptionError(f"{shown(text)} is no size in bytes; write for example 8388608, 8MiB or 8 MB")
    return _positive(_whole(match[1], _FACTORS[match[2].lower()]), text)


_ENDLESS = 1e18
"""Seconds beyond which a duration counts as no limit, and bytes a second beyond which nothing is a bandwidth."""


def parse_seconds(duration: float | str) -> float:
    """Returns the seconds of a number (infinity: no limit) or of a text such as "10s", "500ms", "2m", "1h".

    Raises OptionError.
    """
    if isinstance(duration, (int, float)) and not isinstance(duration, bool):
        if not duration >= 0:
            raise OptionError(f"{shown(duration)} is no number of seconds from 0 on")
        return math.inf if duration > _ENDLESS else float(duration)
    match = _DURATION.fullmatch(duration) if isinstance(duration, str) else None
    if match is None:
        raise OptionError(f"{shown(duration)} is no duration; write for example 10s, 500ms or 2m")
    seconds = float(match[1]) * _SECONDS[match[2]]
    return math.inf if seconds > _ENDLESS else seconds


def parse_rate(rate: float | str) -> float:
    """Returns the bytes a second of a number or of a text such as "4GB/s", "0.8 GiB/s". Raises OptionError."""
    if isinstance(rate, (int, float)) and not isinstance(rate, bool):
        value = float(rate) if rate <= _ENDLESS else math.inf
    else:
        match = _RATE.fullmatch(rate) if isinstance(rate, str) else None
        if match is None or match[2].lower() not in _FACTORS:
            raise OptionError(f"{shown(rate)} is no number of bytes a second; write for example 4GB/s or 800MB/s")
        value = float(match[1]) * _FACTORS[match[2].lower()]
    if not 0 < value < math.inf:
        raise OptionError(f"{shown(rate)} is no number of bytes a second above 0")
    return value


def format_bytes(size: int) -> str:
    """Returns a size with a binary unit and two decimals; below 1 KiB in plain bytes."""
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{size} B" if unit == "B" else f"{value:.2f} {unit}"


_SMALL_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def format_duration(seconds: float) -> str:
    """Returns a duration in whole seconds, minutes and hours."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def format_small_seconds(seconds: float) -> str:
    """Returns a time with three decimals, in the unit in which it is 1 or more: s, ms, us or ns."""
    scale, unit = next(((scale, unit) for scale, unit in _SMALL_UNITS if seconds >= scale), _SMALL_UNITS[-1])
    return f"{seconds / scale:.3f} {unit}"


def _whole(number: str, factor: int) -> int:
    """Returns a decimal number times a factor, rounded down."""
    before, _, behind = number.partition(".")
    scale: int = 10 ** len(behind)
    return int(before + behind) * factor // scale


def _positive(size: int, text: object) -> int:
    if not 0 <= size < 2**63:
        raise OptionError(f"{shown(text)} is no size of 0 to 2**63 - 1 bytes")
    return size


def counted(count: int, noun: str) -> str:
    """Returns a count with its noun: "1 tensor", "2 tensors"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def agreed(count: int, noun: str, one: str, more: str) -> str:
    """Returns a count with its noun and its verb: "1 tensor waits", "2 tensors wait"."""
    return f"{counted(count, noun)} {one if count == 1 else more}"
