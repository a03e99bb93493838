"""The largest lengths of dimensions whose plan keeps within a budget, found by bisection."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Unpack

from attrs import define, evolve, field, frozen

from allocator.progress import Activity
from engine.budgets.candidates import NODES
from engine.budgets.fitted import Fit, Point
from engine.graph.graph import Graph
from engine.passes.automatic import optimised, plan_optimised
from engine.planning.options import Options, PlanOptions, check_one_arena, parse_budget
from engine.planning.placed import PlacedPlan
from engine.stages.bind import bind
from engine.system.threads import cpus
from engine.text.errors import EngineError, GraphError, OptionError
from ops.tensor.errors import OpError

BELOW, ABOVE = 2, 4
"""Neighbours of an answer that are planned: the arena need not grow evenly, and a larger length may fit again."""
MOST_NAMES = 2
"""Lengths that are varied at once."""


@frozen(eq=False)
class Axis:
    """A name, and the lengths that it may have, in ascending order."""

    name: str
    lengths: Sequence[int]

    @property
    def coarse(self) -> Sequence[int]:
        """The lengths that are listed; of a range its least, doubled again and again, and its greatest."""
        if not isinstance(self.lengths, range):
            return self.lengths
        doubled, least = list[int](), max(self.lengths[0], 1)
        while least < self.lengths[-1]:
            doubled.append(least)
            least *= 2
        return (*doubled, self.lengths[-1])


Load = Callable[[Mapping[str, int]], Graph]
"""Returns the graph with these lengths, or raises where the model does not allow them."""


def fit(
    graph: Graph,
    budget: int | str,
    lengths: Mapping[str, int | tuple[int, int] | Sequence[int]],
    **options: Unpack[PlanOptions],
) -> Fit:
    """Returns the largest lengths of dimensions that are names whose arena keeps within a budget.

    `lengths` has for each name the least and the greatest length as a tuple of two, a list of lengths, or one length
    that stays; one name or two vary. Of two, the frontier is found: for some lengths of the first the largest of the
    second.
    No operator runs again. Raises OptionError, GraphError for names that the graph does not have.
    """
    axes = tuple(_axis(name, said) for name, said in lengths.items() if not isinstance(said, int))
    fixed = {name: said for name, said in lengths.items() if isinstance(said, int)}
    if unknown := sorted(lengths.keys() ^ graph.symbols.keys()):
        names = ", ".join(graph.symbols) or "none"
        raise GraphError(f"lengths must name the open dimensions of {graph.name!r} ({names}); see {unknown[0]!r}")
    load = partial(_bound, graph, fixed)
    return search_fit(graph.name, load, parse_budget(budget), axes, Options(**options))


def search_fit(model: str, load: Load, budget: int, axes: Sequence[Axis], options: Options) -> Fit:
    """Returns the largest lengths that fit on one axis, or the frontier on two. Raises OptionError for more axes."""
    if not 1 <= len(axes) <= MOST_NAMES:
        raise OptionError(f"one length or two can be varied at once, and not {len(axes)}")
    check_one_arena(options, "a network that is fitted to a budget")
    threads = 1 if options.parallel else cpus()
    quick = evolve(options, threads=threads, nodes=min(options.nodes, NODES))
    with Activity("looking for the largest lengths", model):
        search = _Search(load, budget, quick)
        largest = _frontier(search, *axes) if len(axes) == MOST_NAMES else search.largest(axes[0], {})
    planned = tuple(sorted(search.points.values(), key=lambda point: tuple(point.lengths.values())))
    return Fit(model, budget, tuple(axis.name for axis in axes), largest, planned, _uneven(planned))


def _frontier(search: "_Search", first: Axis, second: Axis) -> tuple[Point, ...]:
    """Returns for each of some lengths of the first axis the largest of the second that fits.

    A larger length of the first is taken to leave no more room to the second: there the search begins.
    """
    frontier = list[Point]()
    for length in first.coarse:
        lengths = [n for n in second.lengths if not frontier or n <= frontier[-1].lengths[second.name]]
        best = search.largest(evolve(second, lengths=lengths), {first.name: length})
        if not best:
            break
        frontier += best
    return tuple(frontier)


@define(eq=False)
class _Search:
    load: Load
    budget: int
    options: Options
    points: dict[tuple[int, ...], Point] = field(factory=dict)

    def largest(self, axis: Axis, others: Mapping[str, int]) -> tuple[Point, ...]:
        """Returns the point of the largest length that fits; nothing where the least does not.

        Neighbours of the answer are planned; where one that is larger fits, it is the answer, and so on.
        """
        at = partial(self._at, axis, others)
        low, high = 0, len(axis.lengths) - 1
        if not at(low).fits(self.budget):
            return ()
        if at(high).fits(self.budget):
            low = high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if at(middle).fits(self.budget) else (low, middle)
        while (
            best := max(i for i, near in [(i, at(i)) for i in self._near(axis, low)] if near.fits(self.budget))
        ) > low:
            low = best
        return (at(low),)

    def _near(self, axis: Axis, answer: int) -> Sequence[int]:
        return range(max(answer - BELOW, 0), min(answer + ABOVE + 1, len(axis.lengths)))

    def _at(self, axis: Axis, others: Mapping[str, int], index: int) -> Point:
        lengths = {**others, axis.name: axis.lengths[index]}
        key = tuple(lengths.values())
        if key not in self.points:
            self.points[key] = self._planned(lengths)
        return self.points[key]

    def _planned(self, lengths: Mapping[str, int]) -> Point:
        with Activity("planning", ", ".join(f"{name}={n}" for name, n in lengths.items())):
            try:
                graph = self.load(lengths)
            except (EngineError, OpError) as error:
                if not self.points:
                    raise  # the least length is no length of this model
                return Point(lengths, 0, " ".join(str(error).split()))
            if graph.is_symbolic:
                raise GraphError(f"graph {graph.name!r} has sizes that data decide: there is no one arena to fit")
            return Point(lengths, _plan(graph, self.options).arena_bytes)


def _plan(graph: Graph, options: Options) -> PlacedPlan:
    return plan_optimised(optimised(graph, options), options)


def _bound(graph: Graph, fixed: Mapping[str, int], lengths: Mapping[str, int]) -> Graph:
    return bind(graph, {**fixed, **lengths})


def _axis(name: str, said: Sequence[int]) -> Axis:
    if isinstance(said, tuple) and len(said) == 2:
        lengths: Sequence[int] = range(said[0], said[1] + 1)
    else:
        lengths = sorted(set(said))
    if not lengths or lengths[0] < 0:
        raise OptionError(f"{name} has no length to try in {said!r}")
    return Axis(name, lengths)


def _uneven(planned: Sequence[Point]) -> tuple[tuple[Point, Point], ...]:
    """Returns the pairs of planned points, one name apart, of which the larger one needs fewer bytes."""
    accepted = [point for point in planned if not point.refused]
    rows: dict[tuple[int, ...], list[Point]] = {}
    for point in accepted:
        rows.setdefault(tuple(point.lengths.values())[:-1], []).append(point)
    return tuple(
        (less, more) for row in rows.values() for less, more in pairwise(row) if more.arena_bytes < less.arena_bytes
    )
