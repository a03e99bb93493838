"""The one place where the onnx package is imported, on first use: it is heavy, and most programs read no model."""

import functools
from collections.abc import Iterable, Iterator
from typing import Any, cast

ModelProto = Any
"""An onnx.ModelProto. The protobuf classes are known only once onnx is loaded."""


@functools.cache
def onnx() -> Any:
    """Returns the onnx package."""
    import onnx as package  # noqa: PLC0415 - heavy, see above

    return package


@functools.cache
def decode_error() -> type[Exception]:
    """Returns the exception of protobuf for bytes that are no message."""
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # noqa: PLC0415 - comes with onnx

    return cast(type[Exception], DecodeError)


@functools.cache
def encode_error() -> type[Exception]:
    """Returns the exception of protobuf for a message that is too large to be written."""
    from google.protobuf.message import EncodeError  # noqa: PLC0415 - comes with onnx

    return cast(type[Exception], EncodeError)


def domain_of(name: str) -> str:
    """Returns the one name of a domain: the default domain has two."""
    return "" if name == "ai.onnx" else name


def one_line(error: BaseException) -> str:
    """Returns the first line of the message of another library's error."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def all_nodes(nodes: Iterable[Any]) -> Iterator[Any]:
    """Yields NodeProtos, and those of the graphs inside them."""
    for proto in nodes:
        yield proto
        for attribute in proto.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from all_nodes(graph.node)


def newest_opset() -> int:
    """Returns the newest version of the default operator set that the installed onnx package has."""
    return int(onnx().defs.onnx_opset_version())


def check_node(proto: Any, domain: str, opsets: dict[str, int], ir_version: int) -> str:
    """Returns the complaint of onnx's checker about a node (counts, attributes, their types) in one line, or "".

    Deprecated operators are not checked: models have some of them all the same. Those that onnx does not know are not.
    """
    package = onnx()
    is_declared = package.defs.has(proto.op_type, opsets[domain], domain)
    if not is_declared or package.defs.get_schema(proto.op_type, opsets[domain], domain).deprecated:
        return ""
    context = type(package.checker.DEFAULT_CONTEXT)()
    context.ir_version, context.opset_imports = ir_version, opsets
    try:
        package.checker.check_node(proto, context)
    except package.checker.ValidationError as error:
        return str(error).strip().splitlines()[0]
    return ""


@functools.cache
def backend_base() -> Any:
    """Returns the module onnx.backend.base, which `import onnx` alone does not load."""
    import onnx.backend.base  # noqa: PLC0415 - heavy, see above

    return onnx.backend.base
