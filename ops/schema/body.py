"""What an operator of control flow knows of the operators inside it: a body, planned beforehand, run by its thunk."""

from collections.abc import Sequence
from typing import Any, Protocol

from ops.schema.attributes import Attribute
from ops.schema.schema import Attrs, Cost, OpSchema, Specs, Thunk
from ops.schema.weight_memory import WeightMemory
from ops.schema.workspace import bytes_spec
from ops.tensor.errors import ArityError, ShapeError
from ops.tensor.spec import Array, TensorSpec


class Body(Protocol):
    """A computation of fixed shapes that runs inside an operator, in the workspace of that operator."""

    @property
    def inputs(self) -> Specs:
        """Returns the specs of the tensors that it reads."""

    @property
    def outputs(self) -> Specs:
        """Returns the specs of the tensors that it writes."""

    @property
    def workspace(self) -> int:
        """Returns the bytes of workspace that it needs; they start at a multiple of `ops.schema.workspace.STEP`."""

    @property
    def weight_memory(self) -> WeightMemory:
        """Returns the memory of its constants, which lie outside of the workspace."""

    @property
    def prepacked_bytes(self) -> int:
        """Returns the bytes that its kernels packed from constants, which must be those of `weight_memory`."""

    @property
    def cost(self) -> Cost:
        """Returns the cost of one run."""

    @property
    def names(self) -> frozenset[str]:
        """Returns the names of its tensors and operators, and of those in bodies inside it."""

    def bind(self, inputs: tuple[Array, ...], outputs: tuple[Array, ...], workspace: Array) -> Thunk:
        """Returns the run from these arrays into those, all dense; no output shares bytes with anything else."""


def _body(value: Any) -> Body:
    if not callable(getattr(value, "bind", None)):
        raise TypeError("a body is wanted (ops.schema.body.Body)")
    body: Body = value
    return body


def body_attribute(name: str) -> Attribute:
    """Returns an attribute that holds a body."""
    return Attribute(name, _body)


def bodies(schema: OpSchema, attrs: Attrs) -> tuple[Body, ...]:
    """Returns the bodies of an operator."""
    return tuple(attrs[a.name] for a in schema.attributes if a.convert is _body)


def check_operands(what: str, wanted: Specs, actual: Sequence[TensorSpec]) -> None:
    """Raises ArityError or ShapeError where a body takes or gives other tensors than it should."""
    if len(wanted) != len(actual):
        raise ArityError(f"{what}: {len(wanted)} tensors are wanted, and {len(actual)} are given")
    for i, (one, other) in enumerate(zip(wanted, actual, strict=True)):
        if one != other:
            raise ShapeError(f"{what}: number {i} is {other}, where {one} is wanted")


def workspace_of(*bodies: Body) -> TensorSpec:
    """Returns the spec of the bytes that bodies use in turn."""
    return bytes_spec(max(b.workspace for b in bodies))
