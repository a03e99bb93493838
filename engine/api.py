"""From a graph to something that runs."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from inspect import Parameter, signature
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias, Unpack

from attrs import evolve, frozen

from allocator.problem import NO_CAPACITY
from allocator.progress import Activity
from allocator.solvers.base import NO_NODES
from engine import executor as executors
from engine import explain as explaining
from engine import remat
from engine import saved as saving
from engine import stages as staging
from engine import trace as tracing
from engine.execution_plan import ExecutionPlan, execution_plan
from engine.executor.arenas import OWN_ARENA, Arena, GivenArena, arena_in, has_files, new_arena
from engine.executor.binding import PackCache, packs_from
from engine.executor.dynamic import DynamicExecutor
from engine.executor.feeds import as_arrays, check_array, check_names, kept, out_arrays
from engine.executor.file_packs import packs_of
from engine.executor.in_stripes import StripedInputExecutor
from engine.executor.parallel import ParallelExecutor
from engine.executor.poison import GUARD, PoisonExecutor
from engine.executor.static import StaticExecutor
from engine.executor.team import team
from engine.graph.deferred import sources
from engine.graph.graph import Graph
from engine.graph.mapped import check_files
from engine.graph.opaque import check_runs
from engine.passes.automatic import Passed, passed, plan_optimised
from engine.planning.options import EVICTIONS, Options, PlanOptions, parse_budget
from engine.planning.placed import PlacedPlan
from engine.planning.planner import check_outputs
from engine.report.report import Report, check_budget
from engine.system.file_bytes import check_folder
from engine.system.threads import check_threads, cpus
from engine.system.timing import Stopwatch, Timing
from engine.text.deprecated import accepts_old_keywords, warn_of_old_name
from engine.text.errors import EngineError, FeedError, GraphError, NoMemoryError, OptionError
from engine.text.faults import Door, behind_door
from engine.text.options import check_flag, check_option_names
from engine.trace.build import IN_TICKS, trace
from engine.trace.trace import Trace
from ops.tensor.spec import Array, spec_of

ALL_CPUS = 0
"""A number of threads that means: as many as there are processors to use."""
WATCHED_NODES = 1_000
"""Steps of the search for an arena in which every byte is watched. It need not be small, so the search ends early."""
MODES = ("static", "dynamic")
PLANS_KEPT = 256
"""Plans that are kept of a graph whose sizes are not known beforehand; each stage has one."""
KnownExecutor = StaticExecutor | DynamicExecutor
"""The executors of graphs whose sizes are all known."""
Executor: TypeAlias = "KnownExecutor | staging.StagedExecutor"


@frozen(eq=False)
class Executable:
    """A graph that is ready to run, planned or planned when it is fed. Call it with inputs by name, or use `run`.

    `options` are those of `engine.compile`. It can be pickled and copied: the copy has an arena of its own, the same
    plan where its machine has the same kernels, and the present values of parameters.
    """

    graph: Graph
    executor: Executor
    options: Mapping[str, Any] = MappingProxyType({})

    def __reduce__(self) -> Any:
        """Returns how it is pickled: the graph is compiled again with its plan, and parameters get their values."""
        plan = saving.embed(self.plan) if isinstance(self.executor, KnownExecutor) else None
        return _compiled, (self.graph, dict(self.options), plan, self.parameters)

    def __repr__(self) -> str:
        """Returns one line."""
        kind = type(self.executor).__name__.removesuffix("Executor").lower()
        return f"<executable of {self.graph!r}: {kind}, arena {self.arena_bytes} B>"

    @property
    def plan(self) -> ExecutionPlan:
        """Returns the plan; of a graph whose sizes were not known beforehand, that of the last run.

        Raises EngineError where nothing has run yet, the last run did not end, or had several stages: `stages` has
        their plans.
        """
        if isinstance(self.executor, KnownExecutor):
            return execution_plan(self.executor.plan)
        stages = self._whole_run("plan")
        if len(stages) != 1:
            raise EngineError(
                f"there is no one plan of {self.graph.name!r}: it ran in {len(stages)} stages; see `stages`"
            )
        return execution_plan(stages[0].plan)

    @property
    def stages(self) -> "tuple[staging.Stage, ...]":
        """Returns the stages of the last run of a graph whose sizes were not known beforehand; () for other graphs.

        Where that run ended with an error, these are the stages that had run before.
        """
        return () if isinstance(self.executor, KnownExecutor) else self.executor.stages

    def _whole_run(self, wanted: str) -> "tuple[staging.Stage, ...]":
        """Returns the stages of the last run, which has ended; () where all sizes are known. Raises EngineError."""
        if isinstance(self.executor, KnownExecutor):
            return ()
        if self.executor.lack:
            raise EngineError(f"there is no {wanted} of {self.graph.name!r}: {self.executor.lack}")
        return self.executor.stages

    def length_range_costs(self) -> "staging.LengthRangeCosts":
        """Returns the bytes of one plan for all lengths and of exact plans, for some choices of lengths.

        `left_out` of the costs is the number of choices of lengths that the graph does not allow. Raises EngineError
        for a graph that was compiled without `length_ranges`.
        """
        executor = self.executor
        if isinstance(executor, KnownExecutor) or not isinstance(executor.plan_first, staging.LengthRangePlanner):
            raise EngineError(f"{self.graph.name!r} was compiled without length_ranges")
        return staging.length_range_costs(executor.template.graph, executor.plan_first)

    def stage_report(self) -> "staging.StageReport":
        """Returns what the stages of the last run cost beside one plan that knows all sizes, and the plan cache's use.

        Raises EngineError for a graph of known sizes, where nothing has run yet, or the last run did not end.
        """
        if isinstance(self.executor, KnownExecutor):
            raise EngineError(f"there is no stage report of {self.graph.name!r}: all its sizes are known")
        self._whole_run("stage report")
        return staging.stage_report(self.executor)

    def bound_costs(self) -> "staging.LengthRangeCosts":
        """Returns `length_range_costs()`, of which this is the old name; warns."""
        warn_of_old_name("Executable.bound_costs()", "Executable.length_range_costs()")
        return self.length_range_costs()

    def story(self) -> "staging.StageReport":
        """Returns `stage_report()`, of which this is the old name; warns."""
        warn_of_old_name("Executable.story()", "Executable.stage_report()")
        return self.stage_report()

    def run(
        self, feeds: Mapping[str, Any], *, out: Mapping[str, Any] | None = None, copy: bool = True, donate: bool = False
    ) -> dict[str, Array]:
        """Runs once; returns the outputs by name.

        Inputs are arrays, or anything with DLPack or `__array__`. `out` gives arrays that outputs are written to, or
        tensors with DLPack, such as PyTorch's: what is returned are numpy arrays with their bytes. `copy=False` returns
        views of the arena, which the next run overwrites. `donate=True` gives this run the bytes of the inputs that
        were compiled with `donated`: what they hold afterwards is undefined. Without it such inputs are copied first.
        Raises FeedError, KernelError, OptionError.
        """
        return self._run(feeds, out or {}, copy, donate, self.executor.run)

    def _run(
        self,
        feeds: Mapping[str, Any],
        out: Mapping[str, Any],
        copy: bool,
        donate: bool,
        run: Callable[[Mapping[str, Any], Mapping[str, Array], bool], dict[str, Array]],
    ) -> dict[str, Array]:
        with Door(f"running graph {self.graph.name!r}"):
            check_names("output", out, self.graph.outputs, complete=False)
            return run(self._given(feeds, donate), out_arrays(out), copy)

    def _given(self, feeds: Mapping[str, Any], donate: bool) -> Mapping[str, Any]:
        """Returns the inputs, with copies of those that the run would overwrite and may not."""
        check_flag("donate", donate)
        donated = self.options.get("donated", ())
        if donate and not donated:
            name = self.graph.name
            raise OptionError(
                f"donate=True, and no input of {name!r} is donated: arenaplan.compile(..., donated=) does it"
            )
        if donate or not donated or not isinstance(self.executor, StaticExecutor):
            return feeds
        return kept(feeds, {name: self.graph.inputs[name].spec for name in donated})

    def timed(
        self, feeds: Mapping[str, Any], *, out: Mapping[str, Any] | None = None, copy: bool = True, donate: bool = False
    ) -> tuple[dict[str, Array], tuple[Timing, ...]]:
        """Runs once; returns the outputs, and when each call ran, in seconds from the start, earliest first."""
        watch = Stopwatch()
        outputs = self._run(feeds, out or {}, copy, donate, partial(self.executor.run_timed, watch=watch))
        return outputs, watch.timings()

    @property
    def parameters(self) -> dict[str, Array]:
        """Returns copies of the parameters' present values, by name."""
        return {name: array.copy() for name, array in self._held().items()}

    def load(self, values: Mapping[str, Any]) -> None:
        """Gives parameters other values, by name; the others keep theirs. Raises FeedError."""
        held = self._held()
        specs = {name: spec_of(array) for name, array in held.items()}
        check_names("parameter", values, specs, complete=False)
        arrays = as_arrays("parameter", values, specs)
        for name, array in arrays.items():
            check_array(f"parameter {name!r}", array, specs[name])
        if isinstance(self.executor, KnownExecutor):
            self.executor.load(arrays)

    def _held(self) -> Mapping[str, Array]:
        return self.executor.parameters if isinstance(self.executor, KnownExecutor) else {}

    @property
    def prepacked_bytes(self) -> int:
        """Returns the bytes of the copies that kernels made of weights; those of `plan` are known beforehand."""
        return self.executor.prepacked_bytes

    @property
    def packed_bytes(self) -> int:
        """Returns `prepacked_bytes`, of which this is the old name; warns."""
        warn_of_old_name("Executable.packed_bytes", "Executable.prepacked_bytes")
        return self.prepacked_bytes

    def __call__(self, /, *arrays: Any, **feeds: Any) -> dict[str, Array]:
        """Runs once with the inputs in the order of the graph, as keywords, or both; see `run`. Raises FeedError."""
        names = tuple(self.graph.inputs)
        if len(arrays) > len(names):
            raise FeedError(f"{len(arrays)} arrays are given, and graph {self.graph.name!r} has {len(names)} input(s)")
        placed = dict(zip(names, arrays, strict=False))
        if twice := placed.keys() & feeds.keys():
            raise FeedError(f"input {min(twice)!r} is given twice: by its place and as a keyword")
        return self.run(placed | feeds)

    @property
    def arena_bytes(self) -> int:
        """Returns the size of the arena; of an arena that grows, its present size."""
        if isinstance(self.executor, KnownExecutor):
            return self.plan.arena_bytes
        return self.executor.memory.nbytes

    def report(self) -> Report:
        """Returns the costs of the plan and the tensors alive at its peak. Raises EngineError where `plan` does.

        Of a run that evicts it also has the costs of eviction, and the smallest budget, which takes many simulations.
        """
        evicted = self.executor.evicted if isinstance(self.executor, DynamicExecutor) else ()
        return evolve(self.plan.report(), evicted=evicted)

    def trace(
        self, mode: str = "static", *, heap: str = "", threads: int = IN_TICKS, timings: Sequence[Timing] = ()
    ) -> Trace:
        """Returns all allocations, overwrites, views and frees of a "static" or "dynamic" run, in all its stages.

        In mode "dynamic" a run that evicts has its evictions; names of operators that run again end in "/again".
        `timings` are those of `timed`, in the same mode; see `ExecutionPlan.trace` for the rest. Raises OptionError,
        UnknownHeapError, EngineError where sizes were not known beforehand and nothing has run yet, or the last run did
        not end.
        """
        if stages := self._whole_run("trace"):
            return staging.trace_stages(stages, mode, heap=heap, timings=timings)
        if mode == "dynamic" and isinstance(self.executor, executors.EvictingExecutor):
            return tracing.trace_evicting(self.executor, heap, threads, timings)
        return trace(self.plan, mode, heap=heap, threads=threads, timings=timings)


@accepts_old_keywords
@behind_door("planning")
def compile_graph(
    graph: Graph,
    *,
    mode: str = "static",
    debug: str = "",
    budget: int | str = "",
    threads: int = ALL_CPUS,
    length_ranges: Mapping[str, tuple[int, int]] | None = None,
    plan_cache_size: int = PLANS_KEPT,
    recompute: bool = True,
    evict: str = "",
    embedded: "saving.EmbeddedPlan | None" = None,
    **options: Unpack[PlanOptions],
) -> Executable:
    """Plans a graph and makes it runnable.

    `mode` is "static" (one arena) or "dynamic" (reference counting); `debug="poison"` watches every byte of a
    static run, and compares what the graph computes before and after each pass. `budget` is the most bytes that the
    arena may have, as a number or a text such as "8 MiB": it makes no plan larger. Where it is not met, and `recompute`
    is left on, some operators run again, so that what they compute need not be kept, or images are computed in stripes
    (option `cascade`): the plan's graph has them, and the report what they cost. In dynamic mode `evict` names a
    heuristic of eviction, and `budget` is the most bytes of all tensors at once: see docs/eviction.md. `embedded` is as
    for `make_plan`. Other options are those of `engine.planning.options.Options`. Raises BudgetError before anything is
    allocated, OptionError.

    Kernels compute on `threads` threads, by default on all processors; where operators may run at once (option
    `parallel`), the threads run operators. Their number changes no bit of what compiled kernels give. BLAS, which
    kernels of numpy call, has threads of its own.

    A graph with dimensions that are names is planned when it is fed, once for each choice of lengths. The
    `plan_cache_size` plans that were used last are kept; nothing is recomputed. With `length_ranges`, the least and the
    greatest length by name, one plan serves all of them. Where sizes become known only while the network runs, it runs
    in stages; a budget is then reserved as one block. Raises ModelError where a file was written in place that weights
    of the graph are parts of.
    """
    _check_options("arenaplan.compile", _names(compile_graph), options, recompute)
    asked = {**options, "mode": mode, "debug": debug, "budget": budget, "threads": threads, "recompute": recompute}
    asked |= {"length_ranges": length_ranges, "plan_cache_size": plan_cache_size, "evict": evict}
    _check_mode(mode, debug)
    check_evict(evict, mode, parse_budget(budget), graph)
    if debug and not options.get("memories"):  # which may have no room for guards
        options["padding"] = max(options.get("padding", 0), GUARD)
    _check_threads(options.get("parallel", ""), mode, threads)
    _check_can_run(graph)
    if graph.is_symbolic and graph.parameters:
        raise GraphError(f"graph {graph.name!r} has parameters, so its lengths must be known; see arenaplan.bind")
    plan_options = Options(**options, threads=_threads_each(threads, options))
    plan_options.target.check_is_host()
    _check_memories(plan_options, mode)
    if graph.is_symbolic:
        if embedded is not None:
            raise OptionError(f"an embedded plan is one of known lengths; arenaplan.bind gives {graph.name!r} some")
        if debug:
            staging.judge_passes(graph, plan_options)
        executor = staging.staged(
            graph,
            plan_options,
            mode=debug or mode,
            budget=budget,
            length_ranges=length_ranges or {},
            plan_cache_size=plan_cache_size,
            threads=threads or cpus(),
        )
        return Executable(graph, executor, asked)
    if length_ranges:
        raise OptionError(
            f"graph {graph.name!r} has no dimension that is a name, so there are no lengths to give ranges of"
        )
    nodes = WATCHED_NODES if debug else NO_NODES
    most = "" if evict else budget
    planned_as = asked | {"budget": most, "evict": ""}
    plan = _planned(graph, plan_options, most, planned_as, recompute=recompute, embedded=embedded, nodes=nodes)
    if evict:
        runner = team(threads or cpus())
        return Executable(graph, executors.EvictingExecutor(plan, parse_budget(budget), evict, runner), asked)
    with packs_from(packs_of(plan)):
        return _runnable(graph, asked, plan)


def _check_memories(options: Options, mode: str) -> None:
    if options.board and mode == "dynamic":
        raise OptionError("memories are those of a plan; mode 'dynamic' has none, and allocates where it likes")
    for memory in options.board:
        if memory.folder:
            check_folder(Path(memory.folder))


def _check_can_run(graph: Graph) -> None:
    """Raises UnsupportedError for operators that nobody implements, ModelError for files that were written in place."""
    if not graph.is_symbolic:
        check_runs(graph)
    check_files(array for entry in graph.constants.entries.values() for array in sources(entry))


def _runnable(graph: Graph, asked: Mapping[str, Any], plan: ExecutionPlan, arena: Any = OWN_ARENA) -> Executable:
    """Returns the executable of a plan that was made of a graph; `asked` has the options of `compile_graph`."""
    if asked["debug"]:
        staging.judge_passes(graph, plan.options, plan.optimisation)
    lent = None if arena is OWN_ARENA else arena_in(plan, arena)
    return Executable(graph, _executor(plan, asked["mode"], asked["debug"], asked["threads"], lent), asked)


@behind_door("preparing a run")
def _executable(
    graph: Graph, asked: Mapping[str, Any], packs: PackCache, plan: ExecutionPlan, *, arena: Any, mode: str, debug: str
) -> Executable:
    """Returns an executable as `ExecutionPlan.executable`; those of one plan take packed weights from `packs`."""
    _check_mode(mode, debug)
    _check_threads(plan.options.parallel, mode, asked["threads"])
    if arena is not OWN_ARENA and mode == "dynamic":
        raise OptionError("mode 'dynamic' has no arena, so that arena= is of no use to it")
    plan.options.target.check_is_host()
    _check_can_run(graph)
    with packs_from(packs):
        return _runnable(graph, {**asked, "mode": mode, "debug": debug}, plan, arena)


def _compiled(
    graph: Graph, options: Mapping[str, Any], plan: "saving.EmbeddedPlan | None", parameters: Mapping[str, Array]
) -> Executable:
    """Returns the executable of a graph whose plan is known, with these parameters."""
    executable = compile_graph(graph, embedded=plan, **options)
    executable.load(parameters)
    return executable


@accepts_old_keywords
@behind_door("planning")
def make_plan(
    graph: Graph,
    *,
    budget: int | str = "",
    recompute: bool = True,
    embedded: "saving.EmbeddedPlan | None" = None,
    threads: int = ALL_CPUS,
    **options: Unpack[PlanOptions],
) -> ExecutionPlan:
    """Plans a graph; allocates nothing. Raises BudgetError where the arena would be larger than the budget, though
    operators may run again (unless `recompute` is off).

    Its message says whether that is proved, or a smaller arena may be found in more time. `embedded` is a plan that
    `load_plan` read from a file. Where it is a plan of the same calls, it is followed, and nothing is searched for;
    else the `origin` of the plan says why not. Raises PlanRefusedError where a judge finds it wrong, and OtherPlanError
    where it is required and is a plan of other calls. `threads` are those of `engine.compile`: kernels of libraries
    may want more workspace for more threads.
    """
    _check_options("arenaplan.make_plan", _names(make_plan), options, recompute)
    check_threads(threads, ALL_CPUS, "all processors")
    plan_options = Options(**options, threads=_threads_each(threads, options))
    asked = {**options, "budget": budget, "recompute": recompute, "threads": threads}
    return _planned(graph, plan_options, budget, asked, recompute=recompute, embedded=embedded)


def _planned(
    graph: Graph,
    options: Options,
    budget: int | str,
    asked: Mapping[str, Any],
    *,
    recompute: bool,
    embedded: "saving.EmbeddedPlan | None",
    nodes: int = NO_NODES,
) -> ExecutionPlan:
    """Plans a graph as `make_plan`; `nodes` is that of `plan_optimised`, and `asked` what was asked for, by name."""
    check_outputs(graph)
    if graph.is_symbolic:
        names = ", ".join(graph.symbols) or "sizes that data decide"
        raise GraphError(f"graph {graph.name!r} has no plan before lengths are given for: {names}; see arenaplan.bind")
    passes, most = cache(partial(passed, graph, options.level)), parse_budget(budget)
    if options.board and most != NO_CAPACITY:
        raise OptionError("budget= (--budget) is that of one arena; with memories their capacities say what fits")

    def make() -> PlacedPlan:
        plan = plan_optimised(passes(()).finished(options), options, most, nodes=nodes, recompute=recompute)
        return _within(graph, plan, options, passes, recompute)

    with Activity("planning", graph.name):
        plan = (
            make()
            if embedded is None
            else saving.followed_or(graph, passes, embedded, options, most, make=make, recompute=recompute)
        )
    again = partial(_planned, graph, options, budget, asked, recompute=recompute)
    return execution_plan(
        plan, partial(_alternatives, graph, options), again, partial(_executable, graph, asked, packs_of(plan))
    )


def _alternatives(graph: Graph, options: Options, plan: PlacedPlan) -> "explaining.Alternatives":
    options = evolve(options, cascade=plan.options.cascade)  # a budget may have led to some
    return explaining.AlternativeSearch(graph, plan.graph, options)(plan)


def _within(
    graph: Graph,
    plan: PlacedPlan,
    options: Options,
    passes: Callable[[tuple[str, ...]], Passed],
    recompute: bool,
) -> PlacedPlan:
    """Returns the plan, or where it is larger than its budget one in which more is computed. Raises BudgetError."""
    if not recompute or plan.arena_bytes <= plan.plan.capacity:
        check_budget(plan)
        return plan
    least = plan
    for other in remat.plans_within(graph, plan, options, passes):
        least = min(least, other, key=lambda each: each.arena_bytes)
        if least.arena_bytes <= plan.plan.capacity:
            return least
    check_budget(plan, least=[least] if least is not plan else [])
    return plan


def _names(function: Callable[..., object]) -> tuple[str, ...]:
    """Returns the keywords of a function, and those that it passes on."""
    parameters = signature(function).parameters.values()
    return (*(p.name for p in parameters if p.kind is Parameter.KEYWORD_ONLY), *PlanOptions.__annotations__)


def _check_options(function: str, names: Collection[str], options: PlanOptions, recompute: object) -> None:
    check_option_names(function, options, names)
    check_flag("recompute", recompute)


def _check_mode(mode: str, debug: str) -> None:
    if mode not in MODES:
        raise OptionError(f"mode {mode!r} is unknown; one of: {', '.join(MODES)}")
    if debug not in ("", "poison"):
        raise OptionError(f"debug {debug!r} is unknown; the only one is 'poison'")
    if debug and mode != "static":
        raise OptionError(f"debug={debug!r} watches a static run; mode {mode!r} has no arena to watch")


def check_evict(evict: str, mode: str, budget: int, graph: Graph) -> None:
    """Raises OptionError where a run of this graph cannot evict as `evict` says; "" is no eviction."""
    if not evict:
        return
    if evict not in EVICTIONS:
        raise OptionError(f"evict {evict!r} is unknown; one of: {', '.join(EVICTIONS)}")
    if mode != "dynamic":
        raise OptionError(
            f"evict={evict!r} is for mode='dynamic'; in mode {mode!r} the plan recomputes within its budget"
        )
    if budget == NO_CAPACITY:
        raise OptionError(f"evict={evict!r} keeps within a budget; give one, such as budget='8 MiB' (--budget)")
    if graph.is_symbolic:
        raise OptionError(f"evict={evict!r} needs all sizes beforehand; arenaplan.bind gives {graph.name!r} lengths")


def _check_threads(policy: str, mode: str, threads: int) -> None:
    check_threads(threads, ALL_CPUS, "all processors")
    if policy and mode == "dynamic":
        raise OptionError(f"parallel={policy!r} plans an arena; mode 'dynamic' has none and runs in turn")


def _threads_each(threads: int, options: PlanOptions) -> int:
    """Returns how many threads a kernel runs on: one where operators run at once, at most as many as processors."""
    return 1 if options.get("parallel") else min(threads or cpus(), cpus())


def _executor(plan: ExecutionPlan, mode: str, debug: str, threads: int, lent: GivenArena | None) -> Executor:
    try:
        if mode == "dynamic":
            return DynamicExecutor(plan, runner=team(threads or cpus()))
        if debug and not lent and not has_files(plan):
            return PoisonExecutor(plan, threads or cpus())
        arena: Arena | GivenArena = lent or new_arena(plan)
        if debug:
            return PoisonExecutor(plan, threads or cpus(), arena)
        if plan.schedule.policy or plan.lowered.engine_copies:
            return ParallelExecutor(plan, arena, threads or cpus(), threads)
        kind = StripedInputExecutor if plan.lowered.caller_buffers else StaticExecutor
        return kind(plan, arena, threads or cpus(), threads)
    except NoMemoryError:
        raise
    except MemoryError as error:
        raise NoMemoryError(f"an arena of {plan.arena_bytes} bytes cannot be allocated on this machine") from error
