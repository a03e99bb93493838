"""Chooses the cascades of a graph: of what the search proposes, what the planner needs the fewest bytes for."""

import math
from collections.abc import Collection, Iterator, Sequence, Set
from functools import cached_property

from attrs import evolve, field, frozen

from allocator.progress import Activity
from allocator.solvers.base import NO_NODES
from engine.graph.graph import Graph
from engine.graph.var import Var
from engine.lower.order import GIVEN
from engine.nesting.choose import ROUNDS
from engine.passes.cascade.choices import Choice
from engine.passes.cascade.rewrite import with_cascades
from engine.passes.cascade.search import AXES, cascade_bound, operations, search_cascades
from engine.planning.options import Options
from engine.planning.placed import Cascade, CascadeChoice, Cascaded
from engine.planning.planner import least_bytes, lower_graph, nestings
from engine.text.errors import GraphError, PassError
from ops.common.tiling import ROWS

_PARTS = (1, 2, 4, 8)
"""The choices that are lowered: of those that cost at most all of the allowed work, a half of it, and so on, the one
with the fewest estimated bytes. Estimates see less than all of what more stripes need."""
_ROUNDS = 1
"""The nestings that are measured of each. Six, as in a plan, would take most of the time of planning; for ResNet-50 and
DenseNet-121 (tools/bench_cascades.py) the same choice is taken with one."""


@frozen(eq=False)
class CascadeSearch:
    """The search for the cascades of a graph along some axes, which is done once for all options.

    `caller_buffers` has the inputs and outputs that do not lie in the arena, by name.
    """

    graph: Graph
    caller_buffers: Set[str] = frozenset()
    axes: Collection[int] = AXES
    _within: dict[Options, tuple[Cascaded, ...]] = field(factory=dict)

    @cached_property
    def choices(self) -> Sequence[Choice]:
        """Returns the choices with cascades of which none is better in bytes and cost, from the fewest bytes on.

        Raises GraphError for a graph with open dimensions or parameters.
        """
        graph = self.graph
        if graph.is_symbolic:
            raise GraphError(f"graph {graph.name!r} has dimensions that are names; see arenaplan.bind")
        if graph.parameters:
            raise GraphError(f"graph {graph.name!r} has parameters; cascades are for networks that are not trained")
        with Activity("searching cascades", graph.name):
            choices = search_cascades(graph, self._outside, self.axes)
            return [choice for choice in choices if choice.cascades]

    @cached_property
    def bound(self) -> int:
        """Returns bytes below which no cascades get the arena.

        All but arrays of the caller lies there in the given types, and operators run in the given order.
        """
        return cascade_bound(self.graph, self._outside)

    @cached_property
    def _outside(self) -> Set[Var]:
        named = (*self.graph.inputs.items(), *self.graph.outputs.items())
        return frozenset(var for name, var in named if name in self.caller_buffers)

    @cached_property
    def work(self) -> int:
        """Returns the operations of a run without cascades."""
        return operations(self.graph)

    def within(self, options: Options) -> tuple[Cascaded, ...]:
        """Returns the cascades that save most bytes; nothing where none saves any, or where stripes could run at once.

        They add at most `options.cascade` percent of the work, by the search's estimate and with the operations that
        the graph with cascades has. Raises GraphError as `choices`.
        """
        if not options.may_cut:
            return ()
        key = _deciding(options)
        if key not in self._within:
            self._within[key] = self._best(options)
        cascaded = self._within[key]
        if options.donated or options.store or options.order != GIVEN:
            return tuple(evolve(each, least_bytes=0) for each in cascaded)
        return cascaded

    def _best(self, options: Options) -> tuple[Cascaded, ...]:
        """Returns the cascades that save most bytes, of the choices that are tried; nothing where none saves any."""
        choices, most = self.choices, options.cascade * self.work / 100
        allowed = [choice for choice in choices if choice.cost <= most]
        if not allowed:
            return ()
        plain = _nested_bytes(self.graph, options, ROUNDS)
        best = min(self._tried(allowed, most, options), key=lambda each: each.nbytes, default=Choice(plain, 0.0, 0.0))
        return (self._told(best, plain),) if best.nbytes < plain else ()

    def _tried(self, allowed: Sequence[Choice], most: float, options: Options) -> Iterator[Choice]:
        """Yields choices with the lower bounds and the operations of the graphs that they lead to.

        Those that then add more work than `most` are left out, and those with a stripe that would read only pads.
        """
        left = list(allowed)
        for part in _PARTS:
            for choice in [each for each in left if each.cost <= most / part]:
                left.remove(choice)
                graph, counted = self._counted(choice)
                if counted.cost <= most:
                    yield evolve(counted, nbytes=_nested_bytes(graph, options, _ROUNDS))
                    break

    def _counted(self, choice: Choice) -> tuple[Graph, Choice]:
        """Returns the graph with cascades, and the choice with its operations; their cost is infinite for no graph."""
        try:
            graph = with_cascades(self.graph, choice.cascades)
        except PassError:
            return self.graph, evolve(choice, cost=math.inf)
        extra = max(operations(graph) - self.work, 0)
        return graph, evolve(choice, extra=extra, cost=choice.cost - choice.extra + extra)

    def _told(self, choice: Choice, plain: int) -> Cascaded:
        runs = tuple(_run(self.graph, cascade) for cascade in choice.cascades)
        kept = sum(len(cascade.rolling) for cascade in choice.cascades)
        pieces = sum(cascade.in_pieces for cascade in choice.cascades)
        columns = sum(cascade.axis != ROWS for cascade in choice.cascades)
        share, work = choice.extra / self.work, choice.cost / self.work
        choices = tuple(map(self._choice, self.choices))
        return Cascaded(runs, share, work, kept, pieces, columns, plain, self.bound, choices, choice.cascades)

    def _choice(self, choice: Choice) -> CascadeChoice:
        stripes = sum(_run(self.graph, cascade)[2] for cascade in choice.cascades)
        share, work = choice.extra / self.work, choice.cost / self.work
        return CascadeChoice(choice.nbytes, share, work, len(choice.cascades), stripes)


def _nested_bytes(graph: Graph, options: Options, rounds: int) -> int:
    """Returns a lower bound of the arena of a graph, with values nested where that saves bytes."""
    ways = nestings(lower_graph(graph, options), options, rounds)
    return min(least_bytes(way, options) for way in ways)


def _deciding(options: Options) -> Options:
    """Returns options that are equal where the same cascades are chosen; lists of names become tuples."""
    buffers, donated = tuple(options.caller_buffers), tuple(options.donated)
    return evolve(options, optimise=0, store="", order=GIVEN, nodes=NO_NODES, caller_buffers=buffers, donated=donated)


def _run(graph: Graph, cascade: Cascade) -> tuple[str, str, int]:
    operators = graph.operators
    first, last = operators[cascade.first], operators[cascade.last - 1]
    counted = first if cascade.rolling else last
    images, rows = counted.outputs[0].shape[0], counted.outputs[0].shape[cascade.axis]
    return first.name, last.name, images * -(-rows // cascade.height)
