"""Local response normalization of channels-last tensors, compiled: pixel by pixel, vectors along the channels."""

import numpy as np

from allocator.machine_code.door import address
from ops.native.call import native_call
from ops.norm.args import LRN, MOST_CHANNELS
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, Signature, Thunk, unless
from ops.windows.pixels import dense_pixels, pitch


def _supports(signature: Signature) -> bool:
    return signature.x.dtype == np.dtype("float32") and signature.x.shape[-1] <= MOST_CHANNELS


_unsupported = unless(_supports, "not float32, or too many channels")


def _bind(call: Binding) -> Thunk:
    x, y, attrs = call.x, call.y, call.attrs
    channels, size = x.shape[-1], attrs["size"]
    return native_call(
        address("ops.norm.lrn_code", "normalise"),
        LRN,
        x=x,
        y=y,
        pixels=x.size // max(channels, 1),
        channels=channels,
        x_pitch=4 * pitch(x),
        y_pitch=4 * pitch(y),
        size=min(size, 2 * channels + 1),  # a larger window reads no channel more
        factor=attrs["alpha"] / size,
        bias=attrs["bias"],
        beta=attrs["beta"],
    )


LRN_NATIVE = Kernel("native", _bind, reads=dense_pixels, unsupported=_unsupported, writes=dense_pixels, backend=NUMBA)
"""float32, not too many channels."""
