"""Local response normalization of channels-last tensors, compiled: pixel by pixel, vectors along the channels."""

import numpy as np

from ops.native.call import Native, Step
from ops.native.door import address
from ops.norm.lrn_kinds import MOST_CHANNELS
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, Signature, Thunk
from ops.windows.pixels import dense_pixels, pitch


def _supports(signature: Signature) -> bool:
    return signature.x.dtype == np.dtype("float32") and signature.x.shape[-1] <= MOST_CHANNELS


def _bind(call: Binding) -> Thunk:
    x, y, attrs = call.x, call.y, call.attrs
    channels, size = x.shape[-1], attrs["size"]
    pitches, near = (4 * pitch(x), 4 * pitch(y)), min(size, 2 * channels + 1)  # that is all there is
    shape = x.ctypes.data, y.ctypes.data, x.size // max(channels, 1), channels, *pitches, near
    numbers = map(float, (attrs["alpha"] / size, attrs["bias"], attrs["beta"]))
    return Native((Step(address("ops.norm.lrn_code", "normalise"), (*shape, *numbers)),), (x, y))


LRN_NATIVE = Kernel("native", _bind, reads=dense_pixels, supports=_supports, writes=dense_pixels, backend=NUMBA)
"""float32, not too many channels."""
