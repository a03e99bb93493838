"""Overwrite chains: the root of each chunk, and where the chunk lies in the bytes of its root."""

import numpy as np
from attrs import field, frozen

from allocator.derive.chunks import Chunks
from allocator.problem import Column, Problem, column


@frozen(eq=False)
class Chains:
    """Chunk i lies offset[i] bytes behind the first byte of chunk root[i]. What overwrites nothing is its own root."""

    root: Column = field(converter=column)
    offset: Column = field(converter=column)

    def offsets(self, root_offset: Column) -> Column:
        """Offsets of all chunks, from a column that is right for the roots."""
        return column(root_offset[self.root] + self.offset)


def chains(problem: Problem | Chunks) -> Chains:
    """Follows all overwrites at once, each time twice as far: O(n log n) where chains are long, and no recursion."""
    root, offset = np.arange(len(problem)), np.zeros(len(problem), np.int64)
    root[problem.src], offset[problem.src] = problem.dest, problem.overwrite_offset
    while (root[root] != root).any():
        offset += offset[root]
        root = root[root]
    return Chains(root, offset)
