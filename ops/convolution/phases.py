"""Channels-last transposed convolution as ordinary convolutions, compiled: one for each phase of the outputs.

With strides s, outputs whose places are p modulo s read the same taps: they are a convolution of x of stride 1, whose
results lie s places apart in y. So every output is written once, and products need no memory. After Shi et al., "Is the
deconvolution layer the same as a convolutional layer?" (2016). Along one dimension, a kernel of 3 and a stride of 2:

    x                        x0      x1      x2           phase 0: taps 2 and 0 of two elements of x
    y                        y0  y1  y2  y3  y4  y5       phase 1: tap 1 of one element
    y2 = x0 w2 + x1 w0       y3 = x1 w1
"""

import math
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np
from attrs import evolve, frozen

from ops.common.windows import Windows
from ops.convolution.nhwc_shapes import dense_operands
from ops.convolution.shapes import ConvCase
from ops.convolution.tiled import convolve, panels, panels_shape, source, unsupported_tiles, zeros_of
from ops.convolution.transpose_shapes import TransposeCase, nhwc_case_of
from ops.native.aligned import aligned_zeros
from ops.native.call import Native
from ops.native.emit.tile_shapes import TileShape, tile_shape
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, Signature, Specs, Thunk, first_weights
from ops.tensor.spec import Array, Shape, TensorSpec
from ops.windows.pixels import dense_pixels

_FLOAT = np.dtype("float32")
_MOST_PHASES = 64
"""Most steps of one call. FCN-8s (Long et al. 2015) has this many, with strides of 8."""


@frozen(eq=False)
class _Phase:
    """The outputs from `firsts` on that are one stride apart, and the convolution of x that computes them.

    `taps` are those of the weights along each dimension, by rising place in x.
    """

    firsts: Shape
    taps: tuple[tuple[int, ...], ...]
    case: ConvCase

    def weights(self, w: Array) -> Array:
        """Returns the weights (O, C / group, taps...) out of those of the operator, (C, O / group, kernel...)."""
        case = self.case
        index: tuple[Any, ...] = (slice(None), slice(None), *np.ix_(*self.taps))
        part: Array = w[index]
        grouped = part.reshape((case.group, case.channels // case.group, *part.shape[1:])).swapaxes(1, 2)
        return grouped.reshape((case.out_channels, *grouped.shape[2:]))

    def outputs(self, y: Array, strides: Shape) -> Array:
        """Returns the view of its outputs in y (N, spatial..., O)."""
        places = (slice(first, None, stride) for first, stride in zip(self.firsts, strides, strict=True))
        return y[(slice(None), *places)]


def _line(w: Windows, axis: int, first: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the taps of a phase along one dimension, and the elements of x that its first output reads by them.

    The window of element i of x has its tap t at output i * stride - begin + t * dilation.
    """
    stride, dilation, begin = w.strides[axis], w.dilations[axis], w.begins[axis]
    distances = {t: first + begin - t * dilation for t in reversed(range(w.kernel[axis]))}
    taps = {t: distance // stride for t, distance in distances.items() if distance % stride == 0}
    return tuple(taps), tuple(taps.values())


def _phase(signature: Signature, case: TransposeCase, firsts: Shape) -> _Phase:
    w = case.windows
    lines = [_line(w, axis, first) for axis, first in enumerate(firsts)]
    taps, places = tuple(taps for taps, _ in lines), tuple(places for _, places in lines)
    counts = (len(range(f, size, s)) for f, size, s in zip(firsts, w.sizes, w.strides, strict=True))
    ones = (1,) * w.ndim
    windows = Windows(
        sizes=w.outputs,
        kernel=tuple(map(len, taps)),
        strides=ones,
        dilations=tuple(p[1] - p[0] if len(p) > 1 else 1 for p in places),
        begins=tuple(-p[0] if p else 0 for p in places),
        ends=(0,) * w.ndim,
        outputs=tuple(counts),
    )
    return _Phase(firsts, taps, ConvCase(signature.x.shape[0], case.channels, case.out_channels, case.group, windows))


def _phases(signature: Signature) -> tuple[_Phase, ...]:
    """Returns the phases in an order of their taps that does not depend on pads, as calls that differ in pads share
    packed weights.
    """
    case = nhwc_case_of(signature)
    lines = zip(case.windows.strides, case.windows.begins, strict=True)
    firsts = product(*([(place - begin) % stride for place in range(stride)] for stride, begin in lines))
    return tuple(_phase(signature, case, each) for each in firsts)


def _unsupported(signature: Signature, shape: TileShape) -> str:
    case = nhwc_case_of(signature)
    w = case.windows
    if case.channels == case.group:
        return "one channel a group"
    if math.prod(w.strides) > _MOST_PHASES:
        return f"more than {_MOST_PHASES} phases"
    if any(not _line(w, axis, first)[0] for axis, stride in enumerate(w.strides) for first in range(stride)):
        return "outputs that no tap reaches"
    return unsupported_tiles(signature, case.taps, shape)


def phases(shape: Callable[[], TileShape]) -> Kernel:
    """Returns the kernel by phases, with tiles of a shape."""

    def pack(signature: Signature, constants: Mapping[int, Array]) -> tuple[Array, ...]:
        w, all_phases = np.ascontiguousarray(constants[1]), _phases(signature)
        zeros = aligned_zeros(zeros_of(all_phases[0].case).shape, _FLOAT)
        return zeros, *(panels(phase.case, phase.weights(w), shape().channels) for phase in all_phases)

    def packed_specs(signature: Signature) -> Specs:
        cases = [phase.case for phase in _phases(signature)]
        shapes = (TensorSpec(panels_shape(case, shape().channels), _FLOAT) for case in cases)
        return zeros_of(cases[0]), *shapes

    def bind(call: Binding) -> Thunk:
        strides, (zeros, *packed) = nhwc_case_of(call.signature).windows.strides, call.packed
        steps = []
        for phase, weights in zip(_phases(call.signature), packed, strict=True):
            part = evolve(call, outputs=(phase.outputs(call.y, strides),), packed=(weights, zeros))
            steps.append(convolve(part, phase.case, source(call.x, phase.case), shape()))
        return Native(tuple(steps), (*call.inputs, *call.outputs, *call.packed))

    return Kernel(
        "phases",
        bind,
        contiguous=dense_operands,
        reads=dense_pixels,
        pack=pack,
        packed_specs=packed_specs,
        unread_after_pack=first_weights,
        unsupported=lambda signature: _unsupported(signature, shape()),
        writes=dense_pixels,
        backend=NUMBA,
    )


PHASES = phases(tile_shape)
"""float32, constant weights, one to three spatial dimensions, more than one channel a group."""
