"""Where values may be computed inside others: the inputs of a concatenation straight inside its output.

An operator says by `input_places` where inputs may lie inside its output; where all of them do, nothing is left to run.
Memory-efficient DenseNets share their features in this way (Pleiss et al., "Memory-Efficient Implementation of
DenseNets", 2017). Concatenations are looked at from the last to the first, so that one inside another knows where it
lies, and one whose inputs lie side by side in a later one already is a view of that. What an operator may write over
its dying input lets that input lie in the same place, so that an activation runs in place inside of what is joined.
"""

import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping

from attrs import define, evolve, field, frozen

from engine.lower.calls import Alias, Call, Lowered, Role, Storage, Value
from ops.tensor.layout import Layout

FOR_GOOD = sys.maxsize
"""Of bytes that nothing is written over as long as the value is there in which they lie."""
MOST_RUNS = 4096
"""Of bytes in one place: so many images, or so many pixels with channels last. The judge tells no more apart."""
MOST_TOGETHER = 65536
"""Runs of bytes of all that is joined inside of one value."""
_OWN = frozenset({Role.ACTIVATION, Role.OUTPUT, Role.COPY})


@frozen(eq=False)
class Nest:
    """Bytes inside those of the value `root`: `layout` counts from the first one of them.

    They are written over in the tick `until`, so what lies there is read before that.
    """

    root: int
    layout: Layout
    until: int = FOR_GOOD


@frozen(eq=False)
class Nesting:
    """Where values lie inside others, and the calls (by tick) of which nothing remains, with the place of each input.

    What an input of such a call is, that does not lie there, has to be copied there.
    """

    nests: Mapping[int, Nest]
    joins: Mapping[int, tuple[Nest, ...]]

    @property
    def roots(self) -> frozenset[int]:
        """The values in which others lie."""
        return frozenset(nest.root for nest in self.nests.values())


def find_sub_buffers(lowered: Lowered, allowed: Callable[[int], bool], in_place: bool) -> Nesting:
    """All that may be nested in the outputs that are allowed to hold others.

    `in_place` lets what dies in an operator lie where the operator writes.
    """
    search = _SubBufferSearch(lowered, allowed, in_place, _Uses(lowered))
    for call in reversed(lowered.calls):
        if len(call.outputs) == 1 and len(call.operators) == 1:
            search.join(call)
    return Nesting(search.nests, search.joins)


def may_nest(lowered: Lowered) -> bool:
    """Whether in any order of the calls something may be nested: False is a proof, True is none."""
    values, written = lowered.values, {v for call in lowered.calls for v in call.outputs}
    kept = {*lowered.parameters.keys(), *lowered.parameters.values()}

    def is_own(value: Value) -> bool:
        own = value.storage is Storage.ARENA and value.role in _OWN and value.id in written
        return own and value.id not in kept and value.spec.nbytes > 0

    def holds(call: Call) -> bool:
        if len(call.outputs) != 1 or len(call.operators) != 1 or not is_own(values[call.outputs[0]]):
            return False
        places = call.operators[0].schema.input_places(values[call.outputs[0]].layout, call.signature)
        return None not in places and any(is_own(values[values[v].owner]) for v in call.inputs[: len(places)])

    return any(map(holds, lowered.calls))


def same_place(one: Layout, other: Layout) -> bool:
    """Whether two layouts of one tensor name the same bytes: strides of dimensions of length 1 are nothing."""
    if one.shape != other.shape or one.offset != other.offset:
        return False
    pairs = zip(one.shape, one.strides, other.strides, strict=True)
    return all(n == 1 or a == b for n, a, b in pairs)


class _Uses:
    """Who writes and reads what in a lowered graph."""

    def __init__(self, lowered: Lowered) -> None:
        self.writer = {v: call for call in lowered.calls for v in call.outputs}
        self.readers: dict[int, list[tuple[Call, int]]] = {}
        self.views: dict[int, list[Alias]] = {}
        self.last: dict[int, int] = {}
        self.kept = {*lowered.parameters.keys(), *lowered.parameters.values()}
        self.fetched = {lowered.values[v].owner for v in lowered.outputs.values()}
        for stage in lowered.stages:
            if isinstance(stage, Alias):
                self.views.setdefault(stage.inputs[0], []).append(stage)
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
    nests: dict[int, Nest] = field(factory=dict)
    joins: dict[int, tuple[Nest, ...]] = field(factory=dict)
    runs: Counter[int] = field(factory=Counter)

    def join(self, call: Call) -> None:
        """Nests what can be nested of the inputs of a call, if anything can."""
        y, (operator,) = self.lowered.values[call.outputs[0]], call.operators
        if y.storage is not Storage.ARENA or y.id in self.uses.kept or not y.spec.nbytes:
            return
        here = self.nests.get(y.id) or self._around(call, y) or Nest(y.id, y.layout)
        places = operator.schema.input_places(here.layout, call.signature)
        parts = tuple(evolve(here, layout=place) for place in places if place is not None)
        if len(parts) < len(places) or not parts or not self._are_few(here.root, parts):
            return
        if here.root != y.id and y.id not in self.nests:
            self.nests[y.id] = here
        elif not self.allowed(y.id) or not self._any_nested(call, parts):
            return
        self.joins[call.tick] = parts
        self.runs[here.root] += sum(nest.layout.runs for nest in parts)

    def _are_few(self, root: int, places: Collection[Nest]) -> bool:
        """Whether so many runs of bytes may be told apart, with all that are in the same root already."""
        runs = [nest.layout.runs for nest in places]
        return max(runs) <= MOST_RUNS and self.runs[root] + sum(runs) <= MOST_TOGETHER

    def _any_nested(self, call: Call, places: Collection[Nest]) -> bool:
        pairs = zip(call.inputs, places, strict=True)
        return any([self._nest(self.lowered.values[v], nest) for v, nest in pairs])

    def _around(self, call: Call, y: Value) -> Nest | None:
        """Where the output would be if its inputs lie side by side in another value already."""
        parts = [self.nests.get(v) for v in call.inputs]
        if parts[0] is None or len(parts[0].layout.shape) != len(y.spec.shape):
            return None
        first = parts[0].layout
        until = min(nest.until for nest in parts if nest)
        guess = Nest(parts[0].root, Layout(first.offset, y.spec.shape, first.strides, first.itemsize), until)
        places = call.operators[0].schema.input_places(guess.layout, call.signature)
        for nest, place in zip(parts, places, strict=True):
            if nest is None or place is None or nest.root != guess.root or not same_place(nest.layout, place):
                return None
        return guess if self._can_be_read(y.id, guess) else None

    def _nest(self, value: Value, nest: Nest) -> bool:
        """Lets a value, or what it is a view of, be computed in a place, if that can be."""
        if value.is_view:
            whole = self.lowered.values[value.owner]
            if not (nest.layout.is_dense and value.layout.is_dense and value.layout.extent == whole.layout.extent):
                return False
            value, nest = whole, evolve(nest, layout=Layout.dense(whole.spec, nest.layout.offset))
        if not self._is_free(value) or not self._can_be_written(value.id, nest):
            return False
        self.nests[value.id] = nest
        if self.in_place:
            self._nest_what_dies(value, nest)
        return True

    def _nest_what_dies(self, value: Value, nest: Nest) -> None:
        """The input over which a nested value may be written lies in the same place."""
        call = self.uses.writer[value.id]
        for forward in call.overwrites:
            if call.outputs[forward.output] == value.id and not forward.offset:
                taken = self.lowered.values[call.inputs[forward.input]]
                here = evolve(nest, layout=_over(taken, nest.layout), until=call.tick)
                if self._is_free(taken) and self._dies_in(taken, call) and self._can_be_over(taken, value, here):
                    self.nests[taken.id] = here
                    self._nest_what_dies(taken, here)
                    return

    def _can_be_over(self, taken: Value, value: Value, here: Nest) -> bool:
        """Whether what dies can lie in the place of what is written over it: element on element, if that has holes."""
        if here.layout.is_dense:
            return taken.spec.nbytes == value.spec.nbytes
        written = self.uses.writer[taken.id].kernel.writes(here.layout) and self._is_taken(taken.id, here.layout)
        return written and taken.spec == value.spec

    def _dies_in(self, taken: Value, call: Call) -> bool:
        """Whether a call is the last to read a value, and reads it by no other name."""
        others = (v for v in call.inputs if v != taken.id and self.lowered.values[v].owner == taken.owner)
        dies = self.uses.last[taken.owner] == call.tick and taken.id not in self.uses.fetched
        return not taken.is_view and dies and not any(True for _ in others)

    def _is_free(self, value: Value) -> bool:
        """Whether a call writes the value to bytes of the arena that are its own."""
        own = value.storage is Storage.ARENA and value.role in _OWN and value.id in self.uses.writer
        return own and value.id not in self.nests and value.id not in self.uses.kept and value.spec.nbytes > 0

    def _can_be_written(self, value: int, nest: Nest) -> bool:
        written = nest.layout.is_dense or self.uses.writer[value].kernel.writes(nest.layout)
        return written and self._can_be_read(value, nest)

    def _can_be_read(self, value: int, nest: Nest) -> bool:
        """Whether all that read a value, or views of it, can do so where it lies then, and as long as it does."""
        if nest.until < FOR_GOOD and (value in self.uses.fetched or self.uses.last.get(value, 0) >= nest.until):
            return False
        return nest.layout.is_dense or self._is_taken(value, nest.layout)

    def _is_taken(self, value: int, layout: Layout) -> bool:
        if layout.runs > MOST_RUNS:
            return False
        if not all(call.kernel.accepts(call.signature, i, layout) for call, i in self.uses.readers.get(value, ())):
            return False
        return all(self._shows(alias, layout) for alias in self.uses.views.get(value, ()))

    def _shows(self, alias: Alias, layout: Layout) -> bool:
        (operator,) = alias.operators
        shown = operator.schema.views(layout, operator.signature)
        pairs = zip(alias.outputs, shown, strict=True)
        return all(place is not None and self._is_taken(v, place) for v, place in pairs)


def _over(taken: Value, layout: Layout) -> Layout:
    """The layout of what dies in the place of a value."""
    return Layout.dense(taken.spec, layout.offset) if layout.is_dense else layout
