"""The calls of one stage, bound to the bytes of a growing arena."""

from collections.abc import Callable, Mapping

import numpy as np

from engine.executor.binding import PackCache, bind_call, pack_constants, run_in_turn
from engine.executor.programs import as_program, join_calls
from engine.executor.team import Runner
from engine.lower.calls import Storage
from engine.stages.segments import Memory
from engine.stages.stage import Stage
from engine.stages.state import NOWHERE
from engine.system.arrays import view_array
from ops.schema.schema import Thunk
from ops.tensor.spec import Array

Arounds = tuple[Callable[[int, Thunk], Thunk], ...]
"""Functions that put a clock around the call of a tick; often none."""


class StageRunner:
    """The thunks of a stage. They are valid as long as the arena is not relocated."""

    def __init__(self, stage: Stage, memory: Memory, packs: PackCache, runner: Runner) -> None:
        self.stage = stage
        self._runner = runner
        self.memory = memory
        lowered = stage.plan.lowered
        self.packed = pack_constants(lowered, packs)  # kept: deferred constants exist as long as it does
        self.calls = lowered.calls
        self.thunks = [bind_call(call, self.packed, self.array) for call in self.calls]
        self._joined = join_calls(self.calls, self.thunks, runner)
        fed = [var.name for var, tensor in stage.before.alive.items() if tensor.offset == NOWHERE]
        self._fed = {name: self.array(lowered.inputs[name]) for name in fed}
        self._left = {n: self.array(v) for n, v in lowered.outputs.items()}

    def array(self, value: int) -> Array:
        """Returns the array of a value."""
        place, lowered = self.stage.plan.places[value], self.stage.plan.lowered
        dtype = lowered.values[value].spec.dtype
        if place.storage is Storage.CONSTANT:
            return view_array(lowered.constants[place.owner], place.layout, dtype)
        return self.memory.view(place.layout, dtype)

    def run(self, inputs: Mapping[str, Array], around: Arounds) -> dict[str, Array]:
        """Copies the feeds into the arena, calls the kernels, and returns the outputs as views of the arena."""
        for name, array in self._fed.items():
            np.copyto(array, inputs[name])
        if not around:
            run_in_turn(*self._joined)
        else:
            thunks = [as_program(c, t, self._runner) for c, t in zip(self.calls, self.thunks, strict=True)]
            for wrap in around:
                thunks = [wrap(call.tick, thunk) for call, thunk in zip(self.calls, thunks, strict=True)]
            run_in_turn(self.calls, thunks)
        return self._left
