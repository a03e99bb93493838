"""The result of lowering: values with layouts, and steps that are calls of kernels, aliases or joins."""

from collections.abc import Hashable, Mapping
from enum import Enum, StrEnum
from typing import Any

import numpy as np
from attrs import field, frozen

from engine.graph.deferred import Constants, Entry, array_of, as_constants
from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.lower.target import HOST, Target
from engine.system.arrays import aligned_empty
from ops.half.ops import Inner, inner_kernel
from ops.schema.backends import ONEDNN, PLAIN
from ops.schema.schema import Attrs, Kernel, Overwrite, Signature
from ops.schema.workspace import carve, dense_bytes
from ops.tensor.layout import CACHE_LINE, Layout
from ops.tensor.spec import Array, TensorSpec

COPY = "copy"
"""The kind of a call that the planner added."""


class Storage(Enum):
    """The memory that has the bytes of a value."""

    ARENA = "arena"
    CONSTANT = "constant"
    CALLER = "caller"


class Role(Enum):
    """The purpose of a value."""

    INPUT = "input"
    CONSTANT = "constant"
    ACTIVATION = "activation"
    OUTPUT = "output"
    PARAMETER = "parameter"
    COPY = "copy"
    WORKSPACE = "workspace"
    PACKED = "packed weights"
    AGAIN = "computed again"


@frozen(eq=False)
class Value:
    """A tensor or workspace at run time.

    `layout` counts from the first byte of the value `owner`, which owns the bytes.

    `source` is the name of the tensor of the graph; a copy has the source of the value that it copies.
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
        """True if another value owns the bytes."""
        return self.owner != self.id

    def lying(self, spec: TensorSpec, layout: Layout) -> "Value":
        """Returns the value with other numbers, for other lengths."""
        return Value(self.id, self.name, self.source, spec, layout, self.owner, self.storage, self.role)


@frozen(eq=False)
class Call:
    """One run of a kernel. `workspace` is empty or one value id; `overwrites` has the permitted overwrites.

    `operators` has the operator that the call computes; it is empty for a copy that the planner added.
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

    def signed(self, signature: Signature) -> "Call":
        """Returns the call with another signature, for other lengths."""
        return Call(
            self.tick,
            self.name,
            self.operators,
            self.kernel,
            signature,
            self.inputs,
            self.outputs,
            self.workspace,
            self.overwrites,
        )

    def at(self, tick: int) -> "Call":
        """Returns the call in another tick."""
        return Call(
            tick,
            self.name,
            self.operators,
            self.kernel,
            self.signature,
            self.inputs,
            self.outputs,
            self.workspace,
            self.overwrites,
        )


@frozen(eq=False)
class Alias:
    """An operator that runs no kernel: its outputs are views of its first input."""

    tick: int
    name: str
    operators: tuple[Operator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def at(self, tick: int) -> "Alias":
        """Returns the alias in another tick."""
        return Alias(tick, self.name, self.operators, self.inputs, self.outputs)


@frozen(eq=False)
class Join:
    """An operator that runs no kernel: its inputs were computed at their places inside its output."""

    tick: int
    name: str
    operators: tuple[Operator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def at(self, tick: int) -> "Join":
        """Returns the join in another tick."""
        return Join(tick, self.name, self.operators, self.inputs, self.outputs)


Instruction = Call | Alias | Join
"""The instruction that one operator becomes; most become a call."""


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
    """A graph as calls, aliases and joins, in order.

    Instruction i has the tick i + 1; tick 0 feeds, and the last tick fetches.

    `caller_buffers` names the inputs and outputs that live in arrays of the caller. `parameters` maps the value of each
    parameter to the value that it holds after the run. `hands_over` says that later stages take over the outputs.
    `backends` were asked for kernels, in this order. `not_nested` says why operators copy inputs that might have been
    computed inside the output; empty where nesting was not tried. `target` says whose kernels the workspaces are for.
    `engine_copies` has the copies that a copy engine can make beside other calls, each with the tick behind which what
    it copies may lose its bytes.
    """

    graph: Graph
    values: tuple[Value, ...]
    instructions: tuple[Instruction, ...]
    constants: Constants[int] = field(converter=as_constants)
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    caller_buffers: frozenset[str]
    parameters: Mapping[int, int]
    hands_over: bool = False
    backends: tuple[str, ...] = PLAIN
    not_nested: tuple[NotNested, ...] = ()
    target: Target = HOST
    engine_copies: Mapping[int, int] = field(factory=dict)

    @property
    def calls(self) -> tuple[Call, ...]:
        """Returns the instructions that run a kernel."""
        return tuple(s for s in self.instructions if isinstance(s, Call))

    @property
    def writers(self) -> dict[int, int]:
        """The tick of the call that writes each value; for a value with others inside it, the first such tick."""
        ticks: dict[int, int] = {}
        for call in self.calls:
            for value in call.outputs + call.workspace:
                ticks[value] = call.tick
                ticks.setdefault(self.values[value].owner, call.tick)
        return ticks

    @property
    def makers(self) -> dict[int, int]:
        """Returns the tick of what completes each value: a join completes its output, which calls wrote before."""
        return self.writers | {
            v: instruction.tick
            for instruction in self.instructions
            if isinstance(instruction, Join)
            for v in instruction.outputs
        }

    def workspace_bytes(self, call: Call) -> int:
        """Returns the bytes of the workspace that a call has to have."""
        kind = call.operators[0].schema.name if call.operators else ""  # a copy, which no row is about
        return self.target.workspace_bytes(kind, call.signature, call.kernel)

    def tick_name(self, tick: int) -> str:
        """Returns the name of the instruction of a tick; "feed" and "fetch" for the first and the last tick."""
        if tick == 0:
            return "feed"
        return self.instructions[tick - 1].name if tick <= len(self.instructions) else "fetch"

    def tick_kind(self, tick: int) -> str:
        """Returns the name of the schema that runs in a tick; "" where the caller feeds or fetches."""
        if not 0 < tick <= len(self.instructions):
            return ""
        operators = self.instructions[tick - 1].operators
        return operators[0].schema.name if operators else COPY


def is_again(lowered: Lowered, call: Call) -> bool:
    """Returns whether a call computes again what was dropped between memories."""
    return lowered.values[call.outputs[0]].role is Role.AGAIN


def arena_ids(lowered: Lowered) -> dict[int, int]:
    """Returns the number of each arena value in the allocator."""
    return {v.id: i for i, v in enumerate(v for v in lowered.values if v.storage is Storage.ARENA)}


def unread_inputs(call: Call) -> frozenset[int]:
    """Returns the positions of constant inputs that the kernel never reads, as it has packed them."""
    return call.signature.constants.intersection(call.kernel.unread_after_pack(call.signature))


def _without_pads(signature: Signature, backend: str) -> Hashable:
    """Returns the attributes but pads; an operator inside is told by its kernel, and its attributes but pads."""

    def plain(attrs: Attrs) -> Hashable:
        return tuple((name, told(value)) for name, value in attrs.items() if name != "pads")

    def told(value: Any) -> Hashable:
        return (id(inner_kernel(signature, backend)), plain(value.attrs)) if isinstance(value, Inner) else value

    return plain(signature.attrs)


def pack_key(call: Call) -> Hashable:
    """Returns what packed arrays depend on beside the constants: equal keys and constants, equal packed arrays.

    Stripes of one operator differ in lengths and in pads, on which no packed array depends, but those of a library: it
    chooses layouts of weights by lengths.
    """
    kernel, signature = call.kernel, call.signature
    attrs = _without_pads(signature, kernel.backend)
    alike = tuple(s.dtype for s in signature.inputs), kernel.packed_specs(signature), attrs
    try:
        hash(alike)
    except TypeError:  # an attribute that is no plain value
        return id(kernel), call.name
    return id(kernel), call.name if kernel.backend == ONEDNN else alike


def packed_row(call: Call, constants: tuple[tuple[int, Entry], ...]) -> Array:
    """Packs constants of a call, each with its position; returns the arrays one behind the other, as `carve` cuts."""
    specs = call.kernel.packed_specs(call.signature)
    row = aligned_empty(dense_bytes(*specs), CACHE_LINE)
    row[:] = 0
    with np.errstate(all="ignore"):
        packed = call.kernel.pack(call.signature, {i: array_of(entry) for i, entry in constants})
    for array, place in zip(packed, carve(row, *specs), strict=True):
        np.copyto(place, array)
    return row


def row_of_packed(lowered: Lowered, call: Call) -> tuple[int, ...]:
    """Returns the value that has the packed constants of a call in one row; nothing where the call has its own."""
    return tuple(v for v in call.inputs if call.operators and lowered.values[v].role is Role.PACKED)
