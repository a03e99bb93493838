"""A clique: chunks of which each two may share no byte, such as those that are alive in one tick."""

import numpy as np
from attrs import astuple, field, frozen

from allocator.problem import FREE, Column, Problem, column


@frozen(eq=False)
class Clique:
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

    def some(self, rows: Column) -> "Clique":
        """Returns a part of the clique. `rows` may be a mask."""
        return Clique(*(values[rows] for values in astuple(self, recurse=False)))


def all_chunks(problem: Problem) -> Clique:
    """Returns all chunks as rows of a clique: row i is chunk i. They need not be a clique; `some` selects one."""
    chain = problem.chains
    is_pinned = problem.pinned[chain.root] != FREE
    pinned = np.where(is_pinned, problem.pinned[chain.root] + chain.offset, FREE)
    return Clique(
        ids=np.arange(len(problem)),
        root=chain.root,
        size=problem.size,
        alignment=np.where(is_pinned, 0, problem.alignment[chain.root]),
        shift=np.where(is_pinned, pinned, chain.offset),
        head=np.where(is_pinned, pinned, chain.offset),
        tail=problem.size[chain.root] - chain.offset - problem.size,
        pinned=pinned,
    )
