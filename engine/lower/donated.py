"""Values written over inputs that the caller gives away: they lie in the caller's arrays, and not in the arena."""

from collections.abc import Collection, Iterator

from attrs import define, evolve, field

from engine.lower.calls import Alias, Call, Instruction, Lowered, Role, Storage, Value
from ops.schema.schema import Overwrite


def over_donated(lowered: Lowered, names: Collection[str]) -> Lowered:
    """Returns the calls with values computed in the bytes of these inputs, wherever operators allow it.

    The inputs live in arrays of the caller. A value is written over such an input, or over one that was, when nothing
    reads those bytes after its call. The largest value comes first. Calls stay in their order.
    """
    roots = {lowered.inputs[name] for name in names}
    return _Donation(lowered, roots, list(lowered.values)).run() if roots else lowered


@define(eq=False)
class _Donation:
    """`last` has the tick that reads the bytes of each owner last; `full` the owners with values computed in them."""

    lowered: Lowered
    roots: set[int]
    values: list[Value]
    last: dict[int, int] = field(factory=dict)
    full: set[int] = field(factory=set)

    def run(self) -> Lowered:
        self._survey()
        for call in self.lowered.calls:
            for root in sorted({self.values[v].owner for v in call.inputs} & self.roots):
                if self.last[root] == call.tick:
                    self._give(call, root)
        instructions = tuple(self._pruned(instruction) for instruction in self.lowered.instructions)
        return evolve(self.lowered, values=tuple(self.values), instructions=instructions)

    def _survey(self) -> None:
        for instruction in self.lowered.instructions:
            for value in () if isinstance(instruction, Alias) else instruction.inputs:
                self.last[self.values[value].owner] = instruction.tick
        for value in self.lowered.outputs.values():
            self.last[self.values[value].owner] = len(self.lowered.instructions) + 1
        written = (v for call in self.lowered.calls for v in call.outputs + call.workspace)
        self.full = {self.values[v].owner for v in written if self.values[v].is_view}
        self.full |= self.lowered.parameters.keys() | set(self.lowered.parameters.values())

    def _give(self, call: Call, root: int) -> None:
        """Moves the largest output of a call that may be written over an input in the bytes of a root."""
        allowed = [(self.values[call.outputs[o.output]], o) for o in self._allowed(call, root)]
        if not allowed:
            return
        output, chosen = max(allowed, key=lambda pair: pair[0].spec.nbytes)
        start = self.values[call.inputs[chosen.input]].layout.offset + chosen.offset
        for value in [v for v in self.values if v.owner == output.id]:
            layout = evolve(value.layout, offset=value.layout.offset + start)
            self.values[value.id] = evolve(value, layout=layout, owner=root, storage=Storage.CALLER)
        self.last[root] = max(self.last.get(output.id, 0), call.tick)

    def _allowed(self, call: Call, root: int) -> Iterator[Overwrite]:
        declared = call.operators[0].schema.forwards(call.signature) if call.operators else ()
        for each in declared:
            output, taken = self.values[call.outputs[each.output]], self.values[call.inputs[each.input]]
            if taken.owner == root and self._is_free(output) and self._fits(output, taken, each):
                others = [i for i, v in enumerate(call.inputs) if self.values[v].owner == root and i != each.input]
                alike = (evolve(each, input=i) for i in others if call.inputs[i] == taken.id)
                if len([each for each in alike if each in declared]) == len(others):
                    yield each

    def _is_free(self, output: Value) -> bool:
        """Returns whether an output has bytes of its own in the arena, which no other call writes to."""
        own = output.storage is Storage.ARENA and not output.is_view and output.role in (Role.ACTIVATION, Role.OUTPUT)
        return own and output.spec.nbytes > 0 and output.id not in self.full

    def _fits(self, output: Value, taken: Value, each: Overwrite) -> bool:
        """Returns whether an output lies inside the bytes and is aligned there, as the array of the caller is."""
        start, root = taken.layout.offset + each.offset, self.values[taken.owner]
        inside = start + output.spec.nbytes <= root.spec.nbytes
        aligned = not start % output.layout.itemsize and not root.layout.itemsize % output.layout.itemsize
        return taken.layout.is_dense and inside and aligned

    def _pruned(self, instruction: Instruction) -> Instruction:
        """Returns a call without the overwrites that the allocator does not decide, as they are outside the arena."""
        if not isinstance(instruction, Call):
            return instruction
        kept = tuple(o for o in instruction.overwrites if self._is_in_arena(instruction, o))
        return instruction if kept == instruction.overwrites else evolve(instruction, overwrites=kept)

    def _is_in_arena(self, call: Call, each: Overwrite) -> bool:
        ends = self.values[call.inputs[each.input]], self.values[call.outputs[each.output]]
        return all(value.storage is Storage.ARENA for value in ends)
