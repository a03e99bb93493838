"""Inputs of a model that are sequences or optionals, as inputs that are tensors.

The tensors of a sequence `x` are inputs `x[0]`, `x[1]` and so on: so many as the caller gives shapes, or arrays. An
optional has an element unless the caller says that it has none.
"""

import itertools
from collections.abc import Container, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from engine.onnx.library import onnx
from engine.onnx.model_names import Value
from engine.onnx.structures import EMPTY, TENSOR, Held, Layout, element_names, grouped
from engine.onnx.symbols import Length
from engine.text.errors import ModelError


@frozen(eq=False)
class InputChoices:
    """The choices of the caller about inputs: shapes by name, and arrays that inputs are fixed to.

    A sequence is fixed to a list of arrays, and an optional without an element to None.
    """

    shapes: Mapping[str, Sequence[Length]]
    constants: Mapping[str, Any]


@frozen(eq=False)
class TensorInputs:
    """The inputs of a graph, tensor by tensor: a ValueInfoProto for each, the form of each input, and the choices."""

    infos: Sequence[Any]
    layouts: Mapping[str, Layout]
    choices: InputChoices

    @classmethod
    def of(cls, inputs: Sequence[Any], choices: InputChoices) -> "TensorInputs":
        """Returns the tensors of the inputs of a GraphProto. Raises ModelError."""
        infos, layouts, constants = list[Any](), dict[str, Layout](), dict(choices.constants)
        for info in inputs:
            kind, is_optional, is_sequence = tensor_type(info.type)
            layout: Layout = TENSOR
            if is_optional and constants.get(info.name, ()) is None:
                layout = EMPTY
                del constants[info.name]
            elif is_sequence and info.name in constants:
                arrays = _arrays(info.name, constants.pop(info.name))
                layout = len(arrays)
                constants |= arrays
            elif is_sequence:
                layout = _count(info.name, {*choices.shapes, *constants})
            layouts[info.name] = layout
            infos += [_info(name, kind, is_sequence) for name in element_names(info.name, layout)]
        return cls(infos, layouts, evolve(choices, constants=constants))

    def grouped(self, tensors: Mapping[str, Value]) -> dict[str, Held]:
        """Returns the values of the inputs, from their tensors by name; those without a value are left out."""
        names = {name: element_names(name, layout) for name, layout in self.layouts.items()}
        return {
            name: grouped([layout], (tensors[n] for n in names[name]))[0]
            for name, layout in self.layouts.items()
            if all(n in tensors for n in names[name])
        }


def tensor_type(kind: Any) -> tuple[Any, bool, bool]:
    """Returns the type inside an optional and a sequence, and whether there are these."""
    is_optional = kind.WhichOneof("value") == "optional_type"
    kind = kind.optional_type.elem_type if is_optional else kind
    is_sequence = kind.WhichOneof("value") == "sequence_type"
    return kind.sequence_type.elem_type if is_sequence else kind, is_optional, is_sequence


def _info(name: str, kind: Any, is_element: bool) -> Any:
    """Returns the ValueInfoProto of a tensor. A dimension that a sequence names may differ between its tensors."""
    info = onnx().ValueInfoProto(name=name, type=kind)
    for dim in info.type.tensor_type.shape.dim if is_element else ():
        dim.ClearField("dim_param")
    return info


def _arrays(name: str, value: Any) -> dict[str, Any]:
    """Returns the arrays that a sequence is fixed to, by the names of its tensors."""
    if not isinstance(value, (list, tuple)):
        raise ModelError(f"input {name!r} is a sequence; it is fixed to a list of arrays, not {type(value).__name__}")
    return dict(zip(element_names(name, len(value)), value, strict=True))


def _count(name: str, named: Container[str]) -> int:
    """Returns how many tensors of a sequence the caller names. Raises ModelError where there are none."""
    count = next(i for i in itertools.count() if f"{name}[{i}]" not in named)
    if not count:
        first = f"{name}[0]"
        raise ModelError(
            f"input {name!r} is a sequence; give each of its tensors a shape, such as shapes={{{first!r}: (2, 3)}} or "
            f"--shape {first}=2,3, or fix it through constants={{{name!r}: []}}"
        )
    return count
