"""Convolution of constant weights without BLAS: weights are packed once, pixels tile by tile, sums stay in registers.

The scheme is that of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008); the columns of
im2col are gathered straight into the panels (Chetlur et al., "cuDNN: Efficient Primitives for Deep Learning", 2014).
"""

from collections.abc import Mapping

import numpy as np

from allocator.machine_code.instructions import has
from ops.common.batches import by_image, dense_images
from ops.common.boxes import longest
from ops.convolution.args import PACKED as ARGS
from ops.convolution.packed_tiles import CHANNELS, PIXELS
from ops.convolution.shapes import ConvCase, case_of, planar, planar_geometry
from ops.native.functions import function_call
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, Signature, Specs, Thunk, contiguous_from, first_weights, unless
from ops.tensor.layout import CACHE_LINE
from ops.tensor.spec import Array, Shape, TensorSpec

_FLOAT = np.dtype("float32")
_ROOM_BYTES = 256 << 10
"""Most bytes of the inputs of a block of tiles, where weights fit into the second-level cache and are read again for
each block. Trades cache misses for reads of weights; tools/bench_kernels.py --operators conv times layers."""
_LARGE_ROOM_BYTES = 1 << 20
"""Most bytes of such a block where the weights are larger than this: each read of them comes from main memory."""


def has_avx512() -> bool:
    """Returns whether compiled code has vectors of 16 floats."""
    return has("avx512f")


def _depth(case: ConvCase) -> int:
    return case.channels * case.taps


def _pays(case: ConvCase) -> bool:
    """Returns whether tiles are full enough: more than three quarters where BLAS needs no columns, else half.

    Empty lanes cost as much as full ones. tools/bench_kernels.py --operators conv times these layers.
    """
    lanes = -(-case.out_channels // CHANNELS) * CHANNELS
    full = 4 * case.out_channels > 3 * lanes if case.windows.pointwise else 2 * case.out_channels >= lanes
    return full and case.pixels > 1


def _supports(signature: Signature) -> bool:
    case = case_of(signature)
    plain = signature.x.dtype == _FLOAT and case.group == 1 and 1 in signature.constants
    fits = 0 < _depth(case) * PIXELS * _FLOAT.itemsize <= _LARGE_ROOM_BYTES and case.windows.ndim <= 2
    return plain and fits and _pays(case) and signature.y.size > 0 and has_avx512()


_unsupported = unless(
    _supports,
    "not float32 with constant weights, or groups, or a shape for which matrix products are faster, or no AVX-512",
)


def _scratch_spec(signature: Signature) -> TensorSpec:
    """Returns the spec of the inputs of a block of tiles: (tiles, taps * channels, 14)."""
    case = case_of(signature)
    tiles, tile = -(-case.pixels // PIXELS), _depth(case) * PIXELS * _FLOAT.itemsize
    most = _ROOM_BYTES if signature.inputs[1].nbytes <= _LARGE_ROOM_BYTES else _LARGE_ROOM_BYTES
    return TensorSpec((longest(tiles, most // tile), _depth(case), PIXELS), _FLOAT)


def _temporaries(signature: Signature) -> Specs:
    return (_scratch_spec(signature),)


def _aligned(shape: Shape) -> Array:
    """Returns zeros that begin at a line of the cache."""
    spec = TensorSpec(shape, _FLOAT)
    buffer = np.zeros(spec.nbytes + CACHE_LINE, np.uint8)
    start = -buffer.ctypes.data % CACHE_LINE
    return buffer[start : start + spec.nbytes].view(_FLOAT).reshape(shape)


def packed_specs(signature: Signature) -> Specs:
    """Returns the spec of the weights as panels."""
    case = case_of(signature)
    return (TensorSpec((-(-case.out_channels // CHANNELS), _depth(case), CHANNELS), _FLOAT),)


def _pack(signature: Signature, constants: Mapping[int, Array]) -> tuple[Array, ...]:
    """Returns the weights as panels of 32 output channels: (panels, taps * channels, 32).

    The last panel is filled up with zeros.
    """
    case = case_of(signature)
    weights = constants[1].reshape((case.out_channels, case.channels, case.taps)).transpose(2, 1, 0)
    (spec,) = packed_specs(signature)
    panels = _aligned(spec.shape)
    for panel, first in zip(panels, range(0, case.out_channels, CHANNELS), strict=True):
        part = weights[..., first : first + CHANNELS]
        panel.reshape((case.taps, case.channels, CHANNELS))[..., : part.shape[2]] = part
    return (panels,)


def _planes(case: ConvCase) -> tuple[Shape, Shape]:
    """Returns height and width of an input and of an output.

    Where each output reads the input at its own place alone, each is one row.
    """
    w = case.windows
    if w.pointwise:
        return (1, case.pixels), (1, case.pixels)
    return planar(w.sizes, 1), planar(w.outputs, 1)


def bind_packed(call: Binding, limits: tuple[float, ...] = ()) -> Thunk:
    """Returns the thunk of a convolution out of packed weights.

    A fourth input is added to the result. With one limit, negative results are multiplied by it; with two, results are
    held between them.
    """
    case = case_of(call.signature)
    inner, outer = _planes(case)
    x = call.x.reshape((case.batch, case.channels, *inner))
    y = call.y.reshape((case.batch, case.out_channels, *outer))
    bias = call.inputs[2] if len(call.inputs) > 2 else np.zeros(case.out_channels, _FLOAT)
    (buffer,) = call.temporaries
    adds = len(call.inputs) > 3
    name = f"convolve_{len(limits)}{'_add' if adds else ''}"

    def bind(x: Array, y: Array, added: Array) -> Thunk:
        images, channels, height, width = x.shape
        return function_call(
            "ops.convolution.packed_code",
            name,
            ARGS,
            x=x,
            panels=call.packed[0],
            bias=bias,
            y=y,
            room=buffer,
            residual=added,
            images=images,
            channels=channels,
            height=height,
            width=width,
            outputs=y.shape[1],
            out_height=y.shape[2],
            out_width=y.shape[3],
            depth=buffer.shape[1],
            tiles=len(buffer),
            geometry=planar_geometry(case.windows),
            limits=(*limits, 0.0, 0.0)[:2],
        )

    return by_image(bind, x, y, call.inputs[3].reshape(y.shape) if adds else y)


PACKED = Kernel(
    "packed",
    bind_packed,
    _temporaries,
    contiguous=contiguous_from(2),
    reads=dense_images,
    pack=_pack,
    packed_specs=packed_specs,
    unread_after_pack=first_weights,
    unsupported=_unsupported,
    writes=dense_images,
    backend=NUMBA,
)
"""float32, one group, one or two spatial dimensions, constant weights, and a processor with AVX-512.

The packed weights take the place of the weights, where nobody else reads those.
"""
