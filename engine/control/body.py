"""A graph that runs inside an operator: planned once, executed in the workspace of that operator."""

from collections.abc import Callable
from functools import cached_property, partial

from attrs import Factory, field, frozen

from engine.executor.arenas import Arena
from engine.executor.binding import (
    PackCache,
    Packed,
    bind_call,
    pack_constants,
    place_array,
    run_inside,
    shared_pack_cache,
)
from engine.executor.programs import join_calls
from engine.executor.team import ALONE
from engine.graph.bindings import Bindings
from engine.graph.graph import Graph
from engine.graph.symbols import Derived, computed_before
from engine.lower.costs import graph_cost
from engine.planning.options import Options
from engine.planning.placed import PlacedPlan
from engine.planning.planner import plan_graph
from engine.stages.partial_graph import stage_graph
from engine.stages.state import initial_state
from engine.stages.task import Template
from engine.stages.template import template
from ops.schema.body import bodies
from ops.schema.schema import Cost, Specs, Thunk
from ops.schema.weight_memory import WeightMemory
from ops.schema.workspace import STEP
from ops.tensor.dims import Dim, Parametric, dims_in, value_of
from ops.tensor.spec import Array


def _own_packs(body: "PlannedBody") -> PackCache:
    return shared_pack_cache(body.graph.constants.entries.values())


def _dims_of(derived: Derived) -> list[Dim]:
    """Returns the dimensions that the elements of an array are computed from."""
    return [dim for array in computed_before(derived) for dim in array.dims]


@frozen(eq=False, slots=False)
class PlannedBody(Parametric):
    """A body of control flow, as `ops.schema.body.Body`; it is planned and packed at first use.

    Inputs and outputs live in arrays of the operator, so that nothing is copied in or out; the arena of the plan is a
    part of the workspace of the operator. A body with symbolic dimensions is planned for each choice of lengths, with
    the graph around it; constants are packed once.
    """

    graph: Graph
    packs: PackCache = field(default=Factory(_own_packs, takes_self=True), repr=False)

    def __getstate__(self) -> Graph:
        """Returns what is pickled and copied: a copy is planned and packed anew."""
        return self.graph

    def __setstate__(self, graph: Graph) -> None:
        self.__dict__["graph"] = graph
        self.__dict__["packs"] = _own_packs(self)

    @cached_property
    def template(self) -> Template:
        """The tasks of the graph, prepared for binding its dimensions."""
        return template(self.graph)

    @property
    def needs_data(self) -> bool:
        """True if data computed in the body decide sizes in it, so that it cannot be planned beforehand."""
        scope = self.graph.scope
        return any(key.startswith(scope) for task in self.template.tasks for key in task.data) or any(
            not op.schema.kernels for op in self.graph.operators
        )

    @cached_property
    def dims(self) -> tuple[Dim, ...]:
        """The dimensions in the body."""
        shapes = [v.shape for v in self.graph.inputs.values()]
        attrs = [value for op in self.graph.operators for value in op.attrs.values()]
        derived = [dim for d in self.graph.derived.values() for dim in (*d.spec.shape, *_dims_of(d))]
        return tuple(dims_in((*shapes, *attrs, *derived)))

    def numbered(self, number: Callable[[Dim], int]) -> "PlannedBody":
        """Returns the body with numbers in place of its dimensions."""
        if not self.dims and not self.graph.derived:
            return self
        inputs = self.graph.inputs.items()
        shapes = {self.graph.key(n): tuple(value_of(d, number) for d in v.shape) for n, v in inputs}
        start = initial_state(self.template, Bindings({}, shapes, outside=number))
        return PlannedBody(stage_graph(self.template, start, self.graph.name).graph, self.packs)

    @cached_property
    def plan(self) -> PlacedPlan:
        """The plan, which all checkers have passed."""
        return plan_graph(self.graph, Options(alignment=STEP, caller_buffers=(*self.graph.inputs, *self.graph.outputs)))

    @cached_property
    def packed(self) -> Packed:
        """The packed constants; packed once, however often the body is bound."""
        return pack_constants(self.plan.lowered, self.packs)

    @property
    def inputs(self) -> Specs:
        """The specs of the inputs, in the order of the graph's inputs."""
        return tuple(v.spec for v in self.graph.inputs.values())

    @property
    def outputs(self) -> Specs:
        """The specs of the outputs, in the order of the graph's outputs."""
        return tuple(v.spec for v in self.graph.outputs.values())

    @property
    def workspace(self) -> int:
        """Bytes of the arena."""
        return self.plan.arena_bytes

    @property
    def weight_memory(self) -> WeightMemory:
        """The memory of the constants, also of bodies inside."""
        return self.plan.weight_memory

    @property
    def prepacked_bytes(self) -> int:
        """Bytes of the packed constants."""
        return self.packed.nbytes

    @property
    def cost(self) -> Cost:
        """The cost of all operators."""
        return graph_cost(self.graph)

    @property
    def names(self) -> frozenset[str]:
        """The names of tensors and operators, with those that passes left out and those of bodies inside."""
        graph, gone = self.graph, self.graph.vanished
        inside = [body.names for op in graph.operators for body in bodies(op.schema, op.attrs)]
        tensors = [var.name for op in graph.operators for var in op.outputs]
        own = (op.name for op in graph.operators)
        return frozenset({*own, *tensors, *graph.inputs, *gone.tensors, *gone.operators}.union(*inside))

    def bind(self, inputs: tuple[Array, ...], outputs: tuple[Array, ...], workspace: Array) -> Thunk:
        """Binds all kernels to these arrays, and to views of the workspace. Raises KernelError."""
        lowered = self.plan.lowered
        callers = dict(zip(lowered.inputs.values(), inputs, strict=True))
        callers |= dict(zip(lowered.outputs.values(), outputs, strict=True))
        arena = Arena((workspace,))

        def array(value: int) -> Array:
            return place_array(self.plan, value, arena, callers)

        thunks = [bind_call(call, self.packed, array) for call in lowered.calls]
        return partial(run_inside, *join_calls(lowered.calls, thunks, ALONE))

    def __str__(self) -> str:
        return f"<{self.graph.name}: {len(self.graph.operators)} operators>"
