"""Converters of onnxruntime's operators on quantised tensors: dequantised, computed, quantised.

Passes compute most of that on the quantised values.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from engine.onnx.converters.nn import WINDOW, check_kernel
from engine.onnx.converters.onnxruntime.contract import Step, Versions, contract, in_chain, required
from engine.onnx.converters.quantised import dequantize, quantize, stay_quantised
from engine.onnx.model_names import Value
from engine.onnx.node import Converter, Node
from engine.onnx.structures import Held
from engine.text.errors import ModelError

_POOL = (*WINDOW, "kernel_shape", "ceil_mode")


def real(node: Node, index: int, axis: int = 1) -> Value:
    """Returns the real numbers of an input, behind which its scale and its zero point stand."""
    zero = node.optional(index + 2)
    parameters = (node.value(index + 1),) if zero is None else (node.value(index + 1), zero)
    return node.step("dequantize_linear", stay_quantised(node, node.value(index)), *parameters, axis=axis)


def quantised_by(node: Node, scale: int, like: Value) -> Step:
    """Returns the step that quantises by the input `scale` and the zero point behind it, to the type of `like`."""
    zero = node.optional(scale + 1)
    if zero is None:
        return Step("quantize_linear", (node.value(scale),), {"to": like.dtype})
    return Step("quantize_linear", (node.value(scale), zero))


def _pair(schema: str) -> Converter:
    """Returns the converter of an operator on two quantised tensors."""

    def convert(node: Node) -> tuple[Value, ...]:
        step = Step(schema, (real(node, 3),))
        return (in_chain(node, real(node, 0), step, quantised_by(node, 6, node.value(0))),)

    return convert


def _single(schema: str, **defaults: Any) -> Converter:
    """Returns the converter of an operator on one quantised tensor. `defaults` are those of its attributes."""

    def convert(node: Node) -> tuple[Value, ...]:
        step = Step(schema, (), {name: node.attr(name, number) for name, number in defaults.items()})
        return (in_chain(node, real(node, 0), step, quantised_by(node, 3, node.value(0))),)

    return convert


def _concat(node: Node) -> tuple[Value, ...]:
    if len(node.inputs) < 5 or len(node.inputs) % 3 != 2:
        raise ModelError(f"{len(node.inputs)} inputs are not a scale, a zero point, and three for each tensor")
    first, *others = (real(node, i) for i in range(2, len(node.inputs), 3))
    step = Step("concat", tuple(others), {"axis": required(node, "axis")})
    return (in_chain(node, first, step, quantised_by(node, 0, node.value(2))),)


def _where(node: Node) -> tuple[Value, ...]:
    step = Step("where", (real(node, 1), real(node, 4)))
    return (in_chain(node, node.value(0), step, quantised_by(node, 7, node.value(1))),)


def _channels_first(rank: int) -> Step:
    return Step("transpose", (), {"perm": (0, rank - 1, *range(1, rank - 1))})


def _channels_last(rank: int) -> Step:
    return Step("transpose", (), {"perm": (0, *range(2, rank), 1)})


def _around(node: Node, *steps: Step, is_last: int) -> tuple[Step, ...]:
    """Returns steps that work with channels first, for tensors whose channels may stand last."""
    rank = len(node.value(0).shape)
    return (_channels_first(rank), *steps, _channels_last(rank)) if is_last else steps


def _pooled(schema: str, *attributes: str) -> Converter:
    """Returns the converter of the average of a quantised tensor over windows."""

    def convert(node: Node) -> tuple[Value, ...]:
        step = Step(schema, (), node.present(*attributes))
        steps = (*_around(node, step, is_last=node.attr("channels_last", 0)), quantised_by(node, 3, node.value(0)))
        return (in_chain(node, real(node, 0), *steps),)

    return convert


def _max_pool(node: Node) -> tuple[Value, ...]:
    step = Step("max_pool", (), node.present(*_POOL))
    return (in_chain(node, node.value(0), *_around(node, step, is_last=1)),)


def _conv(node: Node) -> tuple[Value, ...]:
    """Converts QLinearConv, whose channels may stand last."""
    check_kernel(node, 3)
    x, *others = node.operands()
    step = Step("qlinear_conv", tuple(others), node.present(*WINDOW, "group"))
    return (in_chain(node, x, *_around(node, step, is_last=node.attr("channels_last", 0))),)


def _gemm(node: Node) -> tuple[Value, ...]:
    """Converts QGemm. C has the scale of the products, alpha included; without y_scale the result is real."""
    transposed, alpha = node.attr("transB", 0), node.attr("alpha", 1.0)
    operands = [real(node, 3, axis=0 if transposed else 1)]
    if node.optional(6) is not None:
        scale = node.step("mul", node.step("mul", node.value(1), node.value(4)), node.like(alpha, node.value(1)))
        added = stay_quantised(node, node.value(6))
        operands.append(node.step("dequantize_linear", added, _flat(node, scale), axis=len(added.shape) - 1))
    attrs = {"alpha": alpha, "trans_a": node.attr("transA", 0), "trans_b": transposed}
    steps = [Step("gemm", tuple(operands), attrs)]
    if node.optional(7) is not None:
        zero = node.optional(8)
        steps.append(quantised_by(node, 7, node.value(0) if zero is None else zero))
    return (in_chain(node, real(node, 0), *steps),)


def _flat(node: Node, scale: Value) -> Value:
    """Returns a scale of one number as a scalar."""
    return node.step("reshape", scale, shape=()) if scale.shape == (1,) else scale


def _softmax(node: Node) -> tuple[Held | None, ...]:
    """Converts QLinearSoftmax of operator sets from 13 on: of one axis, not of the axes from one on."""
    rank = len(node.value(0).shape)
    if required(node, "opset") < 13 and node.attr("axis", -1) not in (-1, rank - 1):
        raise node.refuse("softmax over several axes, as before opset 13, is not supported")
    return _single("softmax", axis=-1)(node)


def _declared(convert: Converter, inputs: int, *attributes: str) -> Versions:
    return contract(convert, *attributes, inputs=inputs)


_OF_LINEAR: Sequence[str] = ("axis", "block_size", "output_dtype", "precision", "saturate")
_MOST_INPUTS = 2**16
CONVERTERS: Mapping[str, Versions] = MappingProxyType(
    {
        "QuantizeLinear": _declared(quantize, 3, *_OF_LINEAR),
        "DequantizeLinear": _declared(dequantize, 3, *_OF_LINEAR),
        "QLinearAdd": _declared(_pair("add"), 8),
        "QLinearMul": _declared(_pair("mul"), 8),
        "QLinearSigmoid": _declared(_single("sigmoid"), 5),
        "QLinearLeakyRelu": _declared(_single("leaky_relu", alpha=0.01), 5, "alpha"),
        "QLinearSoftmax": _declared(_softmax, 5, "axis", "opset"),
        "QLinearWhere": _declared(_where, 9),
        "QLinearConcat": _declared(_concat, _MOST_INPUTS, "axis"),
        "QLinearGlobalAveragePool": _declared(_pooled("global_average_pool"), 5, "channels_last"),
        "QLinearAveragePool": _declared(
            _pooled("average_pool", *_POOL, "count_include_pad"), 5, *_POOL, "count_include_pad", "channels_last"
        ),
        "NhwcMaxPool": _declared(_max_pool, 1, *_POOL),
        "QLinearConv": _declared(_conv, 9, *WINDOW, "group", "kernel_shape", "channels_last"),
        "QGemm": _declared(_gemm, 9, "alpha", "transA", "transB"),
    }
)
