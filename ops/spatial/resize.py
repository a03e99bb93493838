"""Resizing by interpolation, one axis after the other (ONNX Resize-19)."""

import math
from collections.abc import Sequence

from ops.common.apply import V, apply1
from ops.common.tiling import ROWS, cut
from ops.schema.attributes import Attribute, flag, integers, number, numbers, one_of
from ops.schema.backward import Backward, Terms
from ops.schema.schema import Attrs, Cost, OpSchema, Signature, Specs, Stripe
from ops.spatial.resize_axes import changed_axes, has_rows_read, repeats, rows_read
from ops.spatial.resize_compiled import RESIZE_NATIVE
from ops.spatial.resize_passes import ADD_UP, INTERPOLATE, REPEATS
from ops.spatial.resize_tables import COORDINATES, NEAREST
from ops.tensor.errors import ArityError, AttributeValueError, DtypeError, ShapeError
from ops.tensor.spec import BFLOAT16, FLOATS, NUMBERS, TensorSpec

_PLACES = 4
"""The numbers of `rows`: the rows of the whole x and y, and which rows of these are the first ones here."""


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    (x,) = inputs
    sizes, scales, roi = attrs["sizes"], attrs["scales"], attrs["roi"]
    if scales and (len(scales) != x.ndim or not all(0 < s < math.inf for s in scales)):
        raise AttributeValueError(f"scales {scales} are not one positive number for each dimension of {x.shape}")
    if scales and not sizes:
        sizes = tuple(math.floor(n * s) for n, s in zip(x.shape, scales, strict=True))
    if len(sizes) != x.ndim or min(sizes, default=0) < 0:
        raise AttributeValueError(f"sizes {sizes} are not one size for each dimension of {x.shape}")
    if roi and len(roi) != 2 * x.ndim:
        raise AttributeValueError(f"roi {roi} is not one start and one end for each dimension of {x.shape}")
    if attrs["coordinate_transformation_mode"] == "tf_crop_and_resize" and not roi:
        raise AttributeValueError("coordinate_transformation_mode tf_crop_and_resize needs a roi")
    if x.size == 0 and 0 not in sizes:
        raise ShapeError(f"an empty tensor {x.shape} cannot be resized to {sizes}")
    if x.dtype not in NUMBERS | {BFLOAT16} and attrs["mode"] != "nearest":
        raise DtypeError(f"mode {attrs['mode']} interpolates numbers, not {x.dtype}")
    y = x.with_shape(sizes)
    if attrs["rows"]:
        _check_rows(x, y, attrs)
    return (y,)


def _check_rows(x: TensorSpec, y: TensorSpec, attrs: Attrs) -> None:
    """Raises AttributeValueError for `rows` that are none, as kernels would read elements that x does not have."""
    rows = attrs["rows"]
    if len(rows) != _PLACES:
        raise AttributeValueError(f"rows {rows} are not {_PLACES} numbers: those of x and y, and the first ones")
    if not has_rows_read(Signature((x,), (y,), {n: v for n, v in attrs.items() if n != "shape"})):
        raise AttributeValueError(f"rows {rows}: x {x.shape} does not have the rows that rows of {y.shape} read there")


def _gradient(b: Backward) -> Terms:
    return (b.apply1(RESIZE_GRADIENT, b.dy, shape=b.signature.x.shape, **b.attrs),)


def _infer_gradient(inputs: Specs, attrs: Attrs) -> Specs:
    x = inputs[0].with_shape(attrs["shape"])
    (y,) = _infer((x,), attrs)
    if y != inputs[0] or y.dtype not in FLOATS:
        raise ShapeError(f"{inputs[0]} is no gradient of x of shape {x.shape} resized; that is {y}")
    return (x,)


def _gradient_again(b: Backward) -> Terms:
    return (b.apply1(RESIZE, b.dy, **{n: v for n, v in b.attrs.items() if n != "shape"}),)


def _cost(signature: Signature) -> Cost:
    taps = {"nearest": 1, "linear": 4, "cubic": 16}[signature.attrs["mode"]]
    return Cost(taps * signature.y.size, signature.x.nbytes + signature.y.nbytes)


def _rows(signature: Signature, first: int, last: int, axis: int) -> Stripe | None:
    """Returns the call of some rows; where rows are repeated, of all that repeat the same.

    None where images mix, and of columns that are not repeated.
    """
    if signature.x.size == 0 or any(axis == 0 for axis, _ in changed_axes(signature)):
        return None
    if repeats(signature):
        times = signature.y.shape[axis] // signature.x.shape[axis]
        read = range(first // times, -(-last // times))
        first, last = read.start * times, read.stop * times
        attrs = dict(signature.attrs)
    elif axis != ROWS:
        return None
    else:
        read, rows = rows_read(signature, first, last)
        attrs = {**signature.attrs, "rows": rows}
    attrs["sizes"] = (1, *signature.y.shape[1:axis], last - first, *signature.y.shape[axis + 1 :])
    return Stripe((cut(axis, read.start, read.stop),), cut(axis, first, last), attrs)


_ATTRIBUTES = (
    Attribute("sizes", integers, ()),
    Attribute("scales", numbers, ()),
    Attribute("mode", one_of("nearest", "linear", "cubic"), "nearest"),
    Attribute("coordinate_transformation_mode", one_of(*COORDINATES), "half_pixel"),
    Attribute("nearest_mode", one_of(*NEAREST), "round_prefer_floor"),
    Attribute("cubic_coeff_a", number, -0.75),
    Attribute("exclude_outside", flag, False),
    Attribute("extrapolation_value", number, 0.0),
    Attribute("roi", numbers, ()),
    Attribute("antialias", flag, False),
    Attribute("rows", integers, ()),
)
RESIZE = OpSchema(
    name="resize",
    summary="x brought to `sizes` by interpolation; where `scales` are given, coordinates follow them, and so do sizes"
    " that are not given. Where `rows` are given, x and the output are some rows (axis 1) of larger tensors.",
    infer=_infer,
    kernels=(REPEATS[0], RESIZE_NATIVE, REPEATS[1], INTERPOLATE),
    attributes=_ATTRIBUTES,
    cost=_cost,
    gradient=_gradient,
    rows=_rows,
)
RESIZE_GRADIENT = OpSchema(
    name="resize_gradient",
    summary="dy brought back to `shape` by the weights of the resize that it is the gradient of.",
    infer=_infer_gradient,
    kernels=(ADD_UP, INTERPOLATE),
    attributes=(Attribute("shape", integers), *_ATTRIBUTES),
    cost=_cost,
    gradient=_gradient_again,
)
OPS = (RESIZE, RESIZE_GRADIENT)


def resize(
    x: V,
    sizes: Sequence[int] = (),
    scales: Sequence[float] = (),
    *,
    mode: str = "nearest",
    coordinate_transformation_mode: str = "half_pixel",
    nearest_mode: str = "round_prefer_floor",
    cubic_coeff_a: float = -0.75,
    exclude_outside: bool = False,
    extrapolation_value: float = 0.0,
    roi: Sequence[float] = (),
    antialias: bool = False,
) -> V:
    """Resizes x to `sizes`, or to floor(shape * scales); one entry for each dimension. Raises ArityError."""
    if not sizes and not scales:
        raise ArityError("resize: sizes or scales must be given")
    return apply1(
        RESIZE,
        x,
        sizes=tuple(sizes),
        scales=tuple(scales),
        mode=mode,
        coordinate_transformation_mode=coordinate_transformation_mode,
        nearest_mode=nearest_mode,
        cubic_coeff_a=cubic_coeff_a,
        exclude_outside=exclude_outside,
        extrapolation_value=extrapolation_value,
        roi=tuple(roi),
        antialias=antialias,
    )
