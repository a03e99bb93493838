"""Converters of the layers of networks: matrix products, convolutions, pools, normalisation."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from engine.onnx.converters.elementwise import cast_to, in_single
from engine.onnx.model_names import Value
from engine.onnx.node import Converter, Node, direct
from engine.text.errors import ModelError
from ops.common.widened import WIDE

WINDOW = ("strides", "pads", "dilations", "auto_pad")


def gemm_attributes(node: Node) -> dict[str, Any]:
    """Returns the attributes of a Gemm."""
    return {
        "alpha": node.attr("alpha", 1.0),
        "beta": node.attr("beta", 1.0),
        "trans_a": node.attr("transA", 0),
        "trans_b": node.attr("transB", 0),
    }


def _gemm(node: Node) -> tuple[Value, ...]:
    return node.last("gemm", *node.operands(), **gemm_attributes(node))


def _einsum(node: Node) -> tuple[Value, ...]:
    equation = node.attr("equation", "")
    text = equation.decode() if isinstance(equation, bytes) else equation
    return node.last("einsum", *node.operands(), equation=text)


def check_kernel(node: Node, weights: int) -> None:
    """Raises ModelError where the attribute for windows differs from the weights, the input of that number."""
    declared, actual = node.attr("kernel_shape"), node.value(weights).shape[2:]
    if declared is not None and tuple(declared) != actual:
        raise ModelError(f"kernel_shape is {tuple(declared)}, and the weights have {actual}")


def _conv(node: Node) -> tuple[Value, ...]:
    check_kernel(node, 1)
    return node.last("conv", *node.operands(), **node.present(*WINDOW, "group"))


def _conv_transpose(node: Node) -> tuple[Value, ...]:
    check_kernel(node, 1)
    return node.last(
        "conv_transpose", *node.operands(), **node.present(*WINDOW, "group", "output_padding", "output_shape")
    )


_MOST_ELEMENTS = 2**25
"""The most elements of the weights of a Col2Im."""


def _col2im(node: Node) -> tuple[Value, ...]:
    """Converts to a transposed convolution whose weights put each row of a block at its place, and add up."""
    x, image, block = node.value(0), node.integers(1, "image_shape"), node.integers(2, "block_shape")
    axes, size = len(block), math.prod(block)
    strides, dilations = (tuple(node.attr(name, [1] * axes)) for name in ("strides", "dilations"))
    pads = tuple(node.attr("pads", [0] * 2 * axes))
    if len(x.shape) != 3 or len(image) != axes or not size or x.shape[1] % size:
        raise ModelError(f"blocks {block} of an image {image} are no columns of shape {x.shape}")
    around = [n + pads[i] + pads[axes + i] - dilations[i] * (block[i] - 1) - 1 for i, n in enumerate(image)]
    blocks = tuple(n // stride + 1 for n, stride in zip(around, strides, strict=True))
    if min(blocks) < 1 or x.shape[2] != math.prod(blocks):
        raise ModelError(f"{x.shape[2]} blocks are given, and an image {image} has {' x '.join(map(str, blocks))}")
    channels = x.shape[1] // size
    if channels * size * size > _MOST_ELEMENTS:
        raise node.refuse(f"blocks of {size} elements need weights of more than {_MOST_ELEMENTS} elements")
    weights = np.tile(np.eye(size, dtype=x.dtype), (channels, 1)).reshape(channels * size, 1, *block)
    return node.last(
        "conv_transpose",
        node.step("reshape", x, shape=(x.shape[0], channels * size, *blocks)),
        weights,
        strides=strides,
        dilations=dilations,
        pads=pads,
        output_padding=tuple(n % stride for n, stride in zip(around, strides, strict=True)),
        group=channels,
    )


def _max_pool(node: Node) -> tuple[Value, ...]:
    attrs = node.present(*WINDOW, "kernel_shape", "ceil_mode", "storage_order")
    return node.last("max_pool", node.value(0), with_indices=node.uses_output(1), **attrs)


def _average_pool(node: Node) -> tuple[Value, ...]:
    return node.last(
        "average_pool", node.value(0), **node.present(*WINDOW, "kernel_shape", "ceil_mode", "count_include_pad")
    )


def _lp_pool(node: Node) -> tuple[Value, ...]:
    return node.last(
        "lp_pool", node.value(0), p=node.attr("p", 2), **node.present(*WINDOW, "kernel_shape", "ceil_mode")
    )


def _batch_norm(node: Node) -> tuple[Value, ...]:
    """Converts BatchNormalization. Scale and statistics may have another dtype than x."""
    if not node.attr("spatial", 1):
        raise node.refuse("batch normalization with spatial=0 is not supported")
    if node.attr("training_mode", 0):
        return _batch_norm_training(node)
    if any(node.uses_output(i) for i in range(1, 5)):
        raise node.refuse("batch normalization in training is not supported before opset 14")
    x, *rest = node.operands()
    return node.last("batch_norm", x, *(cast_to(node, v, x.dtype) for v in rest), epsilon=node.attr("epsilon", 1e-5))


def _batch_norm_training(node: Node) -> tuple[Value, ...]:
    """Converts BatchNormalization with the statistics of the batch, which running statistics move towards."""
    x, scale, bias, *running = node.operands()
    wide = x.dtype if x.dtype in WIDE else np.dtype("float32")
    operands = (cast_to(node, v, wide) for v in (x, scale, bias))
    attrs = {"epsilon": node.attr("epsilon", 1e-5)}
    own, momentum = f"{node.name}/batch_norm_training", node.attr("momentum", 0.9)
    y, *batch = node.builder.emit(
        "batch_norm_training", [*operands], attrs, own, node.outputs[:1] if wide == x.dtype else ()
    )
    moved = [_moved(node, i, *pair, momentum) for i, pair in enumerate(zip(running, batch, strict=True), 1)]
    return (y if wide == x.dtype else node.output(0, "cast", y, to=x.dtype), *moved)


def _moved(node: Node, index: int, running: Value, batch: Value, momentum: float) -> Value:
    """Returns an output of BatchNormalization: running * momentum + batch * (1 - momentum)."""
    kept = node.step("mul", running, node.like(momentum, running))
    share = node.step("mul", batch, node.like(1 - momentum, batch))
    return node.output(index, "add", kept, cast_to(node, share, running.dtype))


def layer_norm(node: Node) -> tuple[Value, ...]:
    """Converts LayerNormalization."""
    return node.last(
        "layer_norm",
        *node.operands(),
        axis=node.attr("axis", -1),
        epsilon=node.attr("epsilon", 1e-5),
        with_stats=node.uses_output(1) or node.uses_output(2),
    )


def _group_norm(node: Node) -> tuple[Value, ...]:
    return node.last(
        "group_norm", *node.operands(), num_groups=node.attr("num_groups"), epsilon=node.attr("epsilon", 1e-5)
    )


def _group_norm_by_group(node: Node) -> tuple[Value, ...]:
    """Converts GroupNormalization before opset 21: one scale and one bias for each group, not for each channel."""
    x, scale, bias = node.operands()
    groups = node.attr("num_groups")
    if len(x.shape) < 2 or groups < 1 or x.shape[1] % groups:
        raise ModelError(f"{groups} groups do not divide the channels of shape {x.shape}")
    share = x.shape[1] // groups

    def spread(value: Value) -> Value:
        wide = node.step("expand", node.step("reshape", value, shape=(groups, 1)), shape=(groups, share))
        return node.step("reshape", wide, shape=(groups * share,))

    return node.last(
        "group_norm", x, spread(scale), spread(bias), num_groups=groups, epsilon=node.attr("epsilon", 1e-5)
    )


def _det(node: Node) -> tuple[Value, ...]:
    return in_single(node, "det", node.operands())


def _lrn(node: Node) -> tuple[Value, ...]:
    return node.last(
        "lrn",
        node.value(0),
        size=node.attr("size"),
        alpha=node.attr("alpha", 1e-4),
        beta=node.attr("beta", 0.75),
        bias=node.attr("bias", 1.0),
    )


CONVERTERS: Mapping[str, tuple[tuple[int, Converter | None], ...]] = MappingProxyType(
    {
        "Gemm": ((7, _gemm),),
        "Einsum": ((12, _einsum),),
        "MatMul": ((1, direct("matmul")),),
        "Det": ((11, _det),),
        "Conv": ((1, _conv),),
        "ConvTranspose": ((1, _conv_transpose),),
        "Col2Im": ((18, _col2im),),
        "MaxPool": ((1, _max_pool),),
        "AveragePool": ((7, _average_pool),),
        "LpPool": ((2, _lp_pool),),
        "GlobalAveragePool": ((1, direct("global_average_pool")),),
        "GlobalMaxPool": ((1, direct("global_max_pool")),),
        "GlobalLpPool": ((2, direct("global_lp_pool", p=2)),),
        "BatchNormalization": ((7, _batch_norm),),
        "LayerNormalization": ((17, layer_norm),),
        "InstanceNormalization": ((6, direct("instance_norm", epsilon=1e-5)),),
        "GroupNormalization": ((18, _group_norm_by_group), (21, _group_norm)),
        "RMSNormalization": ((23, direct("rms_norm", axis=-1, epsilon=1e-5)),),
        "LRN": ((1, _lrn),),
    }
)
