"""What a file says: buffers with names, and where they lie if it says that too."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from attrs import Factory, evolve, field, frozen

from allocator.errors import FormatError, ProblemError, UnsupportedProblemError, shown
from allocator.problem import FREE, Column, Problem, column

LARGEST = 2**62
"""Every size, tick and offset in a file is below this."""
_CHUNK = re.compile(r"\bchunk (\d+)")


def _names(ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(ids)


@frozen(eq=False)
class Gaps:
    """Chunk chunk[k] is not alive in the ticks [begin[k], end[k]) of its lifetime."""

    chunk: Column = field(converter=column, factory=tuple)
    begin: Column = field(converter=column, factory=tuple)
    end: Column = field(converter=column, factory=tuple)

    def __len__(self) -> int:
        return len(self.chunk)


def _all_free(instance: "Instance") -> Column:
    return np.full(len(instance.problem), FREE)


@frozen(eq=False)
class Instance:
    """Chunk i is called ids[i] and lies at offset[i], where the file says so, else FREE.

    `hint[i]` is an offset that the file proposes, or FREE; no strategy uses it. Where there are
    `gaps`, the conflicts of the problem say what they mean. Where chunks lie in several memories, `memory` has the name
    of that of each; offsets count from the first byte of the first one, behind which the parts of the others lie.
    """

    problem: Problem
    ids: tuple[str, ...] = field(converter=_names)
    offset: Column = field(default=Factory(_all_free, takes_self=True), converter=column)
    hint: Column = field(default=Factory(_all_free, takes_self=True), converter=column)
    gaps: Gaps = Gaps()
    memory: tuple[str, ...] = field(converter=_names, default=())

    @property
    def arena_bytes(self) -> int:
        """Returns the bytes of the smallest arena that holds all chunks with an offset."""
        lies = (self.offset != FREE) & (self.problem.size > 0)
        return int((self.offset + self.problem.size)[lies].max(initial=0))

    def __attrs_post_init__(self) -> None:
        if len(self.ids) != len(self.problem):
            raise FormatError(f"{len(self.ids)} ids for {len(self.problem)} chunks")
        if len(self.memory) not in (0, len(self.problem)):
            raise FormatError(f"{len(self.memory)} names of memories for {len(self.problem)} chunks")
        if len(set(self.ids)) != len(self.ids):
            double = next(name for name, times in Counter(self.ids).items() if times > 1)
            raise FormatError(f"two buffers have the id {shown(double)}")


def named_problem(ids: Sequence[str], **columns: Any) -> Problem:
    """Returns a problem whose errors speak of buffers by their ids. Raises ProblemError."""
    try:
        return Problem(**columns)
    except ProblemError as error:
        raise ProblemError(in_names(str(error), ids)) from error


def pinned(instance: Instance) -> Problem:
    """Returns the problem with the offsets of the file as pinned offsets; overwriters lie where their roots do."""
    fixed = instance.offset.copy()
    fixed[instance.problem.src] = FREE
    try:
        return evolve(instance.problem, pinned=fixed)
    except ProblemError as error:
        raise ProblemError(in_names(str(error), instance.ids)) from error


def in_names(message: str, ids: Sequence[str]) -> str:
    """Returns a message that speaks of buffers by their ids, where it spoke of chunks by number."""
    return _CHUNK.sub(lambda match: f"buffer {shown(ids[int(match[1])])}", message)


def decoded(content: bytes) -> str:
    """Decodes UTF-8 text. Raises FormatError for what is no such text."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError("is no UTF-8 text") from error


def check_holds(instance: Instance, title: str, can: Iterable[str] = ()) -> None:
    """Raises UnsupportedProblemError where the problem has what a format (`title`) cannot hold.

    `can` names what it can hold: overwrites, alignments, gaps, memories.
    """
    problem = instance.problem
    has = {
        "overwrites": len(problem.src) > 0,
        "alignments": bool((problem.alignment != 1).any()),
        "gaps": problem.conflicts is not None,
        "memories": bool(instance.memory),
    }
    lost = [what for what, is_there in has.items() if is_there and what not in can]
    if lost:
        raise UnsupportedProblemError(f"{title} cannot hold {' and '.join(lost)}")


def check_placed(instance: Instance, title: str) -> None:
    """Raises UnsupportedProblemError where a buffer has no offset yet."""
    nowhere = np.flatnonzero((instance.offset == FREE) & (instance.problem.size > 0))
    if len(nowhere):
        raise UnsupportedProblemError(
            f"{title} holds offsets, but buffer {shown(instance.ids[int(nowhere[0])])} has none"
        )
