"""Other ways to plan a network, each planned: another order, passes, recomputing, options that were switched off."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from attrs import evolve, frozen

from allocator.errors import UnsupportedProblemError
from allocator.progress import each
from allocator.solvers import BEST
from engine.explain.sentences import quoted
from engine.graph.graph import Graph
from engine.lower.calls import Storage
from engine.lower.order import MEMORY
from engine.passes.automatic import optimised, plan_optimised
from engine.planning.options import CASCADE_PERCENT, FIELDS, LEVELS, Options, about, flag
from engine.planning.placed import PlacedPlan
from engine.planning.planner import plan_graph
from engine.remat.planning import plan_recomputed
from engine.report.peak import peak_chunks
from engine.text.units import format_bytes

NODES = 20_000
"""Steps of every search here, for addresses and for orders. A count instead of a time: results are equal everywhere."""
MOST_OPERATORS = 2_000
"""Size of a graph beyond which nothing is tried: each alternative is a whole plan."""
MOST_RECOMPUTED = 1_000
"""Size of a graph beyond which recomputing is not tried: it takes many plans."""
BUDGET = 90
"""Percent of the arena that recomputing is asked to keep within."""


@frozen(eq=False)
class Alternative:
    """Another way to plan: `what` is changed, on the command line by `how`. The arena then has `arena_bytes`.

    It `saves` that many bytes; below 0 it needs more. `note` is what it costs or proves. `options` are the options of
    `engine.make_plan` that differ.
    """

    what: str
    how: str
    options: Mapping[str, Any]
    arena_bytes: int
    saves: int
    note: str


@frozen(eq=False)
class Alternatives:
    """All alternatives that were tried; `left_out` says which were not, and why."""

    tried: tuple[Alternative, ...] = ()
    left_out: tuple[str, ...] = ()


FindAlternatives = Callable[[PlacedPlan], Alternatives]
"""A function that plans the same network in other ways."""


def no_alternatives(_: PlacedPlan) -> Alternatives:
    """Returns none, for a plan of a stage, of a range of lengths, or of a body of control flow."""
    return Alternatives((), ("other ways to plan, which takes a whole network whose sizes are known",))


@frozen(eq=False)
class AlternativeSearch:
    """The graph and the options that a plan was made from; a call tries all alternatives to the plan.

    `as_given` is the graph without the passes that the options ask for.
    """

    as_given: Graph
    graph: Graph
    options: Options

    def __call__(self, plan: PlacedPlan) -> Alternatives:
        """Tries every alternative, each with all other options unchanged."""
        if any(again.operators for again in plan.recomputed):
            left = "other ways to plan, as values are computed again for the budget: leave that out"
            return Alternatives((), (left,))
        if plan.memories:
            return Alternatives((), ("other ways to plan, as the arena lies in several memories",))
        count = len(self.graph.operators)
        if count > MOST_OPERATORS:
            left = f"other ways to plan, as there are {count} operators, more than {MOST_OPERATORS}"
            return Alternatives((), (left,))
        left_out = list[str]()
        if count > MOST_RECOMPUTED:
            left_out.append(f"recomputing, as there are {count} operators, more than {MOST_RECOMPUTED}")
        tried = list[Alternative]()
        for name in each("trying", tuple(_TRIALS)):
            try:
                tried += _TRIALS[name](self, plan)
            except UnsupportedProblemError:
                strategy = self.options.strategy
                left_out.append(f"{name}, as strategy {strategy!r} cannot plan that (--strategy {BEST} can)")
        return Alternatives(tuple(tried), tuple(left_out))

    @property
    def quick(self) -> Options:
        """The same options with a search of NODES steps at most."""
        return evolve(self.options, nodes=min(self.options.nodes, NODES))

    def planned(self, plan: PlacedPlan, what: str, how: str, *, note: str = "", **changes: Any) -> Alternative:
        """Plans the graph with changed options."""
        return alternative(plan, plan_graph(self.graph, evolve(self.quick, **changes)), what, how, note=note, **changes)


def alternative(
    plan: PlacedPlan, other: PlacedPlan, what: str, how: str, *, note: str = "", **changes: Any
) -> Alternative:
    """Returns the alternative to `plan` that the plan `other` is, with the options that differ as `changes`."""
    return Alternative(what, how, changes, other.arena_bytes, plan.arena_bytes - other.arena_bytes, note)


Trial = Callable[[AlternativeSearch, PlacedPlan], Iterator[Alternative]]


def _order(search: AlternativeSearch, plan: PlacedPlan) -> Iterator[Alternative]:
    if search.options.order == MEMORY:
        return
    other = plan_graph(search.graph, evolve(search.quick, order=MEMORY))
    in_turn = search.options.reuse and not search.options.parallel  # else an order decides about fewer bytes, or none
    claims = [f"proved: {o.claim}" for o in other.orderings if o.is_proved and in_turn]
    note = "".join(claims) or "a better order may exist"
    yield alternative(plan, other, "another order of the operators", "--order memory", note=note, order=MEMORY)


def _switch(name: str, search: AlternativeSearch, plan: PlacedPlan) -> Iterator[Alternative]:
    """Yields the plan with the default value of an option that saves memory, where the option has another value."""
    saving: dict[str, Any] = {name: FIELDS[name].default}
    if getattr(search.options, name) != saving[name]:
        yield search.planned(plan, about(name).saving, f"without {flag(name)}", **saving)


def _strategy(search: AlternativeSearch, plan: PlacedPlan) -> Iterator[Alternative]:
    if search.options.strategy != BEST and plan.arena_bytes > plan.plan.lower_bound:
        yield search.planned(plan, "the best of all strategies", "--strategy best", strategy=BEST)


def _passes(search: AlternativeSearch, plan: PlacedPlan) -> Iterator[Alternative]:
    """Plans the graph after the passes of the other levels, where that is another graph."""
    planned = {search.graph.text()}
    for level in LEVELS:
        options = evolve(search.quick, optimise=level)
        after = optimised(search.as_given, options).graph
        if after.text() not in planned:
            planned.add(after.text())
            other = plan_graph(after, options)
            what = f"passes of level {level}" if level else "no passes"
            note = "last bits of the outputs may change" if max(level, search.options.level) > 1 else ""
            yield alternative(plan, other, what, f"--optimise {level}", note=note, optimise=level)


def _cascades(search: AlternativeSearch, plan: PlacedPlan) -> Iterator[Alternative]:
    """Plans with images computed in stripes of rows, where the search for cascades finds some that save bytes."""
    if search.options.cascade or search.as_given.parameters:
        return
    options = evolve(search.quick, cascade=CASCADE_PERCENT)
    other = plan_optimised(optimised(search.as_given, options), options)
    for cascaded in (one for done in other.optimisation for one in done.cascades):
        what, how = "images in stripes of rows", f"--cascade {CASCADE_PERCENT}"
        note = f"{cascaded.share:.1%} more operations"
        yield alternative(plan, other, what, how, note=note, cascade=CASCADE_PERCENT)


def _again(search: AlternativeSearch, plan: PlacedPlan) -> Iterator[Alternative]:
    """Plans for BUDGET percent of the arena by recomputing; nothing where recomputing is not possible."""
    options, aim = search.quick, plan.arena_bytes * BUDGET // 100
    if options.parallel or not options.reuse or len(search.graph.operators) > MOST_RECOMPUTED or not aim:
        return
    other = plan_recomputed(search.graph, options, aim, plan_graph(search.graph, options))
    note = "".join(again.text for again in other.recomputed)
    what, budget = f"computing values again, for a budget of {BUDGET} %", max(aim, other.arena_bytes)
    yield alternative(plan, other, what, f"--budget {budget}", note=note, budget=budget)


def _alignment(search: AlternativeSearch, plan: PlacedPlan) -> Iterator[Alternative]:
    if search.options.alignment > 1 and plan.arena_bytes:
        what = "tensors aligned to their elements alone"
        yield search.planned(plan, what, "--alignment 1", note="kernels may be slower", alignment=1)


def _bound(search: AlternativeSearch, plan: PlacedPlan) -> Iterator[Alternative]:
    """Plans with the inputs and outputs that are alive at the peak in arrays of the caller; only Python can do that."""
    names = _ends_at_peak(plan)
    if not names or search.options.caller_buffers:
        return
    lowered = plan.lowered
    sizes = {n: lowered.values[v].spec.nbytes for n, v in (*lowered.inputs.items(), *lowered.outputs.items())}
    size, named = sum(sizes[n] for n in names), ", ".join(quoted(n) for n in names[:3])
    more = ", ..." if len(names) > 3 else "," if len(names) == 1 else ""
    what, note = "inputs and outputs in your own arrays", f"{format_bytes(size)} of them"
    how = f"Python: caller_buffers=({named}{more})"
    yield search.planned(plan, what, how, note=note, caller_buffers=names)


def _ends_at_peak(plan: PlacedPlan) -> tuple[str, ...]:
    """Returns the names of inputs and outputs of the arena that are alive at the peak."""
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
    "cascades": _cascades,
    "computing again": _again,
    "alignment": _alignment,
    "arrays of the caller's": _bound,
}
