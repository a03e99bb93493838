"""A graph that runs inside an operator: planned once, executed out of the workspace of that operator."""

from collections.abc import Sequence
from functools import cached_property, partial

from attrs import frozen

from engine.calls import Call, Storage
from engine.executor.binding import Packed, bind_call, kernel_error, pack_constants
from engine.graph import Graph
from engine.plan import ExecutionPlan
from engine.planner import Options, plan_graph
from engine.views import view_array
from ops.schema import Cost, Specs, Thunk
from ops.spec import Array
from ops.workspace import STEP


@frozen(eq=False, slots=False)
class PlannedBody:
    """What `ops.body.Body` asks for. It is planned, and its constants are packed, when that is needed first.

    Inputs and outputs live in arrays of the operator, so that nothing is copied in or out; the arena of the plan is a
    part of the operator's workspace, and so of a chunk of the plan around it.
    """

    graph: Graph

    @cached_property
    def plan(self) -> ExecutionPlan:
        """All judges have seen it."""
        return plan_graph(self.graph, Options(alignment=STEP, bound=(*self.graph.inputs, *self.graph.outputs)))

    @cached_property
    def packed(self) -> Packed:
        """What kernels made of constants; once, however often the body is bound."""
        return pack_constants(self.plan.lowered)

    @property
    def inputs(self) -> Specs:
        """What it reads, in the order of the graph's inputs."""
        return tuple(v.spec for v in self.graph.inputs.values())

    @property
    def outputs(self) -> Specs:
        """What it writes, in the order of the graph's outputs."""
        return tuple(v.spec for v in self.graph.outputs.values())

    @property
    def workspace(self) -> int:
        """Bytes of its arena."""
        return self.plan.arena_bytes

    @property
    def constants(self) -> tuple[Array, ...]:
        """What its kernels read besides, and those of bodies inside."""
        return self.plan.constants

    @property
    def packed_bytes(self) -> int:
        """Bytes of what its kernels made of constants."""
        return self.packed.nbytes

    @property
    def cost(self) -> Cost:
        """That of all operators."""
        costs = [op.schema.cost(op.signature) for op in self.graph.operators]
        return Cost(sum(c.flops for c in costs), sum(c.bytes for c in costs))

    def bind(self, inputs: tuple[Array, ...], outputs: tuple[Array, ...], workspace: Array) -> Thunk:
        """All kernels bound to these arrays, and to views of the workspace. Raises KernelError."""
        lowered = self.plan.lowered
        theirs = dict(zip(lowered.inputs.values(), inputs, strict=True))
        theirs |= dict(zip(lowered.outputs.values(), outputs, strict=True))

        def array(value: int) -> Array:
            place = self.plan.places[value]
            if place.storage is Storage.ARENA:
                buffer = workspace
            else:
                buffer = (lowered.constants if place.storage is Storage.CONSTANT else theirs)[place.owner]
            return view_array(buffer, place.layout, lowered.values[value].spec.dtype)

        return partial(_execute, lowered.calls, [bind_call(call, self.packed, array) for call in lowered.calls])

    def __str__(self) -> str:
        return f"<{self.graph.name}: {len(self.graph.operators)} operators>"


def _execute(calls: Sequence[Call], thunks: Sequence[Thunk]) -> None:
    """Calls kernels one after the other, in the `kernel_state` of the operator around them. Raises KernelError."""
    done = 0
    try:
        for thunk in thunks:
            thunk()
            done += 1
    except Exception as error:
        raise kernel_error(calls[done], error) from error
