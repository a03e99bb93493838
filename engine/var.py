"""A tensor of a graph, with Python's operators on it."""

from typing import Any

import numpy as np
from attrs import field, frozen

from ops.functional.apply import GraphLike
from ops.spec import Shape, TensorSpec


@frozen(eq=False)
class Var:
    """A named tensor of one graph; compares by identity."""

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
