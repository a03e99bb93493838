"""The static run with every byte watched: dead bytes are poisoned, and a kernel writes its outputs and workspace only.

Plan with padding, so that guard bytes stand between chunks; guards also stand before and behind the arena. Before a
call, its workspace and those outputs that overwrite nothing are filled with NaN (0xA5 where they hold no floats);
after it, all other bytes must be what they were, and what has died is poisoned. Slow on purpose.
"""

import numpy as np

from engine.calls import Call
from engine.errors import PoisonError
from engine.executor.static import StaticExecutor
from engine.plan import ExecutionPlan
from engine.views import aligned_empty
from ops.spec import FLOATS, Array

GUARD = 64
"""Bytes of padding that a plan should put behind each chunk."""
_NAN, _POISON = 0xFF, 0xA5


class PoisonExecutor(StaticExecutor):
    """Raises PoisonError naming the operator that wrote where it must not."""

    def __init__(self, plan: ExecutionPlan) -> None:
        guard = max(plan.alignment, GUARD)
        self._bytes = aligned_empty(plan.arena_bytes + 2 * guard, guard)
        self._bytes[:] = _POISON
        self._guard = guard
        super().__init__(plan, self._bytes[guard : guard + plan.arena_bytes])

    def execute(self) -> None:
        """Calls the kernels one by one, each between a fill and an inspection."""
        self._poison(0)
        for call, thunk in zip(self.calls, self.thunks, strict=True):
            self._fill(call)
            before = self._bytes.copy()
            self.run_one(call, thunk)
            self._inspect(call, before)
            self._poison(call.tick + 1)

    def _fill(self, call: Call) -> None:
        taken = [self._extent(v) for v in call.inputs]
        for value in call.outputs + call.workspace:
            low, high = self._extent(value)
            if not any(max(low, a) < min(high, b) for a, b in taken):
                self._arena[low:high] = self._pattern(value)

    def _pattern(self, value: int) -> int:
        known = self.plan.lowered.values[value]
        return _NAN if known.spec.dtype in FLOATS or not known.source else _POISON

    def _inspect(self, call: Call, before: Array) -> None:
        changed = self._bytes != before
        for value in call.outputs + call.workspace:
            low, high = self._extent(value)
            changed[self._guard + low : self._guard + high] = False
        if changed.any():
            byte = int(np.argmax(changed)) - self._guard
            raise PoisonError(
                f"operator {call.name!r} wrote byte {byte} of the arena, which is {self._owner(byte, call)}"
            )

    def _owner(self, byte: int, call: Call) -> str:
        problem, offset = self.plan.problem, self.plan.plan.offset
        for value in self.plan.ids:
            chunk = self.plan.chunk_of(value)
            alive = problem.begin[chunk] <= call.tick < problem.end[chunk]
            if alive and offset[chunk] <= byte < offset[chunk] + problem.size[chunk]:
                return f"in the memory of {self.plan.lowered.values[value].name!r}"
        return "nobody's"

    def _poison(self, tick: int) -> None:
        """Fills every byte that no chunk holds at the beginning of a tick."""
        problem, offset = self.plan.problem, self.plan.plan.offset
        held = np.zeros(len(self._arena), bool)
        started = problem.begin < max(tick, 1)
        for chunk in np.flatnonzero(started & (problem.end > tick)):
            held[offset[chunk] : offset[chunk] + problem.size[chunk]] = True
        self._arena[~held] = _POISON

    def _extent(self, value: int) -> tuple[int, int]:
        """Bytes of the arena that a value touches; none for what lies elsewhere."""
        return self.plan.places[value].layout.extent if value in self.plan.ids else (0, 0)
