"""Hill climbing over orders of placement: what sticks out of the arena wanted is placed earlier, again and again.

Vela (`HillClimbAllocator`) and TVM (`usmp/algo/hill_climb.cc`) climb over orders too: they place a whole order and keep
it if it is no worse. Here an order is given up where the first chain sticks out, and that chain moves on, whether that
is better or not: squeaky wheel optimization (Joslin and Clements 1999). What stands before it keeps its place, so most
orders cost a fraction of one that is placed whole.
"""

from collections.abc import Iterator
from itertools import islice

import numpy as np
from attrs import define, field, frozen

from allocator.kernels.climb import MODULUS, NO_PLACE, advance
from allocator.kernels.mode import KernelMode
from allocator.kernels.numbers import Numbers
from allocator.problem import FREE, NO_CAPACITY, Column, Problem, column
from allocator.solvers.base import Answer, SolverOptions, Traits
from allocator.solvers.greedy import by_breadth, by_size
from allocator.solvers.placing.conflicts import count_conflicts
from allocator.solvers.placing.neighbours import Neighbours
from allocator.solvers.placing.placement import Placer
from allocator.solvers.placing.ranking import chain_lifetimes, ranked
from allocator.solvers.search.budget import Budget
from allocator.solvers.search.steps import answer_of

_PLAIN = 80
"""Bodies up to which plain kernels climb, so that small problems never wait for a compiler."""
_PLAIN_MOVES = 2_000
"""Moves that they do. A longer climb is worth machine code: it is fifty times as fast."""
_GREEDY = 4
"""Orders to start from."""
_PATIENCE = 1_000
"""Orders without a smaller arena after which the climb goes back to the best order."""
_FEWEST, _MOST = 2, 6
"""Draws for the place that a chain moves to: many draws, short moves. How many is drawn anew each time it goes back."""


@frozen(eq=False)
class HillClimb:
    """The best of four greedy orders, and the climb from there. One node is one order.

    Never worse than greedy by size, nor than greedy by breadth if two nodes and the time suffice. With no limit given
    it has `by_chunk` nodes for each chunk, or as many as make `pairs` pairs of chunks that meet, which takes about
    a second from 400 chunks on; at least the greedy orders.
    """

    name: str = "hill_climb"
    traits: Traits = Traits(most_chunks=200_000)
    by_chunk: int = 25
    pairs: int = 500_000_000

    def solve(self, problem: Problem, options: SolverOptions) -> Answer:
        """Returns the offsets, and no bound."""
        nodes = min(self.by_chunk * len(problem), self.pairs // (1 + count_conflicts(problem)))
        return answer_of(self._climb(problem, options, Budget.of(options, max(nodes, _GREEDY))))

    def search(self, problem: Problem, offset: Column, options: SolverOptions, budget: Budget) -> "_Climb":
        """Returns a climb from the best of the greedy orders and a plan: an offset for each chunk."""
        climb = self._climb(problem, options, budget)
        climb.take(offset)
        return climb

    def _climb(self, problem: Problem, options: SolverOptions, budget: Budget) -> "_Climb":
        pinned_end = (problem.pinned + problem.size)[(problem.pinned != FREE) & (problem.size > 0)].max(initial=0)
        chance = np.random.default_rng(options.seed)
        return _Climb(Placer.of(problem), max(options.goal, int(pinned_end)), budget, chance)


def _starts(placer: Placer) -> Iterator[Column]:
    """Yields greedy orders: by size, by breadth, by area (bytes times ticks), by life."""
    problem, ids = placer.problem, placer.ids
    yield by_size(problem)
    yield by_breadth(problem)
    begin, end = chain_lifetimes(problem)
    life, size = (end - begin)[ids], problem.size[ids]
    yield ranked(problem, ids, -life * size.astype(float))
    yield ranked(problem, ids, -life, -size)


@define(eq=False)
class _Climb:
    """The best order so far, of the bodies that are not pinned; the offset of each body in it; the arena."""

    placer: Placer
    goal: int
    budget: Budget
    chance: "np.random.Generator"
    order: Column = field(converter=column, factory=tuple)
    offset: Column = field(converter=column, factory=tuple)
    arena: int = NO_CAPACITY
    proved: int = field(default=0, init=False)

    @property
    def is_over(self) -> bool:
        """Returns whether the arena is good enough, or the budget spent."""
        return self.arena <= self.goal or self.budget.is_over

    def take(self, offset: Column) -> None:
        """Goes on from another plan, placed anew from below, if it is smaller: an offset for each chunk."""
        ids = self.placer.ids
        self._start(ids[np.lexsort((ids, offset[ids]))])

    def offsets(self) -> Column:
        """Returns the offset of each chunk in the best plan."""
        return self.placer.offsets(self.offset)

    def steps(self) -> Iterator[None]:
        """Starts from greedy orders, and climbs until the goal is reached, the budget spent, or nothing is in the way.

        The first order is placed whatever the budget is.
        """
        for order in _starts(self.placer):
            self._start(order)
            yield
            if self.is_over:
                return
        if self.placer.mode.is_plain and len(self.placer) <= _PLAIN:
            yield from islice(self._go_on(), _PLAIN_MOVES)
        if self.placer.mode.is_plain and not self.is_over:
            self.placer = Placer.of(self.placer.problem, KernelMode(False))
        yield from self._go_on()

    def _start(self, roots: Column) -> None:
        """Places a greedy order."""
        free = roots[self.placer.problem.pinned[roots] == FREE]
        nowhere = np.zeros(len(self.placer), np.int64)
        self._place(*self._written(self.placer.bodies(free), nowhere), 0)

    def _go_on(self) -> Iterator[None]:
        moves = _Moves.of(self.placer, int(self.chance.integers(1, MODULUS)))
        best, since, draws = self.order, 0, _FEWEST
        order, offset, kept = self._again()
        while kept != NO_PLACE and not self.is_over:
            self._place(order, offset, kept)
            if self.order is not best:
                best, since = self.order, 0
                order, offset, kept = self._again()
            else:
                kept, since = moves.advance(order, offset, draws), since + 1
            if since == _PATIENCE:
                order, offset, kept = self._again()
                since, draws = 0, int(self.chance.integers(_FEWEST, _MOST + 1))
            yield

    def _again(self) -> tuple[Numbers, Numbers, int]:
        """Returns the best order with its offsets, and the place of the first body that bars a smaller arena."""
        ends = (self.offset + self.placer.size)[self.order]
        return *self._written(self.order, self.offset), int(np.argmax(ends == self.arena))

    def _written(self, order: Column, offset: Column) -> tuple[Numbers, Numbers]:
        """Returns copies for kernels to write."""
        order_numbers, offset_numbers = self.placer.mode.numbers(order.copy(), offset.copy())
        return order_numbers, offset_numbers

    def _place(self, order: Numbers, offset: Numbers, kept: int) -> None:
        """Places an order up to where the arena would be no smaller than the best; keeps it where it is smaller."""
        arena = self.placer.place_rest(order, kept, self.arena - 1, offset)
        if arena < self.arena:
            self.order, self.offset, self.arena = column(order), column(offset), arena
            self.budget.found(arena)
        self.budget.spend(1)


@frozen(eq=False)
class _Moves:
    """The arguments of `advance`, by body: lifetimes, or lists where conflicts stand in their place."""

    begin: Numbers
    end: Numbers
    start: Numbers
    near: Numbers
    seen: Numbers
    met: Numbers
    chance: Numbers
    mode: KernelMode

    @classmethod
    def of(cls, placer: Placer, seed: int) -> "_Moves":
        """Returns the moves of a placer. `seed` is in [1, MODULUS)."""
        mode, search, nothing = placer.mode, placer.search, np.zeros(0, np.int64)
        seen, met = mode.zeros(len(placer), len(placer))
        begin, end, start, near = mode.numbers(nothing, nothing, nothing, nothing)
        if isinstance(search, Neighbours) and placer.problem.conflicts is not None:
            start, near = search.lists.start, search.lists.near
        else:
            begin, end = mode.numbers(*(c[placer.ids] for c in chain_lifetimes(placer.problem)))
        (chance,) = mode.numbers(np.array([seed]))
        return cls(begin, end, start, near, seen, met, chance, mode)

    def advance(self, order: Numbers, offset: Numbers, draws: int) -> int:
        """Moves what stuck out."""
        return self.mode.kernel(advance)(
            order, offset, self.begin, self.end, self.start, self.near, self.seen, self.met, draws, self.chance
        )


HILL_CLIMB = HillClimb()
