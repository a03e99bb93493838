"""A tensor of a graph, with Python's operators."""

from collections.abc import Iterator
from numbers import Number
from typing import Any, ClassVar, cast

import numpy as np
from attrs import field, frozen

import ops
from engine.text.errors import NoValueError
from ops.common.apply import GraphLike, Mixed
from ops.tensor.dims import Dim
from ops.tensor.spec import Array, Shape, TensorSpec

_COMPARED = (Number, Dim, np.ndarray, np.generic, list, tuple, range)
"""What elements are compared with, beside what becomes an array; anything else is not equal."""


@frozen(eq=False)
class Var:
    """A named tensor of one graph. Python's operators add operators to the graph; the hash is that of the object.

    Elements are computed when the graph runs. What wants to know one before raises NoValueError: `if`, `in`, `float`,
    a conversion to an array.
    """

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

    def __eq__(self, other: Any) -> Any:
        has_elements = isinstance(other, (Var, *_COMPARED)) or hasattr(type(other), "__array__")
        return ops.equal(self, cast(Any, other)) if has_elements else NotImplemented

    def __ne__(self, other: Any) -> Any:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else ops.logical_not(equal)

    __hash__ = object.__hash__

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

    def __len__(self) -> int:
        """Returns the length of the first axis. Raises NoValueError where that is not known before a run."""
        if not self.shape:
            raise NoValueError(f"{self.name!r} is one number: it has no length")
        if not isinstance(self.shape[0], int):
            raise NoValueError(f"{self._described} has no length yet; x.shape[0] is the dimension")
        return self.shape[0]

    def __iter__(self) -> Iterator["Var"]:
        """Returns the parts along the first axis, each of which is added to the graph when it is taken.

        Raises NoValueError where their number is not known before a run.
        """
        if not self.shape or not isinstance(self.shape[0], int):
            way = "arenaplan.scan goes along an axis of any length" if self.shape else "it is one number"
            raise NoValueError(f"{self._described} cannot be taken apart: {way}")
        return (self[i] for i in range(self.shape[0]))

    def __contains__(self, value: object) -> bool:
        raise NoValueError(f"{self._unknown}; ops.reduce_max(ops.cast(x == value, 'int32')) tells it in the graph")

    def __bool__(self) -> bool:
        raise NoValueError(
            f"{self._unknown}; ops.where(condition, a, b) chooses elements, arenaplan.cond chooses what runs, "
            "and `is` compares vars themselves"
        )

    def __float__(self) -> float:
        raise NoValueError(f"{self._unknown}; only a run computes it")

    def __int__(self) -> int:
        raise NoValueError(f"{self._unknown}; only a run computes it")

    def __array__(self, *_: Any, **__: Any) -> Array:
        raise NoValueError(
            f"{self._unknown}; arenaplan.compile(graph).run(...) gives arrays, functions of ops take vars"
        )

    @property
    def _described(self) -> str:
        return f"{self.name!r} ({self.spec})"

    @property
    def _unknown(self) -> str:
        return f"{self._described} has no value before the graph runs"
