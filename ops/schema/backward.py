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
    """One use of an operator, seen from behind."""

    signature: Signature
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    grads: tuple[Term, ...]
    """The gradient of each output; None where nothing differentiable reads it."""

    @property
    def attrs(self) -> Attrs:
        """The attributes."""

    @property
    def x(self) -> Tensor:
        """The first input."""

    @property
    def y(self) -> Tensor:
        """The first output."""

    @property
    def dy(self) -> Tensor:
        """The gradient of the first output; zeros where nothing reads it."""

    def grad(self, output: int) -> Tensor:
        """The gradient of an output; zeros where nothing reads it."""

    def wants(self, position: int) -> bool:
        """Whether the gradient of that input is wanted."""

    def known(self, position: int) -> Array | None:
        """The data of an input that is a constant."""

    def terms(self, *makers: Callable[[], Tensor] | None) -> Terms:
        """Calls the makers of those inputs whose gradient is wanted; inputs without a maker get none."""

    def apply(self, schema: OpSchema, *operands: Tensor, **attrs: Any) -> tuple[Tensor, ...]:
        """Adds an operator; arrays and numbers become constants. Returns its outputs."""

    def apply1(self, schema: OpSchema, *operands: Tensor, **attrs: Any) -> Tensor:
        """The same for operators of one output."""

    def constant(self, value: Array | float, like: TensorSpec) -> Tensor:
        """A constant; a number takes the dtype of `like` and has no dimensions."""

    def zeros(self, spec: TensorSpec) -> Tensor:
        """Zeros that need the bytes of one."""

    def sum(self, x: Tensor, axes: Sequence[int] | None = None, keepdims: bool = True) -> Tensor:
        """The sum over axes (over all where none are given)."""

    def sum_to(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """Summed over what broadcasting from `shape` had added."""

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """The elements in C order."""

    def transpose(self, x: Tensor, perm: Sequence[int]) -> Tensor:
        """The axes in the order `perm`."""

    def expand(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """Broadcast to `shape`."""

    def slice(self, x: Tensor, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int]) -> Tensor:
        """The elements starts:ends along each of `axes`."""

    def pad(self, x: Tensor, before: Sequence[int], after: Sequence[int]) -> Tensor:
        """Zeros around x, so many before and after along each axis."""

    def concat(self, xs: Sequence[Tensor], axis: int) -> Tensor:
        """One behind the other."""

    def cast(self, x: Tensor, dtype: np.dtype[Any]) -> Tensor:
        """x in another dtype."""

    def matmul(self, a: Tensor, b: Tensor) -> Tensor:
        """Matrix products of the last two axes, as numpy's."""

    def where(self, condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
        """a where the condition holds, else b."""

    def equal(self, a: Tensor, b: Tensor) -> Tensor:
        """Whether a is b, element by element."""

    def exp(self, x: Tensor) -> Tensor:
        """e to the power of x."""

    def log(self, x: Tensor) -> Tensor:
        """Natural logarithm."""

    def sqrt(self, x: Tensor) -> Tensor:
        """Square root."""

    def abs(self, x: Tensor) -> Tensor:
        """|x|"""

    def sign(self, x: Tensor) -> Tensor:
        """-1, 0 or 1."""
