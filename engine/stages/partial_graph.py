"""The graph of one stage: all following operators whose sizes are known, with numbers in place of dimensions."""

from collections import deque
from collections.abc import Iterable, Mapping

from attrs import define, field, frozen

from engine.graph.bindings import Bindings
from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.stages.state import RunState, SignedOperator
from engine.stages.task import Task, Tasks, Template
from ops.schema.schema import Signature, Specs
from ops.tensor.dims import Dim, Guard
from ops.tensor.errors import ShapeError
from ops.tensor.spec import Array, Shape, TensorSpec


@frozen(eq=False)
class PartialGraph:
    """A stage before it is lowered. `vars` maps vars of the template to those of the stage.

    `makers` maps vars of the template to the operators that compute them; `rest` has the tasks that are left; `keyed`
    maps the keys of `bindings` to vars.
    """

    graph: Graph
    vars: Mapping[Var, Var]
    makers: Mapping[Var, SignedOperator]
    rest: Tasks
    keyed: Mapping[str, Var]
    bindings: Bindings


def stage_graph(template: Template, state: RunState, name: str) -> PartialGraph:
    """Writes the graph of the next stage; its inputs are the live tensors. Only the last stage has outputs.

    Raises ShapeError where the numbers do not fit, or break a guard.
    """
    return _write(template, state, name, ())


def whole_graph(template: Template, start: RunState, name: str, history: Iterable[Mapping[str, Array]]) -> Graph:
    """Writes the graph of a whole run as one stage; `history` has the data that were read after each stage."""
    return _write(template, start, name, history).graph


def _write(template: Template, state: RunState, name: str, history: Iterable[Mapping[str, Array]]) -> PartialGraph:
    writer = _Writer(template, state, Graph(name), state.bindings.after({}), dict(state.keyed))
    writer.sources()
    tasks, later_data = deque(state.tasks), iter(history)
    while tasks:
        if not writer.bindings.decide(tasks[0].data):
            data = next(later_data, {})
            if not data:
                break
            writer.bindings.data.update(data)
            continue
        task = tasks.popleft()
        writer.check(task.guards)
        if isinstance(task, Task):
            writer.task(task)
        else:
            tasks.extendleft(reversed(task.expand(writer)))
    if not tasks:
        writer.finish()
    writer.graph.vanished = template.graph.vanished
    return PartialGraph(writer.graph, writer.vars, writer.makers, tuple(tasks), writer.keyed, writer.bindings)


@define(eq=False)
class _Writer:
    template: Template
    state: RunState
    graph: Graph
    bindings: Bindings
    keyed: dict[str, Var]
    vars: dict[Var, Var] = field(factory=dict)
    makers: dict[Var, SignedOperator] = field(factory=dict)

    def sources(self) -> None:
        for var, tensor in self.state.alive.items():
            self.vars[var] = self.graph.input(var.name, tensor.shape, var.dtype)

    def task(self, task: Task) -> None:
        operator = task.operator
        signature = operator.signature
        if not task.is_fixed:
            signature = sign_task(task, tuple(self.var(v).spec for v in operator.inputs), self.bindings)
        self._add(SignedOperator(operator.name, operator.schema, operator.inputs, operator.outputs, signature))
        for key, var in zip(task.keys, operator.outputs, strict=True):
            self.bindings.shapes[key] = self.vars[var].spec.shape
            self.keyed[key] = var

    def check(self, guards: Iterable[Guard]) -> None:
        for guard in guards:
            guard.check(self.bindings.number)

    def finish(self) -> None:
        for name, var in self.template.graph.outputs.items():
            self.graph.output(self.var(var), name)
        for parameter, value in self.template.graph.updates.items():
            self.graph.assign(self.var(parameter), self.var(value))

    def shape(self, var: Var) -> Shape:
        """Returns the shape of a var of the template."""
        return self.var(var).spec.shape

    def var(self, var: Var) -> Var:
        """Returns the var of the stage for one of the template."""
        if var not in self.vars:
            if var in self.state.views:
                self._add(self.state.views[var])
            else:
                self.vars[var] = self._constant(var)
        return self.vars[var]

    def _constant(self, var: Var) -> Var:
        graph = var.graph
        assert isinstance(graph, Graph)
        name = graph.key(var.name)
        if var in graph.constants:
            return self.graph.add_constant(name, var.spec, graph.constants.entries[var])
        if var in graph.parameters:
            parameter = graph.parameters[var]
            return self.graph.parameter(parameter.initial, name, trainable=parameter.trainable)
        return self.graph.constant(self.bindings.array(graph.derived[var]), name)

    def _add(self, operator: SignedOperator) -> None:
        inputs, names = [self.var(v) for v in operator.inputs], [v.name for v in operator.outputs]
        outputs = self.graph.add_signed(operator.schema, inputs, operator.signature, operator.name, names)
        self.vars.update(zip(operator.outputs, outputs, strict=True))
        self.makers.update(dict.fromkeys(operator.outputs, operator))


def sign_task(task: Task, inputs: Specs, bindings: Bindings) -> Signature:
    """Returns the signature of an operator with numbers. Raises OpError where they do not fit."""
    operator, schema, constants = task.operator, task.operator.schema, task.operator.signature.constants
    if task.has_dims:
        attrs = {n: bindings.value(v) for n, v in operator.attrs.items()}
        signature = schema.sign(inputs, attrs, constants)
    else:
        signature = schema.infer_again(inputs, operator.attrs, constants)
    for var, spec in zip(operator.outputs, signature.outputs, strict=True):
        _check_claim(operator, var.spec, spec)
    return signature


def _check_claim(operator: Operator, claimed: TensorSpec, inferred: TensorSpec) -> None:
    """Checks that a length that was a number when the graph was built is unchanged: other operators rely on it."""
    for axis, (claim, length) in enumerate(zip(claimed.shape, inferred.shape, strict=True)):
        if not isinstance(claim, Dim) and claim != length:
            raise ShapeError(
                f"{operator}: axis {axis} of its output {inferred} is {length} with these lengths, and was {claim} "
                f"with all lengths that were tried when the graph was built; "
                f"build the graph with these lengths as numbers (shapes=, --shape)"
            )
