"""The static run with every byte checked:

dead bytes are poisoned, and a kernel may write its outputs and workspace only.

Plan with padding, so that guard bytes stand between chunks; guards also stand before and behind the arena. Before a
call, its workspace and those outputs that overwrite nothing are filled with NaN (0xA5 where they hold no floats). After
it, all other bytes, also of bound arrays of the caller and of constants that it reads, must be unchanged, and dead
bytes are poisoned. Each call runs a second time in memory of its own (apart.py), and must give the same bits. Slow on
purpose.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from engine.check.pieces import NO_RUNS, Runs, meet, merged, runs_of
from engine.executor.apart import bind_apart
from engine.executor.arenas import Arena, GivenArena
from engine.executor.binding import kernel_state, run_call
from engine.executor.programs import as_program
from engine.executor.static import StaticExecutor
from engine.lower.calls import Call, Storage, unread_inputs
from engine.planning.placed import PlacedPlan
from engine.system.arrays import aligned_empty
from engine.text.errors import PoisonError
from ops.schema.schema import Thunk
from ops.tensor.layout import CACHE_LINE
from ops.tensor.spec import FLOATS, Array

GUARD = CACHE_LINE
"""Bytes of padding that a plan should put behind each chunk."""
_NAN, _POISON = 0xFF, 0xA5


class PoisonExecutor(StaticExecutor):
    """Runs a plan and checks every byte. Raises PoisonError naming the operator that wrote where it must not.

    It makes an arena of its own with guards, unless it gets one. In an arena that the caller gives, it checks and
    poisons the bytes of this plan alone.
    """

    def __init__(self, plan: PlacedPlan, threads: int = 1, arena: Arena | GivenArena | None = None) -> None:
        is_given = isinstance(arena, GivenArena)
        self._foreign = _foreign(plan) if is_given else np.zeros(plan.arena_bytes, bool)
        self._guard = 0 if arena else max(plan.alignment, GUARD)
        if arena is None:
            guarded = _guarded(plan.arena_bytes, self._guard)
            self._rows: tuple[Array, ...] = (guarded,)
            arena = Arena((guarded[self._guard : self._guard + plan.arena_bytes],))
        else:
            self._rows = arena.content.rows if isinstance(arena, GivenArena) else arena.rows
        super().__init__(plan, arena, threads)

    def execute(self) -> None:
        """Calls the kernels one by one, each between a fill and an inspection."""
        self._poison(0)
        with kernel_state():
            for call, thunk in zip(self.calls, self.thunks, strict=True):
                self._watch(call, as_program(call, thunk, self._team, least=0))
                self._poison(call.tick + 1)

    def _execute_each(self) -> None:
        """Calls the kernels: here no call is joined to another."""
        self.execute()

    def _watch(self, call: Call, thunk: Thunk) -> None:
        overwritten = {v for v in call.inputs if any(self._meet(o, v) for o in call.outputs)}
        apart = bind_apart(self.plan, call, self._packed, self.array, overwritten)
        self._fill(call)
        before, outside = [row.copy() for row in self._rows], self._outside(call)
        run_call(call, thunk)
        self._inspect(call, before)
        self._inspect_outside(call, outside)
        apart.check(self.array)

    def _outside(self, call: Call) -> dict[int, bytes]:
        """Returns the bytes of what the call must not write, outside of the arena: bound arrays, and its constants."""
        read = (v for i, v in enumerate(call.inputs) if i not in unread_inputs(call))
        constants = {v for v in read if self._storage(v) is Storage.CONSTANT}
        return {v: self.array(v).tobytes() for v in constants} | {
            v: self._untouched(v, call).tobytes() for v in self._caller if v not in call.outputs
        }

    def _untouched(self, value: int, call: Call) -> Array:
        """Returns the bytes of a caller's array that the call must not write: all but those of its outputs there."""
        content: Array = self.array(value).reshape(-1).view(np.uint8)
        written = [v for v in call.outputs if self._storage(v) is Storage.CALLER and self._owner_of(v) == value]
        for output in written:
            content = content.copy()
            for low, high in runs_of(self.plan.places[output].layout).T.tolist():
                content[low:high] = 0
        return content

    def _inspect_outside(self, call: Call, before: Mapping[int, bytes]) -> None:
        for value, content in before.items():
            after = self._untouched(value, call) if value in self._caller else self.array(value)
            if after.tobytes() != content:
                what = "the caller's array bound to" if value in self._caller else "the constant"
                name = self.plan.lowered.values[value].name
                raise PoisonError(f"operator {call.name!r} wrote into {what} {name!r}")

    def _fill(self, call: Call) -> None:
        for value in call.outputs + call.workspace:
            if not any(self._meet(value, read) for read in call.inputs):
                for low, high in runs_of(self.plan.places[value].layout).T.tolist():
                    self._cut(value, low, high)[:] = self._pattern(value)

    def _cut(self, value: int, low: int, high: int) -> Array:
        """Returns bytes of a value, counted as in its layout."""
        if value in self.plan.ids:
            return self.arena.cut(low, high)
        return self._caller[self.plan.places[value].owner].reshape(-1).view(np.uint8)[low:high]

    def _meet(self, one: int, other: int) -> bool:
        """Returns whether two values have bytes in common, in the arena or in one array of the caller."""
        if self._storage(one) is not Storage.CALLER:
            return meet(self._runs(one), self._runs(other))
        alike = self._storage(other) is Storage.CALLER and self._owner_of(one) == self._owner_of(other)
        return alike and meet(*(runs_of(self.plan.places[value].layout) for value in (one, other)))

    def _owner_of(self, value: int) -> int:
        return self.plan.places[value].owner

    def _pattern(self, value: int) -> int:
        record = self.plan.lowered.values[value]
        return _NAN if record.spec.dtype in FLOATS or not record.source else _POISON

    def _inspect(self, call: Call, before: Sequence[Array]) -> None:
        changed = np.zeros(self.plan.arena_bytes + 2 * self._guard, bool)
        for start, row, old in zip(self.arena.starts, self._rows, before, strict=True):
            changed[start : start + len(row)] = row != old
        changed[self._guard : self._guard + self.plan.arena_bytes] &= ~self._foreign
        for value in call.outputs + call.workspace:
            for low, high in self._runs(value).T.tolist():
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
        alive = self._foreign.copy()
        started = problem.begin < max(tick, 1)
        for chunk in np.flatnonzero(started & (problem.end > tick)):
            alive[offset[chunk] : offset[chunk] + problem.size[chunk]] = True
        for start, row in zip(self.arena.starts, self.arena.rows, strict=True):
            row[~alive[start : start + len(row)]] = _POISON

    def _runs(self, value: int) -> Runs:
        """Returns the ranges of bytes of the arena that a value has; none where it lies elsewhere."""
        return runs_of(self.plan.places[value].layout) if value in self.plan.ids else NO_RUNS


def _guarded(arena_bytes: int, guard: int) -> Array:
    """Returns the bytes of an arena with as many poisoned guards before and behind it."""
    content = aligned_empty(arena_bytes + 2 * guard, guard)
    content[:] = _POISON
    return content


def _foreign(plan: PlacedPlan) -> Array:
    """Returns, for each byte of the arena, whether no chunk of the plan ever has it."""
    foreign = np.ones(plan.arena_bytes, bool)
    for low, high in merged(plan.plan.offset, plan.plan.offset + plan.problem.size).T.tolist():
        foreign[low:high] = False
    return foreign
