"""A node of a graph."""

from attrs import field, frozen

from engine.graph.var import Var
from engine.text.names import few
from ops.schema.schema import Attrs, OpSchema, Signature
from ops.symbolic.infer import in_samples
from ops.tensor.layout import Layout


@frozen(eq=False)
class Operator:
    """One use of a schema; compared by identity."""

    name: str
    schema: OpSchema
    inputs: tuple[Var, ...]
    outputs: tuple[Var, ...]
    signature: Signature = field(repr=False)

    @property
    def attrs(self) -> Attrs:
        """All attributes, defaults filled in."""
        return self.signature.attrs

    @property
    def shows_its_input(self) -> bool:
        """True if every output is a view of the first input, as long as that is dense; for any lengths."""
        if not self.inputs:
            return False
        signatures = in_samples(self.signature)
        return any(None not in self.schema.views(Layout.dense(s.inputs[0]), s) for s in signatures)

    def __repr__(self) -> str:
        """Returns one line, with the first few inputs."""
        outputs, inputs = (few(f"{v.name}: {v.spec}" for v in vars) for vars in (self.outputs, self.inputs))
        return f"<operator {self.name!r}: {outputs} = {self.schema.name}({inputs})>"

    def __str__(self) -> str:
        return f"{self.name} ({self.schema.name})"
