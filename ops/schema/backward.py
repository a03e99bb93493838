"""What a gradient rule works with: the vars of one use of its operator, and arithmetic on them.

A rule stands on the schema, beside inference and kernel, and writes operators, not numbers. It is called only where a
gradient of some output is there and that of some input is wanted. Where a term is broadcast in the operator, the rule
gives it in the broadcast shape: who calls the rule sums it to the shape of the input.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ops.schema.schema import Attrs, OpSchema, Signature
from ops.tensor.spec import Array, TensorSpec

Tensor = Any
"""A var: it has `shape`, `dtype`, `spec` and Python's arithmetic with vars, arrays and numbers."""
Term = Tensor | None
Terms = tuple[Term, ...]
"""A gradient for each input; None where none is wanted or flows."""


class Backward(Protocol):
    """One use of an operator in the backward pass."""

    signature: Signature
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    grads: tuple[Term, ...]
    """The gradient of each output; None where nothing differentiable reads it."""

    @property
    def attrs(self) -> Attrs:
        """Returns the attributes."""

    @property
    def x(self) -> Tensor:
        """Returns the first input."""

    @property
    def y(self) -> Tensor:
        """Returns the first output."""

    @property
    def dy(self) -> Tensor:
        """Returns the gradient of the first output; zeros where nothing reads it."""

    def grad(self, output: int) -> Tensor:
        """Returns the gradient of an output; zeros where nothing reads it."""

    def wants(self, position: int) -> bool:
        """Returns whether the gradient of that input is wanted."""

    def known(self, position: int) -> Array | None:
        """Returns the data of an input that is a constant, else None."""

    def terms(self, *makers: Callable[[], Tensor] | None) -> Terms:
        """Calls the makers of those inputs whose gradient is wanted; inputs without a maker get none."""

    def apply(self, schema: OpSchema, *operands: Tensor, **attrs: Any) -> tuple[Tensor, ...]:
        """Adds an operator; arrays and numbers become constants. Returns its outputs."""

    def apply1(self, schema: OpSchema, *operands: Tensor, **attrs: Any) -> Tensor:
        """Adds an operator of one output; returns the output."""

    def constant(self, value: Array | float, like: TensorSpec) -> Tensor:
        """Adds a constant; a number takes the dtype of `like` and has no dimensions."""

    def zeros(self, spec: TensorSpec) -> Tensor:
        """Returns zeros, views of one element."""

    def sum(self, x: Tensor, axes: Sequence[int] | None = None, keepdims: bool = True) -> Tensor:
        """Returns the sum over axes (over all where they are None)."""

    def sum_to(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """Returns the sum over the dimensions that broadcasting from `shape` has added or grown."""

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """Returns the elements in C order, in a new shape."""

    def transpose(self, x: Tensor, perm: Sequence[int]) -> Tensor:
        """Returns x with its axes in the order `perm`."""

    def expand(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """Returns x, broadcast to `shape`."""

    def slice(self, x: Tensor, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int]) -> Tensor:
        """Returns the elements starts:ends along each of `axes`."""

    def pad(self, x: Tensor, before: Sequence[int], after: Sequence[int]) -> Tensor:
        """Adds zeros around x, so many before and after along each axis."""

    def concat(self, xs: Sequence[Tensor], axis: int) -> Tensor:
        """Joins vars along `axis`."""

    def cast(self, x: Tensor, dtype: np.dtype[Any]) -> Tensor:
        """Returns x in another dtype."""

    def matmul(self, a: Tensor, b: Tensor) -> Tensor:
        """Returns the products of matrices in the last two axes, as numpy.matmul does."""

    def where(self, condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
        """Returns a where the condition holds, else b."""

    def equal(self, a: Tensor, b: Tensor) -> Tensor:
        """Returns whether a is b, element by element."""

    def exp(self, x: Tensor) -> Tensor:
        """Returns e to the power of x."""

    def log(self, x: Tensor) -> Tensor:
        """Returns the natural logarithm."""

    def sqrt(self, x: Tensor) -> Tensor:
        """Returns the square root."""

    def abs(self, x: Tensor) -> Tensor:
        """Returns |x|."""

    def sign(self, x: Tensor) -> Tensor:
        """Returns -1, 0 or 1."""
