"""Channels-last convolution of few channels, compiled: all taps of a row of a window are one run of a padded copy.

The channels of one pixel alone would be runs too short to multiply at full speed. x may lie in any way, channels first
as well: the copy brings it into order.
"""

from collections.abc import Callable

from attrs import evolve

from ops.backends import NUMBA
from ops.conv_shapes import ConvCase
from ops.native.call import Native, Step, Word
from ops.native.door import address
from ops.native.tiles import TileShape, tile_shape
from ops.nhwc.conv_native import Source, convolve, pack_panels, spatial, supports_tiles
from ops.nhwc.conv_shapes import RESIDUAL, case_of
from ops.nhwc.pixels import dense_pixels
from ops.schema import Binding, Kernel, Signature, Thunk, any_strides, first_weights
from ops.spec import Array, Shape, TensorSpec
from ops.windows import Windows
from ops.workspace import carve, dense_bytes

_MOST_CHANNELS = 15


def _padded(case: ConvCase) -> Shape:
    """Sizes of the copy: as far as windows reach, no further."""
    w = case.windows
    return tuple(w.reach(axis, w.outputs[axis]) for axis in range(w.ndim))


def _room(signature: Signature) -> TensorSpec:
    case = case_of(signature)
    return TensorSpec((case.batch, *_padded(case), case.channels), signature.x.dtype)


def _workspace(signature: Signature) -> int:
    return dense_bytes(_room(signature))


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
    return Step(address("ops.nhwc.pad_code", "pad"), words)


def _source(padded: Array, case: ConvCase) -> Source:
    """The copy: a run is a row of a window."""
    w, sizes = case.windows, padded.shape[1:-1]
    ndim = w.ndim
    none = (0,) * ndim
    along: Windows = evolve(w, sizes=sizes, kernel=(*w.kernel[:-1], 1), begins=none, ends=none)
    long = spatial(sizes, 1)
    pixel = 4 * case.channels
    line = pixel * long[2]
    hops = line * long[1] * long[0], line * long[1], line, pixel
    return Source(padded, hops, case.channels * w.kernel[-1], along)


def by_rows(shape: Callable[[], TileShape]) -> Kernel:
    """The kernel by tiles of a shape."""

    def bind(call: Binding) -> Thunk:
        case = case_of(call.signature)
        (padded,) = carve(call.workspace, _room(call.signature))
        steps = _copy(call.x, case, padded), convolve(call, case, _source(padded, case), shape())
        return Native(steps, (*call.inputs, *call.outputs, *call.packed, padded))

    return Kernel(
        "rows",
        bind,
        _workspace,
        contiguous=_dense,
        reads=any_strides,
        pack=pack_panels(shape),
        replaces=first_weights,
        supports=lambda signature: supports_tiles(signature, shape()) and _supports(signature),
        writes=dense_pixels,
        backend=NUMBA,
    )


ROWS = by_rows(tile_shape)
"""float32, constant weights, at most 15 channels in one group, nothing added."""
