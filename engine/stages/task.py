"""What is left to run, task by task: operators, and control flow that operators will take the place of."""

from collections.abc import Sequence
from typing import Protocol

from attrs import evolve, frozen

from engine.graph.bindings import Facts
from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.var import Var
from ops.tensor.dims import Guard
from ops.tensor.spec import Array, Shape


class Scene(Protocol):
    """The stage that is being written: what is known, and the vars that facts know by a key."""

    @property
    def facts(self) -> Facts:
        """Grows as tasks are written."""

    @property
    def keyed(self) -> dict[str, Var]:
        """Grows as tasks are written."""

    def shape(self, var: Var) -> Shape:
        """The shape of a var that is known."""


@frozen(eq=False)
class Task:
    """An operator, and what must be known before it can be signed with numbers.

    `keys` are the names under which facts know its outputs; `data` those of the tensors whose elements it needs;
    `guards` is what was decided about dimensions before it was added, and after the operator in front of it.
    `has_dims` tells whether there are dimensions in its attributes; `is_fixed`: its signature has numbers already.
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
        """None: those of its attributes are planned beforehand."""
        return ()

    def instance(self, of: dict[Var, Var], prefix: str) -> "Task":
        """The same task on other vars; its outputs get names of their own and are noted in `of`."""
        return evolve(self, operator=operator_instance(self.operator, of, prefix))


class Late(Protocol):
    """Control flow whose shapes only the run decides: tasks take its place as soon as its `data` are known."""

    @property
    def data(self) -> frozenset[str]:
        """What decides."""

    @property
    def bodies(self) -> "tuple[Template, ...]":
        """What may take its place."""

    @property
    def inputs(self) -> tuple[Var, ...]:
        """All that it may read, now or later."""

    @property
    def guards(self) -> tuple[Guard, ...]:
        """As of a task."""

    def instance(self, of: dict[Var, Var], prefix: str) -> "Late":
        """As of a task."""

    def expand(self, scene: Scene) -> "tuple[Task | Late, ...]":
        """What runs in its place."""


@frozen(eq=False)
class Promise:
    """Guards behind the last operator of a graph. Nothing takes their place."""

    guards: tuple[Guard, ...]
    data: frozenset[str]
    inputs: tuple[Var, ...] = ()

    @property
    def bodies(self) -> "tuple[Template, ...]":
        """None."""
        return ()

    def instance(self, _: dict[Var, Var], __: str) -> "Promise":
        """The same."""
        return self

    def expand(self, _: Scene) -> "tuple[Task | Late, ...]":
        """Nothing."""
        return ()


@frozen(eq=False)
class Template:
    """The tasks of a graph in a runnable order. `decisive` are keys of tensors that decide what comes behind it."""

    graph: Graph
    tasks: tuple[Task | Late, ...]
    decisive: frozenset[str] = frozenset()

    @property
    def data(self) -> frozenset[str]:
        """The tensors that decide sizes, in bodies as well."""
        inside = (body.data for task in self.tasks for body in task.bodies)
        return self.decisive.union(*(task.data for task in self.tasks), *inside)

    @property
    def is_staged(self) -> bool:
        """Whether some size is known only when a part of the network has run."""
        return not self.data <= set(self.graph.inputs)

    def instance(self, scene: Scene, given: Sequence[Var], prefix: str) -> "tuple[tuple[Task | Late, ...], list[Var]]":
        """The tasks on other inputs, and what stands for the outputs; what another one knows is forgotten."""
        inputs = self.graph.inputs
        scene.facts.forget(self.graph.scope)
        for key in [k for k in scene.keyed if k.startswith(self.graph.scope)]:
            del scene.keyed[key]
        of: dict[Var, Var] = dict(zip(inputs.values(), given, strict=True)) | self._arrays(prefix)
        for name, var in zip(inputs, given, strict=True):
            key = self.graph.key(name)
            scene.facts.shapes[key], scene.keyed[key] = scene.shape(var), var
            scene.facts.data.update((key, array) for array in known_array(var, scene))
        tasks = tuple(task.instance(of, prefix) for task in self.tasks)
        return tasks, [of.get(v, v) for v in self.graph.outputs.values()]

    def _arrays(self, prefix: str) -> dict[Var, Var]:
        """What stands for the arrays that are made of dimensions, which have other numbers in each instance."""
        home = Graph("arrays")
        home.scope = prefix
        return {v: home.constant(evolve(d, is_kept=True), v.name) for v, d in self.graph.derived.items()}


def data_outside(task: Task | Late) -> frozenset[str]:
    """The data of a task that are computed in front of it: they are read as soon as they are there."""
    scopes = tuple(body.graph.scope for body in task.bodies)
    inside = frozenset[str]().union(*(body.data for body in task.bodies))
    return task.data | {key for key in inside if not key.startswith(scopes)}


def known_array(var: Var, scene: Scene) -> tuple[Array, ...]:
    """The data of a var that is a constant, or made of dimensions; () where it has to be computed."""
    graph = var.graph
    if not isinstance(graph, Graph) or var not in graph.constants.keys() | graph.derived.keys():
        return ()
    return (graph.constants[var] if var in graph.constants else scene.facts.array(graph.derived[var]),)


def operator_instance(operator: Operator, of: dict[Var, Var], prefix: str) -> Operator:
    """The same operator on other vars."""
    outputs = tuple(Var(prefix + v.name, v.spec, v.graph) for v in operator.outputs)
    inputs = tuple(of.get(v, v) for v in operator.inputs)
    of.update(zip(operator.outputs, outputs, strict=True))
    return Operator(prefix + operator.name, operator.schema, inputs, outputs, operator.signature)
