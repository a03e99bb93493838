"""Branches and loops whose shapes only the run decides: operators of their bodies take their place, turn by turn."""

import sys
from collections.abc import Mapping, Sequence

import numpy as np
from attrs import evolve, frozen

from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.stages.task import Late, Scene, Task, Template, known_array, operator_instance
from ops.movement.concat import CONCAT
from ops.movement.reshape import RESHAPE
from ops.movement.views import IDENTITY
from ops.schema.schema import Attrs, OpSchema, Signature
from ops.tensor.dims import Dim, Guard
from ops.tensor.spec import TensorSpec

Tasks = tuple[Task | Late, ...]


@frozen(eq=False)
class LateBranch:
    """An `if_late`: the body that the condition chooses takes its place. `known` has what needs no run, by key."""

    operator: Operator
    keys: tuple[str, ...]
    guards: tuple[Guard, ...]
    data: frozenset[str]
    known: Mapping[str, Var]
    condition: str
    bodies: tuple[Template, Template]

    @property
    def inputs(self) -> tuple[Var, ...]:
        """The condition, and what either body reads."""
        return self.operator.inputs

    def instance(self, of: dict[Var, Var], prefix: str) -> "LateBranch":
        """The same branch on other vars."""
        return evolve(self, operator=operator_instance(self.operator, of, prefix))

    def expand(self, scene: Scene) -> Tasks:
        """The operators of one body."""
        _settle(self.known, scene)
        body = self.bodies[not scene.facts.data[self.condition].item()]
        tasks, found = body.instance(scene, self.inputs[1:], f"{self.operator.name}/")
        return (*tasks, *_given_names(found, self.operator.outputs, self.keys))


@frozen(eq=False)
class LateLoop:
    """A `loop_late` before turn number `turn`: that turn and the rest of the loop take its place, or its end does."""

    operator: Operator
    keys: tuple[str, ...]
    guards: tuple[Guard, ...]
    data: frozenset[str]
    known: Mapping[str, Var]
    trips: str
    condition: str
    body: Template
    carried: tuple[Var, ...]
    turn: int = 0
    rows: tuple[tuple[Var, ...], ...] = ()

    @property
    def bodies(self) -> tuple[Template, ...]:
        """The one that each turn is."""
        return (self.body,)

    @property
    def inputs(self) -> tuple[Var, ...]:
        """What is carried, the rows so far, and what every turn reads."""
        rows = (v for row in self.rows for v in row)
        return (*self.carried, *rows, *self._others, *self.operator.inputs[: self._ahead])

    def instance(self, of: dict[Var, Var], prefix: str) -> "LateLoop":
        """The same loop on other vars."""
        carried = tuple(of.get(v, v) for v in self.carried)
        return evolve(self, operator=operator_instance(self.operator, of, prefix), carried=carried)

    def expand(self, scene: Scene) -> Tasks:
        """One turn and the loop behind it, or what the loop gives."""
        _settle(self.known, scene)
        return self._turn(scene) if self._goes_on(scene) else self._end(scene)

    def _goes_on(self, scene: Scene) -> bool:
        limit, data = self.operator.attrs["trips"], scene.facts.data
        if self.trips:
            limit = int(data[self.trips].item())
        return self.turn < (sys.maxsize if limit is None else limit) and (
            not self.condition or bool(data[self.condition].item())
        )

    def _turn(self, scene: Scene) -> Tasks:
        name, attrs = self.operator.name, self.operator.attrs
        number = _constant(f"{name}/{self.turn}/", np.asarray(self.turn, np.int64))
        decided = {key: scene.facts.data[key] for key in self.data - {self.condition}}
        tasks, found = self.body.instance(scene, (number, *self.carried, *self._others), f"{name}/{self.turn}/")
        scene.facts.data.update(decided)
        first_row = attrs["conditional"] + len(self.carried)
        then = evolve(
            self,
            guards=(),
            carried=tuple(found[attrs["conditional"] : first_row]),
            turn=self.turn + 1,
            rows=(*self.rows, tuple(found[first_row:])),
        )
        if attrs["conditional"]:
            then = then._decided_by(next(iter(self.body.graph.outputs.values())), scene)
        return (*tasks, then)

    def _decided_by(self, condition: Var, scene: Scene) -> "LateLoop":
        """The loop whose next turn depends on a var of the body."""
        key = self.body.graph.key(condition.name)
        scene.facts.data.update((key, array) for array in known_array(condition, scene))
        return evolve(self, condition=key, data=(self.data - {self.condition}) | {key})

    def _end(self, scene: Scene) -> Tasks:
        name, outputs, count = self.operator.name, self.operator.outputs, len(self.carried)
        tasks = _given_names(self.carried, outputs[:count], self.keys[:count])
        for i, var in enumerate(outputs[count:-1]):
            column = [row[i] for row in self.rows]
            tasks += _stacked(column, var, self.keys[count + i], scene) if column else ()
            if not column:
                empty = np.empty((0, *_fixed(var.shape[1:])), var.dtype)
                tasks += _given_names((_constant(f"{name}/{i}", empty),), (var,), (self.keys[count + i],))
        number = _constant(f"{name}/turns", np.asarray(self.turn, np.int64))
        return (*tasks, *_given_names((number,), outputs[-1:], self.keys[-1:]))

    @property
    def _ahead(self) -> int:
        return int(self.operator.attrs["trips_given"] + self.operator.attrs["cond_given"])

    @property
    def _others(self) -> tuple[Var, ...]:
        return self.operator.inputs[self._ahead + len(self.carried) :]


def _settle(known: Mapping[str, Var], scene: Scene) -> None:
    """What decides and needs no run is a fact."""
    scene.facts.data.update((key, array) for key, var in known.items() for array in known_array(var, scene))


def _constant(scope: str, array: object) -> Var:
    """An array as a var of a graph of its own, under a name that no other tensor has."""
    graph = Graph("constants")
    graph.scope = scope
    return graph.constant(array, "constant")  # type: ignore[arg-type]


def _fixed(shape: Sequence[int]) -> tuple[int, ...]:
    """A shape with 0 for what has no number: of a row that was never made."""
    return tuple(0 if isinstance(n, Dim) else n for n in shape)


def _given_names(found: Sequence[Var], outputs: Sequence[Var], keys: Sequence[str]) -> Tasks:
    """Outputs that are what was found, under names of their own."""
    pairs = zip(found, outputs, keys, strict=True)
    return tuple(_task(IDENTITY, (source,), {}, var, key) for source, var, key in pairs)


def _stacked(rows: Sequence[Var], output: Var, key: str, scene: Scene) -> Tasks:
    """Rows one behind the other."""
    tasks, parts = [], []
    for i, row in enumerate(rows):
        shape = (1, *scene.shape(row))
        part = Var(f"{output.name}/{i}", TensorSpec(shape, row.dtype), row.graph)
        tasks.append(_task(RESHAPE, (row,), {"shape": shape, "zero_copies": False}, part, part.name))
        parts.append(part)
    return (*tasks, _task(CONCAT, tuple(parts), {"axis": 0}, output, key))


def _task(schema: OpSchema, inputs: tuple[Var, ...], attrs: Attrs, output: Var, key: str) -> Task:
    """An operator that nobody wrote."""
    operator = Operator(f"{output.name}/=", schema, inputs, (output,), Signature((), (), attrs))
    return Task(operator, (key,), (), frozenset(), has_dims=False, is_fixed=False)
