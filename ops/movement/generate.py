"""Triangles, identity matrices and one-hot vectors (ONNX Trilu-14, EyeLike-22, OneHot-11, Hardmax-13)."""

from functools import partial

import numpy as np
import numpy.typing as npt

from ops.common.apply import Operand, V, apply1
from ops.common.indices import INT64, add_positions, element_strides
from ops.common.lengths import Length, length
from ops.common.thunks import copier, in_turn
from ops.schema.attributes import Attribute, element_type, flag, integer, optional
from ops.schema.backward import Backward, Tensor, Terms
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Signature, Specs, Thunk, overwrites_first, zero_gradient
from ops.tensor.errors import DtypeError, ShapeError
from ops.tensor.spec import BOOL, FLOATS, NUMBERS, Array, Shape, TensorSpec, normalize_axis


def _trilu_infer(inputs: Specs, _: Attrs) -> Specs:
    if inputs[0].ndim < 2:
        raise ShapeError(f"takes matrices, not shape {inputs[0].shape}")
    return inputs


def _trilu(call: Binding) -> Thunk:
    y, upper, k = call.y, call.attrs["upper"], call.attrs["k"]
    height, width = y.shape[-2:]
    cuts = [min(max(row + k + (not upper), 0), width) for row in range(height)]
    gone = [y[..., row, :cut] if upper else y[..., row, cut:] for row, cut in enumerate(cuts)]
    return in_turn(copier(call.x, y), *(partial(part.fill, 0) for part in gone if part.size))


def _eye_infer(inputs: Specs, attrs: Attrs) -> Specs:
    (x,) = inputs
    if x.ndim != 2:
        raise ShapeError(f"takes a matrix, not shape {x.shape}")
    return (x.with_dtype(attrs["dtype"] or x.dtype),)


def _eye_like(call: Binding) -> Thunk:
    y, k = call.y, call.attrs["k"]
    height, width = y.shape
    first = k if k >= 0 else -k * width
    length = max(min(height, width - k) if k >= 0 else min(height + k, width), 0)
    diagonal = y.reshape(-1)[first :: width + 1][:length]
    return in_turn(partial(y.fill, 0), partial(diagonal.fill, 1))


def _one_hot_axis(attrs: Attrs, indices: TensorSpec) -> int:
    return normalize_axis(attrs["axis"], indices.ndim + 1)


def _one_hot_infer(inputs: Specs, attrs: Attrs) -> Specs:
    indices, values = inputs
    if indices.dtype not in NUMBERS:
        raise DtypeError(f"indices must be numbers, not {indices.dtype}")
    if values.shape != (2,):
        raise ShapeError(f"values must be the two of off and on, not shape {values.shape}")
    if attrs["depth"] < 0:
        raise ShapeError(f"depth {attrs['depth']} is negative")
    axis = _one_hot_axis(attrs, indices)
    return (values.with_shape((*indices.shape[:axis], attrs["depth"], *indices.shape[axis:])),)


def _one_hot_temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    flat = signature.x.with_dtype(INT64)
    return flat, flat, flat.with_dtype(BOOL), flat.with_dtype(signature.y.dtype)


def _positions(shape: Shape, axis: int, flat: Array, term: Array) -> Thunk:
    """Returns the thunk that turns coordinates along `axis` (`flat`) into positions in a dense tensor of `shape`."""
    strides = element_strides(shape)
    return in_turn(
        partial(np.multiply, flat, np.asarray(strides[axis], INT64), out=flat),
        add_positions(flat, term, strides[:axis] + strides[axis + 1 :]),
    )


def _one_hot(call: Binding) -> Thunk:
    indices, values = call.inputs
    y, axis = call.y, _one_hot_axis(call.attrs, call.signature.x)
    flat, term, mask, written = call.temporaries
    depth, zero = (np.asarray(n, INT64) for n in (call.attrs["depth"], 0))
    last = np.asarray(max(call.attrs["depth"] - 1, 0), INT64)
    fill = partial(np.copyto, y, values[0:1].reshape(()))
    if y.size == 0:
        return fill
    return in_turn(
        fill,
        partial(np.copyto, flat, indices, casting="unsafe"),
        partial(np.less, flat, zero, out=mask),
        partial(np.add, flat, depth, out=flat, where=mask),
        partial(np.copyto, term, flat),
        partial(np.maximum, flat, zero, out=flat),
        partial(np.minimum, flat, last, out=flat),
        partial(np.equal, flat, term, out=mask),
        partial(np.copyto, written, values[0:1].reshape(())),
        partial(np.copyto, written, values[1:2].reshape(()), where=mask),
        _positions(y.shape, axis, flat, term),
        partial(y.reshape(-1).__setitem__, flat.reshape(-1), written.reshape(-1)),
    )


def _hardmax_infer(inputs: Specs, attrs: Attrs) -> Specs:
    (x,) = inputs
    if x.dtype not in FLOATS:
        raise DtypeError(f"takes floating-point numbers, not {x.dtype}")
    if x.shape[normalize_axis(attrs["axis"], x.ndim)] == 0:
        raise ShapeError(f"axis {attrs['axis']} of shape {x.shape} has no element to choose")
    return (x,)


def _hardmax_temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    axis, shape = normalize_axis(signature.attrs["axis"], signature.x.ndim), signature.x.shape
    rest = TensorSpec(shape[:axis] + shape[axis + 1 :], INT64)
    return signature.x.with_shape((*rest.shape, shape[axis])), rest, rest


def _hardmax(call: Binding) -> Thunk:
    axis = normalize_axis(call.attrs["axis"], call.x.ndim)
    last, flat, term = call.temporaries
    ones = np.ones((), call.y.dtype)
    return in_turn(
        partial(np.copyto, last, np.moveaxis(call.x, axis, -1)),
        partial(np.argmax, last, axis=-1, out=flat),
        _positions(call.y.shape, axis, flat, term),
        partial(call.y.fill, 0),
        partial(call.y.reshape(-1).__setitem__, flat.reshape(-1), ones),
    )


def _trilu_gradient(b: Backward) -> Terms:
    return (b.apply1(TRILU, b.dy, **b.attrs),)


def _one_hot_gradient(b: Backward) -> Terms:
    """Returns the gradient of the two values: each gets the sum of dy over the places where it stands."""

    def of_values() -> Tensor:
        on = b.sum(b.apply1(ONE_HOT, b.x, np.array([0, 1], b.signature.y.dtype), **b.attrs) * b.dy)
        return b.concat([b.reshape(v, (1,)) for v in (b.sum(b.dy) - on, on)], 0)

    return b.terms(None, of_values)


TRILU = OpSchema(
    name="trilu",
    summary="x with zeros outside its upper (or lower) triangle, `k` above the main diagonal.",
    infer=_trilu_infer,
    kernels=(Kernel("numpy", _trilu),),
    attributes=(Attribute("upper", flag, True), Attribute("k", integer, 0)),
    overwrites=overwrites_first,
    gradient=_trilu_gradient,
)
EYE_LIKE = OpSchema(
    name="eye_like",
    summary="Ones on the diagonal `k` above the main one, of the shape of x.",
    infer=_eye_infer,
    kernels=(Kernel("numpy", _eye_like),),
    gradient=zero_gradient,
    attributes=(Attribute("dtype", optional(element_type), None), Attribute("k", integer, 0)),
)
ONE_HOT = OpSchema(
    name="one_hot",
    summary="values[1] where a new `axis` of length `depth` equals the index, else values[0].",
    infer=_one_hot_infer,
    kernels=(Kernel("numpy", _one_hot, _one_hot_temporaries),),
    gradient=_one_hot_gradient,
    arity=(2, 2),
    attributes=(Attribute("depth", integer), Attribute("axis", integer, -1)),
)
HARDMAX = OpSchema(
    name="hardmax",
    summary="One at the first greatest element along `axis`, else zero.",
    infer=_hardmax_infer,
    kernels=(Kernel("numpy", _hardmax, _hardmax_temporaries),),
    gradient=zero_gradient,
    attributes=(Attribute("axis", integer, -1),),
)
OPS = (TRILU, EYE_LIKE, ONE_HOT, HARDMAX)


def trilu(x: V, upper: bool = True, k: int = 0) -> V:
    """Returns the upper (or lower) triangle of matrices, `k` above the main diagonal, and zeros elsewhere."""
    return apply1(TRILU, x, upper=upper, k=k)


def eye_like(x: V, dtype: npt.DTypeLike | None = None, k: int = 0) -> V:
    """Returns ones on the diagonal `k` above the main one, in the shape of x."""
    return apply1(EYE_LIKE, x, dtype=dtype, k=k)


def one_hot(indices: V, values: Operand, depth: Length, axis: int = -1) -> V:
    """Returns values[1] where the new `axis` of length `depth` is the index, else values[0].

    `depth` may be a var of one integer.
    """
    return apply1(ONE_HOT, indices, values, depth=length(depth), axis=axis)


def hardmax(x: V, axis: int = -1) -> V:
    """Returns one at the first greatest element along `axis`, else zero."""
    return apply1(HARDMAX, x, axis=axis)
