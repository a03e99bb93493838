"""Which ONNX operators are read, from which version of the operator set on, and by which converter."""

from collections.abc import Mapping
from types import MappingProxyType

from engine.importers import (
    onnx_nodes_constant,
    onnx_nodes_control,
    onnx_nodes_elementwise,
    onnx_nodes_index,
    onnx_nodes_nn,
    onnx_nodes_quantised,
    onnx_nodes_recurrent,
    onnx_nodes_reduce,
    onnx_nodes_resize,
    onnx_nodes_shape,
)
from engine.importers.onnx_node import Converter

Versions = tuple[tuple[int, Converter | None], ...]
"""A converter, or None for no longer, from each of these versions on; oldest first."""

FAMILIES = (
    onnx_nodes_constant,
    onnx_nodes_control,
    onnx_nodes_elementwise,
    onnx_nodes_index,
    onnx_nodes_nn,
    onnx_nodes_quantised,
    onnx_nodes_recurrent,
    onnx_nodes_reduce,
    onnx_nodes_resize,
    onnx_nodes_shape,
)
CONVERTERS: Mapping[str, Versions] = MappingProxyType({k: v for f in FAMILIES for k, v in f.CONVERTERS.items()})
"""Operators of the default domain by name."""


def converter(domain: str, op_type: str, version: int) -> Converter | None:
    """The converter of an operator in a version of its operator set, or None."""
    found = None
    if domain == "":
        for since, candidate in CONVERTERS.get(op_type, ()):
            found = candidate if since <= version else found
    return found
