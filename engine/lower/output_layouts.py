"""The layouts that readers want for their inputs, so that kernels are chosen that can write them."""

from collections.abc import Sequence

from engine.graph.graph import Graph
from engine.graph.var import Var
from ops.schema.backends import NUMPY
from ops.schema.schema import Kernel, OpSchema, Signature
from ops.tensor.layout import Layout


def output_layouts(graph: Graph) -> dict[Var, list[Layout]]:
    """Returns the layouts of inputs inside the dense outputs of their readers, where these are not dense."""
    layouts: dict[Var, list[Layout]] = {}
    for operator in graph.operators:
        places = operator.schema.input_places(Layout.dense(operator.signature.y), operator.signature)
        for var, place in zip(operator.inputs, places, strict=True):
            if place is not None and not place.is_dense:
                layouts.setdefault(var, []).append(place)
    return layouts


def writing_kernel(schema: OpSchema, signature: Signature, backends: Sequence[str], places: Sequence[Layout]) -> Kernel:
    """Returns the first kernel in the order of the back-ends.

    Where it cannot write the layouts, the next back-end's kernel is returned if that can: it may be slower, but saves a
    copy of the output. Plain numpy is not chosen for this.
    """
    first = schema.kernel(signature, backends)
    if all(map(first.writes, places)) or first.backend not in backends:
        return first
    later = [b for b in backends[backends.index(first.backend) + 1 :] if b != NUMPY]
    following = (k for b in later for k in schema.kernels if k.backend == b and k.supports(signature))
    other = next(following, first)
    return other if all(map(other.writes, places)) else first
