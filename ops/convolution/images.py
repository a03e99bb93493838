"""Convolution of many small images: columns (im2col) of several images are multiplied at once.

A product for one image of few pixels would read all weights, and multiply them by little more than a vector.
"""

from functools import partial

import numpy as np

from ops.common.boxes import Box, pieces
from ops.common.thunks import in_turn
from ops.convolution.gemm import gather, matrix, spans
from ops.convolution.shapes import ConvCase, case_of
from ops.schema.schema import Binding, Kernel, Signature, Thunk, contiguous_at, unless
from ops.schema.workspace import prefix
from ops.tensor.spec import Array, TensorSpec, compute_dtype

COLUMN_BYTES = 2 << 20
"""Most bytes of the columns of several images. Trades workspace for larger products; no benchmark covers it."""
_SMALL = 64
"""Most pixels of an image that is multiplied together with others. Trades the copy of products, which lie channel by
channel, against products of few columns; no benchmark covers it."""
_BATCHED_PIXELS = 1024
"""Most pixels of several images together. Trades workspace for fewer calls of BLAS; no benchmark covers it."""


def _whole(case: ConvCase) -> Box:
    """Returns the box of all pixels of one image."""
    outputs = case.windows.outputs
    return Box((0,) * len(outputs), outputs, 0)


def _images(case: ConvCase, itemsize: int) -> int:
    """Returns how many images are multiplied at once."""
    column = case.channels * case.taps * case.pixels * itemsize
    return max(1, min(case.batch, _BATCHED_PIXELS // max(case.pixels, 1), COLUMN_BYTES // max(column, 1)))


def _supports(signature: Signature) -> bool:
    case, dtype = case_of(signature), signature.x.dtype
    return compute_dtype(dtype) == dtype and 0 < case.pixels <= _SMALL and _images(case, dtype.itemsize) > 1


_unsupported = unless(_supports, "images that are not small, or one alone, or float16")


def _temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of columns of some images, one padded image, and products."""
    case = case_of(signature)
    pixels = _images(case, signature.x.dtype.itemsize) * case.pixels
    padded = (case.channels, *spans(case.windows, _whole(case))) if case.windows.padded else (0,)
    shapes = (case.channels * case.taps * pixels,), padded, (case.out_channels * pixels,)
    return tuple(signature.x.with_shape(s) for s in shapes)


def _group(call: Binding, case: ConvCase, images: range, scratch: tuple[Array, ...]) -> list[Thunk]:
    """Returns the steps of a few images."""
    w, (column, padded, product) = case.windows, scratch
    block = prefix(column, (case.channels, *w.kernel, len(images), *w.outputs))
    steps: list[Thunk] = []
    for image, side in zip(images, np.moveaxis(block, 1 + w.ndim, 0), strict=True):
        steps += gather(call.x[image], side, padded.reshape(-1), w, _whole(case))
    count = len(images) * case.pixels
    out = prefix(product, (case.out_channels, count))
    weights, flat = call.inputs[1].reshape(case.filters), block.reshape((*case.filters[:-2], case.filters[-1], count))
    steps.append(partial(np.matmul, weights, flat, out.reshape(matrix(case, count))))
    if len(call.inputs) > 2:
        steps.append(partial(np.add, out, call.inputs[2][:, np.newaxis], out))
    apart = np.moveaxis(out.reshape((case.out_channels, len(images), *w.outputs)), 1, 0)
    steps.append(partial(np.copyto, call.y[images.start : images.stop], apart))
    return steps


def _bind(call: Binding) -> Thunk:
    case, scratch = case_of(call.signature), call.temporaries
    steps: list[Thunk] = []
    for a, b in pieces(case.batch, _images(case, call.x.dtype.itemsize)):
        steps += _group(call, case, range(a, b), scratch)
    return in_turn(*steps)


IMAGES = Kernel("images", _bind, _temporaries, contiguous=contiguous_at(1, 2), unsupported=_unsupported)
"""Several images of at most 64 pixels."""
