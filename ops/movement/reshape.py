"""The same elements in C order under another shape (ONNX Reshape, Flatten, Squeeze, Unsqueeze)."""

import math

from ops.common.view_rules import copy_cost, overwrites_in_place
from ops.movement.copies import Move
from ops.movement.kernels import movement
from ops.schema.attributes import Attribute, flag, integers
from ops.schema.backward import Backward, Terms
from ops.schema.schema import Attrs, Binding, OpSchema, Signature, Specs
from ops.tensor.errors import ShapeError
from ops.tensor.layout import Layout
from ops.tensor.spec import Shape


def resolve_shape(shape: tuple[int, ...], source: Shape, zero_copies: bool) -> Shape:
    """`shape` with its -1 computed and, where `zero_copies`, each 0 taken from `source`. Raises ShapeError."""
    if zero_copies and any(n == 0 and i >= len(source) for i, n in enumerate(shape)):
        raise ShapeError(f"shape {shape} copies a dimension that {source} does not have")
    dims = [source[i] if n == 0 and zero_copies else n for i, n in enumerate(shape)]
    if dims.count(-1) > 1 or min(dims, default=0) < -1:
        raise ShapeError(f"shape {shape}: only one dimension may be -1, and none lower")
    if -1 in dims:
        rest, size = math.prod(n for n in dims if n != -1), math.prod(source)
        if rest == 0 or size % rest:
            raise ShapeError(f"{size} elements of shape {source} do not fit shape {shape}")
        dims[dims.index(-1)] = size // rest
    return tuple(dims)


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    (x,) = inputs
    y = x.with_shape(resolve_shape(attrs["shape"], x.shape, attrs["zero_copies"]))
    if x.size != y.size:
        raise ShapeError(f"{x.size} elements of shape {x.shape} do not fit shape {y.shape}")
    return (y,)


def _views(layout: Layout, signature: Signature) -> tuple[Layout | None, ...]:
    return (layout.reshape(signature.y.shape),)


def _moves(call: Binding) -> tuple[Move, ...]:
    return ((call.x, call.y.reshape(call.x.shape)),)


def _gradient(b: Backward) -> Terms:
    return (b.reshape(b.dy, b.signature.x.shape),)


RESHAPE = OpSchema(
    name="reshape",
    summary="The elements of x in C order under `shape`; -1 is what is left, 0 the length in x where `zero_copies`.",
    infer=_infer,
    kernels=movement(_moves),
    attributes=(Attribute("shape", integers), Attribute("zero_copies", flag, False)),
    views=_views,
    overwrites=overwrites_in_place(_views),
    gradient=_gradient,
    cost=copy_cost,
    bit_copies=True,
)
OPS = (RESHAPE,)
