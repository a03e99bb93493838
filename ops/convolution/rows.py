"""Channels-last convolution of few channels, compiled: all taps of a row of a window are one run of a padded copy.

The channels of one pixel are runs too short to multiply at full speed. x may have any strides, channels first as well:
the copy is channels last. It is made block by block, so that it is small:

    padded copy, 3 channels      0 0 0 | r g b | r g b | r g b | r g b | ...      one line of pixels
    window of 3 x 3, one row     <-------- 9 floats ------>                       one run, instead of three of 3 floats
    the next window                      <-------- 9 floats ------>
"""

from collections.abc import Callable, Iterator

from attrs import evolve

from allocator.machine_code.door import address
from ops.common.epilogue import RESIDUAL
from ops.common.windows import Windows
from ops.convolution.args import PAD
from ops.convolution.nhwc_blocks import Blocks
from ops.convolution.nhwc_shapes import case_of
from ops.convolution.shapes import ConvCase
from ops.convolution.tiled import Source, convolve, pack_panels, packed_panels, unsupported_tiles
from ops.native.call import Native, Step
from ops.native.emit.tile_shapes import TileShape, tile_shape
from ops.native.records import pack_args
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, Signature, Thunk, any_strides, contiguous_at, first_weights
from ops.tensor.spec import Array, TensorSpec
from ops.windows.args import spatial
from ops.windows.pixels import dense_pixels

_MOST_CHANNELS = 15
"""From 16 channels on, the runs of one pixel fill vectors, and need no copy."""
MOST_BYTES = 160 << 10
"""Most bytes of a copy, so that it is read from a cache. A smaller copy has more lines in common with the next one."""


def _scratch_spec(signature: Signature, most: int) -> TensorSpec:
    return TensorSpec(Blocks(case_of(signature), most).padded, signature.x.dtype)


def _unsupported(signature: Signature, shape: TileShape) -> str:
    case = case_of(signature)
    w = case.windows
    if tiles := unsupported_tiles(signature, case.taps, shape):
        return tiles
    if case.group != 1 or not 0 < case.channels <= _MOST_CHANNELS:
        return "groups, or many channels"
    if w.kernel[-1] == 1 or w.dilations[-1] != 1:
        return "windows of one column, or with gaps"
    return "an addition" if len(signature.inputs) > RESIDUAL else ""


def _copy(x: Array, case: ConvCase, padded: Array) -> Step:
    """Returns the step that writes the padded copy."""
    images, *hops, apart = x.strides
    w = case.windows
    args = pack_args(
        PAD,
        x=x.ctypes.data,
        hops=(images, *spatial(tuple(hops), 0), apart),
        sizes=spatial(w.sizes, 1),
        channels=case.channels,
        y=padded.ctypes.data,
        images=case.batch,
        padded=spatial(padded.shape[1:-1], 1),
        begins=spatial(w.begins, 0),
    )
    return Step(address("ops.convolution.pad_code", "pad"), args)


def _source(padded: Array, case: ConvCase) -> Source:
    """Returns the copy as inputs: a run is a row of a window."""
    w, sizes = case.windows, padded.shape[1:-1]
    none = (0,) * w.ndim
    along: Windows = evolve(w, sizes=sizes, kernel=(*w.kernel[:-1], 1), begins=none, ends=none)
    long = spatial(sizes, 1)
    pixel = 4 * case.channels
    line = pixel * long[2]
    hops = line * long[1] * long[0], line * long[1], line, pixel
    return Source(padded, hops, case.channels * w.kernel[-1], along)


def _steps(call: Binding, blocks: Blocks, buffer: Array, shape: TileShape) -> Iterator[Step]:
    """Yields copy and product of each block in turn: all threads write the copy, then all read it."""
    for block in blocks:
        case = block.case
        padded = buffer[: case.batch, : case.windows.reach(0, case.windows.outputs[0])]
        y = call.y[block.images, block.outputs]
        yield _copy(call.x[block.images, block.inputs], case, padded)
        yield convolve(evolve(call, outputs=(y,)), case, _source(padded, case), shape)


def by_rows(shape: Callable[[], TileShape], most: int = MOST_BYTES) -> Kernel:
    """Returns the kernel by tiles of a shape; it copies at most `most` bytes at a time, or one line of outputs."""

    def bind(call: Binding) -> Thunk:
        (buffer,) = call.temporaries
        steps = tuple(_steps(call, Blocks(case_of(call.signature), most), buffer, shape()))
        return Native(steps, (*call.inputs, *call.outputs, *call.packed, buffer))

    return Kernel(
        "rows",
        bind,
        lambda signature: (_scratch_spec(signature, most),),
        contiguous=contiguous_at(1, 2),
        reads=any_strides,
        pack=pack_panels(shape),
        packed_specs=packed_panels(shape),
        unread_after_pack=first_weights,
        unsupported=lambda signature: _unsupported(signature, shape()),
        writes=dense_pixels,
        backend=NUMBA,
    )


ROWS = by_rows(tile_shape)
"""float32, constant weights, at most 15 channels in one group, nothing added."""
