"""The best of several strategies: quick ones, then searches that take turns until nodes or time are over."""

from importlib import import_module
from typing import Any

from attrs import frozen

from allocator.problem import Problem
from allocator.solvers.base import Answer, SolverOptions, Traits, arena_bytes
from allocator.solvers.quick import is_last, quickest, suitable


@frozen(eq=False)
class Portfolio:
    """Evaluates several strategies and keeps the best plan, as Pisarchyk and Lee 2020 advise (section 6).

    Stops as soon as a plan meets the goal. Where no quick strategy does, searches take turns: each goes on from the
    best plan of all, in rounds of twice as many nodes, and one that finds a smaller arena or proves a bound gets more
    of them. Where alignments make the order of the peak's chunks matter, another search stacks them as low as it can.
    Where many chunks fit together without an empty byte, more searches move blocks of them. A node takes about
    three microseconds: a step of a search costs as many as it takes. A search whose start takes long waits for a round
    of as many nodes. With no limits in the task there are `nodes` nodes, less those of the quick strategies, which
    take two seconds: the same problem and seed have the same plan on every machine.
    """

    name: str = "best"
    traits: Traits = Traits()
    nodes: int = 600_000

    def solve(self, problem: Problem, options: SolverOptions) -> Answer:
        """Returns the best plan, the strategy that made it, and the bound that the search proved."""
        best = quickest(problem, options, suitable(problem, options))
        if is_last(arena_bytes(problem, best.offset), options):
            return best
        searches: Any = import_module("allocator.solvers.race")  # the last plan needs none of them
        answer: Answer = searches.search_in_turns(problem, options, self.nodes, best)
        return answer


PORTFOLIO = Portfolio()
