"""The greatest or least elements along an axis, and where they stand (ONNX TopK-11).

numba compiles a heap of the best so far; numpy sorts all elements.
"""

from functools import partial
from math import prod
from typing import cast

import numpy as np

from ops.common.apply import V, apply
from ops.common.costs import flops_per_input_element
from ops.common.indices import INT64
from ops.common.lengths import Length, length
from ops.common.thunks import in_turn, nothing
from ops.index.args import BEST
from ops.index.scatter import SCATTER_ELEMENTS
from ops.index.sorting import Order
from ops.native.functions import function_call
from ops.schema.attributes import Attribute, flag, integer
from ops.schema.backends import NUMBA
from ops.schema.backward import Backward, Terms
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Signature, Specs, Thunk
from ops.symbolic.guesses import numbers_to
from ops.tensor.errors import DtypeError, ShapeError
from ops.tensor.spec import NUMBERS, TensorSpec, normalize_axis, spec_of

_HALF, _SINGLE = np.dtype("float16"), np.dtype("float32")


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    (x,) = inputs
    axis, k = normalize_axis(attrs["axis"], x.ndim), attrs["k"]
    if x.dtype not in NUMBERS:
        raise DtypeError(f"takes numbers, not {x.dtype}")
    if not 0 <= k <= x.shape[axis]:
        raise ShapeError(f"k = {k} of the {x.shape[axis]} elements along axis {axis}")
    values = x.with_shape((*x.shape[:axis], k, *x.shape[axis + 1 :]))
    return values, values.with_dtype(INT64)


def _temporaries(signature: Signature) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    """Returns the specs of all elements, of the chosen ones and of their places.

    The axis is moved to the end: each row has all elements along it.
    """
    x, axis = signature.x, normalize_axis(signature.attrs["axis"], signature.x.ndim)
    rest = (*x.shape[:axis], *x.shape[axis + 1 :])
    data = TensorSpec((*rest, x.shape[axis]), _SINGLE if x.dtype == _HALF else x.dtype)
    values = data.with_shape((*rest, signature.attrs["k"]))
    return data, values, values.with_dtype(INT64)


def _top_k(call: Binding) -> Thunk:
    if call.y.size == 0:
        return nothing
    tables = call.temporaries
    data, values, places = (t.reshape(prod(t.shape[:-1]), t.shape[-1]) for t in tables)
    x, best, at = (np.moveaxis(a, call.attrs["axis"], -1) for a in (call.x, *call.outputs))
    return in_turn(
        partial(np.copyto, tables[0], x),
        function_call(
            "ops.index.top_code",
            f"top_k_{data.dtype.name}",
            BEST,
            data=data,
            values=values,
            places=places,
            rows=len(data),
            length=data.shape[1],
            k=values.shape[1],
            largest=call.attrs["largest"],
        ),
        partial(np.copyto, best, tables[1], casting="unsafe"),
        partial(np.copyto, at, tables[2]),
    )


def _sorted_specs(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of all elements, of the places of the chosen ones, of the chosen ones, and of the sort."""
    data, values, _ = _temporaries(signature)
    data = data.with_dtype(signature.x.dtype)
    return data, values.with_dtype(INT64), values.with_dtype(signature.x.dtype), *_order(data).specs


def _order(data: TensorSpec) -> Order:
    return Order(prod(data.shape[:-1]), data.shape[-1], 1, data.dtype)


def _top_k_sorted(call: Binding) -> Thunk:
    if call.y.size == 0:
        return nothing
    data, positions, values, *scratch = call.temporaries
    order, k = _order(spec_of(data)), call.attrs["k"]
    x, best, at = (np.moveaxis(a, call.attrs["axis"], -1) for a in (call.x, *call.outputs))
    table = data.reshape(order.rows, order.slices, 1)
    steps, _, places = order.sort(table, scratch, descending=call.attrs["largest"])
    chosen, firsts = places[:, :k], (np.arange(order.rows) * order.slices).reshape(-1, 1)
    return in_turn(
        partial(np.copyto, data, x),
        *steps,
        partial(np.copyto, positions.reshape(chosen.shape), chosen),
        partial(np.copyto, at, positions),
        partial(np.add, chosen, firsts, positions.reshape(chosen.shape)),
        partial(np.take, data.reshape(-1), positions, None, values, "clip"),
        partial(np.copyto, best, values),
    )


def _gradient(b: Backward) -> Terms:
    """Returns the gradient: each chosen element gets its own, and none is chosen twice."""
    zeros = b.zeros(b.signature.x)
    return (b.apply1(SCATTER_ELEMENTS, zeros, b.outputs[1], b.dy, axis=b.attrs["axis"]),)


TOP_K = OpSchema(
    name="top_k",
    summary="The `k` greatest (or least) elements along `axis`, best first, and their int64 indices.",
    infer=_infer,
    kernels=(
        Kernel("numba", _top_k, _temporaries, backend=NUMBA),
        Kernel("sort", _top_k_sorted, _sorted_specs),
    ),
    attributes=(
        Attribute("k", integer),
        Attribute("axis", integer, -1),
        Attribute("largest", flag, True),
        Attribute("sorted", flag, True),
    ),
    cost=flops_per_input_element(1),
    gradient=_gradient,
)
OPS = (TOP_K,)


def top_k(x: V, k: Length, axis: int = -1, largest: bool = True) -> tuple[V, V]:
    """Returns the `k` greatest (or least) elements along `axis`, best first, and their int64 indices.

    `k` may be a var of one integer, which the run decides.
    """
    most = x.spec.shape[normalize_axis(axis, len(x.spec.shape))]
    return cast(tuple[V, V], apply(TOP_K, (x,), k=length(k, numbers_to(most)), axis=axis, largest=largest))
