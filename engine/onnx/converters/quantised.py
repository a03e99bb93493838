"""Converters of operators that quantise, and of layers that compute with quantised tensors."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from engine.onnx.converters.elementwise import cast_to
from engine.onnx.converters.nn import check_kernel
from engine.onnx.model_names import Value
from engine.onnx.node import Converter, Node, direct
from engine.onnx.tensors import dtype_of
from ops.tensor.spec import BFLOAT16

_SINGLE = np.dtype("float32")
_WINDOW = ("strides", "pads", "dilations", "auto_pad", "group")


def _element_type(node: Node, attribute: str) -> Any:
    """Returns the element type of an attribute, or None; 0 stands for none."""
    code = node.attr(attribute, 0)
    return dtype_of(code, f"attribute {attribute!r} of {node}") if code else None


def _grain(node: Node) -> dict[str, Any]:
    return {
        "axis": node.attr("axis", 1),
        "block_size": node.attr("block_size", 0),
        "to": _element_type(node, "output_dtype"),
    }


def quantize(node: Node) -> tuple[Value, ...]:
    """Converts QuantizeLinear."""
    precision = _element_type(node, "precision")
    saturation = node.present("saturate")
    return node.last("quantize_linear", *node.operands(), **_grain(node), precision=precision, **saturation)


def dequantize(node: Node) -> tuple[Value, ...]:
    """Converts DequantizeLinear; from or to bfloat16 where another type is named, by way of float32."""
    values, scale, *zero = node.operands()
    values, grain = stay_quantised(node, values), _grain(node)
    if grain["to"] is None or BFLOAT16 not in (grain["to"], scale.dtype):
        return node.last("dequantize_linear", values, scale, *zero, **grain)
    operands = values, cast_to(node, scale, _SINGLE), *zero
    if grain["to"] != BFLOAT16:
        return node.last("dequantize_linear", *operands, **grain)
    return node.last("cast", node.step("dequantize_linear", *operands, **{**grain, "to": _SINGLE}), to=BFLOAT16)


def stay_quantised(node: Node, values: Value) -> Value:
    """Returns quantised constants as a var, so that they are not dequantised now: passes use them as they are."""
    return node.builder.var(values) if isinstance(values, np.ndarray) and values.ndim else values


def _with_zeros(node: Node) -> tuple[Value, ...]:
    """Returns both factors and their zero points; the first is 0 where only the second is there."""
    left, right = node.value(0), node.value(1)
    zeros = [node.optional(2), node.optional(3)]
    if zeros[0] is None and zeros[1] is not None:
        zeros[0] = np.zeros((), left.dtype)
    return left, right, *(z for z in zeros if z is not None)


def _matmul_integer(node: Node) -> tuple[Value, ...]:
    return node.last("matmul_integer", *_with_zeros(node))


def _conv_integer(node: Node) -> tuple[Value, ...]:
    check_kernel(node, 1)
    return node.last("conv_integer", *_with_zeros(node), **node.present(*_WINDOW))


def _qlinear_conv(node: Node) -> tuple[Value, ...]:
    check_kernel(node, 3)
    return node.last("qlinear_conv", *node.operands(), **node.present(*_WINDOW))


CONVERTERS: Mapping[str, tuple[tuple[int, Converter | None], ...]] = MappingProxyType(
    {
        "QuantizeLinear": ((10, quantize),),
        "DequantizeLinear": ((10, dequantize),),
        "DynamicQuantizeLinear": ((11, direct("dynamic_quantize_linear")),),
        "MatMulInteger": ((10, _matmul_integer),),
        "QLinearMatMul": ((10, direct("qlinear_matmul")),),
        "ConvInteger": ((10, _conv_integer),),
        "QLinearConv": ((10, _qlinear_conv),),
    }
)
