"""Writes an edit as a graph: finds a runnable order and free names."""

from collections.abc import Mapping

from attrs import frozen

from engine.graph.deferred import Entry
from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.order import stable_order
from engine.graph.var import Var


@frozen(eq=False)
class GraphDraft:
    """The state of an edit. `sources` maps the inputs and parameters of the graph that it began with to its vars.

    New vars have no name; `inherited_names` has the names of what they replace.
    """

    original: Graph
    sources: Mapping[Var, Var]
    constants: Mapping[Var, Entry]
    operators: tuple[Operator, ...]
    outputs: Mapping[str, Var]
    updates: Mapping[Var, Var]
    inherited_names: Mapping[Var, str]


def write(draft: GraphDraft) -> Graph:
    """Returns the graph, its operators in the order of the draft wherever that can be run. Raises CycleError."""
    graph = Graph(draft.original.name)
    names = _Names(draft)
    vars = {draft.sources[v]: graph.input(name, v.shape, v.dtype) for name, v in draft.original.inputs.items()}
    for var, parameter in draft.original.parameters.items():
        vars[draft.sources[var]] = graph.parameter(parameter.initial, var.name, trainable=parameter.trainable)
    for var, array in draft.constants.items():
        vars[var] = graph.add_constant(names.of(var, "constant"), var.spec, array)
    for operator in _runnable(draft):
        name, outputs = names.of_operator(operator)
        inputs = [vars[v] for v in operator.inputs]
        vars.update(
            zip(
                operator.outputs,
                graph.add_signed(operator.schema, inputs, operator.signature, name, outputs),
                strict=True,
            )
        )
    for name, var in draft.outputs.items():
        graph.output(vars[var], name)
    for var, value in draft.updates.items():
        graph.assign(vars[var], vars[value])
    return graph


def _runnable(draft: GraphDraft) -> tuple[Operator, ...]:
    """Returns the operators in a runnable order. One that updates a parameter stands behind all other readers of it."""
    operators = draft.operators
    writer = {v: i for i, op in enumerate(operators) for v in op.outputs}
    waits = [{writer[v] for v in op.inputs if v in writer} for op in operators]
    last = {p: writer[v] for p, v in draft.updates.items() if v in writer}
    for i, op in enumerate(operators):
        for var in op.inputs:
            if last.get(var, i) != i:
                waits[last[var]].add(i)
    order = stable_order(waits, [str(op) for op in operators])
    return tuple(operators[i] for i in order)


class _Names:
    """Names for vars and operators: old ones keep theirs, new ones inherit a free name or get a numbered one."""

    def __init__(self, draft: GraphDraft) -> None:
        self._inherited_names = draft.inherited_names
        vars = (*draft.sources.values(), *draft.constants, *(v for op in draft.operators for v in op.outputs))
        self._vars = {v.name for v in vars if v.name}
        self._operators = {op.name for op in draft.operators if op.name}
        self._numbers: dict[str, int] = {}  # the lowest number that may be free, by stem
        self._old = {v.name: op.name for op in draft.original.operators for v in op.outputs}

    def of(self, var: Var, stem: str) -> str:
        """Returns the name of a var."""
        if var.name:
            return var.name
        wanted = self._inherited_names.get(var, "")
        name = wanted if wanted and wanted not in self._vars else self._numbered(wanted or stem)
        self._vars.add(name)
        return name

    def of_operator(self, operator: Operator) -> tuple[str, tuple[str, ...]]:
        """Returns the names of an operator and of its outputs."""
        outputs = operator.outputs
        if operator.name:
            return operator.name, tuple(v.name for v in outputs)
        wanted = self._old.get(self._inherited_names.get(outputs[0], ""), "")
        name = wanted if wanted and wanted not in self._operators else self._numbered(operator.schema.name)
        self._operators.add(name)
        stems = (name,) if len(outputs) == 1 else tuple(f"{name}:{i}" for i in range(len(outputs)))
        return name, tuple(self._output(v, s) for v, s in zip(outputs, stems, strict=True))

    def _output(self, var: Var, stem: str) -> str:
        wanted = self._inherited_names.get(var, "") or stem
        name = wanted if wanted not in self._vars else self._numbered(wanted)
        self._vars.add(name)
        return name

    def _numbered(self, stem: str) -> str:
        number = self._numbers.get(stem, 0)
        while f"{stem}_{number}" in self._vars or f"{stem}_{number}" in self._operators:
            number += 1
        self._numbers[stem] = number
        return f"{stem}_{number}"
