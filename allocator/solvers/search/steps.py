"""Searches as generators: one yields where it can pause, so that several take turns, and returns when it ends."""

from collections.abc import Generator, Iterator
from typing import Protocol, TypeVar

from allocator.problem import Column, Problem
from allocator.solvers.base import Answer, SolverOptions
from allocator.solvers.search.budget import Budget

R = TypeVar("R")
Steps = Generator[None, None, R]
"""The steps of a search, and what it returns."""


class Search(Protocol):
    """A search that starts from a plan, and goes on in steps until its goal is met or its budget is spent.

    `arena` has the bytes of its best plan, `proved` is a bound that it proved (0: none).
    """

    @property
    def arena(self) -> int:
        """The bytes of its best plan."""

    @property
    def proved(self) -> int:
        """The bytes that it proved no arena goes below; 0 where it proves nothing."""

    def steps(self) -> Iterator[None]:
        """Searches; yields where it can pause. To be called once."""

    def take(self, offset: Column) -> None:
        """Goes on from a better plan, which another search found: an offset for each chunk."""

    def offsets(self) -> Column:
        """Returns the offset of each chunk in its best plan."""


class Improver(Protocol):
    """What searches on from a plan."""

    @property
    def name(self) -> str:
        """The name of its strategy."""

    def search(self, problem: Problem, offset: Column, options: SolverOptions, budget: Budget, /) -> Search:
        """Returns a search from a plan: an offset for each chunk."""


def finish(steps: Steps[R]) -> R:
    """Runs steps to their end; returns what they return."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: R = end.value
            return result


def advance(steps: Iterator[None], budget: Budget, nodes: int) -> bool:
    """Runs steps until so many nodes of the budget are spent. Returns whether there are more."""
    until = budget.spent + nodes
    return any(budget.spent >= until for _ in steps)


def answer_of(search: Search) -> Answer:
    """Runs a search to its end; returns its best plan and what it proved."""
    for _ in search.steps():
        pass
    return Answer(search.offsets(), search.proved)
