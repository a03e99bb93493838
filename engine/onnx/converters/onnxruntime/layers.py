"""Converters of onnxruntime's activations, and of its products and convolutions with what was fused into them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from engine.onnx.converters.nn import WINDOW, check_kernel, gemm_attributes
from engine.onnx.converters.onnxruntime.contract import Step, Versions, contract, in_chain, required
from engine.onnx.model_names import Value
from engine.onnx.node import Node
from engine.text.errors import ModelError

_ACTIVATIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Relu": ("relu",),
        "Sigmoid": ("sigmoid",),
        "Tanh": ("tanh",),
        "Softplus": ("softplus",),
        "Softsign": ("softsign",),
        "LeakyRelu": ("leaky_relu", "alpha"),
        "Elu": ("elu", "alpha"),
        "ThresholdedRelu": ("thresholded_relu", "alpha"),
        "HardSigmoid": ("hard_sigmoid", "alpha", "beta"),
        "Selu": ("selu", "alpha", "gamma"),
    }
)
"""The schema of an activation that was fused, and its parameters in the order in which FusedConv has them."""


def _schema_of(node: Node, name: str) -> tuple[str, ...]:
    if name not in _ACTIVATIONS:
        raise node.refuse(f"activation {name!r} is not supported")
    return _ACTIVATIONS[name]


def _transposed(node: Node, value: Value, side: str) -> Value:
    """Returns a factor transposed as attributes say: the first axis behind the others, then the last two exchanged."""
    rank = len(value.shape)
    axes = list(range(rank))
    if rank > 1 and node.attr(f"transBatch{side}", 0):
        axes = [*axes[1:-1], axes[0], axes[-1]]
    if rank > 1 and node.attr(f"trans{side}", 0):
        axes[-2:] = axes[:-3:-1]
    return value if axes == sorted(axes) else node.step("transpose", value, perm=tuple(axes))


def _fused_matmul(node: Node) -> tuple[Value, ...]:
    factors = (_transposed(node, node.value(0), "A"), _transposed(node, node.value(1), "B"))
    alpha = node.attr("alpha", 1.0)
    scale = () if alpha == 1.0 else (Step("mul", (node.like(alpha, factors[0]),)),)
    return (in_chain(node, factors[0], Step("matmul", factors[1:]), *scale),)


def _fused_gemm(node: Node) -> tuple[Value, ...]:
    a, *others = node.operands()
    schema, *parameters = _schema_of(node, required(node, "activation"))
    attrs = {name: required(node, f"activation_{name}") for name in parameters}
    return (in_chain(node, a, Step("gemm", tuple(others), gemm_attributes(node)), Step(schema, (), attrs)),)


def _fused_conv(node: Node) -> tuple[Value, ...]:
    """Converts FusedConv: the activation of a convolution, to which a fourth input is added before."""
    check_kernel(node, 1)
    x, weights, bias, added = node.value(0), node.value(1), node.optional(2), node.optional(3)
    operands = (weights,) if bias is None else (weights, bias)
    addition = () if added is None else (Step("add", (added,)),)
    attrs = node.present(*WINDOW, "group")
    return (in_chain(node, x, Step("conv", operands, attrs), *addition, *_activation_of_conv(node, x)),)


def _activation_of_conv(node: Node, x: Value) -> tuple[Step, ...]:
    name, numbers = node.attr("activation", ""), node.attr("activation_params", ())
    if not name:
        return ()
    if name == "Clip":
        _check_count(numbers, 2)
        return (Step("clip", tuple(node.like(n, x) for n in numbers)),)
    schema, *parameters = _schema_of(node, name)
    _check_count(numbers, len(parameters))
    return (Step(schema, (), dict(zip(parameters, numbers, strict=True))),)


def _check_count(numbers: Any, count: int) -> None:
    if len(numbers) != count:
        raise ModelError(f"activation_params has {len(numbers)} numbers; it must have {count}")


def _biased_gelu(approximate: str) -> Any:
    """Returns the converter of a Gelu of a sum with a bias, which may be left out."""

    def convert(node: Node) -> tuple[Value, ...]:
        bias = node.optional(1)
        addition = () if bias is None else (Step("add", (bias,)),)
        return (in_chain(node, node.value(0), *addition, Step("gelu", (), {"approximate": approximate})),)

    return convert


def _quick_gelu(node: Node) -> tuple[Value, ...]:
    return node.last("swish", node.value(0), alpha=node.attr("alpha", 1.702))


_GEMM = ("alpha", "beta", "transA", "transB")
CONVERTERS: Mapping[str, Versions] = MappingProxyType(
    {
        "FusedMatMul": contract(_fused_matmul, "alpha", "transA", "transB", "transBatchA", "transBatchB", inputs=2),
        "FusedGemm": contract(
            _fused_gemm, *_GEMM, "activation", "activation_alpha", "activation_beta", "activation_gamma", inputs=3
        ),
        "FusedConv": contract(
            _fused_conv, *WINDOW, "group", "kernel_shape", "activation", "activation_params", inputs=4
        ),
        "Gelu": contract(_biased_gelu("none"), inputs=1),
        "BiasGelu": contract(_biased_gelu("none"), inputs=2),
        "FastGelu": contract(_biased_gelu("tanh"), inputs=2),
        "QuickGelu": contract(_quick_gelu, "alpha", inputs=1),
    }
)
