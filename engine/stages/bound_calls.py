"""The calls of a pattern bound for new lengths: equal calls are bound once, and moved to the addresses of the others.

A call may be moved where that was tried when the pattern was made: its kernel bound at unrelated addresses gave the
same words, and so did all calls that are equal to it, with their own weights.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import combinations

import numpy as np
from attrs import define, evolve, field, frozen

from allocator.problem import Column
from engine.executor.binding import PackCache, Packed, bind_call
from engine.executor.relocation import MovableCall, Operands, Relocation, movable, relocation, same_words
from engine.lower.calls import Call, Lowered, Storage, unread_inputs
from engine.stages.geometry import CallGeometry, ValueGeometry
from engine.stages.pattern import Fit, Pattern
from engine.system.arrays import aligned_empty, view_array
from ops.native.call import Native
from ops.schema.schema import Thunk
from ops.tensor.layout import CACHE_LINE, Layout, address_of
from ops.tensor.spec import Array

MOST_CALLS = 4096
"""Different calls that are kept to be moved. It trades memory against binding them again."""
MOST_RELOCATIONS = 8
"""Ways to lay out the words of all calls that are kept. Lengths mostly share one."""
ArrayOf = Callable[[int], Array]


@frozen(eq=False)
class Placement:
    """Addresses: first byte, end and first element of each value, and of each array that was packed, behind them.

    Each has a row of `spans`. What no kernel reads has none: zeros. `array` gives the array of a value.
    """

    spans: Array
    array: ArrayOf

    @property
    def first(self) -> Array:
        """The addresses of the first elements."""
        return self.spans[:, 2]

    def operands(self, values: Array) -> Operands:
        """Returns the addresses of some operands."""
        return Operands(self.spans[values])


@frozen(eq=False)
class CallOperands:
    """The operands of each call as columns of a placement. `arena` has those of them that lie in the arena.

    `one` and `other` are the pairs of operands of each call, wherever they lie: words that point into an operand count
    from the first one at that address. `ends` has the end of each call in `arena` and in the pairs.
    """

    columns: tuple[Array, ...]
    arena: Array
    one: Array
    other: Array
    ends: tuple[tuple[int, int], ...]

    def circumstances(self, placement: Placement) -> bytes:
        """Returns what kernels may ask of all addresses: how they are aligned, and which are equal."""
        first = placement.first
        aligned = (first[self.arena] % CACHE_LINE).astype(np.uint8)
        return b"".join((aligned.tobytes(), (first[self.one] == first[self.other]).tobytes()))

    def of_calls(self, circumstances: bytes) -> Iterator[bytes]:
        """Yields those of each call."""
        aligned, equal = circumstances[: len(self.arena)], circumstances[len(self.arena) :]
        at, pair = 0, 0
        for end, last in self.ends:
            yield aligned[at:end] + equal[pair:last]
            at, pair = end, last


def call_operands(lowered: Lowered, packed: Packed) -> CallOperands:
    """Returns the operands of all calls: inputs that are read, outputs, workspace, and packed arrays."""
    count, columns, arena, pairs, ends = len(lowered.values), list[Array](), list[int](), list[tuple[int, int]](), []
    in_arena = [v.storage is Storage.ARENA for v in lowered.values]
    for call in lowered.calls:
        dropped, written = unread_inputs(call), call.outputs + call.workspace
        read = tuple(v for i, v in enumerate(call.inputs) if i not in dropped)
        extra = range(count, count := count + len(packed.arrays[call.tick]))
        columns.append(np.array([*read, *written, *extra], np.int64))
        arena += [v for v in read + written if in_arena[v]]
        pairs += combinations((*read, *written, *extra), 2)
        ends.append((len(arena), len(pairs)))
    one, other = (np.array([pair[i] for pair in pairs], np.int64) for i in (0, 1))
    return CallOperands(tuple(columns), np.array(arena, np.int64), one, other, tuple(ends))


@frozen(eq=False)
class BoundCalls:
    """The calls of a stage, bound. Those that were moved have their words in `buffer` and their steps in `steps`.

    `rows` has the first step of each moved call, and the end; `fallible` those that may fail, by position, with their
    steps. `thunks` are the calls that were bound by themselves, by position; `kept` are calls whose arrays the words
    point to.
    """

    steps: Array
    rows: tuple[int, ...]
    fallible: dict[int, Native]
    thunks: dict[int, Thunk]
    buffer: Array = field(repr=False)
    kept: tuple[Native, ...] = field(repr=False)


@frozen(eq=False)
class SharedWords:
    """The calls that share words: those of one class with equal circumstances, which are `of[i]` in group i.

    `first` is the first call of each group, `group` the group of each call; -1 for a call that is bound by itself.
    `relocations` has the ways to lay out their words, by the structures of the groups.
    """

    first: tuple[int, ...]
    of: tuple[bytes, ...]
    group: Array
    relocations: dict[Hashable, Relocation] = field(factory=dict, repr=False)


@define(eq=False)
class CallBinder:
    """Binds the calls of a pattern. `classes` has the class of each call.

    `movable` has the numbers of the templates whose calls may be moved.
    """

    pattern: Pattern
    packed: Packed
    operands: CallOperands
    calls: tuple[Call, ...]
    classes: Column
    movable: frozenset[int] = frozenset()
    _moved_calls: dict[Hashable, tuple[MovableCall, ...]] = field(factory=dict)
    _latest: dict[int, tuple[Hashable, Native]] = field(factory=dict)
    _structures: dict[Hashable, int] = field(factory=dict)
    _shared: dict[bytes, SharedWords] = field(factory=dict)

    def bind(self, fit: Fit, placement: Placement) -> BoundCalls:
        """Binds all calls at the addresses of a placement. Raises KernelError."""
        if len(self._moved_calls) > MOST_CALLS:
            self._moved_calls.clear()
        shared = self._sharing(self.operands.circumstances(placement))
        moved = [self._moved(i, seen, fit, placement) for i, seen in zip(shared.first, shared.of, strict=True)]
        is_moved = np.array([*map(bool, moved), False])[shared.group]  # group -1 is the last one
        thunks = {index: self._unmoved(index, fit, placement) for index in np.flatnonzero(~is_moved).tolist()}
        way = self._relocation(shared, moved, is_moved, len(placement.first))
        calls = [call for (call,) in filter(None, moved)]
        buffer = way.words(calls, placement.first)
        fallible = {
            index: call[0].native
            for group, call in enumerate(moved)
            if call and call[0].may_fail
            for index in np.flatnonzero(shared.group == group).tolist()
        }
        kept = tuple(call.native for call in calls)
        return BoundCalls(way.steps(buffer), way.rows, dict(sorted(fallible.items())), thunks, buffer, kept)

    def _sharing(self, circumstances: bytes) -> SharedWords:
        if circumstances not in self._shared:
            if len(self._shared) >= MOST_RELOCATIONS:
                self._shared.clear()
            groups, group = dict[Hashable, int](), list[int]()
            first, of = list[int](), list[bytes]()
            for index, seen in enumerate(self.operands.of_calls(circumstances)):
                if self._number(index) not in self.movable:
                    group.append(-1)
                    continue
                group.append(groups.setdefault((int(self.classes[index]), seen), len(first)))
                if group[-1] == len(first):
                    first.append(index)
                    of.append(seen)
            self._shared[circumstances] = SharedWords(tuple(first), tuple(of), np.array(group, np.int64))
        return self._shared[circumstances]

    def _moved(self, index: int, seen: bytes, fit: Fit, placement: Placement) -> tuple[MovableCall, ...]:
        """Returns a call to be moved; () where it cannot be, with these lengths."""
        key = self._geometry(index, fit), seen
        if key not in self._moved_calls:
            self._moved_calls[key] = self._movable(index, self.bound(index, fit, placement.array), placement)
        return self._moved_calls[key]

    def _relocation(
        self, shared: SharedWords, moved: Sequence[tuple[MovableCall, ...]], is_moved: Array, count: int
    ) -> Relocation:
        """Returns how the words of moved calls are laid out; `count` is the number of operands."""
        structures = tuple(
            self._structures.setdefault(c[0].structure, len(self._structures)) if c else -1 for c in moved
        )
        if structures not in shared.relocations:
            if len(shared.relocations) >= MOST_RELOCATIONS:
                shared.relocations.clear()
            number = np.cumsum([0, *map(bool, moved)])[shared.group[is_moved]].tolist()
            columns = [self.operands.columns[i] for i in np.flatnonzero(is_moved).tolist()]
            shared.relocations[structures] = relocation(
                [call for (call,) in filter(None, moved)], number, columns, count
            )
        return shared.relocations[structures]

    def _movable(self, index: int, thunk: Thunk, placement: Placement) -> tuple[MovableCall, ...]:
        if not isinstance(thunk, Native):
            return ()
        return movable(thunk, placement.operands(self.operands.columns[index]))

    def _unmoved(self, index: int, fit: Fit, placement: Placement) -> Thunk:
        """Returns a call that is bound by itself: the latest one where it lies at the same addresses."""
        key = self._geometry(index, fit), placement.first[self.operands.columns[index]].tobytes()
        if index in self._latest and self._latest[index][0] == key:
            return self._latest[index][1]
        thunk = self.bound(index, fit, placement.array)
        if isinstance(thunk, Native) and not self._reads_derived(index):
            self._latest[index] = key, thunk
        return thunk

    def _number(self, index: int) -> int:
        return self.pattern.classes.all[int(self.classes[index])].template.number

    def _geometry(self, index: int, fit: Fit) -> CallGeometry:
        return fit.by_call[int(self.classes[index])]

    def call(self, index: int, fit: Fit) -> Call:
        """Returns the call with the numbers of its geometry."""
        return self.calls[index].signed(self._geometry(index, fit).signature)

    def bound(self, index: int, fit: Fit, array: ArrayOf) -> Thunk:
        """Returns the thunk of a call, bound by itself. Constants that lengths decide are packed again."""
        call, packed = self.call(index, fit), self.packed
        if self._reads_derived(index):
            constants = {i: array(v) for i, v in enumerate(call.inputs) if i in call.signature.constants}
            packed = Packed({call.tick: PackCache().pack(call, constants)})
        return bind_call(call, packed, array)

    def try_moves(self, fit: Fit, placement: Placement, thunks: Sequence[Thunk]) -> "CallBinder":
        """Returns the binder that moves what may be moved; `thunks` are all calls of the pattern's own stage, bound."""
        refused, first = set[int](), dict[Hashable, MovableCall]()
        circumstances = self.operands.of_calls(self.operands.circumstances(placement))
        for index, (thunk, seen) in enumerate(zip(thunks, circumstances, strict=True)):
            number = self._number(index)
            moved = () if self._reads_derived(index) else self._movable(index, thunk, placement)
            key = self._geometry(index, fit), seen
            if not moved or number in refused:
                refused.add(number)
            elif key not in first:
                (first[key],) = moved
                refused.update(() if self._same_elsewhere(index, fit, placement, moved[0]) else (number,))
            elif not same_words(first[key], moved[0]):
                refused.add(number)
        return evolve(self, movable=frozenset(map(self._number, range(len(self.calls)))) - refused)

    def _reads_derived(self, index: int) -> bool:
        """Returns whether a call reads constants whose elements depend on lengths."""
        values, derived = self.pattern.lowered.values, self.pattern.derived
        return bool(derived) and any(values[v].owner in derived for v in self.calls[index].inputs)

    def _same_elsewhere(self, index: int, fit: Fit, placement: Placement, wanted: MovableCall) -> bool:
        """Returns whether a call that is bound to other bytes, aligned and shared alike, has the same words."""
        values, columns = self.pattern.lowered.values, self.operands.columns[index].tolist()
        own = [v for v in columns if v < len(values) and values[v].storage is Storage.ARENA]
        other = _moved_elsewhere(own, placement)
        spans = placement.spans.copy()
        for value, array in other.items():
            spans[value] += address_of(array) - spans[value, 2]
        elsewhere = Placement(spans, lambda v: other[v] if v in other else placement.array(v))
        again = self._movable(index, self.bound(index, fit, elsewhere.array), elsewhere)
        return bool(again) and same_words(wanted, again[0])


def _moved_elsewhere(values: Sequence[int], placement: Placement) -> dict[int, Array]:
    """Returns arrays like those of some values in other memory. Values that begin at one address still do."""
    other, buffers = dict[int, Array](), dict[int, Array]()
    for value in values:
        first = int(placement.first[value])
        sharing = placement.spans[[v for v in values if int(placement.first[v]) == first]]
        start, end = int(sharing[:, 0].min()), int(sharing[:, 1].max())
        if first not in buffers:
            ahead = start % CACHE_LINE
            buffers[first] = aligned_empty(ahead + end - start, CACHE_LINE)[ahead:]
        array = placement.array(value)
        layout = Layout(first - start, array.shape, array.strides, array.itemsize)
        other[value] = view_array(buffers[first], layout, array.dtype)
    return other


def placed_value(geometry: ValueGeometry, start: int) -> Layout:
    """Returns the layout of a value whose owner begins at byte `start`."""
    layout = geometry.layout
    return Layout(layout.offset + start, layout.shape, layout.strides, layout.itemsize)
