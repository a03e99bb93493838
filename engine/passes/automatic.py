"""From a graph as it was given to the plan of the graph that passes leave: which passes run, and what they did.

With the option `optimise="auto"`, a group of passes that makes the arena larger is left out. Lower bounds say where
that can be: where the arena after all passes is no larger than the lower bound without passes, nothing else is planned.

Which groups are left out decides last bits. So it is decided for the plain plan, and holds for all ways to run the same
graph: watched for poison, at once, within a budget, by another strategy.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from allocator.problem import NO_CAPACITY
from allocator.progress import Activity
from allocator.solvers.base import NO_NODES
from engine.graph.graph import Graph
from engine.lower.backends import backends_of
from engine.passes import cascade
from engine.passes.pipeline import CHOICES, FAST, GROUPS, applied_passes
from engine.passes.storage import cast_storage
from engine.planning.options import AUTO, DEFAULTS, Options
from engine.planning.placed import Cascaded, Optimisation, PlacedPlan
from engine.planning.planner import least_bytes, lower_graph, plan_graph
from ops.schema.backends import ONEDNN

if TYPE_CHECKING:  # few plans have cascades; its module is imported when it is first used
    from engine.passes.cascade import CascadeSearch

_PLAIN: Mapping[str, Any] = MappingProxyType(
    {
        name: getattr(DEFAULTS, name)
        for name in ("strategy", "seed", "padding", "parallel", "caller_buffers", "donated", "memories", "place")
    }
)
"""Options of the plain plan: those that change where chunks lie, and not which calls there are."""
CASCADES = "cascades"
"""The name of cascades among the passes."""
_CASCADE_NODES = 20_000
"""The steps of the search for addresses of graphs with cascades. For ResNet-50 in 19 stripes (tools/bench_cascades.py),
a plan takes 2 s with them; 100,000 steps take 5 s more and find no smaller arena."""
LEAST_SHARE = 50
"""Passes that make runs fast may make the arena larger by 1/50 of what it is without passes: memory is traded for time.
"""


@frozen(eq=False)
class Optimised:
    """A graph after passes. `done` says what they did, and is empty where none ran. `before` is the graph as given."""

    graph: Graph
    done: tuple[Optimisation, ...]
    before: Graph


@frozen(eq=False)
class Passed:
    """A graph after passes of a level, which can be cut into stripes and stored in 16 bits; `before` is as given.

    `changes` has the operators that each pass added, `left_out` the groups of passes that did not run.
    """

    before: Graph
    graph: Graph
    level: int
    changes: tuple[tuple[str, int], ...]
    left_out: tuple[str, ...]
    _searches: dict[frozenset[str], "CascadeSearch"] = field(factory=dict, repr=False)

    def cascades(self, caller_buffers: Sequence[str]) -> "CascadeSearch":
        """Returns the search for cascades, which come behind all passes: these do not see through slices of rows."""
        outside = frozenset(caller_buffers)
        if outside not in self._searches:
            self._searches[outside] = cascade.CascadeSearch(self.graph, outside)
        return self._searches[outside]

    def finished(self, options: Options) -> Optimised:
        """Returns the graph with cascades and with its tensors stored, as the options say.

        Stored last: passes do not see through the casts around each operator. Raises GraphError for a graph with
        parameters, which has no cascades, and for one whose tensors cannot be stored in 16 bits.
        """
        after, changes = self.graph, dict(self.changes)
        cascades = list[Cascaded]()
        for cascaded in self.cascades(options.caller_buffers).within(options) if options.cascade else ():
            after, stripes = cascade.write_cascades(self.graph, cascaded.cascades)
            cascades.append(evolve(cascaded, stripes=stripes))
            changes[CASCADES] = len(after.operators) - len(self.graph.operators)
        if options.store:
            stored = cast_storage(after, options.store)
            changes[f"stored as {options.store}"] = len(stored.operators) - len(after.operators)
            after = stored
        names, count = tuple(changes.items()), len(self.before.operators)
        done = Optimisation(self.level, count, len(after.operators), names, self.left_out, cascades=tuple(cascades))
        return Optimised(after, (done,) if self.level or cascades else (), self.before)


def passed(graph: Graph, level: int, left_out: Sequence[str] = ()) -> Passed:
    """Returns the graph after the passes of a level; `left_out` has names of groups of passes that do not run."""
    after, changes = graph, Counter[str]()
    with Activity("optimising", graph.name):
        for applied in applied_passes(graph, level, left_out=left_out):
            after = applied.after
            changes[applied.by] += len(after.operators) - len(applied.before.operators)
    return Passed(graph, after, level, tuple(changes.items()), tuple(left_out))


def optimised(graph: Graph, options: Options, left_out: Sequence[str] = ()) -> Optimised:
    """Returns the graph after the passes of the option `optimise`, with cascades and 16 bits as the options say.

    `left_out` has names of groups of passes that do not run. Raises GraphError as `Passed.finished`.
    """
    return passed(graph, options.level, left_out).finished(options)


def plan_optimised(
    whole: Optimised,
    options: Options,
    budget: int = NO_CAPACITY,
    *,
    nodes: int = NO_NODES,
    recompute: bool = True,
) -> PlacedPlan:
    """Returns the plan of a graph after passes, which says what they did; `whole` is the graph after all passes.

    Where the level is for the planner to choose, the arena of the plain plan is no larger than without passes, but for
    what little groups cost that make runs fast. `budget` and `recompute` are those of `plan_graph`. The search for the
    plan, but not for the passes, ends after `nodes` steps where the options set no limit.
    """
    final = limited(evolve(options, nodes=nodes) if options.nodes == NO_NODES else options, whole.done)
    if options.optimise != AUTO or not any(done.changes for done in whole.done):
        return evolve(plan_graph(whole.graph, final, budget, recompute=recompute), optimisation=whole.done)
    search = _Search(whole.before, _plain(limited(options, whole.done)))
    trial = search.planned(whole)
    if trial.plan.arena_bytes > search.bound(search.unchanged):
        trial = search.no_larger(trial)
    is_plain = search.options == final and budget == NO_CAPACITY
    plan = trial.plan if is_plain else plan_graph(trial.prepared.graph, final, budget, recompute=recompute)
    return evolve(plan, optimisation=trial.prepared.done)


def limited(options: Options, done: Sequence[Optimisation]) -> Options:
    """Returns the options with a limit of steps for a graph with cascades, where they have none and no time either."""
    is_cut = any(one.cascades for one in done)
    has_none = options.nodes == NO_NODES and options.timeout == DEFAULTS.timeout
    return evolve(options, nodes=_CASCADE_NODES) if is_cut and has_none else options


def _plain(options: Options) -> Options:
    """Returns the options of the plain plan. Only kernels of a library want workspace by the number of threads."""
    threads = 1 if ONEDNN in backends_of(options.backend) else options.threads
    return evolve(options, threads=threads, target=evolve(options.target, memories=()), **_PLAIN)


@frozen(eq=False)
class _Trial:
    """A graph after some passes, and its plan."""

    prepared: Optimised
    plan: PlacedPlan


@frozen(eq=False)
class _Search:
    """A search for the groups of passes that are left out."""

    graph: Graph
    options: Options

    @property
    def unchanged(self) -> Graph:
        """Returns the graph without passes and cascades."""
        return optimised(self.graph, evolve(self.options, optimise=0, cascade=0)).graph

    def planned(self, prepared: Optimised) -> _Trial:
        return _Trial(prepared, plan_graph(prepared.graph, self.options))

    def bound(self, graph: Graph) -> int:
        return least_bytes(lower_graph(graph, self.options), self.options)

    def no_larger(self, whole: _Trial) -> _Trial:
        """Returns a trial whose arena is no larger than that of the graph as given, without some groups of passes.

        Groups of FAST are left out last, and stay where what remains is little.
        """
        plain = plan_graph(self.unchanged, self.options).arena_bytes
        best = self._without(whole, plain, [group for group in CHOICES if group not in FAST])
        if (best.plan.arena_bytes - plain) * LEAST_SHARE > plain:
            best = self._without(best, plain, CHOICES)
        excess = best.plan.arena_bytes - plain
        if excess * LEAST_SHARE > plain:
            return self.planned(optimised(self.graph, self.options, CHOICES))
        (done,) = best.prepared.done
        return evolve(best, prepared=evolve(best.prepared, done=(evolve(done, cost=max(excess, 0)),)))

    def _without(self, best: _Trial, aim: int, groups: Iterable[str]) -> _Trial:
        """Leaves out one more of the groups as long as the arena shrinks and is larger than `aim` bytes."""
        while best.plan.arena_bytes > aim:
            (done,), before = best.prepared.done, best
            changed = {name for name, _ in done.changes}
            names = {group: {group, *(each.name for each in GROUPS.get(group, ()))} for group in groups}
            effective = [group for group in groups if group not in done.left_out and names[group] & changed]
            candidates = [optimised(self.graph, self.options, (*done.left_out, group)) for group in effective]
            bounds = [self.bound(each.graph) for each in candidates]
            for bound, candidate in sorted(zip(bounds, candidates, strict=True), key=itemgetter(0)):
                if bound < best.plan.arena_bytes:
                    best = min(best, self.planned(candidate), key=lambda trial: trial.plan.arena_bytes)
            if best is before:
                break
        return best
