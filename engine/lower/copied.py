"""Tensors that are copied on their way: the copy is a call, and whatever runs behind it reads the copy.

In several memories a tensor may leave a fast one between two of its uses, or come into it before them. A copy has the
source of what it copies, so that the judge of data flow knows both as one tensor of the graph. A copy engine makes
copies beside other calls: what it copies then keeps its bytes until a later tick.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from attrs import define, evolve, field, frozen

from engine.lower.calls import Alias, Call, Instruction, Join, Lowered, Role, Storage, Value
from engine.lower.lowering import copying, workspace_spec
from engine.text.errors import OtherPlanError
from engine.text.names import free_name
from ops.tensor.layout import Layout
from ops.tensor.spec import TensorSpec

COPIED = "copied"
"""The end of the name of a copy."""
IN_TURN = -1
"""The last tick of a copy that no engine makes, as `allocator.memories.routes` has it."""


@frozen
class Copied:
    """A copy: of the value of the name `tensor`, right behind the instruction of the tick `after`; 0 is the feed.

    A copy engine makes it while the instructions of the ticks up to `until` run; IN_TURN where it is a call like all
    others. Names and ticks are those of the calls without copies. Of a tensor with several, the next one copies the one
    before.
    """

    tensor: str
    after: int
    until: int = IN_TURN


def with_copies(lowered: Lowered, copies: Sequence[Copied]) -> tuple[Lowered, tuple[int, ...]]:
    """Returns the calls with copies, each behind its tick, and the value of each copy.

    Those of one tick stand in the given order.

    Raises OtherPlanError for a tensor that cannot be copied (`copyable`), is unknown, or is written behind the tick,
    and for a copy that is over before it begins.
    """
    return _Copying(lowered, list(lowered.values)).run(copies)


def copyable(lowered: Lowered) -> frozenset[int]:
    """Returns the values of which calls may read a copy: they are dense tensors in the arena, and no state.

    A join needs its inputs at their places in its output, so neither they nor what they are views of are among them.
    """
    state = {lowered.values[v].owner for pair in lowered.parameters.items() for v in pair}
    parts = set[int]()
    for instruction in reversed(lowered.instructions):
        if isinstance(instruction, Join):
            parts.update(instruction.inputs)
        elif isinstance(instruction, Alias) and not parts.isdisjoint(instruction.outputs):
            parts.add(instruction.inputs[0])
    tensors = (v for v in lowered.values if v.storage is Storage.ARENA and v.role is not Role.WORKSPACE)
    return frozenset(v.id for v in tensors if v.owner not in state and v.layout.is_dense and v.id not in parts)


@define(eq=False)
class _Copying:
    """`now` has the last copy of each value that was copied, `copies` the value of each copy, by its number.

    `ticks` has the ticks that instructions without copies now have.

    The ids of values stay as they are; copies have new ones.
    """

    lowered: Lowered
    values: list[Value]
    instructions: list[Instruction] = field(factory=list)
    now: dict[int, int] = field(factory=dict)
    copies: dict[int, int] = field(factory=dict)
    names: set[str] = field(factory=set)
    ticks: dict[int, int] = field(factory=lambda: {0: 0})

    def run(self, copies: Sequence[Copied]) -> tuple[Lowered, tuple[int, ...]]:
        lowered, by_name = self.lowered, {value.name: value for value in self.lowered.values}
        can_be = copyable(lowered)
        written = {v: instruction.tick for instruction in lowered.instructions for v in instruction.outputs}
        behind: dict[int, list[tuple[int, Value]]] = defaultdict(list)
        for number, copied in enumerate(copies):
            value = by_name.get(copied.tensor)
            if value is None or not written.get(value.id, 0) <= copied.after <= len(lowered.instructions):
                raise OtherPlanError(f"there is no {copied.tensor!r} to copy behind tick {copied.after}")
            if copied.until != IN_TURN and not copied.after <= copied.until <= len(lowered.instructions):
                raise OtherPlanError(f"the copy of {copied.tensor!r} ends in tick {copied.until}, which cannot be")
            if value.id not in can_be:
                raise OtherPlanError(f"{copied.tensor!r} cannot be copied: its bytes must stay, or have holes")
            behind[copied.after].append((number, value))
        self.names = {*by_name, *(instruction.name for instruction in lowered.instructions)}
        self._copy_all(behind[0])
        for instruction in lowered.instructions:
            self._instruction(instruction)
            self._copy_all(behind[instruction.tick])
        outputs = {name: self.now.get(value, value) for name, value in lowered.outputs.items()}
        of_copies = tuple(self.copies[number] for number in range(len(copies)))
        beside = {v: self.ticks[one.until] for v, one in zip(of_copies, copies, strict=True) if one.until != IN_TURN}
        after = evolve(
            lowered,
            values=tuple(self.values),
            instructions=tuple(self.instructions),
            outputs=outputs,
            engine_copies=beside,
        )
        return after, of_copies

    def _instruction(self, instruction: Instruction) -> None:
        inputs = tuple(self.now.get(value, value) for value in instruction.inputs)
        if isinstance(instruction, Alias):
            self._look(instruction, inputs[0])
        self.ticks[instruction.tick] = self._tick()
        self.instructions.append(evolve(instruction, tick=self._tick(), inputs=inputs))

    def _look(self, alias: Alias, source: int) -> None:
        """Lets the outputs of an alias lie in the bytes that its input has now."""
        seen = self.values[source]
        if seen.owner == self.lowered.values[alias.inputs[0]].owner:
            return
        operator = alias.operators[0]
        layouts = operator.schema.views(seen.layout, operator.signature)
        for value, layout in zip(alias.outputs, layouts, strict=True):
            if layout is None:
                raise OtherPlanError(f"{alias.name!r} sees no view in a copy of {seen.source!r}")
            self.values[value] = evolve(self.values[value], owner=seen.owner, layout=layout)

    def _copy_all(self, copied: Iterable[tuple[int, Value]]) -> None:
        for number, value in copied:
            copy = self._copy(self.values[self.now.get(value.id, value.id)], value.name)
            self.now[value.id] = self.copies[number] = copy

    def _copy(self, value: Value, stem: str) -> int:
        signature, kernel, nbytes = copying(value.spec, self.lowered.backends, self.lowered.target)
        copy = self._own(free_name(f"{stem}/{COPIED}", self.names), value.source, value.spec, Role.COPY)
        name = self.values[copy].name
        workspace = (self._own(f"{name}/workspace", "", workspace_spec(nbytes), Role.WORKSPACE),) if nbytes else ()
        self.instructions.append(Call(self._tick(), name, (), kernel, signature, (value.id,), (copy,), workspace, ()))
        return copy

    def _own(self, name: str, source: str, spec: TensorSpec, role: Role) -> int:
        self.values.append(
            Value(len(self.values), name, source, spec, Layout.dense(spec), len(self.values), Storage.ARENA, role)
        )
        return len(self.values) - 1

    def _tick(self) -> int:
        return len(self.instructions) + 1
