"""From a graph to a stream: which passes run, how high stripes are, and one plan for each kind of stripe."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Unpack

import numpy as np
from attrs import define, evolve, field

from allocator.progress import Activity
from engine.api import ALL_CPUS, make_plan
from engine.execution_plan import ExecutionPlan
from engine.executor.binding import packs_from, shared_pack_cache
from engine.executor.rows import Given
from engine.graph.graph import Graph
from engine.graph.var import Var
from engine.lower.costs import graph_cost
from engine.passes.automatic import passed
from engine.passes.cascade.rows import spans
from engine.planning.options import CASCADE_PERCENTS, PlanOptions, parse_budget
from engine.remat.within import may_cascade
from engine.streams.kept import KeptRows, worth_keeping
from engine.streams.stream import Stream, StreamStripe
from engine.streams.stripes import Rows, StripedGraph, striped_graph
from engine.streams.write import stripe_graph
from engine.text.errors import BudgetError, GraphError, OptionError
from engine.text.faults import behind_door
from engine.text.options import check_option_names
from engine.text.units import format_bytes
from ops.tensor.layout import CACHE_LINE


@behind_door("planning")
def stream(
    graph: Graph, *, rows: int = 0, budget: int | str = "", threads: int = ALL_CPUS, **options: Unpack[PlanOptions]
) -> Stream:
    """Makes a graph runnable stripe after stripe of rows: images may be larger than memory.

    The outputs are images of as many rows; each stripe has `rows` of them, or as many as are found by bisection so that
    all arenas keep within `budget`, in bytes or as a text such as "32 MiB". All operators but those that move axes at
    inputs and outputs must be such that cascades can cut: the graph is cut as one cascade (`engine.passes.cascade`),
    and rows that two stripes need are read for both. Of tensors inside, a stripe keeps them for the next one where that
    costs less than to compute them again; nothing is kept where that does not fit, or cannot be. Stripes that differ in
    their pads or heights have plans of their own, all in one arena. With compiled kernels, outputs are equal to those
    of whole images to the bit.
    `threads` and other options are those of `arenaplan.compile`; `cascade` and `store` apply to each stripe. Where not
    even stripes of one row keep within the budget, cascades are tried without being asked for.

    Raises GraphError for what is no graph, for an operator that needs whole images, and for lengths that are not known;
    OptionError for outputs of different heights; BudgetError where not even stripes of one row fit.
    """
    if not isinstance(graph, Graph):
        raise GraphError(f"{graph!r} is no graph")
    _check(rows, budget, options)
    plain, within = options.copy(), options.copy()
    plain["cascade"], within["optimise"] = 0, 0
    whole = make_plan(graph, threads=threads, **plain)
    left_out = tuple(name for done in whole.optimisation for name in done.left_out)
    striped = striped_graph(passed(graph, whole.options.level, left_out).graph, whole.options.level)
    ways = _ways(striped, threads, within, is_cutting=not rows and may_cascade(graph, whole.options))
    plans, height = _first_height(ways, rows, budget)
    with Activity("planning stripes", graph.name):
        return _stream(graph, plans, height, whole.arena_bytes)


def _ways(striped: StripedGraph, threads: int, options: PlanOptions, *, is_cutting: bool) -> "list[_Plans]":
    """Returns the ways to plan stripes, in the order in which they are tried.

    Rows are kept; else none are, as kept rows take bytes, and new rows must not lie in pads alone; else stripes have
    cascades, too, where `is_cutting`. Stripes with cascades keep none: these would end the cascades inside.
    """
    rolling = evolve(striped, rolling=worth_keeping(striped.inner))
    kept = [] if options.get("cascade") else [_Plans(rolling, threads, options)]
    ways = [*kept, _Plans(striped, threads, options)]
    for percent in CASCADE_PERCENTS if is_cutting else ():
        cut = options.copy()
        cut["cascade"] = percent
        ways.append(_Plans(striped, threads, cut))
    return ways


def _first_height(ways: "Sequence[_Plans]", rows: int, budget: int | str) -> "tuple[_Plans, int]":
    """Returns the first of the ways that there are stripes for, and their height. Raises the error of the last one."""
    for plans in ways[:-1]:
        with suppress(BudgetError, GraphError):
            return plans, plans.height(rows, budget)
    return ways[-1], ways[-1].height(rows, budget)


def _check(rows: object, budget: int | str, options: PlanOptions) -> None:
    """Raises OptionError."""
    names = ("rows", "budget", "threads", *PlanOptions.__annotations__)
    check_option_names("arenaplan.stream", options, names)
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 0:
        raise OptionError(f"rows {rows!r} is no height of stripes; give an integer of 1 or more")
    if bool(rows) == (budget != ""):
        raise OptionError("give either rows, the height of stripes, or budget, the bytes of their arena")
    if taken := [name for name in ("caller_buffers", "donated") if options.get(name)]:
        raise OptionError(f"{taken[0]} is of no use to a stream: each stripe is copied into the arena")


@define(eq=False)
class _Plans:
    """The plans of the stripes of a graph, and the operations of a stripe, one for each kind."""

    striped: StripedGraph
    threads: int
    options: PlanOptions
    by_kind: dict[Hashable, ExecutionPlan] = field(factory=dict)
    flops: dict[Hashable, int] = field(factory=dict)

    def plan(self, rows: Rows) -> ExecutionPlan:
        """Returns the plan of a stripe."""
        if rows.kind not in self.by_kind:
            graph = stripe_graph(rows)
            self.by_kind[rows.kind] = make_plan(graph, threads=self.threads, **self.options)
            self.flops[rows.kind] = graph_cost(graph).flops
        return self.by_kind[rows.kind]

    def height(self, rows: int, budget: int | str) -> int:
        """Returns the height of stripes: that of so many rows, or one within a budget where these are 0.

        All stripes are planned then. Raises BudgetError, GraphError.
        """
        if not rows:
            return self.within(parse_budget(budget))
        height = min(rows, self.striped.rows)
        self._arena_bytes(self.of_height(height))
        return height

    def of_height(self, height: int) -> Iterator[Rows]:
        """Yields all stripes of a height; the last one may be lower. There may be many: a list of them is large."""
        return (self.striped.stripe(*span) for span in spans(self.striped.rows, height))

    def within(self, budget: int) -> int:
        """Returns the height of stripes whose plans keep within a budget. Raises BudgetError.

        It is found by bisection, which looks at a few stripes of each height: a multiple of the period, whose
        stripes are alike, or less than a period where one is too high. Where another stripe has a larger arena, which
        is known once all are planned, the next lower height is tried.
        """
        with Activity("looking for the height of stripes", self.striped.graph.name):
            most = self.striped.rows
            for step in dict.fromkeys((self.striped.period, 1)):
                for height in range(self._height(budget, step, most), 0, -step) if self._bytes(step) <= budget else ():
                    if self._arena_bytes(self.of_height(height)) <= budget:
                        return height
                most = step
        raise self._error(budget)

    def _height(self, budget: int, step: int, most: int) -> int:
        """Returns the largest multiple of a step, or `most`, whose stripes seem to keep within a budget, as one step
        does.
        """
        low, high = 1, -(-most // step)
        if self._bytes(high * step) <= budget:
            return most
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._bytes(middle * step) <= budget else (low, middle)
        return low * step

    def _bytes(self, height: int) -> int:
        """Returns the largest arena of the first stripes, one in the middle, and the last ones."""
        every = list(spans(self.striped.rows, height))
        chosen = {0, 1, len(every) // 2, len(every) - 2, len(every) - 1} & set(range(len(every)))
        return self._arena_bytes(self.striped.stripe(*every[number]) for number in sorted(chosen))

    def _arena_bytes(self, stripes: Iterable[Rows]) -> int:
        """Returns the bytes of the largest arena, and those of the rows that are kept beside it."""
        most, kept = 0, KeptRows()
        for rows in stripes:
            most = max(most, self.plan(rows).arena_bytes)
            kept.add(rows.keeps)
        return most + kept.nbytes

    def _error(self, budget: int) -> BudgetError:
        needed, name = self._bytes(1), self.striped.graph.name
        if needed <= budget:  # of a stripe that the search did not look at
            needed = self._arena_bytes(self.of_height(1))
        return BudgetError(
            f"even stripes of 1 row of {name!r} need {needed} bytes ({format_bytes(needed)}), "
            f"{budget} bytes ({format_bytes(budget)}) are available: {needed - budget} bytes too much",
            needed,
            budget,
            needed,
        )


def _stream(graph: Graph, plans: _Plans, height: int, whole_bytes: int) -> Stream:
    striped, kept = plans.striped, KeptRows()
    kinds: dict[Hashable, int] = {}
    read: set[tuple[Var, int]] = set()
    stripes, used, work = [], [], 0
    for rows in plans.of_height(height):
        kept.add(rows.keeps)
        if rows.kind not in kinds:
            kinds[rows.kind] = len(kinds)
            used.append(plans.plan(rows))
        constants = {striped.input_name(*piece): span for piece, span in rows.constants.items()}
        read |= rows.constants.keys()
        stripes.append(StreamStripe(rows.first, rows.last, rows.reads, constants, kinds[rows.kind]))
        work += plans.flops[rows.kind]
    arena = np.empty(max(plan.arena_bytes for plan in used) + max(CACHE_LINE, *(p.alignment for p in used)), np.uint8)
    with packs_from(shared_pack_cache(striped.graph.constants.entries.values())):
        executables = [plan.executable(arena=arena) for plan in used]
    axes = {**striped.axes, **{output.name: output.axis for output in striped.outputs}}
    share = max(work / max(graph_cost(striped.graph).flops, 1) - 1, 0.0)
    sources = {
        striped.input_name(v, axis): Given(f"constant {v.name!r}", striped.graph.constants[v], v.spec, axis)
        for v, axis in read
    }
    specs = {striped.kept_name(var): spec for var, spec in kept.specs.items()}
    return Stream(graph, stripes, used, axes, share, whole_bytes, specs, executables, sources)
