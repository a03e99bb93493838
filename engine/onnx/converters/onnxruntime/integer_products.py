"""Converters of onnxruntime's products of quantised matrices with real results, and of layers around such products."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from engine.onnx.converters.onnxruntime.attention import SCORES, attention
from engine.onnx.converters.onnxruntime.contract import Step, Versions, contract, in_chain, required
from engine.onnx.converters.quantised import stay_quantised
from engine.onnx.converters.recurrent import recurrent
from engine.onnx.model_names import Value
from engine.onnx.node import Node
from engine.text.errors import ModelError
from ops.tensor.spec import Array

_FLOAT = np.dtype(np.float32)


def _integer_product(factors: tuple[Value, ...], scale: Value, bias: Value | None) -> tuple[Step, ...]:
    """Returns the steps of a product of quantised matrices that follow the first one, to real numbers.

    `factors` are the second matrix and zero points.
    """
    addition = () if bias is None else (Step("add", (bias,)),)
    product = (Step("matmul_integer", factors), Step("cast", (), {"to": _FLOAT}), Step("mul", (scale,)))
    return (*product, *addition)


def _zeros(node: Node, left: Value, first: Value | None, second: Value | None) -> tuple[Value, ...]:
    """Returns both zero points; 0 for the first one where only the second is there."""
    if second is None:
        return () if first is None else (first,)
    return node.like(0, left) if first is None else first, second


def _matmul_to_float(node: Node) -> tuple[Value, ...]:
    left, right = node.value(0), node.value(1)
    scale = node.step("mul", node.value(2), node.value(3))
    zeros = _zeros(node, left, node.optional(4), node.optional(5))
    return (in_chain(node, left, *_integer_product((right, *zeros), scale, node.optional(6))),)


def _dynamic_matmul(node: Node) -> tuple[Value, ...]:
    """Converts DynamicQuantizeMatMul: the left matrix is quantised when the network runs."""
    names, name = ("", "", ""), f"{node.name}/dynamic_quantize_linear"
    left, scale, zero = node.builder.emit("dynamic_quantize_linear", (node.value(0),), {}, name, names)
    scale = node.step("mul", scale, node.value(2))
    zeros = _zeros(node, left, zero, node.optional(3))
    return (in_chain(node, left, *_integer_product((node.value(1), *zeros), scale, node.optional(4))),)


def _quantised_attention(node: Node) -> tuple[Value | None, ...]:
    """Converts QAttention: Attention whose projections are a product of quantised matrices."""
    x, weights = node.value(0), node.value(1)
    scale = node.step("mul", node.value(3), node.value(4))
    zeros = _zeros(node, x, node.optional(6), node.optional(7))
    value = x
    for step in _integer_product((weights, *zeros), scale, node.value(2)):
        value = node.step(step.schema, value, *step.operands, **step.attrs)
    return attention(node, value, node.optional(5), node.optional(8), None)


def _dynamic_lstm(node: Node) -> tuple[Value, ...]:
    """Converts DynamicQuantizeLSTM: its weights are dequantised when the model is read, inputs and states stay real."""
    return recurrent(node, "lstm", (_weights(node, 1, 8), _weights(node, 2, 10)), "input_forget")


def _weights(node: Node, index: int, scale: int) -> Value:
    """Returns the real weights (directions, gates, inputs) of quantised ones (directions, inputs, gates)."""
    shape = (node.value(index).shape[0], 1, -1)
    whole, zero = (node.step("cast", node.value(i), to=_FLOAT) for i in (index, scale + 1))
    shifted = node.step("sub", whole, node.step("reshape", zero, shape=shape))
    wide = node.step("mul", shifted, node.step("reshape", node.value(scale), shape=shape))
    return node.step("transpose", wide, perm=(0, 2, 1))


def _matmul_of_few_bits(node: Node) -> tuple[Value, ...]:
    """Converts MatMulNBits: weights of 2, 4 or 8 bits, with a scale for each block of a row.

    They are stored in 8 bits each, and dequantised when the network runs.
    """
    bits, columns, depth, block = (node.attr("bits", 4), *(required(node, n) for n in ("N", "K", "block_size")))
    if bits not in (2, 4, 8):
        raise node.refuse(f"weights of {bits} bits are not supported, only of 2, 4 or 8")
    blocks = -(-depth // block)
    packed = node.array(1, "B")
    if packed.size * 8 != columns * blocks * block * bits:
        raise ModelError(
            f"B of shape {packed.shape} has not {columns} rows of {blocks} blocks of {block} x {bits} bits"
        )
    values = np.ascontiguousarray(_unpacked(packed.reshape(columns, -1), bits)[:, :depth])
    scales = node.step("reshape", node.value(2), shape=(columns, blocks))
    zeros = _zeros_of_blocks(node, bits, (columns, blocks))
    attrs = {"axis": 1, "block_size": block}
    weights = node.step("dequantize_linear", stay_quantised(node, values), scales, zeros, **attrs)
    bias = node.optional(5)
    addition = () if bias is None else (Step("add", (bias,)),)
    product = Step("matmul", (node.step("transpose", weights, perm=(1, 0)),))
    return (in_chain(node, node.value(0), product, *addition),)


def _zeros_of_blocks(node: Node, bits: int, shape: tuple[int, int]) -> Array:
    if node.optional(3) is None:
        return np.full(shape, 1 << (bits - 1), np.uint8)
    zeros = node.array(3, "zero_points")
    if zeros.dtype != np.uint8:
        raise node.refuse(f"zero points of {zeros.dtype} are not supported, only of uint8")
    return np.ascontiguousarray(_unpacked(zeros.reshape(shape[0], -1), bits)[:, : shape[1]])


def _unpacked(packed: Array, bits: int) -> Array:
    """Returns the numbers of a matrix of bytes, each of which has several, the lowest bits first."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    numbers = (packed[:, :, None] >> shifts) & np.uint8((1 << bits) - 1)
    return numbers.reshape(packed.shape[0], -1)


CONVERTERS: Mapping[str, Versions] = MappingProxyType(
    {
        "MatMulIntegerToFloat": contract(_matmul_to_float, inputs=7),
        "DynamicQuantizeMatMul": contract(_dynamic_matmul, inputs=5),
        "QAttention": contract(
            _quantised_attention,
            *SCORES,
            inputs=9,
            outputs=(0, 1),
            do_rotary=0,
            past_present_share_buffer=0,
        ),
        "DynamicQuantizeLSTM": contract(
            _dynamic_lstm,
            "activation_alpha",
            "activation_beta",
            "activations",
            "clip",
            "direction",
            "hidden_size",
            "input_forget",
            inputs=12,
            outputs=(0, 1, 2),
        ),
        "MatMulNBits": contract(
            _matmul_of_few_bits,
            "bits",
            "N",
            "K",
            "block_size",
            "accuracy_level",
            inputs=(0, 1, 2, 3, 5),
            weight_prepacked=0,
        ),
    }
)
