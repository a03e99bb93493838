"""Operators of the user's own, registered for the domain and the name that models call them by."""

from collections.abc import Mapping

from engine.onnx.library import domain_of
from engine.text.errors import OptionError
from ops.schema.schema import OpSchema

_SCHEMAS: dict[tuple[str, str], OpSchema] = {}


def register_operator(domain: str, name: str, schema: OpSchema) -> None:
    """Makes models that are read from then on use a schema for the operator of this domain and name.

    The schema takes the inputs of the node in their order, and its attributes by their names. It comes before an
    operator of ours and before a function of the model; registered again, the later schema counts. Raises OptionError.
    """
    if not isinstance(domain, str) or not isinstance(name, str) or not name:
        raise OptionError(f"domain and name of an operator are texts ('acme', 'MyOp'), not {domain!r} and {name!r}")
    if not isinstance(schema, OpSchema):
        raise OptionError(
            f"operator {name!r} of domain {domain!r} needs an OpSchema (ops.schema.schema), not {schema!r}"
        )
    _SCHEMAS[domain_of(domain), name] = schema


def registered(domain: str, name: str) -> OpSchema | None:
    """Returns the schema of an operator that was registered, or None."""
    return _SCHEMAS.get((domain, name))


def registrations() -> Mapping[tuple[str, str], OpSchema]:
    """Returns the schemas of all operators that are registered at this moment, by domain and name."""
    return dict(_SCHEMAS)
