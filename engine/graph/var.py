"""A tensor of a graph, with Python's operators."""

from typing import Any, ClassVar

import numpy as np
from attrs import field, frozen

from ops.functional import binary, comparison, indexing, linalg, power, unary
from ops.functional.apply import GraphLike
from ops.functional.operands import Mixed
from ops.tensor.spec import Array, Shape, TensorSpec


@frozen(eq=False)
class Var:
    """A named tensor of one graph; compares by identity."""

    __array_ufunc__: ClassVar[None] = None
    """None: numpy arrays on the left leave the arithmetic to the var."""

    name: str
    spec: TensorSpec
    graph: GraphLike = field(repr=False)

    @property
    def shape(self) -> Shape:
        """Dimensions."""
        return self.spec.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""
        return self.spec.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.spec.ndim

    def __add__(self, other: Mixed["Var"]) -> "Var":
        return binary.add(self, other)

    def __radd__(self, other: Mixed["Var"]) -> "Var":
        return binary.add(other, self)

    def __sub__(self, other: Mixed["Var"]) -> "Var":
        return binary.sub(self, other)

    def __rsub__(self, other: Mixed["Var"]) -> "Var":
        return binary.sub(other, self)

    def __mul__(self, other: Mixed["Var"]) -> "Var":
        return binary.mul(self, other)

    def __rmul__(self, other: Mixed["Var"]) -> "Var":
        return binary.mul(other, self)

    def __truediv__(self, other: Mixed["Var"]) -> "Var":
        return binary.div(self, other)

    def __rtruediv__(self, other: Mixed["Var"]) -> "Var":
        return binary.div(other, self)

    def __matmul__(self, other: "Var | Array") -> "Var":
        return linalg.matmul(self, other)

    def __rmatmul__(self, other: Array) -> "Var":
        return linalg.matmul(other, self)

    def __pow__(self, other: Mixed["Var"]) -> "Var":
        return power.pow(self, other)

    def __rpow__(self, other: Mixed["Var"]) -> "Var":
        return power.pow(other, self)

    def __lt__(self, other: Any) -> "Var":
        compared: Var = comparison.less(self, other)
        return compared

    def __le__(self, other: Any) -> "Var":
        compared: Var = comparison.less_or_equal(self, other)
        return compared

    def __gt__(self, other: Any) -> "Var":
        compared: Var = comparison.greater(self, other)
        return compared

    def __ge__(self, other: Any) -> "Var":
        compared: Var = comparison.greater_or_equal(self, other)
        return compared

    def __neg__(self) -> "Var":
        return unary.neg(self)

    def __abs__(self) -> "Var":
        return unary.abs(self)

    def __getitem__(self, index: Any) -> "Var":
        return indexing.getitem(self, index)
