"""Operators that nobody implements: planned with outputs that are declared, and never run."""

from ops.schema.backends import NOBODY
from ops.schema.declared import DECLARED, declared_outputs
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Specs, Thunk, all_contiguous
from ops.tensor.errors import SchemaError

_MOST_INPUTS = 2**31


def _refuse(_: Binding) -> Thunk:
    raise SchemaError("nobody implements this operator, so it cannot run")


_NO_KERNEL = Kernel("none", _refuse, contiguous=all_contiguous, backend=NOBODY)


def _infer(_: Specs, attrs: Attrs) -> Specs:
    return declared_outputs(attrs)


def opaque_schema(name: str) -> OpSchema:
    """Returns a schema for one use of an operator that nobody implements.

    It reads dense inputs, overwrites nothing, and needs no workspace that anybody knows of. As each use has a schema of
    its own, no two of them are taken for equal.
    """
    return OpSchema(name, _infer, (_NO_KERNEL,), arity=(0, _MOST_INPUTS), attributes=DECLARED)


def is_opaque(schema: OpSchema) -> bool:
    """Returns whether nobody implements the operator."""
    return _NO_KERNEL in schema.kernels
