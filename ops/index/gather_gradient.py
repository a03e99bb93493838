"""What gradients of gather are: rows of dy, added up where they were picked from.

numba compiles the sums; numpy has `add.at`, which adds in the same order, so that the bits are the same.
"""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from ops.common.elementwise import require_dtype
from ops.common.indices import (
    ENDS,
    INT64,
    PositionScratch,
    along_axis,
    check_index_dtype,
    from_front,
    position_specs,
    row_specs,
    rows,
)
from ops.common.thunks import in_turn
from ops.index.args import ADD_ROWS
from ops.native.functions import function_call
from ops.schema.attributes import Attribute, integer, integers
from ops.schema.backends import NUMBA
from ops.schema.schema import Attrs, Binding, Cost, Kernel, OpSchema, Signature, Specs, Thunk, contiguous_at
from ops.tensor.errors import ShapeError
from ops.tensor.spec import FLOATS, Array, Shape, TensorSpec, normalize_axis

Adder = Callable[[Array, Array, Array], Thunk]
_HALF, _SINGLE = np.dtype("float16"), np.dtype("float32")


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    dy, indices = inputs
    require_dtype(dy, FLOATS)
    check_index_dtype(indices)
    axis, shape = normalize_axis(attrs["axis"], len(attrs["shape"])), attrs["shape"]
    _require_shape(dy, shape[:axis] + indices.shape + shape[axis + 1 :])
    return (dy.with_shape(shape),)


def _infer_nd(inputs: Specs, attrs: Attrs) -> Specs:
    dy, indices = inputs
    require_dtype(dy, FLOATS)
    check_index_dtype(indices)
    named, shape = attrs["batch_dims"] + indices.shape[-1], attrs["shape"]
    _require_shape(dy, indices.shape[:-1] + shape[named:])
    return (dy.with_shape(shape),)


def _infer_elements(inputs: Specs, attrs: Attrs) -> Specs:
    dy, indices = inputs
    require_dtype(dy, FLOATS)
    check_index_dtype(indices)
    axis, shape = normalize_axis(attrs["axis"], len(attrs["shape"])), attrs["shape"]
    _require_shape(dy, indices.shape)
    pairs = enumerate(zip(dy.shape, shape, strict=False))
    if len(shape) != dy.ndim or any(n > m for i, (n, m) in pairs if i != axis):
        raise ShapeError(f"a gradient of shape {dy.shape} was not picked out of {shape} along axis {axis}")
    return (dy.with_shape(shape),)


def _require_shape(dy: TensorSpec, wanted: Shape) -> None:
    if dy.shape != wanted:
        raise ShapeError(f"a gradient of shape {dy.shape}; {wanted} is wanted")


def _wide(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of both tensors in float32 where x is float16, which is added up in float32; else none."""
    specs = (signature.x, signature.y)
    return tuple(s.with_dtype(_SINGLE) for s in specs) if signature.x.dtype == _HALF else ()


def _add_rows(rows: Array, places: Array, sums: Array) -> Thunk:
    """Returns the compiled call that adds rows."""
    groups, count, width = rows.shape
    return function_call(
        "ops.index.add_rows_code",
        f"add_rows_{sums.dtype.name}",
        ADD_ROWS,
        rows=rows,
        places=places,
        sums=sums,
        groups=groups,
        count=count,
        total=sums.shape[1],
        width=width,
    )


def _add_at(terms: Array, places: Array, sums: Array) -> Thunk:
    """Returns what does the same in numpy."""

    def add() -> None:
        for group, total in zip(terms, sums, strict=True):
            if total.shape[1] == 1:  # numpy has a loop of its own for one dimension
                np.add.at(total[:, 0], places, group[:, 0])
            else:
                np.add.at(total, places, group)

    return add


def _sums(call: Binding, adder: Adder, wide: tuple[Array, ...], places: Array, view: tuple[int, int, int]) -> Thunk:
    """Returns the thunk that fills y with zeros, and then adds each row of dy to a row of y.

    `places` names that row; y is seen as (groups, rows, width).
    """
    dy, y = wide or (call.x, call.y)
    steps: list[Thunk] = [partial(y.fill, 0)]
    if dy.size:
        terms = dy.reshape((view[0], places.size, view[2]))
        steps.append(adder(terms, places.reshape(-1), y.reshape(view)))
    if not wide:
        return in_turn(*steps)
    return in_turn(partial(np.copyto, dy, call.x), *steps, partial(np.copyto, call.y, y, casting="unsafe"))


def _temporaries(signature: Signature) -> Specs:
    return signature.inputs[1].with_dtype(INT64), ENDS, *_wide(signature)


def _gather_gradient(adder: Adder, call: Binding) -> Thunk:
    shape, axis = call.y.shape, normalize_axis(call.attrs["axis"], call.y.ndim)
    places, ends, *wide = call.temporaries
    view = (math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))
    return in_turn(
        partial(np.copyto, places, call.inputs[1]),
        from_front(places, shape[axis], ends),
        _sums(call, adder, tuple(wide), places, view),
    )


def _elements_temporaries(signature: Signature) -> Specs:
    return *position_specs(signature.x.shape), *_wide(signature)


def _gather_elements_gradient(adder: Adder, call: Binding) -> Thunk:
    axis, scratch = normalize_axis(call.attrs["axis"], call.y.ndim), PositionScratch(*call.temporaries[:3])
    places = along_axis(call.inputs[1], call.y.shape, axis, scratch)
    return in_turn(places, _sums(call, adder, call.temporaries[3:], scratch.flat, (1, call.y.size, 1)))


def _nd_temporaries(signature: Signature) -> Specs:
    return *row_specs(signature), *_wide(signature)


def _gather_nd_gradient(adder: Adder, call: Binding) -> Thunk:
    indices, batch, shape = call.inputs[1], call.attrs["batch_dims"], call.y.shape
    named = batch + indices.shape[-1]
    scratch = PositionScratch(*call.temporaries[:3])
    view = (1, math.prod(shape[:named]), math.prod(shape[named:]))
    return in_turn(
        rows(indices, shape[:named], batch, scratch), _sums(call, adder, call.temporaries[3:], scratch.flat, view)
    )


def _kernels(
    bind: Callable[[Adder, Binding], Thunk], temporaries: Callable[[Signature], Specs]
) -> tuple[Kernel, Kernel]:
    compiled = Kernel("numba", partial(bind, _add_rows), temporaries, contiguous_at(0), backend=NUMBA)
    return compiled, Kernel("add.at", partial(bind, _add_at), temporaries, contiguous_at(0))


def _cost(signature: Signature) -> Cost:
    return Cost(signature.x.size, 2 * signature.x.nbytes + signature.y.nbytes)


_gradient_operator = partial(OpSchema, arity=(2, 2), cost=_cost)
GATHER_GRADIENT = _gradient_operator(
    name="gather_gradient",
    summary="Zeros of `shape`, to whose slices along `axis` those of dy are added that were picked there by indices.",
    infer=_infer,
    kernels=_kernels(_gather_gradient, _temporaries),
    attributes=(Attribute("shape", integers), Attribute("axis", integer, 0)),
)
GATHER_ELEMENTS_GRADIENT = _gradient_operator(
    name="gather_elements_gradient",
    summary="Zeros of `shape`, to whose elements those of dy are added that were picked there along `axis`.",
    infer=_infer_elements,
    kernels=_kernels(_gather_elements_gradient, _elements_temporaries),
    attributes=(Attribute("shape", integers), Attribute("axis", integer, 0)),
)
GATHER_ND_GRADIENT = _gradient_operator(
    name="gather_nd_gradient",
    summary="Zeros of `shape`, to whose slices those of dy are added that tuples of indices picked there.",
    infer=_infer_nd,
    kernels=_kernels(_gather_nd_gradient, _nd_temporaries),
    attributes=(Attribute("shape", integers), Attribute("batch_dims", integer, 0)),
)
OPS = (GATHER_GRADIENT, GATHER_ELEMENTS_GRADIENT, GATHER_ND_GRADIENT)
