"""Channels-last convolution without columns, compiled: tiles of pixels and channels whose sums stay in registers.

Weights are packed once, in panels of as many output channels as a tile has; x is read where it lies.
"""

import math
from collections.abc import Callable, Mapping

import numpy as np
from attrs import frozen

from ops.common.epilogue import CLIP as CLIPPED
from ops.common.epilogue import LEAK as LEAKING
from ops.common.windows import Windows
from ops.convolution.nhwc_shapes import case_of, dense_operands, operands
from ops.convolution.shapes import ConvCase
from ops.convolution.tiled_args import MOST_TILES, TABLE
from ops.native.call import Native, Step, Word
from ops.native.door import address
from ops.native.emit import tile_shapes
from ops.native.emit.tile_shapes import ALIGNMENT, TileShape, tile_shape
from ops.schema.backends import NUMBA
from ops.schema.schema import Attrs, Binding, Kernel, Signature, Thunk, first_weights
from ops.tensor.spec import Array, Shape
from ops.windows.pixels import dense_pixels, pitch

_FLOAT = np.dtype("float32")
_ALIASED = 4096
"""Bytes: rows as far apart as a multiple of this fall into the same few lines of the nearest cache."""
_ALIASED_ROWS = 12
_CHUNK_BYTES, _BLOCK_BYTES = 1 << 19, 1 << 17
"""Of a panel at a time, and of inputs of a block, so that both stay in a cache of 1 MiB."""
_KINDS = {CLIPPED: tile_shapes.CLIP, LEAKING: tile_shapes.LEAK}


def aligned(shape: Shape) -> Array:
    """An array of float32 zeros that starts with a cache line."""
    size = math.prod(shape)
    buffer = np.zeros(4 * size + ALIGNMENT, np.uint8)
    start = -buffer.ctypes.data % ALIGNMENT
    return buffer[start : start + 4 * size].view(_FLOAT).reshape(shape)


def finish_words(attrs: Attrs) -> tuple[Word, ...]:
    """Activation, low, high, slope."""
    return (
        _KINDS.get(attrs["activation"], tile_shapes.NONE),
        float(attrs["low"]),
        float(attrs["high"]),
        float(attrs["slope"]),
    )


def panels(case: ConvCase, w: Array, width: int) -> Array:
    """Weights (group * panels, taps * channels of a group, width); channels that a group has not are zeros."""
    outputs, depth = case.out_channels // case.group, case.channels // case.group
    count = -(-outputs // width)
    packed = aligned((case.group, count, case.taps, depth, width))
    given = w.reshape((case.group, outputs, depth, case.taps)).transpose(0, 3, 2, 1)
    for number in range(count):
        part = given[..., number * width : (number + 1) * width]
        packed[:, number, :, :, : part.shape[-1]] = part
    return packed.reshape((case.group * count, case.taps * depth, width))


def spatial(values: Shape, default: int) -> Shape:
    """One entry for each of three dimensions; those that are not there come first."""
    return (default,) * (3 - len(values)) + values


@frozen(eq=False)
class Source:
    """What the windows slide over: hops in bytes from image to image and along three dimensions, and where they go.

    `depth` floats from each place are one run.
    """

    array: Array
    hops: Shape
    depth: int
    windows: Windows

    @property
    def runs(self) -> int:
        """Places of one window."""
        return math.prod(self.windows.kernel)

    @property
    def geometry(self) -> Shape:
        """Sizes, kernel, strides, dilations, begin pads, three of each."""
        w = self.windows
        ones = (spatial(v, 1) for v in (w.sizes, w.kernel, w.strides, w.dilations))
        return *(n for entry in ones for n in entry), *spatial(w.begins, 0)


def source(x: Array, case: ConvCase) -> Source:
    """x itself, of dense pixels."""
    hop = 4 * pitch(x)
    sizes = spatial(case.windows.sizes, 1)
    hops = tuple(hop * math.prod(sizes[i:]) for i in range(4))
    return Source(x, hops, case.channels // case.group, case.windows)


def blocks(found: Source, shape: TileShape) -> Shape:
    """Most pixels of a tile, its room, channels of a panel, tiles of a block, runs of a chunk."""
    step = found.hops[3] * found.windows.strides[-1]
    rows = min(shape.rows, _ALIASED_ROWS) if step and step % _ALIASED == 0 else shape.rows
    inputs = rows * step * math.prod(found.windows.strides[:-1])
    block = max(min(_BLOCK_BYTES // max(inputs, 1), TABLE // (shape.rows * found.runs), MOST_TILES), 1)
    chunk = max(_CHUNK_BYTES // max(4 * shape.channels * found.depth, 1), 1)
    return rows, shape.rows, shape.channels, block, chunk


def convolve(call: Binding, case: ConvCase, found: Source, shape: TileShape) -> Step:
    """The step that writes y."""
    weights, zeros = call.packed[:2]
    bias, added = operands(call)
    outputs = case.batch, *spatial(case.windows.outputs, 1)
    first = found.array, zeros, weights, zeros if bias is None else bias
    more = (0, 0) if added is None else (added.ctypes.data, 4 * pitch(added))
    words: tuple[Word, ...] = (
        *(a.ctypes.data for a in first),
        *more,
        *(call.y.ctypes.data, 4 * pitch(call.y)),
        *(case.group, case.out_channels // case.group, found.depth, 4 * case.channels // case.group),
        *found.hops,
        *outputs,
        *found.geometry,
        *finish_words(call.attrs),
        tile_shapes.NONE,
        *blocks(found, shape),
    )
    return Step(address("ops.convolution.tiled_code", shape.name), words)


def pack_panels(shape: Callable[[], TileShape]) -> Callable[[Signature, Mapping[int, Array]], tuple[Array, ...]]:
    """What packs weights for tiles of a shape: panels, and zeros for taps in the padding and for a missing bias."""

    def pack(signature: Signature, constants: Mapping[int, Array]) -> tuple[Array, ...]:
        case = case_of(signature)
        zeros = aligned((max(case.channels // case.group, case.out_channels),))
        return panels(case, np.ascontiguousarray(constants[1]), shape().channels), zeros

    return pack


def supports_tiles(signature: Signature, shape: TileShape) -> bool:
    """Whether elements, dimensions and windows are such that tiles of the shape compute them, of constant weights."""
    known = signature.x.dtype == _FLOAT and 1 in signature.constants and signature.x.ndim <= 5
    return known and case_of(signature).taps * shape.rows <= TABLE


def tiled(shape: Callable[[], TileShape]) -> Kernel:
    """The kernel by tiles of a shape."""

    def bind(call: Binding) -> Thunk:
        case = case_of(call.signature)
        step = convolve(call, case, source(call.x, case), shape())
        return Native((step,), (*call.inputs, *call.outputs, *call.packed))

    return Kernel(
        "tiled",
        bind,
        contiguous=dense_operands,
        reads=dense_pixels,
        pack=pack_panels(shape),
        unread_after_pack=first_weights,
        supports=lambda signature: supports_tiles(signature, shape()),
        writes=dense_pixels,
        backend=NUMBA,
    )


TILED = tiled(tile_shape)
"""float32, constant weights, one to three spatial dimensions, any groups."""
