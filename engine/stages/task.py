"""The tasks that are left to run: operators, and control flow that is replaced by operators when its data are known."""

from collections.abc import Sequence
from typing import Protocol

from attrs import evolve, frozen

from engine.graph.bindings import Bindings
from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.var import Var
from ops.tensor.dims import Guard
from ops.tensor.spec import Array, Shape


class StageWriter(Protocol):
    """The stage that is being written: its bindings, and the vars by the keys of the bindings."""

    @property
    def bindings(self) -> Bindings:
        """Grows as tasks are written."""

    @property
    def keyed(self) -> dict[str, Var]:
        """Grows as tasks are written."""

    def shape(self, var: Var) -> Shape:
        """Returns the shape of a var of the template."""


@frozen(eq=False)
class Task:
    """An operator, and what must be known before it can be signed with numbers.

    `keys` are the keys of its outputs in bindings; `data` those of the tensors whose elements it needs; `guards` are
    the decisions about dimensions between the operator in front of it and this one. `has_dims` tells whether there are
    dimensions in its attributes, `is_fixed` whether its signature has numbers already.
    """

    operator: Operator
    keys: tuple[str, ...]
    guards: tuple[Guard, ...]
    data: frozenset[str]
    has_dims: bool
    is_fixed: bool

    @property
    def inputs(self) -> tuple[Var, ...]:
        """The vars that it reads."""
        return self.operator.inputs

    @property
    def bodies(self) -> "tuple[Template, ...]":
        """No bodies: those in its attributes are planned beforehand."""
        return ()

    def instance(self, of: dict[Var, Var], prefix: str) -> "Task":
        """Returns the same task on other vars; adds its new outputs to `of`."""
        return evolve(self, operator=operator_instance(self.operator, of, prefix))


class DeferredControl(Protocol):
    """Control flow whose shapes depend on the run: tasks replace it as soon as its `data` are known."""

    @property
    def data(self) -> frozenset[str]:
        """The keys of the tensors that decide how it goes on."""

    @property
    def bodies(self) -> "tuple[Template, ...]":
        """The bodies that may replace it."""

    @property
    def inputs(self) -> tuple[Var, ...]:
        """All vars that it may read, now or later."""

    @property
    def guards(self) -> tuple[Guard, ...]:
        """The guards in front of it, as those of a task."""

    def instance(self, of: dict[Var, Var], prefix: str) -> "DeferredControl":
        """Returns the same control flow on other vars, as for a task."""

    def expand(self, writer: StageWriter) -> "Tasks":
        """Returns the tasks that replace it."""


Tasks = tuple[Task | DeferredControl, ...]


@frozen(eq=False)
class FinalGuards:
    """Guards behind the last operator of a graph. No task replaces them."""

    guards: tuple[Guard, ...]
    data: frozenset[str]
    inputs: tuple[Var, ...] = ()

    @property
    def bodies(self) -> "tuple[Template, ...]":
        """No bodies: guards have none."""
        return ()

    def instance(self, _: dict[Var, Var], __: str) -> "FinalGuards":
        """Returns itself."""
        return self

    def expand(self, _: StageWriter) -> Tasks:
        """Returns no tasks."""
        return ()


@frozen(eq=False)
class Template:
    """The tasks of a graph in a runnable order. `decisive` has keys of tensors that decide what runs behind it."""

    graph: Graph
    tasks: Tasks
    decisive: frozenset[str] = frozenset()

    @property
    def data(self) -> frozenset[str]:
        """The keys of the tensors that decide sizes, in bodies as well."""
        inside = (body.data for task in self.tasks for body in task.bodies)
        return self.decisive.union(*(task.data for task in self.tasks), *inside)

    @property
    def is_staged(self) -> bool:
        """True if some size is known only after a part of the network has run."""
        return not self.data <= set(self.graph.inputs)

    def instance(self, writer: StageWriter, operands: Sequence[Var], prefix: str) -> "tuple[Tasks, list[Var]]":
        """Returns the tasks on other inputs, and the vars that stand for the outputs.

        What an earlier instance bound is forgotten.
        """
        inputs = self.graph.inputs
        writer.bindings.forget(self.graph.scope)
        for key in [k for k in writer.keyed if k.startswith(self.graph.scope)]:
            del writer.keyed[key]
        of: dict[Var, Var] = dict(zip(inputs.values(), operands, strict=True)) | self._arrays(prefix)
        for name, var in zip(inputs, operands, strict=True):
            key = self.graph.key(name)
            writer.bindings.shapes[key], writer.keyed[key] = writer.shape(var), var
            writer.bindings.data.update((key, array) for array in known_array(var, writer))
        tasks = tuple(task.instance(of, prefix) for task in self.tasks)
        return tasks, [of.get(v, v) for v in self.graph.outputs.values()]

    def _arrays(self, prefix: str) -> dict[Var, Var]:
        """Returns constants for the arrays that depend on dimensions: their numbers differ between instances."""
        home = Graph("arrays")
        home.scope = prefix
        return {v: home.constant(evolve(d, is_kept=True), v.name) for v, d in self.graph.derived.items()}


def data_outside(task: Task | DeferredControl) -> frozenset[str]:
    """Returns the keys of the data of a task that are computed in front of it, so that they can be read early."""
    scopes = tuple(body.graph.scope for body in task.bodies)
    inside = frozenset[str]().union(*(body.data for body in task.bodies))
    return task.data | {key for key in inside if not key.startswith(scopes)}


def known_array(var: Var, writer: StageWriter) -> tuple[Array, ...]:
    """Returns the data of a var that is a constant or depends on dimensions only; () where it has to be computed."""
    graph = var.graph
    if not isinstance(graph, Graph) or var not in graph.constants.keys() | graph.derived.keys():
        return ()
    return (graph.constants[var] if var in graph.constants else writer.bindings.array(graph.derived[var]),)


def operator_instance(operator: Operator, of: dict[Var, Var], prefix: str) -> Operator:
    """Returns the same operator on other vars; adds its new outputs to `of`."""
    outputs = tuple(Var(prefix + v.name, v.spec, v.graph) for v in operator.outputs)
    inputs = tuple(of.get(v, v) for v in operator.inputs)
    of.update(zip(operator.outputs, outputs, strict=True))
    return Operator(prefix + operator.name, operator.schema, inputs, outputs, operator.signature)
