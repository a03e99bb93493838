"""Operators that other operators define: functions of the model, and those of onnx itself."""

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from engine.onnx.library import domain_of, onnx
from engine.onnx.structures import Held, tensor_in
from engine.onnx.tensors import code_of
from ops.tensor.dims import Dim

Key = tuple[str, str, str]
"""The domain, name and overload of a function of the model."""


@frozen(eq=False)
class Functions:
    """The functions that a model defines, by key."""

    local: Mapping[Key, Any]

    @classmethod
    def of(cls, model: Any) -> "Functions":
        """Returns the functions of a ModelProto."""
        return cls({(domain_of(f.domain), f.name, f.overload): f for f in model.functions})

    def own(self, proto: Any) -> Any | None:
        """Returns the function of the model that a node calls, or None."""
        return self.local.get((domain_of(proto.domain), proto.op_type, proto.overload))

    def is_defined(self, proto: Any, version: int) -> bool:
        """Returns whether onnx defines the operator of a node by other operators."""
        schema = _schema(proto, version)
        return schema is not None and (schema.has_function or schema.has_context_dependent_function)

    def body(self, proto: Any, version: int, operands: Sequence[Held | None]) -> Any | None:
        """Returns the FunctionProto for a node with these operands, or None."""
        return self.own(proto) or _onnx_body(proto, version, operands)


def substitute(proto: Any, actual: Mapping[str, Any]) -> Any:
    """Returns a node of a function with the attributes of its call in place of references to them.

    An attribute that the call does not have is left out.
    """
    if not any(a.ref_attr_name or a.g.node or a.graphs for a in proto.attribute):
        return proto
    copy = onnx().NodeProto()
    copy.CopyFrom(proto)
    del copy.attribute[:]
    for attribute in proto.attribute:
        source = actual.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
        if source is not None:
            added = copy.attribute.add()
            added.CopyFrom(source)
            added.name = attribute.name
            _substitute_inside(added, actual)
    return copy


def arguments(proto: Any, version: int, function: Any) -> dict[str, Any]:
    """Returns the attributes of a call: those of the node, else the defaults of the function or of onnx."""
    schema = _schema(proto, version)
    declared = schema.attributes.values() if schema else ()
    defaults = {a.name: a.default_value for a in declared if a.default_value.name}
    return defaults | {a.name: a for a in (*function.attribute_proto, *proto.attribute)}


def _substitute_inside(attribute: Any, actual: Mapping[str, Any]) -> None:
    for graph in (attribute.g, *attribute.graphs):
        nodes = [substitute(n, actual) for n in graph.node]
        if nodes:
            del graph.node[:]
            graph.node.extend(nodes)


def _onnx_body(proto: Any, version: int, operands: Sequence[Held | None]) -> Any | None:
    schema = _schema(proto, version)
    if schema is None:
        return None
    if schema.has_context_dependent_function:
        chosen = _chosen(schema.context_dependent_function_opset_versions, version)
        types = [_type(v).SerializeToString() for v in operands]
        data = schema.get_context_dependent_function_with_opset_version(chosen, proto.SerializeToString(), types)
    elif schema.has_function:
        data = schema.get_function_with_opset_version(_chosen(schema.function_opset_versions, version))
    else:
        return None
    function = onnx().FunctionProto()
    function.ParseFromString(data)
    return function if len(function.node) else None


def _chosen(versions: Sequence[int], version: int) -> int:
    """Returns the newest version that is not newer than the operator set of the model, else the oldest."""
    return max((v for v in versions if v <= version), default=min(versions))


def _type(held: Held | None) -> Any:
    if held is None:
        return onnx().TypeProto()
    value = tensor_in(held, "an input")
    return onnx().helper.make_tensor_type_proto(
        code_of(value.dtype), [str(n) if isinstance(n, Dim) else n for n in value.shape]
    )


def _schema(proto: Any, version: int) -> Any | None:
    domain = domain_of(proto.domain)
    if not onnx().defs.has(proto.op_type, version, domain):
        return None
    return onnx().defs.get_schema(proto.op_type, version, domain)
