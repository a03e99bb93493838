"""Data of elements that are smaller than a byte: ONNX packs them, the lowest bits first; here each takes a byte."""

from collections.abc import Mapping
from typing import Any, Final

import ml_dtypes
import numpy as np

from ops.tensor.spec import Array, TensorSpec

_BITS: Final[Mapping[np.dtype[Any], int]] = {
    np.dtype(ml_dtypes.int2): 2,
    np.dtype(ml_dtypes.uint2): 2,
    np.dtype(ml_dtypes.int4): 4,
    np.dtype(ml_dtypes.uint4): 4,
    np.dtype(ml_dtypes.float4_e2m1fn): 4,
}


def is_packed(dtype: np.dtype[Any]) -> bool:
    """Returns whether ONNX packs elements of this type, so that an array of them must be made."""
    return dtype in _BITS


def stored_bytes(spec: TensorSpec) -> int:
    """Returns the bytes of a tensor in a file: elements that are smaller than a byte share one."""
    return -(-spec.size * _BITS[spec.dtype] // 8) if is_packed(spec.dtype) else spec.nbytes


def from_bytes(data: Any, offset: int, spec: TensorSpec) -> Array:
    """Returns the tensor in a buffer: a read-only part of it, or a new array where elements have to be unpacked."""
    if is_packed(spec.dtype):
        return _unpacked(np.frombuffer(data, np.uint8, stored_bytes(spec), offset), spec)
    array = np.frombuffer(data, spec.dtype.newbyteorder("<"), spec.size, offset).reshape(spec.shape)
    return array.astype(spec.dtype, copy=False)


def _unpacked(packed: Array, spec: TensorSpec) -> Array:
    bits = _BITS[spec.dtype]
    codes = np.empty((packed.size, 8 // bits), np.uint8)
    for place in range(8 // bits):
        np.right_shift(packed, place * bits, out=codes[:, place])
    codes &= (1 << bits) - 1
    return codes.reshape(-1)[: spec.size].view(spec.dtype).reshape(spec.shape)
