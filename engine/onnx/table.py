"""The table of ONNX operators by converter and operator set, and a check that a model needs no others."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

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
from engine.onnx.functions import Functions
from engine.onnx.library import all_nodes, domain_of
from engine.onnx.node import Converter
from engine.onnx.registered import registered
from engine.text.errors import UnsupportedError

Versions = tuple[tuple[int, Converter | None], ...]
"""The converters of an operator, each with the version of the operator set it is for from, oldest first.

None stands for a version that has the operator no longer.
"""

FAMILIES = (constant, control, elementwise, index, nn, quantised, recurrent, reduce, resize, shape)
CONVERTERS: Mapping[str, Versions] = MappingProxyType({k: v for f in FAMILIES for k, v in f.CONVERTERS.items()})
"""The operators of the default domain by name."""


def converter(domain: str, op_type: str, version: int) -> Converter | None:
    """Returns the converter of an operator in a version of its operator set, or None."""
    convert = None
    if domain == "":
        for since, candidate in CONVERTERS.get(op_type, ()):
            convert = candidate if since <= version else convert
    return convert


def check_operators(model: Any, opsets: Mapping[str, int], functions: Functions) -> None:
    """Raises UnsupportedError that lists all operators of a ModelProto, branches included, that are not supported."""
    unknown: dict[str, int] = {}
    for proto in all_nodes(model.graph.node):
        domain = domain_of(proto.domain)
        version = opsets.get(domain, 0)
        if registered(domain, proto.op_type) or functions.own(proto) or converter(domain, proto.op_type, version):
            continue
        if functions.is_defined(proto, version):
            continue
        opset = f"opset {version}" if domain in opsets else "of no imported operator set"
        name = "".join(c if c.isprintable() else "?" for c in f"{domain or 'ai.onnx'}.{proto.op_type}")
        shown = f"{name} ({opset}{_reason(proto.op_type)})"
        unknown[shown] = unknown.get(shown, 0) + 1
    if unknown:
        listed = ", ".join(f"{name} x{count}" if count > 1 else name for name, count in unknown.items())
        raise UnsupportedError(f"the model uses operators that are not supported: {listed}")


def _reason(op_type: str) -> str:
    if op_type.startswith("Random") or op_type in ("Bernoulli", "Multinomial"):
        return ", draws random numbers"
    return ""
