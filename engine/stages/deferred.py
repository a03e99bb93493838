"""Branches and loops whose shapes depend on the run: the operators of their bodies replace them, turn by turn."""

import sys
from collections.abc import Mapping, Sequence

import numpy as np
from attrs import evolve, frozen

from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.stages.task import StageWriter, Task, Tasks, Template, known_array, operator_instance
from ops.movement.concat import CONCAT
from ops.movement.reshape import RESHAPE
from ops.movement.views import IDENTITY
from ops.schema.schema import Attrs, OpSchema, Signature
from ops.tensor.dims import Dim, Guard
from ops.tensor.spec import TensorSpec


@frozen(eq=False)
class DeferredBranch:
    """An `if_late`: the body that the condition chooses replaces it. `constants` has a constant condition, by key."""

    operator: Operator
    keys: tuple[str, ...]
    guards: tuple[Guard, ...]
    data: frozenset[str]
    constants: Mapping[str, Var]
    condition: str
    bodies: tuple[Template, Template]

    @property
    def inputs(self) -> tuple[Var, ...]:
        """The condition, and the vars that either body reads."""
        return self.operator.inputs

    def instance(self, of: dict[Var, Var], prefix: str) -> "DeferredBranch":
        """Returns the same branch on other vars."""
        return evolve(self, operator=operator_instance(self.operator, of, prefix))

    def expand(self, writer: StageWriter) -> Tasks:
        """Returns the operators of the chosen body."""
        _bind_constants(self.constants, writer)
        body = self.bodies[not writer.bindings.data[self.condition].item()]
        tasks, results = body.instance(writer, self.inputs[1:], f"{self.operator.name}/")
        return (*tasks, *_renamed(results, self.operator.outputs, self.keys))


@frozen(eq=False)
class DeferredLoop:
    """A `loop_late` before turn number `turn`: that turn and the rest of the loop replace it, or its results do."""

    operator: Operator
    keys: tuple[str, ...]
    guards: tuple[Guard, ...]
    data: frozenset[str]
    constants: Mapping[str, Var]
    trips: str
    condition: str
    body: Template
    carried: tuple[Var, ...]
    turn: int = 0
    rows: tuple[tuple[Var, ...], ...] = ()

    @property
    def bodies(self) -> tuple[Template, ...]:
        """The body that each turn runs."""
        return (self.body,)

    @property
    def inputs(self) -> tuple[Var, ...]:
        """The loop-carried vars, the rows so far, and the vars that every turn reads."""
        rows = (v for row in self.rows for v in row)
        return (*self.carried, *rows, *self._others, *self.operator.inputs[: self._ahead])

    def instance(self, of: dict[Var, Var], prefix: str) -> "DeferredLoop":
        """Returns the same loop on other vars."""
        carried = tuple(of.get(v, v) for v in self.carried)
        return evolve(self, operator=operator_instance(self.operator, of, prefix), carried=carried)

    def expand(self, writer: StageWriter) -> Tasks:
        """Returns one turn and the rest of the loop, or the results of the loop."""
        _bind_constants(self.constants, writer)
        return self._turn(writer) if self._goes_on(writer) else self._end(writer)

    def _goes_on(self, writer: StageWriter) -> bool:
        limit, data = self.operator.attrs["trips"], writer.bindings.data
        if self.trips:
            limit = int(data[self.trips].item())
        return self.turn < (sys.maxsize if limit is None else limit) and (
            not self.condition or bool(data[self.condition].item())
        )

    def _turn(self, writer: StageWriter) -> Tasks:
        name, attrs = self.operator.name, self.operator.attrs
        number = _constant(f"{name}/{self.turn}/", np.asarray(self.turn, np.int64))
        deciding = {key: writer.bindings.data[key] for key in self.data - {self.condition}}
        tasks, results = self.body.instance(writer, (number, *self.carried, *self._others), f"{name}/{self.turn}/")
        writer.bindings.data.update(deciding)
        first_row = attrs["conditional"] + len(self.carried)
        rest = evolve(
            self,
            guards=(),
            carried=tuple(results[attrs["conditional"] : first_row]),
            turn=self.turn + 1,
            rows=(*self.rows, tuple(results[first_row:])),
        )
        if attrs["conditional"]:
            rest = rest._decided_by(next(iter(self.body.graph.outputs.values())), writer)
        return (*tasks, rest)

    def _decided_by(self, condition: Var, writer: StageWriter) -> "DeferredLoop":
        """Returns the loop whose next turn depends on a var of the body."""
        key = self.body.graph.key(condition.name)
        writer.bindings.data.update((key, array) for array in known_array(condition, writer))
        return evolve(self, condition=key, data=(self.data - {self.condition}) | {key})

    def _end(self, writer: StageWriter) -> Tasks:
        name, outputs, count = self.operator.name, self.operator.outputs, len(self.carried)
        tasks = _renamed(self.carried, outputs[:count], self.keys[:count])
        for i, var in enumerate(outputs[count:-1]):
            column = [row[i] for row in self.rows]
            tasks += _stacked(column, var, self.keys[count + i], writer) if column else ()
            if not column:
                empty = np.empty((0, *_fixed(var.shape[1:])), var.dtype)
                tasks += _renamed((_constant(f"{name}/{i}", empty),), (var,), (self.keys[count + i],))
        number = _constant(f"{name}/turns", np.asarray(self.turn, np.int64))
        return (*tasks, *_renamed((number,), outputs[-1:], self.keys[-1:]))

    @property
    def _ahead(self) -> int:
        return int(self.operator.attrs["trips_given"] + self.operator.attrs["cond_given"])

    @property
    def _others(self) -> tuple[Var, ...]:
        return self.operator.inputs[self._ahead + len(self.carried) :]


def _bind_constants(constants: Mapping[str, Var], writer: StageWriter) -> None:
    """Binds the deciding data that need no run."""
    writer.bindings.data.update((key, array) for key, var in constants.items() for array in known_array(var, writer))


def _constant(scope: str, array: object) -> Var:
    """Returns an array as a var of a separate graph, under a name that no other tensor has."""
    graph = Graph("constants")
    graph.scope = scope
    return graph.constant(array, "constant")  # type: ignore[arg-type]


def _fixed(shape: Sequence[int]) -> tuple[int, ...]:
    """Returns the shape of an absent row: 0 stands for each length that has no number."""
    return tuple(0 if isinstance(n, Dim) else n for n in shape)


def _renamed(results: Sequence[Var], outputs: Sequence[Var], keys: Sequence[str]) -> Tasks:
    """Returns tasks that give the results the names of the outputs."""
    pairs = zip(results, outputs, keys, strict=True)
    return tuple(_task(IDENTITY, (source,), {}, var, key) for source, var, key in pairs)


def _stacked(rows: Sequence[Var], output: Var, key: str, writer: StageWriter) -> Tasks:
    """Returns tasks that concatenate rows along a new first axis."""
    tasks, parts = [], []
    for i, row in enumerate(rows):
        shape = (1, *writer.shape(row))
        part = Var(f"{output.name}/{i}", TensorSpec(shape, row.dtype), row.graph)
        tasks.append(_task(RESHAPE, (row,), {"shape": shape, "zero_copies": False}, part, part.name))
        parts.append(part)
    return (*tasks, _task(CONCAT, tuple(parts), {"axis": 0}, output, key))


def _task(schema: OpSchema, inputs: tuple[Var, ...], attrs: Attrs, output: Var, key: str) -> Task:
    """Returns an operator that is not in the graph of the user."""
    operator = Operator(f"{output.name}/=", schema, inputs, (output,), Signature((), (), attrs))
    return Task(operator, (key,), (), frozenset(), has_dims=False, is_fixed=False)
