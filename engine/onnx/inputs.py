"""Inputs of an ONNX graph: which are fed, of which shapes, and which are fixed."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from engine.graph.graph import Graph
from engine.graph.var import Var
from engine.onnx.builder import GraphBuilder
from engine.onnx.input_layouts import InputChoices, TensorInputs
from engine.onnx.model_names import Value
from engine.onnx.scope import check_unique
from engine.onnx.structures import Held
from engine.onnx.symbols import Equal, Length, symbols_of
from engine.onnx.tensors import dtype_of
from engine.text.errors import ModelError, UnsupportedError
from ops.tensor.errors import OpError
from ops.tensor.spec import LOST_MASK, Array, as_shape, is_masked

_NAMELESS = frozenset(("", "?", "None", "-1"))
"""The names that exporters write for a dimension without a name."""
_OPEN = -1
"""The length that exporters write for an open dimension."""


@frozen(eq=False)
class Declared:
    """An input as the model declares it. `dims` is None where the model declares no shape."""

    name: str
    dtype: np.dtype[Any]
    dims: tuple[Length, ...] | None

    def __str__(self) -> str:
        shown = "any shape" if self.dims is None else f"[{', '.join(str(d) or '?' for d in self.dims)}]"
        return f"input {self.name!r} ({self.dtype} {shown})"


def _fed(tensors: TensorInputs, proto: Any) -> list[Declared]:
    """Returns the inputs of a GraphProto that are fed or fixed. One with an initializer is so only if named."""
    shapes, constants = tensors.choices.shapes, tensors.choices.constants
    names = [i.name for i in tensors.infos]
    check_unique(names, "input")
    for kind, named in (("shapes", shapes), ("constants", constants)):
        unknown = sorted(set(named) - set(names))
        if unknown:
            raise ModelError(f"{kind} names {unknown[0]!r}, which is no input; the inputs are: {', '.join(names)}")
    both = sorted(set(shapes) & set(constants))
    if both:
        raise ModelError(f"input {both[0]!r} is given a shape and fixed to an array at once")
    initialized = {t.name for t in proto.initializer} - set(shapes) - set(constants)
    return [declared(i) for i in tensors.infos if i.name not in initialized]


def read_inputs(proto: Any, choices: InputChoices, builder: GraphBuilder, equal: Equal) -> dict[str, Held]:
    """Returns the value of each input of a GraphProto: an array where it is fixed, else a new input of the graph."""
    tensors = TensorInputs.of(proto.input, choices)
    choices, inputs, values = tensors.choices, _fed(tensors, proto), dict[str, Value]()
    for one in inputs:
        if one.name in choices.constants:
            values[one.name] = fixed_array(one, choices.constants[one.name])
            builder.label(values[one.name], one.name)
    fixed = {name: value.shape for name, value in values.items()}
    shapes = shapes_of(inputs, {**choices.shapes, **fixed})
    fed = {one.name: shapes[one.name] for one in inputs if one.name not in values}
    symbols = symbols_of(builder.graph, fed, equal)
    for one in inputs:
        if one.name not in values:
            values[one.name] = _input(one, symbols.shape(one.name, shapes[one.name]), builder.graph)
    return tensors.grouped(values)


def _input(one: Declared, shape: Sequence[Any], graph: Graph) -> Var:
    try:
        return graph.input(one.name, shape, one.dtype)
    except OpError as error:
        raise ModelError(f"input {one.name!r}: {error}") from error


def declared(info: Any) -> Declared:
    """Reads a ValueInfoProto. Raises ModelError, and UnsupportedError for an input that is no tensor."""
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
    dims = tuple(_length(d) for d in tensor.shape.dim)
    negative = [d for d in dims if isinstance(d, int) and d < 0]
    if negative:
        raise ModelError(f"input {info.name!r} is declared with the dimension {negative[0]}")
    return Declared(info.name, dtype, dims)


def _length(dim: Any) -> Length:
    if dim.WhichOneof("value") == "dim_value":
        return "" if dim.dim_value == _OPEN else int(dim.dim_value)
    return "" if dim.dim_param in _NAMELESS else str(dim.dim_param)


def shapes_of(inputs: Sequence[Declared], shapes: Mapping[str, Sequence[Length]]) -> dict[str, tuple[Length, ...]]:
    """Returns the shape of each input, from its declaration and the caller's shapes. An open length is a name, or "".

    A name of a dimension means the same length in all inputs. Raises ModelError where declaration and shape differ.
    """
    lengths: dict[str, Length] = {}
    for one in inputs:
        if one.name in shapes:
            _bind(one, _checked_lengths(one, shapes[one.name]), lengths)
    return {one.name: _shape(one, shapes, lengths) for one in inputs}


def fixed_array(one: Declared, value: npt.ArrayLike) -> Array:
    """Returns the array that an input is fixed to. Raises ModelError where it does not fit the declaration."""
    if is_masked(value):
        raise ModelError(f"{one} cannot be fixed to {LOST_MASK}")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ModelError(f"{one} cannot be fixed to rows of different lengths") from error
    if array.dtype != one.dtype and not np.can_cast(array.dtype, one.dtype, "same_kind"):
        raise ModelError(f"{one} cannot be fixed to an array of {array.dtype}")
    _bind(one, array.shape, {})
    fixed = array.astype(one.dtype)
    if array.dtype.kind in "iu" and not np.array_equal(fixed, array):
        raise ModelError(f"{one} cannot be fixed to numbers that {one.dtype} does not hold")
    return fixed


def _checked_lengths(one: Declared, shape: Sequence[Length]) -> tuple[Length, ...]:
    try:
        numbers = iter(as_shape([n for n in shape if not isinstance(n, str)]))
    except OpError as error:
        raise ModelError(f"{one}: {error}") from error
    return tuple(n if isinstance(n, str) else next(numbers) for n in shape)


def _bind(one: Declared, shape: Sequence[Length], lengths: dict[str, Length]) -> None:
    """Compares a shape with the declaration, and adds the lengths of named dimensions to `lengths`."""
    if one.dims is None:
        return
    if len(shape) != len(one.dims):
        raise ModelError(f"{one} has {len(one.dims)} dimensions; the shape {tuple(shape)} has {len(shape)}")
    for axis, (length, dim) in enumerate(zip(shape, one.dims, strict=True)):
        if dim == "":
            continue
        fixed = lengths.setdefault(dim, length) if isinstance(dim, str) else dim
        if fixed != length:
            named = f" ({dim!r})" if isinstance(dim, str) else ""
            raise ModelError(f"{one} cannot have shape {tuple(shape)}: axis {axis}{named} is {fixed}, not {length}")


def _shape(one: Declared, shapes: Mapping[str, Sequence[Length]], lengths: Mapping[str, Length]) -> tuple[Length, ...]:
    if one.name in shapes:
        return _checked_lengths(one, shapes[one.name])
    if one.dims is None:
        message = f"{one}: give it a shape: shapes={{{one.name!r}: (1, 3, 224, 224)}}"
        raise ModelError(f"{message} or --shape {one.name}=1,3,224,224")
    return tuple(lengths.get(d, d) if isinstance(d, str) else d for d in one.dims)
