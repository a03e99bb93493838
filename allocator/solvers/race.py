"""Searches that take turns until nodes or time are over, each from the best plan of all."""

from collections.abc import Iterator
from typing import Protocol

from attrs import define, evolve, field, frozen

from allocator.problem import Problem
from allocator.progress import current
from allocator.solvers.base import ANY_COUNT, Answer, Solver, SolverOptions, arena_bytes
from allocator.solvers.ejection import EJECTION
from allocator.solvers.exact import EXACT
from allocator.solvers.hill_climb import HILL_CLIMB
from allocator.solvers.mirrored import MirroredSearch, mirrored
from allocator.solvers.placing.conflicts import count_conflicts
from allocator.solvers.quick import COVER, fits, is_hurried, is_large, quickest, suitable
from allocator.solvers.search.blocks import Blocks, BlockSearch
from allocator.solvers.search.budget import Budget
from allocator.solvers.search.steps import Improver, Search, advance
from allocator.solvers.stacked_peak import STACKED_PEAK, Peak
from allocator.solvers.strip_packing import STRIP_PACKING_COVER
from allocator.solvers.windows import IN_WINDOWS

_TURN = 2_000
"""Nodes of each search in the first round; each round has twice as many as the one before. tools/bench_solvers.py
shows what these numbers, and the prices below, are worth."""
_MOST_EXPLICIT_CONFLICTS = 200_000
"""The most pairs of conflicts with which the exact search begins: with more, its start takes too long."""
_MOST_CONFLICTS = 400_000
"""The most pairs of chunks that meet with which all searches take part: beyond, ejection search alone pays."""
_LEAST_UNITS, _MOST_UNITS, _BLOCKS = 100, 100_000, 4
"""Chunks for which blocks are tried, and how many times fewer the blocks have to be."""
_MOST_WEIGHT, _LEAST_WEIGHT_EXACT = 8, 4
"""The most turns' nodes that a search which pays has in one round, and the least of the exact search, which finds
nothing for long and then much; the others have 1."""
_LEAST_PART = 4
"""Searches have at least this part of the nodes, the fourth, whatever the quick strategies took."""


class _Strategy(Solver, Improver, Protocol):
    """A strategy that searches on from a plan."""


def search_in_turns(problem: Problem, options: SolverOptions, nodes: int, best: Answer) -> Answer:
    """Returns the best answer of searches that begin with one of the quick strategies, and the bound that they proved.

    Where the options limit neither nodes nor time there are `nodes` nodes, less those that the quick strategies took.
    """
    budget = Budget.of(options, nodes)
    blocks = _blocks(problem, budget)
    if blocks is None and is_large(problem) and fits(problem, COVER):
        best = quickest(problem, options, (COVER,), best)
    if not options.is_limited:
        budget.spend(max(min(best.nodes, budget.left - nodes // _LEAST_PART), 0))
    race = _Race(problem, options, budget, best, blocks)
    race.run()
    return race.best


@define(eq=False)
class _Race:
    """The best answer of searches that take turns."""

    problem: Problem
    options: SolverOptions
    budget: Budget
    best: Answer
    blocks: Blocks | None
    runners: "dict[_Entrant, _Runner]" = field(factory=dict, init=False)
    arena: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.arena = arena_bytes(self.problem, self.best.offset)
        self.budget.found(self.arena)

    @property
    def is_over(self) -> bool:
        """Returns whether the arena is good enough, or proved to be the smallest, or the budget spent."""
        return self.arena <= max(self.options.goal, self.best.lower_bound) or self.budget.is_over

    def run(self) -> None:
        """Gives each search its turn, in rounds of more and more nodes."""
        entrants, nodes = _entrants(self.problem, self.options, self.budget), _TURN
        if self.blocks is not None:
            entrants += _entrants_on_blocks(self.blocks, self.options, self.budget)
        self.budget.found(self.arena)  # a plan of blocks may have been told since
        while entrants and not self.is_over:
            entrants = [entrant for entrant in entrants if self._is_going_on(entrant, nodes)]
            nodes *= 2

    def _is_going_on(self, entrant: "_Entrant", nodes: int) -> bool:
        """Gives a search its turn. Returns whether it has not ended."""
        if self.is_over or entrant.start_nodes > nodes:
            return True
        current().item = f"by {entrant.solver.name}"
        runner = self._begun(entrant)
        search = runner.search
        if search.arena > self.arena:
            search.take(self.best.offset)
        goes_on = advance(runner.steps, entrant.budget, -(-nodes * runner.weight // entrant.budget.price))
        arena, proved = min(search.arena, self.arena), max(search.proved, self.best.lower_bound)
        pays = arena < self.arena or proved > self.best.lower_bound
        runner.weight = min(2 * runner.weight, _MOST_WEIGHT) if pays else max(runner.weight // 2, entrant.least_weight)
        if arena < self.arena:
            self.arena, self.best = arena, Answer(search.offsets(), maker=entrant.solver.name)
            self.budget.found(arena)
        self.best = evolve(self.best, lower_bound=proved)
        return goes_on

    def _begun(self, entrant: "_Entrant") -> "_Runner":
        """Returns the search of an entrant, which starts from the best plan at its first turn."""
        if entrant not in self.runners:
            search = entrant.solver.search(self.problem, self.best.offset, self.options, entrant.budget)
            self.runners[entrant] = _Runner(search, search.steps(), entrant.least_weight)
        return self.runners[entrant]


@frozen(eq=False)
class _Entrant:
    """A strategy in the race. Its start takes as long as `start_nodes` nodes.

    In each round it has at least `least_weight` times the nodes of a turn.
    """

    solver: Improver
    budget: Budget
    start_nodes: int
    least_weight: int


@define(eq=False)
class _Runner:
    """A search that has begun. In each round it has `weight` times the nodes of a turn."""

    search: Search
    steps: Iterator[None]
    weight: int


def _entrants(problem: Problem, options: SolverOptions, budget: Budget) -> list[_Entrant]:
    """Returns the searches that are suitable."""
    if is_hurried(problem, options):
        return [_Entrant(IN_WINDOWS, budget.at(1), 0, 1)]
    entrants = _entrants_from_above(problem, options, budget) + [
        _Entrant(solver, budget.at(price), start_nodes, least_weight)
        for solver, price, start_nodes, least_weight in suitable_searches(problem)
    ]
    if len(Peak.of(problem)):
        entrants.append(_Entrant(STACKED_PEAK, budget.at(1), len(problem), 1))
    return entrants


def _entrants_from_above(problem: Problem, options: SolverOptions, budget: Budget) -> list[_Entrant]:
    """Returns an exact search that has chosen what lies topmost, where that matters: it proves nothing for others."""
    mirror = mirrored(problem, options.goal)
    if mirror is None:
        return []
    return [
        _Entrant(MirroredSearch(solver, mirror), budget.at(price, is_restricted=True), start_nodes, 1)
        for solver, price, start_nodes, _ in suitable_searches(mirror.problem)
        if solver is EXACT
    ]


def _blocks(problem: Problem, budget: Budget) -> Blocks | None:
    """Returns the blocks of a problem; None where there are not few of them."""
    if not _LEAST_UNITS <= len(problem) <= _MOST_UNITS or not fits(problem, STRIP_PACKING_COVER):
        return None
    blocks = Blocks.of(problem, budget)
    return None if budget.is_over or _BLOCKS * len(blocks.problem) > len(blocks.ids) else blocks


def _entrants_on_blocks(blocks: Blocks, options: SolverOptions, budget: Budget) -> list[_Entrant]:
    """Returns the searches that are suitable for blocks."""
    start = quickest(blocks.problem, options, suitable(blocks.problem, options)).offset
    return [
        _Entrant(BlockSearch(solver, blocks, start), budget.at(price, is_restricted=True), start_nodes, least_weight)
        for solver, price, start_nodes, least_weight in suitable_searches(blocks.problem)
    ]


def suitable_searches(problem: Problem) -> list[tuple[_Strategy, int, int, int]]:
    """Returns the searches that suit a problem, with the prices of a node and of the start, and their least weight."""
    pairs, count = count_conflicts(problem), max(len(problem), 1)
    mean = 2 * pairs // count
    most = _MOST_CONFLICTS if problem.conflicts is None else _MOST_EXPLICIT_CONFLICTS
    candidates: tuple[tuple[_Strategy, int, int, int, int], ...] = (
        (EXACT, 1 + mean // 30, pairs // 10, _LEAST_WEIGHT_EXACT, most),
        (EJECTION, 1, count, 1, ANY_COUNT),
        (HILL_CLIMB, 15 + pairs // 200, pairs // 10, 1, _MOST_CONFLICTS),
    )
    return [
        (solver, price, start_nodes, least_weight)
        for solver, price, start_nodes, least_weight, most in candidates
        if pairs <= most and fits(problem, solver)
    ]
