"""How many elements are not zero, and where they stand (ONNX NonZero-13).

numba compiles a loop over the mask; numpy writes all positions, those of marks last (`ops.index.marks`).
"""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from ops.common.apply import V, apply1
from ops.common.boxes import CACHE_BYTES, Box, boxes
from ops.common.costs import flops_per_input_element
from ops.common.counts import FOUND, SCALAR, check_count, check_found
from ops.common.elementwise import require_dtype
from ops.common.indices import INT64
from ops.common.lengths import length
from ops.common.thunks import in_turn, nothing
from ops.index.marks import mark_specs, position_steps
from ops.index.places import places
from ops.schema.attributes import Attribute, integer
from ops.schema.backends import NUMBA
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Signature, Specs, Thunk
from ops.symbolic.guesses import numbers_to
from ops.tensor.spec import BOOL, COMPUTED, Array, TensorSpec


def _with_axis(x: Array) -> Array:
    """Returns x, or its view of one axis where it has none."""
    return x.reshape(x.shape or (1,))


def _room(signature: Signature) -> TensorSpec:
    """Returns the spec of a piece of the mask that says which elements are not zero."""
    return TensorSpec((min(signature.x.size, CACHE_BYTES),), BOOL)


def _masks(x: Array, room: Array) -> Iterator[tuple[Box, Array, Thunk]]:
    """Yields pieces of x in C order: the box of each, its mask (one-dimensional), and the thunk that makes the mask."""
    zero = np.zeros((), x.dtype)
    for box in boxes(x.shape, max(room.size, 1)):
        mask = room[: box.flat.stop - box.flat.start]
        piece = x[box.ranges]
        yield box, mask, partial(np.not_equal, piece, zero, mask.reshape(box.shape))


def _whole(x: Array) -> Iterator[tuple[Box, Array, Thunk]]:
    """Yields the one piece of dense bools, which are their own mask."""
    yield Box((0,), (x.size,), 0), x.reshape(-1), nothing


def _pieces(x: Array, room: Array) -> Iterator[tuple[Box, Array, Thunk]]:
    return _whole(x) if x.dtype == BOOL and x.flags.c_contiguous else _masks(x, room)


def _count_infer(inputs: Specs, _: Attrs) -> Specs:
    require_dtype(inputs[0], COMPUTED)
    return (SCALAR,)


def _count_temporaries(signature: Signature) -> Specs:
    return (_room(signature),)


def _count_nonzero(call: Binding) -> Thunk:
    (room,) = call.temporaries
    steps = [(load, partial(np.count_nonzero, mask)) for _, mask, load in _pieces(_with_axis(call.x), room)]
    y = call.y

    def run() -> None:
        total = 0
        for load, count in steps:
            load()
            total += int(count())
        y.fill(total)

    return run


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    (x,) = inputs
    require_dtype(x, COMPUTED)
    return (TensorSpec((max(x.ndim, 1), check_count(attrs["count"], x.size)), INT64),)


def _temporaries(signature: Signature) -> Specs:
    return _room(signature), FOUND


def _nonzero(call: Binding) -> Thunk:
    room, total = call.temporaries
    x = _with_axis(call.x)
    steps: list[Thunk] = [partial(total.fill, 0)]
    for box, mask, load in _pieces(x, room):
        steps += (load, places(mask.view(np.uint8), box.start, x.shape, call.y, total))
    return in_turn(*steps, lambda: check_found(int(total[0]), call.y.shape[1]))


def _specs(signature: Signature) -> tuple[TensorSpec, ...]:
    return (_room(signature), FOUND, *mark_specs(_room(signature).size, signature.attrs["count"]))


def _nonzero_positions(call: Binding) -> Thunk:
    room, total, *temporaries = call.temporaries
    flat, y = temporaries[-1][:-1], call.y
    steps: list[Thunk] = [partial(total.fill, 0)]
    for box, mask, load in _pieces(_with_axis(call.x), room):
        steps += (load, *position_steps(mask, box.start, temporaries, total))
    steps.append(lambda: check_found(int(total[0]), y.shape[1]))
    shape = call.x.shape or (1,)
    for axis in range(len(shape) - 1, 0, -1):
        dim = np.asarray(shape[axis], INT64)
        steps += (partial(np.remainder, flat, dim, y[axis]), partial(np.floor_divide, flat, dim, flat))
    return in_turn(*steps, partial(np.copyto, y[0], flat)) if y.size else in_turn(*steps)


COUNT_NONZERO = OpSchema(
    name="count_nonzero",
    summary="How many elements are not zero, as an int64 scalar: NaN counts, -0.0 does not.",
    infer=_count_infer,
    kernels=(Kernel("numpy", _count_nonzero, _count_temporaries),),
    cost=flops_per_input_element(1),
)
NONZERO = OpSchema(
    name="nonzero",
    summary="A column of int64 coordinates for each element that is not zero, in C order; `count` says how many.",
    infer=_infer,
    kernels=(
        Kernel("numba", _nonzero, _temporaries, backend=NUMBA),
        Kernel("positions", _nonzero_positions, _specs),
    ),
    attributes=(Attribute("count", integer),),
    cost=flops_per_input_element(1),
)
OPS = (COUNT_NONZERO, NONZERO)


def count_nonzero(x: V) -> V:
    """Returns the number of elements that are not zero, as an int64 scalar: NaN counts, -0.0 does not."""
    return apply1(COUNT_NONZERO, x)


def nonzero(x: V) -> V:
    """Returns the coordinates of the elements that are not zero, in C order: int64 (axes, elements)."""
    count = length(count_nonzero(x), numbers_to(math.prod(x.spec.shape)))
    return apply1(NONZERO, x, count=count)
