"""Lifetimes by a clock, in place of those in the sequence of steps."""

import numpy as np
from attrs import evolve

from allocator.concurrency import Clock
from allocator.problem import Column, Problem
from allocator.users import Users


def spans(clock: Clock, users: Users) -> tuple[Column, Column]:
    """The instants in which each chunk is alive: from the begin of its writer to the latest end of a user."""
    end = np.maximum.reduceat(clock.end[users.tick], users.start[:-1]) if len(users) else users.tick
    return clock.begin[users.writer], end


def lifetimes_by(clock: Clock, problem: Problem, users: Users) -> Problem:
    """The same chunks with lifetimes by a clock.

    Where the clock does not see that an overwriter begins when the rest is over, it lives on with what it overwrites:
    the bytes are theirs together until both are over.
    """
    begin, end = (np.array(c) for c in spans(clock, users))
    order = np.argsort(users.writer[problem.src], kind="stable")
    for src, dest in zip(problem.src[order].tolist(), problem.dest[order].tolist(), strict=True):
        begin[src], end[src] = end[dest] - 1, max(end[src], end[dest])
    return evolve(problem, begin=begin, end=end)
