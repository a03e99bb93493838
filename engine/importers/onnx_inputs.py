"""Inputs of an ONNX graph: which are fed, of which shapes, and which are fixed."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from engine.errors import ModelError, UnsupportedError
from engine.importers.onnx_tensors import dtype_of
from ops.errors import OpError
from ops.spec import Array, Shape, TensorSpec, as_shape

Dim = int | str
"""A fixed length, or the name of one that is not ("" where it has none)."""


@frozen(eq=False)
class Declared:
    """An input as the model declares it. `dims` is None where it says nothing of the shape."""

    name: str
    dtype: np.dtype[Any]
    dims: tuple[Dim, ...] | None

    def __str__(self) -> str:
        shown = "any shape" if self.dims is None else f"[{', '.join(str(d) or '?' for d in self.dims)}]"
        return f"input {self.name!r} ({self.dtype} {shown})"


def declared(info: Any) -> Declared:
    """Reads a ValueInfoProto. Raises ModelError, UnsupportedError for what is no tensor."""
    if not info.name:
        raise ModelError("the graph has an input without a name")
    kind = info.type.WhichOneof("value")
    if kind != "tensor_type":
        shown = (kind or "no type").removesuffix("_type").replace("_", " ")
        raise UnsupportedError(f"input {info.name!r} is no tensor ({shown}); only tensors are supported")
    tensor = info.type.tensor_type
    dtype = dtype_of(tensor.elem_type, f"input {info.name!r}")
    if not tensor.HasField("shape"):
        return Declared(info.name, dtype, None)
    dims = tuple(d.dim_value if d.WhichOneof("value") == "dim_value" else d.dim_param for d in tensor.shape.dim)
    negative = [d for d in dims if isinstance(d, int) and d < 0]
    if negative:
        raise ModelError(f"input {info.name!r} is declared with the dimension {negative[0]}")
    return Declared(info.name, dtype, dims)


def specs_of(inputs: Sequence[Declared], shapes: Mapping[str, Sequence[int]]) -> dict[str, TensorSpec]:
    """The spec of each input, from its declaration and the shapes given. A name of a dimension holds for all inputs.

    Raises ModelError where the two differ, or where a dimension stays open.
    """
    lengths: dict[str, int] = {}
    for one in inputs:
        if one.name in shapes:
            _bind(one, _given(one, shapes[one.name]), lengths)
    return {one.name: _spec(one, shapes, lengths) for one in inputs}


def fixed_array(one: Declared, value: npt.ArrayLike) -> Array:
    """The array that an input is fixed to. Raises ModelError where it does not fit the declaration."""
    array = np.asarray(value)
    if array.dtype != one.dtype and not np.can_cast(array.dtype, one.dtype, "same_kind"):
        raise ModelError(f"{one} cannot be fixed to an array of {array.dtype}")
    _bind(one, array.shape, {})
    fixed = array.astype(one.dtype)
    if array.dtype.kind in "iu" and not np.array_equal(fixed, array):
        raise ModelError(f"{one} cannot be fixed to numbers that {one.dtype} does not hold")
    return fixed


def _given(one: Declared, shape: Sequence[int]) -> Shape:
    try:
        return as_shape(shape)
    except OpError as error:
        raise ModelError(f"{one}: {error}") from error


def _bind(one: Declared, shape: Shape, lengths: dict[str, int]) -> None:
    """Compares a shape with the declaration, and notes the lengths of named dimensions."""
    if one.dims is None:
        return
    if len(shape) != len(one.dims):
        raise ModelError(f"{one} has {len(one.dims)} dimensions; the shape given, {shape}, has {len(shape)}")
    for axis, (length, dim) in enumerate(zip(shape, one.dims, strict=True)):
        fixed = lengths.setdefault(dim, length) if isinstance(dim, str) and dim else dim
        if isinstance(fixed, int) and fixed != length:
            named = f" ({dim!r})" if isinstance(dim, str) else ""
            raise ModelError(f"{one} cannot have shape {shape}: axis {axis}{named} is {fixed}, not {length}")


def _spec(one: Declared, shapes: Mapping[str, Sequence[int]], lengths: Mapping[str, int]) -> TensorSpec:
    try:
        if one.name in shapes:
            return TensorSpec(as_shape(shapes[one.name]), one.dtype)
        dims = tuple(lengths.get(d, d) if isinstance(d, str) else d for d in _known(one))
        if any(isinstance(d, str) for d in dims):
            raise ModelError(_open(one, dims))
        return TensorSpec(tuple(int(d) for d in dims), one.dtype)
    except OpError as error:
        raise ModelError(f"input {one.name!r}: {error}") from error


def _known(one: Declared) -> tuple[Dim, ...]:
    if one.dims is None:
        message = f"{one}: give it a shape: shapes={{{one.name!r}: (1, 3, 224, 224)}}"
        raise ModelError(f"{message} or --shape {one.name}=1,3,224,224")
    return one.dims


def _open(one: Declared, dims: Sequence[Dim]) -> str:
    names = ", ".join(repr(d or "?") for d in dims if isinstance(d, str))
    example = [d if isinstance(d, int) else 1 for d in dims]
    python = f"shapes={{{one.name!r}: {tuple(example)}}}"
    shell = f"--shape {one.name}={','.join(map(str, example))}"
    return f"{one} leaves dimension {names} open; give its shape, for example {python} or {shell}"
