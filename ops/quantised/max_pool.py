"""Maximum pooling of channels-last codes, compiled: 64 channels at a time, windows clipped to what lies inside."""

import numpy as np

from ops.common.windows import windows
from ops.native.call import Native, Step
from ops.native.door import address
from ops.quantised.nhwc_source import flip_of, spatial
from ops.quantised.nhwc_tiled import has_vnni
from ops.quantised.params import BYTES
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, Signature, Thunk
from ops.windows.pixels import dense_pixels, pitch


def _supports(signature: Signature) -> bool:
    return signature.x.dtype in BYTES and signature.x.ndim <= 5 and signature.y.size > 0 and has_vnni()


def _bind(call: Binding) -> Thunk:
    w = windows(call.x.shape[1:-1], call.attrs["kernel_shape"], call.attrs)
    ones = (spatial(v, 1) for v in (w.sizes, w.outputs, w.kernel, w.strides, w.dilations))
    words = (
        *(call.x.ctypes.data, pitch(call.x), call.y.ctypes.data, pitch(call.y)),
        *(call.x.shape[0], call.x.shape[-1], flip_of(np.dtype(call.x.dtype))),
        *(n for entry in ones for n in entry),
        *spatial(w.begins, 0),
    )
    return Native((Step(address("ops.quantised.max_pool_code", "largest"), words),), (call.x, call.y))


MAX_CODES = Kernel("codes", _bind, reads=dense_pixels, supports=_supports, writes=dense_pixels, backend=NUMBA)
"""int8 and uint8, up to three spatial dimensions, vectors of 64 bytes."""
