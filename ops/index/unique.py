"""The distinct elements of a tensor, or slices along an axis (ONNX Unique-11).

How many there are only data decide: all outputs have room for as many as there can be, and a scalar says how many there
are. NaN equals NaN and comes last, as numpy has it for elements (for onnxruntime NaN equals whatever it is compared
with); -0.0 equals 0.0. Of equals the first one is given.

numba compiles a merge sort of places; numpy sorts keys (`ops.index.sorting`) and counts runs of equal ones.
"""

import math
from functools import partial

import numpy as np

from ops.common.apply import V, apply
from ops.common.blocks import working_dtype
from ops.common.counts import SCALAR
from ops.common.elementwise import require_dtype
from ops.common.indices import INT64
from ops.common.lengths import length
from ops.index.args import SLICES
from ops.index.runs import Runs
from ops.index.sorting import Order
from ops.movement.slicing import slice as slice_axes
from ops.native.functions import function_call
from ops.schema.attributes import Attribute, flag, integer, optional
from ops.schema.backends import NUMBA
from ops.schema.schema import Attrs, Binding, Cost, Kernel, OpSchema, Signature, Specs, Thunk, contiguous_at
from ops.symbolic.guesses import numbers_to
from ops.tensor.spec import BFLOAT16, BOOL, COMPUTED, Array, Shape, TensorSpec, normalize_axis


def _table(x: TensorSpec, attrs: Attrs) -> tuple[int, int, int]:
    """Returns the shape of x seen as (outer, slices, inner)."""
    if attrs["axis"] is None:
        return 1, x.size, 1
    axis = normalize_axis(attrs["axis"], x.ndim)
    return math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    (x,) = inputs
    require_dtype(x, COMPUTED)
    each = TensorSpec((_table(x, attrs)[1],), INT64)
    values: Shape = each.shape if attrs["axis"] is None else x.shape
    return x.with_shape(values), each, each, each, SCALAR


def _temporaries(signature: Signature) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    """Returns the specs of two orders of all slices, and of x widened, where its elements have 16 bits."""
    wide, each = working_dtype(signature.x.dtype), signature.outputs[1]
    return each, each, TensorSpec((0,) if wide == signature.x.dtype else signature.x.shape, wide)


def _unique(call: Binding) -> Thunk:
    x, (values, first, inverse, counts, number) = call.x, call.outputs
    order, spare, wide = call.temporaries
    shape, widened = _table(call.signature.x, call.attrs), wide.dtype != x.dtype
    source, target = x.reshape(shape), values.reshape(shape)
    keys: Array = wide.reshape(shape) if widened else source.view(np.uint8) if x.dtype == BOOL else source
    outer, slices, inner = shape
    count = function_call(
        "ops.index.unique_code",
        f"unique_{keys.dtype.name}",
        SLICES,
        x=keys,
        outer=outer,
        slices=slices,
        inner=inner,
        in_order=call.attrs["sorted"],
        order=order,
        spare=spare,
        inverse=inverse,
        first=first,
        counts=counts,
    )

    def run() -> None:
        if widened:
            np.copyto(wide, x)
        total = count()
        number.fill(total)
        if target.size:
            np.take(source, first, axis=1, out=target, mode="clip")
            target[:, total:].fill(0)

    return run


def _order(signature: Signature) -> Order:
    outer, slices, inner = _table(signature.x, signature.attrs)
    dtype = signature.x.dtype  # numpy has no integers in the order of bfloat16
    return Order(1, slices, outer * inner, working_dtype(dtype) if dtype == BFLOAT16 else dtype)


def _sorted_specs(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of x as (slices, elements), of marks, of four arrays of numbers of slices and one more, and of
    the sort.
    """
    order = _order(signature)
    numbers = TensorSpec((order.slices + 1,), INT64)
    slices, marks = TensorSpec((1, order.slices, order.width), order.dtype), TensorSpec((order.slices,), BOOL)
    return slices, marks, *(numbers,) * 4, *order.specs


def _unique_sorted(call: Binding) -> Thunk:
    slices, marks, *scratch = call.temporaries
    rooms, scratch = scratch[:4], scratch[4:]
    sorting, keys, places = _order(call.signature).sort(slices, scratch)
    outer, n, inner = _table(call.signature.x, call.attrs)
    source, target = call.x.reshape((outer, n, inner)), call.y.reshape((outer, n, inner))
    load = partial(np.copyto, slices.reshape((n, outer, inner)), source.swapaxes(0, 1))
    _, first, inverse, counts, number = call.outputs
    runs = Runs(keys[0], places[0], tuple(rooms), marks)

    def run() -> None:
        load()
        for step in sorting:
            step()
        total = runs.write(first, inverse, counts, in_order=call.attrs["sorted"]) if n else 0
        number.fill(total)
        if target.size:
            np.take(source, first, axis=1, out=target, mode="clip")
            target[:, total:].fill(0)

    return run


def _cost(signature: Signature) -> Cost:
    """Returns the cost: a merge sort compares each slice about log2 n times.

    How many elements of two slices it looks at depends on the data.
    """
    rounds = max(signature.outputs[1].size, 1).bit_length()
    return Cost(signature.x.size * rounds, signature.x.nbytes + sum(s.nbytes for s in signature.outputs))


UNIQUE = OpSchema(
    name="unique",
    summary="Distinct slices along `axis` (elements, where none is given), where each first occurs, the number of each"
    " slice, how often each occurs; zeros behind the last of them, and how many there are.",
    infer=_infer,
    kernels=(
        Kernel("numba", _unique, _temporaries, contiguous_at(0), backend=NUMBA),
        Kernel("sort", _unique_sorted, _sorted_specs, contiguous_at(0)),
    ),
    attributes=(Attribute("axis", optional(integer), None), Attribute("sorted", flag, True)),
    cost=_cost,
)
OPS = (UNIQUE,)


def unique(x: V, axis: int | None = None, *, in_order: bool = True) -> tuple[V, V, V, V]:
    """Returns the distinct slices along `axis` (elements where that is None), as numpy's `unique` does, and three more.

    Those are int64: where each occurs first, the number of each slice of x, and how often each occurs. If not
    `in_order`, the slices come as they occur.
    """
    values, first, inverse, times, number = apply(UNIQUE, (x,), axis=axis, sorted=in_order)
    at = 0 if axis is None else normalize_axis(axis, x.spec.ndim)
    count = length(number, numbers_to(first.spec.shape[0], least=1))
    front = (slice_axes(v, [0], [count], [k]) for v, k in ((values, at), (first, 0), (times, 0)))
    values, first, times = front
    return values, first, inverse, times
