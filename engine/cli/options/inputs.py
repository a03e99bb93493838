"""What a network is run on when nobody gives it data: seeded random arrays."""

from collections.abc import Mapping

import numpy as np

from engine.graph.graph import Graph
from engine.stages.bind import input_shapes
from ops.tensor.spec import FLOATS, Array, TensorSpec


def random_feeds(
    graph: Graph, seed: int, given: Mapping[str, Array], lengths: Mapping[str, int] | None = None
) -> dict[str, Array]:
    """An array for each input: the given one, else floats from a normal distribution, integers and bools from {0, 1}.

    What an input gets does not depend on which others are given. `lengths` are those of dimensions that are names.
    """
    shapes = input_shapes(graph, lengths or {})
    specs = {name: TensorSpec(shapes[name], var.dtype) for name, var in graph.inputs.items()}
    drawn = {name: _draw(spec, np.random.default_rng((seed, i))) for i, (name, spec) in enumerate(specs.items())}
    return drawn | dict(given)


def _draw(spec: TensorSpec, random: np.random.Generator) -> Array:
    if spec.dtype in FLOATS:
        return np.asarray(random.standard_normal(spec.shape)).astype(spec.dtype)
    return np.asarray(random.integers(0, 2, spec.shape)).astype(spec.dtype)
