"""How graphs are pickled and copied: operators of this project by their names, everything else by its parts."""

import copyreg
from types import MappingProxyType
from typing import Any

from attrs import fields

from engine.graph.deferred import Deferred
from ops.registry import REGISTRY, find
from ops.schema.opaque import is_opaque, opaque_schema
from ops.schema.schema import OpSchema, Signature

Reduced = tuple[Any, tuple[Any, ...]]
_PARTS = tuple(field.name for field in fields(OpSchema))


def _schema(schema: OpSchema) -> Reduced:
    if REGISTRY.get(schema.name) is schema:
        return find, (schema.name,)
    if is_opaque(schema):
        return opaque_schema, (schema.name,)
    return _schema_of_parts, tuple(getattr(schema, name) for name in _PARTS)


def _schema_of_parts(*parts: Any) -> OpSchema:
    return OpSchema(**{name: part for name, part in zip(_PARTS, parts, strict=True)})


def _signature(signature: Signature) -> Reduced:
    attrs = dict(signature.attrs)
    return _signature_of_parts, (signature.inputs, signature.outputs, attrs, signature.constants, signature.threads)


def _signature_of_parts(inputs: Any, outputs: Any, attrs: dict[str, Any], *more: Any) -> Signature:
    return Signature(inputs, outputs, MappingProxyType(attrs), *more)


def _mapping(mapping: MappingProxyType[Any, Any]) -> Reduced:
    return _mapping_of, (dict(mapping),)  # attributes also stand inside others: in steps of fused operators


def _mapping_of(attrs: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(attrs)


def _deferred(entry: Deferred) -> Reduced:
    return Deferred, (entry.spec, entry.make)


copyreg.pickle(OpSchema, _schema)
copyreg.pickle(Signature, _signature)
copyreg.pickle(MappingProxyType, _mapping)
copyreg.pickle(Deferred, _deferred)
