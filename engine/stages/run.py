"""Runs a network whose sizes are known when it is fed or while it runs: stage after stage, in one arena."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from attrs import define

from allocator.machine_code.mutex import Mutex
from engine.executor.binding import shared_pack_cache
from engine.executor.dynamic import DynamicExecutor
from engine.executor.feeds import as_arrays, check_apart, check_names, deliver, read_outs
from engine.executor.poison import PoisonExecutor
from engine.executor.team import team
from engine.graph.bindings import Bindings
from engine.graph.opaque import check_runs, opaque_operators
from engine.stages.bind import lengths_of
from engine.stages.cache import CachedStage, PlanCache
from engine.stages.deciding import deciding_elements, deciding_key
from engine.stages.reuse import Planner
from engine.stages.reused_plans import ReusedPlans
from engine.stages.segments import Memory
from engine.stages.stage import Stage, Terms, first_stage, next_stage
from engine.stages.stage_runner import Arounds
from engine.stages.task import Template
from engine.system.timing import Stopwatch
from engine.text.errors import FeedError, KernelError, NoMemoryError
from ops.schema.schema import Thunk
from ops.tensor.errors import OpError
from ops.tensor.spec import Array, Shape

Outputs = dict[str, Array]
NOT_RUN = "nothing has run yet"
NOT_ENDED = "the last run did not end"


class RunsStage(Protocol):
    """Runs one stage on the live tensors, by name, and returns the tensors that live out of it."""

    def run(self, inputs: Mapping[str, Array], around: Arounds, /) -> Outputs:
        """Runs it once."""


class StagedExecutor:
    """Runs a graph stage by stage, in an arena that grows, with a cache of plans.

    It keeps the stages of the last run and the data between them.
    After a run that ended with an error, `stages` has those that had run; `lack` says what a whole run misses.
    `mode` is "static" (all stages in that arena), "dynamic" (reference counting) or "poison" (each stage watched in a
    separate arena). One run at a time: a second thread waits for the first. An error leaves the executor usable.
    """

    def __init__(
        self,
        template: Template,
        terms: Terms,
        memory: Memory,
        cache: PlanCache,
        *,
        mode: str = "static",
        plan_first: Planner = first_stage,
        threads: int = 1,
    ) -> None:
        self._team = team(threads)
        self.template = template
        self.terms = terms
        self.mode = mode
        self.cache = cache
        self.memory = memory
        self.stages: tuple[Stage, ...] = ()
        self.history: tuple[Mapping[str, Array], ...] = ()
        self.lack = NOT_RUN
        self.plan_first = plan_first
        self._packs = shared_pack_cache(template.graph.constants.entries.values())
        self._elements = deciding_elements(template.graph)
        self._fed = sorted(template.data & template.graph.inputs.keys())
        self._runners: WeakKeyDictionary[CachedStage, RunsStage] = WeakKeyDictionary()  # dropped with its plan
        self._bound_at = self.memory.relocations
        self._refused = bool(opaque_operators(template.graph))
        self._reuse = ReusedPlans(template, terms, self._packs, plan_first)
        self._mutex = Mutex()

    @property
    def prepacked_bytes(self) -> int:
        """Bytes of the packed constants so far."""
        return self._packs.nbytes

    def run(self, feeds: Mapping[str, Any], out: Mapping[str, Array], copy: bool) -> Outputs:
        """Runs once: plans stages that are not in the cache, and calls kernels.

        Raises FeedError, BudgetError, KernelError.
        """
        return self._run(feeds, out, copy, ())

    def run_timed(self, feeds: Mapping[str, Any], out: Mapping[str, Array], copy: bool, watch: Stopwatch) -> Outputs:
        """Runs once and measures each call; ticks go on from stage to stage."""
        return self._run(feeds, out, copy, (watch.around,))

    def _run(self, feeds: Mapping[str, Any], out: Mapping[str, Array], copy: bool, around: Arounds) -> Outputs:
        graph = self.template.graph
        if self._refused:
            check_runs(graph)
        check_names("input", feeds, graph.inputs, complete=True)
        check_names("output", out, graph.outputs, complete=False)
        specs = {name: var.spec for name, var in graph.inputs.items()}
        arrays = as_arrays("input", {name: feeds[name] for name in specs}, specs)
        lengths = lengths_of(graph, arrays)
        with self._mutex.lock:
            arrays = {n: a.copy() if self.memory.contains(a) else a for n, a in arrays.items()}
            left = self._stages(lengths, arrays, out, around)
            return {name: deliver(left[name], out.get(name), copy) for name in graph.outputs}

    def _stages(self, lengths: Mapping[str, int], left: Outputs, out: Mapping[str, Array], around: Arounds) -> Outputs:
        """Runs all stages; `left` has the feeds first, then the live tensors of each stage. Returns the outputs."""
        self.stages, self.history, self.lack, ticks = (), (), NOT_ENDED, 0
        data = {n: left[n].copy() for n in self._fed}
        key = tuple(lengths.items()), deciding_key(data, self._elements)
        self.cache.start()
        shapes = {name: array.shape for name, array in left.items()}
        entry = self.cache.get(key, partial(self._first, lengths, shapes, data))
        while True:
            stage = entry.stage
            self._grow_arena(stage)
            self._check_out(stage, out)
            left = self._runner(entry).run(left, tuple(partial(_shifted, a, ticks) for a in around))
            self.stages, ticks = (*self.stages, stage), ticks + stage.ticks
            if stage.is_last:
                self.lack = ""
                return left
            data = {key: left[name].copy() for key, name in stage.reads.items()}
            self.history = (*self.history, data)
            entry = self.cache.get(deciding_key(data, self._elements), partial(self._next, stage, data))

    def _first(self, lengths: Mapping[str, int], shapes: Mapping[str, Shape], data: Mapping[str, Array]) -> Stage:
        bindings = Bindings(lengths, dict(shapes), dict(data))
        try:
            reused = self._reuse.stage(bindings) if self.mode == "static" else ()
            return reused[0] if reused else self.plan_first(self.template, bindings, self.terms)
        except OpError as error:
            bound = ", ".join(f"{n}={v}" for n, v in lengths.items())
            raise FeedError(f"inputs with {bound or 'these data'} do not fit: {error}") from error

    def _next(self, stage: Stage, data: Mapping[str, Array]) -> Stage:
        try:
            return next_stage(self.template, stage, data, self.terms)
        except OpError as error:
            read = ", ".join(f"{n}={_shown(a)}" for n, a in data.items())
            raise KernelError(f"stage {stage.number + 1} cannot run with {read}: {error}") from error

    def _grow_arena(self, stage: Stage) -> None:
        """Allocates all addresses of the stage; drops the runners where addresses got other bytes."""
        if self.mode != "static":
            return
        try:
            if stage.number == 1:
                self.memory.start(stage.after.top)
            else:
                self.memory.grow(stage.before.top, stage.after.top)
        except MemoryError as error:
            raise _no_arena(stage.after.top) from error
        if self._bound_at != self.memory.relocations:
            self._runners.clear()
            self._reuse.forget()
            self._bound_at = self.memory.relocations

    def _runner(self, entry: CachedStage) -> RunsStage:
        if entry not in self._runners:
            self._runners[entry] = self._new_runner(entry.stage)
        return self._runners[entry]

    def _new_runner(self, stage: Stage) -> RunsStage:
        if self.mode == "dynamic":
            return _SeparateRunner(DynamicExecutor(stage.plan, self._packs, self._team))
        if self.mode == "poison":
            try:
                return _SeparateRunner(PoisonExecutor(stage.plan))
            except MemoryError as error:
                raise _no_arena(stage.plan.arena_bytes) from error
        return self._reuse.runner(stage, self.memory, self._team)

    def _check_out(self, stage: Stage, out: Mapping[str, Array]) -> None:
        """Checks the caller's arrays, as soon as their shapes are known. Raises FeedError."""
        if not stage.is_last:
            return
        read_outs(out, stage.outputs)
        check_apart({}, {}, out, ())
        lies_in = next((n for n, a in out.items() if self.memory.contains(a)), "")
        if lies_in:
            raise FeedError(f"out={lies_in!r} lies in the arena of this executable; give another array")


class _SeparateRunner:
    """Runs a stage in separate memory."""

    def __init__(self, executor: DynamicExecutor | PoisonExecutor) -> None:
        self._executor = executor

    def run(self, inputs: Mapping[str, Array], around: Arounds) -> Outputs:
        """Runs it once."""
        feeds = {n: inputs[n] for n in self._executor.plan.lowered.inputs}
        if around:
            return self._executor.run_timed(feeds, {}, True, _Clocks(arounds=around))
        return self._executor.run(feeds, {}, True)


@define(eq=False)
class _Clocks(Stopwatch):
    """The clocks of a whole run, for the calls of one stage."""

    arounds: Arounds = ()

    def around(self, tick: int, thunk: Thunk) -> Thunk:
        """Returns the thunk, timed by all clocks."""
        for wrap in self.arounds:
            thunk = wrap(tick, thunk)
        return thunk


def _no_arena(nbytes: int) -> NoMemoryError:
    return NoMemoryError(f"an arena of {nbytes} bytes cannot be allocated on this machine")


def _shifted(around: Callable[[int, Thunk], Thunk], ticks: int, tick: int, thunk: Thunk) -> Thunk:
    return around(ticks + tick, thunk)


def _shown(array: Array) -> str:
    return np.array2string(array, threshold=8, separator=",")
