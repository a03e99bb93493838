"""Channels-last convolution of codes, compiled: tiles of uint8 times int8 whose sums stay in registers.

int8 multiplies as uint8 that is 128 more, if its zero point is, too. What zero points contribute is put into the bias:
sums of (x - zero) * w are sums of x * w, less zero times the sum of w.
"""

import math
from collections.abc import Mapping
from functools import cache
from importlib import import_module

import numpy as np

from ops.backends import NUMBA
from ops.conv_shapes import ConvCase
from ops.native.call import Native, Step, Word
from ops.native.door import address
from ops.nhwc.pixels import dense_pixels, pitch
from ops.nhwc.quantised_shapes import BIAS, FACTOR, RESIDUAL, W, bounds_of, case_of, dense_parameters
from ops.nhwc.quantised_words import TABLE
from ops.schema import Binding, Kernel, Signature, Thunk
from ops.spec import Array, Shape, TensorSpec
from ops.workspace import carve, dense_bytes

ROWS, PANEL, QUAD = 14, 32, 4
"""Pixels and outputs of a tile, and inputs that are multiplied at once."""
_INT8, _UINT8, _SHIFT = np.dtype("int8"), np.dtype("uint8"), 128
_LINE, _BLOCK_BYTES = 64, 1 << 17
_MODULE = "ops.nhwc.quantised_code"


@cache
def has_vnni() -> bool:
    """Whether this processor multiplies 64 pairs of bytes in one instruction."""
    features: dict[str, bool] = import_module("llvmlite.binding").get_host_cpu_features()
    return all(features.get(name) for name in ("avx512f", "avx512bw", "avx512vl", "avx512vnni"))


def _aligned(shape: Shape, dtype: str) -> Array:
    """Zeros that begin at a line of the cache."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    room = np.zeros(size + _LINE, np.uint8)
    start = -room.ctypes.data % _LINE
    return room[start : start + size].view(dtype).reshape(shape)


def spatial(values: Shape, default: int) -> Shape:
    """One entry for each of three dimensions; those that are not there come first."""
    return (default,) * (3 - len(values)) + values


def _depth(case: ConvCase) -> int:
    """Quads of inputs of a group."""
    return -(-(case.channels // case.group) // QUAD)


def _zero(signature: Signature) -> int:
    """The zero point of x as uint8."""
    shift = _SHIFT if signature.x.dtype == _INT8 else 0
    return int(signature.attrs["x_zero"]) + shift


def _supports(signature: Signature) -> bool:
    if not {W, FACTOR, BIAS} <= signature.constants or signature.x.ndim > 5:
        return False
    fits = 0 <= _zero(signature) <= 255 and signature.x.size > 0
    return fits and case_of(signature).taps * ROWS <= TABLE and has_vnni()


def _widens(signature: Signature) -> bool:
    """Whether pixels are copied first."""
    case = case_of(signature)
    return signature.x.dtype == _INT8 or case.channels // case.group % QUAD > 0


def _room(signature: Signature) -> TensorSpec:
    case = case_of(signature)
    shape = (case.batch * math.prod(case.windows.sizes), case.group * _depth(case) * QUAD)
    return TensorSpec(shape if _widens(signature) else (0,), _UINT8)


def _workspace(signature: Signature) -> int:
    return dense_bytes(_room(signature))


def _pack(signature: Signature, constants: Mapping[int, Array]) -> tuple[Array, ...]:
    """Panels (group * panels, taps, depth, 32, 4), what sums begin with, factors, and a pixel of zero points."""
    case = case_of(signature)
    outputs, inputs, depth = case.out_channels // case.group, case.channels // case.group, _depth(case)
    count = -(-outputs // PANEL)
    packed = _aligned((case.group * count, case.taps, depth, PANEL, QUAD), "int8")
    starts, factors = (_aligned((case.group * count, PANEL), d) for d in ("int32", "float32"))
    weights = constants[W].reshape((case.group, outputs, inputs, case.taps))
    sums = weights.sum((2, 3), dtype=np.int32) * np.int32(_zero(signature))
    for group in range(case.group):
        for number in range(count):
            part = slice(number * PANEL, min(outputs, (number + 1) * PANEL))
            whole = slice(group * outputs + part.start, group * outputs + part.stop)
            at, size = group * count + number, part.stop - part.start
            wide = np.zeros((case.taps, depth * QUAD, size), np.int8)
            wide[:, :inputs] = weights[group, part].transpose(2, 1, 0)
            packed[at, :, :, :size] = wide.reshape((case.taps, depth, QUAD, size)).transpose(0, 1, 3, 2)
            starts[at, :size] = constants[BIAS][whole] - sums[group, part]
            factors[at, :size] = constants[FACTOR][whole]
    zeros = np.full(case.group * depth * QUAD, _zero(signature), np.uint8)
    return packed, starts, factors, zeros


def _bind(call: Binding) -> Thunk:
    case = case_of(call.signature)
    (room,) = carve(call.workspace, _room(call.signature))
    hop, first = pitch(call.x), call.x.ctypes.data
    steps = [_widening(call, case, room)] if room.size else []
    if room.size:
        hop, first = room.shape[1], room.ctypes.data
    words = _window_words(call, case, first, hop) + _finish_words(call)
    step = Step(address(_MODULE, "convolve", ()), words)
    return Native((*steps, step), (*call.inputs, *call.outputs, *call.packed, call.workspace))


def _widening(call: Binding, case: ConvCase, room: Array) -> Step:
    flip = _SHIFT if call.x.dtype == _INT8 else 0
    hops = call.x.ctypes.data, pitch(call.x), room.ctypes.data, room.shape[0]
    groups = case.group, case.channels // case.group, _depth(case) * QUAD
    return Step(address(_MODULE, "widen", ()), (*hops, *groups, flip))


def _added(call: Binding) -> tuple[int, int, int]:
    """Address and pitch of what is added, and the bits to turn around in it."""
    if len(call.inputs) <= RESIDUAL:
        return 0, 0, 0
    residual = call.inputs[RESIDUAL]
    return residual.ctypes.data, pitch(residual), _SHIFT if residual.dtype == _INT8 else 0


def _window_words(call: Binding, case: ConvCase, first: int, hop: int) -> tuple[Word, ...]:
    """All words but the last ones: x begins at an address, and has so many bytes from a pixel to the next."""
    w, outputs, depth = case.windows, case.out_channels // case.group, _depth(case)
    sizes = spatial(w.sizes, 1)
    packed, starts, factors, zeros = (a.ctypes.data for a in call.packed)
    added, added_pitch, flip = _added(call)
    inputs = max(ROWS * hop * math.prod(w.strides), 1)
    return (
        *(first, zeros, packed, starts, factors, added, added_pitch),
        *(call.y.ctypes.data, pitch(call.y) * call.y.itemsize, call.y.itemsize, flip),
        *(case.group, outputs, depth, depth * QUAD),
        *(hop * math.prod(sizes[i:]) for i in range(4)),
        *(case.batch, *spatial(w.outputs, 1)),
        *(*sizes, *spatial(w.kernel, 1), *spatial(w.strides, 1), *spatial(w.dilations, 1), *spatial(w.begins, 0)),
        max(min(_BLOCK_BYTES // inputs, TABLE // (ROWS * case.taps)), 1),
    )


def _finish_words(call: Binding) -> tuple[Word, ...]:
    """Zero points, bounds and factors."""
    attrs, (low, high) = call.attrs, bounds_of(call.attrs)
    zero = attrs["residual_zero"] + (_SHIFT if _added(call)[2] else 0)
    numbers = (attrs["y_zero"], low, high, attrs["own_zero"], attrs["own_factor"], zero, attrs["residual_factor"])
    return tuple(map(float, numbers))


TILED = Kernel(
    "tiled",
    _bind,
    _workspace,
    contiguous=dense_parameters,
    reads=dense_pixels,
    pack=_pack,
    supports=_supports,
    writes=dense_pixels,
    backend=NUMBA,
)
"""Constant weights, factors and biases, one to three spatial dimensions, any groups, AVX-512 with VNNI."""
