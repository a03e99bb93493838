"""Execution by reference counting, for comparison:

an output is allocated before its operator and freed after its last reader.

Calls, views and kernels are those of the static run; nothing is overwritten, and no bytes are shared.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from attrs import define, field

from engine.executor.binding import PackCache, Packed, bind_call, kernel_state, pack_constants, run_call
from engine.executor.feeds import check_apart, deliver, initial_values, load_parameters, read_feeds, read_outs
from engine.executor.programs import as_program
from engine.executor.team import ALONE, Runner
from engine.lower.calls import Alias, Call, Instruction, Lowered, Storage
from engine.planning.placed import Evicted, PlacedPlan
from engine.system.arrays import aligned_empty, view_array
from engine.system.timing import Stopwatch
from engine.text.errors import NoMemoryError
from ops.schema.schema import Thunk
from ops.tensor.layout import CACHE_LINE, Layout
from ops.tensor.spec import Array


class DynamicExecutor:
    """Runs a plan without an arena; it holds no memory between runs. `peak_bytes` is the most bytes of the last run."""

    def __init__(
        self,
        plan: PlacedPlan,
        packs: PackCache | None = None,
        runner: Runner = ALONE,
        lowered: Lowered | None = None,
    ) -> None:
        """Takes the calls from `lowered` where it is given, which are those of the plan before they were nested."""
        self.plan = plan
        self._lowered = lowered or plan.lowered
        self._runner = runner
        self.peak_bytes = 0
        self._packed = pack_constants(self._lowered, packs)
        self.prepacked_bytes = self._packed.nbytes
        self.parameters = {n: _aligned_copy(a) for n, a in initial_values(self._lowered).items()}

    @property
    def evicted(self) -> tuple[Evicted, ...]:
        """Returns what eviction costs; empty where nothing is evicted."""
        return ()

    def load(self, values: Mapping[str, Array]) -> None:
        """Sets parameters, by name; arrays of their shapes."""
        load_parameters(self.parameters, values)

    def run(self, feeds: Mapping[str, Any], out: Mapping[str, Array], copy: bool) -> dict[str, Array]:
        """Runs once. Outputs are copied into `out` where given; else they are the arrays of the last operators."""
        return self._run(feeds, out, copy, _as_it_is)

    def run_timed(
        self, feeds: Mapping[str, Any], out: Mapping[str, Array], copy: bool, watch: Stopwatch
    ) -> dict[str, Array]:
        """Runs once and measures the kernel of each call, without its allocations."""
        return self._run(feeds, out, copy, watch.around)

    def _run(
        self, feeds: Mapping[str, Any], out: Mapping[str, Array], copy: bool, around: Callable[[int, Thunk], Thunk]
    ) -> dict[str, Array]:
        lowered = self.plan.lowered
        arrays = read_feeds(feeds, {n: v.spec for n, v in lowered.graph.inputs.items()})
        outs = read_outs(out, {n: v.spec for n, v in lowered.graph.outputs.items()})
        check_apart({}, {}, outs, ())
        heap = _Heap(self.plan, self._packed, _count_readers(self.plan), self._runner, around)
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
        for instruction in self.plan.lowered.instructions:
            heap.step(instruction)


@define(eq=False)
class _Heap:
    """Buffers by the value that owns them, with the number of readers that are left."""

    plan: PlacedPlan
    packed: Packed
    pending: Counter[int]
    runner: Runner
    around: Callable[[int, Thunk], Thunk]
    buffers: dict[int, Array] = field(factory=dict)
    lent: set[int] = field(factory=set)
    live: int = 0
    peak: int = 0

    def step(self, instruction: Instruction) -> None:
        if isinstance(instruction, Call):
            self._call(instruction)
        touched = (
            instruction.inputs + instruction.outputs + (instruction.workspace if isinstance(instruction, Call) else ())
        )
        owners = {self._owner(v) for v in touched}
        self.pending.subtract(_reads(instruction, self.plan))
        self.collect(owners)

    def lend(self, value: int, array: Array) -> None:
        """Adds a parameter, whose memory stays; its next value overwrites it."""
        self.buffers[value] = array.reshape(-1).view(np.uint8)
        self.live += array.nbytes
        self.peak = max(self.peak, self.live)
        self.lent.add(value)
        update = self.plan.lowered.parameters[value]
        self.buffers[update] = self.buffers[value]
        self.lent.add(update)

    def _call(self, call: Call) -> None:
        for owner in dict.fromkeys(self._owner(v) for v in call.outputs + call.workspace):
            if owner not in self.buffers:  # else it is lent, or partly computed
                self.allocate(owner)
        thunk = as_program(call, bind_call(call, self.packed, self.array), self.runner)
        run_call(call, self.around(call.tick, thunk))

    def allocate(self, value: int) -> None:
        record = self.plan.lowered.values[value]
        try:
            self.buffers[value] = aligned_empty(record.spec.nbytes, CACHE_LINE)
        except MemoryError as error:
            size = f"{record.spec.nbytes} bytes for {record.name!r}"
            raise NoMemoryError(f"{size} cannot be allocated on this machine") from error
        self.live += self._counted(value)
        self.peak = max(self.peak, self.live)

    def collect(self, owners: Iterable[int]) -> None:
        for owner in owners:
            if owner in self.buffers and not self.pending[owner] and owner not in self.lent:
                del self.buffers[owner]
                self.live -= self._counted(owner)

    def array(self, value: int) -> Array:
        record = self.plan.lowered.values[value]
        constants = self.plan.lowered.constants
        buffer = constants[record.owner] if record.storage is Storage.CONSTANT else self.buffers[record.owner]
        return view_array(buffer, record.layout, record.spec.dtype)

    def _counted(self, value: int) -> int:
        """Returns the bytes of a value; 0 for a value that a static run leaves in arrays of the caller."""
        record = self.plan.lowered.values[value]
        return record.spec.nbytes if record.storage is Storage.ARENA else 0

    def _owner(self, value: int) -> int:
        return self.plan.lowered.values[value].owner


def _aligned_copy(array: Array) -> Array:
    """Returns a copy that is aligned as in an arena, so that kernels take the same path."""
    copy = view_array(aligned_empty(array.nbytes, CACHE_LINE), Layout.of(array), array.dtype)
    np.copyto(copy, array)
    return copy


def _as_it_is(_: int, thunk: Thunk) -> Thunk:
    return thunk


def _reads(instruction: Instruction, plan: PlacedPlan) -> list[int]:
    """Returns the owners of the inputs of a call or a join, each once; an alias reads nothing itself.

    A join keeps what its calls have computed in parts, although nobody else reads it yet.
    """
    return [] if isinstance(instruction, Alias) else list({plan.lowered.values[v].owner for v in instruction.inputs})


def _count_readers(plan: PlacedPlan) -> Counter[int]:
    pending: Counter[int] = Counter()
    for instruction in plan.lowered.instructions:
        pending.update(_reads(instruction, plan))
    pending.update({plan.lowered.values[v].owner for v in plan.lowered.outputs.values()})
    return pending
