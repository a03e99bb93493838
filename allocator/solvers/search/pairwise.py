"""One part of a problem whose bodies are not all rectangles, searched for plans within given capacities."""

from collections.abc import Iterator

import numpy as np
from attrs import define, field

from allocator.kernels import pairs
from allocator.kernels.pairs import PairSearch
from allocator.machine_code.arrays import compiled
from allocator.problem import FREE, Column, Problem
from allocator.ragged import row_starts
from allocator.solvers.search.bodies import Bodies, grain
from allocator.solvers.search.budget import Budget
from allocator.solvers.search.descent import Descent
from allocator.solvers.search.profiles import PairGaps, Pieces, alike, pair_gaps, pieces, without_mirrors
from allocator.solvers.search.steps import Steps

_PLAIN = 12
"""Bodies up to which the plain kernel is tried first, so that small problems never wait for a compiler."""
_TRIAL = 100
"""Nodes that the plain kernel may take. More avoid compiling more often, and take longer once it is compiled."""
_MANNERS = (pairs.BY_STRAIN, pairs.BY_HEIGHT, pairs.BY_REGRET)
_PRICE = 10
"""Nodes of a budget that one node costs: it does more work than a node of a search of rectangles. Trades the quality of
plans for the time of a search; tools/bench_solvers.py shows both."""
_WORK = 1_000_000
"""Pairs times nodes between two looks at the clock."""
_HALVINGS = 5
"""How often the way from the goal to the best arena is halved, at most, to probe a capacity between them."""
_FIRST = 1_000
"""Nodes that each manner has at first."""
_NOISE = 0.3
"""How much bodies are stirred from the second round on: standard deviation of the logarithm of their weights."""
_ON_HULLS = 2_000
"""Nodes of the first round among hulls."""


@define(eq=False)
class Pairwise:
    """A search over the bodies of one part, solid or not; `Descent` is for parts whose bodies are all rectangles.

    `proved` is a lower bound of the part's arena; `offset` (of each body of `part`) is a plan in `arena` bytes.
    """

    part: Bodies
    offset: Column
    arena: int = field(init=False)
    proved: int
    grain: int
    """Arenas are multiples of so many bytes."""
    _search: PairSearch
    _hulls: Descent
    _draw: "np.random.Generator"
    _effort: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.arena = int((self.offset + self.part.size).max())

    @classmethod
    def of(cls, problem: Problem, part: Bodies, offset: Column, seed: int) -> "Pairwise":
        """Returns a search that starts from a plan: an offset for each body."""
        made_of = pieces(problem, part)
        gaps = pair_gaps(part, made_of)
        if problem.conflicts is None:
            gaps = without_mirrors(gaps, alike(part, made_of, gaps))
        cell = int(np.gcd.reduce(part.alignment))
        bulk, shift = _in_cells(made_of, cell)
        numbers = np.concatenate((made_of.size, made_of.shift, part.pinned[part.pinned != FREE]))
        return cls(
            part,
            offset,
            _bound(part, made_of, bulk),
            grain(int(np.gcd.reduce(numbers)), part.alignment),
            _arrays(part, made_of, gaps, shift, bulk),
            Descent(part, offset, seed),
            np.random.default_rng(seed),
        )

    def improve(self, goal: int, budget: Budget) -> Steps[None]:
        """Probes the goal, then capacities nearer and nearer to the best arena until one is found; then more effort.

        Few bodies of real problems interlock, and in large parts good plans are found sooner among
        hulls: they come first, with few nodes. Proofs are mostly found here.
        """
        yield from self._improve_hulls(goal, budget)
        low = max(goal, self.proved)
        if self.arena <= low or budget.is_over or (yield from self.probe(low, self._effort, budget)):
            return
        for halvings in range(1, _HALVINGS + 1):
            step = (self.arena - low) >> halvings
            while step > 0 and not budget.is_over:
                if not (yield from self.probe(self.arena - step, self._effort, budget)):
                    break
                step = (self.arena - low) >> halvings
        if not budget.is_over and self.arena > max(low, self.proved):
            yield from self.probe(self.arena - 1, self._effort, budget)
        self._effort += 1

    def _improve_hulls(self, goal: int, budget: Budget) -> Steps[None]:
        """Improves the plan of the hulls of bodies.

        Where all bodies are solid, bounds of hulls are bounds of bodies.
        """
        hulls = self._hulls
        hulls.take(self.offset)
        if hulls.arena <= max(goal, hulls.proved) or budget.is_over:
            return
        until = budget.spent + (_ON_HULLS << min(self._effort, 30))
        for _ in hulls.improve(max(goal, self.proved), budget):
            if budget.spent >= until:
                break
            yield
        self.take(hulls.offset)
        if self.part.is_solid.all():
            self.proved = max(self.proved, hulls.proved)

    def take(self, offset: Column) -> None:
        """Goes on from another plan if it is smaller: an offset for each body."""
        arena = int((offset + self.part.size).max())
        if arena < self.arena:
            self.offset, self.arena = offset, arena

    def probe(self, capacity: int, effort: int, budget: Budget) -> Steps[bool]:
        """Looks for a plan within a capacity. True where the arena shrank to it; `proved` rises where there is none.

        The manners that hope for luck have few nodes, the first one twice as many with each effort, so that proofs end.
        """
        capacity -= capacity % self.grain
        if capacity < self.proved:
            return False
        for manner in _MANNERS:
            nodes = _FIRST << min(effort, 40) if manner == _MANNERS[0] else _FIRST * (1 + effort)
            outcome = yield from self._run(manner, _NOISE if effort else 0.0, capacity, nodes, budget)
            if outcome == pairs.FOUND:
                self.take(self._search.bodies[pairs.LOWEST, :-1].copy())
                return True
            if outcome == pairs.EXHAUSTED:
                self.proved = max(self.proved, capacity + self.grain)
            if outcome == pairs.EXHAUSTED or budget.is_over:
                return False
        return False

    def _run(self, manner: int, noise: float, capacity: int, nodes: int, budget: Budget) -> Steps[int]:
        s, count = self._search, len(self.part)
        s.weights[pairs.STIR, :count] = np.exp(noise * self._draw.standard_normal(count))
        is_small = count <= _PLAIN
        (pairs.prepare if is_small else compiled(pairs.prepare))(s, capacity)
        outcome = pairs.OUT_OF_NODES
        for portion in _portions(_TRIAL if is_small else 1 + _WORK // s.pairs.shape[1], nodes, budget):
            explore = pairs.explore if is_small else compiled(pairs.explore)
            before = int(s.cursor[pairs.NODES])
            outcome = explore(s, manner, portion)
            while outcome == pairs.OUT_OF_ROOM:
                s = self._search = s._replace(trail=np.concatenate((s.trail, np.zeros_like(s.trail))))
                outcome = explore(s, manner, before + portion - int(s.cursor[pairs.NODES]))
            budget.spend(_PRICE * (int(s.cursor[pairs.NODES]) - before))
            yield
            if outcome != pairs.OUT_OF_NODES:
                break
            is_small = False
        return outcome


def _portions(most: int, nodes: int, budget: Budget) -> Iterator[int]:
    """Yields slices of a number of nodes, of at most `most` each."""
    while nodes > 0 and (paid := budget.portion(_PRICE * min(nodes, most))):
        portion = -(-paid // _PRICE)
        nodes -= portion
        yield portion


def _in_cells(made_of: Pieces, cell: int) -> tuple[Column, Column]:
    """Returns the cells of `cell` bytes that no piece shares: (bytes, where they begin in the body) of each piece.

    Pieces that begin at the edge of a cell own all that they touch, others what they fill (see `bounds`).
    """
    skew = made_of.shift % cell
    before = np.where(skew > 0, cell - skew, 0)
    filled = np.maximum(made_of.size - before, 0) // cell * cell
    bulk = np.where(skew > 0, filled, -(-made_of.size // cell) * cell)
    return bulk, made_of.shift + before


def _bound(part: Bodies, made_of: Pieces, bulk: Column) -> int:
    """Returns the heaviest clique, and the highest pinned end."""
    starts, members = made_of.cliques.start[:-1], made_of.cliques.item
    unused = np.maximum.reduceat(np.maximum(bulk - made_of.size, 0)[members], starts)
    heaviest = int((np.add.reduceat(bulk[members], starts) - unused).max())
    return max(heaviest, int((part.pinned + part.size)[part.pinned != FREE].max(initial=0)))


def _arrays(part: Bodies, made_of: Pieces, gaps: PairGaps, shift: Column, bulk: Column) -> PairSearch:
    """Returns a search with empty tables of the right sizes."""
    n, total = len(part), len(gaps.one)
    kept = bulk[made_of.cliques.item] > 0
    rows, item = made_of.cliques.row_of_each()[kept], made_of.cliques.item[kept]
    owner, ends = made_of.owner[item], np.concatenate((gaps.one, gaps.other))
    search = PairSearch(
        bodies=np.zeros((11, n + 1), np.int64),
        edges=np.tile(np.arange(total), 2)[np.argsort(ends, kind="stable")],
        pairs=np.zeros((7, total + 1), np.int64),
        gaps=np.stack((gaps.low, gaps.high)),
        slots=np.zeros((6, len(item)), np.int64),
        cliques=np.zeros((2, len(made_of.cliques) + 1), np.int64),
        home=rows[np.argsort(owner, kind="stable")],
        weights=np.concatenate((np.zeros((1, n + 1)), np.ones((1, n + 1)))),
        trail=np.zeros((16 * (n + total) + 64, 4), np.int64),
        decisions=np.zeros((len(gaps.low) + 2, 5), np.int64),
        cursor=np.zeros(8, np.int64),
    )
    search.weights[pairs.STRAIN, n] = 1.0
    search.bodies[: pairs.EDGE, :n] = part.size, part.alignment, part.pinned
    search.bodies[pairs.EDGE, :] = row_starts(ends, n)
    search.bodies[pairs.HOME, :] = row_starts(owner, n)
    search.pairs[: pairs.GAP, :-1] = gaps.one, gaps.other
    search.pairs[pairs.GAP, :] = gaps.start
    search.slots[: pairs.BOTTOM, :] = owner, shift[item], bulk[item]
    search.slots[pairs.ORDER, :] = np.arange(len(item))
    search.cliques[pairs.MEMBER, :] = np.searchsorted(rows, np.arange(len(made_of.cliques) + 1))
    return search
