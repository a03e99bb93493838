"""What of the arena's addresses is taken before a plan is made: values that lie fixed, and seams between segments."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from allocator.bounds import lower_bound
from allocator.problem import Column, Plan, Problem
from allocator.solvers.base import arena_bytes

SEAM = 64
"""Bytes of address that nothing may take between two segments, so that no chunk lies across."""


@frozen(eq=False)
class Room:
    """`pinned` has the offsets of values (by id) that lie fixed from the first tick on; `seams` begin at an address."""

    pinned: Mapping[int, int] = field(factory=dict)
    seams: tuple[int, ...] = ()


ANYWHERE = Room()


def with_pins(problem: Problem, chunk_of: Callable[[int], int], sizes: Column, room: Room) -> Problem:
    """The problem in which the pinned values lie where they lie, with the bytes that they have and no padding."""
    if not room.pinned:
        return problem
    pinned, alignment, size = problem.pinned.copy(), problem.alignment.copy(), problem.size.copy()
    for value, offset in room.pinned.items():
        chunk = chunk_of(value)
        pinned[chunk], alignment[chunk], size[chunk] = offset, 1, sizes[chunk]
    return evolve(problem, pinned=pinned, alignment=alignment, size=size)


def solve_between(problem: Problem, seams: tuple[int, ...], solve: Callable[[Problem], Plan]) -> Plan:
    """A plan in which no chunk lies across a seam: seams are chunks that live from the first tick to the last."""
    if not seams or not len(problem):
        return solve(problem)
    count, horizon = len(seams), int(problem.end.max())
    more: dict[str, Any] = {
        "begin": np.zeros(count, np.int64),
        "end": np.full(count, horizon),
        "size": np.full(count, SEAM),
        "alignment": np.ones(count, np.int64),
        "pinned": np.array(seams),
    }
    columns: dict[str, Any] = {name: np.concatenate((getattr(problem, name), rows)) for name, rows in more.items()}
    plan = solve(evolve(problem, **columns))
    offset = plan.offset[: len(problem)]
    return evolve(plan, offset=offset, arena_bytes=arena_bytes(problem, offset), lower_bound=lower_bound(problem))
