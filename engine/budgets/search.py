"""The search for the cheapest way to a budget: bounds and estimates first, then plans, then runs of a few."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack, cast

from attrs import define, evolve, field, frozen

from allocator.errors import AllocatorError
from allocator.problem import NO_CAPACITY
from allocator.progress import Activity, each
from engine.api import compile_graph, make_plan
from engine.budgets.candidates import Candidate, Candidates
from engine.budgets.ladder import Clash, Ladder, Run, Smaller, Way
from engine.budgets.steps import KEPT, LAST_BITS, LATE, ROUNDED, Step, Steps, combinations, steps_from
from engine.graph.graph import Graph
from engine.graph.opaque import opaque_operators
from engine.passes.automatic import optimised, plan_optimised
from engine.planning.options import Options, PlanOptions, check_one_arena, parse_budget
from engine.planning.placed import PlacedPlan
from engine.planning.planner import check_outputs
from engine.report.peak import peak_of
from engine.system.arrays import largest_difference, random_arrays
from engine.system.threads import cpus
from engine.text.errors import BudgetError, EngineError, GraphError
from ops.tensor.errors import OpError
from ops.tensor.spec import Array

MOST_TIMED = 5
"""Ways that are run beside the one as asked; each takes a compilation."""
FAR = 10.0
"""A way that is estimated to take so many times as long as the best is not run."""
ALIKE = 1.1
"""Times within this factor are taken for equal: the bits decide."""
MOST_AGAIN = 3
"""Kinds of ways in which another order and running operators again are tried."""
MOST_CLASHES = 5
CLEAR = 1.01
"""Two steps work against each other where they need so many times the bytes of the better one."""
_RUNS, _SECONDS = 5, 0.3
"""A way runs so many times, or until so many seconds have passed."""
_LARGE, _VERY_LARGE = 400, 2_000
"""Numbers of operators from which on two steps are combined at most, and one."""
_SEVERITY = {KEPT: 0, LAST_BITS: 1, ROUNDED: 2}


@frozen(eq=False)
class Resized:
    """The same model at a smaller length; `load` returns its graph, or raises where the model does not allow it."""

    name: str
    length: int
    how: str
    load: Callable[[], Graph]


def budget_ladder(graph: Graph, budget: int | str, **options: Unpack[PlanOptions]) -> Ladder:
    """Searches for the cheapest way to keep a graph's arena within a budget, from some options of `make_plan` on.

    Cheapest is that with the least time of a run, and among equals the one that changes fewest bits of outputs. Inputs
    are drawn at random with the option `seed`. Operators may run again. Raises OptionError, GraphError (open lengths),
    BudgetError where the inputs or an output alone have more bytes.
    """
    return search_ladder(graph, parse_budget(budget), Options(**options))


def search_ladder(
    graph: Graph,
    budget: int,
    asked: Options,
    *,
    recompute: bool = True,
    resized: Sequence[Resized] = (),
) -> Ladder:
    """Returns the way to a budget; `resized` are smaller models to try, those of one name from the largest down."""
    check_outputs(graph)
    if graph.is_symbolic:
        names = ", ".join(graph.symbols) or "sizes that data decide"
        raise GraphError(f"graph {graph.name!r} has no plan before lengths are given for: {names}; see arenaplan.bind")
    check_one_arena(asked, "a network on the way to a budget")
    own = evolve(asked, threads=1 if asked.parallel else cpus())
    with Activity("searching a way to the budget", graph.name):
        return _Search(graph, budget, Candidates(graph, own), recompute).ladder(resized)


@define(eq=False)
class _Search:
    graph: Graph
    budget: int
    candidates: Candidates
    recompute: bool
    _asked_outputs: dict[str, Array] = field(factory=dict)
    _ways: dict[tuple[Steps, int], Way] = field(factory=dict)

    @property
    def is_run(self) -> bool:
        """Returns whether plans can run on this machine."""
        return self.candidates.asked.target.is_host and not opaque_operators(self.graph)

    def ladder(self, resized: Sequence[Resized]) -> Ladder:
        asked = self.way((), NO_CAPACITY)
        if asked.arena_bytes <= self.budget:
            return self._told(asked, (asked,), (asked,))
        self.candidates.least.check(self.graph, self.budget, asked.arena_bytes)
        steps = steps_from(self.candidates.asked)
        early = tuple(step for step in steps if step.family not in LATE)
        count = len(self.graph.operators)
        most = 3 if count < _LARGE else 2 if count < _VERY_LARGE else 1
        tried = [c for chosen in each("trying", combinations(early, most), _named) for c in self._possible(chosen)]
        late = tuple(step for step in steps if step.family in LATE)
        fitting = self._fitting(tried, late)
        answer = self._fastest(fitting)
        last = answer or (self._nearest(tried, late),)
        single = [step for step in steps if any(c.steps == (step,) for c in tried) or step in late]
        alone = tuple(self.way((step,), NO_CAPACITY, run=False) for step in single)
        return evolve(
            self._told(asked, answer, last),
            rungs=self._rungs(asked, last[0], run=bool(answer)),
            alone=alone,
            clashes=self._clashes(tried, asked, {way.steps[0]: way for way in alone}),
            smaller=self._smaller(resized),
            by_budget=self._by_budget(),
        )

    def _told(self, asked: Way, answer: tuple[Way, ...], last: tuple[Way, ...]) -> Ladder:
        (nearest,) = last
        held = () if answer else peak_of(self._smallest_plan(nearest))[1]
        return Ladder(
            self.graph.name, self.budget, asked, answer, nearest, (asked,), (), (), (), (), held, is_run=self.is_run
        )

    def _by_budget(self) -> tuple[Way, ...]:
        """Returns what a budget leads to by itself, in the order of trying: of each way the smallest plan.

        Ways that are no smaller than those before them are left out: no budget needs them.
        """
        ways, least = list[Way](), self.candidates.plan(()).arena_bytes
        for steps, plan in self.candidates.within((), 1, any_budget=True) if self.recompute else ():
            if plan.arena_bytes < least:
                ways.append(self._way(steps, plan))
                least = plan.arena_bytes
        return tuple(ways)

    def _smallest_plan(self, way: Way) -> PlacedPlan:
        if way.again:
            return next(plan for _, plan in self.candidates.within(way.steps, self.budget))
        return self.candidates.plan(way.steps)

    def _possible(self, steps: Steps) -> tuple[Candidate, ...]:
        """Returns the combination; nothing where the graph does not allow it, such as training in 16 bits."""
        try:
            return (self.candidates.candidate(steps),)
        except (EngineError, OpError, AllocatorError):
            return ()

    def _fitting(self, tried: Sequence[Candidate], late: Steps) -> list[tuple[float, Steps]]:
        """Returns the cheapest way of each kind that fits, with its estimated time; the cheapest first."""
        fitting, missed = list[tuple[float, Steps]](), dict[tuple[Any, ...], Candidate]()
        done = set[tuple[Any, ...]]()
        for candidate in sorted(tried, key=lambda c: (_about(c.cost), len(c.steps), c.cost)):
            if candidate.kind in done:
                continue
            if candidate.bound <= self.budget and self._plan_fits(self.candidates.plan(candidate.steps)):
                done.add(candidate.kind)
                fitting.append((candidate.cost, candidate.steps))
            else:
                missed.setdefault(candidate.kind, candidate)
        least = min((cost for cost, _ in fitting), default=float("inf"))
        cheaper = [c for c in missed.values() if c.cost < least]
        for candidate in each("trying again", cheaper[:MOST_AGAIN], lambda c: _named(c.steps)):
            fitting += self._late(candidate, late)
        return sorted(fitting, key=lambda way: way[0])

    def _late(self, candidate: Candidate, late: Steps) -> list[tuple[float, Steps]]:
        """Returns the way with another order, or else the first that a budget leads to, where it fits."""
        for step in late:
            if self._plan_fits(self.candidates.plan((*candidate.steps, step))):
                return [(candidate.cost, (*candidate.steps, step))]
        if self.recompute:
            for steps, plan in self.candidates.within(candidate.steps, self.budget):
                if self._plan_fits(plan):
                    return [(self._way(steps, plan).cost, steps)]
        return []

    def _plan_fits(self, plan: PlacedPlan) -> bool:
        return plan.arena_bytes <= self.budget

    def _fastest(self, fitting: Sequence[tuple[float, Steps]]) -> tuple[Way, ...]:
        """Returns the fastest of the ways that fit; among alike times the one that changes fewest bits."""
        near = [steps for cost, steps in fitting[:MOST_TIMED] if cost <= FAR * fitting[0][0]]
        ways = [way for steps in each("running", near, _named) for way in self._within(steps)]
        if not ways:
            return ()
        best = min(map(_seconds, ways))
        alike = [way for way in ways if _seconds(way) <= best * ALIKE]
        return (min(alike, key=lambda way: (_severity(way), len(way.steps), _seconds(way))),)

    def _within(self, steps: Steps) -> tuple[Way, ...]:
        try:
            return (self.way(steps, self.budget),)
        except BudgetError:
            return ()

    def _nearest(self, tried: Sequence[Candidate], late: Steps) -> Way:
        """Returns the smallest way: the smallest bounds are planned, also in another order and with values dropped."""
        ways = list[Way]()
        for candidate in sorted(tried, key=lambda c: (c.bound, len(c.steps), c.cost))[:MOST_AGAIN]:
            ways.append(self.way(candidate.steps, NO_CAPACITY, run=False))
            ways += [self.way((*candidate.steps, step), NO_CAPACITY, run=False) for step in late]
            if self.recompute:
                ways += [self._way(*each_way) for each_way in self.candidates.within(candidate.steps, self.budget)]
        return min(ways, key=lambda way: (way.arena_bytes, len(way.steps), way.cost))

    def _rungs(self, asked: Way, last: Way, *, run: bool) -> tuple[Way, ...]:
        """Returns the ways from the one as asked to the last, each with the step that then saves most."""
        rungs, taken, left = [asked], tuple[Step, ...](), list(last.steps)
        while left:
            possible = [step for step in left if self._possible((*taken, step))]
            step = min(possible, key=lambda s: self.candidates.plan((*taken, s)).arena_bytes)
            left.remove(step)
            taken = (*taken, step)
            if left or last.again:
                rungs.append(self.way(taken, NO_CAPACITY, run=run))
        return tuple(rungs) if last is asked else (*rungs, evolve(last, steps=taken))

    def _clashes(self, tried: Sequence[Candidate], asked: Way, alone: Mapping[Step, Way]) -> tuple[Clash, ...]:
        """Returns pairs of steps of which one saves bytes, and fewer with the other, as the bound alone shows."""
        clashes = []
        for candidate in tried:
            ways = [alone[step] for step in candidate.steps if step in alone]  # cascades may save nothing alone
            if len(candidate.steps) != 2 or not ways:
                continue
            better = min(ways, key=lambda way: way.arena_bytes)
            if better.arena_bytes < min(candidate.bound / CLEAR, asked.arena_bytes):
                clashes.append((candidate.bound - better.arena_bytes, candidate.steps, better))
        clashes.sort(key=lambda one: -one[0])
        return tuple(
            Clash(self.way(steps, NO_CAPACITY, run=False), better) for _, steps, better in clashes[:MOST_CLASHES]
        )

    def _smaller(self, resized: Sequence[Resized]) -> tuple[Smaller, ...]:
        """Returns the largest of the smaller models of each name that fits with the options as asked."""
        smaller = dict[str, Smaller]()
        for one in each("shrinking", resized, lambda r: f"{r.name}={r.length}"):
            if one.name in smaller:
                continue
            try:
                plan = _planned(one.load(), self.candidates.asked)
            except (EngineError, OpError):
                continue
            if self._plan_fits(plan):
                smaller[one.name] = Smaller(f"{one.name}={one.length}", one.how, plan.arena_bytes)
        return tuple(smaller.values())

    def way(self, steps: Steps, budget: int, *, run: bool = True) -> Way:
        """Returns a way as it is planned and, if `run`, timed. Raises BudgetError."""
        key = steps, budget
        for entry in (key, (steps, self.budget)):
            if entry in self._ways and (entry == key or not self._ways[entry].again):
                return self._ways[entry]
        way = self._way(steps, self._plan(steps, budget))
        if not run or not self.is_run:
            return way
        return self._ways.setdefault(key, evolve(way, ran=(self._ran(steps, budget),)))

    def _plan(self, steps: Steps, budget: int) -> PlacedPlan:
        if budget == NO_CAPACITY:
            return self.candidates.plan(steps)
        return make_plan(self.graph, budget=budget, recompute=self.recompute, **self._keywords(steps))

    def _way(self, steps: Steps, plan: PlacedPlan) -> Way:
        again = _share(plan)
        cost = self.candidates.candidate(steps).cost / max(self.candidates.candidate(()).cost, 1.0)
        return Way(steps, plan.arena_bytes, plan.plan.lower_bound, again, cost * (1 + again))

    def _ran(self, steps: Steps, budget: int) -> Run:
        """Runs a way on one thread, whose times are the steadiest."""
        keywords = self._keywords(steps)
        executable = compile_graph(self.graph, budget=budget, recompute=self.recompute, threads=1, **keywords)
        feeds = random_arrays({name: var.spec for name, var in self.graph.inputs.items()}, self.candidates.asked.seed)
        outputs = executable.run(feeds)
        seconds = [_run_seconds(lambda: executable.run(feeds, copy=False))]
        while len(seconds) < _RUNS and sum(seconds) < _SECONDS:
            seconds.append(_run_seconds(lambda: executable.run(feeds, copy=False)))
        if not self._asked_outputs:
            self._asked_outputs |= outputs
        return Run(min(seconds), largest_difference(outputs, self._asked_outputs))

    def _keywords(self, steps: Steps) -> PlanOptions:
        options = self.candidates.options(steps)
        return cast(PlanOptions, {name: getattr(options, name) for name in PlanOptions.__annotations__})


def _planned(graph: Graph, options: Options) -> PlacedPlan:
    return plan_optimised(optimised(graph, options), options)


def _run_seconds(run: Callable[[], object]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def _share(plan: PlacedPlan) -> float:
    return max((again.share for again in plan.recomputed if again.operators), default=0.0)


def _seconds(way: Way) -> float:
    return way.ran[0].seconds if way.ran else way.cost


def _severity(way: Way) -> float:
    """Returns how much of the bits changes: of a run the power of ten of the difference."""
    if not way.ran:
        return float(_SEVERITY[way.bits])
    difference = way.ran[0].difference
    return _about(difference, 10.0) if difference else -math.inf


def _about(number: float, base: float = ALIKE) -> float:
    """Returns a whole number that is the same for numbers that differ by a factor of about `base`."""
    return round(math.log(number, base)) if 0 < number < math.inf else number


def _named(steps: Steps) -> str:
    return " ".join(step.how for step in steps)
