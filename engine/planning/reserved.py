"""Addresses of the arena that are taken before planning begins: pinned values, and boundaries between segments."""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from allocator.bounds import proved_bound
from allocator.problem import Column, Plan, Problem
from allocator.solvers.base import arena_bytes

BOUNDARY_BYTES = 64
"""Bytes of address between two segments that no chunk may take, so that no chunk lies in two segments."""


@frozen(eq=False)
class Reserved:
    """Reserved addresses. `pinned` maps a value's id to its fixed offset; each of `boundaries` is a first address."""

    pinned: Mapping[int, int] = field(factory=dict)
    boundaries: tuple[int, ...] = ()


NOTHING_RESERVED = Reserved()


def with_pins(problem: Problem, chunk_of: Callable[[int], int], sizes: Column, reserved: Reserved) -> Problem:
    """Returns the problem with the offsets of the pinned values fixed; their padding ends where the next one begins."""
    if not reserved.pinned:
        return problem
    pinned, alignment, size = problem.pinned.copy(), problem.alignment.copy(), problem.size.copy()
    taken = sorted((*reserved.pinned.values(), *reserved.boundaries))
    for value, offset in reserved.pinned.items():
        chunk = chunk_of(value)
        end = offset + int(sizes[chunk])
        behind = bisect_left(taken, end)
        room = taken[behind] - end if behind < len(taken) else size[chunk]
        pinned[chunk], alignment[chunk] = offset, 1
        size[chunk] = min(size[chunk], sizes[chunk] + room)
    return evolve(problem, pinned=pinned, alignment=alignment, size=size)


def solve_with_boundaries(problem: Problem, boundaries: tuple[int, ...], solve: Callable[[Problem], Plan]) -> Plan:
    """Solves a problem so that no chunk lies across a boundary.

    The boundaries become pinned chunks that live from the first tick to the last; the plan is returned without them.
    """
    if not boundaries or not len(problem):
        return solve(problem)
    count, horizon = len(boundaries), int(problem.end.max())
    added: dict[str, Any] = {
        "begin": np.zeros(count, np.int64),
        "end": np.full(count, horizon),
        "size": np.full(count, BOUNDARY_BYTES),
        "alignment": np.ones(count, np.int64),
        "pinned": np.array(boundaries),
    }
    columns: dict[str, Any] = {name: np.concatenate((getattr(problem, name), rows)) for name, rows in added.items()}
    plan = solve(evolve(problem, **columns))
    offset = plan.offset[: len(problem)]
    return evolve(plan, offset=offset, arena_bytes=arena_bytes(problem, offset), bound=proved_bound(problem))
