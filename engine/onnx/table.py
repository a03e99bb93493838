"""Which ONNX operators are read, from which version of the operator set on, and by which converter."""

from collections.abc import Mapping
from types import MappingProxyType

from engine.onnx.converters import (
    constant,
    control,
    elementwise,
    index,
    nn,
    quantised,
    recurrent,
    reduce,
    resize,
    shape,
)
from engine.onnx.node import Converter

Versions = tuple[tuple[int, Converter | None], ...]
"""A converter, or None for no longer, from each of these versions on; oldest first."""

FAMILIES = (
    constant,
    control,
    elementwise,
    index,
    nn,
    quantised,
    recurrent,
    reduce,
    resize,
    shape,
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
