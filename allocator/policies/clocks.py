"""Lifetimes by a clock, in place of those in the sequence of steps."""

import numpy as np
from attrs import evolve

from allocator.concurrency import Clock
from allocator.derive.users import Users
from allocator.problem import Column, Problem


def spans(clock: Clock, users: Users) -> tuple[Column, Column]:
    """Returns the instants in which each chunk is alive: from the begin of its writer to the latest end of a user."""
    end = np.maximum.reduceat(clock.end[users.tick], users.start[:-1]) if len(users) else users.tick
    return clock.begin[users.writer], end


def lifetimes_by(instants: tuple[Column, Column], problem: Problem, users: Users) -> Problem:
    """Returns the same chunks with lifetimes by the `spans` of a clock, in parts of an instant.

    An overwriter lives on with what it overwrites where the clock sees no end of that before: the bytes are theirs
    together. The parts of an instant let each chunk of such a chain end a little after the one before it.
    """
    begin, end = (np.array(c) for c in instants)
    depth = np.zeros(len(problem), np.int64)
    links = np.argsort(users.writer[problem.src], kind="stable")
    for src, dest in zip(problem.src[links].tolist(), problem.dest[links].tolist(), strict=True):
        depth[src], end[src] = depth[dest] + 1, max(end[src], end[dest])
    parts = int(depth.max(initial=0)) + 2
    begin, end = begin * parts, end * parts - depth.max(initial=0) + depth
    begin[problem.src] = end[problem.dest] - 1
    return evolve(problem, begin=begin, end=end)
