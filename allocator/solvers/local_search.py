"""Local search over the order of placement: chains that end at the peak are placed earlier, as Vela and TVM do."""

import random

import numpy as np
from attrs import frozen

from allocator.bounds import lower_bound
from allocator.chains import chains
from allocator.problem import Column, Problem
from allocator.solvers.base import arena_bytes
from allocator.solvers.greedy_by_size import by_size
from allocator.solvers.placement import place_in_order


@frozen
class LocalSearch:
    """Greedy by size, then at most `rounds` changed orders; the best plan is kept. O(rounds * n^2).

    Stops early at the lower bound.
    """

    name: str = "local_search"
    supports_pinned: bool = True
    quadratic: bool = True
    in_best: bool = False
    rounds: int = 200

    def solve(self, problem: Problem, seed: int = 0) -> Column:
        """Offset of each chunk in bytes."""
        draw, bound, order = random.Random(seed), lower_bound(problem), by_size(problem)
        best = place_in_order(problem, order)
        for _ in range(self.rounds):
            if arena_bytes(problem, best) == bound:
                break
            changed = _changed(order, _at_peak(problem, best), draw)
            offset = place_in_order(problem, changed)
            if arena_bytes(problem, offset) <= arena_bytes(problem, best):
                order, best = changed, offset
        return best


LOCAL_SEARCH = LocalSearch()


def _at_peak(problem: Problem, offset: Column) -> list[int]:
    """Roots of the chains that reach the end of the arena."""
    ends = offset + problem.size
    found: list[int] = np.unique(chains(problem).root[(ends == ends.max()) & (problem.size > 0)]).tolist()
    return found


def _changed(order: list[int], at_peak: list[int], draw: random.Random) -> list[int]:
    """The order with one chain of the peak moved to a place before its own, or two chains exchanged."""
    made = order.copy()
    place = made.index(draw.choice(at_peak))
    if place and draw.random() < 0.7:
        made.insert(draw.randrange(place), made.pop(place))
    else:
        other = draw.randrange(len(made))
        made[place], made[other] = made[other], made[place]
    return made
