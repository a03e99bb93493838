"""Paths as clocks: chunks share bytes where the steps of one colour see the old value over before the new one begins.

Steps are coloured by MXNet's rule (find the longest path, colour it, remove it, repeat). Each colour has a pool of
bytes; a chunk goes to the pool whose path has the best view of it. All users of the old value happen before a step of
the path, and that one happens before the writer of the new value, or is it: so sharing is safe, and it asks for less
than MXNet's rule, all users and the taker of one colour. Memory and time are linear for a given number of colours.
"""

from collections.abc import Sequence

import numpy as np
from attrs import evolve, frozen

from allocator.bounds import proved_bound
from allocator.breadths import breadths
from allocator.concurrency import Clock, Dependences, colours, path_clock
from allocator.derive.users import Users
from allocator.parts import part_of
from allocator.policies.base import Solve, Waits
from allocator.policies.clocks import lifetimes_by, spans
from allocator.problem import NO_WITNESS, Bound, Column, Plan, Problem, align_up, column


@frozen(eq=False)
class Colours:
    """The paths, longest first, and the clock of each."""

    name: str
    paths: tuple[Column, ...]
    clocks: tuple[Clock, ...]

    @classmethod
    def of(cls, dependences: Dependences, most: int) -> "Colours":
        """Returns at most `most` paths. A step that no other depends on, and that depends on none, is on no path."""
        weight = np.zeros(dependences.count, np.int64)
        weight[dependences.before] = weight[dependences.after] = 1
        weight[:1] = 1  # one path there must be
        colour = colours(dependences, weight, most)
        paths = tuple(np.flatnonzero(colour == c) for c in range(int(colour.max(initial=-1)) + 1))
        return cls(f"colour:{most}", paths, tuple(path_clock(dependences, path) for path in paths))

    def may_overwrite(self, others: Column, step: int) -> bool:
        """Returns whether a path has seen that the others are done before the step begins."""
        return any(clock.holds(others, step) for clock in self.clocks)

    def place(self, problem: Problem, users: Users, solve: Solve) -> Plan:
        """Places pools on top of each other, for the number of colours that promises the smallest sum."""
        root = problem.chains.root
        lives = [spans(clock, users) for clock in self.clocks]
        views = [lifetimes_by(life, problem, users) for life in lives]
        ticks = np.array([_ticks(*life, path, root) for life, path in zip(lives, self.paths, strict=True)])
        choices = [_pools(views, ticks, count) for count in _counts(len(views))]
        touched = evolve(problem, end=users.last + 1)  # looking on is no use here: without it, lives may be shorter
        return _stacked(min(choices, key=_breadth), proved_bound(touched), solve)

    def waits(self, problem: Problem, users: Users, plan: Plan) -> Waits:  # noqa: ARG002 (of the protocol)
        """Returns no waits: only data is waited for."""
        return Waits()


@frozen(eq=False)
class _Pools:
    """Chunk i lies in pool[i]; parts[p] has those of pool p, in their order."""

    pool: Column
    parts: tuple[Problem, ...]


def _counts(colours: int) -> list[int]:
    """Returns the numbers of colours to try: powers of two, and all."""
    return sorted({2**i for i in range(colours.bit_length()) if 2**i <= colours} | {colours})


def _ticks(begin: Column, end: Column, path: Column, root: Column) -> Column:
    """Returns how long the chain of each chunk lives, in ticks as far as a path can tell."""
    tick = np.concatenate(([0], path, [path[-1] + 1]))
    latest = np.zeros(len(root), np.int64)
    np.maximum.at(latest, root, tick[end // 2])
    return column(latest[root] - tick[begin // 2][root])


def _pools(views: Sequence[Problem], ticks: Column, count: int) -> _Pools:
    pool = np.argmin(ticks[:count], axis=0)
    return _Pools(column(pool), tuple(part_of(view, pool == p) for p, view in enumerate(views[:count])))


def _breadth(pools: _Pools) -> int:
    return sum(int(breadths(part).value.max(initial=0)) for part in pools.parts)


def _stacked(pools: _Pools, bound: Bound, solve: Solve) -> Plan:
    """Returns all pools in one arena. The bound is that of the sequence: other pools, or fewer, might be smaller.

    The strategy is that of each pool that has bytes; where none has, that of the first.
    """
    offset, top, makers = np.zeros(len(pools.pool), np.int64), 0, dict[str, None]()
    for number, part in enumerate(pools.parts):
        if not (part.size > 0).any():
            continue
        plan, base = solve(part), align_up(top, int(part.alignment.max()))
        offset[pools.pool == number] = np.where(part.size > 0, plan.offset + base, 0)
        top = base + plan.arena_bytes
        makers[plan.strategy] = None
    strategy = ", ".join(makers) or solve(pools.parts[0]).strategy
    return Plan(offset, top, evolve(bound, witness=NO_WITNESS), strategy)
