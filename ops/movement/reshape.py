"""The same elements in C order under another shape (ONNX Reshape, Flatten, Squeeze, Unsqueeze)."""

import math

from ops.common.apply import V, apply1
from ops.common.lengths import Lengths, new_shape
from ops.common.tiling import cut
from ops.movement.copies import Move
from ops.movement.kernels import view_operator
from ops.schema.attributes import Attribute, flag, integers
from ops.schema.backward import Backward, Terms
from ops.schema.schema import Attrs, Binding, Signature, Specs, Stripe
from ops.tensor.errors import ShapeError
from ops.tensor.layout import Layout
from ops.tensor.spec import Axes, Shape, normalize_axes, normalize_axis, several


def resolve_shape(shape: tuple[int, ...], source: Shape, zero_copies: bool) -> Shape:
    """Returns `shape` with its -1 computed and, where `zero_copies`, each 0 replaced by the dimension of `source`.

    Raises ShapeError where elements do not fit, or a dimension is missing or below -1.
    """
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


def _rows(signature: Signature, first: int, last: int, axis: int) -> Stripe | None:
    """Returns the call of the fewest rows that are whole rows of x, too. None where x has other images; of columns,
    where it has other rows.
    """
    x, y = signature.x.shape, signature.y.shape
    if len(x) <= axis or x[:axis] != y[:axis] or 0 in y:
        return None
    read, written = math.prod(x[axis + 1 :]), math.prod(y[axis + 1 :])
    step = written // math.gcd(read, written)
    low = first * written // read // step * step
    high = -(-last * written // (read * step)) * step
    begin, end = low * read // written, high * read // written
    attrs = {**signature.attrs, "shape": (1, *y[1:axis], end - begin, *y[axis + 1 :])}
    return Stripe((cut(axis, low, high),), cut(axis, begin, end), attrs)


RESHAPE = view_operator(
    "reshape",
    "The elements of x in C order under `shape`; -1 is what is left, 0 the length in x where `zero_copies`.",
    infer=_infer,
    views=_views,
    moves=_moves,
    gradient=_gradient,
    rows=_rows,
    attributes=(Attribute("shape", integers), Attribute("zero_copies", flag, False)),
)
OPS = (RESHAPE,)


def reshape(x: V, shape: Lengths, *, zero_copies: bool = False) -> V:
    """Returns the elements in C order; one dimension may be -1, and 0 is the one of x there where `zero_copies`.

    A length may be a var of one integer, and the shape a var of integers, which the run decides.
    """
    return apply1(RESHAPE, x, shape=new_shape(shape, x.spec.shape, zero_copies), zero_copies=zero_copies)


def flatten(x: V, axis: int = 1) -> V:
    """Returns a matrix: the dimensions before `axis` by those from it on."""
    shape = x.spec.shape
    cut = axis if axis == len(shape) else normalize_axis(axis, len(shape))
    return reshape(x, (math.prod(shape[:cut]), math.prod(shape[cut:])))


def squeeze(x: V, axes: Axes | None = None) -> V:
    """Removes the dimensions `axes`, which must have length 1; all such where `axes` is None."""
    shape = x.spec.shape
    gone = {i for i, n in enumerate(shape) if n == 1} if axes is None else set(normalize_axes(axes, len(shape)))
    if any(shape[i] != 1 for i in gone):
        raise ShapeError(f"axes {sorted(gone)} of shape {shape} are not all of length 1")
    return reshape(x, [n for i, n in enumerate(shape) if i not in gone])


def unsqueeze(x: V, axes: Axes) -> V:
    """Inserts dimensions of length 1, at the places `axes` of the result."""
    places = several(axes)
    ndim = len(x.spec.shape) + len(places)
    new, kept = set(normalize_axes(places, ndim)), iter(x.spec.shape)
    return reshape(x, [1 if i in new else next(kept) for i in range(ndim)])
