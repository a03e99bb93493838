"""Local search over the order of placement: chains that stick out are placed earlier, as Vela and TVM do."""

import random
from collections.abc import Mapping

import numpy as np
from attrs import define, frozen

from allocator.bounds import lower_bound
from allocator.chains import chains
from allocator.problem import Column, Problem, column
from allocator.solvers.base import Answer, Task, Traits, arena_bytes
from allocator.solvers.greedy_by_breadth import by_breadth
from allocator.solvers.greedy_by_size import by_size
from allocator.solvers.placement import place_in_order
from allocator.solvers.ranking import lives


@frozen(eq=False)
class LocalSearch:
    """The better of two greedy orders, then changed orders as long as they are no worse. O(rounds * n^2).

    Stops at the lower bound, after `rounds` orders, or when `work` pairs of chunks have been looked at. Never worse
    than greedy by size or greedy by breadth.
    """

    name: str = "local_search"
    traits: Traits = Traits(conflicts=False, most_chunks=20_000)
    rounds: int = 100
    work: int = 20_000_000

    def solve(self, problem: Problem, task: Task) -> Answer:
        """Offsets, and no bound."""
        order: list[int] = by_breadth(problem).tolist()
        found = chains(problem)
        begin, end = lives(problem, found)
        life = dict(enumerate(zip(begin.tolist(), end.tolist(), strict=True)))
        start, bound = place_in_order(problem, column(order)), lower_bound(problem)
        search = _Search(problem, random.Random(task.seed), found.root, life, bound, order, start)
        search.keep(by_size(problem).tolist())
        for _ in range(min(self.rounds, self.work // max(len(problem), 1) ** 2)):
            sticking_out = search.sticking_out()
            if not sticking_out:
                break
            search.keep(search.changed(sticking_out))
        return Answer(search.best)


@define(eq=False)
class _Search:
    """The best order so far and what it gives; `life` is the begin and end of the chain of each root."""

    problem: Problem
    draw: random.Random
    root: Column
    life: Mapping[int, tuple[int, int]]
    bound: int
    order: list[int]
    best: Column

    def keep(self, order: list[int]) -> None:
        """Takes an order over if it is no worse."""
        offset = place_in_order(self.problem, column(order))
        if arena_bytes(self.problem, offset) <= arena_bytes(self.problem, self.best):
            self.order, self.best = order, offset

    def sticking_out(self) -> list[int]:
        """Roots of the chains that reach above the lower bound."""
        above = (self.best + self.problem.size > self.bound) & (self.problem.size > 0)
        found: list[int] = np.unique(self.root[above]).tolist()
        return found

    def changed(self, sticking_out: list[int]) -> list[int]:
        """The order with one of those chains moved before one that lives at the same time and was placed before it."""
        made = self.order.copy()
        chain = self.draw.choice(sticking_out)
        place = made.index(chain)
        del made[place]
        begin, end = self.life[chain]
        lives_before = [self.life[other] for other in made[:place]]
        met = [i for i, (other_begin, other_end) in enumerate(lives_before) if other_begin < end and begin < other_end]
        made.insert(self.draw.choice(met) if met else 0, chain)
        return made


LOCAL_SEARCH = LocalSearch()
