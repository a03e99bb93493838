"""Channels-last convolution without columns, compiled: tiles of pixels and channels whose sums stay in registers.

Weights are packed once, in panels of as many output channels as a tile has; x is read in place.
"""

import math
from collections.abc import Callable, Mapping

import numpy as np
from attrs import frozen

from allocator.machine_code.door import address
from ops.common.epilogue import CLIP as CLIPPED
from ops.common.epilogue import FINISH_ATTRIBUTES
from ops.common.epilogue import LEAK as LEAKING
from ops.common.windows import Windows
from ops.convolution.args import TABLE, TILED_CONV
from ops.convolution.nhwc_shapes import case_of, dense_operands, operands
from ops.convolution.shapes import ConvCase
from ops.native.aligned import aligned_zeros
from ops.native.call import Native, Step
from ops.native.emit import tile_shapes
from ops.native.emit.tile_shapes import TileShape, tile_shape
from ops.native.records import pack_args
from ops.schema.backends import NUMBA
from ops.schema.schema import Attrs, Binding, Kernel, Signature, Specs, Thunk, first_weights
from ops.tensor.layout import Layout
from ops.tensor.spec import Array, Shape, TensorSpec
from ops.windows.args import spatial
from ops.windows.pixels import dense_pixels, pitch

_FLOAT = np.dtype("float32")
_ALIASED = 4096
"""Bytes: rows that are a multiple of this apart are stored in the same few lines of a first-level cache, which holds 8
or 12 of them. Smaller tiles trade products from registers for hits in this cache."""
_ALIASED_ROWS = 12
_CHUNK_BYTES, _BLOCK_BYTES = 1 << 19, 1 << 17
"""Bytes of a panel at a time, and of inputs of a block of tiles: together they fit into a second-level cache of 1 MiB.
tools/bench_kernels.py --operators nhwc_conv times layers of all sizes."""
_ACTIVATIONS = {CLIPPED: tile_shapes.CLIP, LEAKING: tile_shapes.LEAK}


def panels(case: ConvCase, w: Array, width: int) -> Array:
    """Returns the weights (group * panels, taps * channels of a group, width); the last panel is padded with zeros."""
    outputs, depth = case.out_channels // case.group, case.channels // case.group
    shape = panels_shape(case, width)
    count = shape[0] // case.group
    packed = aligned_zeros((case.group, count, case.taps, depth, width), _FLOAT)
    by_tap = w.reshape((case.group, outputs, depth, case.taps)).transpose(0, 3, 2, 1)
    for number in range(count):
        part = by_tap[..., number * width : (number + 1) * width]
        packed[:, number, :, :, : part.shape[-1]] = part
    return packed.reshape(shape)


def panels_shape(case: ConvCase, width: int) -> Shape:
    """Returns the shape of the weights as panels."""
    outputs, depth = case.out_channels // case.group, case.channels // case.group
    return case.group * -(-outputs // width), case.taps * depth, width


@frozen(eq=False)
class Source:
    """The inputs of windows: `hops` are bytes from image to image and along three dimensions.

    `depth` floats from each place of a window are one run.
    """

    array: Array
    hops: Shape
    depth: int
    windows: Windows

    @property
    def runs(self) -> int:
        """Returns the places of one window."""
        return math.prod(self.windows.kernel)


def source(x: Array, case: ConvCase) -> Source:
    """Returns x itself, whose pixels are dense, as the inputs."""
    hop = 4 * pitch(x)
    sizes = spatial(case.windows.sizes, 1)
    hops = tuple(hop * math.prod(sizes[i:]) for i in range(4))
    return Source(x, hops, case.channels // case.group, case.windows)


def _lines(y: Array) -> tuple[Shape, int]:
    """Returns the bytes from an image of y to the next and along three dimensions, and the pixels at the last of these.

    These are all pixels where the lines of y follow each other as its pixels do.
    """
    *lengths, _ = y.shape
    images, *hops, _ = y.strides
    if dense_pixels(Layout.of(y)):
        return (0, 0, 0, y.itemsize * pitch(y)), max(math.prod(lengths), 1)
    return (images, *spatial(tuple(hops), 0)), max(lengths[-1], 1)


def _blocking(inputs: Source, shape: TileShape) -> dict[str, int]:
    """Returns the sizes of tiles, blocks and chunks."""
    step = inputs.hops[3] * inputs.windows.strides[-1]
    rows = min(shape.rows, _ALIASED_ROWS) if step and step % _ALIASED == 0 else shape.rows
    tile_bytes = rows * step * math.prod(inputs.windows.strides[:-1])
    block = max(min(_BLOCK_BYTES // max(tile_bytes, 1), TABLE // (shape.rows * inputs.runs)), 1)
    chunk = max(_CHUNK_BYTES // max(4 * shape.channels * inputs.depth, 1), 1)
    return {
        "tile_rows": rows,
        "table_rows": shape.rows,
        "panel": shape.channels,
        "block_tiles": block,
        "chunk_runs": chunk,
    }


def _finish(attrs: Attrs) -> dict[str, float]:
    """Returns the activation in numbers; none for operators that have no attributes for it."""
    finish = {a.name: attrs.get(a.name, a.default) for a in FINISH_ATTRIBUTES}
    kind = _ACTIVATIONS.get(finish.pop("activation"), tile_shapes.NONE)
    return {"activation": kind} | {name: float(number) for name, number in finish.items()}


def convolve(call: Binding, case: ConvCase, inputs: Source, shape: TileShape) -> Step:
    """Returns the step that writes y."""
    panels, zeros = call.packed[:2]
    (bias, added), w = operands(call), inputs.windows
    hops, line = _lines(call.y)
    args = pack_args(
        TILED_CONV,
        x=inputs.array.ctypes.data,
        zeros=zeros.ctypes.data,
        panels=panels.ctypes.data,
        bias=(zeros if bias is None else bias).ctypes.data,
        added=0 if added is None else added.ctypes.data,
        added_pitch=0 if added is None else 4 * pitch(added),
        y=call.y.ctypes.data,
        y_hops=hops,
        line=line,
        groups=case.group,
        channels=case.out_channels // case.group,
        depth=inputs.depth,
        group_bytes=4 * case.channels // case.group,
        hops=inputs.hops,
        outputs=(case.batch, *spatial(case.windows.outputs, 1)),
        sizes=spatial(w.sizes, 1),
        kernel=spatial(w.kernel, 1),
        strides=spatial(w.strides, 1),
        dilations=spatial(w.dilations, 1),
        begins=spatial(w.begins, 0),
        idle=tile_shapes.NONE,
        **_finish(call.attrs),
        **_blocking(inputs, shape),
    )
    return Step(address("ops.convolution.tiled_code", shape.name), args)


def zeros_of(case: ConvCase) -> TensorSpec:
    """Returns the spec of the zeros that stand for taps in the padding, and for a missing bias."""
    return TensorSpec((max(case.channels // case.group, case.out_channels),), _FLOAT)


def pack_panels(shape: Callable[[], TileShape]) -> Callable[[Signature, Mapping[int, Array]], tuple[Array, ...]]:
    """Returns the function that packs panels, and zeros."""

    def pack(signature: Signature, constants: Mapping[int, Array]) -> tuple[Array, ...]:
        case = case_of(signature)
        zeros = aligned_zeros(zeros_of(case).shape, _FLOAT)
        return panels(case, np.ascontiguousarray(constants[1]), shape().channels), zeros

    return pack


def packed_panels(shape: Callable[[], TileShape]) -> Callable[[Signature], Specs]:
    """Returns the function that tells the specs of these panels and zeros."""

    def packed_specs(signature: Signature) -> Specs:
        case = case_of(signature)
        return TensorSpec(panels_shape(case, shape().channels), _FLOAT), zeros_of(case)

    return packed_specs


def unsupported_tiles(signature: Signature, taps: int, shape: TileShape) -> str:
    """Returns why tiles of the shape do not compute windows of so many taps; nothing where they do."""
    if signature.x.dtype != _FLOAT:
        return "not float32"
    if 1 not in signature.constants:
        return "weights that are not constant"
    if signature.x.ndim > 5:
        return "more than three spatial dimensions"
    return "" if taps * shape.rows <= TABLE else "windows of too many taps"


def tiled(shape: Callable[[], TileShape]) -> Kernel:
    """Returns the kernel by tiles of a shape."""

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
        packed_specs=packed_panels(shape),
        unread_after_pack=first_weights,
        unsupported=lambda signature: unsupported_tiles(signature, case_of(signature).taps, shape()),
        writes=dense_pixels,
        backend=NUMBA,
    )


TILED = tiled(tile_shape)
"""float32, constant weights, one to three spatial dimensions, any groups."""
