"""Chains of overwrites as rigid units: the bytes of the root, for as long as one of the chain lives."""

import numpy as np
from attrs import field, frozen

from allocator.chains import Chains, chains
from allocator.kernels.numbers import Numbers
from allocator.problem import Column, Problem, column
from allocator.solvers.base import without_empty
from allocator.solvers.placement import roots


@frozen(eq=False)
class Units:
    """Unit k is the chain of root ids[k]. Chunks of no bytes belong to none.

    The bytes that overwriters leave free are given away with their root's: simple, and valid.
    """

    ids: Column = field(converter=column)
    begin: Column = field(converter=column)
    end: Column = field(converter=column)
    size: Column = field(converter=column)
    alignment: Column = field(converter=column)
    chains: Chains

    def offsets(self, problem: Problem, by_unit: Numbers) -> Column:
        """A column of the problem from one of the units; 0 for chunks of no bytes."""
        made = np.zeros(len(problem), np.int64)
        made[self.ids] = np.array(by_unit)
        return without_empty(problem, self.chains.offsets(made))


def longest_first(problem: Problem) -> Units:
    """The longest-lived units first; of those the earliest, then the largest. Ids decide between equals only."""
    found = chains(problem)
    used = problem.size > 0
    end = problem.end.copy()
    np.maximum.at(end, found.root[used], problem.end[used])
    ids = roots(problem)
    begin, size, alignment = problem.begin[ids], problem.size[ids], problem.alignment[ids]
    order = np.lexsort((alignment, -size, begin, begin - end[ids]))
    return Units(ids[order], begin[order], end[ids[order]], size[order], alignment[order], found)
