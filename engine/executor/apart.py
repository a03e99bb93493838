"""A call run a second time in memory of its own, so that what it may not rely on shows as another result.

Each output, each temporary, and each input that the plan lets the call overwrite lies by itself between guard bytes,
filled with other bytes than in the arena. So the two runs differ where a kernel leaves a part of an output unwritten,
reads what it has not written, or runs from one temporary into the next; and writes beside an array change its guards.
"""

from collections.abc import Callable, Collection, Mapping

import numpy as np
from attrs import field, frozen

from engine.check.pieces import runs_of
from engine.executor.binding import Packed, bind_with, run_call
from engine.lower.calls import Call
from engine.planning.placed import PlacedPlan
from engine.system.arrays import aligned_empty, view_array
from engine.text.errors import PoisonError
from ops.schema.schema import Thunk
from ops.tensor.layout import CACHE_LINE, Layout
from ops.tensor.spec import BFLOAT16, FLOATS, Array, TensorSpec

_FILL = 0x3C
"""What all bytes hold first: a small number of each element type, and not what poison fills with."""
_WITH_NAN = FLOATS | {BFLOAT16}


@frozen(eq=False)
class _Room:
    """The memory of one array, which lies inside it as `layout` says, between guards. `name` is for messages."""

    name: str
    spec: TensorSpec
    layout: Layout
    memory: Array
    array: Array = field(init=False, repr=False)

    @array.default
    def _array(self) -> Array:
        return view_array(self.memory, self.layout, self.spec.dtype)

    def is_written_beside(self) -> bool:
        """Returns whether a byte that is no part of the array has changed."""
        changed = self.memory != _FILL
        for low, high in runs_of(self.layout).T.tolist():
            changed[low:high] = False
        return bool(changed.any())


def _room(name: str, spec: TensorSpec, layout: Layout) -> _Room:
    """Returns filled memory for an array of that layout, at an address that is aligned alike."""
    low, high = layout.extent
    first = CACHE_LINE + low % CACHE_LINE
    memory = aligned_empty(first + high - low + CACHE_LINE, CACHE_LINE)
    memory[:] = _FILL
    return _Room(name, spec, layout.starting_at(first), memory)


@frozen(eq=False)
class ApartCall:
    """A call that is bound apart. `copies` has a copy of each input that the call overwrites in the arena."""

    call: Call
    thunk: Thunk
    copies: tuple[_Room, ...]
    outputs: Mapping[int, _Room]
    temporaries: tuple[_Room, ...]

    def check(self, array: Callable[[int], Array]) -> None:
        """Runs the call, and compares its outputs with those that `array` returns. Raises PoisonError, KernelError."""
        before = [room.memory.copy() for room in self.copies]
        run_call(self.call, self.thunk)
        for room, content in zip(self.copies, before, strict=True):
            if not np.array_equal(room.memory, content):
                raise PoisonError(f"operator {self.call.name!r} wrote into its {room.name}")
        for room in (*self.outputs.values(), *self.temporaries):
            if room.is_written_beside():
                raise PoisonError(f"operator {self.call.name!r} wrote beside its {room.name}")
        for value, room in self.outputs.items():
            self._compare(array(value), room)

    def _compare(self, planned: Array, room: _Room) -> None:
        wrong = _differing(planned, room.array)
        if not wrong.any():
            return
        if (_bytes(room.array)[wrong] == _FILL).all():
            element = np.unravel_index(int(np.argmax(wrong)) // room.array.itemsize, room.array.shape)
            where = f"element {tuple(map(int, element))} of its {room.name}"
            raise PoisonError(f"operator {self.call.name!r} leaves {where} unwritten")
        why = "where it overwrites its input" if self.copies else "if other bytes are there before it runs"
        raise PoisonError(f"operator {self.call.name!r} gives other numbers {why}")


def bind_apart(
    plan: PlacedPlan, call: Call, packed: Packed, array: Callable[[int], Array], overwritten: Collection[int]
) -> ApartCall:
    """Returns a call bound apart. `array` returns the inputs; those that are `overwritten` are copied now."""

    def room(what: str, value: int) -> _Room:
        record = plan.lowered.values[value]
        return _room(f"{what} {record.name!r}", record.spec, plan.places[value].layout)

    copies = {v: room("input", v) for v in overwritten}
    for value, copy in copies.items():
        np.copyto(copy.array, array(value))
    outputs = {v: room("output", v) for v in call.outputs}
    specs = enumerate(call.kernel.temporaries(call.signature))
    temporaries = tuple(_room(f"temporary {i}, {spec}", spec, Layout.dense(spec)) for i, spec in specs)
    rooms = copies | outputs

    def own(value: int) -> Array:
        return rooms[value].array if value in rooms else array(value)

    thunk = bind_with(call, packed, own, tuple(each.array for each in temporaries))
    return ApartCall(call, thunk, tuple(copies.values()), outputs, temporaries)


def _bytes(array: Array) -> Array:
    """Returns the bytes of all elements, in C order."""
    flat: Array = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return flat


def _differing(one: Array, other: Array) -> Array:
    """Returns which bytes differ; any NaN is as good as another."""
    wrong: Array = _bytes(one) != _bytes(other)
    if one.dtype in _WITH_NAN:
        both = np.isnan(one) & np.isnan(other)
        wrong &= ~np.repeat(both.reshape(-1), one.itemsize)
    return wrong
