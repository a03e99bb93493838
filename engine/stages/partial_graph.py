"""The graph of one stage: everything from here on whose sizes are known, with numbers in place of dimensions."""

from collections import deque
from collections.abc import Iterable, Mapping

from attrs import define, field, frozen

from engine.graph.bindings import Facts
from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.stages.progress import Made, Progress
from engine.stages.task import Late, Task, Template
from ops.schema.schema import Signature, Specs
from ops.tensor.dims import Dim, Guard
from ops.tensor.errors import ShapeError
from ops.tensor.spec import Array, Shape, TensorSpec


@frozen(eq=False)
class Draft:
    """A stage before it is lowered. `vars` has the stage's var for those of the template, `made` who makes them.

    `rest` is what was not taken into it; `keyed` are the vars that facts know by a key.
    """

    graph: Graph
    vars: Mapping[Var, Var]
    made: Mapping[Var, Made]
    rest: tuple[Task | Late, ...]
    keyed: Mapping[str, Var]
    facts: Facts


def draft_stage(template: Template, progress: Progress, name: str) -> Draft:
    """The graph of the next stage; only the last has outputs. What is alive is its inputs, as are the feeds at first.

    Raises ShapeError where the numbers do not fit, or do not keep a guard.
    """
    return _draft(template, progress, name, ())


def draft_whole(template: Template, start: Progress, name: str, history: Iterable[Mapping[str, Array]]) -> Graph:
    """The graph of a whole run, as if all that was read on the way had been known; `history` has it cut by cut."""
    return _draft(template, start, name, history).graph


def _draft(template: Template, progress: Progress, name: str, history: Iterable[Mapping[str, Array]]) -> Draft:
    writer = _Writer(template, progress, Graph(name), progress.facts.after({}), dict(progress.keyed))
    writer.sources()
    tasks, coming = deque(progress.tasks), iter(history)
    while tasks:
        if not writer.facts.decide(tasks[0].data):
            data = next(coming, {})
            if not data:
                break
            writer.facts.data.update(data)
            continue
        task = tasks.popleft()
        writer.check(task.guards)
        if isinstance(task, Task):
            writer.task(task)
        else:
            tasks.extendleft(reversed(task.expand(writer)))
    if not tasks:
        writer.finish()
    return Draft(writer.graph, writer.vars, writer.made, tuple(tasks), writer.keyed, writer.facts)


@define(eq=False)
class _Writer:
    template: Template
    progress: Progress
    graph: Graph
    facts: Facts
    keyed: dict[str, Var]
    vars: dict[Var, Var] = field(factory=dict)
    made: dict[Var, Made] = field(factory=dict)

    def sources(self) -> None:
        for var, held in self.progress.alive.items():
            self.vars[var] = self.graph.input(var.name, held.shape, var.dtype)

    def task(self, task: Task) -> None:
        operator = task.operator
        signature = operator.signature
        if not task.is_fixed:
            signature = self._signed(task, tuple(self.var(v).spec for v in operator.inputs))
        self._add(Made(operator.name, operator.schema, operator.inputs, operator.outputs, signature))
        for key, var in zip(task.keys, operator.outputs, strict=True):
            self.facts.shapes[key] = self.vars[var].spec.shape
            self.keyed[key] = var

    def check(self, guards: Iterable[Guard]) -> None:
        for guard in guards:
            guard.check(self.facts.number)

    def finish(self) -> None:
        for name, var in self.template.graph.outputs.items():
            self.graph.output(self.var(var), name)
        for parameter, value in self.template.graph.updates.items():
            self.graph.assign(self.var(parameter), self.var(value))

    def shape(self, var: Var) -> Shape:
        """The shape of a var that is known."""
        return self.var(var).spec.shape

    def var(self, var: Var) -> Var:
        """The var of the stage that stands for one of the template."""
        if var not in self.vars:
            if var in self.progress.views:
                self._add(self.progress.views[var])
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
            known = graph.parameters[var]
            return self.graph.parameter(known.initial, name, trainable=known.trainable)
        return self.graph.constant(self.facts.array(graph.derived[var]), name)

    def _add(self, made: Made) -> None:
        inputs, names = [self.var(v) for v in made.inputs], [v.name for v in made.outputs]
        outputs = self.graph.add_signed(made.schema, inputs, made.signature, made.name, names)
        self.vars.update(zip(made.outputs, outputs, strict=True))
        self.made.update(dict.fromkeys(made.outputs, made))

    def _signed(self, task: Task, inputs: Specs) -> Signature:
        operator, schema, constants = task.operator, task.operator.schema, task.operator.signature.constants
        if task.has_dims:
            attrs = {n: self.facts.value(v) for n, v in operator.attrs.items()}
            signature = schema.sign(inputs, attrs, constants)
        else:
            signature = schema.infer_again(inputs, operator.attrs, constants)
        for var, spec in zip(operator.outputs, signature.outputs, strict=True):
            _check_claim(operator, var.spec, spec)
        return signature


def _check_claim(operator: Operator, claimed: TensorSpec, found: TensorSpec) -> None:
    """A number that stands in a shape before shapes are bound is the true one: others may have relied on it."""
    for axis, (said, length) in enumerate(zip(claimed.shape, found.shape, strict=True)):
        if not isinstance(said, Dim) and said != length:
            raise ShapeError(
                f"{operator}: axis {axis} of its output {found} is {length} with these lengths, and was {said} with "
                f"all that were tried when the graph was built; build it with these lengths as numbers"
            )
