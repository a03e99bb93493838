"""Chains of overwrites as rigid units: the bytes of the root, for as long as one of the chain lives."""

import numpy as np
from attrs import astuple, field, frozen

from allocator.kernels.numbers import Numbers
from allocator.problem import Column, Problem, column, stable_order
from allocator.solvers.base import without_empty
from allocator.solvers.placing.ranking import chain_lifetimes


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

    @property
    def padded(self) -> Column:
        """Returns the bytes of each unit, up to a multiple of its alignment."""
        return -(-self.size // self.alignment) * self.alignment

    def in_order(self, order: Column) -> "Units":
        """Returns the same units, numbered anew: unit k is what unit order[k] was."""
        return Units(*(values[order] for values in astuple(self, recurse=False)))

    def offsets(self, problem: Problem, by_unit: Numbers) -> Column:
        """Returns a column of the problem from one of the units; 0 for chunks of no bytes."""
        return offsets_of(problem, self.ids, by_unit)


def offsets_of(problem: Problem, ids: Column, by_unit: Numbers) -> Column:
    """Returns a column of the problem from one of the units with these roots; 0 for chunks of no bytes."""
    by_chunk = np.zeros(len(problem), np.int64)
    by_chunk[ids] = np.array(by_unit)
    return without_empty(problem, problem.chains.offsets(by_chunk))


def units_of(problem: Problem) -> Units:
    """Returns the units of a problem, by id."""
    used = problem.size > 0
    _, end = chain_lifetimes(problem)
    ids = np.flatnonzero(used & (problem.chains.root == np.arange(len(problem))))
    if len(ids) == len(problem):
        return Units(ids, problem.begin, end, problem.size, problem.alignment)
    return Units(ids, problem.begin[ids], end[ids], problem.size[ids], problem.alignment[ids])


def units_by_begin(problem: Problem) -> Units:
    """Returns the units by begin; of those that begin in one tick the longest-lived come first, then the largest."""
    units = units_of(problem)
    longest, largest = units.end.max(initial=0), units.size.max(initial=0)
    return units.in_order(stable_order(units.alignment, largest - units.size, longest - units.end, units.begin))
