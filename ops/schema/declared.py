"""Outputs that are declared beside an operator, in attributes, where no rule infers them from the inputs."""

from collections.abc import Sequence
from typing import Any

from ops.schema.attributes import Attribute, integer
from ops.schema.schema import Attrs, Specs
from ops.tensor.spec import TensorSpec


def _shapes(value: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(integer(n) for n in shape) for shape in value)


DECLARED = (Attribute("shapes", _shapes), Attribute("dtypes", tuple))
"""The attributes that declare outputs; shapes may have dimensions that are names."""


def declared_outputs(attrs: Attrs) -> Specs:
    """Returns the specs that the attributes declare."""
    return tuple(TensorSpec(shape, dtype) for shape, dtype in zip(attrs["shapes"], attrs["dtypes"], strict=True))


def declaring(specs: Sequence[TensorSpec]) -> dict[str, Any]:
    """Returns the attributes that declare these specs."""
    return {"shapes": tuple(s.shape for s in specs), "dtypes": tuple(s.dtype for s in specs)}
