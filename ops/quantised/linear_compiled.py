"""float32 to codes of 8 bits and back with one scale for all, as compiled calls."""

import numpy as np

from ops.native.call import Native, Step
from ops.native.door import address
from ops.quantised.params import BYTES, SINGLE
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, Signature, Thunk
from ops.windows.pixels import dense_pixels, pitch

_INT8 = np.dtype("int8")


def _supports(signature: Signature) -> bool:
    """One scale of float32; codes on one side and float32 on the other."""
    scale, x, y = signature.inputs[1], signature.x, signature.y
    codes, real = (x, y) if x.dtype in BYTES else (y, x)
    precise = (signature.attrs.get("precision") or SINGLE) == SINGLE
    single = scale.size == 1 and scale.dtype == SINGLE and not signature.attrs["block_size"]
    return single and precise and codes.dtype in BYTES and real.dtype == SINGLE and y.size > 0


def _dense(signature: Signature) -> tuple[int, ...]:
    return tuple(range(1, len(signature.inputs)))


def _bind(call: Binding) -> Thunk:
    x, y = call.x, call.y
    flat = x.flags.c_contiguous and y.flags.c_contiguous
    length = x.size if flat else x.shape[-1]
    hops = (0, 0) if flat else (pitch(x) * x.itemsize, pitch(y) * y.itemsize)
    parameters = tuple(map(np.asarray, call.inputs[1:]))
    scale, *zero = (a.ctypes.data for a in parameters)
    backwards = x.dtype != SINGLE
    signed = (x if backwards else y).dtype == _INT8
    places = x.ctypes.data, y.ctypes.data, scale, zero[0] if zero else 0
    words = *places, x.size // length, length, *hops, int(backwards), int(signed)
    step = Step(address("ops.quantised.linear_code", "run", ()), words)
    return Native((step,), (x, *parameters, y))


LINEAR = Kernel(
    "native", _bind, contiguous=_dense, reads=dense_pixels, supports=_supports, writes=dense_pixels, backend=NUMBA
)
