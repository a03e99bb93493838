"""Transposed convolution of channels-last tensors (ONNX ConvTranspose-22).

The kernel of numpy multiplies a block of pixels by all taps at once, and adds the products of each tap to y. The
compiled one is in `phases`.
"""

import math
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product

import numpy as np

from ops.common.boxes import Box, Boxes, boxes
from ops.common.thunks import in_turn, made_anew
from ops.common.tiling import ROWS, cut
from ops.common.windows import tap_range
from ops.convolution.gemm import COLUMN_BYTES
from ops.convolution.nhwc_gemm import in_groups
from ops.convolution.onednn_transpose import NHWC_DECONVOLUTION
from ops.convolution.phases import PHASES
from ops.convolution.transpose_gemm import TRANSPOSE_ATTRIBUTES, infer_transpose
from ops.convolution.transpose_shapes import TransposeCase, nhwc_case_of
from ops.schema.schema import (
    Attrs,
    Binding,
    Cost,
    Kernel,
    OpSchema,
    Signature,
    Specs,
    Stripe,
    Thunk,
    first_weights,
)
from ops.schema.workspace import prefix
from ops.tensor.errors import DtypeError, ShapeError
from ops.tensor.spec import Array, Shape, TensorSpec
from ops.windows.pixels import channels_first, channels_last, dense_pixels, rows

_BIAS = 2


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    x, *rest = inputs
    if x.dtype == np.dtype("float16"):
        raise DtypeError("takes float32 or float64, not float16")
    if x.ndim < 3:
        raise ShapeError(f"data {x.shape} must have 2 + spatial dimensions, at least 3")
    (y,) = infer_transpose((channels_first(x), *rest), attrs)
    return (channels_last(y),)


def _shape(case: TransposeCase) -> Shape:
    """Returns the shape of the weights as matrices: group, channels of it, taps, outputs of it."""
    return case.group, case.channels // case.group, case.taps, case.out_channels // case.group


def _spread(w: Array, case: TransposeCase) -> Array:
    """Returns the view of that shape of the weights (C, O / group, kernel...)."""
    group, channels, taps, outputs = _shape(case)
    return w.reshape((group, channels, outputs, taps)).swapaxes(2, 3)


def _pack(signature: Signature, constants: Mapping[int, Array]) -> tuple[Array, ...]:
    if 1 not in constants:
        return ()
    return (np.array(_spread(np.ascontiguousarray(constants[1]), nhwc_case_of(signature)), order="C"),)


def _packed_specs(signature: Signature) -> Specs:
    weights = signature.inputs[1]
    return (weights.with_shape(_shape(nhwc_case_of(signature))),) if 1 in signature.constants else ()


def _dense_inputs(signature: Signature) -> tuple[int, ...]:
    """Returns weights and bias; x, too, where a matrix is multiplied by a vector (ops.products.blas)."""
    has_vectors = math.prod(_shape(nhwc_case_of(signature))[2:]) == 1
    return tuple(range(not has_vectors, len(signature.inputs)))


def _boxes(case: TransposeCase, itemsize: int) -> Boxes:
    """Returns boxes of pixels of one image; the products of one box are in memory at a time."""
    return boxes(case.windows.outputs, max(1, COLUMN_BYTES // max(case.taps * case.out_channels * itemsize, 1)))


def _temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of the products of a box, and of the weights where they are not packed."""
    case, dtype = nhwc_case_of(signature), signature.x.dtype
    pixels = max((math.prod(b.shape) for b in _boxes(case, dtype.itemsize).largest), default=0)
    weights = 0 if 1 in signature.constants else signature.inputs[1].size
    return tuple(TensorSpec((n,), dtype) for n in (pixels * case.taps * case.out_channels, weights))


def _scatter(products: Array, y: Array, case: TransposeCase, box: Box) -> Iterator[Thunk]:
    """Yields the steps that add the products (group, box..., kernel..., outputs of it) to one image."""
    w = case.windows
    for taps in product(*map(range, w.kernel)):
        ranges = [tap_range(w, a, t, box.firsts[a], box.lasts[a]) for a, t in enumerate(taps)]
        target = in_groups(y[tuple(inside for _, inside in ranges)], case.group)
        index: tuple[slice | int, ...] = (slice(None), *(pixels for pixels, _ in ranges), *taps)
        part = products[index]
        if target.size:
            yield partial(np.add, target, np.moveaxis(part, 0, -2), target)


def _image(call: Binding, case: TransposeCase, number: int, weights: Array, buffer: Array) -> Iterator[Thunk]:
    """Yields the steps of one image: the bias, then box after box."""
    y, pixels = call.y[number], math.prod(case.windows.outputs)
    bias = call.inputs[_BIAS] if len(call.inputs) > _BIAS else np.zeros((), y.dtype)
    yield partial(np.copyto, y, bias)
    matrices = weights.reshape((*weights.shape[:2], weights.shape[2] * weights.shape[3]))
    x = rows(call.x)[number * pixels : (number + 1) * pixels]
    for box in _boxes(case, y.itemsize):
        part = in_groups(x[box.flat], case.group).transpose(1, 0, 2)
        products = prefix(buffer, (case.group, part.shape[1], matrices.shape[2]))
        yield partial(np.matmul, part, matrices, products)
        apart = products.reshape((case.group, *box.shape, *case.windows.kernel, weights.shape[3]))
        yield from made_anew(partial(_scatter, apart, y, case, box), case.taps)


def _bind(call: Binding) -> Thunk:
    case = nhwc_case_of(call.signature)
    buffer, loose = call.temporaries
    steps: list[Thunk] = []
    if call.packed:
        weights = call.packed[0]
    elif loose.size:
        weights = loose.reshape(_shape(case))
        steps.append(partial(np.copyto, weights, _spread(call.inputs[1], case)))
    else:
        weights = np.ascontiguousarray(_spread(call.inputs[1], case))
    for number in range(len(call.x)):
        steps += _image(call, case, number, weights, buffer)
    return in_turn(*steps)


def _rows(signature: Signature, first: int, last: int, axis: int) -> Stripe | None:
    """Returns the call of some rows: of the rows of x whose windows reach them.

    None where compiled code does not compute it, whatever the back-end: in blocks of other sizes, products are added in
    another order. Without prepacked weights, which are no part of a signature, last bits may so differ.
    """
    if not PHASES.supports(signature):
        return None
    w, along = nhwc_case_of(signature).windows, axis - ROWS
    stride, begin = w.strides[along], w.begins[along]
    low = max(-((w.extent(along) - 1 - first - begin) // stride), 0)
    high = min((last - 1 + begin) // stride + 1, w.outputs[along])
    if low >= high:
        return None
    before = begin + first - low * stride
    after = w.reach(along, high - low) - before - (last - first)
    begins, ends = list(w.begins), list(w.ends)
    more = [w.begins[a] + w.sizes[a] + w.ends[a] - w.reach(a, w.outputs[a]) for a in range(w.ndim)]
    begins[along], ends[along], more[along] = before, max(after, 0), max(-after, 0)
    attrs = {"auto_pad": "NOTSET", "output_shape": (), "pads": (*begins, *ends), "output_padding": tuple(more)}
    read = cut(axis, low, high)
    return Stripe((read, *(() for _ in signature.inputs[1:])), cut(axis, first, last), {**signature.attrs, **attrs})


def _cost(signature: Signature) -> Cost:
    """Returns two operations for each product that is added to y, so some rows cost what they add to the whole."""
    return Cost(2 * signature.x.shape[0] * nhwc_case_of(signature).products, signature.nbytes)


TAPS = Kernel(
    "taps",
    _bind,
    _temporaries,
    contiguous=_dense_inputs,
    reads=dense_pixels,
    pack=_pack,
    unread_after_pack=first_weights,
    packed_specs=_packed_specs,
    writes=dense_pixels,
)
"""Any transposed convolution."""
NHWC_CONV_TRANSPOSE = OpSchema(
    name="nhwc_conv_transpose",
    summary="Each element of x (N, spatial..., C) adds its multiple of w (C, O / group, kernel...) to y.",
    infer=_infer,
    kernels=(PHASES, TAPS, NHWC_DECONVOLUTION),
    arity=(2, 3),
    attributes=TRANSPOSE_ATTRIBUTES,
    cost=_cost,
    rows=_rows,
)
OPS = (NHWC_CONV_TRANSPOSE,)
