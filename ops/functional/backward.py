"""What gradient rules work with (ops/schema/backward.py), on the functions that a user calls."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from ops.functional import cast, comparison, linalg, movement, reduce, unary, views, where
from ops.functional.apply import GraphLike, apply
from ops.schema.backward import Tensor, Term, Terms
from ops.schema.schema import Attrs, OpSchema, Signature
from ops.tensor.spec import Array, TensorSpec


@frozen(eq=False)
class BackwardStep:
    """One use of an operator, seen from behind; see `ops.schema.backward.Backward`, which it implements."""

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
        found = self.grads[output]
        return self.zeros(self.signature.outputs[output]) if found is None else found

    def wants(self, position: int) -> bool:
        return position in self.wanted

    def known(self, position: int) -> Array | None:
        return self.graph.constants.get(self.inputs[position])

    def terms(self, *makers: Callable[[], Tensor] | None) -> Terms:
        made = (make() if make and self.wants(i) else None for i, make in enumerate(makers))
        return (*made, *(None,) * (len(self.inputs) - len(makers)))

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
        return reduce.reduce_sum(x, axes, keepdims)

    def sum_to(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        wanted, found = tuple(shape), x.spec.shape
        if wanted == found:
            return x
        more = len(found) - len(wanted)
        grown = (i for i, n in enumerate(wanted, more) if n == 1 and found[i] != 1)
        axes = (*range(more), *grown)
        return self.reshape(self.sum(x, axes) if axes else x, wanted)

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        return x if x.spec.shape == tuple(shape) else views.reshape(x, tuple(shape))

    def transpose(self, x: Tensor, perm: Sequence[int]) -> Tensor:
        return x if tuple(perm) == tuple(range(len(perm))) else views.transpose(x, perm)

    def expand(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        return x if x.spec.shape == tuple(shape) else views.expand(x, tuple(shape))

    def slice(self, x: Tensor, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int]) -> Tensor:
        return views.slice(x, starts, ends, axes)

    def pad(self, x: Tensor, before: Sequence[int], after: Sequence[int]) -> Tensor:
        return movement.pad(x, (*before, *after)) if any((*before, *after)) else x

    def concat(self, xs: Sequence[Tensor], axis: int) -> Tensor:
        return movement.concat(xs, axis)

    def cast(self, x: Tensor, dtype: np.dtype[Any]) -> Tensor:
        return x if x.spec.dtype == dtype else cast.cast(x, dtype)

    def matmul(self, a: Tensor, b: Tensor) -> Tensor:
        return linalg.matmul(a, b)

    def where(self, condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return where.where(condition, a, b)

    def equal(self, a: Tensor, b: Tensor) -> Tensor:
        return comparison.equal(a, b)

    def exp(self, x: Tensor) -> Tensor:
        return unary.exp(x)

    def log(self, x: Tensor) -> Tensor:
        return unary.log(x)

    def sqrt(self, x: Tensor) -> Tensor:
        return unary.sqrt(x)

    def abs(self, x: Tensor) -> Tensor:
        return unary.abs(x)

    def sign(self, x: Tensor) -> Tensor:
        return unary.sign(x)


def zeros(graph: GraphLike, spec: TensorSpec) -> Tensor:
    """Zeros that need the bytes of one."""
    one = graph.constant(np.zeros((), spec.dtype))
    return views.expand(one, spec.shape) if spec.shape else one
