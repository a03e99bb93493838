"""Positional maximums (Pisarchyk and Lee 2020): what no set of shared objects can go below."""

import numpy as np

from allocator.kernels.mode import Runner
from allocator.kernels.positional_maximums import find_maximums
from allocator.problem import Column, column
from allocator.solvers.placing.units import Units
from allocator.solvers.shared import Tenants


def positional_maximums(found: Units) -> Column:
    """The k-th is the largest k-th largest size in any tick, units counted for as long as they live. O(n log n)."""
    count = len(found.ids)
    found = found.in_order(np.argsort(-found.size, kind="stable"))
    ticks, tick = np.unique(np.concatenate((found.begin, found.end)), return_inverse=True)
    leaves = 1 << len(ticks).bit_length()
    run = Runner.of(count)
    begin, end, size = run.numbers(column(tick[:count]), column(tick[count:]), found.size)
    tallest, own, maximums = run.zeros(2 * leaves, 2 * leaves, count)
    objects = run.kernel(find_maximums)(begin, end, size, tallest, own, maximums)
    return column(np.array(maximums)[:objects])


def objects_bound(found: Tenants) -> int:
    """No set of objects for these units has fewer bytes: the sum of the positional maximums.

    Where conflicts decide, in place of ticks: the cliques that each unit makes with others, greedily, largest first.
    """
    return int((_maximums_of_cliques(found) if len(found.start) else positional_maximums(found.units)).sum())


def _maximums_of_cliques(found: Tenants) -> Column:
    size = found.units.size
    order = np.argsort(-size, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    items = place[found.near].tolist()
    near = [set(items[a:b]) for a, b in zip(found.start[:-1].tolist(), found.start[1:].tolist(), strict=True)]
    maximums = np.zeros(len(size), np.int64)
    for unit in order.tolist():
        clique, common = [place[unit]], near[unit]
        while common:
            clique.append(min(common))
            common = common & near[int(order[clique[-1]])]
        members = np.sort(size[order[clique]])[::-1]
        maximums[: len(members)] = np.maximum(maximums[: len(members)], members)
    return column(maximums)
