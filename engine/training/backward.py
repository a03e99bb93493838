"""The arithmetic of gradient rules (`ops.schema.backward`), by the functions that a user calls."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import frozen

import ops
from ops.common.apply import GraphLike, apply
from ops.schema.backward import Tensor, Term, Terms
from ops.schema.schema import Attrs, OpSchema, Signature
from ops.tensor.spec import Array, TensorSpec


@frozen(eq=False)
class BackwardStep:
    """One use of an operator in the backward pass; implements `ops.schema.backward.Backward`."""

    graph: GraphLike
    signature: Signature
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    grads: tuple[Term, ...]
    wanted: frozenset[int]

    @property
    def attrs(self) -> Attrs:
        return self.signature.attrs

    @property
    def x(self) -> Tensor:
        return self.inputs[0]

    @property
    def y(self) -> Tensor:
        return self.outputs[0]

    @property
    def dy(self) -> Tensor:
        return self.grad(0)

    def grad(self, output: int) -> Tensor:
        gradient = self.grads[output]
        return self.zeros(self.signature.outputs[output]) if gradient is None else gradient

    def wants(self, position: int) -> bool:
        return position in self.wanted

    def known(self, position: int) -> Array | None:
        return self.graph.constants.get(self.inputs[position])

    def terms(self, *makers: Callable[[], Tensor] | None) -> Terms:
        terms = (make() if make and self.wants(i) else None for i, make in enumerate(makers))
        return (*terms, *(None,) * (len(self.inputs) - len(makers)))

    def apply(self, schema: OpSchema, *operands: Tensor, **attrs: Any) -> tuple[Tensor, ...]:
        return apply(schema, operands, **attrs)

    def apply1(self, schema: OpSchema, *operands: Tensor, **attrs: Any) -> Tensor:
        return apply(schema, operands, **attrs)[0]

    def constant(self, value: Array | float, like: TensorSpec) -> Tensor:
        is_number = isinstance(value, (bool, int, float))
        return self.graph.constant(np.asarray(value, like.dtype if is_number else None))

    def zeros(self, spec: TensorSpec) -> Tensor:
        return zeros(self.graph, spec)

    def sum(self, x: Tensor, axes: Sequence[int] | None = None, keepdims: bool = True) -> Tensor:
        return ops.reduce_sum(x, axes, keepdims)

    def sum_to(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        target, source = tuple(shape), x.spec.shape
        if target == source:
            return x
        leading = len(source) - len(target)
        broadcast = (i for i, n in enumerate(target, leading) if n == 1 and source[i] != 1)
        axes = (*range(leading), *broadcast)
        return self.reshape(self.sum(x, axes) if axes else x, target)

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        return x if x.spec.shape == tuple(shape) else ops.reshape(x, tuple(shape))

    def transpose(self, x: Tensor, perm: Sequence[int]) -> Tensor:
        return x if tuple(perm) == tuple(range(len(perm))) else ops.transpose(x, perm)

    def expand(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        return x if x.spec.shape == tuple(shape) else ops.expand(x, tuple(shape))

    def slice(self, x: Tensor, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int]) -> Tensor:
        return ops.slice(x, starts, ends, axes)

    def pad(self, x: Tensor, before: Sequence[int], after: Sequence[int]) -> Tensor:
        return ops.pad(x, (*before, *after)) if any((*before, *after)) else x

    def concat(self, xs: Sequence[Tensor], axis: int) -> Tensor:
        return ops.concat(xs, axis)

    def cast(self, x: Tensor, dtype: np.dtype[Any]) -> Tensor:
        return x if x.spec.dtype == dtype else ops.cast(x, dtype)

    def matmul(self, a: Tensor, b: Tensor) -> Tensor:
        return ops.matmul(a, b)

    def where(self, condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return ops.where(condition, a, b)

    def equal(self, a: Tensor, b: Tensor) -> Tensor:
        return ops.equal(a, b)

    def exp(self, x: Tensor) -> Tensor:
        return ops.exp(x)

    def log(self, x: Tensor) -> Tensor:
        return ops.log(x)

    def sqrt(self, x: Tensor) -> Tensor:
        return ops.sqrt(x)

    def abs(self, x: Tensor) -> Tensor:
        return ops.abs(x)

    def sign(self, x: Tensor) -> Tensor:
        return ops.sign(x)


def zeros(graph: GraphLike, spec: TensorSpec) -> Tensor:
    """Returns zeros of that spec, which are views of one element."""
    one = graph.constant(np.zeros((), spec.dtype))
    return ops.expand(one, spec.shape) if spec.shape else one
