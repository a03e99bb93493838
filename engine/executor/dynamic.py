"""Reference counting, to compare with: an output is allocated when its operator runs, dropped after its last reader.

Same calls, same views and same kernels as in the static run; nothing is overwritten, nothing is shared.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from attrs import define, field

from engine.executor.binding import NO_BYTES, PackCache, Packed, bind_call, kernel_state, pack_constants, run_call
from engine.executor.feeds import check_apart, deliver, initial_values, load_parameters, read_feeds, read_outs
from engine.executor.programs import as_program
from engine.executor.team import ALONE, Runner
from engine.lower.calls import Call, Stage, Storage
from engine.planning.placed import PlacedPlan
from engine.system.arrays import aligned_empty, view_array
from engine.system.timing import Stopwatch
from engine.text.errors import EngineError
from ops.schema.schema import Thunk
from ops.tensor.layout import Layout
from ops.tensor.spec import Array


class DynamicExecutor:
    """Holds no memory between runs. `peak_bytes` is the peak of the last run: what was allocated at once, in bytes."""

    def __init__(self, plan: PlacedPlan, packs: PackCache | None = None, runner: Runner = ALONE) -> None:
        self.plan = plan
        self._runner = runner
        self.peak_bytes = 0
        self._packed = pack_constants(plan.lowered, packs)
        self._readers = _count_readers(plan)
        self.packed_bytes = self._packed.nbytes
        self.parameters = {n: _aligned_copy(a) for n, a in initial_values(plan.lowered).items()}

    def load(self, values: Mapping[str, Array]) -> None:
        """Gives parameters other values, by name; arrays of their shapes."""
        load_parameters(self.parameters, values)

    def run(self, feeds: Mapping[str, Any], out: Mapping[str, Array], copy: bool) -> dict[str, Array]:
        """One run. Outputs are copied into `out` where given; else they are the arrays that the last operators made."""
        return self._run(feeds, out, copy, _as_it_is)

    def run_timed(
        self, feeds: Mapping[str, Any], out: Mapping[str, Array], copy: bool, watch: Stopwatch
    ) -> dict[str, Array]:
        """One run that takes the time of each call: of its kernel, not of the memory that it is given."""
        return self._run(feeds, out, copy, watch.around)

    def _run(
        self, feeds: Mapping[str, Any], out: Mapping[str, Array], copy: bool, around: Callable[[int, Thunk], Thunk]
    ) -> dict[str, Array]:
        lowered = self.plan.lowered
        arrays = read_feeds(feeds, {n: v.spec for n, v in lowered.graph.inputs.items()})
        outs = read_outs(out, {n: v.spec for n, v in lowered.graph.outputs.items()})
        check_apart({}, {}, outs, NO_BYTES)
        heap = _Heap(self.plan, self._packed, Counter(self._readers), self._runner, around)
        with kernel_state():
            self._execute(heap, arrays)
        self.peak_bytes = heap.peak
        return {n: deliver(heap.array(v), outs.get(n), copy) for n, v in lowered.outputs.items()}

    def _execute(self, heap: "_Heap", feeds: Mapping[str, Array]) -> None:
        for value in self.plan.lowered.parameters:
            heap.lend(value, self.parameters[self.plan.lowered.values[value].name])
        for name, value in self.plan.lowered.inputs.items():
            heap.allocate(value)
            np.copyto(heap.array(value), feeds[name])
        heap.collect(self.plan.lowered.inputs.values())
        for stage in self.plan.lowered.stages:
            heap.step(stage)


@define(eq=False)
class _Heap:
    """Buffers by the value that owns them, with the number of readers that are still to come."""

    plan: PlacedPlan
    packed: Packed
    pending: Counter[int]
    runner: Runner
    around: Callable[[int, Thunk], Thunk]
    buffers: dict[int, Array] = field(factory=dict)
    lent: set[int] = field(factory=set)
    live: int = 0
    peak: int = 0

    def step(self, stage: Stage) -> None:
        if isinstance(stage, Call):
            self._call(stage)
        touched = stage.inputs + stage.outputs + (stage.workspace if isinstance(stage, Call) else ())
        owners = {self._owner(v) for v in touched}
        self.pending.subtract(_reads(stage, self.plan))
        self.collect(owners)

    def lend(self, value: int, array: Array) -> None:
        """A parameter, which has memory of its own for good; its next value is written over it."""
        self.buffers[value] = array.reshape(-1).view(np.uint8)
        self.live += array.nbytes
        self.peak = max(self.peak, self.live)
        self.lent.add(value)
        update = self.plan.lowered.parameters[value]
        self.buffers[update] = self.buffers[value]
        self.lent.add(update)

    def _call(self, call: Call) -> None:
        for owner in dict.fromkeys(self._owner(v) for v in call.outputs + call.workspace):
            if owner not in self.buffers:  # lent, or computed in part
                self.allocate(owner)
        thunk = as_program(call, bind_call(call, self.packed, self.array), self.runner)
        run_call(call, self.around(call.tick, thunk))

    def allocate(self, value: int) -> None:
        known = self.plan.lowered.values[value]
        try:
            self.buffers[value] = aligned_empty(known.spec.nbytes, 64)
        except MemoryError as error:
            told = f"{known.spec.nbytes} bytes for {known.name!r}"
            raise EngineError(f"{told} cannot be allocated on this machine") from error
        self.live += self._counted(value)
        self.peak = max(self.peak, self.live)

    def collect(self, owners: Iterable[int]) -> None:
        for owner in owners:
            if owner in self.buffers and not self.pending[owner] and owner not in self.lent:
                del self.buffers[owner]
                self.live -= self._counted(owner)

    def array(self, value: int) -> Array:
        known = self.plan.lowered.values[value]
        constants = self.plan.lowered.constants
        buffer = constants[known.owner] if known.storage is Storage.CONSTANT else self.buffers[known.owner]
        return view_array(buffer, known.layout, known.spec.dtype)

    def _counted(self, value: int) -> int:
        """Bytes, but for what a static run would leave in arrays of the caller."""
        known = self.plan.lowered.values[value]
        return known.spec.nbytes if known.storage is Storage.ARENA else 0

    def _owner(self, value: int) -> int:
        return self.plan.lowered.values[value].owner


def _aligned_copy(array: Array) -> Array:
    """As aligned as in an arena, so that kernels take the same path."""
    copy = view_array(aligned_empty(array.nbytes, 64), Layout.of(array), array.dtype)
    np.copyto(copy, array)
    return copy


def _as_it_is(_: int, thunk: Thunk) -> Thunk:
    return thunk


def _reads(stage: Stage, plan: PlacedPlan) -> list[int]:
    """Owners of what a call needs, one entry a call; an alias needs nothing before somebody reads what it shows."""
    return list({plan.lowered.values[v].owner for v in stage.inputs}) if isinstance(stage, Call) else []


def _count_readers(plan: PlacedPlan) -> Counter[int]:
    pending: Counter[int] = Counter()
    for stage in plan.lowered.stages:
        pending.update(_reads(stage, plan))
    pending.update({plan.lowered.values[v].owner for v in plan.lowered.outputs.values()})
    return pending
