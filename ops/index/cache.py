"""Rows written into a cache at the place of each sample (ONNX TensorScatter-24)."""

import numpy as np

from ops.common.apply import Operand, V, apply1
from ops.common.indices import IndexRangeError, check_index_dtype
from ops.common.thunks import copier
from ops.schema.attributes import Attribute, flag, integer
from ops.schema.schema import Attrs, Binding, Cost, Kernel, OpSchema, Signature, Specs, Thunk, overwrites_first
from ops.tensor.errors import AttributeValueError, DtypeError, ShapeError
from ops.tensor.spec import TensorSpec, normalize_axis


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    cache, update, places = inputs
    check_index_dtype(places)
    if update.dtype != cache.dtype:
        raise DtypeError(f"rows of {update.dtype} do not fit into a cache of {cache.dtype}")
    axis = normalize_axis(attrs["axis"], cache.ndim)
    if axis == 0:
        raise AttributeValueError("axis is 0, which is that of the samples; rows lie along another one")
    longest = update.shape[axis] if axis < update.ndim else 0
    if update.shape != (*cache.shape[:axis], longest, *cache.shape[axis + 1 :]):
        raise _too_large(cache, update, axis)
    if places.shape != cache.shape[:1]:
        raise ShapeError(f"places {places} are not one for each of {cache.shape[0]} samples")
    return (cache,)


def _too_large(cache: TensorSpec, update: TensorSpec, axis: int) -> ShapeError:
    return ShapeError(f"rows {update} do not fit into a cache {cache} along axis {axis}")


def _bind(call: Binding) -> Thunk:
    """Returns the copy. That there are not more rows than places is checked here, as open lengths tell no order."""
    cache, update, places = call.inputs
    axis, circular = normalize_axis(call.attrs["axis"], cache.ndim), call.attrs["circular"]
    if update.shape[axis] > cache.shape[axis]:
        raise _too_large(call.signature.inputs[0], call.signature.inputs[1], axis)
    y, rows = np.moveaxis(call.y, axis, 1), np.moveaxis(update, axis, 1)
    length, count = y.shape[1], rows.shape[1]
    copy = copier(cache, call.y)

    def run() -> None:
        starts = [place % length if circular and length else place for place in places.tolist()]
        for start in starts:
            if start < 0 or (start + count > length and not circular):
                raise IndexRangeError(f"{count} rows from row {start} on do not fit into a cache of {length}")
        copy()
        for sample, new, start in zip(y, rows, starts, strict=True):
            behind = min(count, length - start)
            sample[start : start + behind] = new[:behind]
            sample[: count - behind] = new[behind:]

    return run


def _cost(signature: Signature) -> Cost:
    cache, update = signature.inputs[:2]
    return Cost(0, 2 * (cache.nbytes + update.nbytes))


TENSOR_SCATTER = OpSchema(
    name="tensor_scatter",
    summary="A copy of a cache with rows along `axis` replaced, from the place of each sample on; where `circular`,"
    " rows behind the end go to the front.",
    infer=_infer,
    kernels=(Kernel("numpy", _bind),),
    arity=(3, 3),
    attributes=(Attribute("axis", integer, -2), Attribute("circular", flag, False)),
    overwrites=overwrites_first,
    cost=_cost,
)
OPS = (TENSOR_SCATTER,)


def tensor_scatter(cache: V, update: Operand, places: Operand, axis: int = -2, *, circular: bool = False) -> V:
    """Returns the cache with `update` written along `axis`, for each sample (axis 0) from its row in `places` on."""
    return apply1(TENSOR_SCATTER, cache, update, places, axis=axis, circular=circular)
