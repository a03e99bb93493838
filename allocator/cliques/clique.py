"""A crowd: chunks of which each two may share no byte, such as those that are alive in one tick."""

import numpy as np
from attrs import field, frozen

from allocator.derive.chains import chains
from allocator.problem import FREE, Column, Problem, column


@frozen(eq=False)
class Crowd:
    """Chunk ids[k] has size[k] bytes, and the root of its chain begins `shift[k]` bytes below it, at a multiple of
    `alignment[k]`.

    At least `head[k]` bytes of the arena lie below it and `tail[k]` above: those of the root are sure to. Where it is
    pinned, `pinned[k]` is its own offset, else FREE; a pinned chunk counts as one that begins `shift = pinned` bytes
    above a multiple of 0, which every number divides.
    """

    ids: Column = field(converter=column)
    root: Column = field(converter=column)
    size: Column = field(converter=column)
    alignment: Column = field(converter=column)
    shift: Column = field(converter=column)
    head: Column = field(converter=column)
    tail: Column = field(converter=column)
    pinned: Column = field(converter=column)

    def __len__(self) -> int:
        return len(self.ids)

    def some(self, rows: Column) -> "Crowd":
        """A part of it. `rows` may be a mask."""
        columns = (self.ids, self.root, self.size, self.alignment, self.shift, self.head, self.tail, self.pinned)
        return Crowd(*(c[rows] for c in columns))


def everybody(problem: Problem) -> Crowd:
    """All chunks as rows of crowds: row i is chunk i. Who of them is a crowd is another question."""
    found = chains(problem)
    is_pinned = problem.pinned[found.root] != FREE
    pinned = np.where(is_pinned, problem.pinned[found.root] + found.offset, FREE)
    return Crowd(
        ids=np.arange(len(problem)),
        root=found.root,
        size=problem.size,
        alignment=np.where(is_pinned, 0, problem.alignment[found.root]),
        shift=np.where(is_pinned, pinned, found.offset),
        head=np.where(is_pinned, pinned, found.offset),
        tail=problem.size[found.root] - found.offset - problem.size,
        pinned=pinned,
    )
