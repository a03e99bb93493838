"""Runs a network whose sizes are known only when it is fed, or only while it runs: stage after stage, in one arena."""

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from attrs import define

from engine.executor.binding import NO_BYTES, shared_packs
from engine.executor.dynamic import DynamicExecutor
from engine.executor.feeds import as_array, check_apart, check_names, deliver, read_outs
from engine.executor.poison import PoisonExecutor
from engine.executor.team import team
from engine.graph.bindings import Facts
from engine.stages.bind import input_shapes, lengths_of
from engine.stages.cache import Entry, PlanCache
from engine.stages.deciding import deciding_elements, deciding_key
from engine.stages.segments import Memory
from engine.stages.stage import Stage, Terms, first_stage, next_stage
from engine.stages.stage_runner import Arounds, StageRunner
from engine.stages.task import Template
from engine.system.timing import Stopwatch
from engine.text.errors import EngineError, FeedError, KernelError
from ops.schema.schema import Thunk
from ops.tensor.errors import OpError
from ops.tensor.spec import Array

Outputs = dict[str, Array]
Planner = Callable[[Template, Facts, Terms], Stage]
"""Plans the first stage, from the lengths that are fed."""
NOT_RUN = "nothing has run yet"
NOT_ENDED = "the last run did not end"


class Runner(Protocol):
    """Runs one stage on what is alive, by the names of the tensors, and gives what it leaves."""

    def run(self, given: Mapping[str, Array], around: Arounds, /) -> Outputs:
        """One run."""


class StagedExecutor:
    """Holds an arena that grows, plans by what they were made for, the stages of the last run and the data between.

    Of a run that ends with an error, these are the stages that had run; `lack` says what is missing of a whole run.
    `mode` is "static" (all stages in that arena), "dynamic" (reference counting) or "poison" (each stage watched in an
    arena of its own). One run at a time: a second thread waits until the first is through. An error leaves it as usable
    as before.
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
        self._packs = shared_packs(template.graph.constants.entries.values())
        self._elements = deciding_elements(template.graph)
        self._fed = sorted(template.data & template.graph.inputs.keys())
        self._runners: WeakKeyDictionary[Entry, Runner] = WeakKeyDictionary()  # a runner goes with its plan
        self._bound_at = self.memory.moves
        self._lock = threading.Lock()

    @property
    def packed_bytes(self) -> int:
        """Bytes of what kernels made of constants so far."""
        return self._packs.nbytes

    def run(self, feeds: Mapping[str, Any], out: Mapping[str, Array], copy: bool) -> Outputs:
        """One run: plans what was not planned yet, and calls kernels. Raises FeedError, BudgetError, KernelError."""
        return self._run(feeds, out, copy, ())

    def run_timed(self, feeds: Mapping[str, Any], out: Mapping[str, Array], copy: bool, watch: Stopwatch) -> Outputs:
        """One run that takes the time of each call; ticks go on from stage to stage."""
        return self._run(feeds, out, copy, (watch.around,))

    def _run(self, feeds: Mapping[str, Any], out: Mapping[str, Array], copy: bool, around: Arounds) -> Outputs:
        graph = self.template.graph
        check_names("input", feeds, graph.inputs, complete=True)
        check_names("output", out, graph.outputs, complete=False)
        arrays = {name: as_array(feeds[name], var.spec) for name, var in graph.inputs.items()}
        lengths = lengths_of(graph, arrays)
        with self._lock:
            arrays = {n: a.copy() if self.memory.holds(a) else a for n, a in arrays.items()}
            left = self._stages(lengths, arrays, out, around)
            return {name: deliver(left[name], out.get(name), copy) for name in graph.outputs}

    def _stages(self, lengths: Mapping[str, int], left: Outputs, out: Mapping[str, Array], around: Arounds) -> Outputs:
        """Runs all stages; `left` are the feeds at first, then what a stage leaves. Gives the outputs."""
        self.stages, self.history, self.lack, ticks = (), (), NOT_ENDED, 0
        data = {n: left[n].copy() for n in self._fed}
        key = tuple(lengths.items()), deciding_key(data, self._elements)
        self.cache.start()
        entry = self.cache.get(key, partial(self._first, lengths, data))
        while True:
            stage = entry.stage
            self._make_room(stage)
            self._check_out(stage, out)
            left = self._runner(entry).run(left, tuple(partial(_shifted, a, ticks) for a in around))
            self.stages, ticks = (*self.stages, stage), ticks + len(stage.plan.lowered.stages) + 2
            if stage.is_last:
                self.lack = ""
                return left
            data = {key: left[name].copy() for key, name in stage.reads.items()}
            self.history = (*self.history, data)
            entry = self.cache.get(deciding_key(data, self._elements), partial(self._next, stage, data))

    def _first(self, lengths: Mapping[str, int], data: Mapping[str, Array]) -> Stage:
        facts = Facts(lengths, input_shapes(self.template.graph, lengths), dict(data))
        try:
            return self.plan_first(self.template, facts, self.terms)
        except OpError as error:
            told = ", ".join(f"{n}={v}" for n, v in lengths.items())
            raise FeedError(f"inputs with {told or 'these data'} do not fit: {error}") from error

    def _next(self, stage: Stage, data: Mapping[str, Array]) -> Stage:
        try:
            return next_stage(self.template, stage, data, self.terms)
        except OpError as error:
            told = ", ".join(f"{n}={_shown(a)}" for n, a in data.items())
            raise KernelError(f"stage {stage.number + 1} cannot be with {told}: {error}") from error

    def _make_room(self, stage: Stage) -> None:
        """Bytes for all addresses of the stage; runners are made anew where addresses got other bytes."""
        if self.mode != "static":
            return
        try:
            if stage.number == 1:
                self.memory.start(stage.after.top)
            else:
                self.memory.grow(stage.before.top, stage.after.top)
        except MemoryError as error:
            raise _no_arena(stage.after.top) from error
        if self._bound_at != self.memory.moves:
            self._runners.clear()
            self._bound_at = self.memory.moves

    def _runner(self, entry: Entry) -> Runner:
        if entry not in self._runners:
            self._runners[entry] = self._new_runner(entry.stage)
        return self._runners[entry]

    def _new_runner(self, stage: Stage) -> Runner:
        if self.mode == "dynamic":
            return _Apart(DynamicExecutor(stage.plan, self._packs, self._team))
        if self.mode == "poison":
            try:
                return _Apart(PoisonExecutor(stage.plan))
            except MemoryError as error:
                raise _no_arena(stage.plan.arena_bytes) from error
        return StageRunner(stage, self.memory, self._packs, self._team)

    def _check_out(self, stage: Stage, out: Mapping[str, Array]) -> None:
        """The caller's arrays, as soon as their shapes are known."""
        if not stage.is_last:
            return
        values = stage.plan.lowered.values
        read_outs(out, {n: values[v].spec for n, v in stage.plan.lowered.outputs.items()})
        check_apart({}, {}, out, NO_BYTES)
        lies_in = next((n for n, a in out.items() if self.memory.holds(a)), "")
        if lies_in:
            raise FeedError(f"out={lies_in!r} lies in the arena of this executable; give an array of your own")


class _Apart:
    """A stage in memory of its own."""

    def __init__(self, executor: DynamicExecutor | PoisonExecutor) -> None:
        self._executor = executor

    def run(self, given: Mapping[str, Array], around: Arounds) -> Outputs:
        """One run."""
        feeds = {n: given[n] for n in self._executor.plan.lowered.inputs}
        if around:
            return self._executor.run_timed(feeds, {}, True, _Clocks(arounds=around))
        return self._executor.run(feeds, {}, True)


@define(eq=False)
class _Clocks(Stopwatch):
    """Puts the clocks of a whole run around the calls of one stage."""

    arounds: Arounds = ()

    def around(self, tick: int, thunk: Thunk) -> Thunk:
        """The same thunk, timed by all of them."""
        for wrap in self.arounds:
            thunk = wrap(tick, thunk)
        return thunk


def _no_arena(nbytes: int) -> EngineError:
    return EngineError(f"an arena of {nbytes} bytes cannot be allocated on this machine")


def _shifted(around: Callable[[int, Thunk], Thunk], ticks: int, tick: int, thunk: Thunk) -> Thunk:
    return around(ticks + tick, thunk)


def _shown(array: Array) -> str:
    return np.array2string(array, threshold=8, separator=",")
