"""Operators of a model that nobody here can read, all of them in one message."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.onnx.functions import Functions
from engine.onnx.library import domain_of
from engine.onnx.table import converter
from engine.text.errors import UnsupportedError


def check_operators(model: Any, opsets: Mapping[str, int], functions: Functions) -> None:
    """Raises UnsupportedError that lists the operators of the main graph, branches included, that are not supported."""
    unknown: dict[str, int] = {}
    for proto in _all_nodes(model.graph.node):
        domain = domain_of(proto.domain)
        version = opsets.get(domain, 0)
        if functions.own(proto) or converter(domain, proto.op_type, version) or functions.known(proto, version):
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


def _all_nodes(nodes: Sequence[Any]) -> Iterator[Any]:
    for proto in nodes:
        yield proto
        for attribute in proto.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from _all_nodes(graph.node)
