"""Where readers would have what they put side by side, so that a kernel is chosen that can write there."""

from collections.abc import Sequence

from engine.graph.graph import Graph
from engine.graph.var import Var
from ops.schema.backends import NUMPY
from ops.schema.schema import Kernel, OpSchema, Signature
from ops.tensor.layout import Layout


def output_layouts(graph: Graph) -> dict[Var, list[Layout]]:
    """The places of inputs inside the dense outputs of those that hold them, where these places are not dense."""
    found: dict[Var, list[Layout]] = {}
    for operator in graph.operators:
        places = operator.schema.input_places(Layout.dense(operator.signature.y), operator.signature)
        for var, place in zip(operator.inputs, places, strict=True):
            if place is not None and not place.is_dense:
                found.setdefault(var, []).append(place)
    return found


def writing_kernel(schema: OpSchema, signature: Signature, backends: Sequence[str], places: Sequence[Layout]) -> Kernel:
    """The kernel that the back-ends' order gives; where it cannot write there, that of the next one, if that can.

    A copy of what was computed elsewhere costs more than what one back-end has before another. Plain numpy is slower
    than both, so it is not chosen for this.
    """
    first = schema.kernel(signature, backends)
    if all(map(first.writes, places)):
        return first
    later = [b for b in backends[backends.index(first.backend) + 1 :] if b != NUMPY]
    found = (k for b in later for k in schema.kernels if k.backend == b and k.supports(signature))
    other = next(found, first)
    return other if all(map(other.writes, places)) else first
