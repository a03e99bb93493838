"""Channels-last pooling, compiled: vectors along the channels, windows clipped to what lies inside."""

from functools import partial

import numpy as np

from ops.common.windows import nhwc_pool_windows
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, Signature, Thunk, unless
from ops.windows.args import AVERAGE, AVERAGE_PADDED, LARGEST
from ops.windows.call import windows_call
from ops.windows.pixels import dense_pixels


def _supports(signature: Signature) -> bool:
    return signature.x.dtype == np.dtype("float32") and signature.x.ndim <= 5


_unsupported = unless(_supports, "not float32, or more than three spatial dimensions")


def _bind(kind: int, call: Binding) -> Thunk:
    w = nhwc_pool_windows(call.signature)
    return windows_call(AVERAGE_PADDED if call.attrs.get("count_include_pad", False) else kind, w, call.x, call.y)


MAX_NATIVE, AVERAGE_NATIVE = (
    Kernel(
        "native", partial(_bind, kind), reads=dense_pixels, unsupported=_unsupported, writes=dense_pixels, backend=NUMBA
    )
    for kind in (LARGEST, AVERAGE)
)
"""float32, up to three spatial dimensions."""
