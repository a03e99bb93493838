"""A tensor repeated along its axes (ONNX Tile-13)."""

from ops.common.apply import V, apply1
from ops.common.costs import copy_cost
from ops.common.lengths import Lengths, lengths
from ops.movement.copies import Move
from ops.movement.kernels import movement
from ops.schema.attributes import Attribute, integers
from ops.schema.backward import Backward, Terms
from ops.schema.schema import Attrs, Binding, OpSchema, Specs
from ops.symbolic.guesses import repeats as few
from ops.tensor.errors import ShapeError
from ops.tensor.spec import as_shape


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    (x,) = inputs
    repeats = as_shape(attrs["repeats"])
    if len(repeats) != x.ndim:
        raise ShapeError(f"{len(repeats)} repeats for a tensor of {x.ndim} dimensions")
    return (x.with_shape([n * r for n, r in zip(x.shape, repeats, strict=True)]),)


def _moves(call: Binding) -> tuple[Move, ...]:
    pairs = zip(call.attrs["repeats"], call.x.shape, strict=True)
    y = call.y.reshape([n for pair in pairs for n in pair])
    return ((call.x[((None, slice(None)) * call.x.ndim + (...,))], y),)


def _gradient(b: Backward) -> Terms:
    pairs = zip(b.attrs["repeats"], b.signature.x.shape, strict=True)
    copies = b.reshape(b.dy, [n for pair in pairs for n in pair])
    total = b.sum(copies, range(0, 2 * b.signature.x.ndim, 2)) if b.signature.x.ndim else copies
    return (b.reshape(total, b.signature.x.shape),)


TILE = OpSchema(
    name="tile",
    summary="x, `repeats[i]` times along axis i.",
    infer=_infer,
    kernels=movement(_moves),
    attributes=(Attribute("repeats", integers),),
    cost=copy_cost,
    gradient=_gradient,
    bit_copies=True,
)
OPS = (TILE,)


def tile(x: V, repeats: Lengths) -> V:
    """Repeats x repeats[i] times along axis i; these may be vars of integers."""
    return apply1(TILE, x, repeats=lengths(repeats, few))
