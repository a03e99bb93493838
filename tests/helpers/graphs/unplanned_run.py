"""Runs a graph operator by operator on arrays of their own: no plan, no views, no overwrites."""

from collections.abc import Mapping

import numpy as np

from engine import Graph, Var
from ops.schema.schema import evaluate
from ops.tensor.spec import Array


def run_unplanned(graph: Graph, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """All outputs by name."""
    arrays: dict[Var, Array] = dict(graph.constants)
    arrays.update({var: feeds[name] for name, var in graph.inputs.items()})
    with np.errstate(all="ignore"):
        for operator in graph.operators:
            outputs = evaluate(operator.schema, *(arrays[v] for v in operator.inputs), **operator.attrs)
            arrays.update(zip(operator.outputs, outputs, strict=True))
    return {name: arrays[var] for name, var in graph.outputs.items()}


def random_feeds(graph: Graph, seed: int = 0) -> dict[str, Array]:
    """Seeded normal numbers for every input."""
    rng = np.random.default_rng(seed)
    return {n: np.asarray(rng.normal(size=v.shape)).astype(v.dtype) for n, v in graph.inputs.items()}


def assert_same(actual: Mapping[str, Array], wanted: Mapping[str, Array]) -> None:
    """Equal names and equal bits."""
    assert list(actual) == list(wanted)
    for name, array in wanted.items():
        assert actual[name].shape == array.shape and actual[name].dtype == array.dtype
        assert np.ascontiguousarray(actual[name]).tobytes() == np.ascontiguousarray(array).tobytes(), name
