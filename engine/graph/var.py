"""A tensor of a graph, with Python's operators."""

from typing import Any, ClassVar

import numpy as np
from attrs import field, frozen

import ops
from ops.common.apply import GraphLike, Mixed
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
        """The lengths of all axes; some may be dimensions."""
        return self.spec.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type."""
        return self.spec.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.spec.ndim

    def __add__(self, other: Mixed["Var"]) -> "Var":
        return ops.add(self, other)

    def __radd__(self, other: Mixed["Var"]) -> "Var":
        return ops.add(other, self)

    def __sub__(self, other: Mixed["Var"]) -> "Var":
        return ops.sub(self, other)

    def __rsub__(self, other: Mixed["Var"]) -> "Var":
        return ops.sub(other, self)

    def __mul__(self, other: Mixed["Var"]) -> "Var":
        return ops.mul(self, other)

    def __rmul__(self, other: Mixed["Var"]) -> "Var":
        return ops.mul(other, self)

    def __truediv__(self, other: Mixed["Var"]) -> "Var":
        return ops.div(self, other)

    def __rtruediv__(self, other: Mixed["Var"]) -> "Var":
        return ops.div(other, self)

    def __matmul__(self, other: "Var | Array") -> "Var":
        return ops.matmul(self, other)

    def __rmatmul__(self, other: Array) -> "Var":
        return ops.matmul(other, self)

    def __pow__(self, other: Mixed["Var"]) -> "Var":
        return ops.pow(self, other)

    def __rpow__(self, other: Mixed["Var"]) -> "Var":
        return ops.pow(other, self)

    def __lt__(self, other: Any) -> "Var":
        compared: Var = ops.less(self, other)
        return compared

    def __le__(self, other: Any) -> "Var":
        compared: Var = ops.less_or_equal(self, other)
        return compared

    def __gt__(self, other: Any) -> "Var":
        compared: Var = ops.greater(self, other)
        return compared

    def __ge__(self, other: Any) -> "Var":
        compared: Var = ops.greater_or_equal(self, other)
        return compared

    def __neg__(self) -> "Var":
        return ops.neg(self)

    def __abs__(self) -> "Var":
        return ops.abs(self)

    def __getitem__(self, index: Any) -> "Var":
        return ops.getitem(self, index)
