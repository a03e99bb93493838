"""Converters of operators whose outputs are known while the model is read: they add nothing to the graph."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from engine.errors import ModelError
from engine.importers.onnx_node import Converter, Node
from engine.importers.onnx_tensors import array_of
from engine.importers.onnx_values import Value, check_size
from ops.spec import TensorSpec, spec_of

_FORMS: Mapping[str, Any] = MappingProxyType(
    {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}
)


def _constant(node: Node) -> tuple[Value, ...]:
    if len(node.attrs) != 1:
        raise ModelError(f"one value is wanted, and {len(node.attrs)} are given")
    ((form, value),) = node.attrs.items()
    if form == "value":
        return (array_of(value, f"the tensor of {node}"),)
    if form not in _FORMS:
        raise node.refuse(f"a constant given as {form!r} is not supported")
    return (np.asarray(value, dtype=_FORMS[form]),)


def _constant_of_shape(node: Node) -> tuple[Value, ...]:
    given = node.attr("value")
    fill = np.zeros(1, np.float32) if given is None else array_of(given, f"the value of {node}")
    if fill.size != 1:
        raise ModelError(f"the value must have one element, not {fill.size}")
    spec = TensorSpec(node.integers(0, "input"), fill.dtype)
    check_size([spec])
    return (np.full(spec.shape, fill.reshape(())),)


def _shape(node: Node) -> tuple[Value, ...]:
    shape = node.value(0).shape
    return (np.asarray(shape[node.attr("start", 0) : node.attr("end")], dtype=np.int64),)


def _size(node: Node) -> tuple[Value, ...]:
    return (np.asarray(math.prod(node.value(0).shape), dtype=np.int64),)


def _range(node: Node) -> tuple[Value, ...]:
    bounds = [node.array(i, role) for i, role in enumerate(("start", "limit", "delta"))]
    dtype = bounds[0].dtype
    start, limit, delta = (b.reshape(()).item() for b in bounds)
    if not delta:
        raise ModelError("delta is 0")
    if not all(map(math.isfinite, (start, limit, delta))):
        raise ModelError(f"no range runs from {start} to {limit} in steps of {delta}")
    count = max(math.ceil((limit - start) / delta), 0)
    check_size([TensorSpec((count,), dtype)])
    return ((start + np.arange(count) * delta).astype(dtype),)


def _non_zero(node: Node) -> tuple[Value, ...]:
    """How many there are depends on the data, so the data must be known."""
    found = np.asarray(np.nonzero(np.atleast_1d(node.array(0, "X"))), dtype=np.int64)
    check_size([spec_of(found)])
    return (found,)


def _dropout(mask: type[np.generic] | None) -> Converter:
    """Dropout at inference gives its input; the mask is all ones, of x's dtype where `mask` is None."""

    def convert(node: Node) -> tuple[Value, ...]:
        x = node.value(0)
        if node.optional(2) is not None and bool(node.array(2, "training_mode").any()):
            raise node.refuse("training_mode is true, and dropout in training draws random numbers")
        if not node.wants(1):
            return (x,)
        spec = TensorSpec(x.shape, mask or x.dtype)
        check_size([spec])
        return x, np.ones(spec.shape, spec.dtype)

    return convert


CONVERTERS: Mapping[str, tuple[tuple[int, Converter | None], ...]] = MappingProxyType(
    {
        "Constant": ((1, _constant),),
        "ConstantOfShape": ((9, _constant_of_shape),),
        "Shape": ((1, _shape),),
        "Size": ((1, _size),),
        "Range": ((11, _range),),
        "NonZero": ((9, _non_zero),),
        "Dropout": ((7, _dropout(None)), (10, _dropout(np.bool_))),
    }
)
