"""Converters of operators that work element by element: arithmetic, activations, comparison, casts."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from engine.onnx.model_names import Value
from engine.onnx.node import Converter, Node, direct
from engine.onnx.structures import Held
from engine.onnx.tensors import dtype_of
from engine.text.errors import ModelError
from ops.tensor.limits import info
from ops.tensor.spec import NARROW

_HALF, _SINGLE = np.dtype("float16"), np.dtype("float32")
SELU_ALPHA = 1.67326319217681884765625
SELU_GAMMA = 1.05070102214813232421875


def _limits(dtype: np.dtype[Any]) -> tuple[float, float]:
    limits = info(dtype)
    return limits.min, limits.max


def _clip_attributes(node: Node) -> tuple[Value, ...]:
    """Converts Clip before opset 11: the limits are attributes."""
    x = node.value(0)
    low, high = (node.attr(name, limit) for name, limit in zip(("min", "max"), _limits(x.dtype), strict=True))
    return node.last("clip", x, node.like(low, x), node.like(high, x))


def _clip(node: Node) -> tuple[Value, ...]:
    x = node.value(0)
    limits = (node.optional(1), node.optional(2))
    bounds = [
        node.like(limit, x) if bound is None else _scalar(node, bound)
        for bound, limit in zip(limits, _limits(x.dtype), strict=True)
    ]
    return node.last("clip", x, *bounds)


def _scalar(node: Node, value: Value) -> Value:
    """Returns a tensor of one element as a 0-d one."""
    if value.shape == ():
        return value
    if value.shape != (1,):
        raise ModelError(f"a limit must be one number, not shape {value.shape}")
    return node.step("reshape", value, shape=())


def cast_to(node: Node, value: Value, dtype: np.dtype[Any]) -> Value:
    """Returns the value with this dtype: itself where it has it already."""
    return value if value.dtype == dtype else node.step("cast", value, to=dtype)


def widened(node: Node, values: Sequence[Value]) -> list[Value]:
    """Returns the values with float32 in place of float16."""
    return [cast_to(node, v, _SINGLE) if v.dtype == _HALF else v for v in values]


def in_single(node: Node, schema: str, operands: Sequence[Value], **attrs: Any) -> tuple[Value, ...]:
    """Adds the operator that computes the output of the node; float16 is computed in float32, between casts."""
    if operands[0].dtype != _HALF:
        return node.last(schema, *operands, **attrs)
    return node.last("cast", node.step(schema, *widened(node, operands), **attrs), to=_HALF)


def _cast(node: Node, dtype: np.dtype[Any]) -> tuple[Value, ...]:
    x = node.value(0)
    rounding = node.present("saturate", "round_mode") if dtype in NARROW else {}
    return (x,) if x.dtype == dtype else node.last("cast", x, to=dtype, **rounding)


def _cast_attribute(node: Node) -> tuple[Value, ...]:
    return _cast(node, dtype_of(node.attr("to"), f"the output of {node}"))


def _bit_cast(node: Node) -> tuple[Value, ...]:
    return node.last("bit_cast", node.value(0), to=dtype_of(node.attr("to"), f"the output of {node}"))


def _cast_like(node: Node) -> tuple[Value, ...]:
    return _cast(node, node.value(1).dtype)


def _identity(node: Node) -> tuple[Held | None, ...]:
    return node.held


_SAME = {
    "Abs": ("abs", 6),
    "Neg": ("neg", 6),
    "Exp": ("exp", 6),
    "Log": ("log", 6),
    "Sqrt": ("sqrt", 6),
    "Reciprocal": ("reciprocal", 6),
    "Floor": ("floor", 6),
    "Ceil": ("ceil", 6),
    "Round": ("round", 11),
    "Sign": ("sign", 9),
    "Erf": ("erf", 9),
    "Sin": ("sin", 7),
    "Cos": ("cos", 7),
    "Tan": ("tan", 7),
    "Asin": ("asin", 7),
    "Acos": ("acos", 7),
    "Atan": ("atan", 7),
    "Sinh": ("sinh", 9),
    "Cosh": ("cosh", 9),
    "Asinh": ("asinh", 9),
    "Acosh": ("acosh", 9),
    "Atanh": ("atanh", 9),
    "Not": ("not", 1),
    "IsNaN": ("is_nan", 9),
    "BitwiseNot": ("bitwise_not", 18),
    "Relu": ("relu", 6),
    "PRelu": ("prelu", 7),
    "Sigmoid": ("sigmoid", 6),
    "HardSwish": ("hard_swish", 14),
    "Tanh": ("tanh", 6),
    "Softplus": ("softplus", 1),
    "Softsign": ("softsign", 1),
    "Mish": ("mish", 18),
    "Add": ("add", 7),
    "Sub": ("sub", 7),
    "Mul": ("mul", 7),
    "Div": ("div", 7),
    "Pow": ("pow", 7),
    "BitwiseAnd": ("bitwise_and", 18),
    "BitwiseOr": ("bitwise_or", 18),
    "BitwiseXor": ("bitwise_xor", 18),
    "Equal": ("equal", 7),
    "Less": ("less", 7),
    "LessOrEqual": ("less_or_equal", 12),
    "Greater": ("greater", 7),
    "GreaterOrEqual": ("greater_or_equal", 12),
    "And": ("and", 7),
    "Or": ("or", 7),
    "Xor": ("xor", 7),
    "Sum": ("sum", 6),
    "Mean": ("mean", 6),
    "Min": ("min", 6),
    "Max": ("max", 6),
    "Where": ("where", 9),
}

CONVERTERS: Mapping[str, tuple[tuple[int, Converter | None], ...]] = MappingProxyType(
    {
        **{op: ((since, direct(schema)),) for op, (schema, since) in _SAME.items()},
        "LeakyRelu": ((6, direct("leaky_relu", alpha=0.01)),),
        "HardSigmoid": ((6, direct("hard_sigmoid", alpha=0.2, beta=0.5)),),
        "Gelu": ((20, direct("gelu", approximate="none")),),
        "Elu": ((6, direct("elu", alpha=1.0)),),
        "Selu": ((6, direct("selu", alpha=SELU_ALPHA, gamma=SELU_GAMMA)),),
        "Celu": ((12, direct("celu", alpha=1.0)),),
        "ThresholdedRelu": ((10, direct("thresholded_relu", alpha=1.0)),),
        "Shrink": ((9, direct("shrink", bias=0.0, lambd=0.5)),),
        "Swish": ((24, direct("swish", alpha=1.0)),),
        "IsInf": ((10, direct("is_inf", detect_negative=1, detect_positive=1)),),
        "Mod": ((10, direct("mod", fmod=0)),),
        "BitShift": ((11, direct("bit_shift", direction="LEFT")),),
        "Clip": ((6, _clip_attributes), (11, _clip)),
        "Cast": ((6, _cast_attribute),),
        "CastLike": ((15, _cast_like),),
        "BitCast": ((26, _bit_cast),),
        "Identity": ((1, _identity),),
    }
)
