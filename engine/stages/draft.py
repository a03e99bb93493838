"""The graph of one stage: everything from here on whose sizes are known, with numbers in place of dimensions."""

from collections.abc import Iterable

from attrs import define, field, frozen

from engine.facts import Facts
from engine.graph import Graph, Operator
from engine.stages.progress import Progress
from engine.stages.template import Task, Template
from engine.var import Var
from ops.dims import Dim, Guard, dims_in
from ops.errors import ShapeError
from ops.schema import Signature, Specs
from ops.spec import TensorSpec


@frozen(eq=False)
class Draft:
    """`graph` has the tensors under their names; `tasks` were taken into it, `rest` were not."""

    graph: Graph
    tasks: tuple[Task, ...]
    rest: tuple[Task, ...]
    facts: Facts


def draft_stage(template: Template, progress: Progress, name: str) -> Draft:
    """The graph of the next stage; only the last has outputs. What is alive is its inputs, as are the feeds at first.

    Raises ShapeError where the numbers do not fit, or do not keep a guard.
    """
    writer = _Writer(template, progress, Graph(name), progress.facts.after({}, {}))
    writer.sources()
    done = 0
    for task in progress.tasks:
        if not task.data <= writer.facts.data.keys():
            break
        writer.task(task)
        done += 1
    if done == len(progress.tasks):
        writer.check(template.last)
        writer.outputs()
    return Draft(writer.graph, progress.tasks[:done], progress.tasks[done:], writer.facts)


@define(eq=False)
class _Writer:
    template: Template
    progress: Progress
    graph: Graph
    facts: Facts
    vars: dict[Var, Var] = field(factory=dict)

    def sources(self) -> None:
        known = self.template.graph.vars
        for name in self.progress.alive:
            self.vars[known[name]] = self.graph.input(name, self.facts.shapes[name], known[name].dtype)

    def task(self, task: Task) -> None:
        self.check(task.guards)
        self._operator(task.operator, task.is_fixed)

    def outputs(self) -> None:
        for name, var in self.template.graph.outputs.items():
            self.graph.output(self.var(var), name)

    def check(self, guards: Iterable[Guard]) -> None:
        for guard in guards:
            guard.check(self.facts.number)

    def var(self, var: Var) -> Var:
        """The var of the stage that stands for one of the template."""
        if var not in self.vars:
            if var.name in self.progress.views:
                self._operator(self.progress.views[var.name], False)
            else:
                self.vars[var] = self._constant(var)
        return self.vars[var]

    def _constant(self, var: Var) -> Var:
        constants = self.template.graph.constants
        if var in constants:
            return self.graph.add_constant(var.name, var.spec, constants[var])
        return self.graph.constant(self.facts.array(self.template.graph.derived[var]), var.name)

    def _operator(self, operator: Operator, is_fixed: bool) -> None:
        inputs = [self.var(v) for v in operator.inputs]
        signature = operator.signature if is_fixed else self._signed(operator, tuple(v.spec for v in inputs))
        names = [v.name for v in operator.outputs]
        made = self.graph.add_signed(operator.schema, inputs, signature, operator.name, names)
        self.vars.update(zip(operator.outputs, made, strict=True))
        self.facts.shapes.update((v.name, v.spec.shape) for v in made)

    def _signed(self, operator: Operator, inputs: Specs) -> Signature:
        constants, schema = operator.signature.constants, operator.schema
        if any(dims_in(v) for v in operator.attrs.values()):
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
