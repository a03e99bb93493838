"""What a graph is lowered to: values with layouts, and steps that are either calls of kernels or mere aliases."""

from collections.abc import Mapping
from enum import Enum, StrEnum

from attrs import field, frozen

from engine.graph.deferred import Constants, as_constants
from engine.graph.graph import Graph
from engine.graph.operator import Operator
from ops.schema.backends import PLAIN
from ops.schema.schema import Kernel, Overwrite, Signature
from ops.tensor.layout import Layout
from ops.tensor.spec import TensorSpec


class Storage(Enum):
    """Whose bytes a value lies in."""

    ARENA = "arena"
    CONSTANT = "constant"
    CALLER = "caller"


class Role(Enum):
    """Why a value is there."""

    INPUT = "input"
    CONSTANT = "constant"
    ACTIVATION = "activation"
    OUTPUT = "output"
    PARAMETER = "parameter"
    COPY = "copy"
    WORKSPACE = "workspace"


@frozen(eq=False)
class Value:
    """A tensor (or workspace) at run time. `layout` counts from the first byte of the value `owner`, which has bytes.

    `source` is the name of the graph's tensor that it holds; a copy holds the tensor of what it copies.
    """

    id: int
    name: str
    source: str
    spec: TensorSpec
    layout: Layout
    owner: int
    storage: Storage
    role: Role

    @property
    def is_view(self) -> bool:
        """Whether the bytes are another value's."""
        return self.owner != self.id


@frozen(eq=False)
class Call:
    """One run of a kernel. `workspace` is empty or one value id; `overwrites` are the forwards that may be taken.

    `operators` is the operator that the call computes; a copy that the planner put in has none.
    """

    tick: int
    name: str
    operators: tuple[Operator, ...]
    kernel: Kernel = field(repr=False)
    signature: Signature = field(repr=False)
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    workspace: tuple[int, ...]
    overwrites: tuple[Overwrite, ...]


@frozen(eq=False)
class Alias:
    """An operator of which nothing remains at run time: its outputs are views of its first input."""

    tick: int
    name: str
    operators: tuple[Operator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@frozen(eq=False)
class Join:
    """An operator of which nothing remains at run time: its inputs were computed where they lie inside its output."""

    tick: int
    name: str
    operators: tuple[Operator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


Stage = Call | Alias | Join


class NestRefusal(StrEnum):
    """Why the inputs of an operator are not computed inside its output, so that the operator still copies them."""

    STORAGE = "the output has no bytes of its own in the arena"
    PLACES = "an input has no place in the output that strides can describe"
    RUNS = "the inputs would lie in too many separate runs of bytes"
    INPUTS = "no input can be computed inside the output"
    BREADTH = "more bytes would be alive at once"
    ARENA = "the arena would be larger"


@frozen
class NotNested:
    """An operator whose inputs could lie inside its output, but are copied there, and why."""

    operator: str
    reason: NestRefusal


@frozen(eq=False)
class Lowered:
    """A graph as calls and aliases, in order; the tick of the i-th is i + 1 (tick 0 feeds, the last tick fetches).

    `caller_buffers` names the inputs and outputs that live in arrays of the caller. `parameters` maps the value of each
    parameter to the one that it holds after the run. `hands_over`: the outputs are what later stages take over.
    `backends` were asked for kernels, in their order. `not_nested` says why operators copy inputs that might have been
    computed inside the output; empty where nesting was not tried.
    """

    graph: Graph
    values: tuple[Value, ...]
    stages: tuple[Stage, ...]
    constants: Constants[int] = field(converter=as_constants)
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    caller_buffers: frozenset[str]
    parameters: Mapping[int, int]
    hands_over: bool = False
    backends: tuple[str, ...] = PLAIN
    not_nested: tuple[NotNested, ...] = ()

    @property
    def calls(self) -> tuple[Call, ...]:
        """The stages that run a kernel."""
        return tuple(s for s in self.stages if isinstance(s, Call))

    @property
    def writers(self) -> dict[int, int]:
        """The tick in which a call writes each value that one writes; for what holds others, the first such tick."""
        made: dict[int, int] = {}
        for call in self.calls:
            for value in call.outputs + call.workspace:
                made[value] = call.tick
                made.setdefault(self.values[value].owner, call.tick)
        return made

    @property
    def makers(self) -> dict[int, int]:
        """The tick of the stage that makes each value: what joins values makes what holds them, which was written."""
        return self.writers | {v: stage.tick for stage in self.stages if isinstance(stage, Join) for v in stage.outputs}

    def tick_name(self, tick: int) -> str:
        """What happens in a tick, for people."""
        if tick == 0:
            return "feed"
        return self.stages[tick - 1].name if tick <= len(self.stages) else "fetch"

    def tick_kind(self, tick: int) -> str:
        """The name of the schema that runs in a tick; nothing where the caller feeds and fetches."""
        if not 0 < tick <= len(self.stages):
            return ""
        operators = self.stages[tick - 1].operators
        return operators[0].schema.name if operators else "copy"


def arena_ids(lowered: Lowered) -> dict[int, int]:
    """The numbers of values in the arena, as the allocator knows them."""
    return {v.id: i for i, v in enumerate(v for v in lowered.values if v.storage is Storage.ARENA)}


def replaced(call: Call) -> frozenset[int]:
    """The positions of inputs whose data the kernel never reads: it reads what it packed of them."""
    return call.signature.constants.intersection(call.kernel.unread_after_pack(call.signature))
