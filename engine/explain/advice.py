"""Other ways to plan a network, each planned: the order, passes, recomputing, what was switched off."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from attrs import evolve, frozen

from allocator.errors import UnsupportedProblemError
from allocator.progress import each
from allocator.solvers import BEST
from engine.explain.names import quoted
from engine.explain.what_if import Alternative, Alternatives
from engine.graph.graph import Graph
from engine.lower.calls import Storage
from engine.lower.order import MEMORY
from engine.passes.pipeline import optimise
from engine.planning.options import FIELDS, Options, about, flag
from engine.planning.placed import PlacedPlan
from engine.planning.planner import plan_graph
from engine.remat.planning import plan_recomputed
from engine.report.peak import peak_chunks
from engine.text.units import format_bytes

NODES = 20_000
"""Steps of every search here, for addresses and for orders: all of it takes seconds, and is the same everywhere."""
MOST_OPERATORS = 2_000
"""Of a graph that is planned in other ways."""
MOST_AGAIN = 1_000
"""Operators of a graph of which some are computed again: that takes many plans."""
BUDGET = 90
"""Of the arena, in percent, that recomputing is asked to keep within."""


@frozen(eq=False)
class AlternativeSearch:
    """Knows what a plan was made from."""

    graph: Graph
    options: Options

    def __call__(self, plan: PlacedPlan) -> Alternatives:
        """Tries everything that there is, with the other options as they were."""
        if any(again.operators for again in plan.recomputed):
            return Alternatives(
                (), ("other ways to plan, as values are computed again for the budget: leave that out",)
            )
        count = len(self.graph.operators)
        if count > MOST_OPERATORS:
            return Alternatives(
                (), (f"other ways to plan, as there are {count} operators, more than {MOST_OPERATORS}",)
            )
        left = [f"recomputing, as there are {count} operators, more than {MOST_AGAIN}"] if count > MOST_AGAIN else []
        tried = list[Alternative]()
        for name in each("trying", tuple(_TRIALS)):
            try:
                tried += _TRIALS[name](self, plan)
            except UnsupportedProblemError:
                left.append(f"{name}, as strategy {self.options.strategy!r} cannot plan that (--strategy {BEST} can)")
        return Alternatives(tuple(tried), tuple(left))

    @property
    def quick(self) -> Options:
        """The same options with a search that ends soon."""
        return evolve(self.options, nodes=min(self.options.nodes, NODES))

    def planned(self, plan: PlacedPlan, what: str, how: str, *, note: str = "", **changes: Any) -> Alternative:
        """The graph with other options."""
        made = plan_graph(self.graph, evolve(self.quick, **changes))
        return what_if(plan, made, what, how, note=note, **changes)


def what_if(plan: PlacedPlan, made: PlacedPlan, what: str, how: str, *, note: str = "", **changes: Any) -> Alternative:
    """Another plan beside one."""
    return Alternative(what, how, changes, made.arena_bytes, plan.arena_bytes - made.arena_bytes, note)


Trial = Callable[[AlternativeSearch, PlacedPlan], Iterator[Alternative]]


def _order(advice: AlternativeSearch, plan: PlacedPlan) -> Iterator[Alternative]:
    if advice.options.order == MEMORY:
        return
    made = plan_graph(advice.graph, evolve(advice.quick, order=MEMORY))
    in_turn = advice.options.reuse and not advice.options.parallel  # else an order decides about fewer bytes, or none
    claims = [f"proved: {o.claim}" for o in made.orderings if o.is_proved and in_turn]
    note = "".join(claims) or "a better order may exist"
    yield what_if(plan, made, "another order of the operators", "--order memory", note=note, order=MEMORY)


def _switch(name: str, advice: AlternativeSearch, plan: PlacedPlan) -> Iterator[Alternative]:
    """Yields the plan with the default value of an option that saves memory, where the option has another value."""
    saving: dict[str, Any] = {name: FIELDS[name].default}
    if getattr(advice.options, name) != saving[name]:
        yield advice.planned(plan, about(name).saving, f"without {flag(name)}", **saving)


def _strategy(advice: AlternativeSearch, plan: PlacedPlan) -> Iterator[Alternative]:
    if advice.options.strategy != BEST and plan.arena_bytes > plan.plan.lower_bound:
        yield advice.planned(plan, "the best of all strategies", "--strategy best", strategy=BEST)


def _passes(advice: AlternativeSearch, plan: PlacedPlan) -> Iterator[Alternative]:
    """Level 2 only where it is another graph than level 1."""
    before = advice.graph
    for level, note in ((1, "every bit of the outputs stays"), (2, "last bits of the outputs may change")):
        after = optimise(advice.graph, level)
        if after is not before and after is not advice.graph:
            made = plan_graph(after, advice.quick)
            yield what_if(plan, made, f"passes of level {level}", f"--optimise {level}", note=note, optimise=level)
        before = after


def _again(advice: AlternativeSearch, plan: PlacedPlan) -> Iterator[Alternative]:
    """The price of a smaller budget; nothing where recomputing is no way, or something is computed again already."""
    options, aim = advice.quick, plan.arena_bytes * BUDGET // 100
    if options.parallel or not options.reuse or len(advice.graph.operators) > MOST_AGAIN or not aim:
        return
    made = plan_recomputed(advice.graph, options, aim, plan_graph(advice.graph, options))
    note = "".join(again.told for again in made.recomputed)
    what, budget = f"computing values again, for a budget of {BUDGET} %", max(aim, made.arena_bytes)
    yield what_if(plan, made, what, f"--budget {budget}", note=note, budget=budget)


def _alignment(advice: AlternativeSearch, plan: PlacedPlan) -> Iterator[Alternative]:
    if advice.options.alignment > 1 and plan.arena_bytes:
        what = "tensors aligned to their elements alone"
        yield advice.planned(plan, what, "--alignment 1", note="kernels may be slower", alignment=1)


def _bound(advice: AlternativeSearch, plan: PlacedPlan) -> Iterator[Alternative]:
    """Inputs and outputs that are alive at the peak, in arrays of the caller's: from Python only."""
    names = _ends_at_peak(plan)
    if not names or advice.options.caller_buffers:
        return
    lowered = plan.lowered
    known = {n: lowered.values[v].spec.nbytes for n, v in (*lowered.inputs.items(), *lowered.outputs.items())}
    size, named = sum(known[n] for n in names), ", ".join(quoted(n) for n in names[:3])
    more = ", ..." if len(names) > 3 else "," if len(names) == 1 else ""
    what = "inputs and outputs in your own arrays"
    yield advice.planned(
        plan,
        what,
        f"Python: caller_buffers=({named}{more})",
        note=f"{format_bytes(size)} of them",
        caller_buffers=names,
    )


def _ends_at_peak(plan: PlacedPlan) -> tuple[str, ...]:
    _, chunks = peak_chunks(plan)
    alive, lowered = set(chunks.tolist()), plan.lowered
    kept = set(lowered.parameters.values())
    ends = {**lowered.inputs, **{n: v for n, v in lowered.outputs.items() if v not in kept}}
    arena = ((n, v) for n, v in ends.items() if lowered.values[v].storage is Storage.ARENA)
    return tuple(n for n, v in arena if plan.chunk_of(v) in alive)


_TRIALS: Mapping[str, Trial] = {
    "another order": _order,
    **{about(name).saving: partial(_switch, name) for name in FIELDS if about(name).saving},
    "all strategies": _strategy,
    "passes": _passes,
    "computing again": _again,
    "alignment": _alignment,
    "arrays of the caller's": _bound,
}
