"""A node of a graph."""

from attrs import field, frozen

from engine.var import Var
from ops.schema import Attrs, OpSchema, Signature


@frozen(eq=False)
class Operator:
    """One use of a schema. Compares by identity."""

    name: str
    schema: OpSchema
    inputs: tuple[Var, ...]
    outputs: tuple[Var, ...]
    signature: Signature = field(repr=False)

    @property
    def attrs(self) -> Attrs:
        """All attributes, defaults filled in."""
        return self.signature.attrs

    def __str__(self) -> str:
        return f"{self.name} ({self.schema.name})"
