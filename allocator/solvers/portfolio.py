"""The best of several strategies: quick ones, then searches that take turns until nodes or time are over."""

import math
import time
from collections.abc import Iterator, Sequence
from typing import Protocol

from attrs import define, evolve, field, frozen

from allocator.interrupts import current_stop
from allocator.problem import Problem
from allocator.progress import current
from allocator.solvers.base import ANY_COUNT, Answer, Solver, SolverOptions, Traits, arena_bytes, unsupported_reason
from allocator.solvers.ejection import EJECTION
from allocator.solvers.exact import EXACT
from allocator.solvers.first_fit import FIRST_FIT
from allocator.solvers.greedy import GREEDY_BY_BREADTH, GREEDY_BY_SIZE
from allocator.solvers.hill_climb import HILL_CLIMB
from allocator.solvers.megengine import PUSHDOWN_SORTED
from allocator.solvers.naive import NAIVE
from allocator.solvers.placing.conflicts import count_conflicts
from allocator.solvers.search.blocks import Blocks, BlockSearch
from allocator.solvers.search.budget import Budget
from allocator.solvers.search.steps import Improver, Search, advance
from allocator.solvers.stacked_peak import STACKED_PEAK, Peak
from allocator.solvers.strip_packing import STRIP_PACKING_BESTFIT, STRIP_PACKING_COVER

_COVER = evolve(STRIP_PACKING_COVER, nodes=240_000, meetings=40_000_000)
"""Ends within two seconds, and leaves to the searches what has no place then, if first fit needs more than half one."""
_QUICK: tuple[Solver, ...] = (
    PUSHDOWN_SORTED,
    GREEDY_BY_SIZE,
    GREEDY_BY_BREADTH,
    STRIP_PACKING_BESTFIT,
    _COVER,
    FIRST_FIT,
    NAIVE,
)
"""The cheapest first: the first that meets the goal is the last."""
_QUICK_AND_LARGE: tuple[Solver, ...] = (PUSHDOWN_SORTED,)
"""The same for large problems; _COVER comes next where these have no blocks. Where none of them fits, FIRST_FIT."""
_TURN = 2_000
"""Nodes of each search in the first round; each round has twice as many as the one before. tools/bench_solvers.py
shows what these numbers, and the prices below, are worth."""
_MOST_EXPLICIT_CONFLICTS = 200_000
"""The most pairs of conflicts with which the exact search begins: with more, its start takes too long."""
_MOST_CONFLICTS = 400_000
"""The most pairs of chunks that meet with which all searches take part: beyond, ejection search alone pays."""
_LARGE, _MANY_MEETINGS = 50_000, 1_000_000
"""Chunks, and pairs of them that meet, from which on few quick strategies are enough: in the time of another one,
ejection search gets further."""
_CHUNKS_OF_NODE, _MEETINGS_OF_NODE = 2, 100
"""Chunks and pairs that meet which the other quick strategies handle in the time of one node of a search."""
_LEAST_PART = 4
"""Searches have at least this part of the nodes, the fourth, whatever the quick strategies took."""
_LEAST_UNITS, _MOST_UNITS, _BLOCKS = 100, 100_000, 4
"""Chunks for which blocks are tried, and how many times fewer the blocks have to be."""
_MOST_WEIGHT, _LEAST_WEIGHT_EXACT = 8, 4
"""The most turns' nodes that a search which pays has in one round, and the least of the exact search, which finds
nothing for long and then much; the others have 1."""


class _Strategy(Solver, Improver, Protocol):
    """A strategy that searches on from a plan."""


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
        best = _quickest(problem, options, _suitable(problem))
        if arena_bytes(problem, best.offset) <= options.goal:
            return best
        budget = Budget.of(options, self.nodes)
        blocks = _blocks(problem, budget)
        if blocks is None and _is_large(problem) and _fits(problem, _COVER):
            best = _quickest(problem, options, (_COVER,), best)
        if not options.is_limited:
            budget.spend(max(min(best.nodes, budget.left - self.nodes // _LEAST_PART), 0))
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
        entrants, nodes = _entrants(self.problem, self.budget), _TURN
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


def _entrants(problem: Problem, budget: Budget) -> list[_Entrant]:
    """Returns the searches that are suitable."""
    entrants = [
        _Entrant(solver, budget.at(price), start_nodes, least_weight)
        for solver, price, start_nodes, least_weight in suitable_searches(problem)
    ]
    if len(Peak.of(problem)):
        entrants.append(_Entrant(STACKED_PEAK, budget.at(1), len(problem), 1))
    return entrants


def _blocks(problem: Problem, budget: Budget) -> Blocks | None:
    """Returns the blocks of a problem; None where there are not few of them."""
    if not _LEAST_UNITS <= len(problem) <= _MOST_UNITS or not _fits(problem, STRIP_PACKING_COVER):
        return None
    blocks = Blocks.of(problem, budget)
    return None if budget.is_over or _BLOCKS * len(blocks.problem) > len(blocks.ids) else blocks


def _entrants_on_blocks(blocks: Blocks, options: SolverOptions, budget: Budget) -> list[_Entrant]:
    """Returns the searches that are suitable for blocks."""
    start = _quickest(blocks.problem, options, _suitable(blocks.problem)).offset
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
        if pairs <= most and _fits(problem, solver)
    ]


def _quickest(
    problem: Problem, options: SolverOptions, solvers: Sequence[Solver], best: Answer | None = None
) -> Answer:
    """Returns the smallest arena of some strategies and of a plan (ties: the first), with the nodes of all of them."""
    arena, seen = math.inf if best is None else arena_bytes(problem, best.offset), current()
    best = best or Answer(())
    spent = best.nodes
    nodes = len(problem) // _CHUNKS_OF_NODE + count_conflicts(problem) // _MEETINGS_OF_NODE
    for solver in solvers:
        if arena < math.inf and (arena <= options.goal or current_stop().is_asked or time.monotonic() >= options.until):
            break
        seen.item = f"by {solver.name}"
        answer = solver.solve(problem, options)
        spent += answer.nodes or nodes
        if arena_bytes(problem, answer.offset) < arena:
            seen.best = arena = arena_bytes(problem, answer.offset)
            current_stop().has_plan = True
            best = Answer(answer.offset, answer.lower_bound, solver.name)
    return evolve(best, nodes=spent)


def _suitable(problem: Problem) -> list[Solver]:
    """Returns the quick strategies for a problem."""
    solvers = _QUICK_AND_LARGE if _is_large(problem) else _QUICK
    return [solver for solver in solvers if _fits(problem, solver)] or [FIRST_FIT]


def _is_large(problem: Problem) -> bool:
    """Returns whether few quick strategies are enough: those that take no pins and conflicts leave these to others."""
    is_quick = all(_fits(problem, solver) for solver in _QUICK_AND_LARGE)
    return len(problem) >= _LARGE or (is_quick and count_conflicts(problem) > _MANY_MEETINGS)


def _fits(problem: Problem, solver: Solver) -> bool:
    return not unsupported_reason(problem, solver) and len(problem) <= solver.traits.most_chunks


PORTFOLIO = Portfolio()
