"""Converters of operators that draw random numbers, and of Dropout.

The numbers are a function of the attribute `seed`, of the names of the node (which others may have) and of its outputs,
and of the place of an element, so each run draws the same. A body that runs several times with one plan would draw the
same in each turn, and is refused.
"""

import math
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from types import MappingProxyType
from typing import Any

import numpy as np

from engine.onnx.bodies import NotStaticError
from engine.onnx.converters.constant import filled
from engine.onnx.converters.elementwise import cast_to
from engine.onnx.model_names import Value
from engine.onnx.node import Converter, Node
from engine.onnx.tensors import dtype_of
from engine.text.errors import ModelError
from ops.tensor.spec import BFLOAT16, FLOATS

_FLOAT, _DOUBLE = np.dtype("float32"), np.dtype("float64")
_COUNT = np.dtype("int64")


def _uniform(node: Node, shape: Sequence[int], dtype: np.dtype[Any], role: str = "") -> Value:
    """Returns numbers in [0, 1), in float64 for float64 and in float32 for others; each `role` draws its own."""
    if node.builder.repeats:
        raise NotStaticError(f"{node}: draws other numbers in each turn, so constants must say how often it runs")
    text = f"{node.attr('seed')} {node.name} {' '.join(node.outputs)} {role}"
    seed = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")
    attrs = {"shape": tuple(shape), "seed": seed, "dtype": dtype if dtype == _DOUBLE else _FLOAT}
    step = np.zeros((), _COUNT)
    return node.builder.add("random_uniform", (step,), attrs, f"{node.name}/random_uniform{role}", ("",))[0]


def _normal(node: Node, shape: Sequence[int], dtype: np.dtype[Any]) -> Value:
    """Returns numbers of the standard normal distribution (Box and Muller 1958)."""
    one, other = (_uniform(node, shape, dtype, role) for role in (":0", ":1"))
    length = node.step("log", node.step("sub", node.like(1, one), one))
    length = node.step("sqrt", node.step("mul", length, node.like(-2, one)))
    return node.step("mul", length, node.step("cos", node.step("mul", other, node.like(2 * math.pi, other))))


def _last(node: Node, value: Value, factor: float, offset: float, dtype: np.dtype[Any]) -> tuple[Value, ...]:
    """Returns value * factor + offset in this dtype."""
    product = node.step("mul", value, node.like(factor, value))
    if dtype == value.dtype:
        return node.last("add", product, node.like(offset, value))
    return node.last("cast", node.step("add", product, node.like(offset, value)), to=dtype)


def _shape(node: Node) -> tuple[Sequence[int], np.dtype[Any]]:
    """Returns the shape and the dtype of attributes."""
    shape = node.attr("shape")
    if min(shape, default=0) < 0:
        raise ModelError(f"shape {tuple(shape)} has a negative length")
    return shape, _float(node, np.dtype("float32"))


def _shape_like(node: Node) -> tuple[Sequence[int], np.dtype[Any]]:
    """Returns the shape of the input, and the dtype of an attribute, or else of the input."""
    return node.value(0).shape, _float(node, node.value(0).dtype)


def _float(node: Node, default: np.dtype[Any]) -> np.dtype[Any]:
    dtype = _type(node, default)
    if dtype not in FLOATS | {BFLOAT16}:
        raise ModelError(f"dtype is {dtype}; floating-point numbers are wanted")
    return dtype


def _type(node: Node, default: np.dtype[Any]) -> np.dtype[Any]:
    code = node.attr("dtype")
    return default if code is None else dtype_of(code, f"the output of {node}")


def _random_uniform(of: Any) -> Converter:
    def convert(node: Node) -> tuple[Value, ...]:
        shape, dtype = of(node)
        low, high = node.attr("low", 0.0), node.attr("high", 1.0)
        return _last(node, _uniform(node, shape, dtype), high - low, low, dtype)

    return convert


def _random_normal(of: Any) -> Converter:
    def convert(node: Node) -> tuple[Value, ...]:
        shape, dtype = of(node)
        return _last(node, _normal(node, shape, dtype), node.attr("scale", 1.0), node.attr("mean", 0.0), dtype)

    return convert


def _bernoulli(node: Node) -> tuple[Value, ...]:
    """Converts Bernoulli: 1 with the probability that an element says, else 0."""
    x = node.value(0)
    drawn = _uniform(node, x.shape, x.dtype)
    is_one = node.step("less", drawn, cast_to(node, x, drawn.dtype))
    return node.last("cast", is_one, to=_type(node, x.dtype))


def _multinomial(node: Node) -> tuple[Value, ...]:
    """Converts Multinomial: the class is the number of sums of probabilities that a number in [0, 1) reaches."""
    x, size = node.value(0), node.attr("sample_size", 1)
    if len(x.shape) != 2 or size < 0:
        raise ModelError(f"{size} samples of shape {x.shape}; rows of classes are wanted")
    probabilities = node.step("softmax", cast_to(node, x, _DOUBLE), axis=1)
    sums = node.step("cum_sum", probabilities, axis=1)
    drawn = _uniform(node, (x.shape[0], size, 1), _DOUBLE)
    reached = node.step("less_or_equal", node.step("reshape", sums, shape=(x.shape[0], 1, x.shape[1])), drawn)
    number = node.step("cast", reached, to=_type(node, np.dtype("int32")))
    return node.last("reduce_sum", number, axes=(2,), keepdims=False)


def _dropout(mask: type[np.generic] | None) -> Converter:
    """Returns the converter of Dropout; outside of training the mask has ones of type `mask` or of the input."""

    def convert(node: Node) -> tuple[Value, ...]:
        x = node.value(0)
        if node.optional(2) is not None and bool(node.array(2, "training_mode").any()):
            return _drop(node, x)
        if not node.uses_output(1):
            return (x,)
        return x, filled(node, np.ones((), mask or x.dtype), x.shape)

    return convert


def _drop(node: Node, x: Value) -> tuple[Value, ...]:
    """Converts Dropout in training: x / (1 - ratio) where a number in [0, 1) is at least the ratio, else 0."""
    drawn, ratio = _uniform(node, x.shape, x.dtype), node.optional(1)
    ratio = node.like(0.5, drawn) if ratio is None else node.step("reshape", ratio, shape=())
    ratio = cast_to(node, ratio, drawn.dtype)
    kept = node.output(1, "less_or_equal", ratio, drawn)
    share = node.step("cast", node.step("sub", node.like(1, drawn), ratio), to=x.dtype)
    return *node.last("where", kept, node.step("div", x, share), node.like(0, x)), kept


CONVERTERS: Mapping[str, tuple[tuple[int, Converter | None], ...]] = MappingProxyType(
    {
        "RandomUniform": ((1, _random_uniform(_shape)),),
        "RandomUniformLike": ((1, _random_uniform(_shape_like)),),
        "RandomNormal": ((1, _random_normal(_shape)),),
        "RandomNormalLike": ((1, _random_normal(_shape_like)),),
        "Bernoulli": ((15, _bernoulli),),
        "Multinomial": ((7, _multinomial),),
        "Dropout": ((7, _dropout(None)), (10, _dropout(np.bool_))),
    }
)
