"""Finds values that can be computed inside others: the inputs of a concatenation inside its output.

An operator says by `input_places` where its inputs may lie inside its output. Where all of them do, nothing is left to
run. Memory-efficient DenseNets share their features in this way (Pleiss et al., "Memory-Efficient Implementation of
DenseNets", 2017). Concatenations are visited from the last to the first: the place of an outer one is known before that
of an inner one, and one whose inputs lie side by side in a later one is a view of it. An input that an operator may
overwrite, and that nothing reads later, gets the same place, so that an activation runs in place inside a
concatenation.
"""

import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping

from attrs import define, evolve, field, frozen

from engine.lower.calls import Alias, Call, Lowered, NestRefusal, Role, Storage, Value
from ops.tensor.layout import Layout

NEVER_OVERWRITTEN = sys.maxsize
"""The tick `until` of bytes that are not overwritten during the lifetime of their root."""
MOST_RUNS = 4096
"""The most runs of bytes of one place: one for each image, or for each pixel with channels last. The judge of data flow
tells no more runs apart."""
MOST_TOGETHER = 65536
"""The most runs of bytes of all places in one root: bounds the time that the judges of the plan take."""
_OWN = frozenset({Role.ACTIVATION, Role.OUTPUT, Role.COPY})


@frozen(eq=False)
class SubBuffer:
    """Bytes inside those of the value `root`; `layout` counts from its first byte.

    They are overwritten in the tick `until`; all reads come before that.
    """

    root: int
    layout: Layout
    until: int = NEVER_OVERWRITTEN


@frozen(eq=False)
class Nesting:
    """The places of values inside others (`sub_buffers`), and the calls that need not run because of them.

    `joins` has, by tick, the calls that become joins, with the place of each input. An input that does not lie there is
    copied. `refusals` has, by tick, why the other operators with input places stay calls.
    """

    sub_buffers: Mapping[int, SubBuffer]
    joins: Mapping[int, tuple[SubBuffer, ...]]
    refusals: Mapping[int, NestRefusal] = field(factory=dict)

    @property
    def roots(self) -> frozenset[int]:
        """Returns the values in which others are nested."""
        return frozenset(buffer.root for buffer in self.sub_buffers.values())


def find_sub_buffers(lowered: Lowered, allowed: Callable[[int], bool], in_place: bool) -> Nesting:
    """Finds all that may be nested in the outputs for which `allowed` is true.

    `in_place` lets an input that may be overwritten have the place of the output that overwrites it.
    """
    search = _SubBufferSearch(lowered, allowed, in_place, _Uses(lowered))
    for call in reversed(lowered.calls):
        if len(call.outputs) == 1 and len(call.operators) == 1 and not call.workspace:  # of a kernel that has to run
            refusal = search.join(call)
            if refusal is not None:
                search.refusals[call.tick] = refusal
    return Nesting(search.sub_buffers, search.joins, search.refusals)


def may_nest(lowered: Lowered) -> bool:
    """Returns whether something may be nested in some order of the calls: False is a proof, True is not."""
    values, written = lowered.values, {v for call in lowered.calls for v in call.outputs}
    kept = {*lowered.parameters.keys(), *lowered.parameters.values()}

    def is_own(value: Value) -> bool:
        own = value.storage is Storage.ARENA and value.role in _OWN and value.id in written
        return own and value.id not in kept and value.spec.nbytes > 0

    def can_nest(call: Call) -> bool:
        if len(call.outputs) != 1 or len(call.operators) != 1 or call.workspace or not is_own(values[call.outputs[0]]):
            return False
        places = call.operators[0].schema.input_places(values[call.outputs[0]].layout, call.signature)
        return None not in places and any(is_own(values[values[v].owner]) for v in call.inputs[: len(places)])

    return any(map(can_nest, lowered.calls))


def same_place(one: Layout, other: Layout) -> bool:
    """Returns whether two layouts of one tensor have the same bytes; strides of dimensions of length 1 do not count."""
    if one.shape != other.shape or one.offset != other.offset:
        return False
    pairs = zip(one.shape, one.strides, other.strides, strict=True)
    return all(n == 1 or a == b for n, a, b in pairs)


class _Uses:
    """The writer, the readers and the views of each value of a lowered graph."""

    def __init__(self, lowered: Lowered) -> None:
        self.writer = {v: call for call in lowered.calls for v in call.outputs}
        self.readers: dict[int, list[tuple[Call, int]]] = {}
        self.views: dict[int, list[Alias]] = {}
        self.last: dict[int, int] = {}
        self.kept = {*lowered.parameters.keys(), *lowered.parameters.values()}
        self.fetched = {lowered.values[v].owner for v in lowered.outputs.values()}
        for instruction in lowered.instructions:
            if isinstance(instruction, Alias):
                self.views.setdefault(instruction.inputs[0], []).append(instruction)
        for call in lowered.calls:
            for position, value in enumerate(call.inputs):
                self.readers.setdefault(value, []).append((call, position))
                self.last[lowered.values[value].owner] = call.tick


@define(eq=False)
class _SubBufferSearch:
    lowered: Lowered
    allowed: Callable[[int], bool]
    in_place: bool
    uses: _Uses
    sub_buffers: dict[int, SubBuffer] = field(factory=dict)
    joins: dict[int, tuple[SubBuffer, ...]] = field(factory=dict)
    refusals: dict[int, NestRefusal] = field(factory=dict)
    runs: Counter[int] = field(factory=Counter)

    def join(self, call: Call) -> NestRefusal | None:
        """Nests the inputs of a call. Returns why none was nested; None where one was, or where none may be."""
        y, (operator,) = self.lowered.values[call.outputs[0]], call.operators
        places = operator.schema.input_places(y.layout, call.signature)
        if all(place is None for place in places):
            return None
        if y.storage is not Storage.ARENA or y.id in self.uses.kept or not y.spec.nbytes:
            return NestRefusal.STORAGE
        here = self.sub_buffers.get(y.id) or self._around(call, y) or SubBuffer(y.id, y.layout)
        places = operator.schema.input_places(here.layout, call.signature)
        parts = tuple(evolve(here, layout=place) for place in places if place is not None)
        if len(parts) < len(places) or not self._are_few(here.root, parts):
            return NestRefusal.PLACES if len(parts) < len(places) else NestRefusal.RUNS
        if here.root != y.id and y.id not in self.sub_buffers:
            self.sub_buffers[y.id] = here
        elif not self.allowed(y.id):
            return NestRefusal.BREADTH
        elif not self._any_nested(call, parts):
            return NestRefusal.INPUTS
        self.joins[call.tick] = parts
        self.runs[here.root] += sum(buffer.layout.runs for buffer in parts)
        return None

    def _are_few(self, root: int, places: Collection[SubBuffer]) -> bool:
        """Returns whether the places, with those already in the root, have few enough runs of bytes."""
        runs = [buffer.layout.runs for buffer in places]
        return max(runs) <= MOST_RUNS and self.runs[root] + sum(runs) <= MOST_TOGETHER

    def _any_nested(self, call: Call, places: Collection[SubBuffer]) -> bool:
        pairs = zip(call.inputs, places, strict=True)
        return any([self._nest(self.lowered.values[v], buffer) for v, buffer in pairs])

    def _around(self, call: Call, y: Value) -> SubBuffer | None:
        """Returns the place of the output where its inputs already lie side by side in another value."""
        parts = [self.sub_buffers.get(v) for v in call.inputs]
        if parts[0] is None or len(parts[0].layout.shape) != len(y.spec.shape):
            return None
        first = parts[0].layout
        until = min(buffer.until for buffer in parts if buffer)
        guess = SubBuffer(parts[0].root, Layout(first.offset, y.spec.shape, first.strides, first.itemsize), until)
        places = call.operators[0].schema.input_places(guess.layout, call.signature)
        for buffer, place in zip(parts, places, strict=True):
            if buffer is None or place is None or buffer.root != guess.root or not same_place(buffer.layout, place):
                return None
        return guess if self._can_be_read(y.id, guess) else None

    def _nest(self, value: Value, buffer: SubBuffer) -> bool:
        """Nests a value, or the value that it is a view of, in a place. Returns whether that is possible."""
        if value.is_view:
            whole = self.lowered.values[value.owner]
            if not (buffer.layout.is_dense and value.layout.is_dense and value.layout.extent == whole.layout.extent):
                return False
            value, buffer = whole, evolve(buffer, layout=Layout.dense(whole.spec, buffer.layout.offset))
        if not self._is_free(value) or not self._can_be_written(value.id, buffer):
            return False
        self.sub_buffers[value.id] = buffer
        if self.in_place:
            self._nest_overwritten(value, buffer)
        return True

    def _nest_overwritten(self, value: Value, buffer: SubBuffer) -> None:
        """Nests the input that a nested value may overwrite in the same place."""
        call = self.uses.writer[value.id]
        for forward in call.overwrites:
            if call.outputs[forward.output] == value.id and not forward.offset:
                taken = self.lowered.values[call.inputs[forward.input]]
                here = evolve(buffer, layout=_over(taken, buffer.layout), until=call.tick)
                if self._is_free(taken) and self._ends_in(taken, call) and self._can_be_over(taken, value, here):
                    self.sub_buffers[taken.id] = here
                    self._nest_overwritten(taken, here)
                    return

    def _can_be_over(self, taken: Value, value: Value, here: SubBuffer) -> bool:
        """Returns whether a value can lie in the place of its overwriter: element on element, if that is not dense."""
        if here.layout.is_dense:
            return taken.spec.nbytes == value.spec.nbytes
        written = self.uses.writer[taken.id].kernel.writes(here.layout) and self._is_readable(taken.id, here.layout)
        return written and taken.spec == value.spec

    def _ends_in(self, taken: Value, call: Call) -> bool:
        """Returns whether a call is the last reader of a value, and reads it by no other name."""
        others = (v for v in call.inputs if v != taken.id and self.lowered.values[v].owner == taken.owner)
        dies = self.uses.last[taken.owner] == call.tick and taken.id not in self.uses.fetched
        return not taken.is_view and dies and not any(True for _ in others)

    def _is_free(self, value: Value) -> bool:
        """Returns whether a call writes the value to bytes of the arena that are its own."""
        own = value.storage is Storage.ARENA and value.role in _OWN and value.id in self.uses.writer
        return own and value.id not in self.sub_buffers and value.id not in self.uses.kept and value.spec.nbytes > 0

    def _can_be_written(self, value: int, buffer: SubBuffer) -> bool:
        written = buffer.layout.is_dense or self.uses.writer[value].kernel.writes(buffer.layout)
        return written and self._can_be_read(value, buffer)

    def _can_be_read(self, value: int, buffer: SubBuffer) -> bool:
        """Returns whether all readers of a value and its views can read it in a place, before that is overwritten."""
        if buffer.until < NEVER_OVERWRITTEN and (
            value in self.uses.fetched or self.uses.last.get(value, 0) >= buffer.until
        ):
            return False
        return buffer.layout.is_dense or self._is_readable(value, buffer.layout)

    def _is_readable(self, value: int, layout: Layout) -> bool:
        if layout.runs > MOST_RUNS:
            return False
        if not all(call.kernel.accepts(call.signature, i, layout) for call, i in self.uses.readers.get(value, ())):
            return False
        return all(self._shows(alias, layout) for alias in self.uses.views.get(value, ()))

    def _shows(self, alias: Alias, layout: Layout) -> bool:
        (operator,) = alias.operators
        shown = operator.schema.views(layout, operator.signature)
        pairs = zip(alias.outputs, shown, strict=True)
        return all(place is not None and self._is_readable(v, place) for v, place in pairs)


def _over(taken: Value, layout: Layout) -> Layout:
    """Returns the layout of an overwritten value in the place of its overwriter."""
    return Layout.dense(taken.spec, layout.offset) if layout.is_dense else layout
