"""What reading a model may cost: a small file must not become millions of operators, or gigabytes of arrays."""

from typing import Any, Self

from attrs import define

from engine.onnx.external_data import DataFiles
from engine.onnx.library import all_nodes
from engine.text.errors import UnsupportedError
from ops.schema.schema import OpSchema, Signature
from ops.tensor.spec import TensorSpec

_NODES, _NODES_EACH = 20_000, 10
"""Nodes that may be read: so many, and so many more for each one that stands in the model."""
_BYTES, _BYTES_EACH = 2**27, 8
"""Bytes of names and of arrays that may be made: so many, and so many more for each byte of the model's files."""
_REPEATED = 10 * 2**26
"""Bytes of arrays of repeated elements, alike: they are made when they are read, one by one, and not kept.

VGG19 with weights that its file computes, as the light models of the onnx package do, has 548 MiB.
"""
_OPERATIONS, _OPERATIONS_EACH = 2**33, 64
"""Operations of operators that are computed at once, alike."""


@define(eq=False)
class Allowance:
    """What may still be taken while one model is read. `message` are the bytes of a model that came without a file."""

    nodes: int
    message: int
    files: DataFiles
    nbytes: int = 0
    repeated: int = 0
    operations: int = 0

    @classmethod
    def of(cls, proto: Any, files: DataFiles) -> Self:
        """Returns what reading a ModelProto may take."""
        bodies = (proto.graph.node, *(f.node for f in proto.functions))
        message = 0 if files.opened else sum(p.ByteSize() for p in (*proto.graph.node, *proto.graph.initializer))
        return cls(_NODES + _NODES_EACH * sum(1 for nodes in bodies for _ in all_nodes(nodes)), message, files)

    def take_nodes(self, count: int) -> None:
        """Takes nodes that are to be read. Raises UnsupportedError where too many have been read already."""
        self.nodes -= count
        if self.nodes < 0:
            raise UnsupportedError(
                "the functions, loops and sequences of the model become too many operators when they are read in "
                f"place: more than {_NODES} and {_NODES_EACH} for each node of the model"
            )

    def take_bytes(self, count: int) -> None:
        """Takes bytes of names and of arrays that must be made. Raises UnsupportedError where they are too many."""
        self.nbytes += count
        if self.nbytes > self._most_bytes:
            raise UnsupportedError(
                "the functions and loops of the model become too many bytes of names and constants when they are read "
                f"in place: more than {self._most_bytes}"
            )

    def grants(self, schema: OpSchema, signature: Signature, copied: int) -> bool:
        """Returns whether an operator may be computed at once, and takes what that costs if it may.

        `copied` are the bytes of inputs that are made for it.
        """
        kept, cost = sum(s.nbytes for s in signature.outputs), schema.cost(signature)
        needed = kept + copied + schema.kernel(signature).workspace(signature)
        operations = cost.flops + cost.bytes
        if self.nbytes + needed > self._most_bytes or self.operations + operations > self._most_operations:
            return False
        self.nbytes += kept
        self.operations += operations
        return True

    def repeats(self, spec: TensorSpec) -> bool:
        """Returns whether an array may repeat its elements, and takes what that costs if it may."""
        if self.repeated + spec.nbytes > _REPEATED + _BYTES_EACH * self._source_bytes:
            return False
        self.repeated += spec.nbytes
        return True

    @property
    def _most_bytes(self) -> int:
        return _BYTES + _BYTES_EACH * self._source_bytes

    @property
    def _most_operations(self) -> int:
        return _OPERATIONS + _OPERATIONS_EACH * self._source_bytes

    @property
    def _source_bytes(self) -> int:
        """Returns the bytes of the model: of its message, or of its files that have been opened."""
        return self.message + self.files.nbytes
