"""Execution by reference counting within a budget: arrays are evicted, and computed again when they are read.

All arrays lie in one block, no larger than the budget, at the addresses that best fit gives them. What goes, and when,
depends on sizes and estimated costs alone, so it is decided once, before the first run.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from attrs import define, field

from allocator.errors import OutOfMemoryError, TooMuchWorkError
from allocator.eviction.evict import Act, Eviction, evict
from allocator.eviction.smallest import smallest_budget
from allocator.heaps.growing import BEST_FIT
from allocator.recompute.sequence import least_bytes
from allocator.recompute.work import RecomputeProblem
from engine.executor.binding import bind_call, kernel_state, run_call
from engine.executor.dynamic import DynamicExecutor
from engine.executor.feeds import check_apart, deliver, read_feeds, read_outs
from engine.executor.programs import as_program
from engine.executor.team import ALONE, Runner
from engine.lower.calls import Call, Lowered, Storage
from engine.lower.work import work_in
from engine.planning.placed import Evicted, PlacedPlan
from engine.planning.unnested import unnested
from engine.system.arrays import aligned_empty, view_array
from engine.text.errors import BudgetError, NoMemoryError
from ops.schema.schema import Thunk
from ops.tensor.layout import CACHE_LINE
from ops.tensor.spec import Array


class EvictingExecutor(DynamicExecutor):
    """Runs a plan without its arena, in at most `budget` bytes. `eviction` is what happens in each run.

    Its numbers are chunks and steps of `work`, the work of `lowered`; chunk c belongs to the value `owners[c]`.
    Parameters count, and keep their memory between runs. Weights, which do not change, lie outside of the budget, as
    they lie outside of an arena.
    """

    def __init__(self, plan: PlacedPlan, budget: int, heuristic: str, runner: Runner = ALONE) -> None:
        lowered = unnested(plan.graph, plan.options, plan.lowered)
        self.work, self.budget, self.heuristic = work_in(lowered, overwrite=False), budget, heuristic
        self.eviction = _decided(lowered, self.work, budget, heuristic)
        super().__init__(plan, runner=runner, lowered=lowered)
        self.peak_bytes = self.eviction.peak_in_use
        self.owners = tuple(v.id for v in lowered.values if v.storage is Storage.ARENA and not v.is_view)

    @property
    def lowered(self) -> Lowered:
        """Returns the calls that run, in which nothing is nested."""
        return self._lowered

    @cached_property
    def evicted(self) -> tuple[Evicted, ...]:
        """Returns what eviction costs; finding the smallest budget takes many simulations."""
        done, smallest = self.eviction, smallest_budget(self.work, self.heuristic, BEST_FIT.name)
        numbers = done.evictions, done.reruns, done.slowdown, done.peak_reserved
        least = smallest.budget, smallest.eviction.slowdown
        return (Evicted(self.heuristic, self.budget, *numbers, *least),)

    def _run(
        self, feeds: Mapping[str, Any], out: Mapping[str, Array], copy: bool, around: Callable[[int, Thunk], Thunk]
    ) -> dict[str, Array]:
        lowered = self._lowered
        arrays = read_feeds(feeds, {n: v.spec for n, v in lowered.graph.inputs.items()})
        outs = read_outs(out, {n: v.spec for n, v in lowered.graph.outputs.items()})
        check_apart({}, {}, outs, ())
        block = _Block(lowered, self._new_block(), self._lent())
        with kernel_state():
            for act, one, address in self.eviction.acts:
                if act is Act.BEGIN:
                    block.begin(self.owners[one], address)
                elif act is not Act.RUN:
                    block.end(self.owners[one])
                elif one == 0:
                    for name, value in lowered.inputs.items():
                        np.copyto(block.array(value), arrays[name])
                elif one > len(lowered.instructions):
                    outputs = {n: deliver(block.array(v), outs.get(n), copy) for n, v in lowered.outputs.items()}
                else:
                    self._step(one, block, around)
        return outputs

    def _step(self, tick: int, block: "_Block", around: Callable[[int, Thunk], Thunk]) -> None:
        call = self._lowered.instructions[tick - 1]
        if isinstance(call, Call):  # else it is a view
            thunk = as_program(call, bind_call(call, self._packed, block.array), self._runner)
            run_call(call, around(call.tick, thunk))

    def _new_block(self) -> Array:
        try:
            return aligned_empty(self.eviction.peak_reserved, CACHE_LINE)
        except MemoryError as error:
            size = self.eviction.peak_reserved
            raise NoMemoryError(f"a block of {size} bytes cannot be allocated on this machine") from error

    def _lent(self) -> dict[int, Array]:
        """Returns what is no part of the block: parameters, which updates overwrite, and arrays for the caller."""
        lowered, lent = self._lowered, dict[int, Array]()
        for value, update in lowered.parameters.items():
            array = self.parameters[lowered.values[value].name]
            lent[value] = lent[update] = array.reshape(-1).view(np.uint8)
        for record in lowered.values:
            if record.storage is Storage.CALLER and not record.is_view:
                lent[record.id] = aligned_empty(record.spec.nbytes, CACHE_LINE)
        return lent


@define(eq=False)
class _Block:
    """The arrays that are there, by the value that owns them; those of `lent` are there in any case."""

    lowered: Lowered
    memory: Array
    lent: Mapping[int, Array]
    buffers: dict[int, Array] = field(factory=dict)

    def begin(self, value: int, address: int) -> None:
        low, high = self.lowered.values[value].layout.extent
        self.buffers[value] = self.memory[address : address + high - low]

    def end(self, value: int) -> None:
        self.buffers.pop(value, None)  # an update has the bytes of its parameter

    def array(self, value: int) -> Array:
        record = self.lowered.values[value]
        if record.storage is Storage.CONSTANT:
            buffer = self.lowered.constants[record.owner]
        else:
            buffer = self.lent[record.owner] if record.owner in self.lent else self.buffers[record.owner]
        return view_array(buffer, record.layout, record.spec.dtype)


def _decided(lowered: Lowered, work: RecomputeProblem, budget: int, heuristic: str) -> Eviction:
    """Returns what is evicted and what runs again. Raises BudgetError."""
    try:
        return evict(work, budget, heuristic, BEST_FIT.name)
    except OutOfMemoryError as error:
        required, tick = error.in_use + error.requested, lowered.tick_name(error.event)
        free = f"the largest free block has {error.largest_free}"
        reason = f"{tick!r} needs {error.requested} bytes, {error.in_use} in use cannot go, and {free}"
    except TooMuchWorkError as error:
        required, reason = budget + 1, str(error)
    kept, least = sum(work.size[c] for c in work.resident), least_bytes(work)
    parameters = f", {kept} of them for parameters, which are never evicted" if kept else ""
    needed = f"no run needs less than {least} bytes{parameters}"
    message = f"eviction by {heuristic} does not keep within {budget} bytes: {reason}; {needed}"
    raise BudgetError(message, max(required, least, budget + 1), budget, least)
