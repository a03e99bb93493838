"""Combinations of steps, planned: a lower bound and an estimate of time first, addresses only where they can matter."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from attrs import define, evolve, field, frozen

from engine.budgets.least import Least, least_of_all
from engine.budgets.steps import CASCADES, Steps, changes_of
from engine.graph.graph import Graph
from engine.lower.calls import Lowered
from engine.lower.costs import call_cost
from engine.passes.automatic import Optimised, Passed, passed, plan_optimised
from engine.planning.options import AUTO, HIGHEST_LEVEL, Options
from engine.planning.placed import PlacedPlan
from engine.planning.planner import least_bytes, lower_graph, nestings
from engine.remat.within import plans_within
from engine.text.errors import OptionError
from ops.schema.backends import NUMBA, NUMPY, ONEDNN

NODES = 20_000
"""Steps of a search for addresses. A count instead of a time: results are equal everywhere."""
_SLOWNESS: Mapping[str, float] = {NUMBA: 1.0, ONEDNN: 1.0, NUMPY: 20.0}
_UNPACKED = 8.0
_ROUNDING = 3.0
"""Estimates of time beside compiled kernels with packed weights (MobileNet v2: 4.5 ms; numpy 109, unpacked 33 to 53,
stored in 16 bits 14). They decide what is timed first, and what is not timed at all."""


@frozen(eq=False)
class Candidate:
    """A combination of steps. `bound`: no arena is smaller as long as no operator runs again. `cost` estimates time."""

    steps: Steps
    options: Options
    bound: int
    cost: float

    @property
    def kind(self) -> tuple[Any, ...]:
        """What decides most about time: the options but for the level of passes."""
        return tuple(str(getattr(self.options, name)) for name in ("backend", "prepack", "store"))


@define(eq=False)
class Candidates:
    """All that is planned of a graph on the way to a budget, each once."""

    graph: Graph
    asked: Options
    _passed: dict[tuple[int, tuple[str, ...]], Passed] = field(factory=dict)
    _graphs: dict[tuple[Any, ...], Optimised] = field(factory=dict)
    _candidates: dict[Steps, Candidate] = field(factory=dict)
    _plans: dict[Steps, PlacedPlan] = field(factory=dict)

    def options(self, steps: Steps) -> Options:
        """Returns the options after the steps."""
        return evolve(self.asked, **changes_of(steps))

    def candidate(self, steps: Steps) -> Candidate:
        """Returns the combination with its bound."""
        if steps not in self._candidates:
            self._candidates[steps] = self._estimated(steps)
        return self._candidates[steps]

    def _estimated(self, steps: Steps) -> Candidate:
        """Returns the combination with its bound; nothing is placed, unless the level of passes is open."""
        options = self.options(steps)
        if options.optimise == AUTO or options.parallel:
            plan = self.plan(steps)
            return Candidate(steps, options, plan.plan.lower_bound, _cost(plan.lowered, options))
        lowered = lower_graph(self._optimised(steps).graph, options)
        bound = min(least_bytes(way, options) for way in nestings(lowered, options))
        return Candidate(steps, options, bound, _cost(lowered, options))

    @property
    def least(self) -> Least:
        """Returns the bytes that every combination needs at least."""
        return least_of_all(self.graph, self._passes(HIGHEST_LEVEL).graph, tuple(self.asked.caller_buffers))

    def plan(self, steps: Steps) -> PlacedPlan:
        """Returns a plan in which no operator runs again."""
        if steps not in self._plans:
            options = self._quick(steps)
            self._plans[steps] = plan_optimised(self._optimised(steps), options)
        return self._plans[steps]

    def within(self, steps: Steps, budget: int, *, any_budget: bool = False) -> Iterator[tuple[Steps, PlacedPlan]]:
        """Yields the plans that a budget leads to, as `make_plan` tries them, with the steps to their cascades.

        With `any_budget`, those that any budget may lead to, in the order of their cost.
        """
        options, plain = self._quick(steps), self.plan(steps)
        aimed = evolve(plain, plan=evolve(plain.plan, capacity=budget))
        passes = partial(self._passes, options.level)
        for plan in plans_within(self.graph, aimed, options, passes, any_budget=any_budget):
            percent = plan.options.cascade
            yield (*steps, CASCADES[percent]) if percent != options.cascade else steps, plan

    def _quick(self, steps: Steps) -> Options:
        options = self.options(steps)
        return evolve(options, nodes=min(options.nodes, NODES))

    def _passes(self, level: int, left_out: tuple[str, ...] = ()) -> Passed:
        """Returns the graph after the passes of a level, without some groups."""
        key = level, left_out
        if key not in self._passed:
            self._passed[key] = passed(self.graph, level, left_out)
        return self._passed[key]

    def _optimised(self, steps: Steps) -> Optimised:
        """Returns the graph after passes; which cascades it has depends on the kernels, too, and so on all steps.

        Raises OptionError for a step to cascades where there are none that save bytes.
        """
        options = self.options(steps)
        level = options.level
        key = level, options.store, *(changes_of(steps).items() if options.cascade else ())
        if key not in self._graphs:
            self._graphs[key] = self._passes(level).finished(options)
        done = self._graphs[key].done
        if "cascade" in changes_of(steps) and not any(one.cascades for one in done):
            raise OptionError(f"cascades save no byte of {self.graph.name!r}")
        return self._graphs[key]


def _cost(lowered: Lowered, options: Options) -> float:
    """Returns the estimated work of all calls, in operations and bytes of a compiled kernel."""
    unpacked = 1.0 if options.prepack else _UNPACKED
    rounding = _ROUNDING if options.store else 1.0
    return sum(
        call_cost(call)
        * _SLOWNESS.get(call.kernel.backend, 1.0)
        * (unpacked if call.kernel.backend == NUMBA else 1.0)
        * rounding
        for call in lowered.calls
    )
