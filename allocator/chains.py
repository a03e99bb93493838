"""Overwrite chains: the root of each chunk, and where the chunk lies in the bytes of its root."""

import numpy as np
from attrs import field, frozen

from allocator.problem import Column, Problem, column


@frozen(eq=False)
class Chains:
    """Chunk i lies offset[i] bytes behind the first byte of chunk root[i]. What overwrites nothing is its own root."""

    root: Column = field(converter=column)
    offset: Column = field(converter=column)

    def offsets(self, root_offset: Column) -> Column:
        """Offsets of all chunks, from a column that is right for the roots."""
        return column(root_offset[self.root] + self.offset)


def chains(problem: Problem) -> Chains:
    """Follows the overwrites in the order of time. O(n log n), and no recursion: chains may be long."""
    root, offset = list(range(len(problem))), [0] * len(problem)
    order = np.argsort(problem.begin[problem.src], kind="stable")
    columns = (problem.src[order], problem.dest[order], problem.overwrite_offset[order])
    for src, dest, at in zip(*(c.tolist() for c in columns), strict=True):
        root[src], offset[src] = root[dest], offset[dest] + at
    return Chains(root, offset)
