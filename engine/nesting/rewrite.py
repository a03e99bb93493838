"""Rewrites the calls of a graph for a nesting: which calls become joins, and which copies remain."""

from attrs import define, evolve, field

from engine.lower.calls import Alias, Call, Instruction, Join, Lowered, Role, Value
from engine.nesting.search import Nesting, SubBuffer, same_place
from ops.movement.copy import COPY
from ops.schema.schema import Overwrite


def join(lowered: Lowered, nesting: Nesting) -> Lowered:
    """Returns the graph with values where the nesting has them; the same object where it has none."""
    return _Joining(lowered, nesting, list(lowered.values)).run() if nesting.joins else lowered


@define(eq=False)
class _Joining:
    lowered: Lowered
    nesting: Nesting
    values: list[Value]
    instructions: list[Instruction] = field(factory=list)

    def run(self) -> Lowered:
        for value, buffer in self.nesting.sub_buffers.items():
            self.values[value] = evolve(self.values[value], layout=buffer.layout, owner=buffer.root)
        for instruction in self.lowered.instructions:
            if isinstance(instruction, Alias):
                self._alias(instruction)
            elif isinstance(instruction, Call):
                self._call(instruction)
        return evolve(self.lowered, values=tuple(self.values), instructions=tuple(self.instructions))

    def _alias(self, instruction: Alias) -> None:
        source, (operator,) = self.values[instruction.inputs[0]], instruction.operators
        if source.owner != self.lowered.values[source.id].owner:
            for value, layout in zip(
                instruction.outputs, operator.schema.views(source.layout, operator.signature), strict=True
            ):
                assert layout is not None  # the search has checked it
                self.values[value] = evolve(self.values[value], layout=layout, owner=source.owner)
        self._add(instruction)

    def _call(self, call: Call) -> None:
        if call.tick in self.nesting.joins:
            self._join(call, self.nesting.joins[call.tick])
        else:
            kept = tuple(o for o in call.overwrites if self._may_overwrite(call, o))
            self._add(call if len(kept) == len(call.overwrites) else evolve(call, overwrites=kept))

    def _may_overwrite(self, call: Call, forward: Overwrite) -> bool:
        """Returns whether an overwrite is still possible.

        A nested output has its place already; an overwritten input must be dense, and aligned for the output.
        """
        input_, output = self.values[call.inputs[forward.input]], self.values[call.outputs[forward.output]]
        aligned = (input_.layout.offset + forward.offset) % output.layout.itemsize == 0
        return not output.is_view and input_.layout.is_dense and aligned

    def _join(self, call: Call, places: tuple[SubBuffer, ...]) -> None:
        inputs = tuple(self._placed(call, i, buffer) for i, buffer in enumerate(places))
        self._add(Join(call.tick, call.name, call.operators, inputs, call.outputs))

    def _placed(self, call: Call, position: int, buffer: SubBuffer) -> int:
        """Returns the input of a join: the value where it lies in its place already, else a copy there."""
        value = self.values[call.inputs[position]]
        if not value.spec.nbytes or (value.owner == buffer.root and same_place(value.layout, buffer.layout)):
            return value.id
        name, copy_id = f"{call.name}/part{position}", len(self.values)
        copy = Value(
            copy_id,
            name,
            value.source,
            value.spec,
            buffer.layout,
            buffer.root,
            self.values[buffer.root].storage,
            Role.COPY,
        )
        self.values.append(copy)
        signature = COPY.sign((value.spec,), {})
        kernel = COPY.kernel(signature, self.lowered.backends)
        self._add(Call(0, name, (), kernel, signature, (value.id,), (copy_id,), (), ()))
        return copy_id

    def _add(self, instruction: Instruction) -> None:
        tick = len(self.instructions) + 1
        self.instructions.append(instruction if instruction.tick == tick else instruction.at(tick))
