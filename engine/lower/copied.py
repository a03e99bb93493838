"""Tensors that are copied on their way: the copy is a call, and whatever runs behind it reads the copy.

In several memories a tensor may leave a fast one between two of its uses, or come into it before them. A copy has the
source of what it copies, so that the judge of data flow knows both as one tensor of the graph. A constant stays where
it is: some calls read a copy of it, and others the constant itself. A copy engine makes copies beside other calls: what
it copies then keeps its bytes until a later tick. A copy may also be made by computing the tensor again, where what its
operator reads is there: then the tensor has no bytes before.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from attrs import define, evolve, field, frozen

from engine.graph.deferred import Entry
from engine.lower.calls import Alias, Call, Instruction, Join, Lowered, Role, Storage, Value, pack_key
from engine.lower.lowering import copying, workspace_spec
from engine.lower.roles import AGAIN
from engine.lower.streamed import Streamed, streamed, unpacked
from engine.lower.updates import check_updates
from engine.lower.work import runs_once
from engine.text.errors import GraphError, OtherPlanError
from engine.text.names import free_name
from ops.tensor.layout import Layout
from ops.tensor.spec import TensorSpec

COPIED = "copied"
"""The end of the name of a copy."""
IN_TURN = -1
"""The last tick of a copy that no engine makes, as `allocator.memories.changes` has it."""
PACKED = "packed"
"""The end of the name of what calls pack of a constant, in one row of bytes."""


@frozen
class Copied:
    """A copy: of the value of the name `tensor`, right behind the instruction of the tick `after`; 0 is the feed.

    A copy engine makes it while the instructions of the ticks up to `until` run; IN_TURN where it is a call like all
    others. Names and ticks are those of the calls without copies. Of a tensor with several, the next one copies the one
    before. A copy of a constant is read up to the tick `read_until`, and each is one of the constant itself; 0 for all
    others. `again`: nothing is copied, but the call that computes the tensor runs again.
    """

    tensor: str
    after: int
    until: int = IN_TURN
    read_until: int = 0
    again: bool = False


def with_copies(lowered: Lowered, copies: Sequence[Copied]) -> tuple[Lowered, tuple[int, ...]]:
    """Returns the calls with copies, each behind its tick, and the value of each copy.

    Those of one tick stand in the given order.

    Raises OtherPlanError for a tensor that cannot be copied (`copyable`, `streamed`), or not be computed again
    (`computable`), is unknown, or is written behind the tick, and for a copy that is over before it begins, or that no
    call can read, and where a call would run again that reads a parameter as it was before its update.
    """
    streams = streamed(lowered) if any(copied.read_until for copied in copies) else {}
    return _Copying(lowered, streams, list(lowered.values), dict(lowered.constants.entries)).run(copies)


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


def computable(lowered: Lowered) -> Mapping[int, Call]:
    """Returns the values that can be computed again, each with the call that does it.

    They can be copied, and own their bytes. Nothing has a body inside, and what the call packs does not depend on its
    name: so both calls share what is packed.
    """
    can_be = copyable(lowered)
    return {
        v: call
        for call in lowered.calls
        if not runs_once(lowered, call) and call.operators and pack_key(call) == pack_key(evolve(call, name=""))
        for v in call.outputs
        if v in can_be and not lowered.values[v].is_view
    }


@define(eq=False)
class _Copying:
    """`now` has what calls read in place of each value, if that is another one, `copies` the value of each copy.

    `home` has, for each constant that is copied, what its copies are made of: itself, or a row of what calls pack.
    `makers` has the calls that can run again, by the value that they compute. `ticks` has the ticks that instructions
    without copies now have. The ids of values stay as they are; copies have new
    ones.
    """

    lowered: Lowered
    streams: Mapping[int, Streamed]
    values: list[Value]
    constants: dict[int, Entry]
    instructions: list[Instruction] = field(factory=list)
    now: dict[int, int] = field(factory=dict)
    home: dict[int, int] = field(factory=dict)
    copies: dict[int, int] = field(factory=dict)
    makers: Mapping[int, Call] = field(factory=dict)
    names: set[str] = field(factory=set)
    ticks: dict[int, int] = field(factory=lambda: {0: 0})

    def run(self, copies: Sequence[Copied]) -> tuple[Lowered, tuple[int, ...]]:
        lowered = self.lowered
        self.makers = computable(lowered) if any(copied.again for copied in copies) else {}
        copied = self._checked(copies)
        behind, ends = (
            defaultdict[int, list[tuple[int, Copied, Value]]](list),
            defaultdict[int, list[tuple[int, int]]](list),
        )
        for number, (copy, value) in enumerate(zip(copies, copied, strict=True)):
            behind[copy.after].append((number, copy, value))
            if copy.read_until:
                ends[copy.read_until].append((number, value.id))
        self.names = {*(v.name for v in self.values), *(instruction.name for instruction in lowered.instructions)}
        for value in dict.fromkeys(value for copy, value in zip(copies, copied, strict=True) if copy.read_until):
            self.now[value.id] = self.home[value.id] = self._home(value)
        self._copy_all(behind[0])
        for instruction in lowered.instructions:
            self._instruction(instruction)
            for number, constant in ends[instruction.tick]:
                if self.now[constant] == self.copies[number]:
                    self.now[constant] = self.home[constant]
            self._copy_all(behind[instruction.tick])
        outputs = {name: self.now.get(value, value) for name, value in lowered.outputs.items()}
        of_copies = tuple(self.copies[number] for number in range(len(copies)))
        beside = {v: self.ticks[one.until] for v, one in zip(of_copies, copies, strict=True) if one.until != IN_TURN}
        after = evolve(
            lowered,
            values=tuple(self.values),
            instructions=tuple(self.instructions),
            constants=self.constants,
            outputs=outputs,
            engine_copies=beside,
        )
        try:
            check_updates(after)
        except GraphError as error:
            raise OtherPlanError(f"a call that runs again comes too late: {error}") from error
        return after, of_copies

    def _checked(self, copies: Sequence[Copied]) -> list[Value]:
        """Returns the value that each copy is of. Raises OtherPlanError."""
        lowered, by_name = self.lowered, {value.name: value for value in self.values}
        can_be, last = copyable(lowered), len(lowered.instructions)
        written = {v: instruction.tick for instruction in lowered.instructions for v in instruction.outputs}
        values = []
        for copied in copies:
            value = by_name.get(copied.tensor)
            if value is None or not written.get(value.id, 0) <= copied.after <= last:
                raise OtherPlanError(f"there is no {copied.tensor!r} to copy behind tick {copied.after}")
            if copied.until != IN_TURN and not copied.after <= copied.until <= last:
                raise OtherPlanError(f"the copy of {copied.tensor!r} ends in tick {copied.until}, which cannot be")
            if copied.again and value.id not in self.makers:
                raise OtherPlanError(f"{copied.tensor!r} cannot be computed again")
            if value.id not in (self.streams if copied.read_until else can_be):
                raise OtherPlanError(f"{copied.tensor!r} cannot be copied: its bytes must stay, or have holes")
            if copied.read_until and not copied.after < copied.read_until <= last:
                raise OtherPlanError(
                    f"a copy of {copied.tensor!r} is not there from tick {copied.after} to {copied.read_until}"
                )
            values.append(value)
        return values

    def _home(self, value: Value) -> int:
        """Returns what the copies of a constant are made of, and what is read where there is none."""
        stream = self.streams[value.id]
        if not stream.packing:
            return value.id
        name = free_name(f"{value.name}/{PACKED}", self.names)
        row = self._own(name, value.source, stream.spec, Storage.CONSTANT, Role.PACKED)
        self.constants[row] = stream.row(self.lowered)
        return row

    def _instruction(self, instruction: Instruction) -> None:
        self.ticks[instruction.tick] = self._tick()
        if isinstance(instruction, Call):
            self._call(instruction)
            return
        inputs = tuple(self.now.get(value, value) for value in instruction.inputs)
        if isinstance(instruction, Alias):
            self._look(instruction, inputs[0])
        self.instructions.append(evolve(instruction, tick=self._tick(), inputs=inputs))

    def _call(self, call: Call) -> None:
        inputs = tuple(self.now.get(value, value) for value in call.inputs)
        for position, (value, was) in enumerate(zip(inputs, call.inputs, strict=True)):
            if was in self.home and self.values[value].role is Role.COPY:
                call = evolve(call, signature=unpacked(call, position))
        self.instructions.append(evolve(call, tick=self._tick(), inputs=inputs))

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

    def _copy_all(self, copied: Iterable[tuple[int, Copied, Value]]) -> None:
        for number, one, value in copied:
            source = self.home.get(value.id, self.now.get(value.id, value.id))
            copy = self._again(value) if one.again else self._copy(self.values[source], value.name)
            self.now[value.id] = self.copies[number] = copy

    def _copy(self, value: Value, stem: str) -> int:
        signature, kernel, nbytes = copying(value.spec, self.lowered.backends, self.lowered.target)
        role = Role.PACKED if value.role is Role.PACKED else Role.COPY
        copy = self._own(free_name(f"{stem}/{COPIED}", self.names), value.source, value.spec, Storage.ARENA, role)
        name = self.values[copy].name
        workspace: tuple[int, ...] = ()
        if nbytes:
            spec = workspace_spec(nbytes)
            workspace = (self._own(f"{name}/workspace", "", spec, Storage.ARENA, Role.WORKSPACE),)
        self.instructions.append(Call(self._tick(), name, (), kernel, signature, (value.id,), (copy,), workspace, ()))
        return copy

    def _again(self, value: Value) -> int:
        """Lets the call of a value run again. Returns what it then computes in place of the value."""
        call = self.makers[value.id]
        name = free_name(f"{call.name}/{AGAIN}", self.names)
        outputs = [self.values[v] for v in call.outputs]
        names = [name if v.name == call.name else free_name(f"{v.name}/{AGAIN}", self.names) for v in outputs]
        again = tuple(
            self._own(own, v.source, v.spec, Storage.ARENA, Role.AGAIN) for own, v in zip(names, outputs, strict=True)
        )
        workspace = tuple(
            self._own(f"{name}/workspace", "", self.values[v].spec, Storage.ARENA, Role.WORKSPACE)
            for v in call.workspace
        )
        self._call(evolve(call, name=name, outputs=again, workspace=workspace))
        return again[call.outputs.index(value.id)]

    def _own(self, name: str, source: str, spec: TensorSpec, storage: Storage, role: Role) -> int:
        value = len(self.values)
        self.values.append(Value(value, name, source, spec, Layout.dense(spec), value, storage, role))
        return value

    def _tick(self) -> int:
        return len(self.instructions) + 1
