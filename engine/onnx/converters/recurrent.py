"""Converters of recurrent layers."""

from collections.abc import Mapping
from types import MappingProxyType

from engine.onnx.model_names import Value
from engine.onnx.node import Converter, Node
from engine.text.errors import ModelError
from ops.recurrent.shapes import OPTIONAL

_OPTIONS = ("direction", "layout", "clip", "activation_alpha", "activation_beta")


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _recurrent(schema: str, *own: str) -> Converter:
    """Returns the converter of one kind of layer with its own attributes. It computes y only if the model uses it."""

    def convert(node: Node) -> tuple[Value, ...]:
        return recurrent(node, schema, (node.value(1), node.value(2)), *own)

    return convert


def recurrent(node: Node, schema: str, weights: tuple[Value, Value], *own: str) -> tuple[Value, ...]:
    """Adds a layer with its own attributes, and with weights for inputs and for states."""
    wanted, hidden = node.attr("hidden_size"), weights[1].shape[-1]
    if wanted not in (None, hidden):
        raise ModelError(f"hidden_size is {wanted}, and R has {hidden}")
    optional = {name: node.optional(3 + i) for i, name in enumerate(OPTIONAL)}
    operands = {name: value for name, value in optional.items() if value is not None}
    attrs = node.present(*_OPTIONS, *own) | {"activations": tuple(map(_text, node.attr("activations", ())))}
    with_y = node.uses_output(0)
    values = (node.value(0), *weights, *operands.values())
    names = node.outputs if with_y else node.outputs[1:]
    attrs |= {"given": tuple(operands), "with_y": with_y}
    outputs = node.builder.emit(schema, values, attrs, node.name, names)
    return outputs if with_y else (outputs[0], *outputs)


CONVERTERS: Mapping[str, tuple[tuple[int, Converter | None], ...]] = MappingProxyType(
    {
        "RNN": ((7, _recurrent("rnn")),),
        "GRU": ((7, _recurrent("gru", "linear_before_reset")),),
        "LSTM": ((7, _recurrent("lstm", "input_forget")),),
    }
)
