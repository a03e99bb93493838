"""Converters of operators whose outputs are known when the model is read, and of those that count their outputs."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from engine.graph.symbols import Derived
from engine.graph.var import Var
from engine.onnx.model_names import Value
from engine.onnx.node import Converter, Node, no_guess
from engine.text.errors import ModelError
from ops.movement.arange import number_of_steps
from ops.symbolic.guesses import numbers_to
from ops.tensor.spec import Array

_FORMS: Mapping[str, Any] = MappingProxyType(
    {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}
)


def _constant(node: Node) -> tuple[Value, ...]:
    if len(node.attrs) != 1:
        raise ModelError(f"a constant must have one value, not {len(node.attrs)}")
    ((form, value),) = node.attrs.items()
    if form == "value":
        return (node.builder.stored(value, f"the tensor of {node}"),)
    if form not in _FORMS:
        raise node.refuse(f"a constant given as {form!r} is not supported")
    return (np.asarray(value, dtype=_FORMS[form]),)


def _constant_of_shape(node: Node) -> tuple[Value, ...]:
    proto = node.attr("value")
    fill = np.zeros(1, np.float32) if proto is None else node.builder.stored(proto, f"the value of {node}")
    if fill.size != 1:
        raise ModelError(f"the value must have one element, not {fill.size}")
    return (filled(node, fill.reshape(()), node.integers(0, "input", no_guess)),)


def filled(node: Node, fill: Array, shape: Sequence[int]) -> Value:
    """Returns a tensor whose elements are all equal."""
    return node.step("expand", fill, shape=tuple(shape))


def _shape(node: Node) -> tuple[Value, ...]:
    shape = node.value(0).shape[node.attr("start", 0) : node.attr("end")]
    return (node.builder.of_integers(shape, (len(shape),)),)


def _size(node: Node) -> tuple[Value, ...]:
    return (node.builder.of_integers((math.prod(node.value(0).shape),), ()),)


def _range(node: Node) -> tuple[Value, ...]:
    """Converts Range. Its elements are counted first, by the run where only the run knows the bounds."""
    bounds = [_scalar(node.value(i)) for i in range(3)]
    constants = [b for b in bounds if not isinstance(b, (Var, Derived))]
    if len(constants) < len(bounds):
        counted = node.step("arange_count", *bounds)
        return node.last("arange", *bounds, count=node.count(counted, (), (0, "start"), (1, "limit"), (2, "delta")))
    return node.last("arange", *constants, count=number_of_steps(*constants))


def _scalar(value: Value) -> Value:
    """Returns a constant of one element as a 0-d array, and any other value as it is."""
    return value if isinstance(value, (Var, Derived)) else value.reshape(())


def _non_zero(node: Node) -> tuple[Value, ...]:
    """Converts NonZero: count first, then write the positions. A scalar is a row of one element."""
    x = node.value(0)
    guess = numbers_to(math.prod(x.shape), turn=node.variant)
    count = node.count(node.step("count_nonzero", x), guess, (0, "X"))
    return node.last("nonzero", x, count=count)


CONVERTERS: Mapping[str, tuple[tuple[int, Converter | None], ...]] = MappingProxyType(
    {
        "Constant": ((1, _constant),),
        "ConstantOfShape": ((9, _constant_of_shape),),
        "Shape": ((1, _shape),),
        "Size": ((1, _size),),
        "Range": ((11, _range),),
        "NonZero": ((9, _non_zero),),
    }
)
