"""Branch and bound over all partitions: operator after operator goes into the parts that it may be in."""

import math

from attrs import define, field

from allocator.cuts.judge import Measure, Verdict, verdict
from allocator.cuts.problem import TRAFFIC, Cut, CutProblem

Row = tuple[tuple[int, int, int], ...]


@define(eq=False)
class Branching:
    """A search that begins with the best cut so far. Afterwards `best` has the best that fits.

    `is_whole` says that all partitions were looked at. `unknown`: the least objective of partitions that may fit,
    though no plan was found that does.
    """

    problem: CutProblem
    measure: Measure
    nodes: int
    best: tuple[Cut, ...] = ()
    unknown: float = math.inf
    is_whole: bool = True
    part_of: list[int] = field(factory=list)
    received: list[int] = field(init=False)
    seconds: list[float] = field(init=False)
    used: list[int] = field(init=False)
    count: list[int] = field(init=False)
    least: list[int] = field(init=False)
    had: set[tuple[int, int]] = field(factory=set)
    kept: set[tuple[int, int]] = field(factory=set)
    values: tuple[Row, ...] = field(init=False)
    weights: tuple[Row, ...] = field(init=False)
    first_of: dict[int, int] = field(factory=dict)
    unplaced: list[int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        parts, n = self.problem.parts, len(self.problem)
        self.received, self.used, self.count, self.least = ([0] * parts for _ in range(4))
        self.seconds = [0.0] * parts
        self.values, self.weights = self.problem.values.rows(n), self.problem.weights.rows(n)
        for group in self.problem.together:
            self.first_of |= dict.fromkeys(group, min(group))
        own = self.problem.weights.new_since(0, n).tolist()
        self.unplaced = [sum(own[i:]) for i in range(n + 1)]

    @property
    def limit(self) -> float:
        """Returns the objective that a partition has to be below to be better than the best."""
        return min((cut.objective for cut in self.best), default=math.inf) * (1 - 1e-12)

    def run(self) -> None:
        """Searches until all is seen or the nodes are used up."""
        self._place(0)

    def _place(self, operator: int) -> None:
        if operator == len(self.problem):
            self._end()
            return
        for part in self._choices(operator):
            if self.nodes <= 0:
                self.is_whole = False
                return
            self.nodes -= 1
            before = self._put(operator, part)
            if self._may_lead_on(operator, part):
                self._place(operator + 1)
            self._take(operator, part, before)

    def _choices(self, operator: int) -> range:
        lowest = max((self.part_of[maker] for _, maker, _ in self.values[operator]), default=0)
        first = self.first_of.get(operator, operator)
        if first == operator:
            return range(lowest, self.problem.parts)
        part = self.part_of[first]
        return range(part, part + 1) if part >= lowest else range(0)

    def _put(self, operator: int, part: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]], int]:
        """Puts an operator into a part; returns what `_take` needs to take it out again."""
        self.part_of.append(part)
        new, held = list[tuple[int, int]](), list[tuple[int, int]]()
        for thing, maker, nbytes in self.values[operator]:
            if self.part_of[maker] != part and (thing, part) not in self.had:
                new.append((thing, nbytes))
                self.had.add((thing, part))
        for thing, _, nbytes in self.weights[operator]:
            if (thing, part) not in self.kept:
                held.append((thing, nbytes))
                self.kept.add((thing, part))
        self.received[part] += sum(nbytes for _, nbytes in new)
        self.used[part] += sum(nbytes for _, nbytes in held)
        self.seconds[part] += self.problem.seconds[operator]
        self.count[part] += 1
        least = self.least[part]
        self.least[part] = max(least, int(self.problem.least[operator]))
        return new, held, least

    def _take(self, operator: int, part: int, before: tuple[list[tuple[int, int]], list[tuple[int, int]], int]) -> None:
        new, held, self.least[part] = before
        self.part_of.pop()
        self.had -= {(thing, part) for thing, _ in new}
        self.kept -= {(thing, part) for thing, _ in held}
        self.received[part] -= sum(nbytes for _, nbytes in new)
        self.used[part] -= sum(nbytes for _, nbytes in held)
        self.seconds[part] -= self.problem.seconds[operator]
        self.count[part] -= 1

    def _may_lead_on(self, operator: int, part: int) -> bool:
        """Returns whether a better partition may begin with the parts of the operators so far."""
        left = len(self.problem) - operator - 1
        return (
            self.used[part] + self.least[part] <= self.problem.capacities[part]
            and sum(self.used) + self.unplaced[operator + 1] <= sum(self.problem.capacities)
            and self.count.count(0) <= left
            and self._objective() < self.limit
        )

    def _objective(self) -> float:
        if self.problem.objective == TRAFFIC:
            return float(sum(self.received))
        return self.problem.total(map(self.problem.worth, self.received, self.seconds))

    def _end(self) -> None:
        objective = self._objective()
        outcome = verdict(self.problem, self.part_of, self.measure)
        if outcome is Verdict.FITS:
            self.best = (Cut(tuple(self.part_of), objective),)
        elif outcome is Verdict.UNKNOWN:
            self.unknown = min(self.unknown, objective)
