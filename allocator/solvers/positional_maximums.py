"""Positional maximums (Pisarchyk and Lee 2020): what no set of shared objects can go below."""

import numpy as np

from allocator.kernels.mode import KernelMode
from allocator.kernels.positional_maximums import find_maximums
from allocator.problem import Column, column
from allocator.solvers.placing.units import Units
from allocator.solvers.shared import InterferenceGraph


def positional_maximums(units: Units) -> Column:
    """Returns the largest k-th largest size in any tick, for each k. O(n log n)."""
    count = len(units.ids)
    units = units.in_order(np.argsort(-units.size, kind="stable"))
    ticks, tick = np.unique(np.concatenate((units.begin, units.end)), return_inverse=True)
    leaves = 1 << len(ticks).bit_length()
    mode = KernelMode.of(count)
    begin, end, size = mode.numbers(column(tick[:count]), column(tick[count:]), units.size)
    tallest, own, maximums = mode.zeros(2 * leaves, 2 * leaves, count)
    objects = mode.kernel(find_maximums)(begin, end, size, tallest, own, maximums)
    return column(np.array(maximums)[:objects])


def objects_bound(graph: InterferenceGraph) -> int:
    """Returns the bytes that every set of objects for these units has: the sum of the positional maximums.

    Where conflicts decide, in place of ticks: the cliques that each unit makes with others, greedily, largest first.
    """
    return int((_maximums_of_cliques(graph) if len(graph.start) else positional_maximums(graph.units)).sum())


def _maximums_of_cliques(graph: InterferenceGraph) -> Column:
    size = graph.units.size
    order = np.argsort(-size, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    items = place[graph.near].tolist()
    near = [set(items[a:b]) for a, b in zip(graph.start[:-1].tolist(), graph.start[1:].tolist(), strict=True)]
    maximums = np.zeros(len(size), np.int64)
    for unit in order.tolist():
        clique, common = [place[unit]], near[unit]
        while common:
            clique.append(min(common))
            common = common & near[int(order[clique[-1]])]
        members = np.sort(size[order[clique]])[::-1]
        maximums[: len(members)] = np.maximum(maximums[: len(members)], members)
    return column(maximums)
