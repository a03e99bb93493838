"""What the strategies for shared objects (Pisarchyk and Lee 2020) have in common, and their way to offsets.

An object holds whole units, one after the other, and has the size of the largest. Objects laid end to end are a plan.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from attrs import field, frozen

from allocator.kernels.mode import KernelMode
from allocator.kernels.numbers import Numbers
from allocator.kernels.shared_objects import BEGIN, END, LIFE, OBJECT, SIZE, TAKEN, UNIT, USED, lay, share
from allocator.problem import Column, Conflicts, Problem, column
from allocator.ragged import row_starts
from allocator.solvers.base import Answer, SolverOptions, Traits
from allocator.solvers.placing.units import Units, units_of
from allocator.solvers.search.budget import Budget

NO_OBJECT = -1
"""Object of a chunk of no bytes."""


@frozen(eq=False)
class InterferenceGraph:
    """Units by time: by begin, end, size (largest first) and alignment; then ids decide.

    Where conflicts stand in place of lifetimes, those of unit u are near[start[u] : start[u + 1]], and what conflicts
    with more bytes stands before its like (Welsh and Powell 1967 colour graphs so); else both are empty.
    """

    units: Units
    start: Column = field(converter=column, factory=tuple)
    near: Column = field(converter=column, factory=tuple)

    def __len__(self) -> int:
        return len(self.units.ids)


@frozen(eq=False)
class SharedObjectsSolver:
    """One strategy: `share` gives the object of each unit. Objects are numbered from 0, and none is empty.

    What has no object when the time is over, or a stop was asked for, gets one of its own.
    """

    name: str
    share: Callable[[InterferenceGraph, Budget], Column]
    traits: Traits = Traits(pinned=False, most_chunks=100_000)

    def solve(self, problem: Problem, options: SolverOptions) -> Answer:
        """Returns the offsets, objects end to end, and no bound."""
        graph = interference_graph(problem)
        budget = Budget.of_time(options)
        budget.found(int((_laid(graph, np.arange(len(graph))) + graph.units.size).max(initial=0)))
        return Answer(graph.units.offsets(problem, _laid(graph, self.share(graph, budget))))

    def objects(self, problem: Problem) -> tuple[Column, Column]:
        """Returns the object of each chunk (or NO_OBJECT), and the bytes of each object."""
        graph = interference_graph(problem)
        taken = self.share(graph, Budget.of_time(SolverOptions()))
        size = np.zeros(int(taken.max(initial=-1)) + 1, np.int64)
        np.maximum.at(size, taken, graph.units.size)
        holder = np.full(len(problem), NO_OBJECT)
        holder[graph.units.ids] = taken
        return column(np.where(problem.size > 0, holder[problem.chains.root], NO_OBJECT)), column(size)


def _laid(graph: InterferenceGraph, taken: Column) -> Column:
    """Returns the offset of each unit where objects lie end to end, by the object of each unit."""
    mode = KernelMode.of(len(graph))
    columns = (column(np.argsort(taken, kind="stable")), column(taken), graph.units.size, graph.units.alignment)
    order, holder, size, alignment = mode.numbers(*columns)
    (offset,) = mode.zeros(len(graph))
    mode.kernel(lay)(order, holder, size, alignment, offset)
    return column(offset)


def share_in_order(graph: InterferenceGraph, order: Column, slack: int, growth: int, budget: Budget) -> Column:
    """Gives each unit an object, in this order: see the kernel `share`. O(units * objects)."""
    mode = KernelMode.of(len(graph))
    units, objects, lives = records(graph, mode)
    start, near, numbers = mode.numbers(graph.start, graph.near, column(order))
    (cursor,) = mode.zeros(1)
    go_on = partial(mode.kernel(share), units, objects, lives, start, near, numbers, slack, growth, cursor)
    budget.run(go_on, lambda: cursor[0] == len(order))
    return objects_taken(units)


def records(graph: InterferenceGraph, mode: KernelMode) -> tuple[Numbers, Numbers, Numbers]:
    """Returns the units, objects and lives as the kernels take them, with no unit in any object yet."""
    count = len(graph)
    table = np.zeros((count, UNIT), np.int64)
    table[:, BEGIN], table[:, END], table[:, SIZE] = graph.units.begin, graph.units.end, graph.units.size
    (units,) = mode.numbers(table.reshape(-1))
    objects, lives = mode.zeros(OBJECT * (count + 1), 0 if len(graph.start) else 4 * LIFE * count)
    objects[USED] = OBJECT
    return units, objects, lives


def objects_taken(units: Numbers) -> Column:
    """Returns the object of each unit, from its record, or a new one; objects are numbered from 0."""
    taken = np.array(units).reshape(-1, UNIT)[:, TAKEN] // OBJECT - 1
    is_without = taken < 0
    taken[is_without] = taken.max(initial=-1) + 1 + np.arange(np.count_nonzero(is_without))
    return column(taken)


def interference_graph(problem: Problem) -> InterferenceGraph:
    """Derives the units of a problem, in an order that ids do not decide where units differ."""
    units = units_of(problem)
    if problem.conflicts is None:
        return InterferenceGraph(units.in_order(_by_time(units, units.size)))
    one, other = _pairs(problem, problem.conflicts, units)
    weight = np.zeros(len(units.ids), np.int64)
    np.add.at(weight, one, units.size[other])
    order = _by_time(units, weight)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    one, other = place[one], place[other]
    start = row_starts(one, len(order))
    return InterferenceGraph(units.in_order(order), start, other[np.lexsort((other, one))])


def _by_time(units: Units, weight: Column) -> Column:
    return column(np.lexsort((-weight, units.alignment, -units.size, units.end, units.begin)))


def _pairs(problem: Problem, conflicts: Conflicts, units: Units) -> tuple[Column, Column]:
    """Returns the conflicting units, in both directions; some pairs may stand there twice."""
    unit = np.empty(len(problem), np.int64)
    unit[units.ids] = np.arange(len(units.ids))
    root = problem.chains.root
    both = (problem.size[conflicts.one] > 0) & (problem.size[conflicts.other] > 0)
    one, other = unit[root[conflicts.one[both]]], unit[root[conflicts.other[both]]]
    return np.concatenate((one, other)), np.concatenate((other, one))
