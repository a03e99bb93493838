"""The data-flow judge: replays an execution plan on symbols and checks that each read finds what was meant.

Every byte of every storage holds the number of the value that was last written there. A call may read a value only
where all bytes of its place hold the value's owner; what a kernel writes takes the bytes over. Nothing here looks at
lifetimes, chunks or the plan's offsets; places are believed only after the schema's own view rule has confirmed them,
and owners are found anew. Idea: the checker of regalloc2 (Fallin 2021), with byte ranges in place of registers.
"""

from functools import partial

from attrs import define, evolve, field

from engine.check.contents import NOTHING, Contents
from engine.check.plans import PlanLike
from engine.check.spans import Span, spans
from engine.graph.deferred import Deferred
from engine.graph.operator import Operator
from engine.lower.calls import Alias, Call, Instruction, Join, Role, pack_key, packed_row, unread_inputs
from engine.system.arrays import view_array
from engine.text.errors import DataFlowError
from ops.schema.schema import Overwrite, Signature
from ops.tensor.layout import Layout


def check_data_flow(plan: PlanLike) -> None:
    """Raises DataFlowError with the first call that would go wrong. Takes O(n log n) in the number of accesses."""
    _DataFlowJudge(plan, Contents(plan, spans(plan, NOTHING))).run()


@define(eq=False)
class _DataFlowJudge:
    """`packed` has, by the name of a constant, the value with what calls pack of it."""

    plan: PlanLike
    contents: Contents
    packed: dict[str, int] = field(factory=dict)

    def run(self) -> None:
        lowered = self.plan.lowered
        self._feed()
        done: list[Operator] = []
        for instruction in lowered.instructions:
            if not self._runs_again(instruction):
                done.extend(instruction.operators)
            if isinstance(instruction, Alias):
                self._alias(instruction)
            elif isinstance(instruction, Join):
                self._join(instruction)
            else:
                self._call(instruction)
        self._all_done(done)
        self._copies_are_true()
        for name, value in lowered.outputs.items():
            self.contents.read(f"output {name!r}", value)
            self.contents.means(f"output {name!r}", value, lowered.graph.outputs[name].name)
        self._parameters()

    def _feed(self) -> None:
        lowered = self.plan.lowered
        for value in lowered.constants:
            self._constant(value)
        for value in lowered.parameters:  # there from before the run
            self.contents.write("parameters", value, lowered.values[value].source)
        for name, value in lowered.inputs.items():
            self.contents.write("feed", value, lowered.graph.inputs[name].name)

    def _parameters(self) -> None:
        """Checks that each parameter of the graph ends where it began, and holds its update."""
        lowered, graph = self.plan.lowered, self.plan.lowered.graph
        value_of = {self.contents.sources.get(v): v for v in lowered.parameters}
        for var in graph.parameters:
            if var.name not in value_of:
                raise DataFlowError(f"parameter {var.name!r} has no place")
            first = value_of[var.name]
            last, where = lowered.parameters[first], f"parameter {var.name!r}"
            self.contents.read(where, last)
            self.contents.means(where, last, graph.updates.get(var, var).name)
            same = self.plan.places[last].layout == self.plan.places[first].layout
            if not same or self.contents.spans[last].held is not self.contents.spans[first].held:
                raise DataFlowError(f"{where} is updated elsewhere than where it lies")

    def _constant(self, value: int) -> None:
        """Checks a constant: an entry of the graph, or a dense copy of a view of one."""
        lowered = self.plan.lowered
        source = lowered.values[value].source
        entry = lowered.graph.constants.entries.get(lowered.graph.vars[source])
        if lowered.values[value].role is Role.PACKED:
            self.packed[source] = value
        elif entry is not None and lowered.constants.entries[value] is not entry:
            raise DataFlowError(f"constants: {self.contents.name(value)} does not hold the data of {source!r}")
        self.contents.write("constants", value, source)

    def _alias(self, instruction: Alias) -> None:
        (operator,), (source,) = instruction.operators, instruction.inputs
        self.contents.means(instruction.name, source, operator.inputs[0].name)
        wanted = operator.schema.views(self.plan.places[source].layout, operator.signature)
        looked_at = self.contents.spans[source].held
        for var, value, layout in zip(operator.outputs, instruction.outputs, wanted, strict=True):
            if self.plan.places[value].layout != layout or self.contents.spans[value].held is not looked_at:
                raise DataFlowError(
                    f"{instruction.name}: {self.contents.name(value)} is no view of {self.contents.name(source)}"
                )
            self.contents.show(value, source, var.name)

    def _join(self, instruction: Join) -> None:
        """Checks that the inputs lie where the operator wants them in its output, are complete, and fill it."""
        (operator,), (value,), contents = instruction.operators, instruction.outputs, self.contents
        span = contents.inside(instruction.name, value)
        wanted = operator.schema.input_places(self.plan.places[value].layout, operator.signature)
        for var, part, layout in zip(operator.inputs, instruction.inputs, wanted, strict=True):
            contents.read(instruction.name, part)
            contents.means(instruction.name, part, var.name)
            if contents.spans[part].runs.size and (layout is None or not self._lies(part, layout, span)):
                parted = f"{contents.name(part)} is not where it must be in {contents.name(value)}"
                raise DataFlowError(f"{instruction.name}: {parted}")
        contents.put_together(value, instruction.inputs, operator.outputs[0].name)
        contents.read(instruction.name, value)

    def _lies(self, value: int, layout: Layout, whole: Span) -> bool:
        """Returns whether a value lies like that, in the same storage as the whole."""
        own = self.plan.places[value].layout
        pairs = zip(own.shape, own.strides, layout.strides, strict=True)
        same = own.offset == layout.offset and own.shape == layout.shape and own.itemsize == layout.itemsize
        return same and self.contents.spans[value].held is whole.held and all(n == 1 or s == t for n, s, t in pairs)

    def _copies_are_true(self) -> None:
        """Checks that constants copied while planning hold what their sources show."""
        lowered = self.plan.lowered
        tensors, constants = lowered.graph.vars, lowered.graph.constants
        shown = {self.contents.sources[v]: v for s in lowered.instructions if isinstance(s, Alias) for v in s.outputs}
        for value in lowered.constants:
            source = self.contents.sources[value]
            if tensors[source] not in constants:
                copy = lowered.constants[value]
                place, dtype = self.plan.places[shown[source]], lowered.values[value].spec.dtype
                if view_array(lowered.constants[place.owner], place.layout, dtype).tobytes() != copy.tobytes():
                    raise DataFlowError(f"constants: {self.contents.name(value)} does not hold what {source!r} shows")

    def _call(self, instruction: Call) -> None:
        for value in instruction.inputs:
            self.contents.read(instruction.name, value)
        for operator in instruction.operators:
            for var, value in zip(operator.inputs, instruction.inputs, strict=True):
                self.contents.means(instruction.name, value, var.name)
        for position, value in enumerate(instruction.inputs):
            if not instruction.kernel.accepts(instruction.signature, position, self.plan.places[value].layout):
                raise DataFlowError(
                    f"{instruction.name}: its kernel cannot read {self.contents.name(value)} where it lies"
                )
            if instruction.operators and self.plan.lowered.values[value].role is Role.PACKED:
                self._packed(instruction, position, value)
        self._computes(instruction)
        self._write(instruction)

    def _packed(self, instruction: Call, position: int, value: int) -> None:
        """Checks that a call reads what it would itself pack of its own constants."""
        lowered, (operator,) = self.plan.lowered, instruction.operators
        entry = lowered.constants.entries.get(self.packed.get(self.contents.sources[value], value))
        make = entry.make if isinstance(entry, Deferred) else None
        call, constants = make.args if isinstance(make, partial) and make.func is packed_row else (instruction, ())
        own = {i: lowered.graph.constants.entries.get(operator.inputs[i]) for i in instruction.signature.constants}
        is_alike = pack_key(call) == pack_key(instruction) and dict(constants).keys() == own.keys()
        if not is_alike or any(entry is not own[i] for i, entry in constants) or position not in unread_inputs(call):
            raise DataFlowError(f"{instruction.name}: {self.contents.name(value)} is not what its kernel packs")

    def _computes(self, instruction: Call) -> None:
        """Checks that the call runs a kernel of its operator, with the operator's attributes and declared workspace."""
        for operator in instruction.operators:
            if not _declares(operator, instruction.signature) or instruction.kernel not in operator.schema.kernels:
                raise DataFlowError(f"{instruction.name}: does not compute what {operator} does")
        wanted = self.plan.lowered.workspace_bytes(instruction)
        reserved = sum(self.plan.lowered.values[v].spec.nbytes for v in instruction.workspace)
        if reserved != wanted or not instruction.kernel.supports(instruction.signature):
            raise DataFlowError(f"{instruction.name}: its kernel needs {wanted} bytes of workspace and has {reserved}")

    def _write(self, instruction: Call) -> None:
        written = instruction.outputs + instruction.workspace
        writes, reads = [self.contents.spans[v] for v in written], [self.contents.spans[v] for v in instruction.inputs]
        for i, span in enumerate(writes):
            for j, other in enumerate(writes[:i]):
                if span.meets(other):
                    raise DataFlowError(
                        f"{instruction.name}: {self.contents.name(written[i])} lies on {self.contents.name(written[j])}"
                    )
            for position, read in enumerate(reads):
                if span.meets(read) and not self._permitted(instruction, i, position):
                    one, other_name = self.contents.name(written[i]), self.contents.name(instruction.inputs[position])
                    raise DataFlowError(f"{instruction.name}: {one} is written over its input {other_name}")
        names = [v.name for op in instruction.operators for v in op.outputs] or [
            self.contents.sources[instruction.inputs[0]]
        ]
        for value, source in zip(written, names + [""] * len(instruction.workspace), strict=True):
            self.contents.write(instruction.name, value, source, instruction.kernel)

    def _permitted(self, instruction: Call, output: int, position: int) -> bool:
        """Returns whether the schema lets that output start so far behind that very input."""
        if output >= len(instruction.outputs):
            return False
        taken, taker = (
            self.plan.places[instruction.inputs[position]].layout,
            self.plan.places[instruction.outputs[output]].layout,
        )
        wanted = Overwrite(output, position, taker.offset - taken.offset)
        fits = taken.is_dense or taken == taker  # element on element where there are holes
        return fits and any(wanted in op.schema.overwrites(op.signature) for op in instruction.operators)

    def _runs_again(self, instruction: Instruction) -> bool:
        """Returns whether a call computes again what another one does, into values that are there for that alone."""
        values = self.plan.lowered.values
        return isinstance(instruction, Call) and all(values[v].role is Role.AGAIN for v in instruction.outputs)

    def _all_done(self, done: list[Operator]) -> None:
        missing = set(self.plan.lowered.graph.operators) - set(done)
        if missing or len(done) != len(self.plan.lowered.graph.operators):
            names = ", ".join(sorted(op.name for op in missing)) or "one runs twice"
            raise DataFlowError(f"not every operator runs once: {names}")


def _declares(operator: Operator, signature: Signature) -> bool:
    """Returns whether a signature is the operator's, but for constants that it may not speak of, and threads."""
    declared = operator.signature
    if signature is declared:
        return True
    alike = evolve(declared, constants=signature.constants, threads=signature.threads)
    return signature.constants <= declared.constants and signature == alike
