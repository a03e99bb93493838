"""Channels-last convolution of codes, compiled: tiles of uint8 times int8 whose sums stay in registers.

int8 multiplies as uint8 that is 128 more, if its zero point is, too. What zero points contribute is put into the bias:
sums of (x - zero) * w are sums of x * w, less zero times the sum of w.
"""

import math
from collections.abc import Mapping

import numpy as np

from ops.native.call import Native, Step, Word
from ops.native.door import address
from ops.native.processor import has
from ops.quantised.nhwc_args import TABLE
from ops.quantised.nhwc_shapes import BIAS, FACTOR, RESIDUAL, W, bounds_of, case_of, dense_parameters
from ops.quantised.nhwc_source import QUAD, Source, as_runs, flip_of, source_of, spatial, x_zero
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, Signature, Thunk
from ops.schema.workspace import carve, dense_bytes
from ops.tensor.spec import Array, Shape, TensorSpec
from ops.windows.pixels import dense_pixels, pitch

ROWS, PANEL = 14, 32
"""Pixels and outputs of a tile."""
_LINE, _BLOCK_BYTES = 64, 1 << 17
_MODULE = "ops.quantised.nhwc_code"


def has_vnni() -> bool:
    """Whether compiled code multiplies 64 pairs of bytes in one instruction."""
    return has("avx512f", "avx512bw", "avx512vl", "avx512vnni")


def aligned(shape: Shape, dtype: str) -> Array:
    """Zeros that begin at a line of the cache."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    buffer = np.zeros(size + _LINE, np.uint8)
    start = -buffer.ctypes.data % _LINE
    return buffer[start : start + size].view(dtype).reshape(shape)


def _supports(signature: Signature) -> bool:
    if not {W, FACTOR, BIAS} <= signature.constants or signature.x.ndim > 5:
        return False
    fits = 0 <= x_zero(signature) <= 255 and signature.x.size > 0
    return fits and source_of(signature).taps * ROWS <= TABLE and has_vnni()


def copy_spec(signature: Signature) -> TensorSpec:
    """Room for a copy of x, empty where none is needed."""
    return TensorSpec((source_of(signature).buffer(signature.x.shape[0]),), np.dtype("uint8"))


def _workspace(signature: Signature) -> int:
    return dense_bytes(copy_spec(signature))


def _pack(signature: Signature, constants: Mapping[int, Array]) -> tuple[Array, ...]:
    """Panels (group * panels, runs, depth, 32, 4), what sums begin with, factors, and a run of zero points."""
    case, source = case_of(signature), source_of(signature)
    packed = pack_panels(signature, constants[W])
    sums = constants[W].reshape((len(constants[W]), -1)).sum(1, dtype=np.int32) * np.int32(x_zero(signature))
    shape = case.group, case.out_channels // case.group
    starts = by_panel((constants[BIAS] - sums).reshape(shape))
    factors = by_panel(constants[FACTOR].reshape(shape))
    return packed, starts, factors, np.full(source.depth * QUAD, x_zero(signature), np.uint8)


def pack_panels(signature: Signature, w: Array) -> Array:
    """Weights as panels that begin at a line of the cache: (group * panels, runs, depth, 32, 4)."""
    panels = by_panel(as_runs(w, case_of(signature), source_of(signature)))
    packed = aligned(panels.shape, "int8")
    packed[...] = panels
    return packed


def by_panel(values: Array) -> Array:
    """(group, outputs, ...) as (group * panels, 32), or (group * panels, runs, depth, 32, 4), filled up with zeros."""
    group, outputs, *rest = values.shape
    count = -(-outputs // PANEL)
    wide = np.zeros((group, count * PANEL, *rest), values.dtype)
    wide[:, :outputs] = values
    found = wide.reshape((group * count, PANEL, *rest))
    if not rest:
        return found
    return found.reshape((group * count, PANEL, rest[0], rest[1] // QUAD, QUAD)).transpose(0, 2, 3, 1, 4)


def _bind(call: Binding) -> Thunk:
    source = source_of(call.signature)
    (buffer,) = carve(call.workspace, copy_spec(call.signature))
    steps = [copying(call, source, buffer)] if source.copied else []
    steps.append(convolve_step(call, buffer))
    return Native(tuple(steps), (*call.inputs, *call.outputs, *call.packed, call.workspace))


def convolve_step(call: Binding, buffer: Array, *, raw: bool = False) -> Step:
    """Windows over x, or over its copy in a room, where one is needed; `raw` leaves the sums as they are."""
    source = source_of(call.signature)
    first = (buffer if source.copied else call.x).ctypes.data
    words = *window_words(call, source, first), *finish_words(call), int(raw)
    return Step(address(_MODULE, "convolve", ()), words)


def copying(call: Binding, source: Source, buffer: Array) -> Step:
    """Fills a room with the copy of x."""
    case, flip = case_of(call.signature), flip_of(call.x.dtype)
    hops = call.x.ctypes.data, pitch(call.x), buffer.ctypes.data
    if source.line:
        lines, width = call.x.size // (call.x.shape[-2] * case.channels), call.x.shape[-2]
        line = width, case.channels, case.windows.begins[-1], source.line
        return Step(address(_MODULE, "copy_lines", ()), (*hops, lines, *line, x_zero(call.signature), flip))
    groups = case.group, case.channels // case.group, source.depth * QUAD
    return Step(address(_MODULE, "copy_pixels", ()), (*hops, call.x.size // case.channels, *groups, flip))


def _added(call: Binding) -> tuple[int, int, int]:
    """Address and pitch of what is added, and the bits to turn around in it."""
    if len(call.inputs) <= RESIDUAL:
        return 0, 0, 0
    residual = call.inputs[RESIDUAL]
    return residual.ctypes.data, pitch(residual), flip_of(residual.dtype)


def window_words(call: Binding, source: Source, first: int) -> tuple[Word, ...]:
    """All words but the last ones, for windows over what begins at an address."""
    case, hop = case_of(call.signature), source.hop(call.x)
    w, depth = case.windows, source.depth
    packed, starts, factors, zeros = (a.ctypes.data for a in call.packed)
    added, added_pitch, flip = _added(call)
    inputs = max(ROWS * hop * math.prod(w.strides), 1)
    return (
        *(first, zeros, packed, starts, factors, added, added_pitch),
        *(call.y.ctypes.data, pitch(call.y) * call.y.itemsize, call.y.itemsize, flip),
        *(case.group, case.out_channels // case.group, depth, depth * QUAD),
        *(hop * math.prod(source.sizes[i:]) for i in range(4)),
        *(case.batch, *spatial(w.outputs, 1)),
        *(*source.sizes, *source.kernel, *spatial(w.strides, 1), *spatial(w.dilations, 1), *source.begins),
        max(min(_BLOCK_BYTES // inputs, TABLE // (ROWS * source.taps)), 1),
    )


def finish_words(call: Binding) -> tuple[Word, ...]:
    """Zero points, bounds and factors."""
    attrs, (low, high) = call.attrs, bounds_of(call.attrs)
    zero = attrs["residual_zero"] + _added(call)[2]
    numbers = (attrs["y_zero"], low, high, attrs["own_zero"], attrs["own_factor"], zero, attrs["residual_factor"])
    return tuple(map(float, numbers))


TILED = Kernel(
    "tiled",
    _bind,
    _workspace,
    contiguous=dense_parameters,
    reads=dense_pixels,
    pack=_pack,
    unread_after_pack=dense_parameters,
    supports=_supports,
    writes=dense_pixels,
    backend=NUMBA,
)
"""Constant weights, factors and biases, one to three spatial dimensions, any groups, AVX-512 with VNNI."""
