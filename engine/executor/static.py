"""Runs a plan in one arena: all views and thunks are made once, and a run only calls thunks."""

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np

from allocator.machine_code.mutex import Mutex
from engine.executor.arenas import Arena, GivenArena, arena_use
from engine.executor.binding import bind_call, pack_constants, place_array, run_in_turn
from engine.executor.feeds import (
    check_apart,
    check_dense,
    check_donated,
    deliver,
    initial_values,
    load_parameters,
    read_feeds,
    read_outs,
)
from engine.executor.programs import as_program, join_calls
from engine.executor.team import team
from engine.lower.calls import Call, Storage
from engine.planning.placed import PlacedPlan
from engine.system.threads import AS_THEY_ARE, NoLimit, limit_for
from engine.system.timing import Stopwatch
from ops.schema.backends import NUMPY
from ops.schema.schema import Thunk
from ops.tensor.layout import address_of
from ops.tensor.spec import Array

Outputs = dict[str, Array]


class StaticExecutor:
    """Runs a plan in one arena. `run` copies inputs in and outputs out, except those bound to the caller's arrays.

    Compiled kernels run on `threads` threads; BLAS on at most `blas`. One run at a time: a second thread waits for the
    first. Others may have bytes of a GivenArena, too: a run while one of them runs raises ArenaInUseError.
    """

    def __init__(self, plan: PlacedPlan, arena: Arena | GivenArena, threads: int = 1, blas: int = AS_THEY_ARE) -> None:
        self.plan = plan
        self._team = team(threads)
        by_numpy = any(call.kernel.backend == NUMPY for call in plan.lowered.calls)
        self._limit = limit_for(blas) if by_numpy else NoLimit()
        self._joined: tuple[list[Call], list[Thunk]] = ([], [])
        self._singles: list[Thunk] = []
        self._stale = True
        self.arena = arena.content if isinstance(arena, GivenArena) else arena
        self._packed = pack_constants(plan.lowered)
        self._mutex = Mutex()
        self._running = arena_use(plan, arena, self._mutex).running if isinstance(arena, GivenArena) else nullcontext
        self._caller = {v.id: np.empty(0, np.uint8) for v in plan.lowered.values if _is_callers(v.id, plan)}
        self._bound_at: dict[int, int] = {}
        self._users = _users(plan)
        self.calls = plan.lowered.calls
        self.thunks: list[Thunk] = [_unbound] * len(self.calls)
        for i, call in enumerate(self.calls):
            if not any(self._storage(v) is Storage.CALLER for v in call.inputs + call.outputs):
                self.thunks[i] = bind_call(call, self._packed, self.array)
        self.prepacked_bytes = self._packed.nbytes
        self._renew()
        self.load(initial_values(plan.lowered))

    def array(self, value: int) -> Array:
        """Returns the array of a value: a view of the arena, a constant, or the caller's."""
        return place_array(self.plan, value, self.arena, self._caller)

    @property
    def parameters(self) -> dict[str, Array]:
        """The parameters by name: views of the arena."""
        return {self.plan.lowered.values[v].name: self.array(v) for v in self.plan.lowered.parameters}

    def load(self, values: Mapping[str, Array]) -> None:
        """Sets parameters, by name; arrays of their shapes."""
        with self._mutex.lock:
            load_parameters(self.parameters, values)

    def run(self, feeds: Mapping[str, Any], out: Mapping[str, Array], copy: bool) -> Outputs:
        """Runs once. Outputs are copied into `out` where given, else into new arrays, or are views of the arena."""
        return self._run(feeds, out, copy, self.execute)

    def run_timed(self, feeds: Mapping[str, Any], out: Mapping[str, Array], copy: bool, watch: Stopwatch) -> Outputs:
        """Runs once and measures each call."""
        return self._run(feeds, out, copy, partial(self._execute_timed, watch))

    def _run(
        self,
        feeds: Mapping[str, Any],
        out: Mapping[str, Array],
        copy: bool,
        execute: Callable[[], None],
        coming: Collection[str] = (),
    ) -> Outputs:
        """Runs once; `execute` binds the inputs in `coming`, which lie in arrays of the caller."""
        lowered = self.plan.lowered
        arrays = read_feeds(feeds, {n: v.spec for n, v in lowered.graph.inputs.items() if n not in coming})
        outs = read_outs(out, {n: v.spec for n, v in lowered.graph.outputs.items()})
        with self._mutex.lock, self._running():
            read, bound = self._bind_inputs(arrays), self._bind_outputs(outs)
            check_apart(bound, read, outs, self.arena.rows)
            check_donated(self.plan.options.donated, read)
            self._feed(self._out_of_the_arena(arrays))
            execute()
            return {
                name: bound[name] if name in bound else deliver(self.array(value), outs.get(name), copy)
                for name, value in lowered.outputs.items()
            }

    def execute(self) -> None:
        """Calls the kernels. Raises KernelError naming the operator that failed."""
        self._renew()
        self._in_turn(*self._joined)

    def _renew(self) -> None:
        """Makes the programs of the current thunks, joined and one by one."""
        if self._stale:
            self._joined = join_calls(self.calls, self.thunks, self._team)
            self._singles = [as_program(c, t, self._team) for c, t in zip(self.calls, self.thunks, strict=True)]
            self._stale = False

    def _in_turn(self, calls: Sequence[Call], thunks: Sequence[Thunk]) -> None:
        try:
            self._limit.hold()
            run_in_turn(calls, thunks)
        finally:
            self._limit.release()

    def _execute_timed(self, watch: Stopwatch) -> None:
        self._renew()
        plain = self.thunks
        self.thunks = [watch.around(c.tick, single) for c, single in zip(self.calls, self._singles, strict=True)]
        try:
            self._execute_each()
        finally:
            self.thunks = plain

    def _execute_each(self) -> None:
        """Calls the thunks one by one, none joined to another."""
        self._in_turn(self.calls, self.thunks)

    def _storage(self, value: int) -> Storage:
        return self.plan.places[value].storage

    def _feed(self, arrays: Mapping[str, Array]) -> None:
        for name, value in self.plan.lowered.inputs.items():
            if self._storage(value) is not Storage.CALLER and not self._is_in_place(name, arrays[name]):
                np.copyto(self.array(value), arrays[name])

    def _out_of_the_arena(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Copies feeds that are views of the arena (outputs of the last run) before any input is written.

        A feed that lies where its input lies, such as the output of another network in a shared arena, stays there.
        """
        return {n: a.copy() if self.arena.has(a) and not self._is_in_place(n, a) else a for n, a in arrays.items()}

    def _is_in_place(self, name: str, array: Array) -> bool:
        """Returns whether a feed, of the input's shape and type, is the bytes of the input itself."""
        place = self.array(self.plan.lowered.inputs[name])
        is_dense = array.flags.c_contiguous and place.flags.c_contiguous
        return is_dense and address_of(array) == address_of(place)

    def _bind_inputs(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        bound: dict[str, Array] = {}
        for name, array in arrays.items():
            value = self.plan.lowered.inputs[name]
            if self._storage(value) is Storage.CALLER:
                check_dense(f"input {name!r}", array)
                self._bind(value, array)
                bound[name] = array
        return bound

    def _bind_outputs(self, outs: Mapping[str, Array]) -> dict[str, Array]:
        bound: dict[str, Array] = {}
        for name, value in self.plan.lowered.outputs.items():
            if name in self.plan.lowered.caller_buffers:
                spec = self.plan.lowered.values[value].spec
                array = outs[name] if name in outs else np.empty(spec.shape, spec.dtype)
                check_dense(f"out={name!r}", array)
                self._bind(value, array)
                bound[name] = array
        return bound

    def _bind(self, value: int, array: Array) -> None:
        """Points a caller's value at an array; binds its calls again where the address has changed."""
        if self._bound_at.get(value) == address_of(array):
            self._caller[value] = array
            return
        self._bound_at.pop(value, 0)
        self._caller[value] = array
        ready = self._bound_at.keys() | {value}
        for i in self._users.get(value, ()):
            if all(self._ready(v, ready) for v in self.calls[i].inputs + self.calls[i].outputs):
                self.thunks[i] = bind_call(self.calls[i], self._packed, self.array)
        self._stale = True
        self._bound_at[value] = address_of(array)

    def _ready(self, value: int, bound: Set[int]) -> bool:
        place = self.plan.places[value]
        return place.storage is not Storage.CALLER or place.owner in bound


def _unbound() -> None:
    raise RuntimeError("a call was run before the caller's arrays were bound")


def _is_callers(value: int, plan: PlacedPlan) -> bool:
    return plan.places[value].storage is Storage.CALLER and plan.places[value].owner == value


def _users(plan: PlacedPlan) -> dict[int, tuple[int, ...]]:
    """Returns, for each array of the caller, the calls that read or write it or a view of it."""
    calls_of: dict[int, list[int]] = {v.id: [] for v in plan.lowered.values if _is_callers(v.id, plan)}
    for i, call in enumerate(plan.lowered.calls):
        for owner in _callers_of(call, plan):
            calls_of[owner].append(i)
    return {value: tuple(calls) for value, calls in calls_of.items()}


def _callers_of(call: Call, plan: PlacedPlan) -> set[int]:
    places = (plan.places[v] for v in call.inputs + call.outputs)
    return {p.owner for p in places if p.storage is Storage.CALLER}
