"""A memory of the machine: how many bytes it has, and how long a transfer takes."""

import math
from collections.abc import Sequence

from attrs import frozen

from allocator.errors import ProblemError
from allocator.problem import DEFAULT_ALIGNMENT

MOST_BYTES = 2**62
"""The largest capacity: offsets are 64-bit numbers."""


@frozen
class Memory:
    """One memory. Raises ProblemError for an empty name, or a number that is not finite or not above zero.

    `capacity` in bytes; `read_bandwidth` and `write_bandwidth` in bytes per second; `latency` in seconds for each call
    that touches a chunk in it, zero or more. Offsets are multiples of `alignment`, in bytes. One that is not
    `writable`, such as flash, holds chunks that are never written.
    """

    name: str
    capacity: int
    read_bandwidth: float
    write_bandwidth: float
    latency: float = 0.0
    alignment: int = DEFAULT_ALIGNMENT
    writable: bool = True

    def __attrs_post_init__(self) -> None:
        if not self.name:
            raise ProblemError("a memory has no name")
        for what, nbytes in (("capacity", self.capacity), ("alignment", self.alignment)):
            if not 0 < nbytes < MOST_BYTES or nbytes != int(nbytes):
                raise ProblemError(
                    f"memory {self.name!r}: its {what} is {nbytes}, and must be a number of bytes above 0"
                )
        for what, speed in (("read bandwidth", self.read_bandwidth), ("write bandwidth", self.write_bandwidth)):
            if not 0 < speed < math.inf:
                raise ProblemError(f"memory {self.name!r}: its {what} is {speed}, and must be bytes per second above 0")
        if not 0 <= self.latency < math.inf:
            raise ProblemError(f"memory {self.name!r}: its latency is {self.latency}, and must be seconds, 0 or more")


def check_memories(memories: Sequence[Memory]) -> None:
    """Raises ProblemError where there is no memory, or two have one name."""
    if not memories:
        raise ProblemError("there is no memory to place anything in")
    names = [memory.name for memory in memories]
    for name in names:
        if names.count(name) > 1:
            raise ProblemError(f"two memories have the name {name!r}")
