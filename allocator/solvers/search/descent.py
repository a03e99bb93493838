"""One part of a problem, searched for plans within given capacities: kernel and arrays behind a few verbs."""

from collections.abc import Iterator

import numpy as np
from attrs import define, field, frozen

from allocator.kernels import skyline
from allocator.kernels.skyline import BASE, SkylineSearch
from allocator.machine_code.arrays import compiled
from allocator.problem import FREE, Column, align_up
from allocator.ragged import row_starts
from allocator.solvers.search.bodies import Bodies, grain
from allocator.solvers.search.budget import Budget
from allocator.solvers.search.steps import Steps

_PLAIN = 12
"""Bodies up to which the plain kernel is tried first, so that small problems never wait for a compiler."""
_TRIAL = 1_000
"""Nodes that the plain kernel may take. More avoid compiling more often, and take longer once it is compiled."""
_ORDERS = ("WAT", "TAW", "TWA", "AWT", "SAW", "DAW")
"""Static orders: life (W), area (A), heaviest clique (T), size (S), neighbours (D); largest first, ties by the next."""
_CHANCES = {"W": 0.3, "D": 0.3, "A": 0.2, "T": 0.1, "S": 0.1}
"""The chance of each key to come first where an order is drawn. Keys with a larger one are tried more often."""
_MANNERS = (skyline.BY_SLACK, skyline.BY_BOTH, skyline.BY_STRAIN, skyline.BY_RANK)
_HALVINGS = 5
"""How often the way from the goal to the best arena is halved, at most, to probe a capacity between them."""
_FIRST = 1_000
"""Nodes that each way of searching has at first."""
_WORK, _LEAST_WAYS = 24_000, 4
"""Bodies times ways of a probe, and the least ways: one dive through thousands of bodies takes long."""
_NOISES = (0.02, 0.1, 0.3)
"""How much keys are stirred from the second round on: standard deviation of their logarithm."""


@frozen
class Way:
    """One way of searching: which body comes first."""

    order: str
    manner: int


WAYS = tuple(Way(order, manner) for order in _ORDERS for manner in _MANNERS)


@define(eq=False)
class Descent:
    """Depth-first searches over the bodies of one part, each of them solid.

    `proved` is a lower bound of the part's arena; `offset` (of each body) is a plan in `arena` bytes.
    """

    part: Bodies
    offset: Column
    seed: int = 0
    ways: list[Way] = field(factory=lambda: list(WAYS), init=False)
    arena: int = field(init=False)
    proved: int = field(init=False)
    grain: int = field(init=False)
    """Arenas are multiples of so many bytes."""
    _effort: int = field(default=0, init=False)
    _plain_nodes: int = field(default=_TRIAL, init=False)
    _search: SkylineSearch = field(init=False)
    _keys: dict[str, Column] = field(init=False)
    _spare: Column = field(init=False)
    _draw: "np.random.Generator" = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._search = _arrays(self.part)
        self._keys = _keys(self.part)
        self._draw = np.random.default_rng(self.seed)
        self.arena = int((self.offset + self.part.size).max(initial=0))
        starts, members = self.part.cliques.start[:-1], self.part.cliques.item
        bulk = self._search.bodies[skyline.BULK, :-1]
        self._spare = np.maximum.reduceat((bulk - self.part.size)[members], starts)
        bulk = np.add.reduceat(bulk[members], starts)
        pinned_end = (self.part.pinned + self.part.size)[self.part.pinned != FREE].max(initial=0)
        numbers = np.concatenate((self.part.size, self.part.pinned[self.part.pinned != FREE]))
        self.grain = grain(int(np.gcd.reduce(numbers)), self.part.alignment) or 1
        bound = max(int((bulk - self._spare).max(initial=0)), int(pinned_end))
        self.proved = align_up(bound, self.grain)

    def improve(self, goal: int, budget: Budget) -> Steps[None]:
        """Probes the goal, then capacities nearer and nearer to the best arena until one is found; then more effort."""
        low, is_even = max(goal, self.proved), self._effort % 2 == 0
        if (yield from self.probe(low, self._effort, budget, is_deep=is_even)):
            return
        for halvings in range(1, _HALVINGS + 1):
            is_deep = halvings == 1 and not is_even
            step = (self.arena - low) >> halvings
            while step > 0 and not budget.is_over:
                if not (yield from self.probe(self.arena - step, self._effort, budget, is_deep=is_deep)):
                    break
                step = (self.arena - low) >> halvings
        self._effort += 1

    def take(self, offset: Column) -> None:
        """Goes on from another plan if it is smaller: an offset for each body."""
        arena = int((offset + self.part.size).max(initial=0))
        if arena < self.arena:
            self.offset, self.arena = offset, arena

    def probe(self, capacity: int, effort: int, budget: Budget, *, is_deep: bool = False) -> Steps[bool]:
        """Looks for a plan within a capacity, in each way. True where the part's arena shrank to it.

        `effort` counts from 0: the first time orders are the known ones, later they are drawn and stirred, and each way
        has more and more nodes: success is mostly a matter of luck in the first decisions, so many short searches find
        more than few long ones (heavy tails: Gomes, Selman, Crato and Kautz 2000). In a deep probe the first way
        has twice as many with each effort, so that proofs end. The way that finds a plan comes first the next time.
        `proved` rises where there is no plan.
        """
        capacity -= capacity % self.grain
        if capacity < self.proved:
            return False
        noise = _NOISES[(effort - 1) % len(_NOISES)] if effort else 0.0
        most = max(_WORK // max(len(self.part), 1), _LEAST_WAYS)
        least = max(_FIRST, 2 * len(self.part))
        for place, old in enumerate(tuple(self.ways[:most])):
            nodes = least << min(effort, 30) if is_deep and not place else least * (1 + effort)
            way = Way(self._drawn_order(), old.manner) if place and effort else old
            outcome = yield from self._run(way, noise, capacity, nodes, budget)
            if outcome == skyline.FOUND:
                self.take(self._search.state[BASE, : len(self.part)].copy())
                self.ways.remove(old)
                self.ways.insert(0, way)
                return True
            if outcome == skyline.EXHAUSTED:
                self.proved = max(self.proved, capacity + self.grain)
            if outcome == skyline.EXHAUSTED or budget.is_over:
                return False
        return False

    def _run(self, way: Way, noise: float, capacity: int, nodes: int, budget: Budget) -> Steps[int]:
        s = self._search
        s.bodies[skyline.LATEST, :-1] = capacity - self.part.size
        s.bodies[skyline.RANK, :-1] = self._rank(way.order, noise)
        s.cliques[skyline.ROOM, :-1] = capacity + self._spare
        is_small = len(self.part) <= _PLAIN and self._plain_nodes > 0
        explore = skyline.explore if is_small else compiled(skyline.explore)
        (skyline.prepare if is_small else compiled(skyline.prepare))(s)
        outcome = skyline.OUT_OF_NODES
        for portion in _portions(nodes, budget):
            before = int(s.cursor[skyline.NODES])
            outcome = explore(s, way.manner, portion)
            while outcome == skyline.OUT_OF_ROOM:
                s = self._search = _with_more_room(s)
                outcome = explore(s, way.manner, portion)
            budget.spend(int(s.cursor[skyline.NODES]) - before)
            self._plain_nodes -= int(s.cursor[skyline.NODES]) - before
            yield
            if outcome != skyline.OUT_OF_NODES:
                break
        return outcome

    def _drawn_order(self) -> str:
        letters = self._draw.choice(list(_CHANCES), 3, replace=False, p=list(_CHANCES.values()))
        return "".join(letters.tolist())

    def _rank(self, order: str, noise: float) -> Column:
        """Returns the place of each body in an order. Bodies that are alike in all keys may change places."""
        by_key = [-self._keys[letter] for letter in reversed(order)]
        if noise:
            by_key = [key * np.exp(noise * self._draw.standard_normal(len(key))) for key in by_key]
        rank = np.empty(len(self.part), np.int64)
        part = self.part
        rank[np.lexsort((part.root, part.end, part.begin, -part.size, *by_key))] = np.arange(len(part))
        return rank


def _portions(nodes: int, budget: Budget) -> Iterator[int]:
    while nodes > 0 and (portion := budget.portion(nodes)):
        nodes -= portion
        yield portion


def _arrays(part: Bodies) -> SkylineSearch:
    """Returns a search with empty tables of the right sizes; capacity and order are entered before each run."""
    n, cliques = len(part), len(part.cliques)
    cell = int(np.gcd.reduce(part.alignment))
    clique, member = part.cliques.row_of_each(), part.cliques.item
    search = SkylineSearch(
        bodies=np.zeros((8, n + 1), np.int64),
        near=part.near.item.copy(),
        home=clique[np.lexsort((clique, member))],
        cliques=np.zeros((5, cliques + 1), np.int64),
        member=member.copy(),
        urgency=np.zeros(cliques),
        strain=np.append(np.zeros(cliques), 1.0),
        state=np.zeros((4, n), np.int64),
        trail=np.zeros((64 * n + 32 * cliques, 3), np.int64),
        decisions=np.zeros((4 * n + 4, 3), np.int64),
        cursor=np.zeros(6, np.int64),
    )
    search.bodies[skyline.SIZE, :n] = part.size
    search.bodies[skyline.BULK, :n] = -(-part.size // cell) * cell
    search.bodies[skyline.ALIGNMENT, :n] = part.alignment
    search.bodies[skyline.PINNED, :n] = part.pinned
    search.bodies[skyline.NEAR, :] = part.near.start
    search.bodies[skyline.HOME, :] = row_starts(member, n)
    search.cliques[skyline.MEMBER, :] = part.cliques.start
    return search


def _with_more_room(s: SkylineSearch) -> SkylineSearch:
    return s._replace(
        trail=np.concatenate((s.trail, np.zeros_like(s.trail)), axis=0),
        decisions=np.concatenate((s.decisions, np.zeros_like(s.decisions)), axis=0),
    )


def _keys(part: Bodies) -> dict[str, Column]:
    """Returns the keys of static orders, of each body."""
    life = (part.end - part.begin).astype(float)
    weight = np.add.reduceat(part.size[part.cliques.item], part.cliques.start[:-1])
    heaviest = np.zeros(len(part))
    np.maximum.at(heaviest, part.cliques.item, weight[part.cliques.row_of_each()])
    return {"W": life, "A": life * part.size, "T": heaviest, "S": part.size, "D": np.diff(part.near.start)}
