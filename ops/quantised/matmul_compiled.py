"""Products of bytes with a constant matrix, compiled: a convolution of one tap whose sums are written as they are.

Zero points of the first factor may be computed by the graph, so the start of the sums is written when it runs. The
matrix becomes int8; 128 is subtracted from uint8. If its zero points are not 0, the product is corrected afterwards.
"""

from collections.abc import Mapping

import numpy as np

from allocator.machine_code.door import address
from ops.convolution.nhwc_shapes import case_of
from ops.native.call import Native, Step
from ops.native.records import pack_args
from ops.quantised.args import CORRECT, START_SUMS
from ops.quantised.nhwc_conv import NHWC_QUANTISED_CONV
from ops.quantised.nhwc_source import SHIFT, source_of
from ops.quantised.nhwc_tiled import by_panel, convolve_step, copy_spec, copying, has_vnni, pack_panels, packed_specs
from ops.quantised.params import BYTES, SINGLE
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, Signature, Specs, Thunk, all_contiguous, first_weights, unless
from ops.tensor.spec import Array, TensorSpec

B, A_ZERO, B_ZERO = 1, 2, 3
_INT8, _INT32 = np.dtype("int8"), np.dtype("int32")
_MODULE = "ops.quantised.matmul_code"


def _as_conv(signature: Signature) -> Signature:
    """Returns the convolution whose pixels are the rows of the first factor."""
    a, (depth, outputs) = signature.x, signature.inputs[B].shape
    x, w = a.with_shape((1, a.size // depth, depth)), TensorSpec((outputs, depth, 1), _INT8)
    channels = TensorSpec((outputs,), SINGLE)
    return NHWC_QUANTISED_CONV.sign([x, w, channels, channels.with_dtype(_INT32)], {"to": SINGLE})


def _supports(signature: Signature) -> bool:
    a, b, *zeros = signature.inputs
    constant = B in signature.constants and (len(zeros) < 2 or B_ZERO in signature.constants)
    plain = b.ndim == 2 and {a.dtype, b.dtype} <= BYTES and a.size > 0 and b.size > 0
    return constant and plain and all(z.size == 1 for z in zeros[:1]) and has_vnni()


_unsupported = unless(_supports, "the second matrix is not constant, or several zero points, or no AVX-512 VNNI")


def _scratch_specs(signature: Signature) -> tuple[TensorSpec, TensorSpec]:
    """Returns the specs of a copy of the first factor, if it needs one, and of the starts of sums."""
    outputs = signature.inputs[B].shape[1]
    return copy_spec(_as_conv(signature)), TensorSpec((outputs + -outputs % 32,), _INT32)


def _pack(signature: Signature, constants: Mapping[int, Array]) -> tuple[Array, ...]:
    """Returns panels, sums of columns by panel, unused factors, a run of zeros, and zero points that may not be 0."""
    conv, b = _as_conv(signature), constants[B]
    shift = SHIFT if b.dtype == np.dtype("uint8") else 0
    weights = (b ^ np.uint8(shift)).view(np.int8) if shift else b
    zeros = constants[B_ZERO].astype(np.int32).reshape(-1) if B_ZERO in constants else np.zeros(1, np.int32)
    panels = pack_panels(conv, weights.T[..., None])
    sums = np.ascontiguousarray(by_panel(weights.sum(0, dtype=np.int32)[None]))
    _, _, _, run, *point = _packed_specs(signature)
    spread = np.ascontiguousarray(np.broadcast_to(zeros - np.int32(shift), (b.shape[1],)))
    return panels, sums, np.zeros(sums.shape, SINGLE), np.zeros(run.shape, run.dtype), *(spread for _ in point)


def _packed_specs(signature: Signature) -> Specs:
    b = signature.inputs[B]
    has_points = b.dtype != _INT8 or len(signature.inputs) > B_ZERO
    return *packed_specs(_as_conv(signature)), *((TensorSpec((b.shape[1],), _INT32),) if has_points else ())


def _bind(call: Binding) -> Thunk:
    conv, (panels, sums, factors, zeros, *spread) = _as_conv(call.signature), call.packed
    buffer, starts = call.temporaries
    a, y = call.x.reshape(conv.x.shape), call.y.reshape(conv.y.shape)
    inner = Binding(conv, (a,), (y,), (buffer,), (panels, starts, factors, zeros))
    signed = int(a.dtype == _INT8)
    zero = np.asarray(call.inputs[A_ZERO]) if len(call.inputs) > A_ZERO else None
    place = 0 if zero is None else zero.ctypes.data
    start = pack_args(
        START_SUMS,
        zero=place,
        signed=signed,
        column_sums=sums.ctypes.data,
        starts=starts.ctypes.data,
        count=starts.size,
    )
    steps = [Step(address(_MODULE, "start_sums"), start)]
    if source_of(conv).copied:
        steps.append(copying(inner, case_of(conv), buffer))
    steps.append(convolve_step(inner, case_of(conv), buffer, raw=True))
    for b_zeros in (points for points in spread if points.any()):
        correct = pack_args(
            CORRECT,
            zero=place,
            signed=signed,
            a=a.ctypes.data,
            depth=a.shape[-1],
            y=y.ctypes.data,
            columns=y.shape[-1],
            rows=a.shape[1],
            b_zeros=b_zeros.ctypes.data,
        )
        steps.append(Step(address(_MODULE, "correct"), correct))
    return Native(tuple(steps), (a, y, zero, *call.packed, starts, buffer))


TILED = Kernel(
    "tiled",
    _bind,
    _scratch_specs,
    contiguous=all_contiguous,
    pack=_pack,
    packed_specs=_packed_specs,
    unsupported=_unsupported,
    backend=NUMBA,
    unread_after_pack=first_weights,
    reads_packed_at_bind=True,
)
"""A constant matrix, and one zero point for all of the first factor; AVX-512 with VNNI."""
