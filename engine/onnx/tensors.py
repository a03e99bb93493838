"""ONNX tensors as numpy arrays: element types, shapes, and data in files."""

from collections.abc import Mapping
from typing import Any, Final

import ml_dtypes
import numpy as np

from engine.onnx.external_data import NO_FILES, DataFiles
from engine.onnx.library import one_line, onnx
from engine.text.errors import ModelError, UnsupportedError
from ops.tensor.errors import OpError
from ops.tensor.spec import BFLOAT16, POWERS, Array, TensorSpec

_DTYPES: Final[Mapping[int, np.dtype[Any]]] = {
    1: np.dtype("float32"),
    2: np.dtype("uint8"),
    3: np.dtype("int8"),
    4: np.dtype("uint16"),
    5: np.dtype("int16"),
    6: np.dtype("int32"),
    7: np.dtype("int64"),
    9: np.dtype("bool"),
    10: np.dtype("float16"),
    11: np.dtype("float64"),
    12: np.dtype("uint32"),
    13: np.dtype("uint64"),
    16: BFLOAT16,
    17: np.dtype(ml_dtypes.float8_e4m3fn),
    18: np.dtype(ml_dtypes.float8_e4m3fnuz),
    19: np.dtype(ml_dtypes.float8_e5m2),
    20: np.dtype(ml_dtypes.float8_e5m2fnuz),
    21: np.dtype(ml_dtypes.uint4),
    22: np.dtype(ml_dtypes.int4),
    23: np.dtype(ml_dtypes.float4_e2m1fn),
    24: POWERS,
    25: np.dtype(ml_dtypes.uint2),
    26: np.dtype(ml_dtypes.int2),
}
EXTERNAL: Final = 1
"""The data location of a tensor whose data is in a file."""


def dtype_of(code: int, what: str) -> np.dtype[Any]:
    """Returns the numpy dtype of an ONNX element type; `what` names the tensor. Raises UnsupportedError."""
    if code in _DTYPES:
        return _DTYPES[code]
    names = onnx().TensorProto.DataType
    shown = names.Name(code).lower() if code in names.values() else f"number {code}"
    raise UnsupportedError(f"{what} has element type {shown}, which is not supported")


def code_of(dtype: np.dtype[Any]) -> int:
    """Returns the ONNX element type of a numpy dtype."""
    return next(code for code, candidate in _DTYPES.items() if candidate == dtype)


def array_of(tensor: Any, what: str, files: DataFiles = NO_FILES) -> Array:
    """Returns the data of a TensorProto: a new array, or a read-only part of one of the files. Raises ModelError."""
    spec = _spec(tensor, what)
    if tensor.data_location == EXTERNAL:
        return files.array(tensor, spec, what)
    try:
        array: Array = np.asarray(onnx().numpy_helper.to_array(tensor))
    except (ValueError, TypeError) as error:
        raise ModelError(f"{what} does not hold the data of a {spec}: {one_line(error)}") from error
    if array.shape != spec.shape or array.dtype != spec.dtype:
        raise ModelError(f"{what} does not hold the data of a {spec}")
    return array


def _spec(tensor: Any, what: str) -> TensorSpec:
    dtype = dtype_of(tensor.data_type, what)
    try:
        return TensorSpec(tuple(tensor.dims), dtype)
    except OpError as error:
        raise ModelError(f"{what}: {error}") from error
