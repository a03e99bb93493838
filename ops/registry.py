"""Operators by name. Built from explicit tuples; nothing registers itself when it is imported."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from ops.errors import DuplicateOperatorError, UnknownOperatorError
from ops.schema import OpSchema
from ops.softmax import OPS as SOFTMAX_OPS


def index(*families: Iterable[OpSchema]) -> Mapping[str, OpSchema]:
    """All schemas by name. Raises DuplicateOperatorError."""
    found: dict[str, OpSchema] = {}
    for family in families:
        for schema in family:
            if schema.name in found:
                raise DuplicateOperatorError(f"two operators are named {schema.name!r}")
            found[schema.name] = schema
    return MappingProxyType(found)


REGISTRY = index(SOFTMAX_OPS)
"""Every operator of this package."""


def find(name: str) -> OpSchema:
    """The schema of that name. Raises UnknownOperatorError."""
    if name not in REGISTRY:
        raise UnknownOperatorError(f"no operator is named {name!r}")
    return REGISTRY[name]
