"""From steps, some of which run several times, back to a graph: a value that is computed again is a var of its own."""

from collections.abc import Sequence

from attrs import define, field

from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.lower.calls import Alias, Instruction, Lowered, Role
from engine.lower.roles import AGAIN
from engine.text.names import free_name


def write_again(lowered: Lowered, sequence: Sequence[int]) -> Graph:
    """Returns the lowered graph with its operators run as the ticks in `sequence` say. Aliases follow by themselves.

    Inputs, constants, parameters, updates and outputs are as they were. Each operator reads what was computed last.
    """
    graph = _AgainWriter(lowered).run(sequence)
    graph.vanished = lowered.graph.vanished
    return graph


@define(eq=False)
class _AgainWriter:
    """`vars` has the var of each value as it was computed last; `made_of` the run of the owner that a view looks at,
    `runs` the runs of owners so far; `copied` the var whose dense copy each copy is now.
    """

    lowered: Lowered
    graph: Graph = field(init=False)
    operator_names: set[str] = field(init=False)
    var_names: set[str] = field(init=False)
    value_of: dict[Var, int] = field(factory=dict)
    viewed: dict[int, Operator] = field(factory=dict)
    vars: dict[int, Var] = field(factory=dict)
    made_of: dict[int, int] = field(factory=dict)
    runs: dict[int, int] = field(factory=dict)
    copied: dict[int, Var] = field(factory=dict)
    ran: set[str] = field(factory=set)

    def run(self, sequence: Sequence[int]) -> Graph:
        self._sources()
        for tick in sequence:
            if 0 < tick <= len(self.lowered.instructions):
                self._instruction(self.lowered.instructions[tick - 1])
        before = self.lowered.graph
        for name, var in before.outputs.items():
            self.graph.output(self._var(self.value_of[var]), name)
        for var, value in before.updates.items():
            self.graph.assign(self.vars[self.value_of[var]], self._var(self.value_of[value]))
        return self.graph

    def _sources(self) -> None:
        before = self.lowered.graph
        self.graph = Graph(before.name)
        self.operator_names, self.var_names = {op.name for op in before.operators}, set(before.vars)
        by_name = {v.name: v.id for v in self.lowered.values if v.name == v.source and v.role is not Role.COPY}
        self.value_of = {var: by_name[var.name] for var in before.vars.values()}
        copies = {var: self.graph.input(name, var.shape, var.dtype) for name, var in before.inputs.items()}
        for var, entry in before.constants.entries.items():
            copies[var] = self.graph.add_constant(var.name, var.spec, entry)
        for var, parameter in before.parameters.items():
            copies[var] = self.graph.parameter(parameter.initial, var.name, trainable=parameter.trainable)
        self.vars = {self.value_of[var]: new for var, new in copies.items()}
        aliases = (s for s in self.lowered.instructions if isinstance(s, Alias))
        self.viewed = {v: s.operators[0] for s in aliases for v in s.outputs}

    def _instruction(self, instruction: Instruction) -> None:
        if isinstance(instruction, Alias):
            if self.lowered.values[instruction.outputs[0]].owner in self.vars:  # else it follows when it is read
                self._var(instruction.outputs[0])
        elif not instruction.operators:
            self._copy(instruction.inputs[0], instruction.outputs[0])
        else:
            operator = instruction.operators[0]
            operands = zip(operator.inputs, instruction.inputs, strict=True)
            inputs = [self.copied[v] if v in self.copied else self._var(self.value_of[var]) for var, v in operands]
            self._add(operator, inputs)

    def _copy(self, value: int, copy: int) -> None:
        """Copies a value. A copy is made once of each var, so a second copy is of another view of the same bytes."""
        if copy in self.copied:
            self._look(self.viewed[value])
        self.copied[copy] = self._var(value)

    def _var(self, value: int) -> Var:
        """Returns the var of a value; views of what was computed again since are taken again."""
        owner = self.lowered.values[value].owner
        if owner != value and self.made_of.get(value, -1) != self.runs.get(owner, 0):
            self._look(self.viewed[value])
        return self.vars[value]

    def _look(self, operator: Operator) -> None:
        self._add(operator, [self._var(self.value_of[v]) for v in operator.inputs])
        for var in operator.outputs:
            value = self.lowered.values[self.value_of[var]]
            self.made_of[value.id] = self.runs.get(value.owner, 0)

    def _add(self, operator: Operator, inputs: Sequence[Var]) -> None:
        again = operator.name in self.ran
        self.ran.add(operator.name)
        name = free_name(f"{operator.name}/{AGAIN}", self.operator_names) if again else operator.name
        names = [free_name(f"{v.name}/{AGAIN}", self.var_names) if again else v.name for v in operator.outputs]
        outputs = self.graph.add_signed(operator.schema, inputs, operator.signature, name, names)
        for var, new in zip(operator.outputs, outputs, strict=True):
            value = self.value_of[var]
            self.vars[value] = new
            self.runs[value] = self.runs.get(value, 0) + 1
