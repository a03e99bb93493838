"""A memory of the machine: how many bytes it has, and how long a transfer takes."""

import os
import re
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

from attrs import field, frozen

from allocator.errors import ProblemError, shown
from allocator.problem import DEFAULT_ALIGNMENT

MOST_BYTES = 2**62
"""All capacities are below it: offsets are 64-bit numbers."""
LEAST_BANDWIDTH, MOST_BANDWIDTH = 1e-3, 1e18
MOST_LATENCY = 1e6
"""Within these, the time of any transfers is a finite number of seconds, and not 0 where bytes are moved."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)


def _integer(value: Any) -> Any:
    """Returns an integer of any kind as one of Python's; anything else as it is, for the checks to refuse."""
    return int(value) if isinstance(value, Integral) and not isinstance(value, bool) else value


def _real(value: Any) -> Any:
    """Returns a number as a float; one that is too large, and anything else, as it is."""
    try:
        return float(value) if isinstance(value, Real) and not isinstance(value, bool) else value
    except OverflowError:
        return value


def _text(value: Any) -> Any:
    """Returns a path as a text; anything else as it is."""
    return os.fspath(value) if isinstance(value, os.PathLike) else value


@frozen
class Memory:
    """One memory. Raises ProblemError for what is not as this says.

    `name`: a letter, then letters, digits and _. `capacity` in bytes, from 1 to 2**62 - 1. `read_bandwidth` and
    `write_bandwidth` in bytes per second, from 0.001 to 1e18; `latency` in seconds for each call that touches a chunk
    in it, from 0 to 1e6. Offsets are multiples of `alignment`, in bytes, a power of two below 2**62. One that is not
    `writable`, such as flash, holds chunks that are never written. Where a plan runs on this machine, the bytes of a
    memory with a `folder` lie in files there, which are mapped; it decides nothing about the plan. A `copy_engine` (a
    DMA controller) reads and writes the memories that say so, and copies between two of them beside computation.
    """

    name: str
    capacity: int = field(converter=_integer)
    read_bandwidth: float = field(converter=_real)
    write_bandwidth: float = field(converter=_real)
    latency: float = field(converter=_real, default=0.0)
    alignment: int = field(converter=_integer, default=DEFAULT_ALIGNMENT)
    writable: bool = True
    folder: str = field(converter=_text, default="")
    copy_engine: bool = False

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise ProblemError(f"{shown(self.name)} is no name of a memory: a letter, then letters, digits and _")
        is_power = _is_size(self.alignment) and not self.alignment & (self.alignment - 1)
        speeds = f"bytes per second, from {LEAST_BANDWIDTH:g} to {MOST_BANDWIDTH:g}"
        facts: tuple[tuple[str, object, bool, str], ...] = (
            ("its capacity", self.capacity, _is_size(self.capacity), "a number of bytes from 1 to 2**62 - 1"),
            ("its alignment", self.alignment, is_power, "a power of two below 2**62"),
            ("its read bandwidth", self.read_bandwidth, _is_bandwidth(self.read_bandwidth), speeds),
            ("its write bandwidth", self.write_bandwidth, _is_bandwidth(self.write_bandwidth), speeds),
            ("its latency", self.latency, _is_latency(self.latency), f"seconds, from 0 to {MOST_LATENCY:g}"),
            ("its folder", self.folder, _is_path(self.folder), "the name of a folder"),
            ("writable", self.writable, isinstance(self.writable, bool), "True or False"),
            ("its copy engine", self.copy_engine, isinstance(self.copy_engine, bool), "True or False"),
        )
        for what, value, is_right, right in facts:
            if not is_right:
                raise ProblemError(f"memory {shown(self.name)}: {what} is {shown(value)}, and must be {right}")


def _is_path(value: object) -> bool:
    """Returns whether a value is a text that the system takes as a path."""
    try:
        return isinstance(value, str) and b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        return False


def _is_size(value: object) -> bool:
    return type(value) is int and 0 < value < MOST_BYTES


def _is_bandwidth(value: object) -> bool:
    return type(value) is float and LEAST_BANDWIDTH <= value <= MOST_BANDWIDTH


def _is_latency(value: object) -> bool:
    return type(value) is float and 0 <= value <= MOST_LATENCY


def check_memories(memories: Sequence[Memory]) -> None:
    """Raises ProblemError where there is no memory, or two have one name."""
    if not memories:
        raise ProblemError("there is no memory to place anything in")
    names = [memory.name for memory in memories]
    for name in names:
        if names.count(name) > 1:
            raise ProblemError(f"two memories have the name {name!r}")
