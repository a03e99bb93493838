"""Chooses the cascades of a graph: of what the search proposes, what the planner needs the fewest bytes for."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice

from attrs import evolve, field, frozen

from allocator.progress import Activity
from allocator.solvers.base import NO_NODES
from engine.graph.graph import Graph
from engine.passes.cascade.choices import Choice
from engine.passes.cascade.rewrite import with_cascades
from engine.passes.cascade.search import cascade_bound, operations, search_cascades
from engine.planning.options import Options
from engine.planning.placed import Cascade, Cascaded
from engine.planning.planner import least_bytes, lower_graph, nestings
from engine.text.errors import GraphError, PassError
from ops.common.tiling import ROWS

_MOST_TRIED = 4
"""The choices with the fewest estimated bytes that are lowered. Estimates and lower bounds differ by a few percent."""


@frozen
class _Cut:
    """What a graph with cascades needs: a lower bound of its arena, in bytes, and the operations of a run."""

    nbytes: int
    flops: int


@frozen(eq=False)
class CascadeSearch:
    """The search for the cascades of a graph, which is done once for all options."""

    graph: Graph
    _cuts: dict[tuple[tuple[Cascade, ...], Options], _Cut] = field(factory=dict)

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
            return [choice for choice in search_cascades(graph) if choice.cascades]

    @cached_property
    def bound(self) -> int:
        """Returns bytes below which no cascades get the arena, as long as all of it lies there in the given types."""
        return cascade_bound(self.graph)

    def within(self, options: Options) -> tuple[Cascaded, ...]:
        """Returns the cascades that save most bytes; nothing where none saves any, or where operators run at once.

        They add at most `options.cascade` percent of the work, by the search's estimate and with the operations that
        the graph with cascades has. Raises GraphError as `choices`.
        """
        if options.parallel:  # stripes that run at once are in memory at once
            return ()
        choices, most = self.choices, options.cascade * operations(self.graph) / 100
        allowed = [choice for choice in choices if choice.cost <= most]
        if not allowed:
            return ()
        plain = self._cut((), options)
        counted = (each for each in self._counted(allowed, plain.flops, options) if each.cost <= most)
        saving = [each for each in islice(counted, _MOST_TRIED) if each.nbytes < plain.nbytes]
        return (self._told(min(saving, key=lambda each: each.nbytes), plain, options),) if saving else ()

    def _counted(self, choices: Sequence[Choice], work: int, options: Options) -> Iterator[Choice]:
        """Yields choices with the lower bounds and the operations of the graphs that they lead to.

        Those with a stripe that would read nothing but pads are left out.
        """
        for choice in choices:
            with suppress(PassError):
                cut = self._cut(choice.cascades, options)
                extra = max(cut.flops - work, 0)
                yield evolve(choice, nbytes=cut.nbytes, extra=extra, cost=choice.cost - choice.extra + extra)

    def _cut(self, cascades: tuple[Cascade, ...], options: Options) -> _Cut:
        """Returns what the graph with cascades needs, with values nested where that saves bytes."""
        key = cascades, _deciding(options)
        if key not in self._cuts:
            graph = with_cascades(self.graph, cascades) if cascades else self.graph
            ways = nestings(lower_graph(graph, options), options)
            self._cuts[key] = _Cut(min(least_bytes(way, options) for way in ways), operations(graph))
        return self._cuts[key]

    def _told(self, choice: Choice, plain: _Cut, options: Options) -> Cascaded:
        runs = tuple(_run(self.graph, cascade) for cascade in choice.cascades)
        kept = sum(len(cascade.rolling) for cascade in choice.cascades)
        pieces = sum(cascade.in_pieces for cascade in choice.cascades)
        least = 0 if options.caller_buffers or options.store else self.bound
        work = plain.flops
        return Cascaded(
            runs, choice.extra / work, choice.cost / work, kept, pieces, plain.nbytes, least, choice.cascades
        )


def _deciding(options: Options) -> Options:
    """Returns options that are equal where bounds of the same graph are; lists of names become tuples."""
    buffers, donated = tuple(options.caller_buffers), tuple(options.donated)
    return evolve(options, optimise=0, cascade=0, store="", nodes=NO_NODES, caller_buffers=buffers, donated=donated)


def _run(graph: Graph, cascade: Cascade) -> tuple[str, str, int]:
    operators = graph.operators
    first, last = operators[cascade.first], operators[cascade.last - 1]
    counted = first if cascade.rolling else last
    images, rows = counted.outputs[0].shape[0], counted.outputs[0].shape[ROWS]
    return first.name, last.name, images * -(-rows // cascade.height)
