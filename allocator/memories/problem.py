"""The problem of several memories, in numbers: the chunks, what is read and written of each, and where each may lie."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import Factory, field, frozen

from allocator.errors import ProblemError
from allocator.memories.memory import Memory, check_memories
from allocator.problem import FREE, Column, Problem, column

Mask = npt.NDArray[np.bool_]
Seconds = npt.NDArray[np.float64]


def _mask(values: Any) -> Mask:
    """Returns a read-only copy, as a matrix of bool."""
    mask: Mask = np.array(values, bool)
    mask.flags.writeable = False
    return mask


def _in_a_tuple(memories: Iterable[Memory]) -> tuple[Memory, ...]:
    return tuple(memories)


def _anywhere(problem: "MemoryProblem") -> Mask:
    return np.ones((len(problem), len(problem.memories)), bool)


def transfer_seconds(memories: Sequence[Memory], read_bytes: Column, written_bytes: Column, calls: Column) -> Seconds:
    """Returns the seconds of each row's transfers in each memory: (rows, memories)."""
    read, write = (np.array([getattr(m, f"{way}_bandwidth") for m in memories], float) for way in ("read", "write"))
    latency = np.array([m.latency for m in memories], float)
    seconds: Seconds = read_bytes[:, None] / read + written_bytes[:, None] / write + calls[:, None] * latency
    return seconds


@frozen(eq=False)
class MemoryProblem:
    """Chunks to place in several memories: one memory and an offset for each. Row i of each column speaks of chunk i.

    `chunks`: lifetimes, sizes and alignments, as for one arena. A chain of overwrites lies in one memory. A pinned
    offset is one in a memory: such a chunk is allowed in one alone. A constant is alive in all ticks, and not written.
    `memories` are in an order of preference: of two in which a chunk costs the same, the first is taken.

    `read_bytes` and `written_bytes`: bytes that all calls together read and write of a chunk; `calls`: how many calls
    touch it. `allowed`: the memories in which a chunk may lie, of shape (chunks, memories); everywhere by default.
    `seconds`, of the same shape, follows: the time of a chunk's transfers in each memory, which is its bytes read over
    the read bandwidth, plus its bytes written over the write bandwidth, plus its calls times the latency.

    Raises ProblemError.
    """

    chunks: Problem
    memories: tuple[Memory, ...] = field(converter=_in_a_tuple)
    read_bytes: Column = field(converter=column)
    written_bytes: Column = field(converter=column)
    calls: Column = field(converter=column)
    allowed: Mask = field(converter=_mask, default=Factory(_anywhere, takes_self=True))
    seconds: Seconds = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        check_memories(self.memories)
        counts = (self.read_bytes, self.written_bytes, self.calls)
        if any(len(c) != len(self) for c in counts) or self.allowed.shape != (len(self), len(self.memories)):
            raise ProblemError("the columns of a problem of memories differ in length")
        for what, numbers in zip(("bytes read", "bytes written", "calls"), counts, strict=True):
            if (numbers < 0).any():
                raise ProblemError(f"chunk {int(np.argmax(numbers < 0))}: its {what} are negative")
        _check_pinned(self)
        seconds = transfer_seconds(self.memories, self.read_bytes, self.written_bytes, self.calls)
        seconds.flags.writeable = False
        object.__setattr__(self, "seconds", seconds)

    def __len__(self) -> int:
        return len(self.chunks)


def possible(problem: MemoryProblem) -> Mask:
    """Returns where each chunk can lie with its whole chain, were it alone: (chunks, memories).

    That is where all chunks of the chain are allowed, no larger than the capacity, written only where that is possible,
    and where a pinned offset keeps alignment and capacity.
    """
    chunks, can = problem.chunks, problem.allowed.copy()
    end = np.where(chunks.pinned != FREE, chunks.pinned, 0) + chunks.size
    for m, memory in enumerate(problem.memories):
        can[:, m] &= (end <= memory.capacity) & (memory.writable | (problem.written_bytes == 0))
        can[:, m] &= (chunks.pinned == FREE) | (chunks.pinned % memory.alignment == 0) | (chunks.size == 0)
    whole = np.ones_like(can)
    np.logical_and.at(whole, chunks.chains.root, can)
    return whole[chunks.chains.root]


def _check_pinned(problem: MemoryProblem) -> None:
    is_open = (problem.chunks.pinned != FREE) & (problem.allowed.sum(axis=1) != 1)
    if is_open.any():
        raise ProblemError(f"chunk {int(np.argmax(is_open))}: its offset is pinned, so just one memory must be allowed")
