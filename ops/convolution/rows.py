"""Channels-last convolution of few channels, compiled: all taps of a row of a window are one run of a padded copy.

The channels of one pixel alone would be runs too short to multiply at full speed. x may lie in any way, channels first
as well: the copy brings it into order. It is made block by block, so that it needs little room.
"""

from collections.abc import Callable, Iterator

from attrs import evolve

from ops.common.windows import Windows
from ops.convolution.nhwc_blocks import Blocks
from ops.convolution.nhwc_shapes import RESIDUAL, case_of
from ops.convolution.shapes import ConvCase
from ops.convolution.tiled import Source, convolve, pack_panels, spatial, supports_tiles
from ops.native.call import Native, Step, Word
from ops.native.door import address
from ops.native.emit.tile_shapes import TileShape, tile_shape
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, Signature, Thunk, any_strides, first_weights
from ops.schema.workspace import carve, dense_bytes
from ops.tensor.spec import Array, TensorSpec
from ops.windows.pixels import dense_pixels

_MOST_CHANNELS = 15
MOST_BYTES = 160 << 10
"""Of a copy, so that it is read where it was written, in a cache."""


def _scratch_spec(signature: Signature, most: int) -> TensorSpec:
    return TensorSpec(Blocks(case_of(signature), most).padded, signature.x.dtype)


def _dense(_: Signature) -> tuple[int, ...]:
    return 1, 2


def _supports(signature: Signature) -> bool:
    case = case_of(signature)
    w = case.windows
    fits = case.group == 1 and 0 < case.channels <= _MOST_CHANNELS and w.kernel[-1] > 1 and w.dilations[-1] == 1
    return fits and len(signature.inputs) <= RESIDUAL


def _copy(x: Array, case: ConvCase, padded: Array) -> Step:
    """The step that writes the padded copy."""
    images, *hops, apart = x.strides
    w = case.windows
    words: tuple[Word, ...] = (
        *(x.ctypes.data, images, *spatial(tuple(hops), 0), apart),
        *(*spatial(w.sizes, 1), case.channels),
        *(padded.ctypes.data, case.batch, *spatial(padded.shape[1:-1], 1), *spatial(w.begins, 0)),
    )
    return Step(address("ops.convolution.pad_code", "pad"), words)


def _source(padded: Array, case: ConvCase) -> Source:
    """The copy: a run is a row of a window."""
    w, sizes = case.windows, padded.shape[1:-1]
    none = (0,) * w.ndim
    along: Windows = evolve(w, sizes=sizes, kernel=(*w.kernel[:-1], 1), begins=none, ends=none)
    long = spatial(sizes, 1)
    pixel = 4 * case.channels
    line = pixel * long[2]
    hops = line * long[1] * long[0], line * long[1], line, pixel
    return Source(padded, hops, case.channels * w.kernel[-1], along)


def _steps(call: Binding, blocks: Blocks, buffer: Array, shape: TileShape) -> Iterator[Step]:
    """Copy and product of each block in turn: all threads fill the room, then all read it."""
    for block in blocks:
        case = block.case
        padded = buffer[: case.batch, : case.windows.reach(0, case.windows.outputs[0])]
        y = call.y[block.images, block.outputs]
        yield _copy(call.x[block.images, block.inputs], case, padded)
        yield convolve(evolve(call, outputs=(y,)), case, _source(padded, case), shape)


def by_rows(shape: Callable[[], TileShape], most: int = MOST_BYTES) -> Kernel:
    """The kernel by tiles of a shape; `most` bytes are copied at a time, unless one line of outputs needs more."""

    def bind(call: Binding) -> Thunk:
        (buffer,) = carve(call.workspace, _scratch_spec(call.signature, most))
        steps = tuple(_steps(call, Blocks(case_of(call.signature), most), buffer, shape()))
        return Native(steps, (*call.inputs, *call.outputs, *call.packed, buffer))

    return Kernel(
        "rows",
        bind,
        lambda signature: dense_bytes(_scratch_spec(signature, most)),
        contiguous=_dense,
        reads=any_strides,
        pack=pack_panels(shape),
        unread_after_pack=first_weights,
        supports=lambda signature: supports_tiles(signature, shape()) and _supports(signature),
        writes=dense_pixels,
        backend=NUMBA,
    )


ROWS = by_rows(tile_shape)
"""float32, constant weights, at most 15 channels in one group, nothing added."""
