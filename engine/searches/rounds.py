"""A search in rounds: several searches go on from the best plan of all, and share what they found at the end of each.

With a limit of nodes, what a round does depends on the problem, the seed and the plan it begins with alone: not on how
many workers there are, nor on who is ready first. With a limit of time, searches share what they find at once.
"""

import math
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from attrs import define, evolve, frozen

from allocator.interrupts import Stop, current_stop
from allocator.problem import Column, Plan, Problem
from allocator.progress import current
from allocator.solvers import solve
from allocator.solvers.base import NO_NODES, Answer, SolverOptions, Traits, arena_bytes
from allocator.solvers.ejection import EJECTION
from allocator.solvers.exact import EXACT
from allocator.solvers.hill_climb import HILL_CLIMB
from allocator.solvers.portfolio import PORTFOLIO
from allocator.solvers.race import suitable_searches
from allocator.solvers.search.budget import Budget
from allocator.solvers.search.steps import Improver, advance
from allocator.solvers.search.steps import Search as Improving
from engine.workers.board import Board, BoardClosedError, NoBoard
from engine.workers.flow import in_order
from engine.workers.place import Place
from engine.workers.places import opened

SEARCHES = 12
"""Searches of a round: a number that many numbers of workers divide."""
_FIRST, _MOST = 50_000, 1_600_000
"""Nodes of a search in the first round; twice as many in each, up to the most, which take some five seconds."""
EXACT_SHARE = 4
"""How many times the nodes of the others the exact search has: it alone proves anything."""
_NONE = NoBoard()
_LOOK, PAUSE = 5_000, 0.1
"""Nodes, and seconds, after which a search may look at the board: reading it takes a tenth of a millisecond."""
_USUAL = 12 * PORTFOLIO.nodes
"""Nodes of all searches where there is no limit."""
_IMPROVERS: Mapping[str, Improver] = MappingProxyType({s.name: s for s in (EXACT, EJECTION, HILL_CLIMB)})


def solve_shared(problem: Problem, seed: int, on: str | Executor, workers: int, **limits: Any) -> Plan:
    """Plans by searches that workers share; `limits` are those of `solve`. Raises what `solve` raises, OptionError.

    Raises EngineError where the workers are lost.
    """
    with opened(on, workers) as place:
        return solve(problem, RoundSearch(place), seed, **limits)


@frozen(eq=False)
class Search:
    """One search of a round, as a worker gets it: it goes on from `offset`, and ends after `seconds` at the latest.

    Each of its nodes costs `price` of those of the options. It ends when the `board` is closed.
    """

    problem: Problem
    offset: Column
    strategy: str
    price: int
    options: SolverOptions
    seconds: float = math.inf
    board: Board = _NONE

    @property
    def is_sharing(self) -> bool:
        """Returns whether it takes over what others write on the board: the result may then differ between runs."""
        return self.seconds < math.inf


@frozen(eq=False)
class RoundSearch:
    """A solver whose searches run in a place."""

    place: Place
    name: str = PORTFOLIO.name
    traits: Traits = PORTFOLIO.traits

    def solve(self, problem: Problem, options: SolverOptions) -> Answer:
        """Returns the best plan, the strategy that made it, and the bound that a search proved."""
        nodes = _USUAL if options.nodes == NO_NODES and options.until == math.inf else options.nodes
        seen, stop = current(), current_stop()
        first = min(nodes, _FIRST)
        best, each = PORTFOLIO.solve(problem, evolve(options, nodes=first)), _FIRST
        left, number = nodes - first, 0
        seen.total, seen.unit, seen.done = 0 if nodes == NO_NODES else nodes, "steps", first
        if _is_good(problem, best, options):
            return best
        with self.place.board() as board, _closed_by(stop, board):
            while left > 0 and not _is_good(problem, best, options) and not stop.is_asked:
                searches = list(_searches(problem, best, evolve(options, nodes=min(each, share(left))), number, board))
                best = self._after(problem, best, searches)
                spent = sum(search.options.nodes for search in searches)
                left, number, each = left - spent, number + 1, min(2 * each, _MOST)
                seen.done, seen.best = seen.done + spent, arena_bytes(problem, best.offset)
                if not searches:
                    break
        return best

    def _after(self, problem: Problem, best: Answer, searches: list[Search]) -> Answer:
        """Returns the first of the best plans after a round, and the best bound. Raises what a search raised."""
        for outcome in in_order(self.place, carry_out, searches):
            if outcome.error is not None:
                raise outcome.error
            answer = outcome.value
            if answer is None:
                continue
            best = _both(problem, best, answer)
        return best


def carry_out(search: Search) -> Answer:
    """Carries out a search, in a worker. Its answer is no larger than the plan that it begins with."""
    options = evolve(search.options, until=time.monotonic() + search.seconds)
    budget = Budget.of(options, options.nodes).at(search.price)
    running = _IMPROVERS[search.strategy].search(search.problem, search.offset, options, budget)
    view, steps = _View(search, running), running.steps()
    while not budget.is_over and view.is_going_on() and advance(steps, budget, max(_LOOK // search.price, 1)):
        pass
    return view.answer()


@define(eq=False)
class _View:
    """What a search sees of the others, on the board, and they of it."""

    search: Search
    running: Improving
    taken: Answer | None = None
    looked: float = -PAUSE

    def is_going_on(self) -> bool:
        """Looks at the board now and then; returns whether there is more to search for."""
        if time.monotonic() < self.looked + PAUSE:
            return True
        self.looked = time.monotonic()
        try:
            shown: Answer | None = self.search.board.read()
        except BoardClosedError:
            return False
        problem, ours = self.search.problem, self.answer()
        best = ours if shown is None else _both(problem, shown, ours)
        if best is not shown:
            self.search.board.write(best)
        if not self.search.is_sharing:
            return True
        if arena_bytes(problem, best.offset) < arena_bytes(problem, ours.offset):
            self.running.take(best.offset)
            self.taken = best
        return arena_bytes(problem, best.offset) > max(self.search.options.goal, best.lower_bound)

    def answer(self) -> Answer:
        """Returns the best plan, who made it, and what this search proved."""
        problem, offset, taken = self.search.problem, self.running.offsets(), self.taken
        if taken is not None and arena_bytes(problem, taken.offset) <= arena_bytes(problem, offset):
            return evolve(taken, lower_bound=max(taken.lower_bound, self.running.proved))
        return Answer(offset, self.running.proved, self.search.strategy)


def _both(problem: Problem, best: Answer, other: Answer) -> Answer:
    """Returns the first of the smaller plans, with the higher bound; `best` itself where the other adds nothing."""
    is_smaller = arena_bytes(problem, other.offset) < arena_bytes(problem, best.offset)
    if not is_smaller and other.lower_bound <= best.lower_bound:
        return best
    return evolve(other if is_smaller else best, lower_bound=max(best.lower_bound, other.lower_bound))


@contextmanager
def _closed_by(stop: Stop, board: Board) -> Iterator[None]:
    """Closes the board when somebody asks to stop, so that searches under way end with what they have.

    It is closed again and again until all have ended: a write that comes behind a close may bring it back.
    """
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(PAUSE):
            if stop.is_asked:
                board.close()

    watcher = threading.Thread(target=watch, name="stop", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()


def _is_good(problem: Problem, best: Answer, options: SolverOptions) -> bool:
    is_late = time.monotonic() >= options.until
    return is_late or arena_bytes(problem, best.offset) <= max(options.goal, best.lower_bound)


def share(left: int) -> int:
    """Returns the nodes of a search where so many are left for all of a round."""
    return max(1, left // (SEARCHES + EXACT_SHARE - 1))


def _searches(problem: Problem, best: Answer, options: SolverOptions, number: int, board: Board) -> Iterator[Search]:
    """Yields the searches of a round: the exact one first, as it takes longest; the others have seeds of their own."""
    seconds = options.until - time.monotonic() if options.until < math.inf else math.inf
    plain = Search(problem, best.offset, "", 1, evolve(options, until=math.inf), max(seconds, 0.0), board)
    prices = {solver.name: price for solver, price, *_ in suitable_searches(problem)}
    if EXACT.name in prices:
        share = evolve(plain.options, nodes=EXACT_SHARE * options.nodes)
        yield evolve(plain, strategy=EXACT.name, price=prices[EXACT.name], options=share)
    others = [name for name in prices if name != EXACT.name]
    for place in range(SEARCHES - 1 if others else 0):
        strategy = others[place % len(others)]
        seed = options.seed + number * SEARCHES + place + 1
        yield evolve(plain, strategy=strategy, price=prices[strategy], options=evolve(plain.options, seed=seed))
