"""Maximum pooling of channels-last quantised values, compiled: 64 channels at a time, windows clipped to the input."""

import numpy as np

from allocator.machine_code.door import address
from ops.common.windows import nhwc_pool_windows
from ops.native.call import native_call
from ops.quantised.args import MAX_POOL_ARGS
from ops.quantised.nhwc_source import flip_of
from ops.quantised.nhwc_tiled import has_vnni
from ops.quantised.params import BYTES
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, Signature, Thunk, unless
from ops.windows.args import geometry
from ops.windows.pixels import dense_pixels, pitch


def _supports(signature: Signature) -> bool:
    return signature.x.dtype in BYTES and signature.x.ndim <= 5 and signature.y.size > 0 and has_vnni()


_unsupported = unless(
    _supports, "not 8 bits, or more than three spatial dimensions, or no elements, or no AVX-512 VNNI"
)


def _bind(call: Binding) -> Thunk:
    return native_call(
        address("ops.quantised.max_pool_code", "largest"),
        MAX_POOL_ARGS,
        x=call.x,
        x_pitch=pitch(call.x),
        y=call.y,
        y_pitch=pitch(call.y),
        images=call.x.shape[0],
        channels=call.x.shape[-1],
        flip=flip_of(np.dtype(call.x.dtype)),
        **geometry(nhwc_pool_windows(call.signature)),
    )


QUANTISED_MAX_POOL = Kernel(
    "quantised", _bind, reads=dense_pixels, unsupported=_unsupported, writes=dense_pixels, backend=NUMBA
)
"""int8 and uint8, up to three spatial dimensions, vectors of 64 bytes."""
