"""The kernels of compiled pooling of (N, C, spatial...): float32, images that are dense."""

import math
from functools import partial

import numpy as np

from allocator.machine_code.door import address
from ops.common.batches import dense_images, image_bytes
from ops.common.windows import MOST, pool_windows
from ops.native.call import native_call
from ops.pool.args import GLOBAL, PLANES
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, Signature, Thunk, all_contiguous, unless
from ops.windows.args import AVERAGE, AVERAGE_PADDED, LARGEST, geometry

LANES = 16
"""Outputs side by side that are computed at once."""


def _supports(signature: Signature) -> bool:
    return signature.x.dtype == np.dtype("float32") and signature.x.ndim <= 5 and len(signature.outputs) == 1


_unsupported = unless(_supports, "not float32, or indices are an output, or more than three spatial dimensions")


def _supports_windows(signature: Signature) -> bool:
    """Returns whether columns of a row, and those behind it that a vector of outputs may reach, fit into 32 bits."""
    if not _supports(signature):
        return False
    w = pool_windows(signature)
    return w.sizes[-1] + w.begins[-1] + w.ends[-1] + LANES * w.strides[-1] <= MOST


_not_windows = unless(
    _supports_windows, "not float32, or indices are an output, or more than three spatial dimensions, or too long rows"
)


def _bind(kind: int, call: Binding) -> Thunk:
    x, y, attrs = call.x, call.y, call.attrs
    return native_call(
        address("ops.pool.code", "pool"),
        PLANES,
        kind=AVERAGE_PADDED if attrs.get("count_include_pad", False) else kind,
        x=x,
        y=y,
        channels=x.shape[1],
        x_image=image_bytes(x),
        y_image=image_bytes(y),
        **geometry(pool_windows(call.signature)),
        images=len(x),
    )


def _bind_all(kind: int, call: Binding) -> Thunk:
    x, y = call.x, call.y
    rows, length = math.prod(x.shape[:2]), math.prod(x.shape[2:])
    return native_call(address("ops.pool.code", "pool_all"), GLOBAL, kind=kind, x=x, y=y, rows=rows, length=length)


MAX_PLANES, AVERAGE_PLANES = (
    Kernel(
        "native",
        partial(_bind, kind),
        reads=dense_images,
        unsupported=_not_windows,
        writes=dense_images,
        backend=NUMBA,
    )
    for kind in (LARGEST, AVERAGE)
)
"""Up to three spatial dimensions."""
MAX_ALL, AVERAGE_ALL = (
    Kernel("native", partial(_bind_all, kind), contiguous=all_contiguous, unsupported=_unsupported, backend=NUMBA)
    for kind in (LARGEST, AVERAGE)
)
"""Global pooling."""
